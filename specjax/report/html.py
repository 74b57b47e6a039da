"""A document as one HTML page that needs nothing else: figures inside, no network."""

import base64
import importlib.resources
import pathlib

import jinja2

from specjax.report import document as document_lib
from specjax.report.document import Document

_SCALE = 0.6  # of a pixel of a page for each of a figure


def render(document: Document, folder: pathlib.Path) -> str:
  """The page; all text is escaped.

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
