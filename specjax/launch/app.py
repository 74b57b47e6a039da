"""The frame of every experiment: flags in, one JSON object out, clear errors.

    def main(_):
      app.emit("certify", {...})

    if __name__ == "__main__":
      app.run(main)
"""

import io
import os
import pathlib
import re
import sys
import tempfile

from absl import app as absl_app, flags, logging

from specjax.launch import config, errors, runtime, strict_json
from specjax.types import Error

USER_ERROR = 2  # exit code of a bad flag, file, prompt or checkpoint


class _SeedParser(flags.ArgumentParser):
  """A seed is a non-negative int64; anything else would alias another seed in silence."""

  syntactic_help = "an integer from 0 to 2^63 - 1"

  def parse(self, argument):
    text = str(argument)
    if not (text.isascii() and text.isdigit()) or int(text) >= 2**63:
      raise Error(f"a seed is {self.syntactic_help}")
    return int(text)

  def flag_type(self):
    return "int"


SEED = flags.DEFINE(_SeedParser(), "seed", 0, "the only source of randomness of a run")
OUT = flags.DEFINE_string("out", None, "folder for the results; made if it is missing")
JSON = flags.DEFINE_bool("json", False, "print the result as JSON, as the last line of stdout")


def run(main) -> None:
  """Runs `main(argv)` as the program and exits with what it returns (None is success).

  A mistake of the user's (`types.Error`) ends with one paragraph on stderr and exit code 2; a bug
  keeps its traceback. JAX is configured (see `runtime`) before `main` starts.
  """
  _prepare_streams()
  for name in flags.FLAGS:  # --help shows the flags of the main module
    if name in ("seed", "out", "json") or re.match(r"config\b", name):
      flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])
  absl_app.run(lambda argv: _guard(lambda: _start(main, argv)), flags_parser=_parse)


def emit(name: str, result: dict) -> None:
  """Reports the result of an experiment: to stdout with --json, to OUT/<name>.json with --out."""
  try:
    if OUT.value is not None:
      folder = pathlib.Path(OUT.value)
      folder.mkdir(parents=True, exist_ok=True)
      strict_json.write(folder / f"{name}.json", result)
      print(f"kept in {folder}", file=sys.stderr)
  finally:  # a full disk loses nothing that stdout can take
    show(result)


def show(result: dict) -> None:
  """Prints the result of an experiment with --json; for one that keeps files of its own in OUT."""
  if JSON.value:
    print(strict_json.dumps(result), flush=True)


def _parse(argv):
  def parse():
    try:
      return flags.FLAGS(argv)
    except flags.UnrecognizedFlagError as error:
      raise config.unknown_flag(error) from error
    except ValueError as error:  # a binary flagfile
      raise Error(f"the command line cannot be read: {error}") from error

  return _guard(parse)


def _start(main, argv):
  if len(argv) > 1:
    raise Error(f"unexpected argument {argv[1]!r}: everything is given as --flag=value")
  if OUT.value is not None:
    _refuse_unwritable(pathlib.Path(OUT.value))
  runtime.configure()
  if not flags.FLAGS["verbosity"].present:  # JAX tells of every backend that is not there
    logging.set_verbosity(logging.WARNING)
  try:
    return main(argv)
  finally:
    sys.stdout.flush()  # while somebody listens to what goes wrong with it


def _refuse_unwritable(folder: pathlib.Path):
  """Makes the folder and tries it, before the work and not after it."""
  folder.mkdir(parents=True, exist_ok=True)
  try:
    with tempfile.TemporaryFile(dir=folder) as file:
      file.write(b" ")
  except OSError as error:
    raise Error(f"--out={folder}: no file can be written there: {error.strerror}") from error


class _Pipe(io.FileIO):
  """A standard stream whose reader may go (`... | head`). That ends the program, unless its work is
  to be kept in --out: then what is printed goes nowhere."""

  ended = False

  def write(self, data):
    try:
      return super().write(data)
    except BrokenPipeError:
      kept = flags.FLAGS.is_parsed() and OUT.value is not None
      if not (kept or self.ended):
        self.ended = True  # Python flushes once more on its way out
        sys.exit(0)
      return len(data)


def _prepare_streams():
  for name in ("stdout", "stderr"):
    stream = getattr(sys, name)
    if stream is None:  # closed by whoever started us
      setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    elif isinstance(stream, io.TextIOWrapper):
      pipe = io.BufferedWriter(_Pipe(os.dup(stream.fileno()), "w"))
      setattr(sys, name, io.TextIOWrapper(
          pipe, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering))


def _guard(call):
  """Calls; ends the program with a paragraph if the user made a mistake."""
  try:
    return call()
  except KeyboardInterrupt:
    _fail("interrupted", 130)
  except Exception as error:
    if not errors.is_user_error(error):
      raise
    _fail(errors.paragraph(error))


def _fail(message: str, code: int = USER_ERROR):
  print(f"{pathlib.Path(sys.argv[0]).stem}: error: {message}", file=sys.stderr, flush=True)
  sys.exit(code)

