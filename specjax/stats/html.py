"""A document as one HTML page that needs nothing else: figures inside, no network."""

import base64
import importlib.resources
import pathlib

import jinja2

from specjax.stats import document as document_lib
from specjax.stats.document import Document


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
      kind=lambda block: type(block).__name__, number=lambda value: not isinstance(value, str),
      data_uri=lambda path: "data:image/png;base64,"
      + base64.b64encode((folder / path).read_bytes()).decode("ascii"))
