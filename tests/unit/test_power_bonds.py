"""Power bonds: residual power and energy as signals, orientation, and what cannot be a bond (energy.md 1, 7, 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest
from pytest import approx
from python_fmu import Bench, PythonFmu
from quarter_car_units import (
    CHASSIS,
    CHASSIS_MASS,
    DAMPING,
    NEWTON,
    SPEED,
    SPLIT_A,
    SUSPENSION,
    WHEEL,
    chassis_a,
    split_a,
    wheel_a,
)

from fmimaster.algorithms import (
    Algorithm,
    GaussSeidel,
    Jacobi,
    Refreshed,
    Richardson,
    SubSteps,
    Waveform,
)
from fmimaster.base.errors import DescriptionError, NotANumberError
from fmimaster.base.installation import reference_path
from fmimaster.events.event_clock import EarlyReturn
from fmimaster.events.look_ahead import LookAhead
from fmimaster.fmu.instance import StepAnswer
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.results.results import Results
from fmimaster.results.statistics import BondStatistics
from fmimaster.run.executor import Backend
from fmimaster.steps.locate import Locate
from fmimaster.steps.pid import PID
from fmimaster.steps.ramp import Ramp
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.description import Port, PowerBond
from fmimaster.system.model import DataType, Unit, Variability

Simulate = Callable[..., Results]

KILONEWTON = Unit("kN", (1, 1, -2, 0, 0, 0, 0, 0), factor=1000.0)

pytestmark = pytest.mark.usefixtures("each_executor")

SIGNALS = (
    "power_1",
    "power_2",
    "power",
    "residual_power",
    "residual_energy",
    "transmitted_energy",
)


def car(
    simulate: Simulate,
    units: Mapping[str, PythonFmu] | None = None,
    connections: Any = SPLIT_A,
    start_values: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Results:
    """A short run of the quarter car with its bond."""
    usual = {"power_bonds": [SUSPENSION], "step_size": "1e-3", "stop_time": 0.05}
    return simulate(units or split_a(), connections, start_values, **usual | settings)


def columns(r: Results, bond: str = "suspension") -> list[np.ndarray[Any, Any]]:
    """The recorded signals of a bond."""
    return [r[f"{bond}.{name}"] for name in SIGNALS]


def two_cars() -> tuple[dict[str, PythonFmu], list[Any], list[PowerBond]]:
    """Two cars that know nothing of each other, with the bonds a and b."""
    units, links, bonds = dict[str, PythonFmu](), list[Any](), list[PowerBond]()
    for k in "ab":
        units |= {f"{name}_{k}": unit for name, unit in split_a().items()}
        links.append(f"chassis_{k}.velocity -> wheel_{k}.velocity")
        links.append((f"wheel_{k}.force -> chassis_{k}.force", {"factor": -1.0}))
        first, second = (replace(p, component=f"{p.component}_{k}") for p in SUSPENSION.ports)
        bonds.append(replace(SUSPENSION, name=k, ports=(first, second)))
    return units, links, bonds


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_the_residual_energy_of_the_quarter_car_is_that_of_the_paper(version: str) -> None:
    """energy.md 4, lin A, constant step 1 ms: mean P12 0.392 W, residual energy 6.349 J (printed 0.4 W, 6.4 J)."""
    path = reference_path(f"systems/quarter-car-a-{version}.ssp")
    stop = 4.0 if Bench.backend is Backend.FASTEST else 0.05
    r = Simulation(
        path,
        power_bonds=[SUSPENSION],
        step_size="1e-3",
        stop_time=stop,
        algorithm="Jacobi",
        backend=Bench.backend,
    ).run()
    residual = r["suspension.residual_power"]
    assert np.sum(residual[1:]) * 1e-3 == approx(r["suspension.residual_energy"][-1], rel=1e-9)
    (summary,) = r.power_bonds
    assert summary.residual_energy == r["suspension.residual_energy"][-1]
    assert summary.largest_residual == np.max(np.abs(residual[1:]))
    assert summary.largest_at == r.time[np.argmax(np.abs(residual))]
    assert summary.share == summary.residual_energy / 750.0
    assert any(line.startswith("suspension") for line in r.statistics.lines())
    if stop == 4.0:
        assert r["suspension.residual_energy"][-1] == approx(6.349, abs=5e-4)
        assert r["suspension.transmitted_energy"][-1] / 4.0 == approx(0.392, abs=5e-4)
        assert summary.mean_error == approx(1.1513, abs=5e-5)  # energy.md 4, figure 4


def test_the_signals_are_those_of_the_definition(simulate: Simulate) -> None:
    """energy.md 1: u~ is the value that was held, y the output at the end of the step."""
    h = 1e-3
    r = car(simulate, algorithm="Jacobi")
    force, velocity = r["wheel.force"], r["chassis.velocity"]
    into_chassis, into_wheel = -force[:-1] * velocity[1:], velocity[:-1] * force[1:]
    residual = into_chassis + into_wheel
    power = force[1:] * velocity[1:]
    expected = [
        -into_chassis,
        -into_wheel,
        power,
        residual,
        h * np.cumsum(residual),
        h * np.cumsum(power),
    ]
    for found, wanted in zip(columns(r), expected, strict=True):
        assert found[1:] == approx(wanted, rel=1e-12, abs=1e-12)
        assert found[0] == 0.0  # the initial row
    r_energy = 2.8e-6 * (750.0 + np.abs(power * h))
    assert r["energy_error"][1:] == approx(np.abs(residual * h) / r_energy, rel=1e-9)


def test_an_initial_row_has_the_powers_of_the_start(simulate: Simulate) -> None:
    """No step has ended there: no energy."""
    start = {"chassis.vc": 2.0, "wheel.zw": -0.1}
    r = car(simulate, None, SPLIT_A, start, stop_time=-0.95, start_time=-1.0)
    assert [c[0] for c in columns(r)] == approx([7000.0, -7000.0, 7000.0, 0.0, 0.0, 0.0])
    assert r["suspension.residual_energy"][1] == approx(1e-3 * r["suspension.residual_power"][1])


# Orientation ----------------------------------------------------------------------------------------------------------


def test_the_order_of_the_ports_turns_the_transmitted_power(simulate: Simulate) -> None:
    """energy.md 9.2: dP stays, P12 has the other sign."""
    settings: dict[str, Any] = {"step_size": "1e-3", "stop_time": 0.05}
    swapped = replace(SUSPENSION, ports=(WHEEL, CHASSIS))
    a, b = (
        columns(simulate(split_a(), SPLIT_A, power_bonds=[bond], **settings))
        for bond in (SUSPENSION, swapped)
    )
    assert np.array_equal(a[3], b[3])
    assert np.array_equal(a[2], -b[2])
    assert np.array_equal(a[0], b[1])
    assert a[2].any()


def test_plain_connections_give_the_same_powers(simulate: Simulate) -> None:
    """energy.md 9.2: the wheel delivers minus the force, and its port is turned: the same dP and P12."""
    settings: dict[str, Any] = {"step_size": "1e-3", "stop_time": 0.05}
    a = simulate(split_a(), SPLIT_A, power_bonds=[SUSPENSION], **settings)
    turned = replace(SUSPENSION, ports=(CHASSIS, replace(WHEEL, power="out")))
    plain = ["chassis.velocity -> wheel.velocity", "wheel.force -> chassis.force"]
    units = {"chassis": chassis_a(), "wheel": wheel_a(sign=-1.0)}
    b = simulate(units, plain, power_bonds=[turned], **settings)
    for one, other in zip(columns(a), columns(b), strict=True):
        assert np.array_equal(one, other)


def test_units_are_converted_to_watt(simulate: Simulate) -> None:
    """A force in kN, and the connection that converts it."""
    settings: dict[str, Any] = {"step_size": "1e-3", "stop_time": 0.05}
    a = simulate(split_a(), SPLIT_A, power_bonds=[SUSPENSION], **settings)
    inner = chassis_a()
    units = {
        "chassis": PythonFmu(
            "chassis",
            inputs={"force": 0.0},
            states={"vc": 0.0},
            outputs=inner.outputs,
            step=lambda v, h: setattr(v, "vc", v.vc + 1000.0 * v.force * h / 400.0),
            attributes={
                "force": {"unit": KILONEWTON},
                "velocity": {"unit": Unit("m/s", (0, 1, -1, 0, 0, 0, 0, 0))},
            },
        ),
        "wheel": wheel_a(),
    }
    b = simulate(units, SPLIT_A, power_bonds=[SUSPENSION], **settings)
    for one, other in zip(columns(a), columns(b), strict=True):
        assert other == approx(one, rel=1e-9, abs=1e-9)


# Every algorithm ------------------------------------------------------------------------------------------------------

ALGORITHMS: Mapping[str, tuple[Algorithm, Mapping[str, Any]]] = {
    "jacobi": (Jacobi(), {}),
    "polynomials": (Jacobi(Polynomial(2, 0)), {"provides_intermediate_update": True}),
    "rates": (Jacobi(Polynomial(3, 0)), {"max_input_derivative_order": 1}),
    "means": (Jacobi(Polynomial(2, 0)), {"can_get_and_set_fmu_state": True}),
    "gauss-seidel": (GaussSeidel(), {"can_get_and_set_fmu_state": True}),
    "solved": (
        Waveform(GaussSeidel(), solver=LoopSolver()),
        {"can_get_and_set_fmu_state": True},
    ),
    "refreshed": (Refreshed(Jacobi()), {"has_event_mode": True}),
    "waveform": (Waveform(Jacobi(), sweeps=3), {"can_get_and_set_fmu_state": True}),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_residuals_are_recorded_with_every_algorithm(simulate: Simulate, name: str) -> None:
    """energy.md 9.4; the kernel gives the same bits as the interpreter."""
    algorithm, can = ALGORITHMS[name]
    settings = {"algorithm": algorithm, "power_bonds": [SUSPENSION], "step_size": "1e-3"}
    r = simulate(split_a(**can), SPLIT_A, stop_time=0.05, **settings)
    other = simulate(split_a(**can), SPLIT_A, stop_time=0.05, backend=Backend.REFERENCE, **settings)
    for one, two in zip(columns(r), columns(other), strict=True):
        assert np.array_equal(one, two)
    power, transmitted = r["suspension.power"], r["suspension.transmitted_energy"]
    assert power == approx(r["wheel.force"] * r["chassis.velocity"], rel=1e-9)
    assert transmitted[-1] == approx(1e-3 * np.sum(power[1:]))
    assert np.abs(r["suspension.residual_power"]).max() > 0.0


@pytest.mark.parametrize(
    "can", [{"provides_intermediate_update": True}, {"max_input_derivative_order": 1}]
)
def test_the_input_of_a_polynomial_is_its_end_value(
    simulate: Simulate, can: Mapping[str, Any]
) -> None:
    """energy.md 1: that of the line through the last two outputs, from the second step on."""
    r = car(simulate, split_a(**can), algorithm=Jacobi(Polynomial(2, 0)))
    force, velocity = r["wheel.force"], r["chassis.velocity"]
    end = 2 * force[1:-1] - force[:-2]
    assert r["suspension.power_1"][2:] == approx(end * velocity[2:], rel=1e-9, abs=1e-9)


def test_transmitted_power_is_that_of_outputs_corrected_for_means(simulate: Simulate) -> None:
    """The wheel takes no polynomials: its force is corrected to the velocity at the end of the step."""
    wheel = wheel_a(partials={"force": {"velocity": DAMPING}})
    results = simulate(
        {"chassis": chassis_a(), "wheel": wheel},
        SPLIT_A,
        algorithm=Jacobi(Polynomial(2, 0)),
        stop_time=0.03,
        step_size=0.01,
        power_bonds=[SUSPENSION],
    )
    power = results["wheel.force"] * results["chassis.velocity"]
    assert results["suspension.power"] == approx(power, rel=1e-12)
    assert results["suspension.transmitted_energy"][-1] == approx(sum(power[1:]) * 0.01)


def test_an_fmu_that_takes_whole_polynomials_is_measured_with_them(simulate: Simulate) -> None:
    """energy.md 1: also if it says besides that it takes the first derivative."""
    parabola = Jacobi(Polynomial(3, 0))
    whole: dict[str, Any] = {"provides_intermediate_update": True}
    expected = car(simulate, split_a(**whole), algorithm=parabola)
    r = car(simulate, split_a(**whole, max_input_derivative_order=1), algorithm=parabola)
    assert np.array_equal(r["wheel.force"], expected["wheel.force"])
    for one, other in zip(columns(r), columns(expected), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "algorithm", [SubSteps(counts={"wheel": 4}), Richardson(Jacobi())], ids=str
)
def test_the_error_of_a_step_is_that_of_all_its_intervals(
    simulate: Simulate, algorithm: Algorithm
) -> None:
    """energy.md 2.1: of the whole communication step, also where it is done in parts that are kept."""
    r = car(simulate, algorithm=algorithm, stop_time=0.02)
    residual, transmitted = (
        np.diff(r[f"suspension.{name}_energy"]) for name in ("residual", "transmitted")
    )
    expected = np.abs(residual) / (2.8e-6 * (750.0 + np.abs(transmitted)))
    assert r["energy_error"][1:] == approx(expected, rel=1e-9, abs=1e-9)
    assert expected[-1] > 1.0


def test_steps_that_are_undone_leave_no_energy(simulate: Simulate) -> None:
    """What the measures remember goes back with the outputs."""
    count = PythonFmu(
        "count",
        states={"n": 0.0},
        outputs={"n_out": lambda v: v.n},
        step=lambda v, h: setattr(v, "n", float(v.t + h > 0.0213)),
        attributes={"n_out": {"variability": Variability.DISCRETE}},
        can_get_and_set_fmu_state=True,
    )
    sink = PythonFmu("sink", inputs={"n": 0.0}, can_get_and_set_fmu_state=True)
    units = {**split_a(can_get_and_set_fmu_state=True), "count": count, "sink": sink}
    connections = [*SPLIT_A, "count.n_out -> sink.n"]
    r = car(simulate, units, connections, step_size=Locate("1e-3", tolerance=1e-6))
    assert r.statistics.rejections > 0
    h, power = np.diff(r.time), r["suspension.residual_power"]
    assert r["suspension.residual_energy"][-1] == approx(np.sum(h * power[1:]), rel=1e-9)


def test_steps_of_different_lengths_count_with_theirs(simulate: Simulate) -> None:
    r = car(simulate, step_size=Ramp("1e-3"))
    h, power = np.diff(r.time), r["suspension.residual_power"]
    assert len({*np.round(h, 9)}) > 1
    assert r["suspension.residual_energy"][-1] == approx(np.sum(h * power[1:]), rel=1e-9)


def test_an_event_has_powers_but_no_energy(simulate: Simulate) -> None:
    """energy.md 7: a jump is no error of the coupling; what it does to energy is reported separately."""

    def step(v: Any, h: float) -> StepAnswer | None:
        end = min(v.t + h, 0.0205) if v.t < 0.0205 else v.t + h
        v.vc = v.vc + v.force * (end - v.t) / CHASSIS_MASS
        early = end < v.t + h
        v.push = float(early)
        return StepAnswer(end, early=True, event=True) if early else None

    def update(v: Any) -> None:
        v.vc, v.push = v.vc + v.push, 0.0

    chassis = PythonFmu(
        "chassis",
        inputs={"force": 0.0},
        states={"vc": 0.0, "push": 0.0},
        outputs=chassis_a().outputs,
        step=step,
        update=update,
        attributes={"force": {"unit": NEWTON}, "velocity": {"unit": SPEED}},
        has_event_mode=True,
        might_return_early_from_do_step=True,
        can_get_and_set_fmu_state=True,
    )
    units = {"chassis": chassis, "wheel": wheel_a(can_get_and_set_fmu_state=True)}
    r = car(simulate, units, event_clock=EarlyReturn(), step_size="1e-3")
    (k,) = np.flatnonzero(np.diff(r.time) == 0.0)
    left, right = k, k + 1
    assert r["chassis.velocity"][right] == approx(r["chassis.velocity"][left] + 1.0)
    for name in ("residual_energy", "transmitted_energy"):
        assert r[f"suspension.{name}"][right] == r[f"suspension.{name}"][left] != 0.0
    power = r["wheel.force"] * r["chassis.velocity"]
    assert r["suspension.power"] == approx(power, rel=1e-9)
    h = np.diff(r.time)
    residual = r["suspension.residual_power"]
    # the force of the wheel shows the event after one more step, at the end of which it jumps
    of_event = h[right] * residual[right + 1]
    assert r["suspension.residual_energy"][-1] == approx(
        np.sum(h * residual[1:]) - of_event, rel=1e-9
    )
    (summary,) = r.power_bonds
    assert summary.event_energy == approx(of_event)
    assert summary.largest_residual < np.max(np.abs(residual))


@pytest.mark.parametrize("size", [100.0, -100.0])
def test_a_step_inside_of_which_an_fmu_has_executed_an_event_is_reported_separately(
    simulate: Simulate, size: float
) -> None:
    """energy.md 7: its residual is large for another reason than the coupling, and is not counted."""

    def step(v: Any, h: float) -> None:
        v.vc = v.vc + v.force * h / CHASSIS_MASS
        if v.t < 0.0205 <= v.t + h:
            v.vc, v.n = v.vc + size, 1

    chassis = PythonFmu(
        "chassis",
        inputs={"force": 0.0},
        states={"vc": 0.0, "n": 0},
        outputs={
            "velocity": lambda v: v.vc,
            "left": lambda v: 0.0205 - v.t if v.n == 0 else 1.0,
            "pushes": lambda v: int(v.n),
        },
        step=step,
        attributes={
            "force": {"unit": NEWTON},
            "velocity": {"unit": SPEED},
            "n": {"type": DataType.INT32},
            "pushes": {"type": DataType.INT32},
        },
        events=[EventDeclaration("push", Scope.PRIVATE, (Indicator("left"),), announce="pushes")],
    )
    units = {"chassis": chassis, "wheel": wheel_a()}
    r = car(simulate, units, event_clock=LookAhead(), step_size="1e-3")
    (event,) = r.events
    (k,) = np.flatnonzero(r.time == event.time)
    h, residual = np.diff(r.time), r["suspension.residual_power"][1:]
    of_event = h[k - 1] * residual[k - 1]
    assert abs(of_event) > 0.0
    (summary,) = r.power_bonds
    assert summary.event_energy == approx(of_event)
    assert summary.residual_energy == approx(np.sum(h * residual) - of_event)
    others = np.delete(np.abs(residual), k - 1)
    assert summary.largest_residual == np.max(others)
    assert summary.mean_error == approx(np.delete(h * np.abs(residual), k - 1).sum() / 0.05 / 2)


def test_bonds_change_nothing_else(simulate: Simulate) -> None:
    settings: dict[str, Any] = {"step_size": "1e-3", "stop_time": 0.05}
    with_bond = simulate(split_a(), SPLIT_A, power_bonds=[SUSPENSION], **settings)
    without = simulate(split_a(), SPLIT_A, **settings)
    for name in without:
        assert np.array_equal(with_bond[name], without[name])


def test_signals_can_be_left_out(simulate: Simulate) -> None:
    r = car(simulate, output_variables=["suspension.power"])
    assert r.names == ("suspension.power",)
    assert r.units == {"suspension.power": "W"}
    assert r.power_bonds[0].residual_energy != 0.0


def test_two_bonds_with_equal_data_have_the_error_of_one(simulate: Simulate) -> None:
    """energy.md 9.3."""
    twice, connections, bonds = two_cars()
    settings: dict[str, Any] = {"step_size": "1e-3", "stop_time": 0.05}
    two = simulate(twice, connections, power_bonds=bonds, **settings)
    one = simulate(split_a(), SPLIT_A, power_bonds=[SUSPENSION], **settings)
    assert two["energy_error"] == approx(one["energy_error"], rel=1e-14)
    in_another_order = dict(reversed(twice.items()))
    again = simulate(in_another_order, connections[::-1], power_bonds=bonds[::-1], **settings)
    assert np.array_equal(again["energy_error"], two["energy_error"])


# Bad input ------------------------------------------------------------------------------------------------------------


def test_a_system_at_rest_has_no_residual(simulate: Simulate) -> None:
    """energy.md 9.6: all residuals are 0, nothing is divided by 0."""
    wheel = wheel_a()
    wheel.outputs["force"] = lambda v: 0.0
    r = car(simulate, {"chassis": chassis_a(), "wheel": wheel})
    assert not any(column.any() for column in columns(r))
    assert not r["energy_error"].any()
    assert r.power_bonds == (BondStatistics("suspension", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 750.0),)


def test_nan_in_an_output_stops_the_run_with_the_name_of_the_bond(simulate: Simulate) -> None:
    """energy.md 9.6."""
    wheel = wheel_a()
    force = wheel.outputs["force"]
    wheel.outputs["force"] = lambda v: nan if v.t > 0.0095 else force(v)
    message = r"'wheel\.force' is NaN at t = 0\.01 s, and so is 'suspension\."
    with pytest.raises(NotANumberError, match=message):
        car(simulate, {"chassis": chassis_a(), "wheel": wheel})


def turned(name: str, **more: Any) -> PowerBond:
    """The bond with another port."""
    ports = tuple(replace(p, **more) if p.component == name else p for p in SUSPENSION.ports)
    return replace(SUSPENSION, ports=(ports[0], ports[1]))


PLAIN = ["chassis.velocity -> wheel.velocity", "wheel.force -> chassis.force"]


@pytest.mark.parametrize(
    ("bond", "connections", "message"),
    [
        (turned("wheel", power="out"), SPLIT_A, "the powers of its ports contradict the connections"),
        (SUSPENSION, PLAIN, "the powers of its ports contradict the connections"),
        (SUSPENSION, SPLIT_A[:1], "its ports 'chassis' (force, velocity) and 'wheel' (velocity, force) are not connected"),
        (SUSPENSION, SPLIT_A[1:], "no connection leads from 'chassis.velocity' to 'wheel.velocity'"),
        (turned("wheel", component="wheels"), SPLIT_A, "there is no component 'wheels'. Did you mean 'wheel'?"),
        (turned("wheel", input="velocty"), SPLIT_A, "'wheel' has no input 'velocty'. Did you mean 'velocity'?"),
        (turned("wheel", output="velocity"), SPLIT_A, "'wheel' has no output 'velocity'"),
        (replace(SUSPENSION, name="wheel"), SPLIT_A, "has the name of a component"),
        (
            SUSPENSION,
            [SPLIT_A[0], ("wheel.force -> chassis.force", {"factor": -1.0, "offset": 3.0})],
            "adds 3, so their powers cannot agree",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_a_bond_is_refused(
    simulate: Simulate, bond: PowerBond, connections: Any, message: str
) -> None:
    """energy.md 9.2 and 9.4: s1 L12 + s2 L21 != 0, a missing connection: an error that names the ports."""
    with pytest.raises(DescriptionError) as caught:
        simulate(split_a(), connections, power_bonds=[bond], stop_time=1.0)
    assert message in str(caught.value)
    assert f"Power bond '{bond.name}'" in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"unit": Unit("m", (0, 1, 0, 0, 0, 0, 0, 0))}, "is not a power ('force' in N"),
        ({"type": DataType.INT32, "start": (0,)}, "is of type Int32, expected a continuous scalar"),
        ({"shape": (2,), "dimensions": (2,), "start": (0.0, 0.0)}, "is an array"),
    ],
)
def test_a_port_that_is_no_power_is_refused(
    simulate: Simulate, more: Mapping[str, Any], message: str
) -> None:
    """energy.md 9.4: a wrong unit product is an error that names the port."""
    chassis = chassis_a()
    variables = tuple(
        replace(v, **more) if v.name == "velocity" else v for v in chassis.model.variables
    )
    chassis.model = replace(chassis.model, variables=variables)
    with pytest.raises(DescriptionError, match="'chassis") as caught:
        simulate({"chassis": chassis, "wheel": wheel_a()}, SPLIT_A[1:], power_bonds=[SUSPENSION])
    assert message in str(caught.value)


def test_variables_that_an_fmu_declares_discrete_are_taken_as_continuous(
    simulate: Simulate,
) -> None:
    """As those of libcosim's quarter truck; an FMU with Event Mode knows what it says."""
    units = split_a()
    for unit in units.values():
        variables = tuple(
            v
            if v.name not in ("force", "velocity")
            else replace(v, variability=Variability.DISCRETE)
            for v in unit.model.variables
        )
        unit.model = replace(unit.model, variables=variables)
    r = car(simulate, units, algorithm=Jacobi(Polynomial(2, 0)))
    for one, other in zip(columns(r), columns(car(simulate, algorithm=Jacobi())), strict=True):
        assert np.array_equal(one, other)
    assert sum("declared discrete" in warning for warning in r.statistics.warnings) == 2
    chassis = units["chassis"]
    capabilities = replace(chassis.model.capabilities, has_event_mode=True)
    chassis.model = replace(chassis.model, capabilities=capabilities)
    with pytest.raises(DescriptionError, match=r"'chassis\.force' is not continuous"):
        car(simulate, units)


