"""Decoding: one pure step, folded by one jitted loop or driven from the host."""

from specjax.decode.batch import answer, Answers, Batch, pad, run_batch
from specjax.decode.decoder import autoregressive, Decoder, Round, speculative
from specjax.decode.loop import check_finite, generate, Generation, rounds, run, stream
from specjax.decode.state import State
from specjax.decode.until import run_until

__all__ = [
    "Answers", "Batch", "Decoder", "Generation", "Round", "State", "answer", "autoregressive",
    "check_finite", "generate", "pad", "rounds", "run", "run_batch", "run_until", "speculative",
    "stream"]
