"""Paths as users and other programs give them, checked where they come in."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fmimaster.errors import FileError


def given_path(path: str | os.PathLike[str]) -> Path:
    """A path; whether there is something is another question.

    Raises
    ------
    FileError
        If no file can have it: it is empty, too long, has a character that paths cannot have, or goes round in links.
    """
    try:
        if not os.fspath(path):
            raise FileError("The path of a file is empty. Give a name.")
        os.stat(path)
    except UnicodeEncodeError:
        raise FileError(f"'{path}' cannot be the path of a file: it is no text.") from None
    except ValueError as error:
        raise FileError(f"'{path}' cannot be the path of a file: {error}.") from None
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise FileError(f"'{path}' cannot be the path of a file: {error.strerror}.") from None
    return Path(path)
