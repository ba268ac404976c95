"""Which controller and which inputs a system gets for an accuracy, and runs until the accuracy is reached."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu

from fmimaster import (
    AccuracyError,
    AccuracyWarning,
    Interrupted,
    OptionError,
    PythonComponent,
    Results,
    Simulation,
    SimulationError,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.algorithms.gauss_seidel import LINES
from fmimaster.front.accuracy_pair import Pair
from fmimaster.front.accuracy_reach import MOST_ROWS, OwnSteps, judged_columns, reach
from fmimaster.plan.plan import Plan
from fmimaster.prepare.accuracy_choice import Choice
from fmimaster.results.csv import read_csv
from fmimaster.results.statistics import Statistics
from fmimaster.steps import FixedStep, Ramp
from fmimaster.steps.pid import PID


def chosen(system: Any, **settings: Any) -> Simulation:
    """Settings of the first run, and the choice in their place."""
    return Simulation(system, accuracy=1e-3, **settings)


def choice_of(simulation: Simulation) -> Choice:
    choice = simulation.prepare().choice
    assert choice is not None
    return choice


def quarter_car(version: str) -> Path:
    return reference_path(f"systems/quarter-car-a-{version}.ssp")


def two_masses(**wheel: str | None) -> Callable[[Path], SystemBuilder]:
    """The survey's two masses without a bond; one with other capabilities."""

    def build(folder: Path) -> SystemBuilder:
        source = reference_path("fmi2/QuarterCarWheelA.fmu")
        builder = SystemBuilder("system")
        builder.add("chassis", reference_path("fmi2/QuarterCarChassisA.fmu"))
        builder.add("wheel", edited_fmu(source, folder / "wheel.fmu", capabilities=wheel))
        builder.connect("chassis.velocity", "wheel.velocity")
        builder.connect("wheel.force", "chassis.force", factor=-1.0)
        return builder

    return build


def test_power_bonds_with_a_scale_are_controlled_by_ecco() -> None:
    prepared = chosen(quarter_car("fmi2")).prepare()
    assert str(prepared.choice) == (
        "accuracy 0.001: ECCO, by the residual energy of the power bond 'suspension'; Gauss-Seidel with inputs linear over "
        "a step; no step is undone"
    )
    assert str(prepared.choice) in prepared.notes
    rule = prepared.schedule.rule
    assert isinstance(rule, PID)
    assert [e.name for e in rule.estimators] == ["energy_error"]
    assert (rule.degree, rule.rejects) == (1, False)
    assert prepared.plan.power_bonds[0].tolerance == pytest.approx(1e-5)


def test_polynomials_by_intermediate_updates_are_used() -> None:
    """The kernel calls them; inputs at the middle of their line needed 2 to 13 times as many steps."""
    choice = choice_of(chosen(quarter_car("fmi3")))
    assert choice.algorithm == LINES
    assert "intermediate" not in str(choice)


def test_without_an_energy_scale_the_error_of_extrapolated_inputs_counts() -> None:
    choice = choice_of(chosen(reference_path("systems/survey-two-mass-fmi2.ssp"), stop_time=10))
    assert (
        "by the error of extrapolated inputs, because power bond 'coupling' has no energy scale"
        in str(choice)
    )
    assert choice.rejects
    assert choice.algorithm == LINES


def test_steps_are_not_undone_if_an_fmu_cannot_restore_its_state(tmp_path: Path) -> None:
    system = two_masses(canGetAndSetFMUState="false")(tmp_path)
    choice = choice_of(chosen(system, stop_time=1))
    assert "no step is undone, because 'wheel' cannot restore its state" in str(choice)
    assert not choice.rejects


def test_an_fmu_that_takes_no_polynomials_is_given_the_mean(tmp_path: Path) -> None:
    system = two_masses(canInterpolateInputs="false", maxInputDerivativeOrder=None)(tmp_path)
    choice = choice_of(chosen(system, stop_time=1))
    assert "inputs linear over a step, but at their mean in 'wheel'" in str(choice)
    assert choice.degree == 0


