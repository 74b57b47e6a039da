"""Commands for numbers that take large models: run them where the models and their data are."""

_SWEEP = ("python -m experiments.sweep --config=configs/smollm2.py --config.target={target} "
          "--drafter={drafter} --rule={rule} --gamma={gamma} --temperature={temperature} "
          "--prompts={prompts} --out=results")


def sweep(target: str, drafter: str, rule: str, gamma, temperature, prompts: str) -> str:
  """The command of a sweep; names in capitals stand for files that the reader supplies."""
  return _SWEEP.format(target=target, drafter=drafter, rule=rule, gamma=gamma,
                       temperature=temperature, prompts=prompts)
