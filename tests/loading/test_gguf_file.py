"""The GGUF container: what a file says is read, and a damaged file is one clear error."""

import struct

import gguf
import numpy as np
import pytest

from specjax.loading import gguf_file, LoadError

KINDS = gguf.GGMLQuantizationType


def string(text: str) -> bytes:
  return struct.pack("<Q", len(text.encode())) + text.encode()


def entry(name="w", shape=(4, 2), kind=KINDS.F32, offset=0) -> bytes:
  return (string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) +
          struct.pack("<IQ", kind, offset))


def header(keys=(), entries=(), version=3, num_keys=None, num_tensors=None) -> bytes:
  counts = struct.pack(
      "<IQQ", version, len(entries) if num_tensors is None else num_tensors,
      len(keys) if num_keys is None else num_keys)
  return b"GGUF" + counts + b"".join(keys) + b"".join(entries)


def padded(raw: bytes, data: bytes = b"", alignment: int = 32) -> bytes:
  return raw + b"\0" * (-len(raw) % alignment) + data


def scalar(key, kind, form, value) -> bytes:
  return string(key) + struct.pack("<I", kind) + struct.pack("<" + form, value)


@pytest.fixture
def write(tmp_path):
  def write(raw: bytes):
    (tmp_path / "x.gguf").write_bytes(raw)
    return tmp_path / "x.gguf"
  return write


FORMS = {0: ("B", 200), 1: ("b", -3), 2: ("H", 60000), 3: ("h", -300), 4: ("I", 4000000000),
         5: ("i", -70000), 6: ("f", 0.5), 7: ("?", True), 10: ("Q", 2**63), 11: ("q", -2**62),
         12: ("d", 0.1)}


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_of_value_is_read(write, version):
  keys = [scalar(f"k{kind}", kind, *FORMS[kind]) for kind in FORMS]
  keys.append(string("text") + struct.pack("<I", 8) + string("grüße"))
  keys.append(string("words") + struct.pack("<IIQ", 9, 8, 2) + string("a") + string(""))
  keys.append(string("numbers") + struct.pack("<IIQ3i", 9, 5, 3, 1, -2, 3))
  file = gguf_file.read(write(header(keys, version=version)))
  for kind, (_, value) in FORMS.items():
    assert file.metadata[f"k{kind}"] == value and type(file.metadata[f"k{kind}"]) is type(value)
  assert file.metadata["text"] == "grüße"
  assert file.metadata["words"] == ["a", ""] and file.metadata["numbers"] == [1, -2, 3]


@pytest.mark.parametrize("alignment", [32, 64])
def test_tensors_are_where_the_header_says(write, alignment):
  keys = [scalar("general.alignment", 4, "I", alignment)]
  numbers = np.arange(24, dtype=np.float32)
  raw = padded(header(keys, [entry("a"), entry("b", (2, 3, 2), offset=alignment * 2)]),
               padded(numbers[:8].tobytes(), numbers[:12].tobytes(), alignment * 2), alignment)
  file = gguf_file.read(write(raw))
  assert file.tensors["a"].shape == (2, 4) and file.tensors["b"].shape == (2, 3, 2)
  np.testing.assert_array_equal(file.tensors["a"].read(), numbers[:8].reshape(2, 4))
  np.testing.assert_array_equal(file.tensors["b"].read(), numbers[:12].reshape(2, 3, 2))


@pytest.mark.parametrize("kind", [
    KINDS.F32, KINDS.F16, KINDS.BF16, KINDS.Q4_0, KINDS.Q4_1, KINDS.Q5_0, KINDS.Q8_0, KINDS.Q2_K,
    KINDS.Q3_K, KINDS.Q4_K, KINDS.Q5_K, KINDS.Q6_K])
