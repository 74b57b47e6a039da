"""Documents as Markdown and HTML: hostile text stays text."""

import math

import markdown_it
import pytest

from specjax.report import document, render
from specjax.report.document import Code, Document, Section, Table, Text
from specjax.report.parts import Estimate

HOSTILE = [
    "<script>alert(1)</script>", "a|b", "`code`", "**bold** _it_ ~~no~~", "![x](http://evil)",
    "[x](javascript:alert(1))", "two\nlines\r\n| a | b |", "&lt;b&gt;",
    "\\| \\", "$x^2$", "\x00\x1b[31m",
    "{{ 7 * 7 }}", "</td></table>", "\" onload=\"x", "# head"]


@pytest.mark.parametrize("value, shown", [
    (Estimate(2.174, 1.9, 2.41), "2.17 (1.90-2.41)"), (Estimate(2.174), "2.17"),
    (Estimate(math.nan), "-"), (None, "-"), (math.nan, "-"), (79.84, "79.8"), (4, "4"),
    (True, "yes"), (False, "NO"), ("text", "text")])
def test_values_as_a_reader_sees_them(value, shown):
  assert document.show(value) == shown


def test_hostile_cells_stay_cells_in_markdown():
  """Read back by a parser: one table of the same shape, without a link, a tag or a mark."""
  table = Table(["h"] * 2, [[hostile] * 2 for hostile in HOSTILE])
  text = render.markdown(Document("t", [Section("s", [table])]))
  tokens = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
  assert sum(token.type == "tr_open" for token in tokens) == len(HOSTILE) + 1
  assert sum(token.type == "td_open" for token in tokens) == 2 * len(HOSTILE)
  kinds = {child.type for token in tokens for child in token.children or []}
  assert kinds <= {"text", "text_special"}, kinds
  contents = [
      "".join(c.content for c in token.children) for token in tokens if token.type == "inline"]
  for hostile in HOSTILE:
    plain = " ".join("".join(c if c.isprintable() else " " for c in hostile).split())
    assert plain in contents


def test_names_with_underscores_stay_readable():
  assert render.escape("layer_skip:10") == "layer_skip:10"


def test_code_cannot_leave_its_fence():
  text = render.markdown(Document("t", [Section("s", [Code("a\n````\n# b")])]))
  assert "`````\na\n````\n# b\n`````" in text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_text_in_html(hostile, tmp_path):
  blocks = [Text(hostile), Code(hostile), Table([hostile], [[hostile]])]
  empty = [Text(""), Code(""), Table(["h"], [[""]])]
  clean = render.html(Document("t", [Section("t", empty)]), tmp_path)
  page = render.html(Document(hostile, [Section(hostile, blocks)]), tmp_path)
  assert page.count("<") == clean.count("<")
  assert "{{ 7 * 7 }}" in page if "{{" in hostile else "49" not in page.partition("<body>")[2]