def test_missing_units_are_a_warning(simulate: Simulate) -> None:
    """energy.md 7."""
    chassis = chassis_a()
    variables = tuple(replace(v, unit=None) for v in chassis.model.variables)
    chassis.model = replace(chassis.model, variables=variables)
    r = car(simulate, {"chassis": chassis, "wheel": wheel_a()})
    (warning,) = [w for w in r.statistics.warnings if "suspension" in w]
    assert "port 'chassis' (force, velocity) is not known" in warning


@pytest.mark.parametrize("factor", [-1.0, -2.0])
def test_units_that_one_side_lacks_follow_from_the_other(simulate: Simulate, factor: float) -> None:
    """energy.md 7: kN on one side, and nothing on the other: the bond is measured in W, with a warning."""
    links = [SPLIT_A[0], ("wheel.force -> chassis.force", {"factor": factor})]
    chassis, wheel = chassis_a(), wheel_a()
    variables = tuple(
        replace(v, unit=KILONEWTON if v.name == "force" else v.unit)
        for v in chassis.model.variables
    )
    chassis.model = replace(chassis.model, variables=variables)
    bare = tuple(replace(v, unit=None) for v in wheel.model.variables)
    wheel.model = replace(wheel.model, variables=bare)
    r = car(simulate, {"chassis": chassis, "wheel": wheel}, links)
    entering = 1e3 * factor * r["wheel.force"] * r["chassis.velocity"]
    assert r["suspension.power"] == approx(-entering, rel=1e-12)
    (warning,) = [w for w in r.statistics.warnings if "suspension" in w]
    assert "port 'wheel' (velocity, force) is not known" in warning
    assert warning.endswith("follows from the other port.")