def test_quantised_tensors_are_decoded(write, kind):
  block, size = gguf.GGML_QUANT_SIZES[kind]
  columns = 2 * max(block, 4)
  blocks = np.random.default_rng(0).integers(0, 60, (3, columns // block * size), np.uint8)
  raw = padded(header((), [entry("w", (columns, 3), kind)]), blocks.tobytes())
  file = gguf_file.read(write(raw))
  assert file.tensors["w"].shape == (3, columns)
  np.testing.assert_array_equal(
      file.tensors["w"].read(), gguf.dequantize(blocks, kind).astype(np.float32))


def refused(path, problem: str):
  with pytest.raises(LoadError, match=problem) as caught:
    gguf_file.read(path)
  assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_cut_off_anywhere_is_refused(write):
  """At every byte of the header, and in the data."""
  keys = [scalar("k", 4, "I", 1), string("words") + struct.pack("<IIQ", 9, 8, 2) + string("a") * 2]
  raw = padded(header(keys, [entry()]), bytes(32))
  gguf_file.read(write(raw))
  for size in range(len(raw)):
    refused(write(raw[:size]), "empty|cut off or damaged")


def test_a_flipped_bit_never_gives_another_exception(write):
  """Every single-bit error of the header either is refused or leaves a file that can be read."""
  keys = [scalar("k", 4, "I", 1), string("words") + struct.pack("<IIQ", 9, 8, 2) + string("a") * 2]
  head = header(keys, [entry()])
  raw = padded(head, bytes(32))
  refusals = 0
  for bit in range(8 * len(head)):
    damaged = bytearray(raw)
    damaged[bit // 8] ^= 1 << bit % 8
    try:
      for tensor in gguf_file.read(write(bytes(damaged))).tensors.values():
        tensor.read()
    except LoadError as error:
      refusals += 1
      assert "\n" not in str(error)
  assert refusals > 4 * len(head)  # more than half of them


@pytest.mark.parametrize("raw, problem", [
    (b"", "empty"),
    (b"PK\3\4" + bytes(60), "starts with"),
    (header(version=1), "version is 1"),
    (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "little-endian"),
    (header(num_tensors=2**63), "number of tensors is"),
    (header(num_keys=2**63), "number of metadata keys is"),
    (header(num_keys=1), "cut off"),
    (header([struct.pack("<Q", 2**40)], num_keys=1), "length of a metadata key is"),
    (header([string("k") + struct.pack("<IQ", 8, 2**50)]), "length of the value of 'k' is"),
    (header([string("k") + struct.pack("<IIQ", 9, 8, 2**40)]), "length of the value of 'k' is"),
    (header([string("k") + struct.pack("<IIQ", 9, 12, 2**20)]), "needs 8388608 bytes"),
    (header([string("k") + struct.pack("<IIQ", 9, 9, 1)]), "unsupported item type"),
    (header([string("k") + struct.pack("<I", 77)]), "unknown type 77"),
    (header([struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<IB", 0, 0)]), "not UTF-8"),
    (header([scalar("k", 0, "B", 0)] * 2), "appears twice"),
    (header([scalar("general.alignment", 4, "I", 0)]), "alignment"),
    (padded(header((), [entry(), entry()]), bytes(32)), "'w' appears twice"),
    (padded(header((), [entry(offset=2**62)]), bytes(32)), "file has"),
    (padded(header((), [entry(shape=(2**60, 2**60))]), bytes(32)), "file has"),
    (padded(header((), [entry(shape=(2**63, 0))]), bytes(32)), "'w' is empty"),
    (padded(header((), [entry(shape=(1,) * 9)]), bytes(32)), "number of dimensions"),
    (padded(header((), [entry(kind=250)]), bytes(32)), "unsupported type"),
    (padded(header((), [entry(kind=KINDS.Q4_0)]), bytes(32)), "not a multiple"),
])
def test_a_damaged_header_is_refused(write, raw, problem):
  refused(write(raw), problem)


def test_a_type_without_decoder_is_refused_when_read(write):
  file = gguf_file.read(write(padded(header((), [entry(kind=KINDS.I32)]), bytes(32))))
  with pytest.raises(LoadError, match="stored as I32"):
    file.tensors["w"].read()


def test_what_is_not_a_file_is_refused(tmp_path):
  refused(tmp_path / "none.gguf", "cannot be read")
  refused(tmp_path, "cannot be read")
