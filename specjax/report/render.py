"""A document as text: Markdown, and one HTML page that needs nothing else."""

import base64
import importlib.resources
import pathlib
import re

import jinja2

from specjax.launch.text_table import text_table
from specjax.report import document as document_lib
from specjax.report.document import Code, Document, Image, show, Table, Text

_MARKS = re.compile(r"[\\`*\[\]{}~|$#]|(?<!\w)_|_(?!\w)")
_SCALE = 0.6  # of a pixel of a page for each of a figure


def markdown(document: Document) -> str:
  """Markdown that GitHub renders and that reads as plain text too; ends with a newline."""
  parts = [f"# {escape(document.title)}"]
  for section in document.sections:
    parts += [f"## {escape(section.title)}", *map(_block, section.blocks)]
  return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
  """Any text as one line without markup, fit for a cell of a table."""
  line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
  marked = _MARKS.sub(lambda mark: "\\" + mark.group(), line.replace("&", "&amp;"))
  return marked.replace("<", "&lt;").replace(">", "&gt;")


def _block(block: Text | Code | Table | Image) -> str:
  if isinstance(block, Table):
    rows = [[escape(show(value)) for value in row] for row in block.rows]
    return text_table(list(map(escape, block.head)), rows)
  if isinstance(block, Image):
    return f"![{escape(block.title)}]({block.path})\n\n{escape(block.caption)}".rstrip()
  if isinstance(block, Code):
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
    return f"{fence}\n{block.text}\n{fence}"
  return escape(block.text)


def html(document: Document, folder: pathlib.Path) -> str:
  """One page with its figures inside, without network; all text is escaped.

  Args:
    document: what it says.
    folder: where the images of the document lie.
  """
  source = importlib.resources.files("specjax") / "data" / "report.html"
  environment = jinja2.Environment(
      autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
  template = environment.from_string(source.read_text(encoding="utf-8"))
  return template.render(
      document=document, show=document_lib.show, sort_key=document_lib.sort_key,
      kind=lambda block: type(block).__name__, numeric_columns=document_lib.numeric,
      image=lambda path: _image((folder / path).read_bytes()))


def _image(png: bytes) -> dict:
  """A PNG inside the page, all of one scale."""
  width = int.from_bytes(png[16:20], "big")  # of the header
  return dict(source="data:image/png;base64," + base64.b64encode(png).decode("ascii"),
              width=round(_SCALE * width))
