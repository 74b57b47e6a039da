"""The tokenizer of a Hugging Face directory: tokenizer.json and what is said around it."""

from pathlib import Path
from typing import Any

import tokenizers

from specjax.loading.error import LoadError
from specjax.loading.hf_directory import read_json, read_json_if_present
from specjax.loading.tokenizer import Tokenizer

_TEMPLATE_FILE = "chat_template.jinja"
_MAX_TEMPLATE = 1 << 20  # bytes


def _backend(path: Path) -> tokenizers.Tokenizer:
  read_json(path)  # for its checks of size and form
  try:
    backend = tokenizers.Tokenizer.from_file(str(path))
  except Exception as error:  # The bindings raise plain Exception.
    raise LoadError(f"{path}: not a usable tokenizer: {error}.") from error
  # Files saved during training may cut or pad every text.
  backend.no_truncation()
  backend.no_padding()
  return backend


def _template(directory: Path, settings: dict[str, Any]) -> str | None:
  """The chat template: a file of its own, a string, or the default among named ones."""
  path = directory / _TEMPLATE_FILE
  if path.exists():
    try:
      if path.stat().st_size > _MAX_TEMPLATE:
        raise LoadError(f"{path}: {path.stat().st_size} bytes is too large for a chat template.")
      return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
      raise LoadError(f"{path}: cannot be read: {error}.") from error
  template = settings.get("chat_template")
  if isinstance(template, list):
    named = {x.get("name"): x.get("template") for x in template if isinstance(x, dict)}
    template = named.get("default")
  if template is not None and not isinstance(template, str):
    raise LoadError(
        f"{directory}: chat_template in tokenizer_config.json should be a string or a list of "
        f"named strings, found a {type(template).__name__}.")
  return template


def _strings(settings: dict[str, Any]) -> dict[str, str]:
  """The special tokens that templates may name, each a string or an object with `content`."""
  strings = {}
  for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
    value = settings.get(name)
    value = value.get("content") if isinstance(value, dict) else value
    if isinstance(value, str):
      strings[name] = value
  return strings


def _eos_ids(directory: Path, backend, strings: dict[str, str]) -> tuple[int, ...]:
  """From generation_config.json, else config.json, else the tokenizer's own end token."""
  for name in ("generation_config.json", "config.json"):
    ids = read_json_if_present(directory / name).get("eos_token_id")
    if ids is None:
      continue
    ids = ids if isinstance(ids, list) else [ids]
    if not all(type(i) is int and i >= 0 for i in ids):
      raise LoadError(
          f"{directory / name}: eos_token_id should be an id or a list of ids, found "
          f"{str(ids)[:80]}.")
    return tuple(ids)
  end = backend.token_to_id(strings["eos_token"]) if "eos_token" in strings else None
  return () if end is None else (end,)


def _bos_id(backend, settings: dict[str, Any], strings: dict[str, str]) -> int | None:
  """The start token if raw prompts get one, by the settings or by what the tokenizer adds."""
  if "bos_token" not in strings:
    return None
  bos = backend.token_to_id(strings["bos_token"])
  adds = settings.get("add_bos_token")
  if not isinstance(adds, bool):
    adds = backend.encode("", add_special_tokens=True).ids[:1] == [bos]
  return bos if adds else None


def tokenizer(directory: Path) -> Tokenizer | None:
  """The tokenizer of a directory; None if it has no tokenizer.json (older formats are not read).

  Raises:
    LoadError: a file is damaged.
  """
  path = directory / "tokenizer.json"
  if not path.exists():
    return None
  backend = _backend(path)
  settings = read_json_if_present(directory / "tokenizer_config.json")
  strings = _strings(settings)
  return Tokenizer(
      backend=backend,
      eos_ids=_eos_ids(directory, backend, strings),
      bos_id=_bos_id(backend, settings, strings),
      chat_template=_template(directory, settings),
      template_strings=strings,
      source=str(directory))
