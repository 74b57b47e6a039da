"""Writes tests/loading/goldens: what transformers and torch compute, for our loaders to agree with.

Needs an environment of its own, so that the library's never holds torch:

  python -m venv peers && peers/bin/pip install torch transformers gguf safetensors
  peers/bin/python scripts/make_goldens.py SmolLM2-135M-Instruct.Q4_1.gguf tests/loading/goldens

The first argument is the file that `specjax.loading.default_model` keeps in its cache. Every golden
states the versions that made it.
"""

import argparse
import json
import shutil
from pathlib import Path

import gguf
import numpy as np
import tokenizers
import torch
import transformers

COMMON = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2)

LLAMA3_ROPE = dict(
    rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=32)
YARN_ROPE = dict(
    rope_type="yarn", rope_theta=10000.0, factor=8.0, original_max_position_embeddings=32)
LINEAR_ROPE = dict(rope_type="linear", rope_theta=5000.0, factor=2.0)

# name: (configuration, shard size, dtype of the file)
TINY = {
    "llama": (transformers.LlamaConfig(
        **COMMON, tie_word_embeddings=False, attention_bias=True, rope_parameters=LLAMA3_ROPE),
              "40KB", torch.float32),
    "mistral": (transformers.MistralConfig(
        **COMMON, tie_word_embeddings=False, sliding_window=None, rope_parameters=LINEAR_ROPE),
                "5GB", torch.float16),
    "qwen2": (transformers.Qwen2Config(**COMMON, tie_word_embeddings=True), "5GB", torch.float32),
    "qwen3": (transformers.Qwen3Config(
        **COMMON, head_dim=16, tie_word_embeddings=True, rope_parameters=YARN_ROPE),
              "5GB", torch.bfloat16),
}

PROMPTS = (
    "The three primary colours are",
    "def fibonacci(n):\n  if n < 2:\n    return n\n  return",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
)
COLUMNS = 512

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}")


def versions() -> dict:
  packages = (torch, transformers, tokenizers, np)
  return {package.__name__: package.__version__ for package in packages}


def randomise(model: torch.nn.Module):
  """Weights large enough that a wrong row order, bias or norm shows in the logits."""
  generator = torch.Generator().manual_seed(0)
  for name, weight in model.named_parameters():
    centre, width = (1.0, 0.3) if "norm" in name else (0.0, 0.25)
    weight.data = centre + width * torch.randn(weight.shape, generator=generator)


def tiny_tokenizer() -> tokenizers.Tokenizer:
  """Sixty-four tokens: three special ones, letters and a few merges."""
  alphabet = "abcdefghijklmnopqrstuvwxyzĠĊ.,!?'0123456789[]HTW"
  merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "n"), ("i", "n"), ("e", "r"), ("Ġ", "a"),
            ("o", "n"), ("h", "e"), ("l", "l")]
  tokens = ["<unk>", "<s>", "</s>", *alphabet, *("".join(merge) for merge in merges)]
  model = tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges)
  result = tokenizers.Tokenizer(model)
  result.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
  result.decoder = tokenizers.decoders.ByteLevel()
  result.add_special_tokens(tokens[:3])
  result.post_processor = tokenizers.processors.TemplateProcessing(
      single="<s> $A", special_tokens=[("<s>", 1)])
  return result


def write_tokenizer(directory: Path, name: str):
  """One tokenizer, with the chat template in each of the three places where it can be."""
  tiny_tokenizer().save(str(directory / "tokenizer.json"))
  settings = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
  if name == "llama":
    settings["chat_template"] = TEMPLATE
  elif name == "qwen2":
    settings["chat_template"] = [
        {"name": "tool_use", "template": "no"}, {"name": "default", "template": TEMPLATE}]
    settings["add_bos_token"] = False
  elif name == "qwen3":
    (directory / "chat_template.jinja").write_text(TEMPLATE)
  (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
  if name != "mistral":  # which falls back to config.json
    ends = 2 if name == "llama" else [2, 0]
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))


def logits_of(model: torch.nn.Module, ids: np.ndarray) -> np.ndarray:
  with torch.no_grad():
    return model(torch.tensor(ids, dtype=torch.long)).logits.float().numpy()


def write_tiny(out: Path):
  """Random models as Hugging Face directories, each with the logits of two token sequences."""
  for name, (config, shard_size, dtype) in TINY.items():
    directory = out / name
    shutil.rmtree(directory, ignore_errors=True)
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation="eager").eval()
    randomise(model)
    model.to(dtype).save_pretrained(directory, max_shard_size=shard_size)
    write_tokenizer(directory, name)
    ids = np.random.default_rng(0).integers(0, 64, (2, 48)).astype(np.int32)
    # Read back, because casting a model also rounds its rotary frequencies, which no file holds.
    stored = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager").eval()
    logits = logits_of(stored, ids)
    np.savez_compressed(directory / "logits.npz", ids=ids, logits=logits, versions=str(versions()))


