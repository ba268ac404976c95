"""A run that is led from pause to pause: the same bits as one run, and values that are set as a table would."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_fmus import modelica_fmu

from fmimaster import (
    CallError,
    DescriptionError,
    Interrupted,
    OptionError,
    PythonComponent,
    Results,
    Run,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Waveform
from fmimaster.events import LookAhead, NoEventClock
from fmimaster.inputs import FIRST_ORDER, LINEAR
from fmimaster.run import Backend
from fmimaster.run.executor import Repeated
from fmimaster.steps import PID, EmbeddedOrders, FreeStep, MultiRate

CAR = reference_path("systems/quarter-car-a-fmi3.ssp")
FEEDTHROUGH = reference_path("fmi3/Feedthrough.fmu")
ROOM = reference_path("fmi3/ThermostatRoom.fmu")
MASSES = reference_path("systems/two-mass-b1-mixed.ssp")
BACKENDS = (Backend.NATIVE, Backend.REFERENCE)


def same(one: Results, other: Results) -> bool:
    return (
        one.names == other.names
        and all(np.array_equal(one[name], other[name]) for name in one)
        and one.events == other.events
        and one.steps == other.steps
    )


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "settings",
    [
        {"system": CAR, "step_size": 0.02},
        {"system": CAR, "step_size": 0.02, "algorithm": Jacobi()},
        {
            "system": MASSES,
            "step_size": 0.05,
            "algorithm": GaussSeidel(LINEAR),
            "event_clock": NoEventClock(),
        },
        {"system": MASSES, "step_size": 0.05, "event_clock": LookAhead()},
        {"system": CAR, "step_size": 0.01, "algorithm": Waveform(GaussSeidel(), sweeps=2)},
        {"system": CAR, "step_size": MultiRate(0.02, {"wheel": 0.01})},
        {"system": MASSES, "step_size": 0.02, "output_interval": 0.05},
    ],
    ids=["chosen", "Jacobi", "Gauss-Seidel", "events", "waveform", "rates", "interval"],
)
def test_pauses_at_points_of_the_run_change_no_bit(
    settings: dict[str, Any], backend: Backend
) -> None:
    if isinstance(settings.get("event_clock"), LookAhead):  # with steps on a grid
        settings = settings | {"step_size": FreeStep(0.05), "stop_time": 0.5}
    simulation = Simulation(**{"stop_time": 1, **settings, "backend": backend})
    whole = simulation.run()
    pauses = whole.time[np.diff(whole.time, prepend=whole.time[0]) > 0.0]
    with simulation.start() as run:
        for pause in pauses[3::7]:
            run.advance_to(float(pause))
            assert run.time == pause
            assert run.results.time[-1] == pause
            assert not run.is_finished
        run.advance(100)
        assert run.is_finished
    assert same(run.results, whole)
    assert run.results.statistics.steps == whole.statistics.steps


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("event_mode", [False, True])
@pytest.mark.parametrize("algorithm", [Jacobi(), Jacobi(FIRST_ORDER)], ids=["held", "first order"])
def test_what_is_set_is_what_a_table_with_jumps_gives(
    algorithm: Algorithm, event_mode: bool, backend: Backend
) -> None:
    names = ("Float64_continuous_output", "Int32_output", "Boolean_output")
    simulation = Simulation(
        FEEDTHROUGH,
        stop_time=1,
        step_size=0.125,
        output_variables=names,
        algorithm=algorithm,
        event_mode=event_mode,
        backend=backend,
    )
    table = {
        "time": [0.0, 0.25, 0.25, 0.625, 0.625, 1.0],
        "Float64_continuous_input": [0.0, 0.0, 2.5, 2.5, -1.0, -1.0],
        "Int32_input": [0, 0, 7, 7, 7, 7],
        "Boolean_input": [False, False, False, False, True, True],
    }
    expected = Simulation(**(vars(simulation) | {"input": table})).run()
    with simulation.start() as run:
        run.advance_to(0.25)
        run["Float64_continuous_input"] = 2.5
        run["Int32_input"] = 7
        run.advance_to(0.625)
        run["Float64_continuous_input"] = -1
        run["Boolean_input"] = True
        run.advance_to(1)
    for name in ("time", *names):
        assert np.array_equal(run.results[name], expected[name])
    assert [event.time for event in run.results.events] == [e.time for e in expected.events]


def test_control_and_extrapolation_begin_anew_where_a_value_is_set() -> None:
    rule = PID(0.02, (EmbeddedOrders(1e-3),), smallest=1e-4)
    simulation = Simulation(CAR, stop_time=1, step_size=rule, algorithm=Jacobi(LINEAR))
    table = {"time": [0.0, 0.5, 0.5, 1.0], "wheel.road": [0.1, 0.1, 0.2, 0.2]}
    expected = Simulation(**(vars(simulation) | {"input": table})).run()
    with simulation.start() as run:
        run.advance(0.5)
        run["wheel.road"] = 0.2
        run.advance(0.5)
    for name in ("time", *run.results.names):
        assert np.array_equal(run.results[name], expected[name])


def test_values_are_read_by_the_names_of_results_and_of_inputs() -> None:
    simulation = Simulation(CAR, stop_time=1, step_size=0.01, algorithm="Jacobi")
    with simulation.start() as run:
        assert run.settable == ("wheel.road",)
        run.advance(0.1)
        for name, values in run.results.columns.items():
            assert run[name] == values[-1]
        # a held input has the output of the step before
        assert run["chassis.force"] == -run.results["wheel.force"][-2]
        assert run["chassis.mc"] == 400.0
        assert run["wheel.road"] == 0.1
        run["wheel.road"] = 0.25
        assert run["wheel.road"] == 0.25
        with pytest.raises(OptionError, match=r"no variable 'chassis\.velocty'.*Did you mean"):
            run["chassis.velocty"]
        with pytest.raises(OptionError, match=r"Record it: output_variables=\['chassis\.vc'"):
            run["chassis.vc"]


def test_arrays_text_and_enumerations_can_be_set() -> None:
    names = ["Float64_vector_output", "String_output", "Enumeration_output"]
    simulation = Simulation(
        FEEDTHROUGH, stop_time=1, step_size=0.25, output_variables=names, event_mode=False
    )
    with simulation.start() as run:
        vector = run["Float64_vector_input"]
        run["Float64_vector_input"] = vector + 1.0
        run["String_input"] = "set"
        run["Enumeration_input"] = 2
        assert run["Enumeration_input"] == 2
        run.advance(0.25)
        assert run["Enumeration_output"] == 2
        assert run["Float64_vector_output"].tolist() == (vector + 1.0).tolist()
        assert run["String_output"] == "set"


@pytest.mark.parametrize("event_mode", [False, True])
@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_tunable_parameter_can_be_set(version: str, event_mode: bool) -> None:
    name = "Float64_tunable_parameter"
    simulation = Simulation(
        modelica_fmu("Feedthrough", version),
        stop_time=1,
        step_size=0.25,
        output_variables=[name],
        event_mode=event_mode,
    )
    with simulation.start() as run:
        assert name in run.settable
        run.advance(0.5)
        run[name] = 3.0
        run.advance(0.5)
    # recorded as the FMU has it, also at the event
    assert run.results[name].tolist()[-2:] == [3.0, 3.0]
    assert run.results[name][2] == 0.0


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("wheel.force", 1.0, OptionError, "it is an output. Can be set: wheel.road."),
        ("chassis.mc", 1.0, OptionError, "it is not tunable. Give it in start_values."),
        ("wheel.rod", 1.0, OptionError, "no variable 'wheel.rod'. Did you mean 'wheel.road'"),
        ("wheel.road", nan, OptionError, "'wheel.road' was set to nan. Give finite numbers."),
        ("wheel.road", "x", DescriptionError, "'x' is not a value of type Float64"),
        ("wheel.road", [1, 2], DescriptionError, "got 2 values, expected 1"),
    ],
)
def test_what_cannot_be_set_is_refused_and_the_run_goes_on(
    name: str, value: Any, error: type[Exception], message: str
) -> None:
    with Simulation(CAR, stop_time=0.1, step_size=0.01).start() as run:
        with pytest.raises(error) as raised:
            run[name] = value
        assert message in str(raised.value)
        run.advance(1)
        assert run.is_finished


def test_a_connected_input_is_refused_with_its_source() -> None:
    simulation = Simulation(CAR, stop_time=0.1, step_size=0.01)
    plan = simulation.prepare().plan
    link = plan.links[0]
    fed = f"{plan.instances[link.target].name}.{link.input.name}"
    source = f"{plan.instances[link.source].name}.{link.output.name}"
    with simulation.start() as run, pytest.raises(OptionError, match=f"'{source}' feeds it"):
        run[fed] = 1.0
    given = {"wheel.road": lambda t: 0.0}
    with Simulation(CAR, stop_time=0.1, step_size=0.01, input=given).start() as run:
        assert run.settable == ()
        with pytest.raises(OptionError, match=r"'input\.wheel\.road' feeds it.*nothing"):
            run["wheel.road"] = 1.0


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda run: run.advance(0), "advance(0): expected a positive duration"),
        (lambda run: run.advance("x"), "'x' is not a time"),
        (lambda run: run.advance_to(0.5), "expected a time after the present time 0.5 s"),
        (lambda run: run.advance_to(1.01), "not after the stop time 1 s"),
    ],
)
def test_a_time_that_makes_no_sense_is_refused(act: Callable[[Any], None], message: str) -> None:
    with Simulation(CAR, stop_time=1, step_size=0.01).start() as run:
        run.advance(0.5)
        with pytest.raises(OptionError) as raised:
            act(run)
        assert message in str(raised.value)
        assert run.time == 0.5


def test_a_run_that_has_ended_is_neither_advanced_nor_set() -> None:
    with Simulation(CAR, stop_time=0.1, step_size=0.01).start() as run:
        run.advance(1)
        with pytest.raises(OptionError, match=r"The run has ended at t = 0\.1 s"):
            run.advance(0.1)
        with pytest.raises(OptionError, match=r"the run has ended at t = 0\.1 s"):
            run["wheel.road"] = 0.2
        assert run["wheel.force"] == run.results["wheel.force"][-1]
    run.close()  # for the second time
    assert repr(run) == "<Run: finished at t = 0.1 s of 0.1 s>"


def test_durations_are_added_exactly_and_pauses_lie_between_points() -> None:
    with Simulation(CAR, stop_time=1, step_size="1/3").start() as run:
        for _ in range(3):
            run.advance(0.1)
        assert run.time == 0.3
        run.advance_to(3 * 0.2)  # 0.6000000000000001 is 0.6
        assert run.results.time.tolist() == [0.0, 0.1, 0.2, 0.3, 1 / 3, 3 * 0.2]
        assert [str(steps.cause) for steps in run.results.steps][:2] == ["imposed point", "grid"]


def test_a_pause_that_the_steps_do_not_allow_is_refused() -> None:
    fixed = Simulation(reference_path("fmi3/Faulty.fmu"), stop_time=1, step_size=0.1)
    rates = Simulation(CAR, stop_time=1, step_size=MultiRate(0.1, {"wheel": 0.05}))
    for simulation, message in (
        (fixed, "'Faulty' cannot vary its step size. Pause at multiples of the step size 0.1 s"),
        (rates, "it has no grid. Pause at multiples of the step size 0.05 s or 0.1 s"),
    ):
        with simulation.start() as run:
            with pytest.raises(OptionError) as raised:
                run.advance(0.02)
            assert message in str(raised.value)
            run.advance("0.1")
            assert run.time == 0.1
    with rates.start() as run:
        run.advance(0.05)
        run["wheel.road"] = 0.1  # a step of the wheel ends here
        run.advance(0.05)
    slow = Simulation(CAR, stop_time=1, step_size=MultiRate(0.05, {"wheel": 0.1}))
    with slow.start() as run:
        run.advance(0.05)
        with pytest.raises(OptionError, match=r"a step of 'wheel'.* began at 0 s"):
            run["wheel.road"] = 0.1


def test_accuracy_cannot_pause() -> None:
    with pytest.raises(OptionError, match="cannot pause"):
        Simulation(CAR, stop_time=1, accuracy=1e-3).start()


def fail_at_half(component: Any, t: float, h: float) -> None:
    component.y = t + h
    if t == 0.5 and component.interrupts:
        signal.raise_signal(signal.SIGINT)
    elif t == 0.5:
        raise ZeroDivisionError("on purpose")


def led(run: Run, *pauses: float) -> None:
    for pause in pauses:
        run.advance_to(pause)


def failing(**parameters: float) -> Simulation:
    builder = SystemBuilder()
    component = PythonComponent(
        outputs={"y": 0.0}, parameters={"interrupts": 0.0}, step=fail_at_half
    )
    builder.add("a", component, parameters)
    return Simulation(builder, stop_time=1e5, step_size=0.125)


def test_an_error_in_an_advance_ends_the_run_and_no_row_is_lost() -> None:
    with pytest.raises(CallError, match="on purpose") as raised, failing().start() as run:
        led(run, 0.25, 1)
    expected = [0.0, 0.125, 0.25, 0.375, 0.5]
    assert raised.value.results.time.tolist() == run.results.time.tolist() == expected
    assert run.is_finished


def test_ctrl_c_in_an_advance_ends_the_run_and_no_row_is_lost() -> None:
    with pytest.raises(Interrupted) as raised, failing(interrupts=1.0).start() as run:
        led(run, 0.25, 1e5)
    times = run.results.time.tolist()
    assert times[:5] == [0.0, 0.125, 0.25, 0.375, 0.5]
    assert raised.value.results.time.tolist() == times
    assert raised.value.time == times[-1]
    assert run.is_finished


def test_a_run_that_is_being_advanced_is_neither_advanced_nor_set() -> None:
    """By a Python component, which is called in the thread of the FMUs; another thread is no different."""
    errors: list[str] = []

    def interfere(component: Any, t: float, h: float) -> None:
        acts: list[Callable[[], object]]
        acts = [lambda: run.advance(1), lambda: run.__setitem__("unit.u", 1.0), run.close]
        for act in acts:
            with pytest.raises(OptionError) as raised:
                act()
            errors.append(str(raised.value))

    builder = SystemBuilder()
    builder.add("unit", PythonComponent(inputs={"u": 0.0}, step=interfere))
    with Simulation(builder, stop_time=1, step_size=0.5).start() as run:
        run.advance(1)
    assert len(errors) == 6
    assert all("An advance of this run is under way" in error for error in errors)
    assert run.results.time.tolist() == [0.0, 0.5, 1.0]


def test_an_exception_in_between_ends_the_run_and_is_raised(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    simulation = Simulation(CAR, stop_time=1, step_size=0.125)
    with (
        pytest.raises(OptionError, match="expected a time after"),
        simulation.start(output_file=file) as run,
    ):
        led(run, 0.25, -1)
    assert run.results.time.tolist() == [0.0, 0.125, 0.25]
    assert [line.split(",")[0] for line in file.read_text(encoding="utf-8").splitlines()] == [
        '"time"',
        "0.0",
        "0.125",
        "0.25",
    ]


def test_rows_are_written_while_a_run_goes_on_and_it_may_end_early(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    simulation = Simulation(CAR, stop_time=1, step_size=0.125)
    with simulation.start(output_file=file) as run:
        run.advance(0.25)
        assert run.results.rows == 3
        assert file.read_text(encoding="utf-8").splitlines()[-1].startswith("0.25,")
        run.advance(0.5)
    assert file.read_text(encoding="utf-8").splitlines()[-1].startswith("0.75,")
    assert run.is_finished


def test_a_run_that_is_forgotten_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    run = Simulation(CAR, stop_time=1, step_size=0.125).start()
    threads = set(threading.enumerate()) - before
    del run
    gc.collect()
    assert len(threads) == 2  # of the FMUs, and of what they print
    for thread in threads:
        thread.join(5.0)
        assert not thread.is_alive()


def test_an_advance_starts_no_thread_and_does_its_steps_in_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Simulation(CAR, stop_time=1, step_size=0.125).start() as run:
        executor = run._session.executor
        calls, started, repeat = list[int](), list[object](), executor.repeat

        def counted(*given: Any) -> Repeated:
            calls.append(len(given[2]))
            return repeat(*given)

        monkeypatch.setattr(executor, "repeat", counted)
        monkeypatch.setattr(threading.Thread, "start", started.append)
        run.advance(0.25)
        run.advance_to(0.75)
        assert calls == [3, 5]
        assert not started


def test_attributes_of_other_libraries_have_a_hint() -> None:
    simulation = Simulation(reference_path("fmi3/ThermostatRoom.fmu"), stop_time=1)
    assert message_of(simulation, "step") == (
        "'Simulation' object has no attribute 'step'. "
        "Did you mean run = simulation.start(), and then run.advance(duration)?"
    )
    assert message_of(simulation, "stop_tim").endswith(" Did you mean 'stop_time' or 'start_time'?")
    assert not hasattr(simulation, "__array__")
    with simulation.start() as run:
        assert message_of(run, "set").endswith("no attribute 'set'. Did you mean run['u'] = 1.0?")
        assert message_of(run, "is_finishd").endswith(" Did you mean 'is_finished'?")
        with pytest.raises(TypeError, match="not iterable"):
            list(run)  # type: ignore[call-overload]


def message_of(of: object, name: str) -> str:
    with pytest.raises(AttributeError) as caught:
        getattr(of, name)
    return str(caught.value)


def test_a_duration_that_is_too_short_for_another_time_is_refused() -> None:
    room = Simulation(reference_path("fmi3/ThermostatRoom.fmu"), stop_time=1, step_size="1/10")
    with room.start() as run, pytest.raises(OptionError, match="too short to reach another time"):
        run.advance(1e-12)
