"""Choice of the executor of a run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from fmimaster.base.errors import OptionError
from fmimaster.plan.plan import Plan
from fmimaster.run.executor import Backend

if TYPE_CHECKING:
    from fmimaster.run.native.executor import NativeExecutor
    from fmimaster.run.reference.executor import ReferenceExecutor

log = logging.getLogger("fmimaster")


ExecutorType: TypeAlias = "type[ReferenceExecutor] | type[NativeExecutor]"


def _reference_executor() -> type[ReferenceExecutor]:
    from fmimaster.run.reference.executor import ReferenceExecutor  # most runs need the kernel's

    return ReferenceExecutor


@cache
def native_executor() -> type[NativeExecutor] | None:
    """The kernel's executor; None, with one warning, where the kernel was not built because of the C compiler."""
    try:
        from fmimaster.run.native.executor import NativeExecutor
    except ImportError as error:
        log.warning(
            "The kernel in C is missing (%s). The C compiler, or the C headers of Python, were missing at "
            "installation, or the compiler failed. Simulations run on the interpreter in Python: the results are the "
            "same, but it is slower. Install a C compiler that works, and install fmimaster again ('pip install -v' "
            "shows the output of the compiler).",
            error,
        )
        return None
    return NativeExecutor


def told_of_exit(
    thread: threading.Thread, tell: Callable[[], None]
) -> AbstractContextManager[None]:
    """Call a function if an FMU that is called in a thread ends the process by exit(); that needs the kernel."""
    try:
        from fmimaster.run.native.shared import telling_of_exit
    except ImportError:
        return nullcontext()
    return telling_of_exit(thread, tell)


def choose_executor(plan: Plan, backend: Backend) -> ExecutorType:
    """The requested executor.

    Raises
    ------
    OptionError
        If the native one is requested and was not built, or does not support the plan.
    """
    if backend is Backend.REFERENCE:
        return _reference_executor()
    native = native_executor()
    if native is not None and native.takes(plan):
        return native
    if backend is Backend.FASTEST:
        return _reference_executor()
    if native is None:
        raise OptionError(
            "There is no native backend: it was not built at installation. Leave the backend out."
        )
    raise OptionError(
        "The native backend cannot convert types where a value can be lost; this system has such connections. Leave the "
        "backend out, or connect variables of matching types."
    )
