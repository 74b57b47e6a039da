"""Recomputes published numbers and says which of them agree.

    python -m experiments.reproduce [--paper=leviathan2023] [--json] [--out=DIR]

Every value of ours is computed at the time of the run: by formulas, by exact enumeration of the rules
that decoding uses, or by seeded simulation. Takes below two minutes on two cores and needs no model.
Writes reproduce.md and reproduce.json into --out.
"""

import collections
import pathlib
import sys

from absl import flags
import tqdm

from experiments.papers import PAPERS
from experiments.papers import claim as claims_lib
from specjax.launch import app

_PAPER = flags.DEFINE_string("paper", None, "one source only, by the name of its file")


def reproduce(papers, seed: int) -> list[claims_lib.Row]:
  """All rows of the papers, a dict like `PAPERS`."""
  todo = [(key, paper.name, claim) for key, paper in papers.items() for claim in paper.claims]
  rows = []
  for key, name, claim in tqdm.tqdm(todo, unit="claim", file=sys.stderr):
    command = f"python -m experiments.reproduce --paper={key}"
    rows.append(claims_lib.check(name, claim, command, seed))
  return rows


def contradictions(papers) -> list[dict]:
  """What the papers state against themselves or each other, with our finding."""
  return [dict(paper=paper.name, statement=each.statement, finding=each.finding())
          for paper in papers.values() for each in paper.contradictions]


def select(name: str | None):
  """The papers to check.

  Raises:
    ValueError: an unknown name.
  """
  if name is None:
    return PAPERS
  if name not in PAPERS:
    raise ValueError(f"--paper={name} is unknown; there is {', '.join(PAPERS)}.")
  return {name: PAPERS[name]}


def table(rows, found) -> str:
  """The report as Markdown."""
  lines = ["# Published numbers, recomputed", "", summary(rows), "",
           "| paper | place | quantity | value | origin | ours | difference | tolerance | kind | "
           "verdict | command |",
           "|" + "---|" * 11]
  for row in rows:
    note = f" ({row.note})" if row.note else ""
    cells = (row.paper, row.place, row.quantity + note, _number(row.value), row.origin,
             _number(row.ours), _number(row.difference), _number(row.tolerance), row.kind,
             row.verdict, f"`{row.command}`")
    lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
  lines += ["", "## Contradictions", ""]
  lines += [f"- **{each['paper']}**: {each['statement']} {each['finding']}" for each in found]
  return "\n".join(lines) + "\n"


def summary(rows) -> str:
  """One sentence with the count of each verdict."""
  counts = collections.Counter(row.verdict for row in rows)
  parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in claims_lib.VERDICTS)
  return f"{len(rows)} claims from {len({row.paper for row in rows})} sources: {parts}."


def _number(value) -> str:
  if value is None:
    return "-"
  if isinstance(value, (tuple, list)):
    return ", ".join(_number(item) for item in value)
  return f"{value:.6g}"


def _print(rows, found):
  for row in rows:
    print(f"{row.verdict:14} {row.paper}, {row.place}: {row.quantity}: {_number(row.value)}"
          f" | ours {_number(row.ours)} | difference {_number(row.difference)}")
  for each in found:
    print(f"contradiction  {each['paper']}: {each['statement']} {each['finding']}")
  print(summary(rows))


def main(_):
  papers = select(_PAPER.value)
  rows, found = reproduce(papers, app.SEED.value), contradictions(papers)
  if app.OUT.value is not None:
    (pathlib.Path(app.OUT.value) / "reproduce.md").write_text(table(rows, found), encoding="utf-8")
  _print(rows, found)
  app.emit("reproduce", dict(
      summary=summary(rows), claims=[row._asdict() for row in rows], contradictions=found))


if __name__ == "__main__":
  app.run(main)
