"""What a user reads when a step-size controller cannot do its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster import NotANumberError, OptionError, ProgramError, Results, SimulationError
from fmimaster.algorithms import Jacobi, Waveform
from fmimaster.steps import PID, EmbeddedOrders, PredictorCorrector
from fmimaster.system import Port, PowerBond

Simulate = Callable[..., Results]


def mass(**capabilities: Any) -> PythonFmu:
    """Moves under a force."""

    def step(v: Any, h: float) -> None:
        v.v += h * v.force

    return PythonFmu(
        inputs={"force": 0.0},
        states={"v": 1.0},
        outputs={"velocity": lambda v: v.v},
        step=step,
        **capabilities,
    )


def spring(output: Callable[[Any], float] = lambda v: -v.x) -> PythonFmu:
    """Is stretched by a velocity."""

    def step(v: Any, h: float) -> None:
        v.x += h * v.velocity

    return PythonFmu(
        inputs={"velocity": 0.0}, states={"x": 0.0}, outputs={"force": output}, step=step
    )


LINKS = ["spring.force -> mass.force", "mass.velocity -> spring.velocity"]


def bond(**numbers: Any) -> PowerBond:
    """Between both; the spring's output is the force on the mass."""
    ports = Port("mass", "force", "velocity", "in"), Port("spring", "velocity", "force", "out")
    return PowerBond("rod", ports, **numbers)


def run(simulate: Simulate, rule: PID, *units: PythonFmu, **settings: Any) -> Results:
    first, second = units or (mass(), spring())
    return simulate(
        {"mass": first, "spring": second}, LINKS, stop_time=1, step_size=rule, **settings
    )


ECCO = PID.ecco(0.1, 0.001)
BY_ORDERS = PID(0.1, (EmbeddedOrders(),))


def test_ecco_without_bonds_says_how_to_declare_one(simulate: Simulate) -> None:
    """energy.md 9.4."""
    with pytest.raises(OptionError, match=r"the system has none\. Declare one: power_bonds="):
        run(simulate, ECCO)


def test_ecco_without_scale_and_tolerance_names_the_bond(simulate: Simulate) -> None:
    with pytest.raises(OptionError, match="Power bond 'rod' has no energy scale or no tolerance"):
        run(simulate, ECCO, power_bonds=[bond(scale=1.0)])


@pytest.mark.usefixtures("each_executor")
def test_a_whole_number_is_a_scale(simulate: Simulate) -> None:
    """Found by a user: the kernel read the integers as floats, and the error was NaN."""
    whole, floats = (
        run(simulate, ECCO, power_bonds=[bond(scale=number, tolerance=number)])
        for number in (1, 1.0)
    )
    assert list(whole["energy_error"]) == list(floats["energy_error"])


def test_an_fmu_that_cannot_be_restored_is_named_if_steps_are_repeated(simulate: Simulate) -> None:
    unable = mass(can_get_and_set_fmu_state=False)
    with pytest.raises(ProgramError, match=r"when each step is repeated \(sweeps\), but cannot"):
        run(simulate, BY_ORDERS, unable, spring(), algorithm=Waveform(Jacobi(), sweeps=2))


def test_a_controller_by_outputs_needs_some(simulate: Simulate) -> None:
    with pytest.raises(OptionError, match="continuous outputs that feed others, and the system"):
        simulate({"mass": mass()}, stop_time=1, step_size=PID(0.1, (PredictorCorrector(),)))


def test_an_fmu_with_fixed_communication_steps_is_named(simulate: Simulate) -> None:
    """Issue 11, bad input."""
    fixed = mass(can_handle_variable_communication_step_size=False)
    with pytest.raises(OptionError, match="'mass' cannot vary its step size"):
        run(simulate, ECCO, fixed, spring(), power_bonds=[bond(scale=1.0, tolerance=1e-3)])


def test_a_smallest_step_that_doubles_cannot_tell_from_none_is_refused(simulate: Simulate) -> None:
    """With such a step the run would stand still for ever."""
    bonds = [bond(scale=1.0, tolerance=1e-30)]
    with pytest.raises(OptionError, match=r"step size 1e-22 s is too small: near t = 1 s"):
        run(simulate, PID.ecco(0.1, "1e-22"), power_bonds=bonds)


@pytest.mark.usefixtures("each_executor")
def test_nan_is_not_lost_among_other_outputs(simulate: Simulate) -> None:
    """Issue 11, bad input: in the first step after the output became NaN, with its name."""
    broken = spring(lambda v: -v.x if v.t < 0.5 else nan)
    units = {"a": broken, "b": mass(), "c": mass(), "d": mass()}
    links = ["a.force -> b.force", "b.velocity -> c.force", "c.velocity -> a.velocity"]
    rule = PID(0.1, (PredictorCorrector(),), first=0.1)
    with pytest.raises(NotANumberError, match=r"prediction_error of a\.force is nan at t = 0\.5"):
        simulate(units, links, stop_time=1, step_size=rule, allow_nan=True)


def test_an_fmu_that_cannot_be_restored_is_named_if_steps_are_rejected(simulate: Simulate) -> None:
    """Issue 11: a clear refusal by name."""
    unable = mass(can_get_and_set_fmu_state=False)
    bonds = [bond(scale=1.0, tolerance=1e-3)]
    with pytest.raises(ProgramError, match="'mass' may have to go back when a step is undone"):
        run(simulate, replace(ECCO, reject_above=1.0), unable, spring(), power_bonds=bonds)
    run(simulate, ECCO, unable, spring(), power_bonds=bonds)


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("reject_above", [None, 1.0])
@pytest.mark.parametrize(
    ("rule", "who"),
    [
        (ECCO, "rod"),
        (PID(0.1, (PredictorCorrector(),)), "spring.force"),
        (PID(0.1, (EmbeddedOrders(),)), "spring.force"),
    ],
)
def test_nan_in_an_output_ends_the_run_with_the_name_of_the_bond_or_output(
    simulate: Simulate, rule: PID, who: str, reject_above: float | None
) -> None:
    """energy.md 9.6; issue 11, bad input: NaN in an indicator."""
    broken = spring(lambda v: -v.x if v.t < 0.5 else nan)
    with pytest.raises(SimulationError, match=f"{who}.* nan|nan.* {who}|{who}.*NaN") as caught:
        run(
            simulate,
            replace(rule, reject_above=reject_above),
            mass(),
            broken,
            power_bonds=[bond(scale=1.0, tolerance=1e-2)] if rule is ECCO else [],
            allow_nan=True,
        )
    assert isinstance(caught.value, NotANumberError)


@pytest.mark.usefixtures("each_executor")
def test_a_system_at_rest_runs_with_the_largest_step(simulate: Simulate) -> None:
    """energy.md 9.6: all residuals are 0, and nothing is divided by zero."""

    def still() -> PythonFmu:
        return PythonFmu(
            inputs={"force": 0.0}, states={"v": 0.0}, outputs={"velocity": lambda v: v.v}
        )

    results = run(simulate, ECCO, still(), spring(), power_bonds=[bond(scale=1.0, tolerance=1e-3)])
    assert results["energy_error"].tolist() == [0.0] * len(results.time)
    assert results["step_size"][-2] == pytest.approx(0.1)
    assert results["step_size"][1:4] == pytest.approx([0.001, 0.0015, 0.00225])
