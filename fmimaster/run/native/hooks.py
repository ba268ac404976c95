"""Hooks as the kernel calls them."""

from __future__ import annotations

from typing import Any

from fmimaster.kernel._kernel import ffi, lib
from fmimaster.program.hook import Hook
from fmimaster.run.native.instances import Context
from fmimaster.run.native.lending import Lender


def lend_hook(lender: Lender, context: Context, hook: Hook) -> Any:
    """A hook, to be called by the kernel."""
    handle = lender.lent(ffi.new_handle((context, hook)))
    return lender.lent(ffi.new("fm_hook *", (lib.fm_python_call, handle)))


def _call(self: Any, kernel: Any) -> int:
    context, hook = ffi.from_handle(self)
    context.store.interval = kernel.begin, kernel.end
    try:
        again = hook(context.store)
    except BaseException as error:  # Ctrl-C too: it is raised again where the kernel was called
        context.raised = error
        return int(lib.FM_ERROR)
    return int(lib.FM_AGAIN if again else lib.FM_OK)


ffi.def_extern("fm_python_call")(_call)
