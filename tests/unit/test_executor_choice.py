"""The choice of the executor of a run, with and without the kernel in C."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from python_fmu import PythonFmu, plan_of

from fmimaster import OptionError
from fmimaster.run.choice import choose_executor, native_executor
from fmimaster.run.executor import Backend
from fmimaster.run.reference.executor import ReferenceExecutor


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernel cannot be imported, as where it was not built."""
    monkeypatch.setitem(sys.modules, "fmimaster.run.native.executor", None)
    native_executor.cache_clear()
    yield
    native_executor.cache_clear()


@pytest.mark.usefixtures("without_kernel")
def test_a_missing_kernel_is_told_once_and_the_interpreter_is_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plan = plan_of({"a": PythonFmu(outputs={"y": lambda v: 1.0})})
    chosen = [choose_executor(plan, Backend.FASTEST) for _ in range(2)]
    assert chosen == [ReferenceExecutor, ReferenceExecutor]
    [warning] = caplog.messages
    assert warning.startswith("The kernel in C is missing (")
    assert "Simulations run on the interpreter in Python" in warning


@pytest.mark.usefixtures("without_kernel")
def test_a_missing_kernel_that_is_requested_is_an_error() -> None:
    plan = plan_of({"a": PythonFmu(outputs={"y": lambda v: 1.0})})
    with pytest.raises(OptionError, match="There is no native backend: it was not built"):
        choose_executor(plan, Backend.NATIVE)
