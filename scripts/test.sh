#!/usr/bin/env bash
# Runs the tests, in an environment that is made if it is missing. Arguments go on to pytest: paths
# take the place of all tests, --full adds those that take long.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment
cd "$root"
paths=(tests)
for argument in "$@"; do
  [[ ! -e "${argument%%::*}" ]] || paths=()  # the file of a test like tests/test_keys.py::test_rows
done
# A file stays in one process, since its tests share compiled programs.
exec "$venv/bin/python" -m pytest --numprocesses=2 --dist=loadfile "${paths[@]}" "$@"
