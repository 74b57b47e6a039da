"""Tokenizers rebuilt from GGUF metadata, and what every tokenizer promises."""

import pytest

from specjax.loading import bpe, gguf_file, gguf_tokenizer, LoadError
from tests.loading import samples


def of(**changes):
  """The tokenizer of sample metadata with some keys changed; None leaves a key out."""
  keys = {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
  metadata = {k: v for k, v in (samples.tokenizer_metadata() | keys).items() if v is not None}
  return gguf_tokenizer.tokenizer(gguf_file.File("m.gguf", metadata, {}))


def pieces(name: str, text: str) -> list[str]:
  cut = bpe.FAMILIES[name].cut()
  return [text[a:b] for _, (a, b) in cut.pre_tokenize_str(text)]


TEXT = "don't DON'T 1234567 a  b\n\n\tx !?"
START = ["don", "'t", " DON"]
END = [" a", " ", " b", "\n\n", "\t", "x", " !?"]
MODERN_END = [" a", " ", " b", "\n\n", "\tx", " !?"]


@pytest.mark.parametrize("name, expected", [
    ("gpt-2", [*START, "'", "T", " 1234567", *END]),
    ("smollm", [*START, "'", "T", " ", *"1234567", *END]),
    ("llama-bpe", [*START, "'T", " ", "123", "456", "7", *MODERN_END]),
    ("qwen2", [*START, "'T", " ", *"1234567", *MODERN_END]),
])
def test_families_cut_texts_in_their_own_way(name, expected):
  assert pieces(name, TEXT) == expected


def test_whole_words_come_before_merges_in_llama3_only():
  tokens = [*samples.TOKENS, "hen"]
  types = [*samples.TYPES, 1]
  whole = of(tokens=tokens, token_type=types, pre="llama-bpe")
  merged = of(tokens=tokens, token_type=types, pre="gpt-2")
  assert whole.encode("hen") == [len(tokens) - 1]
  assert len(merged.encode("hen")) == 3


def test_composed_and_decomposed_letters_are_one_in_qwen2_only():
  qwen2, gpt2 = of(pre="qwen2"), of(pre="gpt-2")
  assert qwen2.backend.normalizer.normalize_str("e\u0301") == "\u00e9"
  assert gpt2.backend.normalizer is None


def test_special_and_added_tokens_are_matched_whole():
  tokenizer = of()
  ids = tokenizer.encode("<s>the<tool></s>")
  assert ids == [1, samples.TOKENS.index("the"), samples.TOKENS.index("<tool>"), 2]
  assert tokenizer.decode(ids) == "<s>the<tool></s>"
  assert tokenizer.decode(ids, skip_special_tokens=True) == "the<tool>"


@pytest.mark.parametrize("text", ["the an hello", " the\n", "", "a1234b"])
def test_decoding_undoes_encoding(text):
  tokenizer = of()
  assert tokenizer.decode(tokenizer.encode(text)) == text


def test_every_character_survives_that_the_default_vocabulary_has_bytes_for(default_model):
  tokenizer = default_model.tokenizer
  absent = "\x04\x06\x13\x14\x16\x1d"
  latin = "".join(chr(i) for i in range(0x3000) if chr(i) not in absent)
  for text in ("grüße 日本語 🙂 👩‍👩‍👧‍👦 \x00\x7f\ufeff\U0010ffff", "\r\n\t  x", latin):
    assert tokenizer.decode(tokenizer.encode(text)) == text
  assert tokenizer.encode(absent) == []


def test_a_character_may_be_spread_over_tokens(default_model):
  tokenizer = default_model.tokenizer
  ids = tokenizer.encode("𝔘")
  assert len(ids) > 1
  assert "\ufffd" in tokenizer.decode(ids[:1]) and tokenizer.decode(ids) == "𝔘"


BYTES = [f"<0x{i:02X}>" for i in range(256)]
PIECES = ["<unk>", "<s>", "</s>", *BYTES, "▁", "t", "h", "e", "n", "th", "the", "he", "hen", "▁the"]


def sentencepiece(**changes):
  """A sentencepiece tokenizer in which a later piece scores less, as in every real one."""
  scores = [0.0] * 259 + [-float(i) for i in range(len(PIECES) - 259)]
  types = [2, 3, 3] + [6] * 256 + [1] * (len(PIECES) - 259)
  return of(**({"model": "llama", "tokens": PIECES, "scores": scores, "token_type": types,
               "merges": None, "add_bos_token": None, "unknown_token_id": 0} | changes))


@pytest.mark.parametrize("text, pieces", [
    ("the", ["▁the"]),
    ("hen", ["▁", "hen"]),
    ("then the", ["▁the", "n", "▁the"]),  # "th" scores more than "he", so "hen" never forms
    ("tü", ["▁", "t", "<0xC3>", "<0xBC>"]),
    ("</s>the", ["</s>", "▁the"]),
    ("", []),
])
def test_sentencepiece_merges_the_best_score_first(text, pieces):
  tokenizer = sentencepiece()
  assert tokenizer.encode(text) == [PIECES.index(piece) for piece in pieces]
  assert tokenizer.decode(tokenizer.encode(text)).replace("</s> ", "</s>") == text


def test_sentencepiece_may_do_without_the_leading_space():
  tokenizer = sentencepiece(add_space_prefix=False)
  assert tokenizer.encode("the") == [PIECES.index("the")]
  assert tokenizer.decode(tokenizer.encode(" the")) == " the"


def test_sentencepiece_prompts_start_with_bos_unless_told():
  assert sentencepiece().bos_id == 1 and sentencepiece(add_bos_token=False).bos_id is None


def test_what_cannot_be_text_or_a_token_is_refused():
  tokenizer = of()
  for text in ("\ud800", None, 5, b"x"):
    with pytest.raises(ValueError, match="valid Unicode text"):
      tokenizer.encode(text)
  with pytest.raises(ValueError, match="not negative, got -1"):
    tokenizer.decode([1, -1])


def test_ids_of_starts_and_ends():
  assert (of().bos_id, of().eos_ids, of().vocab_size) == (1, (2,), len(samples.TOKENS))
  assert of(add_bos_token=False).bos_id is None
  assert of(add_bos_token=None).bos_id is None
  assert of(add_bos_token=None, pre="llama-bpe").bos_id == 1
  assert of(eot_token_id=0, eom_token_id=2).eos_ids == (2, 0)
  assert of(eos_token_id=None).eos_ids == ()


def test_templates_see_the_special_tokens():
  metadata = samples.tokenizer_metadata()
  metadata["tokenizer.chat_template"] = "{{ bos_token }}{{ eos_token }}"
  tokenizer = gguf_tokenizer.tokenizer(gguf_file.File("m.gguf", metadata, {}))
  assert tokenizer.apply_chat_template([{"role": "user", "content": ""}]) == "<s></s>"


def test_the_default_model_has_its_conversation_format(default_model):
  text = default_model.tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}])
  assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
  assert default_model.tokenizer.encode(text)[0] == 1
  assert default_model.tokenizer.eos_ids == (2,) and default_model.tokenizer.bos_id is None


