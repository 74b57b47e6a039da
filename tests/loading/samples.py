"""Small GGUF files and model directories to load, and to damage."""

import shutil
from pathlib import Path

import gguf
import numpy as np

from specjax.loading import gguf_model, hf_directory

GOLDENS = Path(__file__).parent / "goldens"
LETTERS = "abcdefghijklmnopqrstuvwxyzĠĊ0123456789.,!"
MERGES = ["t h", "th e", "Ġ the", "a n"]
TOKENS = ["<unk>", "<s>", "</s>", *LETTERS, "th", "the", "Ġthe", "an", "<tool>"]
TYPES = [3, 3, 3] + [1] * (len(TOKENS) - 4) + [4]

_GGUF_NAMES = {hf: name for names in (gguf_model._TOP_NAMES, gguf_model._LAYER_NAMES)
               for name, hf in names.items()}


def tokenizer_metadata() -> dict:
  """Metadata of a byte-level tokenizer that fits the golden models' 64 rows."""
  return {
      "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm",
      "tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.token_type": TYPES,
      "tokenizer.ggml.merges": MERGES, "tokenizer.ggml.bos_token_id": 1,
      "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.add_bos_token": True,
      "tokenizer.chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
  }


def model_metadata(architecture: str, **changes) -> dict:
  """Metadata of the golden models, by the last part of each key; None leaves a key out."""
  values = {
      "block_count": 2, "context_length": 256, "embedding_length": 32, "feed_forward_length": 48,
      "attention.head_count": 4, "attention.head_count_kv": 2, "rope.freq_base": 10000.0,
      "attention.layer_norm_rms_epsilon": 1e-6,
  } | changes
  return {f"{architecture}.{key}": x for key, x in values.items() if x is not None}


def _permuted(rows: np.ndarray, heads: int) -> np.ndarray:
  """The row order of llama files: the two coordinates of a rotated plane side by side."""
  per_head = rows.reshape(heads, 2, -1, *rows.shape[1:])
  return np.concatenate([x.transpose(1, 0, *range(2, x.ndim)).reshape(-1, *rows.shape[1:])
                         for x in per_head])


def golden_arrays(name: str, permute: bool = False) -> dict[str, np.ndarray]:
  """The tensors of a golden directory in float32, under GGUF names."""
  arrays = {}
  for hf_name, tensor in hf_directory.tensors(hf_directory.shards(GOLDENS / name)).items():
    array = tensor.read().astype(np.float32)
    if permute and (".q_proj." in hf_name or ".k_proj." in hf_name):
      array = _permuted(array, 4 if ".q_proj." in hf_name else 2)
    parts = hf_name.removeprefix("model.layers.").split(".")
    if hf_name.startswith("model.layers."):
      arrays[f"blk.{parts[0]}.{_GGUF_NAMES['.'.join(parts[1:-1])]}.{parts[-1]}"] = array
    else:
      arrays[f"{_GGUF_NAMES['.'.join(parts[:-1])]}.{parts[-1]}"] = array
  return arrays


def write_gguf(path: Path, architecture: str, metadata: dict, arrays: dict,
               kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32) -> Path:
  """Writes a GGUF file; matrices are stored as `kind`, vectors as float32."""
  writer = gguf.GGUFWriter(path, architecture)
  for key, value in metadata.items():
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32,
           str: writer.add_string, list: writer.add_array}[type(value)]
    add(key, value)
  for name, array in arrays.items():
    stored = kind if array.ndim == 2 else gguf.GGMLQuantizationType.F32
    writer.add_tensor(name, gguf.quantize(array, stored), raw_dtype=stored)
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()
  return path


def write_qwen2(path: Path, **changes) -> Path:
  """The golden Qwen2 model as a GGUF file."""
  metadata = model_metadata("qwen2", **changes) | tokenizer_metadata()
  return write_gguf(path, "qwen2", metadata, golden_arrays("qwen2"))


def copy_directory(name: str, destination: Path) -> Path:
  """A golden directory that a test may damage."""
  return Path(shutil.copytree(GOLDENS / name, destination / name))
