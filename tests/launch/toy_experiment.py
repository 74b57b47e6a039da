"""An experiment that does what --what says."""

from absl import flags

from specjax.launch import app
from specjax.types import Error

_WHAT = flags.DEFINE_enum(
    "what", "result",
    ["result", "failure", "mistake", "bug", "bug of ours", "bug of jax", "interrupt", "talk"],
    "to do")


def main(_):
  if _WHAT.value == "mistake":
    raise Error("this is\n  not how it is done")
  if _WHAT.value == "bug":
    return {}["absent"]
  if _WHAT.value == "bug of ours":
    raise ValueError("the arithmetic of the library is wrong")
  if _WHAT.value == "bug of jax":
    import jax.numpy as jnp
    return jnp.zeros(3).reshape(2, 2)
  if _WHAT.value == "interrupt":
    raise KeyboardInterrupt
  while _WHAT.value == "talk":
    print("words without end")
  print("words for people")
  app.emit("toy", dict(number=float("nan"), text="é\n"))
  return 1 if _WHAT.value == "failure" else 0


if __name__ == "__main__":
  app.run(main)