def test_fixed_communication_steps_are_halved(tmp_path: Path) -> None:
    system = two_masses(canHandleVariableCommunicationStepSize="false")(tmp_path)
    simulation = chosen(system, stop_time=1, step_size="1/100")
    choice = choice_of(simulation)
    assert "fixed steps, because 'wheel' cannot vary its step size" in str(choice)
    assert choice.changes(Fraction(1, 100), 0.3)["step_size"] == FixedStep(Fraction(1, 300))


def test_a_single_fmu_has_fixed_steps() -> None:
    choice = choice_of(chosen(reference_path("fmi3/Dahlquist.fmu"), stop_time=1))
    assert "fixed steps, because no continuous output feeds another component" in str(choice)


def test_an_algorithm_and_a_largest_step_that_are_given_stay() -> None:
    simulation = chosen(quarter_car("fmi2"), algorithm=GaussSeidel(), step_size=0.002)
    prepared = simulation.prepare()
    assert prepared.schedule.rule.exact_size == Fraction(2, 1000)
    assert prepared.choice is not None
    assert prepared.choice.algorithm is None


def test_a_step_size_rule_beside_an_accuracy_is_refused() -> None:
    with pytest.raises(OptionError, match=r"the rule Ramp is also given. Leave one of them out"):
        chosen(quarter_car("fmi2"), step_size=Ramp(0.01)).prepare()


@pytest.mark.parametrize("accuracy", [0.0, -1e-3, float("nan")])
def test_an_accuracy_is_a_positive_number(accuracy: float) -> None:
    with pytest.raises(OptionError, match=r"accuracy: .* expected a positive number"):
        Simulation(quarter_car("fmi2"), accuracy=accuracy)


FIXED = Choice(1e-3, None, None, 0, False, "fixed steps")


def simulated(order: float, error: float) -> Callable[[Simulation], Results]:
    """Runs of a fixed step with the output 1 and an error of so much for a step of 1 s."""

    def run(single: Simulation) -> Results:
        rule = single.step_size
        assert isinstance(rule, FixedStep)
        h = float(rule.exact_size)
        time = np.linspace(0.0, 1.0, round(1.0 / h) + 1)
        values = 1.0 + error * h**order * time
        return Results(
            time=time, columns={"y": values}, statistics=Statistics(len(time) - 1, 0, 0, 0.0)
        )

    return run


@pytest.mark.parametrize("order", [1.0, 1.4])
def test_steps_are_shortened_until_the_error_is_small(order: float) -> None:
    found = reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {"y": 1.0}, simulated(order, 1.0))
    h = 1.0 / found.results.statistics.steps
    assert found.is_enough
    assert found.order == pytest.approx(order, abs=0.01)
    # of an error that rises linearly, the root mean square is a third of the square's root
    assert found.worst.rms == pytest.approx(h**order / 3**0.5, rel=0.02)
    assert "reached: the error is about" in found.results.statistics.notes[-1]


def test_an_error_that_does_not_fall_ends_before_runs_become_endless() -> None:
    found = reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {"y": 1.0}, simulated(0.01, 100.0))
    assert not found.is_enough
    assert found.results.rows < MOST_ROWS
    assert "not reached: the error is about" in found.results.statistics.notes[-1]


def test_runs_that_fail_are_tried_with_shorter_steps() -> None:
    run = simulated(1.0, 1.0)

    def fails(single: Simulation) -> Results:
        assert isinstance(single.step_size, FixedStep)
        if single.step_size.exact_size > Fraction(1, 30):
            raise SimulationError("infinite")
        return run(single)

    found = reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {"y": 1.0}, fails)
    assert found.is_enough


def test_an_error_of_zero_is_enough() -> None:
    found = reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {"y": 1.0}, simulated(1.0, 0.0))
    assert found.is_enough
    assert found.runs == 3


def test_ctrl_c_ends_the_first_try() -> None:
    runs = []

    def interrupted(single: Simulation) -> Results:
        runs.append(single)
        raise Interrupted("Interrupted at t = 1 s.", time=1.0)

    with pytest.raises(Interrupted):
        reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {"y": 1.0}, interrupted)
    assert len(runs) == 1


