"""Which FMUs of a run have processes of their own, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.configure.settings import Settings
from fmimaster.fmu.library import identity, refuse_second_instances, used_twice
from fmimaster.fmu.load import Loader
from fmimaster.prepare.prepared import Isolated, OwnProcess
from fmimaster.run.choice import native_executor
from fmimaster.system.description import Component
from fmimaster.system.model import Model


def isolated_fmus(
    settings: Settings,
    components: Mapping[str, Component],
    models: Mapping[str, Model],
    loader: Loader,
    by_card: Mapping[str, str],
) -> Isolated:
    """The FMUs that have processes of their own.

    Without a setting these are the FMUs that allow one instance per process, if they are used more than once, and all
    FMUs if the run has a limit that only a process of their own can keep.

    Parameters
    ----------
    by_card
        Name of a component → a note that says why its card recommends it.

    Raises
    ------
    OptionError
        If a name or glob fits no FMU, or the kernel, which isolation needs, was not built.
    ModelError
        If an FMU that allows one instance per process is used several times, and may not be isolated.
    """
    fmus = [name for name, component in components.items() if loader.is_fmu(component)]
    wanted, found = settings.isolate_used, dict[str, OwnProcess]()
    if wanted is True or (wanted is None and settings.needs_isolation):
        found = dict.fromkeys(fmus, OwnProcess())
    elif wanted is not None and wanted is not False:
        found = _named(wanted, fmus)
    users = [(n, components[n].source, models[n]) for n in fmus if n not in found]
    if wanted is None and not found and can_isolate():
        several = used_twice((n, identity(s, m)) for n, s, m in users)
        for group in several:
            found.update(dict.fromkeys(group, OwnProcess(_note(group))))
        new = {n: note for n, note in by_card.items() if n in fmus and n not in found}
        found.update({n: OwnProcess(note) for n, note in new.items()})
    else:
        refuse_second_instances(users)
    if found:
        refuse_if_impossible()
    return found


def can_isolate() -> bool:
    """Whether FMUs can have processes of their own here: the kernel is built."""
    return native_executor() is not None


def refuse_if_impossible() -> None:
    """Raise OptionError if FMUs cannot have processes of their own here."""
    if not can_isolate():
        raise OptionError(
            "isolate: FMUs in processes of their own need the kernel in C, which was not built at installation. "
            "Install a C compiler, and install fmimaster again."
        )


def _named(
    patterns: Sequence[str] | Mapping[str, Any], fmus: Sequence[str]
) -> dict[str, OwnProcess]:
    """Of patterns that fit a name, the name itself counts before a glob, and the first glob before others."""
    for pattern in patterns:
        if not any(name == pattern or fnmatchcase(name, pattern) for name in fmus):
            near = did_you_mean(pattern, fmus)
            raise OptionError(
                f"isolate: '{pattern}' fits no component with an FMU.{near} Expected names or globs; or True "
                "(--isolate all) or False (--isolate none)."
            )
    found = {}
    for name in fmus:
        if fitting := [p for p in patterns if p == name or fnmatchcase(name, p)]:
            first = name if name in fitting else fitting[0]
            where: Any = patterns[first] if isinstance(patterns, Mapping) else True
            found[name] = OwnProcess(addresses=() if where is True else tuple(where))
    return found


def _note(names: Sequence[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return (
        f"{listed} have processes of their own, because their FMU allows one instance per process "
        "(canBeInstantiatedOnlyOncePerProcess)."
    )
