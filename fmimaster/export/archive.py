"""The archive of an exported system: its description, its image, its library, and the FMUs of its components."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import IO

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import own_name, put_in_place, reason_of
from fmimaster.kernel import LICENSE, SYSTEMS, system_libraries
from fmimaster.system.archive import Archive, open_archive
from fmimaster.system.model import Model, Source

_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""That a zip archive can have: the same content gives the same bytes."""

_UNIX, _FILE, _PROGRAM = 3, 0o100644 << 16, 0o100755 << 16

_FOLDERS_OF_FMI2 = {
    "x86_64-linux": "linux64",
    "x86_64-windows": "win64",
    "x86_64-darwin": "darwin64",
    "aarch64-darwin": "darwin64",
}
"""Platform of FMI 3.0 → the name that FMI 2.0 has for it; others have the same."""

_SUFFIXES = (".so", ".dll", ".dylib")
"""Of shared libraries."""

_UNIVERSAL = b"\xca\xfe\xba\xbe"
"""The beginning of a library of macOS for several processors."""


@dataclass(frozen=True, slots=True)
class MemberFile:
    """The FMU of one or several components, which has a folder in the archive."""

    source: Source
    model: Model
    components: tuple[str, ...]

    def platforms(self, known: Sequence[str]) -> set[str]:
        """Those of the known platforms for which it has a library."""
        with open_archive(self.source) as archive:
            names = archive.names()
            return {
                p for p in known if any(self._runs(n, p, archive) for n in self.libraries(names))
            }

    def libraries(self, names: Iterable[str]) -> dict[str, str]:
        """Its libraries, each with the name that it has in the exported FMU: that of the model identifier, which some FMUs
        have forgotten where it is the only one."""
        found = dict[tuple[str, str], list[str]]()
        for name in names:
            folder, suffix = _folder_of(name), PurePosixPath(name).suffix
            if folder and suffix in _SUFFIXES:
                found.setdefault((folder, suffix), []).append(name)
        libraries = {}
        for (folder, suffix), every in found.items():
            own = f"binaries/{folder}/{self.model.model_identifier}{suffix}"
            if own in every or len(every) == 1:
                libraries[own if own in every else every[0]] = own
        return libraries

    def _runs(self, library: str, platform: str, archive: Archive) -> bool:
        folder = _folder_of(library)
        if folder == platform:
            return True
        if not self.model.fmi_version.startswith("2") or folder != _FOLDERS_OF_FMI2.get(platform):
            return False
        return platform != "aarch64-darwin" or archive.read(library)[:4] == _UNIVERSAL


def _folder_of(library: str) -> str:
    """The folder of a platform in which a file lies directly; empty if it lies elsewhere."""
    parts = PurePosixPath(library).parts
    return parts[1] if len(parts) == 3 and parts[0] == "binaries" else ""


@dataclass(frozen=True, slots=True)
class Content:
    """What an exported FMU is made of, without its model description.

    Attributes
    ----------
    settable : str
        A letter for each value reference; see :attr:`fmimaster.export.exposed.Exposed.settable`.
    platforms : sequence of str
        As FMI 3.0 names them.
    """

    fmi_version: int
    identifier: str
    image: bytes
    settable: str
    members: Sequence[MemberFile]
    platforms: Sequence[str]
    terminals: bytes | None


def common_platforms(members: Sequence[MemberFile]) -> tuple[list[str], Mapping[str, set[str]]]:
    """The platforms of all libraries; and those of each FMU, by the name of its first component."""
    known = sorted(system_libraries())
    found = {member.components[0]: member.platforms(known) for member in members}
    return [p for p in known if all(p in of for of in found.values())], found


def token_of(content: Content, description: bytes) -> str:
    """The instantiation token: it changes with all that the FMU is made of."""
    digest = sha256(description + content.image + content.settable.encode())
    for member in content.members:
        with open_archive(member.source) as archive:
            for name in _kept(archive):
                digest.update(name.encode() + b"\0")
                archive.copy(name, _Hashed(digest))  # type: ignore[arg-type]  # it is only written
    return f"{{{digest.hexdigest()}}}"


class _Hashed:
    """A hash as a stream to write into."""

    def __init__(self, digest) -> None:  # type: ignore[no-untyped-def]
        self.write = digest.update


def write_archive(path: Path, content: Content, description: bytes, token: str) -> None:
    """Write the FMU, first under another name; an existing file is replaced by the complete one.

    Raises
    ------
    FileError
        If it cannot be written, or the FMU of a component cannot be read.
    """
    unfinished = own_name(path)
    try:
        with ExitStack() as opened, zipfile.ZipFile(unfinished, "w") as archive:
            files = _files(content, description, token, opened)
            for name, write in sorted(files, key=itemgetter(0)):
                info = zipfile.ZipInfo(name, _FIRST_DATE)
                info.create_system = _UNIX
                info.external_attr = _PROGRAM if "binaries/" in name else _FILE
                info.compress_type = zipfile.ZIP_DEFLATED
                if name.endswith("/"):
                    archive.writestr(info, b"")
                    continue
                with archive.open(info, "w", force_zip64=True) as stream:
                    write(stream)
        put_in_place(unfinished, path)
    except OSError as error:
        raise FileError(f"'{path}' cannot be written: {reason_of(error)}.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


_Write = Callable[[IO[bytes]], object]


def _files(
    content: Content, description: bytes, token: str, opened: ExitStack
) -> Iterator[tuple[str, _Write]]:
    """Name of each file, and what writes it as long as the archives are open."""
    yield "modelDescription.xml", _whole(description)
    yield "resources/system.image", _whole(content.image)
    interface = f"{token}\n{content.settable}\n"
    yield "resources/interface.txt", _whole(interface.encode())
    yield "documentation/licenses/fmimaster.txt", _whole((SYSTEMS / LICENSE).read_bytes())
    if content.terminals is not None:
        yield "terminalsAndIcons/terminalsAndIcons.xml", _whole(content.terminals)
    libraries = system_libraries()
    folders = _FOLDERS_OF_FMI2 if content.fmi_version == 2 else {}
    # both processors of macOS have one library, and in FMI 2.0 one folder
    for folder, platform in {folders.get(p, p): p for p in content.platforms}.items():
        library = libraries[platform]
        name = f"binaries/{folder}/{content.identifier}{library.suffix}"
        yield name, _whole(library.read_bytes())
    for number, member in enumerate(content.members):
        archive = opened.enter_context(open_archive(member.source))
        yield from _member(f"resources/members/{number}/", archive, member)


def _member(folder: str, archive: Archive, member: MemberFile) -> Iterator[tuple[str, _Write]]:
    names = _kept(archive)
    libraries = member.libraries(names)
    for name in names:
        yield folder + libraries.get(name, name), partial(archive.copy, name)
    if RESOURCES.rstrip("/") in archive.folders():
        yield folder + RESOURCES, _whole(b"")  # also if it is empty


RESOURCES = "resources/"


def _whole(content: bytes) -> _Write:
    return lambda stream: stream.write(content)


def _kept(archive: Archive) -> list[str]:
    """The files of an FMU that an exported system has: all but its documentation, whose licences stay."""
    left_out, licenses = "documentation/", "documentation/licenses/"
    names = sorted(archive.names())
    return [n for n in names if not n.startswith(left_out) or n.startswith(licenses)]
