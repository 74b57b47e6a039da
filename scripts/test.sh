#!/usr/bin/env bash
# Runs the tests, in an environment that is made if it is missing. Arguments go on to pytest;
# --full adds the tests that take long.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment
cd "$root"
# A file stays in one process, since its tests share compiled programs.
exec "$venv/bin/python" -m pytest tests --numprocesses=2 --dist=loadfile "$@"
