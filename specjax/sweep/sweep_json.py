"""`sweep.json`: what the results of a folder have in common, so that no others get among them."""

import pathlib

from specjax.launch import strict_json
from specjax.measure.replay import changed
from specjax.sweep import results
from specjax.sweep.plan import Plan
from specjax.types import Error

NAME = "sweep.json"
_MAX_FILE_BYTES = 2**26
# Of a manifest: what differs between commands of one sweep, or is compared by itself.
_OF_COMMANDS = ("command", "seed", "config", "config_sha256", "models")


def check(folder: pathlib.Path, plan: Plan) -> None:
  """Refuses a folder with results that do not belong to `plan`; touches nothing.

  More values of an axis are welcome: their cells are other cells. What all cells share, the names
  of the axes and the contents of the prompt sets must be the same.

  Raises:
    Error: says what differs.
  """
  old = _load(folder)
  if old is None:
    return
  differences = changed(old["base"], strict_json.plain(plan.base))
  common = [name for name in plan.prompts if name in old["prompts"]]
  differences |= changed(
      {f"prompts {name}": old["prompts"][name] for name in common},
      {f"prompts {name}": plan.prompts[name] for name in common})
  if set(old["axes"]) != set(plan.axes):
    differences["axes"] = [", ".join(old["axes"]), ", ".join(plan.axes)]
  if differences:
    listed = "; ".join(f"{name}: {before!r} there, {now!r} now"
                       for name, (before, now) in differences.items())
    raise Error(
        f"{folder} holds the results of another sweep ({listed}). Choose another --out, or give "
        "the flags that it was made with; they are in its sweep.json")


def write(folder: pathlib.Path, plan: Plan, manifest: dict) -> dict:
  """Writes `sweep.json`, or adds the axes, prompts and models of `plan` to one that is there.

  Returns:
    Settings that are not those under which the folder was begun: {name: [then, now]}.

  Raises:
    Error: a model has other weights than when the folder was begun.
  """
  new = strict_json.plain(
      dict(manifest=manifest, base=plan.base, axes=plan.axes, prompts=plan.prompts))
  old = _load(folder)
  if old is None:
    strict_json.write(folder / NAME, new, indent=1)
    return {}
  then, now = old["manifest"]["models"], new["manifest"]["models"]
  for path in then.keys() & now.keys():
    if then[path] != now[path]:
      raise Error(
          f"{folder} holds the results of other weights: {path!r} had the sha256 {then[path]} when "
          f"it was begun, and has {now[path]} now. Choose another --out")
  merged = dict(
      old, prompts=old["prompts"] | new["prompts"],
      manifest=dict(old["manifest"], models=then | now),
      axes={axis: _union(old["axes"][axis], new["axes"][axis]) for axis in new["axes"]})
  if merged != old:
    strict_json.write(folder / NAME, merged, indent=1)
  return changed(*(
      {key: value for key, value in manifest.items() if key not in _OF_COMMANDS}
      for manifest in (old["manifest"], new["manifest"])))


def _union(old: list, new: list) -> list:
  return old + [value for value in new if value not in old]


def _load(folder: pathlib.Path) -> dict | None:
  """What a folder's `sweep.json` says; None if the folder is fresh."""
  path = folder / NAME
  if not path.exists():
    if results.files(folder):
      raise Error(
          f"{folder} holds results but no {NAME}, so nothing tells which sweep they are from: "
          "choose another --out")
    return None
  if path.stat().st_size > _MAX_FILE_BYTES:
    raise Error(f"{path} has more than {_MAX_FILE_BYTES} bytes")
  try:
    found = strict_json.loads(path.read_bytes())
    parts = [found[key] for key in ("base", "axes", "prompts", "manifest")]
    if not all(isinstance(part, dict) for part in (*parts, found["manifest"]["models"])):
      raise TypeError("an object is missing")
    if not all(isinstance(values, list) for values in found["axes"].values()):
      raise TypeError("an axis is no list")
  except (ValueError, KeyError, TypeError) as error:
    raise Error(
        f"{path} does not describe a sweep ({type(error).__name__}: {error}), so choose another "
        "--out") from error
  return found