@pytest.mark.parametrize("more", [{"scale": None}, {"tolerance": None}])
def test_a_bond_without_scale_or_tolerance_has_no_part_in_the_error(
    simulate: Simulate, more: Mapping[str, Any]
) -> None:
    """And the controller says that it leaves it aside."""
    units, links, bonds = two_cars()
    bonds[1] = replace(bonds[1], **more)
    system: Any = {"units": units, "connections": links, "power_bonds": bonds, "stop_time": 0.01}
    r = car(simulate, **system)
    assert np.array_equal(r["energy_error"], car(simulate, stop_time=0.01)["energy_error"])
    assert r["energy_error"][-1] > 0.0
    r = car(simulate, **system, step_size=PID.ecco("1e-3"))
    assert any("ignores power bonds" in note and "'b'" in note for note in r.statistics.notes)


def test_nan_stops_the_run_with_the_name_of_its_bond_among_several(simulate: Simulate) -> None:
    """energy.md 9.6."""
    units, links, bonds = two_cars()
    force = units["wheel_b"].outputs["force"]
    units["wheel_b"].outputs["force"] = lambda v: nan if v.t > 0.0055 else force(v)
    with pytest.raises(NotANumberError, match="energy_error of b is nan"):
        car(
            simulate,
            units,
            links,
            power_bonds=bonds,
            step_size=PID.ecco("1e-3"),
            allow_nan=True,
        )


