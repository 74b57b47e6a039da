"""Recomputes published numbers and says which of them agree.

    python -m experiments.reproduce [--paper=leviathan2023] [--json] [--out=DIR]

Every value of ours is computed at the time of the run: by formulas, by exact enumeration of the
rules that decoding uses, by seeded draws through them, or by counting on the decoder. Takes below
two minutes on two cores and needs no model; numbers of large models are listed with the command
that would measure them, and never count as reproduced. Writes reproduce.md and reproduce.json into
--out.
"""

import collections
import os
import pathlib
import sys
from concurrent import futures

import tqdm
from absl import flags

from experiments.papers import claim as claims_lib, PAPERS
from specjax.launch import app, errors
from specjax.launch.text_table import text_table
from specjax.types import Error

_PAPER = flags.DEFINE_string("paper", None, f"one source only: {', '.join(PAPERS)}")

_LEGEND = """
- **value**: the published number. **origin** says what it is: printed by the paper; quoted from it
  by another text; unchecked (the paper's, but not compared with its text); derived (it follows from
  the paper's formula or algorithm); arithmetic (no source: arithmetic on the numbers in the row).
- **kind**: exact (a formula or an enumeration), simulated (seeded draws; the tolerance is 3 sigma,
  a false alarm for 1 seed in 370), measured here (counted on a run of the decoder), needs weights
  (large models: run the command; nothing is claimed here).
- **verdict**: reproduced if |ours - value| <= tolerance for every number of the row; direction only
  if the two are not comparable but have the same sign.
- Pairs of laws, target first, read after every prefix: AB (1/3, 2/3), (2/3, 1/3); P3 (.3, .4, .3),
  (.6, .3, .1); S3 (.7, .2, .1), (.2, .5, .3); R3 (.5, .3, .2), (.2, .3, .5).
- E[tau] counts accepted tokens without the extra one; tokens a pass and block efficiency with it.
"""


def select(name: str | None) -> dict[str, claims_lib.Paper]:
  """The papers to check.

  Raises:
    Error: an unknown name.
  """
  if name is None:
    return PAPERS
  if name not in PAPERS:
    raise Error(f"--paper: there is no {name!r}{errors.nearest(name, PAPERS)}")
  return {name: PAPERS[name]}


def reproduce(papers: dict[str, claims_lib.Paper], seed: int) -> list[claims_lib.Row]:
  """The outcome of every claim, in order; `seed` is that of the simulated and measured ones."""
  def check(job):
    key, name, claim = job
    return claims_lib.check(name, claim, f"python -m experiments.reproduce --paper={key}", seed)

  jobs = [(key, paper.name, claim) for key, paper in papers.items() for claim in paper.claims]
  # Most of the time goes into compiling, which XLA does outside of Python's lock.
  with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    done = pool.map(check, jobs)
    return list(tqdm.tqdm(done, total=len(jobs), unit="claim", file=sys.stderr, disable=None))


def contradictions(papers: dict[str, claims_lib.Paper]) -> list[dict]:
  """What the papers state against themselves or each other, each with our finding."""
  return [dict(paper=paper.name, statement=each.statement, finding=each.finding())
          for paper in papers.values() for each in paper.contradictions]


def report(rows: list[claims_lib.Row], found: list[dict]) -> str:
  """All rows and the contradictions as Markdown."""
  columns = ("paper", "place", "quantity", "value", "origin", "ours", "difference", "tolerance",
             "kind", "verdict", "command")
  shown = []
  for row in rows:
    quantity = f"{row.quantity} ({row.note})" if row.note else row.quantity
    row = row._replace(quantity=quantity, command=f"`{row.command}`")
    shown.append([_text(getattr(row, column)) for column in columns])
  statements = [f"- {each['paper']}. {each['statement']} {each['finding']}" for each in found]
  return "\n".join([
      "# Published numbers, recomputed", "", summary(rows), _LEGEND, text_table(columns, shown),
      "", "## Contradictions", "", *statements]) + "\n"


def summary(rows: list[claims_lib.Row]) -> str:
  """One sentence with the count of each verdict."""
  counts = collections.Counter(row.verdict for row in rows)
  parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in claims_lib.VERDICTS)
  return f"{len(rows)} claims, sources: {len({row.paper for row in rows})}. {parts}."


def _print(rows, found):
  for row in rows:
    print(f"{row.verdict:14}  {row.paper}, {row.place}: {row.quantity}: {_text(row.value)} | ours "
          f"{_text(row.ours)} | difference {_text(row.difference)}")
  for each in found:
    print(f"contradiction   {each['paper']}: {each['statement']} {each['finding']}")
  print(summary(rows))


def _text(value) -> str:
  if isinstance(value, (tuple, list)):
    return ", ".join(map(_text, value))
  if isinstance(value, (int, float)):
    return f"{value:.6g}"
  return "-" if value is None else value


def main(_):
  papers = select(_PAPER.value)
  rows = reproduce(papers, app.SEED.value)
  found = contradictions(papers)
  _print(rows, found)
  if app.OUT.value is not None:
    path = pathlib.Path(app.OUT.value) / "reproduce.md"
    path.write_text(report(rows, found), encoding="utf-8")
  app.emit("reproduce", dict(
      summary=summary(rows), seed=app.SEED.value, claims=[row._asdict() for row in rows],
      contradictions=found))


if __name__ == "__main__":
  app.run(main)
