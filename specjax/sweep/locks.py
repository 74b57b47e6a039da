"""Which process works on what, among processes that share nothing but a folder.

A lock on NAME is the file `NAME.G`, G = 0, 1, ...; it is a hard link to a file that is already
written, so that exactly one process can make it, on network file systems too, and none can be
killed between making and writing it. It holds host, pid and time, and its holder touches it twice a
minute. Whoever made the file of the highest G holds the lock, unless that process is dead; then
whoever makes `NAME.(G + 1)` first takes the lock over. No file has to be removed for that, so of
two that try at once one wins.

A holder counts as dead
  * on this host, as soon as no process has its pid (a container that shares the folder needs a host
    name of its own);
  * on any host, once it has not touched its lock for ten minutes.
If it was only asleep, its cell is measured twice; both results are kept.
"""

import datetime
import json
import os
import pathlib
import socket
import tempfile
import threading

FOLDER = "locks"  # of a sweep
BEAT, DEAD = 30.0, 600.0  # seconds between touches, and until a holder counts as dead


class Locks:
  """The locks that this process holds in one folder; a context, at whose end all are released."""

  def __init__(self, folder: pathlib.Path):
    folder.mkdir(parents=True, exist_ok=True)
    self._folder = folder
    self._held: dict[str, pathlib.Path] = {}
    self._stop = threading.Event()
    self._thread = threading.Thread(target=self._beat, daemon=True)

  def __enter__(self) -> "Locks":
    self._thread.start()
    return self

  def __exit__(self, *_) -> None:
    self._stop.set()
    self._thread.join()
    for name in list(self._held):
      self.release(name)

  def take(self, name: str) -> bool:
    """Locks `name`; False if a living process holds it.

    Between seeing that work is wanted and locking it another process may have finished it, so the
    caller has to look again once this returns True.
    """
    files = self._files(name)
    if files and not self._is_dead(files[max(files)]):
      return False
    path = self._folder / f"{name}.{max(files, default=-1) + 1}"
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    with tempfile.NamedTemporaryFile("w", dir=self._folder, prefix="new-") as file:
      json.dump(dict(host=socket.gethostname(), pid=os.getpid(), time=now), file)
      file.flush()
      os.chmod(file.name, 0o644)
      try:
        os.link(file.name, path)
      except FileExistsError:
        return False
    self._held[name] = path
    return True

  def release(self, name: str) -> None:
    """Releases a lock; removes the files of those that it was taken over from too."""
    own = int(self._held.pop(name).suffix[1:])
    for number, path in self._files(name).items():
      if number <= own:  # a later one belongs to a process that thought this one dead
        path.unlink(missing_ok=True)

  def holder(self, name: str) -> str:
    """Who holds `name`, in words."""
    files = self._files(name)
    found = _read(files[max(files)]) if files else {}
    return f"process {found.get('pid')} on {found.get('host')} since {found.get('time')}"

  def _files(self, name: str) -> dict[int, pathlib.Path]:
    """The files of a lock by their number, in ascending order."""
    found = {path.suffix[1:]: path for path in self._folder.glob(f"{name}.*")}
    return dict(sorted((int(n), path) for n, path in found.items() if n.isdecimal()))

  def _is_dead(self, path: pathlib.Path) -> bool:
    found = _read(path)
    if found.get("host") == socket.gethostname() and not _is_running(found.get("pid")):
      return True
    try:
      # The clock of the folder: those of two hosts may differ.
      with tempfile.NamedTemporaryFile(dir=self._folder, prefix="clock-") as clock:
        return os.stat(clock.name).st_mtime - path.stat().st_mtime > DEAD
    except FileNotFoundError:  # released just now
      return False

  def _beat(self) -> None:
    while not self._stop.wait(BEAT):
      for path in list(self._held.values()):
        try:
          os.utime(path)
        except OSError:  # released just now, or the folder is away for a moment
          pass


def _read(path: pathlib.Path) -> dict:
  """What a lock says of its holder; empty if it cannot be read."""
  try:
    with path.open(encoding="utf-8") as file:
      found = json.loads(file.read(4096))
  except (OSError, ValueError, RecursionError):
    return {}
  return found if isinstance(found, dict) else {}


def _is_running(pid) -> bool:
  if not isinstance(pid, int) or pid <= 0:
    return True  # not known; its touches tell
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  except (PermissionError, OverflowError):
    return True
  return True
