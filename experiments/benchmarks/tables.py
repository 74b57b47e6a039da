"""The tables of `experiments.bench`, and the goals that its numbers are held against."""

import statistics
from typing import NamedTuple

from experiments.benchmarks import contest, kernels, passes
from specjax.launch.text_table import text_table

_DEFINITIONS = {
    "model": """
V(n): target pass over n rows / over one, inside a jitted loop, behind the longest prompt. outside:
a round whose models are replaced by a table of logits, so that law, transforms, drafting,
verification and commit are what is left; its fraction of the whole round.
drafting: rounds that had a draft.""",
    "peers": """
tokens/s: tokens / seconds in which they were made, the reading of the prompt (a peer's first round,
which includes it) and compilation excluded; median over repetitions. Ratios are taken within a
repetition: the median, and from least to largest. Everybody decodes the same prompts greedily with
the same float32 weights and threads, to the end of the text or the limit, prompt by prompt in turn.
same text: prompts with the very tokens of specjax plain; where others part from it, the target's
two best scores differ by at most the margin. tau: tokens / target passes;
alpha: drafted tokens accepted / tested.""",
    "logits": """
The sorting version sorts every row once, stably, however many of the transforms are on.""",
    "verify": """
copy: numpy.copyto of log_p and log_q into memory already claimed, on one core.""",
}


class Goal(NamedTuple):
  """A number that the default model on two cores should reach."""

  name: str
  value: float
  at_least: bool
  bound: float

  @property
  def met(self) -> bool:
    return self.value >= self.bound if self.at_least else self.value <= self.bound


def section(name: str, *parts: str) -> str:
  return "\n\n".join([f"## {name}", *parts, _DEFINITIONS[name].strip()])


def model(result: passes.Passes) -> str:
  widths = [["pass, ms", *(_ms(seconds) for seconds in result.seconds.values())],
            ["V(n)", *(f"{ratio:.2f}" for ratio in result.relative.values())]]
  rounds = [
      [name, _ms(each.round), _ms(each.outside), f"{each.fraction:.1%}", f"{each.drafting:.0%}"]
      for name, each in result.rounds.items()]
  return section(
      "model", text_table(["rows n", *map(str, result.seconds)], widths),
      text_table(["decoder", "round, ms", "outside, ms", "outside / round", "drafting"], rounds))


def peers(results: dict[str, contest.Result], skipped: dict[str, str], prompts: int) -> str:
  others = [name for name in results if name.endswith(" plain")]
  head = ["decoder", "tokens/s", *(f"/ {name}" for name in others), "same text", "tau", "alpha"]
  rows = []
  for name, result in results.items():
    rows.append([
        name, f"{result.rate:.1f}",
        *(_range(*contest.ratio(results, name, other)) for other in others),
        f"{result.same_texts} of {prompts}{_margins(result)}", _number(result.tau),
        _number(result.alpha)])
  parts = [text_table(head, rows), _by_category(results)]
  parts += [f"{name} left out: {why}" for name, why in skipped.items()]
  return section("peers", *parts)


def logits(result: kernels.Sorting) -> str:
  rows = [[name, _ms(ours), _ms(sorting), f"{result.ratio[name]:.1f}"]
          for name, (ours, sorting) in result.seconds.items()]
  same = "Both keep the same tokens." if result.same else "THE TWO KEEP DIFFERENT TOKENS."
  return section(
      "logits", f"{result.rows} rows of {result.vocab}. {same}",
      text_table(["transforms", "ours, ms", "sorting, ms", "sorting / ours"], rows))


def verify(result: kernels.Verification) -> str:
  rows = [["copy", _ms(result.copy_seconds), "1.00"]]
  rows += [[rule, _ms(seconds), f"{result.ratio[rule]:.2f}"]
           for rule, seconds in result.seconds.items()]
  return section(
      "verify", f"B = {result.batch}, gamma = {result.gamma}, V = {result.vocab}.",
      text_table(["rule", "ms", "/ copy"], rows))


def goals(found: list[Goal]) -> str:
  rows = []
  for goal in found:
    sign = ">=" if goal.at_least else "<="
    rows.append([goal.name, f"{goal.value:.3g}", f"{sign} {goal.bound:g}",
                 "met" if goal.met else "MISSED"])
  return "## goals\n\n" + text_table(
      ["goal (2 cores, float32, batch 1, SmolLM2)", "measured", "wanted", ""], rows)


def _by_category(results: dict[str, contest.Result]) -> str:
  """tokens/s of every decoder on each category of prompts, and its ratio to plain decoding."""
  categories = list(results[contest.PLAIN].category_rates)
  head = [f"tokens/s (/ {contest.PLAIN})", *(category or "prompts" for category in categories)]
  rows = []
  for name, result in results.items():
    cells = []
    for category in categories:
      median, _, _ = contest.ratio(results, name, contest.PLAIN, category)
      rate = statistics.median(result.category_rates[category])
      cells.append(f"{rate:.1f} ({median:.2f})")
    rows.append([name, *cells])
  return text_table(head, rows)


def _margins(result: contest.Result) -> str:
  if not result.divergences:
    return ""
  return f" (margin {max(each.margin for each in result.divergences):.1e})"


def _range(median: float, least: float, largest: float) -> str:
  return f"{median:.2f} ({least:.2f}-{largest:.2f})"


def _number(value: float | None) -> str:
  return "-" if value is None else f"{value:.2f}"


def _ms(seconds: float) -> str:
  return f"{seconds * 1e3:.2f}"