def test_an_input_belongs_to_one_bond(simulate: Simulate) -> None:
    """energy.md 7: each port in one bond."""
    bonds = [SUSPENSION, replace(SUSPENSION, name="strut")]
    with pytest.raises(DescriptionError, match=r"its ports are those of Power bond 'suspension'"):
        simulate(split_a(), SPLIT_A, power_bonds=bonds, stop_time=1.0)
    bonds[1] = turned("wheel", output="position")
    with pytest.raises(DescriptionError, match=r"there is a power bond of this name already"):
        simulate(split_a(), SPLIT_A, power_bonds=bonds, stop_time=1.0)
    bonds[1] = replace(bonds[1], name="strut")
    with pytest.raises(DescriptionError, match=r"belongs to power bond 'strut' already"):
        simulate(split_a(), SPLIT_A, power_bonds=bonds, stop_time=1.0)


@pytest.mark.parametrize("more", [{"scale": 0.0}, {"tolerance": nan}, {"name": ""}])
def test_a_bond_without_sense_is_refused(more: Mapping[str, Any]) -> None:
    with pytest.raises(DescriptionError, match=r"expected a positive number|empty name"):
        replace(SUSPENSION, **more)


def test_a_port_has_a_direction() -> None:
    with pytest.raises(DescriptionError, match="expected 'in' if"):
        Port("chassis", "force", "velocity", "inwards")  # type: ignore[arg-type]
