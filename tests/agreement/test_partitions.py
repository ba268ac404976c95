"""Model partitions that the kernel activates in C: the same rows, calls and errors as in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from call_trace import traced
from command_line import changed, reference
from strict_fmu import Strict

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Jacobi, Richardson, Waveform
from fmimaster.base.errors import CallError
from fmimaster.run import Backend
from fmimaster.run.native.instances import PythonEntry
from fmimaster.run.native.scheduled import ScheduledEntry
from fmimaster.steps import PID, StepDoubling

PARTITIONS = reference_path("fmi3/Partitions.fmu")
BACKENDS = (Backend.REFERENCE, Backend.NATIVE)


def changed_partitions(folder: Path, *replaced: tuple[str, str]) -> Path:
    """Partitions with another model description than its library has."""

    def description(text: str) -> str:
        for right, wrong in replaced:
            assert right in text
            text = text.replace(right, wrong)
        return text

    return changed(reference("fmi3/Partitions.fmu"), folder / "a.fmu", description=description)


def with_plant(fmu: Path = PARTITIONS) -> SystemBuilder:
    """Four partitions of which one is triggered by another FMU, and two plants in a row."""
    builder = SystemBuilder("controlled")
    builder.add(
        "source", reference_path("fmi3/EventSource.fmu"), {"count": 3, "times": [1, 2, *[7] * 6]}
    )
    builder.add("se", fmu, {"delay.counter": 1, "delay.resolution": 3})
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    builder.connect("source.event", "se.request")
    builder.connect("source.done", "se.amount")
    builder.add("follower", reference_path("fmi3/Dahlquist.fmu"))
    builder.connect("se.laterTicks", "plant.u")
    builder.connect("plant.x", "follower.u")
    return builder


def outcome(system: SystemBuilder, backend: Backend, **settings: Any) -> Any:
    """Times, columns and counted calls of a run, or the facts of its error; and the FMI calls that were made."""
    settings = {"step_size": "0.3", "output_variables": ["*"]} | settings
    with traced() as trace:
        try:
            results: Results = simulate(system, stop_time=10, backend=backend, **settings)
        except CallError as error:
            found: Any = str(error), error.function, error.status, error.time, error.messages
        else:
            columns = {name: column.tolist() for name, column in results.items()}
            counted = [(i.calls, i.restores, i.events) for i in results.statistics.instances]
            found = results.time.tobytes(), columns, counted
    return found, trace.calls


def same_in_both(make: Callable[[], SystemBuilder], **settings: Any) -> Any:
    """What both executors do alike."""
    expected, found = (outcome(make(), backend, **settings) for backend in BACKENDS)
    assert found[0] == expected[0]
    assert found[1] == expected[1]
    return expected[0]


pytestmark = pytest.mark.in_this_process("calls are traced in the process of the run")


def test_partitions_are_activated_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests below would show nothing about it."""
    made = list[ScheduledEntry]()
    bind = ScheduledEntry.bind

    def noted(self: ScheduledEntry, *arguments: Any) -> None:
        made.append(self)
        bind(self, *arguments)

    def refused(self: PythonEntry, *arguments: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(ScheduledEntry, "bind", noted)
    monkeypatch.setattr(PythonEntry, "bind", refused)
    simulate(PARTITIONS, stop_time=3, step_size=1, backend="native")
    assert made


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"algorithm": Richardson(Jacobi())},
        {
            "algorithm": Richardson(Jacobi()),
            "step_size": PID(0.2, (StepDoubling(0.01),), smallest=0.001, reject_above=1.0),
        },
    ],
    ids=["fixed steps", "step doubling", "step-size control"],
)
def test_a_plant_and_partitions(settings: dict[str, Any]) -> None:
    same_in_both(with_plant, **settings)


