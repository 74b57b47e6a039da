"""A lock has one holder, and the lock of a dead one can be taken over by one."""

import json
import os
import socket
import subprocess
import threading

import pytest

from specjax.sweep import locks
from specjax.sweep.locks import Locks


def test_a_lock_has_one_holder(tmp_path):
  with Locks(tmp_path) as one, Locks(tmp_path) as other:
    assert one.take("a") and not other.take("a") and other.take("b")
    assert f"process {os.getpid()} on {socket.gethostname()}" in other.holder("a")
    one.release("a")
    assert other.take("a")
  assert list(tmp_path.iterdir()) == []


def foreign(tmp_path, name="a.0", age=0.0, **changes):
  path = tmp_path / name
  path.write_text(json.dumps(dict(host=socket.gethostname(), pid=os.getpid(), time="") | changes))
  os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
  return path


def dead_pid():
  child = subprocess.Popen(["true"])
  child.wait()
  return child.pid


@pytest.mark.parametrize("age, changes, free", [
    (0, {}, False),
    (0, dict(host="elsewhere", pid=2**22 + 1), False),
    (locks.DEAD - 60, dict(host="elsewhere"), False),
    (locks.DEAD + 60, dict(host="elsewhere"), True),
    (locks.DEAD + 60, {}, True),  # another process has its pid by now
    (0, dict(pid="1"), False), (0, dict(pid=-1), False), (0, dict(pid=10**30), False),
    (locks.DEAD + 60, dict(pid=None), True),
])
def test_a_lock_without_a_sign_of_life_can_be_taken_over(tmp_path, age, changes, free):
  foreign(tmp_path, age=age, **changes)
  with Locks(tmp_path) as mine:
    assert mine.take("a") is free


def test_a_dead_process_of_this_host_holds_nothing(tmp_path):
  foreign(tmp_path, pid=dead_pid())
  with Locks(tmp_path) as one, Locks(tmp_path) as other:
    assert one.take("a") and not other.take("a")
  assert list(tmp_path.iterdir()) == []  # the dead one's is gone too


def test_a_lock_that_says_nothing_counts(tmp_path):
  (tmp_path / "a.0").touch()
  (tmp_path / "a.note").touch()  # not a lock
  with Locks(tmp_path) as mine:
    assert not mine.take("a")
    assert "process None" in mine.holder("a")


def test_a_lock_is_never_without_its_holder(tmp_path, monkeypatch):
  """Whoever is killed while it takes a lock either holds it, and can be found dead, or does not."""
  def killed(source, target):
    assert json.loads(open(source).read())["pid"] == os.getpid()
    raise KeyboardInterrupt

  with Locks(tmp_path) as mine, Locks(tmp_path) as other:
    with monkeypatch.context() as patch:
      patch.setattr(os, "link", killed)
      with pytest.raises(KeyboardInterrupt):
        mine.take("a")
    assert list(tmp_path.iterdir()) == [] and other.take("a")


def test_a_release_leaves_the_lock_of_who_took_over(tmp_path):
  with Locks(tmp_path) as sleeper:
    assert sleeper.take("a")
    later = foreign(tmp_path, "a.1", host="elsewhere")
  assert list(tmp_path.iterdir()) == [later]


def test_a_holder_shows_that_it_lives(tmp_path, monkeypatch):
  monkeypatch.setattr(locks, "BEAT", 0.01)
  with Locks(tmp_path) as mine:
    mine.take("a")
    path = tmp_path / "a.0"
    os.utime(path, (0, 0))
    while path.stat().st_mtime == 0:
      pass
  assert not path.exists()


def test_of_many_that_try_at_once_one_wins(tmp_path):
  names = list(map(str, range(20)))
  for name in names[::2]:
    foreign(tmp_path, f"{name}.0", pid=dead_pid())
  start, won = threading.Barrier(4), []

  def race():
    with Locks(tmp_path) as mine:
      start.wait()
      won.extend(name for name in names if mine.take(name))
      start.wait()  # nobody releases before all have tried

  racers = [threading.Thread(target=race) for _ in range(4)]
  for racer in racers:
    racer.start()
  for racer in racers:
    racer.join()
  assert sorted(won) == sorted(names)
