"""With --fuzz-minutes, each fuzzer is repeated with other examples until its time is up."""

from __future__ import annotations

from time import monotonic

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    minutes: float = pyfuncitem.config.getoption("--fuzz-minutes")
    if not minutes:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    end = monotonic() + 60.0 * minutes
    while monotonic() < end:
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    return True