def test_steps_are_undone_without_fmu_states(tmp_path: Path) -> None:
    fmu = changed_partitions(
        tmp_path, ("canGetAndSetFMUState", "other"), ("canSerializeFMUState", "another")
    )
    same_in_both(lambda: with_plant(fmu), algorithm=Richardson(Jacobi()))


def test_nothing_is_read_between_a_set_and_an_activation(tmp_path: Path) -> None:
    """The FMU refuses it (FMI 3.0, 5.2.3): an input that always has a value is set in each step."""
    unclocked = changed_partitions(tmp_path, ('clocks="11" start="0"', 'start="0"'))

    def with_input() -> SystemBuilder:
        builder = SystemBuilder("input")
        builder.add("se", unclocked, {"request": 2})
        builder.add("other", reference_path("fmi3/Feedthrough.fmu"))
        builder.connect("se.laterTicks", "other.Int32_input")
        builder.connect("other.Int32_output", "se.amount")
        return builder

    _, columns, _ = same_in_both(with_input)
    assert max(columns["se.laterTicks"]) == 1
    assert max(columns["se.amount"]) == 1


def test_a_partition_that_fails(tmp_path: Path) -> None:
    fmu = changed_partitions(tmp_path, ('intervalDecimal="4.0"', 'intervalDecimal="2.5"'))
    message, function, *_ = same_in_both(lambda: with_plant(fmu))
    assert function == "fmi3ActivateModelPartition"
    assert "the clock 'slow' is to tick at t = 7 s, and not at 5.5 s" in message


def test_a_call_in_clock_update_that_fails(tmp_path: Path) -> None:
    fmu = changed_partitions(
        tmp_path, ('name="fifth" valueReference="14"', 'name="fifth" valueReference="99"')
    )
    message, function, *_ = same_in_both(lambda: with_plant(fmu))
    assert function == "fmi3GetClock"
    assert "99" in message


def test_a_clock_that_is_not_read_in_clock_update(tmp_path: Path) -> None:
    fmu = changed_partitions(
        tmp_path,
        ('valueReference="14" causality="output"', 'valueReference="14" causality="local"'),
    )
    message, function, *_ = same_in_both(lambda: with_plant(fmu))
    assert function == "fmi3ActivateModelPartition"
    assert "has not asked for the clock 'fifth' in Clock Update Mode" in message


def test_a_second_tick_at_one_time() -> None:
    def twice() -> SystemBuilder:
        builder = SystemBuilder("twice")
        builder.add(
            "source", reference_path("fmi3/EventSource.fmu"), {"count": 2, "times": [2] * 8}
        )
        builder.add("se", PARTITIONS)
        builder.connect("source.event", "se.request")
        return builder

    message, *_ = same_in_both(twice)
    assert message.startswith("The clock 'se.request' ticks a second time at t = 2 s")


@pytest.mark.parametrize("goes_back", [True, False])
@pytest.mark.parametrize(
    "algorithm", [Richardson(Jacobi()), Waveform(Jacobi(), sweeps=2)], ids=["halves", "sweeps"]
)
def test_what_was_set_stays_so_in_a_repeated_step(
    algorithm: Any, goes_back: bool, tmp_path: Path
) -> None:
    """The FMU refuses reading before its next activation, also where an earlier state is restored."""
    replaced = [('clocks="11" start="0"', 'start="0"')]
    if not goes_back:
        replaced += [("canGetAndSetFMUState", "other"), ("canSerializeFMUState", "another")]
    fmu = changed_partitions(tmp_path, *replaced)
    counter = Strict("fmi3", events=True).write(tmp_path, "counter")

    def with_counter() -> SystemBuilder:
        builder = SystemBuilder("repeated")
        builder.add("counter", counter, {"period": 0.37})
        builder.add("se", fmu)
        builder.connect("counter.n", "se.amount")
        builder.connect("se.laterTicks", "counter.u")
        return builder

    _, columns, _ = same_in_both(with_counter, algorithm=algorithm, event_mode=True)
    assert max(columns["se.amount"]) == 26
