"""Runs many command lines, importing JAX once: each runs in a forked child.

  python forked.py  < JSON list of [module, argument, ...]  > JSON list of [code, stdout, stderr]
"""

import importlib
import json
import os
import pathlib
import pkgutil
import runpy
import subprocess
import sys
import tempfile

from specjax import launch, measure, sweep

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command_lines: list[list[str]], cwd=ROOT, **environment) -> list[tuple[int, str, str]]:
  """(exit code, stdout, stderr) of `python -m MODULE ARGUMENTS...` for each list of these.

  All of them run in an environment that differs from this one by `environment`. Programs are
  compiled without most optimisations: compiling is nearly all that such short runs do.
  """
  done = subprocess.run(
      [sys.executable, __file__], input=json.dumps(command_lines), text=True,
      capture_output=True, cwd=cwd, check=True, timeout=1200,
      env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
           "PYTHONPATH": str(ROOT), **environment})
  return [tuple(result) for result in json.loads(done.stdout)]


def _child(module, *arguments, out, err):
  os.dup2(out.fileno(), 1)
  os.dup2(err.fileno(), 2)
  sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
  sys.argv[1:] = arguments
  code = 1
  try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
  except SystemExit as error:
    code = error.code or 0
  except BaseException:
    sys.excepthook(*sys.exc_info())
  sys.stdout.flush(), sys.stderr.flush()
  os._exit(code)


def _serve():
  for house in (launch, measure, sweep):
    for part in pkgutil.iter_modules(house.__path__, f"{house.__name__}."):
      importlib.import_module(part.name)
  results = []
  for command_line in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
      if not (child := os.fork()):
        _child(*command_line, out=out, err=err)
      _, status = os.waitpid(child, 0)
      texts = [stream.seek(0) or stream.read() for stream in (out, err)]
      results.append([os.waitstatus_to_exitcode(status), *texts])
  json.dump(results, sys.stdout)


if __name__ == "__main__":
  _serve()
