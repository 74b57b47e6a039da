"""The roof of the machine at hand."""

from specjax.measure import machine


def test_this_machine_has_a_roof(monkeypatch):
  monkeypatch.setattr(machine, "_READ", (64, 64))
  monkeypatch.setattr(machine, "_MULTIPLIED", 64)
  found = machine.measure()
  assert found.bandwidth > 0 and found.peak["float32"] > 0 and found.name == "cpu"
