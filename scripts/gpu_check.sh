#!/usr/bin/env bash
# What the device of this machine promises: strict mode bit for bit, float32 and bfloat16, and plain
# against speculative times. On a machine with an NVIDIA device the CUDA build of jax is added to
# .venv. At most 8 minutes; --small runs a toy anywhere. The last line is one JSON object.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment
cd "$root"
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1 &&
    ! "$venv/bin/python" -c 'import jax; assert jax.default_backend() == "gpu"' 2>/dev/null; then
  version="$("$venv/bin/python" -c 'import jax; print(jax.__version__)')"
  echo "Installing the CUDA build of jax $version." >&2
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "jax[cuda13]==$version"
fi
exec "$venv/bin/python" -m experiments.device_check --json "$@"
