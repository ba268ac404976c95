"""Measures an FMU: each measurement in a process of its own, with a deadline."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime, timezone
from math import isfinite
from typing import Any, get_type_hints

from fmimaster.apart.run import EndCause, EndedProcess, run_apart
from fmimaster.base.errors import FmimasterError, OptionError
from fmimaster.base.files import given_path
from fmimaster.base.installation import installed_version
from fmimaster.base.text import clipped
from fmimaster.cards.card import (
    DEADLINE,
    FORBIDDEN,
    LOST,
    NO_RUN,
    NOT_DECLARED,
    NOTHING_THERE,
    FmuCard,
    cached_card,
    keep_card,
)
from fmimaster.cards.findings import TITLES
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.shared_library import FMI3, find_library
from fmimaster.studies.probing import answers, runs
from fmimaster.studies.probing.excitation import Use, changeable_inputs, observed_variables
from fmimaster.studies.probing.subject import Messages
from fmimaster.studies.probing.ticks import time_based
from fmimaster.system.archive import source_hash
from fmimaster.system.declarations import Interface, attribute_name
from fmimaster.system.model import Causality, DataType, Model, Source

log = logging.getLogger("fmimaster")

_MOST_PRINTED = 2000
"""Most characters that are kept of what an FMU prints in one measurement."""
_MOST_OF_A_REASON = 300
"""Most characters of the reason why there is no result."""


def probe(
    path: str | os.PathLike[str],
    *,
    interface: Interface | str | None = None,
    deadline: float = DEADLINE,
    use_cache: bool = True,
    again: bool = False,
    progress: Callable[[str], None] | None = None,
) -> FmuCard:
    """Measure what an FMU really does, beside what it declares.

    Each measurement loads the FMU in a process of its own, so a crash or a hang ends only this measurement. The card is
    kept in a folder of the user, by the hash of the FMU, and is not measured a second time.

    Parameters
    ----------
    path : path
        An FMU, or the folder of an unpacked one.
    interface : Interface or its name, ``"CoSimulation"``, ``"ModelExchange"`` or ``"ScheduledExecution"``
        Default: the first of these that the FMU has.
    deadline : float, in s
        Wall time after which a measurement is ended.
    use_cache : bool
        Whether cards are kept, and kept ones are used.
    again : bool
        Whether the FMU is measured although there is a card.
    progress : function
        Called with the name of each measurement when it begins.

    Returns
    -------
    FmuCard

    Raises
    ------
    FileError, ModelError
        If the file is no FMU, or has no binary for this platform.
    OptionError
        If the deadline is not a number greater than 0, or on other platforms than Linux.
    """
    if not (isfinite(deadline) and deadline > 0.0):
        raise OptionError(f"deadline: {deadline!r}, expected a number of seconds greater than 0.")
    source = Source(given_path(path))
    chosen = None if interface is None else Interface.named(interface)
    with_hash = source_hash(source)
    if use_cache and not again and (known := cached_card(with_hash, chosen)) is not None:
        log.info("card of '%s': measured on %s", source, known.made)
        return known
    fmu = FmuFile(source, interface=chosen)
    try:
        find_library(fmu.folder, fmu.model, source)
        use = Use(Source(fmu.folder), source.path.stem, chosen)
        measured = _Measurements(use, fmu.model, deadline, progress)
        results = measured.made()
    finally:
        fmu.close()
    card = FmuCard(
        fmu=source.path.name,
        sha256=with_hash,
        fmimaster=installed_version(),
        platform=FMI3,
        made=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        not_measured=measured.not_measured,
        printed=measured.printed,
        **_declarations(fmu.model),
        **results,
    )
    if use_cache and card.loading is not None:  # a missing library or licence may be there later
        keep_card(card, chosen)
    return card


def _declarations(model: Model) -> dict[str, Any]:
    """What the model description says, as fields of the card."""

    def sorted_names(
        found: Any, assumed: frozenset[str], outputs: set[str]
    ) -> dict[str, tuple[str, ...]]:
        return {
            output: tuple(sorted(found[output] & inputs))
            for output in found
            if output in outputs and output not in assumed
        }

    observed = {v.name for v in observed_variables(model)}
    inputs = {v.name for v in changeable_inputs(model)}
    can = model.capabilities
    # as the FMU declares it: whether fmimaster can go back by copies is another question
    of_fmu = replace(
        can, can_get_and_set_fmu_state=can.can_get_and_set_fmu_state and not can.copies_states
    )
    return {
        "model_name": model.name,
        "fmi_version": model.fmi_version,
        "interface": model.interface.value,
        "generation_tool": model.generation_tool,
        "declared": {attribute_name(f.name): getattr(of_fmu, f.name) for f in fields(of_fmu)},
        "input_clocks": sum(
            v.type is DataType.CLOCK for v in model.with_causality(Causality.INPUT)
        ),
        "time_based_clocks": len(time_based(model)),
        "declared_feedthrough": sorted_names(
            model.dependencies, model.assumed_dependencies, observed
        ),
        "declared_feedthrough_at_start": sorted_names(
            model.initial_dependencies, model.assumed_initial_dependencies, observed
        ),
    }


class _Measurements:
    """All measurements of one FMU, one after the other."""

    def __init__(
        self, use: Use, model: Model, deadline: float, progress: Callable[[str], None] | None
    ) -> None:
        self._use, self._model, self._deadline = use, model, deadline
        self._progress = progress
        self.not_measured: dict[str, str] = {}
        self.printed: dict[str, str] = {}

    def made(self) -> dict[str, Any]:
        """The results by the names of their fields in the card."""
        return {name: value for name, value in self._each() if value is not None}

    def _each(self) -> Iterator[tuple[str, Any]]:
        can, model = self._model.capabilities, self._model
        yield "loading", self._one("loading", runs.loading)
        found = self._run()
        if found is None:
            said = self.not_measured.get("loading") == self.not_measured["stepping"]
            others = set(TITLES) - {"loading", *(() if said else ("stepping",))}
            self.not_measured.update(dict.fromkeys(sorted(others), NO_RUN))
            return
        yield "stepping", found[0]
        yield "feedthrough", self._feedthrough()
        saves, serializes = can.can_get_and_set_fmu_state, can.can_serialize_fmu_state
        # of others, an integrator of fmimaster returns
        is_stepped = model.interface is Interface.CO_SIMULATION
        returns = is_stepped and can.might_return_early_from_do_step
        for name, function, is_declared in (
            ("replay", runs.replay, saves),
            ("serialization", runs.serialization, serializes),
            ("varying_steps", answers.varying_steps, True),
            ("tiny_steps", answers.tiny_steps, True),
            ("beyond_stop", answers.beyond_stop, True),
            ("early_return", answers.early_return, returns),
            ("leak", runs.leak, True),
        ):
            yield name, self._one(name, function, without="" if is_declared else NOT_DECLARED)
        for name, compared in (
            ("two_processes", runs.again),
            ("reset", runs.reset),
            ("read_at_end", runs.read_at_end),
            ("read_before", runs.read_before),
            ("two_instances", runs.two_instances),
        ):
            yield name, self._one(name, compared, found[1])
        if is_stepped and "read_before" in self.not_measured:
            self.not_measured["read_before"] = FORBIDDEN

    def _feedthrough(self) -> Any:
        """Feedthrough; without Step Mode if a call that FMI forbids there has ended the process."""
        name, model = "feedthrough", self._model
        outputs = [v for v in observed_variables(model) if v.causality is Causality.OUTPUT]
        if not (changeable_inputs(model) and outputs):
            self.not_measured[name] = NOTHING_THERE
            return None
        found = self._one(name, answers.feedthrough, True)
        if found is None and model.interface is Interface.CO_SIMULATION:
            found = self._one(name, answers.feedthrough, False)
            if found is not None:
                del self.not_measured[name]
        return found

    def _run(self) -> Any:
        """The run; if it ends early with varied inputs, with held ones."""
        found = self._one("stepping", runs.stepping)
        if found is not None and (not found[0].ended or found[0].terminated):
            return found
        varied, self._use = self._use, replace(self._use, varied=False)
        held = self._one("stepping", runs.stepping)
        if held is None or (found is not None and held[0].steps <= found[0].steps):
            self._use, held = varied, found
        if held is not None:
            self.not_measured.pop("stepping", None)
        return held

    def _one(
        self, name: str, function: Callable[..., Any], *arguments: Any, without: str = ""
    ) -> Any:
        """The result of a measurement; None, with the reason in ``not_measured``, if there is none."""
        if without:
            self.not_measured[name] = without
            return None
        if self._progress is not None:
            self._progress(name)
        ended = run_apart(
            _quietly,
            function,
            self._use,
            *arguments,
            deadline=self._deadline,
            returns=get_type_hints(function)["return"],
        )
        if ended.output.strip():
            self.printed[name] = ended.output.strip()[:_MOST_PRINTED]
        if ended.cause is EndCause.RETURNED:
            return ended.value
        reason = _reason(ended).replace(f"'{self._use.source}'", "the FMU")
        self.not_measured[name] = clipped(reason, _MOST_OF_A_REASON)
        return None


def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """In its process: the log is silent."""
    with Messages():
        return function(*arguments)


def _reason(ended: EndedProcess) -> str:
    """Why there is no result: how the process has ended, or the error."""
    if ended.error is None:
        return f"{LOST}{ended.how}"
    if isinstance(ended.error, FmimasterError):
        return str(ended.error)
    return f"{type(ended.error).__name__}: {ended.error}"
