"""A document as Markdown that GitHub renders and that reads as plain text too."""

import re

from specjax.report.document import Code, Document, Image, show, Table, Text

_MARKS = re.compile(r"[\\`*\[\]{}~|$#]|(?<!\w)_|_(?!\w)")


def render(document: Document) -> str:
  """The whole text, with a newline at its end."""
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
    return _table([block.head, *([show(value) for value in row] for row in block.rows)])
  if isinstance(block, Image):
    return f"![{escape(block.title)}]({block.path})\n\n{escape(block.caption)}".rstrip()
  if isinstance(block, Code):
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
    return f"{fence}\n{block.text}\n{fence}"
  return escape(block.text)


def _table(rows: list[list[str]]) -> str:
  cells = [[escape(cell) for cell in row] for row in rows]
  widths = [min(max(map(len, column)), 40) for column in zip(*cells)]
  lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in cells]
  rule = " | ".join("-" * width for width in widths)
  return "\n".join(f"| {line} |" for line in [lines[0], rule, *lines[1:]])
