"""The checker for FMUs of the proposal's kit, as its users run it, and copies of FMUs with other files."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

KIT = Path(__file__).parents[1] / "docs" / "proposal" / "kit"
MANIFEST = "extra/org.fmimaster.fmi-ls-events/fmi-ls-manifest.xml"
DESCRIPTION = "modelDescription.xml"
Change = Callable[[str], str]


def imported() -> Iterator[Any]:
    """The checker's main function, imported beside its modules, which are forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(KIT))
    try:
        import check_fmu  # type: ignore[import-not-found]

        yield check_fmu.main
    finally:
        sys.path.remove(str(KIT))
        for name in set(sys.modules) - before:
            if str(KIT) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def check(main: Any, fmu: Path, *options: str) -> tuple[int, str]:
    """Exit status and output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main([str(fmu), *options])
    return status, printed.getvalue()


def refused(main: Any, fmu: Path, *options: str) -> str:
    """What the checker says of a wrong command line."""
    told = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stderr(told):
        main([str(fmu), *options])
    return told.getvalue()


def broken(text: str) -> set[str]:
    """The requirements that an output names as broken."""
    return set(re.findall(r"^FAIL  (\w+)", text, re.MULTILINE))


def changed(source: Path, target: Path, member: str, change: Change) -> Path:
    """A copy of an FMU in which one file is another one."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == member:
                text = change(content.decode())
                assert text != content.decode()
                content = text.encode()
            new.writestr(info, content)
    return target


def replaced(*texts: str) -> Change:
    """A change by regular expressions: each with the text that takes its place."""

    def change(text: str) -> str:
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            text = re.sub(old, new, text)
        return text

    return change