def test_a_run_that_fails_with_short_steps_too_is_not_tried_for_ever() -> None:
    steps = []

    def fails(single: Simulation) -> Results:
        assert isinstance(single.step_size, FixedStep)
        steps.append(single.step_size.exact_size)
        raise SimulationError("always")

    with pytest.raises(SimulationError, match="always"):
        reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {"y": 1.0}, fails)
    assert steps == [Fraction(1, 10), Fraction(1, 40), Fraction(1, 160)]


def unstable_first(**settings: Any) -> Simulation:
    """Its first run grows without end: steps of 20 ms, where 11.23 ms are stable."""
    return Simulation(
        reference_path("systems/quarter-car-b-fmi2.ssp"),
        algorithm=Jacobi(),
        step_size=FixedStep("0.02"),
        stop_time=2,
        accuracy=2e-2,
        **settings,
    )


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_wrong_with_the_first_runs_is_not_told_of_the_last_one(
    recwarn: pytest.WarningsRecorder, strict: bool
) -> None:
    results = unstable_first(strict=strict).run()
    assert "accuracy 0.02 reached" in results.statistics.notes[-1]
    assert not [w for w in recwarn if issubclass(w.category, AccuracyWarning)]


def test_strict_refuses_an_accuracy_that_is_not_reached_and_keeps_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.front.accuracy_reach.MOST_ROWS", 10)  # ends after the first try
    file = tmp_path / "rows.csv"
    car = chosen(quarter_car("fmi2"), stop_time=0.1, strict=True)
    with pytest.raises(AccuracyError, match="accuracy 1e-09 not reached") as caught:
        replace(car, accuracy=1e-9).run(output_file=file)
    assert caught.value.results is not None
    assert read_csv(file).rows == caught.value.results.rows


def test_the_rows_of_a_run_that_failed_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    start = {"fault": 3, "faultTime": 0.5}
    faulty = Simulation(
        reference_path("fmi2/Faulty.fmu"), accuracy=1e-3, start_values=start, stop_time=1
    )
    with pytest.raises(SimulationError) as caught:
        faulty.run(output_file=file)
    assert caught.value.results is not None
    assert read_csv(file).rows == caught.value.results.rows


def test_the_output_interval_thins_out_the_rows_of_the_last_run() -> None:
    simulation = Simulation("a.fmu", accuracy=1e-3, output_interval=0.25)
    found = reach(simulation, FIXED, Fraction(1, 10), {"y": 1.0}, simulated(1.0, 1.0))
    assert found.results.time.tolist() == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=0.01)
    assert found.results.statistics.rows == 5


def test_without_a_continuous_output_no_accuracy_can_be_measured() -> None:
    with pytest.raises(OptionError, match="no continuous output is recorded"):
        reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {}, simulated(1.0, 1.0))


def with_discrete_outputs(tmp_path: Path, version: str) -> Plan:
    """Of a chassis, whose only outputs are numbers."""
    fmu = changed(
        reference_path(f"{version}/QuarterCarChassisA.fmu"),
        tmp_path / "chassis.fmu",
        description=lambda text: text.replace('variability="continuous"', 'variability="discrete"'),
    )
    return Simulation(fmu, stop_time=1).prepare().plan


def test_outputs_that_are_declared_discrete_are_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"are declared discrete \(variability\): '.*velocity'"):
        judged_columns([with_discrete_outputs(tmp_path, "fmi3")])


def test_outputs_of_tools_that_declare_all_of_them_discrete_are_judged(tmp_path: Path) -> None:
    """FMUs without Event Mode cannot mean it: the truck of libcosim, for example."""
    assert "velocity" in judged_columns([with_discrete_outputs(tmp_path, "fmi2")])


def test_all_continuous_outputs_are_judged_but_not_those_that_tell_of_events() -> None:
    """Also where the events of the FMUs are not used."""
    plan = chosen(reference_path("systems/two-mass-b1-mixed.ssp")).prepare().plan
    assert [*judged_columns([plan])] == [
        f"{mass}.{name}" for mass in ("upper", "lower") for name in "xva"
    ]


