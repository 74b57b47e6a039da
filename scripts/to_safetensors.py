"""Rewrites the pickled weights of a published drafter as model.safetensors beside them.

    python scripts/to_safetensors.py DIR/pytorch_model.bin

A pickle is a program, so specjax reads none. This reads the file with torch's weights-only loader,
which builds tensors and runs nothing else. It needs torch: pip install '.[peers]'.
"""

import argparse
from pathlib import Path
import sys

import safetensors.torch
import torch


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("file", type=Path, help="pytorch_model.bin, medusa_lm_head.pt, ...")
  source = parser.parse_args().file
  result = source.with_name("model.safetensors")
  if result.exists():
    sys.exit(f"{result} is there already.")
  weights = torch.load(source, map_location="cpu", weights_only=True)
  # Tensors that share storage are refused by the format, and slices would carry all of it.
  safetensors.torch.save_file({name: x.contiguous().clone() for name, x in weights.items()}, result)
  print(f"wrote {result}: {len(weights)} tensors")


if __name__ == "__main__":
  main()
