# Sourced by the other scripts: `make_environment` leaves a ready .venv in the repository.
# No `pip install` happens where the lock file, setup.py and the kernel are those of the last one.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"

die() {
  echo "$(basename "$0"): error: $*" >&2
  exit 2
}

find_python() {
  local candidate
  local candidates=(python3 python3.11 python3.12 python3.13 python3.14 python)
  [[ -z "${PYTHON:-}" ]] || candidates=("$PYTHON")
  for candidate in "${candidates[@]}"; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  die "Python 3.11 or newer is needed; ${candidates[0]} is" \
    "$("${candidates[0]}" --version 2>/dev/null || echo missing)." \
    "Install one, or name it: PYTHON=/path/to/python $0"
}

make_environment() {
  local python wanted stamp="$venv/.specjax-installed"
  local models="$root/specjax/models"
  wanted="$root $(cat "$root"/{requirements.lock,setup.py} "$models/native_product.cc" | cksum)"
  if [[ -x "$venv/bin/python" && "$(cat "$stamp" 2>/dev/null)" == "$wanted" ]]; then
    return
  fi
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python="$(find_python)"
    echo "Making $venv with $("$python" --version)." >&2
    "$python" -m venv --clear "$venv" || die "$python cannot make a virtual environment;" \
      "on Debian and Ubuntu: apt install python3-venv"
  fi
  echo "Installing the pinned packages (a few minutes the first time)." >&2
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --requirement "$root/requirements.lock" || die "pip could not install requirements.lock"
  # Everything that the package needs is there; --no-deps keeps the pinned versions.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --editable "$root" || die "pip could not install the package"
  compgen -G "$models/_native_product*.so" >/dev/null || echo "No C++ compiler (g++ or clang++):" \
    "passes over 2 to 8 tokens take longer on this CPU; install one, remove .venv, try again." >&2
  echo "$wanted" >"$stamp"
}
