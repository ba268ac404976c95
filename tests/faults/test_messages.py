"""Messages of FMUs reach the log, whoever else has used fmpy in the same process."""

from __future__ import annotations

import gc

import fmpy
import pytest

from fmimaster import reference_path, simulate


def test_messages_come_also_after_somebody_else_has_received_those_of_fmpy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def logged() -> int:
        caplog.clear()
        with caplog.at_level("INFO", "fmimaster"):
            simulate(fmu, stop_time=1, step_size=0.1, debug_logging=True)
        return sum("collision" in r.message or "ceiling" in r.message for r in caplog.records)

    fmu = reference_path("fmi2/TwoMassUpper.fmu")
    first = logged()
    assert first > 0
    fmpy.simulate_fmu(str(fmu), stop_time=0.1, debug_logging=True, logger=lambda *_: None)
    gc.collect()
    assert logged() == first
