"""A component in Python is one like all others: for each algorithm, in both executors, and with what is wrong in it."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

from fmimaster import (
    CallError,
    DescriptionError,
    ModelError,
    PythonComponent,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.run import Backend
from fmimaster.steps import FreeStep, Locate, StepRule
from fmimaster.system import Unit

BOTH = (Backend.REFERENCE, Backend.FASTEST)


class Mass(PythonComponent):
    """A mass that a force moves, by the symplectic Euler method."""

    inputs = {"force": 0.0}
    states = {"v": 1.0}
    outputs = {"x": 0.0}

    def step(self, t: float, h: float) -> None:
        self.v += h * self.force
        self.x += h * self.v


def spring_force(spring: Any, t: float) -> None:
    spring.force = -spring.stiffness * spring.x


def spring() -> PythonComponent:
    return PythonComponent(
        inputs={"x": 0},
        outputs={"force": 0},
        parameters={"stiffness": 4},
        output=spring_force,
        dependencies={"force": ["x"]},
    )


def oscillator(**settings: Any) -> Simulation:
    system = SystemBuilder("oscillator")
    system.add("mass", Mass())
    system.add("spring", spring())
    system.connect("mass.x", "spring.x")
    system.connect("spring.force", "mass.force")
    usual: dict[str, Any] = {"stop_time": 1, "step_size": 0.125, "output_variables": ["mass.*"]}
    return Simulation(system, **usual | settings)


def run_alone(component: PythonComponent, **settings: Any) -> Results:
    system = SystemBuilder()
    system.add("unit", component)
    usual: dict[str, Any] = {"step_size": 0.25}
    return Simulation(system, **{"stop_time": 1, **usual, **settings}).run()


def fails(component: PythonComponent, **settings: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        run_alone(component, **settings)
    return caught.value


def same(first: Results, second: Results) -> bool:
    return all(np.array_equal(first[n], second[n]) for n in ("time", *first.names))


# Numbers


@pytest.mark.parametrize("backend", BOTH, ids=lambda b: b.value)
def test_a_loop_of_two_components_gives_the_numbers_of_a_loop_by_hand(backend: Backend) -> None:
    x, v, force, h = 0.0, 1.0, 0.0, 0.125
    expected = [x]
    for _ in range(8):
        v += h * force
        x += h * v
        force = (
            -4.0 * expected[-1]
        )  # the spring steps at the same time: it has the position of before
        expected.append(x)
    results = oscillator(algorithm="Jacobi", backend=backend).run()
    assert results["mass.x"].tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "algorithm",
    [Jacobi(), GaussSeidel(), Waveform(GaussSeidel()), Richardson(Jacobi())],
    ids=lambda a: type(a).__name__,
)
def test_both_executors_agree_bit_by_bit(algorithm: Algorithm) -> None:
    first, second = (oscillator(algorithm=algorithm, backend=b).run() for b in BOTH)
    assert same(first, second)


def test_threads_change_no_bit() -> None:
    assert same(oscillator(threads=1).run(), oscillator(threads=2).run())


def test_runs_do_not_influence_each_other_and_leave_the_object_as_it_was() -> None:
    mass = Mass()
    before = dict(vars(mass))
    assert same(run_alone(mass), run_alone(mass))
    assert vars(mass) == before


class Counter(PythonComponent):
    """Counts its steps in an attribute of its own, in a list, and in an array."""

    outputs = {"n": np.int32(0), "total": 0.0, "each": np.zeros(2)}

    def __init__(self) -> None:
        self.steps: list[float] = []

    def start(self, t: float) -> None:
        self.number = 0

    def step(self, t: float, h: float) -> None:
        self.number += 1
        self.steps.append(h)
        self.each[0] += h
        self.n, self.total = self.number, sum(self.steps)


@pytest.mark.parametrize("backend", BOTH, ids=lambda b: b.value)
def test_all_attributes_go_back_with_a_step_that_is_undone(backend: Backend) -> None:
    results = run_alone(Counter(), algorithm=Waveform(Jacobi(), sweeps=3), backend=backend)
    assert results["unit.n"].tolist() == [0, 1, 2, 3, 4]
    assert results["unit.n"].dtype == np.int32
    assert results["unit.total"].tolist() == results["unit.each"][:, 0].tolist()
    assert results["unit.total"][-1] == 1.0


def test_a_component_with_a_state_of_its_own_can_define_how_it_is_kept() -> None:
    class Kept(PythonComponent):
        outputs = {"y": 0.0}
        log: list[str] = []

        def start(self, t: float) -> None:
            self.secret = iter(range(100))  # no copy of it is made

        def step(self, t: float, h: float) -> None:
            self.y += 1

        def save(self) -> str:
            self.log.append("save")
            return "saved"

        def restore(self, saved: str) -> None:
            self.log.append(saved)

    assert run_alone(Kept(), algorithm=Waveform(Jacobi()), step_size=1)["unit.y"][-1] == 1.0
    assert set(Kept.log) == {"save", "saved"}


def test_a_change_of_a_boolean_output_is_located_by_undone_steps() -> None:
    class Switch(PythonComponent):
        outputs = {"on": False}

        def step(self, t: float, h: float) -> None:
            self.on = t + h > 0.3

    system = SystemBuilder()
    system.add("switch", Switch())
    system.add("lamp", PythonComponent(inputs={"on": False}, outputs={"bright": 0.0}))
    system.connect("switch.on", "lamp.on")
    results = Simulation(system, stop_time=1, step_size=Locate(0.25, tolerance=1e-3)).run()
    assert results.time[results["switch.on"]][0] == pytest.approx(0.3, abs=1e-3)


def test_a_located_change_is_an_event_of_an_fmu_with_event_mode() -> None:
    class Thermostat(PythonComponent):
        inputs = {"temperature": 20.0}
        outputs = {"heating": True}

        def step(self, t: float, h: float) -> None:
            if self.temperature >= 20.5:
                self.heating = False
            elif self.temperature <= 19.0:
                self.heating = True

    system = SystemBuilder()
    system.add("room", reference_path("fmi3/ThermostatRoom.fmu"))
    system.add("thermostat", Thermostat())
    system.connect("room.x", "thermostat.temperature")
    system.connect("thermostat.heating", "room.q")
    results = Simulation(system, stop_time=10, step_size=Locate(0.1), algorithm=GaussSeidel()).run()
    ends = results["room.x"].min(), results["room.x"].max()
    assert ends == pytest.approx((19.0, 20.5), abs=1e-8)  # the brackets are 0.1 ns long


@pytest.mark.parametrize("rule", [0.01, FreeStep(0.01)], ids=["fixed", "free"])
def test_an_fmu_feeds_a_component(rule: StepRule[Any] | float) -> None:
    system = SystemBuilder()
    system.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    system.add(
        "sensor",
        PythonComponent(
            inputs={"x": 1.0},
            outputs={"seen": 1.0},
            output=lambda c, t: setattr(c, "seen", c.x),
            dependencies={"seen": ["x"]},
        ),
    )
    system.connect("plant.x", "sensor.x")
    algorithm = GaussSeidel()
    results = Simulation(system, stop_time=1, step_size=rule, algorithm=algorithm).run()
    np.testing.assert_array_equal(results["sensor.seen"], results["plant.x"])


# Variables


def test_types_shapes_and_units_follow_from_the_declaration() -> None:
    torque = Unit("N.m", (1, 2, -2, 0, 0, 0, 0, 0))
    model = PythonComponent(
        inputs={"a": 0, "b": np.float32(1), "c": [1, 2], "d": [[True], [False]]},
        outputs={"e": "text", "f": np.int64(3)},
        units={"a": "m/s", "c": torque},
    ).model()
    found = {v.name: (v.type.value, v.shape, v.start) for v in model.variables}
    assert found == {
        "a": ("Float64", (), (0.0,)),
        "b": ("Float32", (), (1.0,)),
        "c": ("Float64", (2,), (1.0, 2.0)),
        "d": ("Boolean", (2, 1), (True, False)),
        "e": ("String", (), ("text",)),
        "f": ("Int64", (), (3,)),
    }
    assert [str(v.unit and v.unit.name) for v in model.variables[:3]] == ["m/s", "None", "N.m"]
    assert model.variables[2].unit is torque


def test_texts_and_arrays_reach_other_components() -> None:
    system = SystemBuilder()
    system.add(
        "source",
        PythonComponent(
            outputs={"y": [0.0, 0.0], "word": "before"},
            step=lambda c, t, h: vars(c).update(y=np.array([t, h]), word=f"{t:g}"),
        ),
    )
    echo = PythonComponent(
        inputs={"y": [0.0, 0.0], "word": ""},
        outputs={"sum": 0.0, "said": ""},
        output=lambda c, t: vars(c).update(sum=float(c.y.sum()), said=c.word),
    )
    system.add("echo", echo)
    for name in ("y", "word"):
        system.connect(f"source.{name}", f"echo.{name}")
    results = Simulation(system, stop_time=0.5, step_size=0.25, algorithm=GaussSeidel()).run()
    assert results["echo.sum"].tolist() == [0.0, 0.25, 0.5]
    assert results["echo.said"].tolist() == ["before", "0", "0.25"]


def test_start_values_come_from_the_class_the_object_and_the_system() -> None:
    first, second = Mass(), Mass()
    second.v = 2.0
    system = SystemBuilder()
    system.add("first", first)
    system.add("second", second)
    system.add("third", second, {"v": 3.0, "x": 10.0})
    results = Simulation(system, stop_time=1, step_size=1).run()
    assert [results[f"{n}.x"][-1] for n in ("first", "second", "third")] == [1.0, 2.0, 13.0]


def test_a_component_is_pickled_and_copied_with_its_system() -> None:
    simulation = oscillator()
    assert same(pickle.loads(pickle.dumps(simulation)).run(), simulation.run())
    assert same(copy.deepcopy(simulation).run(), simulation.run())


def test_the_plan_shows_it_with_its_class_and_its_delays() -> None:
    page = str(oscillator(algorithm=GaussSeidel()).plan())
    assert re.search(r"  mass +Mass +in Python", page)
    assert re.search(r"  spring.x +<- +mass.x +not late", page)


def test_parameters_can_be_set_while_a_run_pauses() -> None:
    """Without stiffness there is no force: the mass keeps its speed, which it had changed until then."""
    with oscillator(algorithm="Jacobi").start() as run:
        run.advance(0.5)
        run["spring.stiffness"] = 0.0
        run.advance(0.125)  # with the force of before
        speed = run["mass.v"]
        run.advance(0.25)
        assert run["mass.v"] == speed
    assert run.results["mass.v"][0] != speed


# The life of a component


@pytest.mark.parametrize("is_broken", [False, True], ids=["ended", "failed"])
def test_start_and_stop_are_called_once(is_broken: bool) -> None:
    class Device(PythonComponent):
        outputs = {"y": 0.0}
        can_go_back = False
        calls: list[str] = []

        def start(self, t: float) -> None:
            self.calls.append(f"start {t:g}")

        def step(self, t: float, h: float) -> None:
            if is_broken:
                raise OSError("no answer")

        def stop(self) -> None:
            self.calls.append("stop")

    message = r"step of 'unit' has raised OSError at t = -1 s \(step 0.25 s\): no answer\."
    with pytest.raises(CallError, match=message) if is_broken else nullcontext():
        run_alone(Device(), start_time=-1)
    assert Device.calls == ["start -1", "stop"]


def test_what_cannot_go_back_is_refused_where_steps_are_repeated() -> None:
    from fmimaster import ProgramError

    component = PythonComponent(outputs={"y": 0.0}, can_go_back=False)
    with pytest.raises(ProgramError, match="'unit'"):
        run_alone(component, algorithm=Waveform(Jacobi()))


# What is wrong


def test_an_error_names_component_time_line_and_cause(each_backend: Backend) -> None:
    def divide(c: Any, t: float, h: float) -> None:
        c.y = 1 / (0.5 - t)

    error = fails(PythonComponent(outputs={"y": 0.0}, step=divide), backend=each_backend)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert (error.instance, error.function, error.time) == ("unit", "step", 0.5)
    assert "raised ZeroDivisionError at t = 0.5 s (step 0.25 s): float division by zero" in str(
        error
    )
    assert f"of {Path(__file__)}, in divide: c.y = 1 / (0.5 - t)" in str(error)
    assert error.results is not None
    assert error.results.time.tolist() == [0.0, 0.25, 0.5]


@pytest.fixture(params=BOTH, ids=lambda b: b.value)
def each_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    ("start", "value", "expected"),
    [
        (0.0, None, "'unit.y' is None at t = 0.25 s. Expected a number"),
        (0.0, "1", "'unit.y' is '1' at t = 0.25 s. Expected a number"),
        (0.0, [1.0, 2.0], "Expected a number"),
        ([0.0, 0.0], 1.0, r"Expected a number of the shape \(2,\)"),
        (np.int8(0), 1.5, "Expected an integer"),
        (np.int8(0), 1000, "Expected an integer from -128 to 127"),
        (np.int8(0), float("nan"), "Expected an integer"),
        (True, 2, "Expected True or False"),
        ("", 1, "Expected a text"),
        ("", None, "Expected a text"),
    ],
)
def test_an_output_of_another_type_is_an_error(start: Any, value: Any, expected: str) -> None:
    component = PythonComponent(outputs={"y": start}, step=lambda c, t, h: setattr(c, "y", value))
    assert fails(component).status == "wrong value"
    with pytest.raises(CallError, match=expected):
        run_alone(component)


@pytest.mark.parametrize("value", [3, True, np.int32(3), np.float32(1.5), np.array(2)])
def test_a_float64_takes_a_number_of_any_type(each_backend: Backend, value: Any) -> None:
    component = PythonComponent(outputs={"y": 0.0}, step=lambda c, t, h: setattr(c, "y", value))
    assert run_alone(component, backend=each_backend)["unit.y"][-1] == float(value)


def test_exit_in_a_step_is_an_error_with_all_rows(each_backend: Backend) -> None:
    def leave(component: PythonComponent, t: float, h: float) -> None:
        if t == 0.5:
            sys.exit(3)

    component = PythonComponent(outputs={"y": 0.0}, step=leave)
    with pytest.raises(CallError, match=r"raised SystemExit at t = 0.5 s") as raised:
        run_alone(component, backend=each_backend)
    assert raised.value.results is not None
    assert raised.value.results.time.tolist() == [0.0, 0.25, 0.5]


def test_a_misspelt_output_is_an_error() -> None:
    component = PythonComponent(
        outputs={"torque": 0.0}, step=lambda c, t, h: setattr(c, "torqe", 1.0)
    )
    assert "has set the attribute 'torqe', which is not declared. Did you mean 'torque'?" in str(
        fails(component)
    )


def test_a_step_that_returns_its_outputs_is_an_error() -> None:
    component = PythonComponent(outputs={"torque": 0.0}, step=lambda c, t, h: 1.0)  # type: ignore[arg-type]
    assert "has returned 1.0. Expected None" in str(fails(component))
    assert "self.torque = 1.0" in str(fails(component))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"inputs": {"motor.u": 0.0}}, "'motor.u'. Expected the name of a Python attribute"),
        ({"inputs": {"class": 0.0}}, "Expected the name of a Python attribute"),
        ({"inputs": {"step": 0.0}}, "'step', which is a method"),
        ({"inputs": {"u": 0.0}, "outputs": {"u": 0.0}}, "'u' is declared twice"),
        ({"inputs": {"u": None}}, "start value of 'u' is None"),
        ({"inputs": {"u": []}}, "start value of 'u'"),
        ({"inputs": ["u"]}, "expected names with start values"),
        ({"inputs": {"u": 0.0}, "units": {"v": "m"}}, "units names 'v', which is not a variable"),
        ({"inputs": {"u": 0.0}, "units": {"u": 1}}, "the unit of 'u' is 1"),
        ({"outputs": {"y": 0.0}, "dependencies": {"y": ["u"]}}, "Expected an output, with"),
    ],
)
def test_a_wrong_declaration_is_refused_when_it_is_added(
    declared: dict[str, Any], message: str
) -> None:
    with pytest.raises(DescriptionError) as caught:
        SystemBuilder().add("unit", PythonComponent(**declared))
    assert message in str(caught.value)


def test_a_class_that_computes_nothing_is_refused() -> None:
    class Controller(PythonComponent):
        outputs = {"y": 0.0}

        def steps(self, t: float, h: float) -> None:
            self.y = t

    with pytest.raises(
        DescriptionError, match=r"neither step\(t, h\) nor output\(t\)\. Did you mean 'steps'"
    ):
        SystemBuilder().add("unit", Controller())


def test_a_state_that_cannot_be_copied_is_an_error_with_advice() -> None:
    class Locked(PythonComponent):
        outputs = {"y": 0.0}

        def start(self, t: float) -> None:
            self.lock = Lock()

        def step(self, t: float, h: float) -> None:
            self.y += h

    assert run_alone(Locked())["unit.y"][-1] == 1.0
    with pytest.raises(CallError) as caught:
        run_alone(Locked(), algorithm=Waveform(Jacobi()))
    assert str(caught.value) == (
        "save of 'unit' has raised TypeError at t = 0 s: cannot pickle '_thread.lock' object. Define save() and restore() "
        "for what cannot be copied, or set can_go_back = False."
    )


def test_a_class_in_the_place_of_an_object_is_refused() -> None:
    with pytest.raises(DescriptionError, match=r"Expected an object: Mass\(\)"):
        SystemBuilder().add("unit", Mass)  # type: ignore[arg-type]


def test_a_function_in_the_place_of_a_component_is_refused_with_an_example() -> None:
    with pytest.raises(DescriptionError, match=r"is a function.*step=function"):
        SystemBuilder().add("unit", spring_force)  # type: ignore[arg-type]


def test_what_cannot_be_copied_is_refused_with_the_reason() -> None:
    component = Mass()
    component.file = (_ for _ in ())
    with pytest.raises(ModelError, match="cannot be copied for a run: cannot pickle 'generator'"):
        run_alone(component)


def test_a_connection_from_input_to_output_is_turned_round_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    system = SystemBuilder()
    system.add("source", PythonComponent(outputs={"y": 2.0}, step=lambda c, t, h: None))
    system.add("sink", PythonComponent(inputs={"u": 0.0}, step=lambda c, t, h: None))
    system.connect("sink.u", "source.y")
    results = Simulation(system, stop_time=1, step_size=1).run()
    warning = (
        "connections are written from an input to an output, and are read in the direction of the value: "
        "'sink.u -> source.y'."
    )
    assert results.statistics.warnings == (warning,)
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [warning]


@pytest.mark.parametrize("group", ["inputs", "outputs", "parameters", "states"])
def test_a_declaration_with_a_name_in_the_singular_is_refused(group: str) -> None:
    singular = group.removesuffix("s")
    kind = type("Controller", (PythonComponent,), {singular: {"u": 0.0}, "step": print})
    with pytest.raises(DescriptionError) as caught:
        SystemBuilder().add("controller", kind())
    assert str(caught.value) == (
        f"Python component Controller: '{singular}' declares nothing. Did you mean '{group}'?"
    )


def test_a_misspelt_argument_has_a_hint() -> None:
    with pytest.raises(DescriptionError) as caught:
        PythonComponent(input={"u": 0.0})  # type: ignore[arg-type]
    assert str(caught.value) == (
        "PythonComponent(input=...): there is no such argument. Did you mean 'inputs'?"
    )


def test_a_step_that_sets_an_input_is_an_error(each_backend: Backend) -> None:
    def step(component: Any, t: float, h: float) -> None:
        component.u = 3.0

    system = SystemBuilder()
    system.add("c", PythonComponent(inputs={"u": 0.0}, outputs={"y": 0.0}, step=step))
    with pytest.raises(CallError, match="step of 'c' has set the input 'u'"):
        Simulation(system, stop_time=1, step_size=1, backend=each_backend).run()
