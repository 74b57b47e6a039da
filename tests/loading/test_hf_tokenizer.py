"""Tokenizers of Hugging Face directories and what is said around them."""

import json

import pytest
import tokenizers

from specjax.loading import hf_tokenizer, LoadError
from tests.loading import samples

MESSAGES = [{"role": "user", "content": "hello"}]


def of(directory):
  return hf_tokenizer.tokenizer(directory)


@pytest.fixture
def directory(tmp_path):
  return samples.copy_directory("llama", tmp_path)


def write(path, **values):
  path.write_text(json.dumps(values))


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_the_template_is_found_wherever_it_is(name):
  """In tokenizer_config.json as a string, there in a list, and in a file of its own."""
  text = of(samples.GOLDENS / name).apply_chat_template(MESSAGES)
  assert text == "<s>[user] hello\n[assistant] "
  text = of(samples.GOLDENS / name).apply_chat_template(MESSAGES, add_generation_prompt=False)
  assert text == "<s>[user] hello\n"


def test_the_file_wins_over_the_setting(directory):
  (directory / "chat_template.jinja").write_text("{{ messages[0]['content'] }}!")
  assert of(directory).apply_chat_template(MESSAGES) == "hello!"


def test_no_template_is_an_error_only_when_it_is_needed():
  tokenizer = of(samples.GOLDENS / "mistral")
  with pytest.raises(LoadError, match="no chat template; give a raw prompt"):
    tokenizer.apply_chat_template(MESSAGES)


@pytest.mark.parametrize("template", [5, {"a": "b"}, [{"name": "default", "template": 5}]])
def test_a_template_of_another_form_is_refused(directory, template):
  write(directory / "tokenizer_config.json", chat_template=template)
  with pytest.raises(LoadError, match="chat_template in tokenizer_config.json"):
    of(directory)


def test_a_template_file_without_end_is_not_read(directory):
  with open(directory / "chat_template.jinja", "wb") as file:
    file.truncate(1 << 21)
  with pytest.raises(LoadError, match="too large for a chat template"):
    of(directory)


def test_ends_come_from_the_first_file_that_names_them(directory):
  assert of(directory).eos_ids == (2,)
  write(directory / "generation_config.json", eos_token_id=[5, 2])
  assert of(directory).eos_ids == (5, 2)
  write(directory / "generation_config.json")
  config = json.loads((directory / "config.json").read_text())
  write(directory / "config.json", **(config | {"eos_token_id": 7}))
  assert of(directory).eos_ids == (7,)
  write(directory / "config.json")
  assert of(directory).eos_ids == (2,)
  write(directory / "tokenizer_config.json")
  assert of(directory).eos_ids == ()


@pytest.mark.parametrize("ids", ["2", [2, "3"], -1, True, [[2]]])
def test_ends_of_another_form_are_refused(directory, ids):
  write(directory / "generation_config.json", eos_token_id=ids)
  with pytest.raises(LoadError, match="eos_token_id should be"):
    of(directory)


def test_a_start_token_is_reported_where_raw_prompts_get_one(directory):
  assert of(directory).bos_id == 1  # the post-processor adds it
  assert of(samples.GOLDENS / "qwen2").bos_id is None  # the settings say that it is not added
  backend = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
  backend.post_processor = tokenizers.processors.ByteLevel()
  backend.save(str(directory / "tokenizer.json"))
  assert of(directory).bos_id is None
  write(directory / "tokenizer_config.json", bos_token="<s>", add_bos_token=True)
  assert of(directory).bos_id == 1


def test_encoding_adds_nothing_and_knows_special_tokens(directory):
  tokenizer = of(directory)
  assert tokenizer.encode("") == [] and tokenizer.encode("<s>the</s>") == [1, 52, 2]


def test_cutting_and_padding_saved_in_the_file_are_ignored(directory):
  backend = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
  plain = of(directory).encode("hello the hen")
  backend.enable_truncation(2)
  backend.enable_padding(length=50)
  backend.save(str(directory / "tokenizer.json"))
  assert of(directory).encode("hello the hen") == plain and len(plain) > 2


@pytest.mark.parametrize("content", ["{}", '{"model": {"type": "BPE", "vocab": 5}}'])
def test_a_damaged_tokenizer_is_refused(directory, content):
  (directory / "tokenizer.json").write_text(content)
  with pytest.raises(LoadError, match="tokenizer.json: not a usable tokenizer"):
    of(directory)
