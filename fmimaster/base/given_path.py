"""Paths from users and other programs, checked at the interface."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fmimaster.base.errors import FileError


def given_path(path: str | os.PathLike[str]) -> Path:
    """A path from a user; it need not exist.

    Raises
    ------
    FileError
        If no file can have this path: it is empty, too long, has an invalid character, or its links form a circle.
    """
    try:
        if not os.fspath(path):
            raise FileError("The path of a file is empty. Give a name.")
        os.stat(path)
    except UnicodeEncodeError:
        raise FileError(f"'{path}' cannot be the path of a file: it is not a text.") from None
    except ValueError as error:
        raise FileError(f"'{path}' cannot be the path of a file: {error}.") from None
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise FileError(f"'{path}' cannot be the path of a file: {error.strerror}.") from None
    return Path(path)
