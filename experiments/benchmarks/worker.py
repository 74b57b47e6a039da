"""One peer in a process of its own, which reads requests from stdin and answers on stdout.

    python -m experiments.benchmarks.worker transformers MODEL_FOLDER THREADS CONTEXT EOS,EOS

Every line is a JSON object. The first answer is {"ready": versions} or {"missing": why}; after that
{"prompt": ids, "max_new_tokens": n, "mode": options} is answered by {"tokens": ids, "seconds": s,
"timed": n}: in s seconds the last n of the tokens were made, the prompt having been read before.
Decoding is greedy and ends after the first end-of-text token. The first request loads the model.

This file runs under the peer's own Python, which need not know specjax or JAX.
"""

import functools
import importlib.metadata
import json
import os
import sys
import time


class Transformers:
  """The library transformers, eager PyTorch, float32; see `_drafting` for `mode`."""

  def __init__(self, folder: str, threads: int, context: int, eos: list[int]):
    import torch
    import transformers
    del context  # the cache grows as needed
    torch.set_num_threads(threads)
    self._torch, self._eos = torch, eos
    self._folder = folder
    self._model = functools.cache(
        lambda path: transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32).eval())
    self.versions = _versions("torch", "transformers")

  def decode(self, prompt: list[int], max_new_tokens: int, mode: dict) -> dict:
    clock = _Clock()
    ids = self._torch.tensor([prompt])
    mode = self._drafting(**mode)
    with self._torch.inference_mode():
      output = self._model(self._folder).generate(
          ids, attention_mask=self._torch.ones_like(ids), do_sample=False, streamer=clock,
          max_new_tokens=max_new_tokens, eos_token_id=self._eos or None,
          pad_token_id=(self._eos or [0])[0], **mode)
    tokens = output[0, len(prompt):].tolist()
    return dict(tokens=tokens, seconds=clock.times[-1] - clock.times[0],
                timed=len(tokens) - clock.first)

  def _drafting(self, gamma: int = 0, assistant: str | None = None, **mode) -> dict:
    """Options of `generate` that draft `gamma` tokens a round, with a second model if named."""
    if assistant is not None:
      mode["assistant_model"] = self._model(assistant)
    if gamma:
      # The defaults end a draft early and let its length drift; a comparison needs a fixed gamma.
      config = self._model(assistant or self._folder).generation_config
      config.num_assistant_tokens = gamma
      config.num_assistant_tokens_schedule = "constant"
      config.assistant_confidence_threshold = 0.0
    return mode


class _Clock:
  """A streamer that times each block of tokens; `generate` hands it the prompt first."""

  def __init__(self):
    self.times, self.first = [], None

  def put(self, tokens):
    if self.first is None:
      self.first = 0  # that was the prompt
      return
    self.first = self.first or tokens.numel()
    self.times.append(time.perf_counter())

  def end(self):
    pass


class LlamaCpp:
  """llama.cpp through llama-cpp-python: its C functions, so that Python costs next to nothing."""

  def __init__(self, folder: str, threads: int, context: int, eos: list[int]):
    import llama_cpp
    import numpy
    self._library, self._numpy, self._eos = llama_cpp, numpy, eos
    # Weights, cache and arithmetic are float32, as everybody's here; its default cache is float16.
    self._model = functools.cache(lambda: llama_cpp.Llama(
        os.path.join(folder, "model.gguf"), n_ctx=context, n_threads=threads,
        n_threads_batch=threads, type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32,
        verbose=False))
    self.versions = _versions("llama-cpp-python")

  def decode(self, prompt: list[int], max_new_tokens: int, mode: dict) -> dict:
    del mode  # plain decoding only
    self._model().reset()
    self._model().eval(prompt[:-1])
    tokens, last = [], prompt[-1]
    begin = time.perf_counter()
    while len(tokens) < max_new_tokens and (not tokens or last not in self._eos):
      last = self._next(last)
      tokens.append(last)
    return dict(tokens=tokens, seconds=time.perf_counter() - begin, timed=len(tokens))

  def _next(self, token: int) -> int:
    model = self._model()
    model.eval([token])
    logits = self._library.llama_get_logits_ith(model.ctx, -1)
    return int(self._numpy.ctypeslib.as_array(logits, (model.n_vocab(),)).argmax())


PEERS = {"transformers": Transformers, "llama.cpp": LlamaCpp}


def _versions(*packages: str) -> dict[str, str]:
  return {package: importlib.metadata.version(package) for package in packages}


def main(name: str, folder: str, threads: str, context: str, eos: str):
  answers = os.fdopen(os.dup(1), "w", buffering=1)
  os.dup2(2, 1)  # what the libraries print must not stand between the answers

  def answer(message: dict):
    answers.write(json.dumps(message) + "\n")

  try:
    peer = PEERS[name](
        folder, int(threads), int(context), [int(token) for token in eos.split(",") if token])
  except ImportError as error:
    return answer({"missing": str(error)})
  answer({"ready": peer.versions})
  for line in sys.stdin:
    answer(peer.decode(**json.loads(line)))


if __name__ == "__main__":
  main(*sys.argv[1:])
