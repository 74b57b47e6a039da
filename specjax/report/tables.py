"""The tables of a report: every cell, the categories of prompts, the rows that failed."""

from typing import Any

from specjax.report import cells as cells_lib, figures, parts
from specjax.report.cells import Cell
from specjax.report.document import Table
from specjax.report.rows import Failure, text

_QUANTITIES = {  # (cell, category) -> its estimate
    "speed-up": Cell.speedup_of, "tau": lambda c, category: parts.tau(c.parts.of(category)),
    "alpha": lambda c, category: parts.alpha(c.parts.of(category))}
_OVERALL = {"speed-up": "speedup", "tau": "tau", "alpha": "alpha"}


def overview(cells: list[Cell]) -> Table:
  """One row for each cell; axes that are the same for all and speeds none has are left out."""
  names, timed = _varying(cells), any(c.timed for c in cells)
  seeds = [] if all(c.seeds == 1 for c in cells) else ["seeds"]
  head = [*names, *seeds, "prompts" if "prompts" not in names else "answers",
          *(["speed-up", "(macro)", "predicted"] if timed else []), "tau", "(macro)", "alpha",
          "(macro)", *(["tokens/s", "plain"] if timed else []), "identical"]
  rows = [[
      *_setting(c, names), *([c.seeds] if seeds else []), len(c.parts.tokens),
      *([c.speedup, c.speedup.macro, c.predicted] if timed else []),
      c.tau, c.tau.macro, c.alpha, c.alpha.macro,
      *([c.rate.value, c.baseline_rate] if c.timed else [None, None] if timed else []),
      c.identical] for c in cells]
  return Table(head, rows)


def by_category(cells: list[Cell]) -> dict[str, Table]:
  """Quantity -> the best gamma of each setting, with a column for each category, as Spec-Bench.

  Empty if there is one category alone. For the cells of all gammas see `category_numbers`.
  """
  categories = _categories(cells)
  if len(categories) < 2:
    return {}
  groups = figures.grouped(
      [c for c in cells if c.gamma], lambda c: (c.method, c.temperature, c.batch_size))
  best = [cells_lib.best(group) for _, group in groups]
  names = list(dict.fromkeys([*_varying(cells), "gamma"]))
  head = [*names, *(category or "(none)" for category in categories), "overall"]
  return {
      name: Table(head, [
          [*_setting(c, names), *(quantity(c, category) for category in categories),
           getattr(c, _OVERALL[name])] for c in best])
      for name, quantity in _quantities(cells).items()}


def category_numbers(cells: list[Cell]) -> list[dict[str, Any]]:
  """Every number of every category in long form."""
  return [
      c.axes | {"category": category, "prompts": prompts, "quantity": name}
      | dict(zip(("value", "low", "high", "macro"), quantity(c, category)))
      for c in cells for category in _categories(cells)
      if (prompts := len(c.parts.of(category).tokens))
      for name, quantity in _quantities(cells).items()]


def failed(failures: list[Failure]) -> Table:
  """The rows without numbers and what went wrong."""
  rows = []
  for failure in failures:
    setting = ", ".join(f"{name}={text(value)}" for name, value in failure.axes.items())
    rows.append([_cut(failure.name, 80), _cut(setting, 300), _cut(failure.error, 600)])
  return Table(["id", "setting", "error"], rows)


def _quantities(cells: list[Cell]) -> dict:
  """Those that some cell has."""
  timed = any(c.timed for c in cells)
  return {name: of for name, of in _QUANTITIES.items() if timed or name != "speed-up"}


def _categories(cells: list[Cell]) -> list[str]:
  return list(dict.fromkeys(category for c in cells for category in c.parts.category.tolist()))


def _varying(cells: list[Cell]) -> list[str]:
  same = cells_lib.constant(cells)
  return [name for name in dict.fromkeys(n for c in cells for n in c.axes) if name not in same]


def _setting(cell: Cell, names: list[str]) -> list:
  values = (cell.axes.get(name) for name in names)
  return [v if v is None or isinstance(v, int) else text(v) for v in values]


def _cut(value: str, most: int) -> str:
  return value if len(value) <= most else value[:most] + " ..."
