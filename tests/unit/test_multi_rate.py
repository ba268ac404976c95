"""MultiRate: each component on its own grid, with what was published when its step begins."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from python_fmu import PythonFmu
from stored_tables import table

from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.base.errors import OptionError, SimulationError
from fmimaster.events.look_ahead import LookAhead
from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import LINEAR
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Instant, TimeBase
from fmimaster.record.causes import Kind
from fmimaster.steps.multi_rate import MultiRate
from fmimaster.system.model import DataType
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Make = Callable[..., Simulation]
RATES = {"A": "1/100", "B": "1/40", "C": "1/30"}
RING = ["C.y -> A.u", "A.y -> B.u", "B.y -> C.u"]


def clocks(*names: str, **options: Any) -> dict[str, PythonFmu]:
    """Units whose output is the time at which they stand."""
    return {
        n: PythonFmu(n, inputs={"u": 0.0}, outputs={"y": lambda v: v.t}, **options) for n in names
    }


def expected_points() -> list[tuple[Fraction, dict[str, bool]]]:
    rows = table("hybrid_multirate_points.csv")
    return [(Fraction(row["t"]), {n: row[n] == "1" for n in RATES}) for row in rows]


def test_three_rates_step_at_their_own_points_only(simulation: Make) -> None:
    """hybrid.md 9: 141 communication points, exactly 100, 40 and 30 steps, as in the table."""
    units = clocks(*RATES)
    results = simulation(units, RING, step_size=MultiRate(components=RATES), stop_time=1).run()
    expected = expected_points()
    assert results.time.tolist() == [float(t) for t, _ in expected]
    assert len(results.time) == 141
    calls = {i.name: i.calls for i in results.statistics.instances}
    assert calls == {"A": 100, "B": 40, "C": 30}
    for name, unit in units.items():
        steps = unit.instances[0].called(FmiCall.DO_STEP)
        own = [float(t) for t, meets in expected if meets[name]]
        assert [time for time, _ in steps] == own[:-1]
        assert [time + size for time, size in steps] == own[1:]
    assert sum(all(meets.values()) for _, meets in expected) == 11


def test_inputs_are_the_latest_published_when_a_step_begins(simulation: Make) -> None:
    """hybrid.md 9: from the latest published value at or before the start point."""
    units = clocks(*RATES)
    simulation(units, RING, step_size=MultiRate(components=RATES), stop_time=1).run()
    for source, target in [("C", "A"), ("A", "B"), ("B", "C")]:
        own, other = Fraction(RATES[target]), Fraction(RATES[source])
        starts = [k * own for k in range(int(1 / own))]
        published = [float(start // other * other) for start in starts]
        assert units[target].instances[0].was_set("u")[-len(starts) :] == published


def test_between_its_points_a_component_keeps_its_outputs_in_the_rows(simulation: Make) -> None:
    results = simulation(
        clocks("A", "B"), step_size=MultiRate("1/4", {"A": "1/8"}), stop_time=1
    ).run()
    assert results["A.y"].tolist() == results.time.tolist()
    assert results["B.y"].tolist() == [0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1]


def test_all_components_end_at_the_stop_time_with_a_shorter_last_step(simulation: Make) -> None:
    units = clocks(*RATES)
    rule = MultiRate(components=RATES)
    results = simulation(units, RING, step_size=rule, stop_time="0.955").run()
    last = {n: u.instances[0].called(FmiCall.DO_STEP)[-1][0] for n, u in units.items()}
    assert last == pytest.approx({"A": 0.95, "B": 0.95, "C": 28 / 30})
    assert [results[f"{n}.y"][-1] for n in RATES] == [0.955] * 3


def test_one_rate_for_all_is_the_fixed_step_bit_by_bit(simulation: Make) -> None:
    def states() -> dict[str, PythonFmu]:
        def step(v: Any, h: float) -> None:
            v.x += h * (v.u - v.x)

        return {
            n: PythonFmu(
                n, inputs={"u": 0.0}, states={"x": x}, outputs={"y": lambda v: v.x}, step=step
            )
            for n, x in (("A", 1.0), ("B", 2.0), ("C", 3.0))
        }

    settings: dict[str, Any] = {"stop_time": 1, "algorithm": "Jacobi"}
    one = simulation(states(), RING, step_size=MultiRate("1/60"), **settings).run()
    fixed = simulation(states(), RING, step_size="1/60", **settings).run()
    for name in ("time", "A.y", "B.y", "C.y"):
        assert one[name].tolist() == fixed[name].tolist()


def test_the_order_of_listing_does_not_matter(simulation: Make) -> None:
    def run(names: str) -> np.ndarray[Any, Any]:
        rule = MultiRate(components=RATES)
        found = simulation(clocks(*names), RING, step_size=rule, stop_time=1).run()
        return np.stack([found[f"{n}.y"] for n in "ABC"])

    assert run("ABC").tolist() == run("CAB").tolist()


def test_a_long_run_has_one_entry_of_steps_and_all_its_points(simulation: Make) -> None:
    """More rows than the executor keeps at a time: the pattern goes on where it was."""
    units = clocks("A", "B")
    rule = MultiRate(components={"A": "1/1000", "B": "1/400"})
    results = simulation(units, ["A.y -> B.u", "B.y -> A.u"], step_size=rule, stop_time=10).run()
    assert [i.calls for i in results.statistics.instances] == [10_000, 4_000]
    assert results.time.tolist() == sorted(
        {k / 1000 for k in range(10_001)} | {k / 400 for k in range(4_001)}
    )
    assert [s.cause.kind for s in results.steps] == [Kind.GRID, Kind.STOP_TIME]
    assert results.steps[0].count == 11_999


# Grids of several steps ------------------------------------------------------------------------------------------------


def common_grid() -> Grid:
    rule = MultiRate(components=RATES)
    return rule.begin(TimeBase.of([*rule.sizes, Fraction(1, 4)]), 150)


def test_points_of_a_common_grid_come_one_by_one_and_many_at_once() -> None:
    """From a start at 1/4 s."""
    grid = common_grid()
    start = Instant(0.25, 150)
    one_by_one, now = [], start
    for _ in range(140):
        now = grid.after(now)
        one_by_one.append(now.seconds)
    assert one_by_one == [float(Fraction(1, 4) + t) for t, _ in expected_points()[1:]]
    assert grid.seconds_between(start, Instant(1.25, 750), 1000).tolist() == one_by_one[:-1]
    assert grid.seconds_between(start, Instant(2.0, 1200), 7).tolist() == one_by_one[:7]


def test_intervals_are_counted_from_the_start_of_the_pattern() -> None:
    grid = common_grid()
    assert [grid.interval_to(grid.point(k)) for k in (1, 2, 14, 15, 29)] == [0, 1, 13, 0, 0]


# Fixed internal steps ----------------------------------------------------------------------------------------------------


def test_a_component_with_a_fixed_internal_step_gets_a_step_size_of_its_own(
    simulation: Make,
) -> None:
    """canHandleVariableCommunicationStepSize is false, and the step of the others is not a multiple."""
    units = clocks("A") | clocks(
        "plc", can_handle_variable_communication_step_size=False, fixed_internal_step_size=0.03
    )
    results = simulation(units, step_size=MultiRate(0.02), stop_time=0.6).run()
    assert {i.name: i.calls for i in results.statistics.instances} == {"A": 30, "plc": 20}


def test_a_fixed_step_that_does_not_fit_to_an_internal_step_points_to_multi_rate(
    simulation: Make,
) -> None:
    units = clocks("plc", fixed_internal_step_size=0.03)
    results = simulation(units, step_size=0.02, stop_time=0.6).run()
    assert any("--component-step-size plc 0.03" in note for note in results.statistics.notes)


# What is refused -------------------------------------------------------------------------------------------------------


def test_step_sizes_must_be_positive() -> None:
    with pytest.raises(OptionError, match=r"the step size of 'A' is -1 s, expected a positive"):
        MultiRate("1/10", {"A": -1})


def test_a_component_that_is_not_there_is_named(simulation: Make) -> None:
    rule = MultiRate("1/10", {"AA": "1/20"})
    with pytest.raises(OptionError, match=r"there is no component 'AA'.* Did you mean 'A'"):
        simulation(clocks("A", "B"), step_size=rule, stop_time=1).prepare()


def test_step_sizes_that_hardly_ever_meet_are_refused(simulation: Make) -> None:
    rule = MultiRate(components={"A": "0.001", "B": "0.0013711"})
    with pytest.raises(OptionError, match=r"has more than 10000 .* simple ratios"):
        simulation(clocks("A", "B"), step_size=rule, stop_time=1).prepare()


def test_a_span_that_a_component_with_fixed_steps_cannot_end_at_is_refused(
    simulation: Make,
) -> None:
    units = clocks("A") | clocks("plc", can_handle_variable_communication_step_size=False)
    rule = MultiRate("1/10", {"plc": "3/10"})
    with pytest.raises(OptionError, match=r"not a multiple of the step size 0\.3 s, but 'plc'"):
        simulation(units, step_size=rule, stop_time=1).prepare()


def test_event_clocks_are_refused(simulation: Make) -> None:
    with pytest.raises(OptionError, match=r"event clock LookAhead .* MultiRate .* SubSteps"):
        simulation(
            clocks("A"), step_size=MultiRate(0.1), event_clock=LookAhead(), stop_time=1
        ).prepare()


@pytest.mark.parametrize(
    "settings",
    [{"algorithm": GaussSeidel()}, {"inputs": {"A.u": LINEAR}}, {"algorithm": Jacobi(LINEAR)}],
)
def test_other_algorithms_and_inputs_are_refused(
    simulation: Make, settings: dict[str, Any]
) -> None:
    rule = MultiRate("1/10", {"A": "1/20"})
    run = simulation(clocks(*RATES), RING, step_size=rule, stop_time=1, **settings)
    with pytest.raises(OptionError, match=r"cannot be combined with .* Leave it out, or use SubS"):
        run.prepare()


def test_a_loop_across_rates_is_refused(simulation: Make) -> None:
    units = {
        n: PythonFmu(n, inputs={"u": 0.0}, outputs={"y": lambda v: 0.5 * v.u}, depends={"y": ["u"]})
        for n in "AB"
    }
    rule = MultiRate("1/10", {"A": "1/20"})
    loop = ["A.y -> B.u", "B.y -> A.u"]
    with pytest.raises(OptionError, match=r"'A' and 'B' share an algebraic loop"):
        simulation(units, loop, step_size=rule, stop_time=1).prepare()


def test_events_of_discrete_inputs_are_refused(simulation: Make) -> None:
    whole = {"type": DataType.INT32}
    units = {
        "A": PythonFmu("A", outputs={"n": lambda v: 1}, attributes={"n": whole}),
        "B": PythonFmu(
            "B",
            inputs={"n": 0},
            outputs={"y": lambda v: v.t},
            attributes={"n": whole},
            has_event_mode=True,
        ),
    }
    rule = MultiRate("1/10", {"A": "1/20"})
    with pytest.raises(OptionError, match=r"'B' has events in common with other components"):
        simulation(units, ["A.n -> B.n"], step_size=rule, event_mode=True, stop_time=1).prepare()


def test_a_time_event_ends_the_run_with_its_time(simulation: Make) -> None:
    units = clocks("A") | {
        "B": PythonFmu(
            "B",
            outputs={"y": lambda v: v.t},
            has_event_mode=True,
            update=lambda v: UpdateAnswer(next_event_time=0.33),
        )
    }
    rule = MultiRate("1/10", {"A": "1/20"})
    run = simulation(units, step_size=rule, event_mode=True, stop_time=1)
    with pytest.raises(SimulationError, match=r"'B' has a time event at t = 0\.33 s"):
        run.run()


def test_an_fmu_that_ends_the_run_ends_it(simulation: Make) -> None:
    def step(v: Any, h: float) -> StepAnswer | None:
        return StepAnswer(v.t + h, terminate=True) if v.t + h > 0.45 else None

    units = clocks("A") | {"B": PythonFmu("B", outputs={"y": lambda v: v.t}, step=step)}
    results = simulation(units, step_size=MultiRate("1/10", {"A": "1/20"}), stop_time=1).run()
    assert results.time[-1] == 0.5
