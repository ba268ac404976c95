"""FMUs that allow one instance per process, and the instances of them that this process uses."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from fmimaster.base.errors import ModelError
from fmimaster.system.description import Source
from fmimaster.system.model import Model

Identity = frozenset[tuple[object, ...]]
"""The identity of an FMU: its file, independent of the path, and its instantiation token. Two FMUs that share one of
them are the same."""

_USED: dict[tuple[object, ...], tuple[int, str]] = {}
"""For all simulations in this process: part of an identity → process and full name of the instance. A forked process
has a copy, in which the entries of its parent are ignored."""

_LOCK = threading.Lock()


def identity(source: Source, model: Model) -> Identity:
    """The identity of an FMU that allows one instance per process; empty for all others."""
    if not model.capabilities.can_be_instantiated_only_once_per_process:
        return frozenset()
    file = source.path.stat()
    parts: set[tuple[object, ...]] = {(file.st_dev, file.st_ino, source.member)}
    if model.instantiation_token:
        parts.add((model.model_identifier, model.instantiation_token))
    return frozenset(parts)


def used_twice(users: Iterable[tuple[str, Identity]]) -> list[list[str]]:
    """Groups of two or more instances, by name, of one FMU that allows only one."""
    known = list(users)
    groups: dict[object, tuple[set[object], list[int]]] = {}
    for k, (_, its) in enumerate(known):
        same = [groups[part] for part in its if part in groups]
        group = same[0] if same else (set(), [])
        for other in same[1:]:
            if other is not group:
                group[0].update(other[0])
                group[1].extend(other[1])
                groups.update(dict.fromkeys(other[0], group))
        group[0].update(its)
        group[1].append(k)
        groups.update(dict.fromkeys(its, group))
    found = {id(numbers): sorted(numbers) for _, numbers in groups.values()}
    return [[known[k][0] for k in numbers] for numbers in found.values() if len(numbers) > 1]


def claim(parts: Identity, name: str, where: str) -> None:
    """Note that an FMU is in use, until :func:`release`.

    Raises
    ------
    ModelError
        If it is in use already, by this simulation or another one of this process.
    """
    with _LOCK:
        for part in parts:
            process, first = _USED.get(part, (0, ""))
            if process == os.getpid():
                raise _second_instance(first, name, where)
        _USED.update(dict.fromkeys(parts, (os.getpid(), name)))


def release(parts: Identity) -> None:
    """The FMU is not in use any more."""
    with _LOCK:
        for part in parts:
            _USED.pop(part, None)


def refuse_second_instances(users: Iterable[tuple[str, Source, Model]]) -> None:
    """Raise ModelError if a system has several instances, by name, of an FMU that allows one."""
    sources = {name: (source, model) for name, source, model in users}
    for names in used_twice((n, identity(*its)) for n, its in sources.items()):
        raise _second_instance(names[0], names[1], str(sources[names[1]][0]))


def _second_instance(first: str, second: str, where: str) -> ModelError:
    return ModelError(
        f"'{second}' would be the second instance of '{where}' in this process, but the FMU allows one only "
        f"(canBeInstantiatedOnlyOncePerProcess); the first is '{first}'. Use it for one component only, and run "
        "simulations at the same time in separate processes."
    )
