"""Temporary folders that are removed at the end, or, if the process has died, by the next run of the same user.

Beside each folder is a file that the living process holds locked. The system releases the lock when the last process that
has the file open ends, however it ends; processes that are forked keep it. Windows removes no file that is in use, such as
the library of an FMU that has started a program or a thread: its folder stays, with the file, for the next run.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import ctypes
    import msvcrt

    _OPEN = os.O_RDWR | os.O_BINARY

    def lock_file(number: int, *, wait: bool) -> None:
        """Lock a file, or raise OSError; nobody holds it for long while it is waited for."""
        msvcrt.locking(number, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

    def _is_ours(found: os.stat_result) -> bool:
        """Whether a file is of this user: the temporary folder of Windows is."""
        return True

    def _plain(path: Path) -> Path:
        """The path in letters of ASCII, if it has such a form: many FMUs open their files by the code page."""
        short = ctypes.create_unicode_buffer(1000)
        if not str(path).isascii():
            ctypes.windll.kernel32.GetShortPathNameW(str(path), short, 1000)
        return Path(short.value) if short.value else path

    def _release(number: int, lock: Path) -> None:
        """Remove the file of a folder that is gone; Windows removes no file that is open."""
        os.close(number)
        lock.unlink()

else:
    import fcntl

    _OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK

    def lock_file(number: int, *, wait: bool) -> None:
        """Lock a file, or raise OSError."""
        fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_ours(found: os.stat_result) -> bool:
        """Whether a file is of this user."""
        return found.st_uid == os.getuid()

    def _plain(path: Path) -> Path:
        return path

    def _release(number: int, lock: Path) -> None:
        """Remove the file of a folder that is gone, before another run can lock it."""
        try:
            lock.unlink()
        finally:
            os.close(number)


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
            self.path = _plain(self.path)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder with all files; what is in use stays for the next run. Never raises; nothing happens the second
        time."""
        if self._number < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            if self.path.exists():
                os.close(self._number)
            else:
                _release(self._number, self._lock)
        self._number = -1


def _locked_file() -> tuple[int, Path]:
    """A new file beside which the folder will be, and its descriptor."""
    while True:
        number, name = tempfile.mkstemp(_SUFFIX, _PREFIX)
        with suppress(OSError):  # a file system without locks
            lock_file(number, wait=True)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(name), os.fstat(number)):
                return number, Path(name)
        os.close(number)  # another run has found it before it was locked, and has removed it


def remove_folders_of_the_dead() -> None:
    """Remove the folders of this user whose processes have died. Never raises."""
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
    number = os.open(lock, _OPEN)
    is_gone = False
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or not _is_ours(found):
            return
        lock_file(number, wait=False)
        folder = lock.with_suffix("")
        if folder.is_symlink() or (folder.exists() and not _is_ours(folder.stat())):
            return
        shutil.rmtree(folder, ignore_errors=True)
        is_gone = not folder.exists()
    finally:
        if is_gone:
            _release(number, lock)
        else:
            os.close(number)
