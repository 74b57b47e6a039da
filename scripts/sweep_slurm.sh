#!/usr/bin/env bash
# One sweep over several machines of a Slurm cluster, from the repository, its .venv ready:
#
#   sbatch scripts/sweep_slurm.sh --config=configs/sweeps/gamma_temperature.py --out=/shared/DIR
#
# Every task measures cells that no other has locked, and the last one writes the report. Tasks that
# were killed are made up for by the same command again. Speeds are comparable only among cells that
# ran on equal machines: ask for one kind.
#SBATCH --job-name=specjax-sweep
#SBATCH --array=0-3
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --time=08:00:00
#SBATCH --requeue
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"  # Slurm runs a copy of this file
exec .venv/bin/python -m experiments.sweep "$@" \
  --num_workers="$SLURM_ARRAY_TASK_COUNT" \
  --worker_index="$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))"