def test_recorded_states_are_judged_also_as_indicators_but_no_signal_of_the_input(
    tmp_path: Path,
) -> None:
    """Some balls list their height as the indicator of their impacts."""
    ball = changed(
        reference_path("fmi3/BouncingBall.fmu"),
        tmp_path / "ball.fmu",
        name=lambda member: "" if member.startswith("extra/") else member,
        description=lambda text: text.replace(
            '<EventIndicator valueReference="54"', '<EventIndicator valueReference="1"'
        ),
    )
    plan = chosen(ball, stop_time=1).prepare().plan
    assert "h" in plan.instances[0].model.event_outputs
    assert next(iter(judged_columns([plan]))) == "h"
    wheel = chosen(
        reference_path("fmi2/QuarterCarWheelA.fmu"),
        stop_time=1,
        input={"velocity": math.sin},
        output_variables=["*"],
    )
    plan = wheel.prepare().plan
    assert "input.velocity" in [c.name for c in plan.recorded]
    assert [*judged_columns([plan])] == ["force", "zw", "vw", "zc"]


def test_the_power_of_a_bond_is_judged() -> None:
    plan = chosen(quarter_car("fmi2")).prepare().plan
    assert [*judged_columns([plan])] == ["suspension.power", "chassis.velocity", "wheel.force"]


def test_an_event_clock_keeps_its_steps_and_inputs() -> None:
    """A controller of steps between events has taken 450 000 of them, and has not reached it."""
    clocked = Simulation(
        reference_path("systems/two-mass-b1-fmi3.ssp"), accuracy=1e-3, event_clock="predictive"
    )
    results = clocked.run()
    notes = results.statistics.notes
    assert any(
        "steps by ramp:size=0.01 with predictive, which finds the events" in n for n in notes
    )
    assert "accuracy 0.001 reached" in notes[-1]
    assert results.statistics.steps < 5000
    other = replace(clocked, event_clock="early-return", accuracy=1e-5).run()
    for name in ("upper.x", "lower.x"):
        apart = np.interp(results.time, other.time, other[name]) - results[name]
        assert np.sqrt(np.mean(apart**2)) <= 1e-3 * np.abs(other[name]).max()


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_inputs_are_held_where_lines_make_outputs_grow(tmp_path: Path, version: str) -> None:
    """A loop of gain -0.6 that the FMUs do not declare: with lines it ended with the error that an estimate is NaN."""
    system = SystemBuilder("hidden")
    for name, a, gain, start in (("p", -1.0, 0.6, 0.0), ("q", -2.0, -1.0, 1.0)):
        matrices = {"a": [[a]], "b": [[0.5]], "c": [[1.0]], "d": [[gain]], "x0": [start]}
        fmu = linear_fmu(tmp_path / f"{name}.fmu", version, **matrices, inputs=["u"], outputs=["y"])
        none = {"y": {"dependencies": "", "dependenciesKind": ""}}
        system.add(name, edited_fmu(fmu, tmp_path / f"{name}-edited.fmu", unknowns=none))
    system.connect("p.y", "q.u")
    system.connect("q.y", "p.u")
    results = Simulation(system, stop_time=5, step_size=0.05, accuracy=1e-2, loops="none").run()
    notes = results.statistics.notes
    assert any("inputs are held, because outputs grow without bound" in note for note in notes)
    assert "accuracy 0.01 reached" in notes[-1]
    # y = x + d u on both sides: u of p is y of q
    loop = np.linalg.inv([[1.0, -0.6], [1.0, 1.0]])
    state = np.array([[-1.0, 0.0], [0.0, -2.0]]) + 0.5 * np.array([[0.0, 1.0], [1.0, 0.0]]) @ loop
    values, vectors = np.linalg.eig(state)
    weights = np.linalg.solve(vectors, [0.0, 1.0])
    x = (vectors * weights) @ np.exp(np.outer(values, results.time))
    for name, exact in zip("pq", (loop @ x).real, strict=True):
        square = (results[f"{name}.y"] - exact)[1:] ** 2 * np.diff(results.time)
        assert np.sqrt(square.sum() / 5.0) <= 1e-2 * np.abs(exact).max()


