"""The roofline against figures worked out by hand."""

import pytest

from specjax import theory

LLAMA_8B = theory.Attention(layers=32, heads=32, kv_heads=8, head_size=128)


def test_8b_in_bfloat16_on_one_h100():
  bound = theory.roofline("H100", 8.03e9)
  assert bound.weight_bytes == 16.06e9
  assert bound.seconds == bound.memory_seconds == pytest.approx(4.794e-3, abs=1e-6)
  assert bound.tokens_per_second == pytest.approx(208.6, abs=0.05)
  assert bound.ridge == pytest.approx(295.2, abs=0.05)
  assert bound.free_rows == pytest.approx(295.2, abs=0.05)


def test_the_ridge_row_is_where_arithmetic_takes_over():
  below, above = (theory.roofline("H100", 8e9, rows=rows) for rows in (295, 296))
  assert below.seconds == below.memory_seconds > below.compute_seconds
  assert above.seconds == above.compute_seconds > above.memory_seconds


def test_batch_uses_up_the_free_rows():
  alone, batch = theory.roofline("A100", 7e9), theory.roofline("A100", 7e9, batch=32)
  assert batch.free_rows == pytest.approx(alone.free_rows / 32)
  assert batch.tokens_per_second == pytest.approx(32 * alone.tokens_per_second)


def test_a_large_batch_is_bound_by_arithmetic():
  bound = theory.roofline("H100", 8e9, batch=1000)
  assert bound.free_rows < 1
  assert bound.tokens_per_second == pytest.approx(989e12 / 16e9)


def test_context_adds_cache_bytes_and_attention():
  bound = theory.roofline("H100", 8.03e9, batch=4, rows=5, context=8192, attention=LLAMA_8B)
  assert bound.cache_bytes == 4 * 8192 * 131072  # 128 KiB a token
  assert bound.bytes == bound.weight_bytes + bound.cache_bytes
  assert bound.flops == 4 * 5 * (2 * 8.03e9 + 4 * 32 * 32 * 128 * 8192)
  assert bound.memory_seconds == pytest.approx((16.06e9 + 4.294967296e9) / 3.35e12)


def test_width_and_peak_follow_the_dtype():
  wide, narrow = (theory.roofline("H200", 1e9, dtype=d) for d in ("float32", "float8_e4m3fn"))
  assert wide.weight_bytes == 4e9 and narrow.weight_bytes == 1e9
  assert wide.ridge == pytest.approx(67 / 4.8) and narrow.ridge == pytest.approx(1979 / 4.8)


def test_own_device():
  laptop = theory.Device("laptop", {"float32": 1e11}, 2e10, "measured")
  assert theory.roofline(laptop, 135e6, "float32").tokens_per_second == pytest.approx(2e10 / 540e6)


@pytest.mark.parametrize("name", ["A100", "H100", "H200", "B200", "TPU v5e", "TPU v5p"])
def test_named_devices(name):
  device = theory.DEVICES[name]
  assert device.source and device.bandwidth > 1e11
  assert theory.roofline(name, 1e9).ridge == device.peak["bfloat16"] / device.bandwidth


@pytest.mark.parametrize("arguments,message", [
    (dict(device="Z80", parameters=1e9), "no device 'Z80'"),
    (dict(device="TPU v5e", parameters=1e9, dtype="float32"), "no published peak"),
    (dict(device="H100", parameters=0), "parameters"),
    (dict(device="H100", parameters=float("nan")), "parameters"),
    (dict(device="H100", parameters=1e9, batch=0), "batch"),
    (dict(device="H100", parameters=1e9, rows=0), "rows"),
    (dict(device="H100", parameters=1e9, context=-1), "context"),
    (dict(device="H100", parameters=1e9, context=10), "attention")])
def test_bad_values(arguments, message):
  with pytest.raises(ValueError, match=message):
    theory.roofline(**arguments)
