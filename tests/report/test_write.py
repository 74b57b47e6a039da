"""Reports as files: numbers, figures and pages of synthetic sweeps."""

import base64
import csv
import html.parser
import importlib.util
import io
import json
import pathlib
import re

import matplotlib.image
import pytest

from specjax.report import write
from tests.report import sweeps

TEXTS = ("report.md", "report.html", "figures/*.csv")
MANIFEST = dict(
    command=["/x/experiments/sweep.py", "--gamma=2,4"], seed=7,
    git=dict(commit="c0ffee", dirty=True), versions=dict(jax="0.10.2"), device=dict(kind="cpu"))


class Page(html.parser.HTMLParser):
  """The tags of a page with their attributes, and the text of its table cells."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.cells, self._inside = [], [], False
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    self.tags.append((tag, dict(attrs)))
    self._inside = tag == "td"
    if self._inside:
      self.cells.append("")

  def handle_endtag(self, tag):
    self._inside = self._inside and tag != "td"

  def handle_data(self, data):
    if self._inside:
      self.cells[-1] += data


def files(folder):
  return {str(path.relative_to(folder)): path.read_bytes()
          for pattern in TEXTS for path in sorted(folder.glob(pattern))}


def report(rows, folder):
  write.write(sweeps.outcomes(rows), folder)


@pytest.fixture(scope="module")
def made():
  return sweeps.sweep(gammas=(1, 2, 4), temperatures=(0.0, 0.5, 0.7, 0.9, 1.0),
                      rules=("token", "gumbel"), prompts=8)  # 30 cells


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
  folder = tmp_path_factory.mktemp("sweep")
  (folder / "sweep.json").write_text(json.dumps(dict(manifest=MANIFEST)))
  report(made, folder)
  return folder


def test_all_files_are_there(folder):
  names = {"speedup", "tau_alpha", "acceptance", "lengths", "gumbel", "predicted"}
  assert {path.stem for path in folder.glob("figures/*.png")} == names
  assert {path.stem for path in folder.glob("figures/*.csv")} == names | {"by_category"}


def test_markdown_links_to_figures_that_exist(folder):
  text = (folder / "report.md").read_text()
  links = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
  assert len(links) == 6 and all((folder / link).is_file() for link in links)
  assert "python -m experiments.sweep --gamma=2,4" in text and "c0ffee with uncommitted" in text
  assert "30 cells measured" in text and "By batch size" not in text
  assert "Speed by batch size: left out, no method was run with two batch sizes" in text


def test_the_page_needs_nothing_else(folder):
  page = Page((folder / "report.html").read_text())
  for tag, attributes in page.tags:
    assert tag not in ("link", "iframe", "object", "embed", "base"), tag
    for name in ("src", "href", "srcset", "data", "action", "poster"):
      assert attributes.get(name, "data:").startswith("data:"), (tag, attributes)
  assert not re.search(r"https?://|@import|url\(", (folder / "report.html").read_text())
  images = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
  assert len(images) == 6
  for source in images:
    data = base64.b64decode(source.removeprefix("data:image/png;base64,"), validate=True)
    assert matplotlib.image.imread(io.BytesIO(data), format="png").std() > 0.01


def test_the_table_has_every_cell(made, folder):
  page = Page((folder / "report.html").read_text())
  for row in made:
    assert any(cell.startswith(f"{row['result']['tau']:.2f} (") for cell in page.cells)
  for meaning in write.DEFINITIONS.values():
    assert meaning in page.cells


def test_definitions_are_those_of_the_readme():
  readme = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
  for name in ("tau", "alpha", "speed-up", "c", "V(n)", "predicted", "identical"):
    assert f"| {name} | {write.DEFINITIONS[name]}" in readme, name


def test_the_categories_have_numbers(made, folder):
  with (folder / "figures" / "by_category.csv").open(newline="") as file:
    lines = list(csv.DictReader(file))
  assert len(lines) == 30 * 4 * 3
  cell = dict(rule="token", gamma="4", temperature="0.5", category="code", quantity="tau")
  [line] = [line for line in lines if all(line[k] == v for k, v in cell.items())]
  [row] = [r for r in made if (r["cell"]["rule"], r["cell"]["gamma"], r["cell"]["temperature"])
           == ("token", 4, 0.5)]
  some = [p for p in row["result"]["prompts"] if p["category"] == "code"]
  assert float(line["value"]) == sum(p["emitted"] for p in some) / sum(p["rounds"] for p in some)
  assert line["prompts"] == "2" and line["low"] == ""  # too few for an interval


@pytest.fixture
def undrawn(monkeypatch):
  """As without matplotlib."""
  find = importlib.util.find_spec
  monkeypatch.setattr(
      importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name))


def test_what_is_too_short_to_be_timed_has_no_speed(tmp_path, undrawn):
  """Passes of five microseconds, the answers as slow as before: the pass decides."""
  made = sweeps.sweep(gammas=(0, 2), temperatures=(0.0, 1.0), batch_sizes=(1, 2), prompts=8)
  slow = sweeps.row(99, "ngram", "token", 0.5, 2)
  for row in made:
    if row["result"]["costs"]:
      row["result"]["costs"]["pass_seconds"] = 5e-6
    else:
      for prompt in row["result"]["prompts"]:
        prompt["baseline_seconds"] = 5e-6 / row["cell"]["batch_size"] * prompt["baseline_tokens"]
  for name, rows in dict(table=made, mixed=[*made, slow]).items():
    (tmp_path / name).mkdir()
    report(rows, tmp_path / name)
  text, mixed = ((tmp_path / name / "report.md").read_text() for name in ("table", "mixed"))
  results = text.partition("## Results\n\n")[2]
  assert results.startswith("Largest tau: ") and "takes 5 microseconds" in results
  assert "speed-up" not in results.partition("## Left out")[0].lower()
  assert results.count("no pass takes long enough to be timed") == 3
  assert {path.name for path in (tmp_path / "table" / "figures").glob("*.csv")} == {
      "acceptance.csv", "by_category.csv", "lengths.csv"}
  assert "speed-up" not in (tmp_path / "table" / "figures" / "by_category.csv").read_text()
  assert "Largest speed-up: " in mixed and "8 of the cells: A pass of this target" in mixed


def test_the_same_rows_give_the_same_text(tmp_path):
  few = sweeps.sweep(gammas=(1, 2), temperatures=(0.0,), prompts=5)
  for name in ("a", "b"):
    (tmp_path / name).mkdir()
    report(few, tmp_path / name)
  report(few, tmp_path / "b")  # over an earlier one
  assert files(tmp_path / "a") == files(tmp_path / "b")


def test_figures_of_an_earlier_report_go(tmp_path):
  report(sweeps.sweep(gammas=(1, 2), temperatures=(0.0,), prompts=1), tmp_path)
  (tmp_path / "figures" / "mine.png").write_bytes(b"")
  report(sweeps.sweep(gammas=(1,), temperatures=(0.0,), prompts=1), tmp_path)
  assert {p.name for p in tmp_path.glob("figures/*")} == {
      "mine.png", "lengths.png", "lengths.csv", "predicted.png", "predicted.csv"}
  assert "of one category" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("rows", [
    [], [dict(id="a", cell=dict(gamma=4), error="out of memory", result=None, wall_seconds=1,
              finished="")]])
def test_without_a_cell_the_report_says_so(rows, tmp_path):
  report(rows, tmp_path)
  for name in ("report.md", "report.html"):
    text = (tmp_path / name).read_text()
    assert "0 cells measured" in text and "nothing to show" in text
    assert ("out of memory" in text) is bool(rows)
  assert not list(tmp_path.glob("figures/*"))


def test_hostile_names_stay_text(tmp_path):
  evil = "<script>alert(1)</script>|`../../x`$\\frac$\ud800\x00\n"
  made = [sweeps.row(gamma, evil, "token", 0.0, gamma, prompts=4) for gamma in (1, 2)]
  made.append(dict(
      id=evil, cell={evil: evil}, error=evil, result=None, wall_seconds=1, finished=""))
  for row in made[:2]:
    for prompt in row["result"]["prompts"]:
      prompt["category"] += evil
  report(made, tmp_path)
  page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
  assert [tag for tag, _ in page.tags].count("script") == 1
  assert any(cell.startswith("<script>alert(1)") for cell in page.cells)
  assert "<script" not in (tmp_path / "report.md").read_text(encoding="utf-8")
  assert all(re.fullmatch(r"[a-z_]+\.(png|csv)", path.name) for path in tmp_path.glob("figures/*"))


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"manifest": 3}', '{"manifest": {"git": 1}}',
                                      "[" * 100_000, '{"manifest": {"command": [1]}}'])
def test_a_manifest_may_be_missing_or_malformed(manifest, tmp_path):
  (tmp_path / "sweep.json").write_text(manifest)
  report([], tmp_path)
  assert "0 cells" in (tmp_path / "report.md").read_text()


def test_without_matplotlib_there_are_tables(tmp_path, undrawn):
  report(sweeps.sweep(gammas=(1, 2), temperatures=(0.0,), prompts=2), tmp_path)
  text = (tmp_path / "report.md").read_text()
  assert "needs matplotlib" in text and "![" not in text and "tokens emitted" in text
  assert not list(tmp_path.glob("figures/*.png")) and list(tmp_path.glob("figures/*.csv"))
