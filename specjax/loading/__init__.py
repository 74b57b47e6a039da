"""Model files: GGUF, Hugging Face directories, tokenizers, and the default model."""

from specjax.loading.default import default_model
from specjax.loading.drafter import load_drafter, LoadedDrafter
from specjax.loading.error import LoadError
from specjax.loading.model import check_same_vocabulary, load, Model
from specjax.loading.tokenizer import Tokenizer

__all__ = [
    "LoadError",
    "LoadedDrafter",
    "Model",
    "Tokenizer",
    "check_same_vocabulary",
    "default_model",
    "load",
    "load_drafter",
]
