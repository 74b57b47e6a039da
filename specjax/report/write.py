"""The report of a sweep: its rows as tables and figures, in Markdown and as one HTML page."""

import pathlib
import statistics

from specjax.launch.result import Outcome
from specjax.report import (
    by_batch, by_gamma, by_round, cells as cells_lib, figures, pairs, provenance, render,
    rows as rows_lib, tables)
from specjax.report.cells import Cell
from specjax.report.document import Document, Section, show, Table, Text
from specjax.report.rows import Failure
from specjax.stats import estimates

DEFINITIONS = {
    "tau": "tokens emitted / target passes. The extra token of a round counts, tokens after the "
           "end of the text do not. Ratio of sums over all prompts",
    "alpha": "drafted tokens accepted / tested. Positions behind the first rejection were never "
             "tested",
    "speed-up": "plain seconds per token / speculative seconds per token: one process, both ways "
                "in turn, compilation and the reading of the prompt excluded. The interval is a "
                "bootstrap over prompts",
    "c": "one draft step / one target pass over a single row, measured",
    "V(n)": "target pass over n rows / target pass over a single row, measured",
    "predicted": "tau / (V(N + 1) + s c) for N drafted tokens a round in s steps: both are gamma "
                 "for a chain, and s is the mean where drafts end early; gamma=auto also counts "
                 "the overhead of rounds",
    "(macro)": "the mean over prompts of the number before it, which is a ratio of sums",
    "(low-high)": "the 95 % interval, a bootstrap over prompts, where there are five or more; the "
                  "seeds of a prompt are added up first",
    "identical": "at temperature 0, or under a coupled rule, both ways must give the same tokens",
}
_FIGURES = (
    by_gamma.speedup, by_gamma.tau_alpha, by_round.acceptance, by_round.lengths, pairs.gumbel,
    pairs.predicted, by_batch.batch)
_OF_SPEED = ("speed-up", "c", "V(n)", "predicted")


def write(outcomes: list[Outcome], folder: pathlib.Path) -> None:
  """Writes report.md, report.html and figures/ into `folder`, over those of an earlier call.

  The same outcomes give the same text. Cells that failed are listed with their error; a figure that
  there are no numbers for is left out, and the report says why.

  Args:
    outcomes: of the cells of a sweep.
    folder: an existing folder; its sweep.json, if there is one, says what the rows came from.
  """
  folder = pathlib.Path(folder)
  readings, failures = rows_lib.read(outcomes)
  cells = cells_lib.pool(readings)
  sections = [_run(cells, failures, folder)]
  drawn, omitted = figures.write([make(cells) for make in _FIGURES], folder)
  if cells:
    sections += [_results(cells), *drawn, *_categories(cells, folder, omitted)]
    if omitted:
      sections.append(Section("Left out", [Text(line) for line in omitted]))
  if failures:
    sections.append(Section("Failed", [tables.failed(failures)]))
  document = Document("Report of a sweep", sections)
  pages = {"report.md": render.markdown(document), "report.html": render.html(document, folder)}
  for name, page in pages.items():
    (folder / name).write_text(page, encoding="utf-8", errors="replace")  # half surrogate pairs


def _run(cells: list[Cell], failures: list[Failure], folder: pathlib.Path) -> Section:
  """What was run, and what all of it has in common."""
  measured = f"{len(cells)} cell{'' if len(cells) == 1 else 's'} measured"
  lines = [f"{measured}; {len(failures)} failed."]
  if not cells:
    lines[0] += " There is nothing to show."
  same = {name: value for name, value in cells_lib.constant(cells).items() if value != ""}
  if same:
    lines.append("The same in all cells: " + ", ".join(
        f"{name} {value}" for name, value in same.items()) + ".")
  return Section("What was run", [*map(Text, lines), *provenance.blocks(folder)])


def _results(cells: list[Cell]) -> Section:
  best, untimed = cells_lib.best(cells), [c.pass_seconds for c in cells if not c.timed]
  where = ", ".join(f"{name} {rows_lib.text(value)}" for name, value in best.axes.items()
                    if name not in cells_lib.constant(cells))
  largest = f"speed-up: {show(best.speedup)}" if best.timed else f"tau: {show(best.tau)}"
  lines = [f"Largest {largest}" + (f", with {where}." if where else ".")]
  if untimed:
    lines.append(("" if len(untimed) == len(cells) else f"{len(untimed)} of the cells: ")
                 + estimates.untimed(statistics.median(untimed)))
  differ = sum(c.identical is False for c in cells)
  comparable = sum(c.identical is not None for c in cells)
  if comparable:
    lines.append(f"Texts are the same as those of plain decoding in {comparable - differ} of the "
                 f"{comparable} cells where they must be.")
  meanings = Table(["", "definition"], [
      list(pair) for pair in DEFINITIONS.items() if best.timed or pair[0] not in _OF_SPEED])
  return Section("Results", [*map(Text, lines), tables.overview(cells), meanings])


def _categories(cells: list[Cell], folder: pathlib.Path, omitted: list[str]) -> list[Section]:
  """The section of the categories, whose numbers become a CSV too; else why not, in `omitted`."""
  title, path = "By category", folder / figures.FOLDER / "by_category.csv"
  found = tables.by_category(cells)
  if not found:
    path.unlink(missing_ok=True)
    omitted.append(f"{title}: left out, all prompts are of one category.")
    return []
  figures.write_csv(path, tables.category_numbers(cells))
  most = "speed-up" if "speed-up" in found else "tau"
  blocks = [Text(f"Of each setting the gamma with the largest overall {most}, chosen after the "
                 f"fact; all are in {figures.FOLDER}/by_category.csv. Ratios of sums, with 95 % "
                 "intervals where a category has five prompts or more.")]
  for name, table in found.items():
    blocks += [Text(name), table]
  return [Section(title, blocks)]
