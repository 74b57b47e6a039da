"""Published peak figures of accelerators, for one chip."""

from typing import Mapping, NamedTuple


class Device(NamedTuple):
  """One chip: dense peak arithmetic by dtype name in FLOP/s, and memory bandwidth in byte/s."""

  name: str
  peak: Mapping[str, float]
  bandwidth: float
  source: str


def _tensor_cores(float32: float, half: float, eight_bit: Mapping[str, float]) -> dict[str, float]:
  return {"float32": float32, "bfloat16": half, "float16": half, **eight_bit}


_HOPPER = _tensor_cores(67e12, 989e12, {"float8_e4m3fn": 1979e12, "int8": 1979e12})

# Dense figures: data sheets also print twice as much for 2:4 sparse weights. float32 is that of the
# vector units, the only ones that keep all 24 bits.
DEVICES = {
    device.name: device
    for device in (
        Device("A100", _tensor_cores(19.5e12, 312e12, {"int8": 624e12}), 2.039e12,
               "NVIDIA A100 data sheet, SXM 80 GB"),
        Device("H100", _HOPPER, 3.35e12, "NVIDIA H100 data sheet, SXM 80 GB"),
        Device("H200", _HOPPER, 4.8e12, "NVIDIA H200 data sheet, SXM 141 GB"),
        Device("B200", _tensor_cores(80e12, 2250e12, {"float8_e4m3fn": 4500e12, "int8": 4500e12}),
               8.0e12, "NVIDIA Blackwell architecture brief, HGX B200 at 1000 W"),
        Device("TPU v5e", {"bfloat16": 197e12, "int8": 393e12}, 0.819e12,
               "Google Cloud TPU v5e documentation"),
        Device("TPU v5p", {"bfloat16": 459e12, "int8": 918e12}, 2.765e12,
               "Google Cloud TPU v5p documentation"),
    )
}
