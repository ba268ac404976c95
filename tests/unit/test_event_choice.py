"""Which event method a run without one gets: by what the FMUs declare, and by what is given."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from event_fmus import EXTRA
from python_fmu import PythonFmu

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.algorithms.gauss_seidel import LINES
from fmimaster.events import EarlyReturn, LookAhead, NoEventClock, Predictive
from fmimaster.fmu import add_manifest
from fmimaster.fmu.load import Loader
from fmimaster.inputs import ADAPTIVE, Polynomial
from fmimaster.plan.policy import TableRow, row_of
from fmimaster.steps import Locate, MultiRate, Ramp
from fmimaster.studies.demos.two_mass import TwoMassReference
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Causality, DataType, Model, Variability
from fmimaster.system.python_component import PythonComponent
from fmimaster.system.read import read_system

Simulate = Callable[..., Simulation]

MASSES = reference_path("systems/two-mass-b3-mixed.ssp")
THERMOSTAT = reference_path("systems/thermostat-fmi2.ssp")


def model(path: str) -> Model:
    with Loader() as loader:
        _, component = next(read_system(reference_path(path)).components())
        return loader.model(component)


def chosen_for(system: Any, **settings: Any) -> dict[str, Any]:
    """What is chosen for events and coupling."""
    chosen = Simulation(system, **settings).prepare().chosen.settings
    return {name: value for name, value in chosen.items() if name != "loops"}


def test_events_with_triggers_are_predicted() -> None:
    prepared = Simulation(MASSES, stop_time=1, step_size=0.1).prepare()
    found = chosen_for(MASSES, stop_time=1, step_size=0.1)
    assert found == {"event_clock": Predictive(), "algorithm": Jacobi(ADAPTIVE)}
    assert any(n.startswith("events: Predictive, because") for n in prepared.notes)
    assert prepared.chosen.instead[-1] == {"event_clock": NoEventClock()}


def test_the_project_s_own_example_is_right_with_a_step_size_only() -> None:
    results = Simulation(MASSES, stop_time=2, step_size=0.1).run()
    named = Simulation(MASSES, stop_time=2, step_size=0.1, event_clock=Predictive()).run()
    assert results.statistics.warnings == ()
    assert len(results.events) == 2
    assert np.array_equal(results["upper.x"], named["upper.x"])


def test_discrete_outputs_of_fmus_that_can_go_back_are_located() -> None:
    results = Simulation(THERMOSTAT, stop_time=5, step_size=0.1).run()
    assert [e.time for e in results.events] == pytest.approx(
        [1.053605, 2.05444, 4.061147], abs=1e-6
    )
    found = chosen_for(THERMOSTAT, stop_time=5, step_size=0.1)
    assert found == {"step_size": Locate(0.1), "algorithm": LINES}


def test_a_step_size_that_is_not_given_is_completed() -> None:
    prepared = Simulation(THERMOSTAT, stop_time=5).prepare()
    assert prepared.chosen.settings["step_size"] == Locate()
    assert float(prepared.schedule.rule.exact_size) == 0.1


@pytest.mark.parametrize(
    "given",
    [
        {"event_clock": "none"},
        {"step_size": Locate(0.1)},
        {"step_size": MultiRate(0.1, {"room": 0.05})},
        {"algorithm": "GaussSeidel:mode=sub"},
    ],
    ids=str,
)
def test_what_is_given_is_not_changed(given: dict[str, Any]) -> None:
    simulation = Simulation(THERMOSTAT, stop_time=1, **given)
    chosen = simulation.prepare().chosen.settings
    assert "event_clock" not in chosen
    assert chosen.keys().isdisjoint(given)


def test_a_given_algorithm_keeps_its_inputs_and_gets_a_clock() -> None:
    algorithm = GaussSeidel(Polynomial(2, 2))
    found = chosen_for(MASSES, stop_time=1, step_size=0.1, algorithm=algorithm)
    assert found == {"event_clock": Predictive()}


def test_held_inputs_that_are_given_fit_no_clock_and_the_run_warns() -> None:
    prepared = Simulation(MASSES, stop_time=1, step_size=0.1, algorithm=Jacobi()).prepare()
    assert "event_clock" not in prepared.chosen.settings
    assert "There is no event clock" in prepared.accuracy_warnings[0]


def test_an_fmu_alone_executes_its_events_itself() -> None:
    fmu = reference_path("fmi3/BouncingBall.fmu")
    assert chosen_for(fmu, stop_time=1) == {"algorithm": Jacobi()}


def masses_of(lower: Path, *, declares_members: bool = True) -> SystemBuilder:
    builder = SystemBuilder("masses")
    builder.add("upper", reference_path("fmi2/TwoMassUpper.fmu"))
    builder.add("lower", lower)
    for name in "xva":
        builder.connect(f"upper.{name}", f"lower.u_{name}")
        builder.connect(f"lower.{name}", f"upper.u_{name}")
    if declares_members:
        builder.share_event("collision", "upper.collision", "lower.collision")
    return builder


def test_steps_of_one_size_only_leave_no_clock_and_a_warning_that_names_the_events(
    tmp_path: Path,
) -> None:
    fixed = {"canHandleVariableCommunicationStepSize": "false"}
    lower = reference_path("fmi2/TwoMassLower.fmu")
    system = masses_of(edited_fmu(lower, tmp_path / "lower.fmu", capabilities=fixed))
    prepared = Simulation(system, stop_time=1, step_size=0.1).prepare()
    assert prepared.chosen.settings["event_clock"] == NoEventClock()
    assert any("no event clock" in note for note in prepared.notes)
    [warning] = prepared.accuracy_warnings
    assert "'upper.collision', 'lower.collision'" in warning
    assert "'lower' cannot vary its step size" in warning
    assert "short steps" in warning


def test_changes_are_not_located_where_an_fmu_cannot_vary_its_steps(tmp_path: Path) -> None:
    """The run was refused: "Steps of different sizes are requested"."""
    fixed = {"canHandleVariableCommunicationStepSize": "false"}
    controller = reference_path("fmi2/ThermostatController.fmu")
    builder = SystemBuilder("heating")
    builder.add("room", reference_path("fmi2/ThermostatRoom.fmu"))
    builder.add("controller", edited_fmu(controller, tmp_path / "c.fmu", capabilities=fixed))
    builder.connect("room.x", "controller.x")
    builder.connect("controller.q", "room.q")
    prepared = Simulation(builder, stop_time=1, step_size=0.1).prepare()
    assert prepared.chosen.settings["event_clock"] == NoEventClock()
    assert "'controller' cannot vary the step size" in prepared.notes[0]
    assert "ends of steps" in prepared.notes[0]


def without_triggers(folder: Path) -> Path:
    lower = reference_path("fmi2/TwoMassLower.fmu")
    with zipfile.ZipFile(lower) as archive:
        manifest = archive.read(EXTRA).decode()
    bare = re.sub(r'(name="collision"[^>]*) trigger="[^"]*"', r"\1", manifest)
    assert bare != manifest
    return add_manifest(lower, bare.encode(), folder / "lower.fmu")


def test_an_event_clock_that_would_be_refused_is_no_advice(tmp_path: Path) -> None:
    """Shared events without a trigger: the warning names what the FMU lacks, not a clock that needs it."""
    simulation = Simulation(
        masses_of(without_triggers(tmp_path)), event_clock="none", stop_time=1, step_size=0.1
    )
    [warning] = simulation.prepare().accuracy_warnings
    assert "has no trigger in 'lower'" in warning
    assert "Name a trigger in the FMU's manifest" in warning
    assert "Use event_clock=Predictive()" not in warning


def test_steps_become_short_before_shared_events_without_a_trigger(tmp_path: Path) -> None:
    """Without an event clock both masses are 8 mm away from their places after one collision."""
    results = Simulation(masses_of(without_triggers(tmp_path)), stop_time=1, step_size=0.02).run()
    assert "events: LookAhead, because shared events have no trigger" in results.statistics.notes[0]
    exact = TwoMassReference(1.0)(results.time[-1:])[0]
    assert [results["upper.x"][-1], results["lower.x"][-1]] == pytest.approx(exact[::2], abs=5e-4)
    assert not any("twice or missed" in text for text in results.statistics.warnings)


def test_shared_events_without_a_trigger_and_without_declared_members_are_a_warning(
    tmp_path: Path,
) -> None:
    """Nothing compares the members then: carts of such FMUs had 10 events instead of 8, without a word."""
    system = masses_of(without_triggers(tmp_path), declares_members=False)
    prepared = Simulation(system, stop_time=1, step_size=0.02).prepare()
    assert prepared.chosen.settings["event_clock"] == LookAhead()
    [warning] = prepared.accuracy_warnings
    assert "may be executed twice or missed: 'upper.collision', 'lower.collision'" in warning
    assert "builder.share_event(name, members...)" in warning


def test_the_reason_for_no_event_clock_is_what_the_system_lacks() -> None:
    lower = reference_path("fmi2/TwoMassLower.fmu")
    prepared = Simulation(masses_of(lower, declares_members=False), stop_time=1).prepare()
    lacks = "the event 'upper.collision' is shared, but the system does not declare its members"
    assert f"no event clock, because {lacks}" in prepared.notes[0]
    assert lacks[4:] in prepared.accuracy_warnings[0]


def test_fmus_without_states_are_predicted_too(tmp_path: Path) -> None:
    lower = reference_path("fmi2/TwoMassLower.fmu")
    without = {"canGetAndSetFMUState": "false"}
    system = masses_of(edited_fmu(lower, tmp_path / "lower.fmu", capabilities=without))
    prepared = Simulation(system, stop_time=1, step_size=0.1).prepare()
    assert prepared.chosen.settings["event_clock"] == Predictive()


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("fmi2/TwoMassUpper.fmu", TableRow.PREDICTIVE),
        ("fmi3/BouncingBall.fmu", TableRow.PREDICTIVE),
        ("fmi2/ThermostatController.fmu", TableRow.LOCATE),
        ("fmi2/ThermostatRoom.fmu", TableRow.PREDICTIVE),
        ("fmi3/ThermostatController.fmu", TableRow.EARLY_RETURN),
        ("fmi3/Dahlquist.fmu", TableRow.NONE),
    ],
)
def test_the_row_of_an_fmu(path: str, row: TableRow) -> None:
    found, why = row_of(model(path))
    assert found is row
    assert why


def test_numbers_that_change_at_events_only_decide_for_event_mode_and_model_exchange() -> None:
    """Their time events are met exactly then: a pulse width modulation had errors of 5 % at steps of a fifteenth of it."""
    switch = model("fmi3/ThermostatController.fmu")
    of_numbers = replace(
        switch,
        events=(),
        capabilities=replace(switch.capabilities, might_return_early_from_do_step=False),
        variables=tuple(
            replace(v, type=DataType.FLOAT64) if v.causality is Causality.OUTPUT else v
            for v in switch.variables
        ),
    )
    assert row_of(of_numbers)[0] is TableRow.EVENT_MODE
    exchanged = replace(
        of_numbers, interface=Interface.MODEL_EXCHANGE, capabilities=switch.capabilities
    )
    assert row_of(exchanged)[0] is TableRow.EARLY_RETURN


def test_sweeps_are_not_chosen_where_a_discrete_output_feeds_an_fmu_that_stops(
    simulation: Simulate,
) -> None:
    stops: Any = {
        "has_event_mode": True,
        "might_return_early_from_do_step": True,
        "can_get_and_set_fmu_state": True,
        "provides_intermediate_update": True,
    }
    discrete: Any = {"y": {"variability": Variability.DISCRETE}}
    source = PythonFmu(outputs={"y": lambda v: 1.0}, attributes=discrete, **stops)
    taking: Any = {"u": {"intermediate_update": True}}
    tank = PythonFmu(inputs={"u": 0.0}, outputs={"z": lambda v: v.u}, attributes=taking, **stops)
    made = simulation({"source": source, "tank": tank}, ["source.y -> tank.u"], stop_time=1)
    chosen = made.prepare().chosen.settings
    assert chosen["event_clock"] == EarlyReturn()
    assert chosen["algorithm"] == Jacobi(Polynomial(2, 2))


def test_discrete_outputs_that_are_not_connected_are_not_located() -> None:
    found, _ = row_of(model("fmi2/ThermostatController.fmu"), connected=())
    assert found is TableRow.NONE


def thermostat_beside_masses() -> SystemBuilder:
    builder = masses_of(reference_path("fmi2/TwoMassLower.fmu"))
    for name in ("Room", "Controller"):
        builder.add(name.lower(), reference_path(f"fmi2/Thermostat{name}.fmu"))
    builder.connect("room.x", "controller.x")
    builder.connect("controller.q", "room.q")
    return builder


def test_fmus_that_differ_have_two_methods_together() -> None:
    system = thermostat_beside_masses()
    found = chosen_for(system, stop_time=1.2, step_size=0.1)
    assert found["event_clock"] == Predictive()
    assert found["step_size"] == Locate(0.1)
    results = Simulation(system, stop_time=1.2, step_size=0.1).run()
    times = [e.time for e in results.events if "changed" in str(e) or "discrete" in e.name]
    assert times == pytest.approx([1.053605], abs=1e-6)
    assert any(e.name == "collision" for e in results.events)


def test_events_that_the_chosen_clock_does_not_find_are_told() -> None:
    """Without a step size that can be located, the controller switches at ends of steps."""
    prepared = Simulation(thermostat_beside_masses(), stop_time=1, step_size=Ramp(0.1)).prepare()
    [note] = [n for n in prepared.notes if n.startswith("events:")]
    assert note.endswith("not found, but at the ends of steps: events of 'controller'")


class Sampled(PythonComponent):
    """Its output, a number, changes at the ends of steps only."""

    inputs = {"u": 1.0}  # noqa: RUF012 (as in a user's class)
    outputs = {"y": 0.0}  # noqa: RUF012
    discrete: tuple[str, ...] = ("y",)
    can_go_back = False

    def step(self, time: float, size: float) -> None:
        """y changes."""
        self.y = 0.5 * self.u


class Lag(Sampled):
    """Its output is continuous."""

    discrete = ()


@pytest.mark.parametrize(("kind", "inputs"), [(Sampled, "held inputs"), (Lag, "inputs on lines")])
def test_the_note_says_whether_inputs_follow_lines(kind: type[Sampled], inputs: str) -> None:
    system = SystemBuilder("two")
    for name in "ab":
        system.add(name, kind())
    system.connect("a.y", "b.u")
    notes = Simulation(system, stop_time=1, step_size=0.1).prepare().notes
    assert any(note.startswith(f"coupling: Gauss-Seidel with {inputs}") for note in notes)
