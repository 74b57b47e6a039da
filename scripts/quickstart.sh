#!/usr/bin/env bash
# From a fresh machine to speculative decoding: makes .venv, fetches the default model, decodes a
# prompt speculatively and plainly, and prints what that gave. Arguments go on to experiments.decode.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment
cd "$root"

passage="The lighthouse on Skerrow Point was built in 1861 after three ships had been lost on the rocks\
 in a single winter. Its tower is thirty-one metres high and was made of grey granite that was brought\
 by barge from a quarry on the other side of the bay. For the first forty years the lamp burned colza\
 oil, and two keepers took turns to wind the clockwork that moved the lens. In 1903 the lamp was\
 changed to paraffin, and in 1938 a cable from the mainland brought electricity. The last keeper,\
 Ellen Marsh, left the tower in the spring of 1987, when the light was made automatic."

if [[ ! -e "${SPECJAX_CACHE:-$HOME/.cache/specjax}/SmolLM2-135M-Instruct.Q4_1.gguf" ]]; then
  echo "The first run fetches the model (94 MB) and compiles, about two minutes." >&2
fi
exec "$venv/bin/python" -m experiments.decode --config=configs/smollm2.py \
  --prompt="Write down the sentences of the following text that contain a year, word for word.

$passage" "$@"