@pytest.mark.parametrize("changes, problem", [
    ({"model": "bert"}, "tokenizer model 'bert' is not supported"),
    ({"model": None}, "tokenizer model None is not supported"),
    ({"pre": "tekken"}, "pre-tokenizer 'tekken' is not known; expected one of default"),
    ({"pre": None}, "pre-tokenizer None is not known"),
    ({"pre": 5}, "pre should be of type str"),
    ({"tokens": None}, "tokens should be a list of type str"),
    ({"tokens": []}, "tokens should be a list of type str"),
    ({"tokens": [1, 2]}, "tokens should be a list of type str"),
    ({"tokens": samples.TOKENS[:-1] + ["a"]}, "1 of 49 tokens are duplicates"),
    ({"tokens": samples.TOKENS[:-1] + ["a" * 5000]}, "a token has 5000 characters"),
    ({"model": "llama"}, "scores should be a list of type float"),
    ({"model": "llama", "scores": [0.0]}, "scores should have 49 entries, found 1"),
    ({"model": "llama", "scores": [float("nan")] * 49}, "scores should be finite"),
    ({"merges": None}, "merges should be a list of type str"),
    ({"merges": ["th x"]}, "merges do not fit"),
    ({"merges": ["th"]}, "merges do not fit"),
    ({"token_type": None}, "token_type should be a list of type int"),
    ({"token_type": [1]}, "token_type should have 49 entries, found 1"),
    ({"eos_token_id": 49}, "eos_token_id is 49, but there are 49 tokens"),
    ({"eos_token_id": "2"}, "eos_token_id should be of type int"),
    ({"add_bos_token": 1}, "add_bos_token should be of type bool"),
])
def test_metadata_that_does_not_fit_is_refused(changes, problem):
  with pytest.raises(LoadError, match=problem) as caught:
    of(**changes)
  assert "m.gguf" in str(caught.value) and "\n" not in str(caught.value)
