"""The FMUs of a folder, and the files beside each: what a conformance run has to do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path, PurePosixPath

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, FmimasterError
from fmimaster.base.files import given_path
from fmimaster.base.installation import installed_version
from fmimaster.fmu.description.model_description import offered_interfaces
from fmimaster.fmu.shared_library import FMI2, FMI3
from fmimaster.system.archive import open_archive
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Source
from fmimaster.system.xml import parse_xml

IMPORTER = "fmimaster"
"""The importing tool in the results tree."""

NOT_COMPLIANT = "notCompliantWithLatestRules"
"""A file of this name beside an FMU says that it does not follow the cross-check rules."""

_KINDS = {
    "cs": Interface.CO_SIMULATION,
    "me": Interface.MODEL_EXCHANGE,
    "se": Interface.SCHEDULED_EXECUTION,
}
"""Folder of the cross-check layout → interface; "se" is ours, the layout has none."""
_SHORT = {interface: short for short, interface in _KINDS.items()}
_VERSIONS = ("1.0", "2.0", "3.0")
_UNKNOWN = "unknown"
"""In the results tree, for what an FMU does not tell."""
_VARIABLES = b"<ModelVariables"
_NO_FILE_NAME = '<>:"/\\|?*'
"""Characters that not every file system allows in a name."""


@dataclass(frozen=True)
class FmuCase:
    """One FMU, to be run by one of its interfaces.

    Attributes
    ----------
    name, fmu : str
        As in its verdict.
    path : Path
        Of its file.
    interface : Interface or None
        None if the FMU cannot be read.
    fmi_version, exporter, exporter_version : str
    reference, options, inputs : Path or None
        ``MODEL_ref.csv``, ``MODEL_ref.opt`` and ``MODEL_in.csv`` beside it.
    follows_rules : bool
        Whether no file beside it says the contrary.
    results : str
        Its folder in the results tree, relative to the output folder.
    problem : str
        Why it cannot be read; empty if it can.
    """

    name: str
    fmu: str
    path: Path
    interface: Interface | None = None
    fmi_version: str = ""
    exporter: str = ""
    exporter_version: str = ""
    reference: Path | None = None
    options: Path | None = None
    inputs: Path | None = None
    follows_rules: bool = True
    results: str = ""
    problem: str = ""

    @property
    def model(self) -> str:
        """Name of its file, without suffix; the names of the files beside it begin with it."""
        return self.path.stem

    def beside(self, file: Path | None) -> str:
        """The path of a file beside it, as ``fmu``; empty if there is none."""
        return "" if file is None else str(PurePosixPath(self.fmu).with_name(file.name))

    @property
    def platform(self) -> str:
        """The platform of this machine in the words of its version of FMI."""
        return FMI2 if self.fmi_version.startswith(("1.", "2.")) else FMI3


@dataclass(frozen=True)
class _Head:
    """What the model description has before its variables."""

    fmi_version: str = ""
    tool: str = ""
    interfaces: tuple[Interface, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class _Place:
    """What the folders of the cross-check layout say: ``VERSION/KIND/PLATFORM/TOOL/TOOL VERSION/MODEL``."""

    fmi_version: str
    interface: Interface
    exporter: str
    exporter_version: str


def find_cases(
    folder: str | os.PathLike[str], interfaces: Sequence[Interface] = tuple(Interface)
) -> tuple[FmuCase, ...]:
    """All FMUs in a folder and its subfolders, in the order of their paths.

    An FMU in the cross-check layout is run by the interface of its folder, each other one by all that it offers.

    Parameters
    ----------
    interfaces
        The interfaces by which FMUs are run; those with another one only are left out.

    Raises
    ------
    FileError
        If the folder is missing or has no FMUs.
    """
    root = given_path(folder)
    if not root.is_dir():
        missing = "is a file" if root.exists() else "does not exist"
        raise FileError(f"'{folder}' {missing}. Expected a folder with FMUs.")
    files = sorted(_fmus(root), key=lambda path: path.relative_to(root).as_posix())
    if not files:
        has_results = any(root.glob("**/passed")) or any(root.glob("**/failed"))
        raise FileError(
            f"'{folder}' has no file '*.fmu'. "
            + (
                "It is a tree of results. Expected the folder with the FMUs."
                if has_results
                else "Expected a folder with FMUs, or the layout of the FMI cross-check."
            )
        )
    taken = set[str]()  # folders of the results tree
    return tuple(
        case for path in files for case in _cases_of(root, path, frozenset(interfaces), taken)
    )


def _fmus(root: Path) -> Iterator[Path]:
    for folder, _, files in os.walk(root):  # does not follow links to folders
        for file in files:
            if file.lower().endswith(".fmu") and (path := Path(folder, file)).is_file():
                yield path


def _cases_of(
    root: Path, path: Path, wanted: frozenset[Interface], taken: set[str]
) -> Iterator[FmuCase]:
    head, place = _head(path), _place(path.absolute())
    named = path.relative_to(root)
    tool, version = exporter_of(head.tool)
    offered = head.interfaces
    chosen: Iterable[Interface | None] = [place.interface] if place else offered or (None,)
    for interface in chosen:
        if interface is not None and interface not in wanted:
            continue
        is_second = place is None and interface not in offered[:1]
        name = named.with_suffix("").as_posix()
        case = FmuCase(
            name=f"{name}:{interface.value}" if is_second and interface else name,
            fmu=named.as_posix(),
            path=path.absolute(),
            interface=interface,
            fmi_version=head.fmi_version or (place.fmi_version if place else ""),
            exporter=place.exporter if place else tool,
            exporter_version=place.exporter_version if place else version,
            reference=_beside(path, "_ref.csv"),
            options=_beside(path, "_ref.opt"),
            inputs=_beside(path, "_in.csv"),
            follows_rules=not path.with_name(NOT_COMPLIANT).exists(),
            problem=head.problem,
        )
        yield _with_results(case, taken)


def _beside(path: Path, end: str) -> Path | None:
    file = path.absolute().with_name(f"{path.stem}{end}")
    return file if file.is_file() else None


def _place(path: Path) -> _Place | None:
    """What the last folders around a file say, if they are those of the cross-check layout."""
    if len(path.parts) <= len(_LAYOUT):
        return None
    version, kind, _, tool, tool_version, _ = path.parts[-len(_LAYOUT) - 1 : -1]
    if version not in _VERSIONS or kind not in _KINDS:
        return None
    return _Place(version, _KINDS[kind], tool, tool_version)


_LAYOUT = ("version", "kind", "platform", "tool", "tool version", "model")


def _head(path: Path) -> _Head:
    """The start of a model description; its variables are not parsed, because there may be many."""
    try:
        with open_archive(Source(path)) as archive:
            text = archive.read("modelDescription.xml")
        before, variables, _ = text.partition(_VARIABLES)
        end = b"</fmiModelDescription>" if variables else b""
        root = parse_xml(before + end, f"{path}/modelDescription.xml")
    except FmimasterError as error:
        return _Head(problem=str(error))
    version = root.get("fmiVersion") or ""
    return _Head(_short(version), root.get("generationTool") or "", offered_interfaces(root))


def _short(version: str) -> str:
    """``3.0-beta`` → ``3.0``."""
    return version[:3] if version[:3] in _VERSIONS else version


def _with_results(case: FmuCase, taken: set[str]) -> FmuCase:
    """The case with its folder ``results/FMI/KIND/PLATFORM/IMPORTER/VERSION/EXPORTER/VERSION/MODEL``, or that with a number
    behind it; it is taken now."""
    parts = (
        case.fmi_version,
        _SHORT[case.interface] if case.interface else "",
        case.platform,
        IMPORTER,
        installed_version(),
        case.exporter,
        case.exporter_version,
        case.model,
    )
    folder = "/".join(["results", *map(_file_name, parts)])
    names = (folder if k == 1 else f"{folder}-{k}" for k in count(1))
    free = next(name for name in names if name.lower() not in taken)
    taken.add(free.lower())
    return replace(case, results=free)


def _file_name(text: str) -> str:
    """A text as the name of a folder."""
    name = "".join("_" if c in _NO_FILE_NAME or not c.isprintable() else c for c in text)
    name = name.strip(" .")[:80]
    return name or _UNKNOWN


_GLUED = re.compile(r"(?<=[a-z]{2})(?=\d+\.\d+\.\d)")
"""Between the name and the version in ``Hopsan2.23.0``."""
_DIGITS = re.compile(r"\d+[a-z]*$|\d\.|\d{4}")
"""A word with a version: ``2016``, ``2023x``, ``v1.12.0``; ``20-sim`` is none."""
_TOOLS = ("OpenModelica", "Overture")
"""Tools that write their name in several ways."""
_AROUND = "(),;:[]-"
_NO_WORDS = ("version", "release")


def exporter_of(tool: str) -> tuple[str, str]:
    """Name and version from the attribute ``generationTool``.

    >>> exporter_of("Dymola Version 2016 (64-bit), 2015-04-14")
    ('Dymola', '2016')
    >>> exporter_of("Reference FMUs (v0.0.23)")
    ('Reference FMUs', '0.0.23')
    >>> exporter_of("Hopsan2.23.0.20250820.1508")
    ('Hopsan', '2.23.0.20250820.1508')
    >>> exporter_of("OpenModelica Compiler OMCompiler v1.18.0-dev")
    ('OpenModelica', '1.18.0-dev')
    >>> exporter_of("20-sim")
    ('20-sim', '')
    """
    name: list[str] = []
    for word in _GLUED.sub(" ", tool).split():
        bare = word.strip(_AROUND)
        if bare.lower() in _NO_WORDS:
            continue
        if name and _DIGITS.search(bare):
            return _tool(name), bare.removeprefix("v")
        if word.startswith("(") and name:
            break
        name += [bare] * bool(bare)
        if word != bare:
            break
    return _tool(name), ""


def _tool(words: list[str]) -> str:
    return words[0] if words and words[0] in _TOOLS else " ".join(words)
