"""Hooks as the kernel calls them: in C where there is a twin, else through one function in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fmimaster.kernel._kernel import ffi, lib
from fmimaster.program.hook import Hook, Twin
from fmimaster.run.native.header import Context
from fmimaster.run.native.lending import Lender


@dataclass(frozen=True, slots=True)
class _Function:
    """A hook or a watch in C.

    Attributes
    ----------
    call : function of the kernel
    data : str
        Name of the structure that it takes. Its fields have the names of the twin's numbers and arrays.
    """

    call: Any
    data: str
    renew: Any = ffi.NULL
    """Of a watch: what is called after an event inside a stretch."""


TWINS: Mapping[str, _Function] = {
    "assumed outputs": _Function(lib.fm_assumed_outputs, "fm_assumed_outputs_data"),
    "weighted change": _Function(lib.fm_weighted_change, "fm_weighted_change_data"),
    "power bonds": _Function(lib.fm_bond_powers, "fm_bonds_data"),
    "power bonds at an instant": _Function(lib.fm_bond_powers_at_instant, "fm_bonds_data"),
    "power bonds with refreshed outputs": _Function(lib.fm_bond_powers_refreshed, "fm_bonds_data"),
    "step size": _Function(lib.fm_step_size, "fm_step_size_data"),
    "prediction error": _Function(lib.fm_prediction_error, "fm_prediction_error_data"),
    "difference of energies": _Function(lib.fm_energy_difference, "fm_energy_difference_data"),
    "start of a loop": _Function(lib.fm_loop_begin, "fm_loop_data"),
    "sweep of a loop": _Function(lib.fm_loop_sweep, "fm_loop_data"),
}
"""The hooks that are written in C, by the names of their twins."""

WATCHES: Mapping[str, _Function] = {
    "changes": _Function(lib.fm_is_unchanged, "fm_changes_data", lib.fm_note_values),
    "event clock": _Function(lib.fm_clock_is_quiet, "fm_clock_data"),
    "observer": _Function(lib.fm_observer_is_quiet, "fm_observer_data"),
}
"""What ends stretches of steps, by the names of the twins."""


def lend_hook(lender: Lender, context: Context, hook: Hook) -> Any:
    """A hook, to be called by the kernel."""
    twin = hook.twin(lender.store)
    if twin is None:
        handle = lender.lent(ffi.new_handle((context, hook)))
        return lender.lent(ffi.new("fm_hook *", (lib.fm_python_call, handle)))
    function = TWINS[twin.name]
    data = lend_data(lender, context, twin, function.data)
    return lender.lent(ffi.new("fm_hook *", (function.call, data)))


def lend_watches(lender: Lender, context: Context, twins: Sequence[Twin]) -> Any:
    """What fm_repeat asks after each attempt: an array of them."""
    functions = [WATCHES[twin.name] for twin in twins]
    watches = [
        (function.call, function.renew, lend_data(lender, context, twin, function.data))
        for function, twin in zip(functions, twins, strict=True)
    ]
    return lender.lent(ffi.new("fm_watch[]", watches))


def lend_data(lender: Lender, context: Context, twin: Twin, structure: str) -> Any:
    """The numbers, arrays and hooks of a twin as the structure that its function takes."""
    hooks = {name: lend_hook(lender, context, hook) for name, hook in twin.hooks.items()}
    return lender.made(structure, **twin.numbers, **twin.arrays, **hooks)


def _call(self: Any, kernel: Any) -> int:
    context, hook = ffi.from_handle(self)
    context.store.interval = kernel.begin, kernel.end
    try:
        again = hook(context.store)
    except BaseException as error:  # Ctrl-C too: it is raised again where the kernel was called
        context.raised = error
        return int(lib.FM_ERROR)
    return int(lib.FM_AGAIN if again else lib.FM_OK)


def _escaped(_kind: Any, error: BaseException, traceback: Any) -> None:
    """Ctrl-C that arrives before the ``try`` of :func:`_call`."""
    context, _ = ffi.from_handle(traceback.tb_frame.f_locals["self"])
    context.raised = error


ffi.def_extern("fm_python_call", error=lib.FM_ERROR, onerror=_escaped)(_call)
