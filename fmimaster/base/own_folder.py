"""Temporary folders that are removed at the end, or, if the process has died, by the next run of the same user.

Beside each folder is a file that the living process holds locked. The system releases the lock when the last process that
has the file open ends, however it ends; processes that are forked keep it.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PREFIX, _SUFFIX = "fmimaster-", ".lock"


class OwnFolder:
    """A new empty folder for this process.

    Raises
    ------
    OSError
        If it cannot be made.
    """

    def __init__(self) -> None:
        self._number, self._lock = _locked_file()
        self.path = self._lock.with_suffix("")
        try:
            self.path.mkdir(mode=0o700)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder with all files. Never raises; nothing happens the second time."""
        if self._number < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self._number)
        self._number = -1
        with suppress(OSError):
            self._lock.unlink()


def _locked_file() -> tuple[int, Path]:
    """A new file beside which the folder will be, and its descriptor."""
    while True:
        number, name = tempfile.mkstemp(_SUFFIX, _PREFIX)
        if sys.platform == "win32":
            return number, Path(name)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(number, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(name), os.fstat(number)):
                return number, Path(name)
        os.close(number)  # another run has found it before it was locked, and has removed it


def remove_folders_of_the_dead() -> None:
    """Remove the folders of this user whose processes have died. Never raises."""
    if sys.platform == "win32":
        return
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    _remove_if_dead(Path(entry.path))


def _remove_if_dead(lock: Path) -> None:
    """Remove a folder whose lock nobody holds.

    Raises
    ------
    OSError
        If somebody holds it, or it is of another user.
    """
    if sys.platform == "win32":
        return
    number = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            return
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = lock.with_suffix("")
        if folder.is_symlink() or (folder.exists() and folder.stat().st_uid != os.getuid()):
            return
        shutil.rmtree(folder, ignore_errors=True)
        lock.unlink()
    finally:
        os.close(number)