def test_values_that_are_only_rounding_errors_have_no_relative_error() -> None:
    def run(single: Simulation) -> Results:
        found = simulated(1.0, 1e-3)(single)
        noise = 1e-14 * np.arange(found.rows) % 3e-14
        return replace(found, columns={**found.columns, "rest": noise})

    found = reach(chosen("a.fmu"), FIXED, Fraction(1, 10), {"y": 1.0, "rest": 1.0}, run)
    assert found.worst.name == "y"
    assert found.is_enough


def system_of(**components: PythonComponent) -> SystemBuilder:
    builder = SystemBuilder("own steps")
    for name, component in components.items():
        builder.add(name, component)
    return builder


class Lag(PythonComponent):
    """A lag of 0.1 s behind a sine, by one step of Euler's method for each communication step."""

    inputs = {"u": 0.0}  # noqa: RUF012
    outputs = {"y": 0.0}  # noqa: RUF012

    def step(self, t: float, h: float) -> None:
        self.y += h * (self.u - self.y) / 0.1


class Sine(PythonComponent):
    """A sine, exact at the time of its last own step of ``own`` s; at each time if it is 0."""

    outputs = {"y": 0.0}  # noqa: RUF012
    parameters = {"own": 0.0}  # noqa: RUF012

    def step(self, t: float, h: float) -> None:
        time = t + h
        self.y = math.sin(math.floor(time / self.own + 1e-9) * self.own if self.own else time)


def test_an_accuracy_is_that_of_outputs_that_feed_nothing_too() -> None:
    system = system_of(sine=Sine(), lag=Lag())
    system.connect("sine.y", "lag.u")
    results = Simulation(system, accuracy=1e-3, step_size=FixedStep("0.1"), stop_time=2).run()
    t = results.time
    exact = (np.sin(t) - 0.1 * np.cos(t) + 0.1 * np.exp(-t / 0.1)) / 1.01
    error = np.sqrt(np.mean((results["lag.y"] - exact) ** 2)) / np.abs(exact).max()
    assert error <= 1e-3  # 1.7e-3 after the first attempt, which 'sine.y' alone would end
    notes = results.statistics.notes
    assert "'sine.y' does not depend on the communication steps" in notes[-2]
    assert "in 'lag.y'" in notes[-1]


def test_an_output_that_is_held_between_own_steps_of_its_fmu_is_not_called_accurate() -> None:
    """It is the same in all runs, so that its error seemed to be 0."""
    system = SystemBuilder("one")
    system.add("sine", Sine(), {"own": 0.2})
    with pytest.warns(AccuracyWarning, match=r"'sine.y' changes only every 0.2 s"):
        results = Simulation(system, accuracy=1e-3, step_size=0.2, stop_time=4).run()
    assert "accuracy 0.001 not confirmed" in results.statistics.notes[-1]


def test_what_halved_steps_show_about_steps_inside_of_fmus() -> None:
    def results(h: float) -> Results:
        time = np.arange(0.0, 4.0 + h / 2, h)
        columns = {
            "smooth": np.sin(time) + h,
            "held": np.sin(np.floor(time / 0.2 + 1e-9)),
            "jumps": np.where(time > 2.0, 1.0, 0.0),
            "stays": np.ones_like(time),
            "array": np.stack([np.floor(time / 0.2 + 1e-9), np.cos(time)], axis=1),
        }
        return Results(time=time, columns=columns, statistics=Statistics(len(time) - 1, 0, 0, 0.0))

    own = OwnSteps.of(Pair(results(0.1), results(0.05), list(results(0.1).columns)))
    (limit,) = own.limits
    assert limit.startswith("'held', 'array[1]' change only every 0.2 s")
    (unseen,) = own.unseen
    assert unseen.startswith("'array[2]', 'jumps' do not depend on the communication steps")


def test_fixed_steps_that_an_fmu_declares_are_said(tmp_path: Path) -> None:
    path = changed(
        reference_path("fmi3/Dahlquist.fmu"),
        tmp_path / "own.fmu",
        description=lambda text: text.replace(
            "<CoSimulation", '<CoSimulation fixedInternalStepSize="0.01"'
        ),
    )
    (said,) = choice_of(chosen(path, stop_time=1)).own_steps
    assert said.startswith("'own' computes with fixed steps of its own of 0.01 s")