def write_smollm2(source: Path, out: Path):
  """Logits of the default model, decoded and run by transformers, at some columns of all rows."""
  model = transformers.AutoModelForCausalLM.from_pretrained(
      source.parent, gguf_file=source.name, dtype=torch.float32, attn_implementation="eager").eval()
  tokenizer = smollm2_tokenizer(source)
  columns = np.sort(np.random.default_rng(0).choice(49152, COLUMNS, replace=False)).astype(np.int32)
  golden = {"columns": columns, "prompts": np.array(PROMPTS), "versions": str(versions())}
  for i, prompt in enumerate(PROMPTS):
    ids = np.array([tokenizer.encode(prompt).ids], np.int32)
    logits = logits_of(model, ids)[0]
    top = np.argsort(-logits, axis=-1)[:, :5]
    golden |= {
        f"ids_{i}": ids[0], f"logits_{i}": logits[:, columns], f"top_{i}": top.astype(np.int32),
        f"top_logits_{i}": np.take_along_axis(logits, top, 1)}
  np.savez_compressed(out / "smollm2_logits.npz", **golden)


def smollm2_tokenizer(source: Path) -> tokenizers.Tokenizer:
  """The published tokenizer of SmolLM2 with the GGUF file's tokens and merges in it.

  Its tokenizer.json isolates digits, then cuts by GPT-2's rule; the names of the two steps are all
  that the GGUF file abbreviates as "smollm".
  """
  fields = gguf.GGUFReader(source).fields
  tokens = fields["tokenizer.ggml.tokens"].contents()
  specification = {
      "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
      "added_tokens": [
          dict(id=i, content=tokens[i], single_word=False, lstrip=False, rstrip=False,
               normalized=False, special=True) for i in range(17)],
      "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
          {"type": "Digits", "individual_digits": True},
          {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
           "use_regex": True}]},
      "post_processor": None,
      "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                  "use_regex": True},
      "model": {
          "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
          "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
          "vocab": {token: i for i, token in enumerate(tokens)},
          "merges": fields["tokenizer.ggml.merges"].contents()},
  }
  return tokenizers.Tokenizer.from_str(json.dumps(specification))


def varied_strings() -> list[str]:
  """Two hundred strings that tokenizers are known to disagree about."""
  fixed = [
      "", " ", "  ", "   a", "\n", "\n\n", " \n ", "\t", "\r\n", "a\n\nb", "  \n\t x", "\u00a0",
      "\u3000", "\u200b", "\ufeff", "Hello world", " Hello  world ", "HELLO", "don't", "DON'T",
      "we'll've", "it’s", "0", "42", "123456789", "3.14159", "1,000,000", "1e-5", "0x1F", "٣٤٥",
      "½", "x²", "Ⅷ", "naïve café", "nai\u0308ve cafe\u0301", "Straße", "İstanbul", "Ünïcödé",
      "日本語のテキスト", "中文，标点。", "한국어 문장", "Русский текст", "العربية", "עברית", "हिन्दी",
      "ไทย", "ქართული", "Ελληνικά", "🙂", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "👍🏽", "a🙂b",
      "∀x∈ℝ", "→ ← ↔", "𝔘𝔫𝔦", "\x00", "\x7f", "\x1b[0m", "\U0010ffff",
      "#include <stdio.h>", "for (int i = 0; i < n; ++i) {}",
      "def f(x):\n    return x ** 2\n", "\tif a:\n\t\tb()\n", "SELECT * FROM t WHERE a='b';",
      "<div class=\"x\">&amp;</div>", "https://example.org/?q=1&r=2#z", "user@example.org",
      "{\"a\": [1, 2, null]}", "\\frac{1}{2}", "a_b_c", "camelCaseName", "snake_case_name",
      "CONSTANT_NAME", "--flag=value", "$HOME/.bashrc", "C:\\Users\\x", "!!!", "...", "?!?!", "—–-",
      "“quoted” ‘text’", "(((nested)))", "a+b=c", "<|im_start|>", "<|im_end|>", "<|endoftext|>",
      "<|im_start|>user\nhi<|im_end|>\n", "x<|im_end|>y", " <|im_end|> ", "<|im_end", "<|unknown|>",
      "<|im_start|><|im_start|>", "<repo_name>", "<file_sep>a", "<jupyter_start>", "Ġ", "Ċ", "ĠĠ",
      "supercalifragilisticexpialidocious", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ab" * 40,
      "\n" * 20,
      " " * 33, "-" * 50, "word " * 10,
  ]
  pieces = [text for text in fixed if text and len(text) < 40]
  rng = np.random.default_rng(0)
  while len(fixed) < 200:
    fixed.append("".join(rng.choice(pieces, rng.integers(2, 7))))
  return fixed


def write_tokens(source: Path, out: Path):
  """Token ids, and the pieces that Qwen2's own pre-tokenizer cuts texts into."""
  strings = varied_strings()
  smollm2 = transformers.PreTrainedTokenizerFast(tokenizer_object=smollm2_tokenizer(source))
  qwen2 = transformers.Qwen2Tokenizer().backend_tokenizer
  golden = {
      "versions": versions(),
      "strings": strings,
      "smollm2_ids": [smollm2(s, add_special_tokens=False)["input_ids"] for s in strings],
      "qwen2_pieces": [
          [piece for piece, _ in qwen2.pre_tokenizer.pre_tokenize_str(
              qwen2.normalizer.normalize_str(s))] for s in strings],
  }
  (out / "tokens.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")))


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("gguf", type=Path, help="SmolLM2-135M-Instruct.Q4_1.gguf")
  parser.add_argument("out", type=Path, help="tests/loading/goldens")
  args = parser.parse_args()
  args.out.mkdir(parents=True, exist_ok=True)
  write_tiny(args.out)
  write_tokens(args.gguf, args.out)
  write_smollm2(args.gguf, args.out)


if __name__ == "__main__":
  main()
