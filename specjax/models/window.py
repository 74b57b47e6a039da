"""The slots behind the text that a pass uses, for every kind of target (`types.ForwardFn`)."""

from specjax.types import Array, Error


def slots(tokens: Array, depths: Array | None, mask: Array | None, capacity: int) -> int:
  """W, the slots behind the text that are in use once the T new tokens have taken the last of them.

  Args:
    tokens: int32[B, T].
    depths: int32[B, T] or None.
    mask: bool[B, T, W] with W >= T, or None for W = T.
    capacity: slots of the cache.

  Raises:
    Error: depths or a mask of another shape or type; more slots than the cache has.
  """
  batch, width = tokens.shape
  if depths is not None and depths.shape != tokens.shape:
    raise Error(
        f"The depths of a pass over tokens of shape {(batch, width)} must have the same shape, "
        f"got {depths.shape}.")
  if mask is not None and not _fits(mask, batch, width):
    raise Error(
        f"The mask of a pass over tokens of shape {(batch, width)} must be bool[{batch}, {width}, "
        f"W] with W >= {width} slots behind the text, got {mask.dtype}{list(mask.shape)}.")
  taken = width if mask is None else mask.shape[2]
  if taken > capacity:
    earlier = f" behind {taken - width} earlier nodes" if taken > width else ""
    raise Error(f"{width} new tokens{earlier} do not fit a cache of {capacity} slots.")
  return taken


def _fits(mask: Array, batch: int, width: int) -> bool:
  return (mask.ndim == 3 and mask.shape[:2] == (batch, width) and mask.shape[2] >= width
          and mask.dtype == bool)
