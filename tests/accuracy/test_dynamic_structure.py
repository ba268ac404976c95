"""Systems whose structure changes during a run (hybrid.md 10)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from linear_system import LinearSystem
from linear_writer import write_fmu
from stored_tables import table

from fmimaster import Results, SystemBuilder, reference_path
from fmimaster.algorithms import Jacobi
from fmimaster.base.errors import (
    DescriptionError,
    FileError,
    InputError,
    OptionError,
    SimulationError,
)
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import LINEAR
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.system import Lifetime, Port, PowerBond


def constant(path: Path, value: float) -> Path:
    """An FMU with the output y1 = value."""
    system = LinearSystem(a=[[0.0]], c=[[0.0]], f=[value])
    write_fmu(path, system, reference_path("fmi3/LinearSystem.fmu"))
    return path


def switched(folder: Path) -> SystemBuilder:
    """x' = u: u is 1 until 5 s, -2 until 8 s, then not connected; its start value is 0."""
    system = SystemBuilder("switched")
    system.add("A", constant(folder / "A.fmu", 1.0))
    system.add("B", constant(folder / "B.fmu", -2.0))
    tank = reference_path("fmi3/FillingTank.fmu")
    system.add("C", tank, {"leak": 0, "inflow": 0, "height": 100})
    until, between = Lifetime(until_time=5), Lifetime(from_time=5, until_time=8)
    system.connect("A.y1", "C.inflow", lifetime=until, suppress_unit_conversion=True)
    system.connect("B.y1", "C.inflow", lifetime=between, suppress_unit_conversion=True)
    return system


def fed() -> tuple[SystemBuilder, dict[str, Any]]:
    """g exists until 3 s, another component from 2 s on, and C is fed by it from 4 s on; a table with jumps at 2 s and 4 s,
    and a function."""
    loop_function = reference_path("fmi3/LoopFunction.fmu")
    system = SystemBuilder("fed")
    system.add("C", reference_path("fmi3/FillingTank.fmu"), {"leak": 0, "height": 100})
    system.add("g", loop_function, lifetime=Lifetime(until_time=3))
    system.add("input", loop_function, lifetime=Lifetime(2))
    link: dict[str, Any] = {"lifetime": Lifetime(4), "suppress_unit_conversion": True}
    system.connect("input.y", "C.inflow", **link)
    table = {
        "time": [0, 2, 2, 4, 4, 6],
        "C.inflow": [0, 1, 5, 5, 0, 0],
        "input.u": [0, 0, 7, 9, 1, 1],
    }
    return system, {"input": {**table, "g.u": lambda t: 10 * t}, "output_variables": ["*"]}


def run(system: SystemBuilder, backend: Backend, **settings: Any) -> Results:
    given = {"stop_time": 10, "step_size": 1, "event_mode": True, **settings}
    return Simulation(system.build(), backend=backend, **given).run()


def rows_at(results: Results, time: float, name: str) -> list[float | None]:
    chosen = results[name][results.time == time]
    return [None if v is np.ma.masked else float(v) for v in chosen]


def test_the_table_of_the_spec(backend: Backend, tmp_path: Path) -> None:
    results = run(switched(tmp_path), backend)
    for row in table("hybrid_dynamic_structure.csv"):
        found = rows_at(results, float(row["t"]), "C.level")
        assert found[int(row["n"])] == float(row["x"]), row
    inflow = run(switched(tmp_path), backend, output_variables=["C.inflow"])
    assert [rows_at(inflow, t, "C.inflow") for t in (0.0, 5.0, 8.0, 10.0)] == [
        [1.0],
        [1.0, -2.0],
        [-2.0, 0.0],
        [0.0],
    ]


def test_the_change_is_an_event_with_its_cause(backend: Backend, tmp_path: Path) -> None:
    results = run(switched(tmp_path), backend)
    found = [(e.time, e.index, e.components, str(e.cause)) for e in results.events]
    change = ("C",), "change of the structure"
    assert found == [(t, 1, *change) for t in (5.0, 8.0)]


def test_ten_runs_are_the_same_bytes(tmp_path: Path) -> None:
    """Of both executors, in one thread and in several."""
    files = set()
    for k in range(5):
        for backend in (Backend.REFERENCE, Backend.NATIVE):
            if backend is Backend.NATIVE and native_executor() is None:
                continue
            results = run(switched(tmp_path), backend, threads=8 if k % 2 else 1)
            results.write(tmp_path / f"{k}.csv")
            files.add((tmp_path / f"{k}.csv").read_bytes())
    assert len(files) == 1


def test_a_component_that_joins_is_initialized_at_that_time(
    backend: Backend, tmp_path: Path
) -> None:
    """Its clock counts from there, its columns are absent before and after its life."""
    system = SystemBuilder("joins")
    system.add("A", constant(tmp_path / "A.fmu", 3.0))
    sampler = {"interval.counter": 1, "interval.resolution": 2}
    life = Lifetime("2/3", 3)
    system.add("s", reference_path("fmi3/Sampler.fmu"), sampler, lifetime=life)
    system.add("k", reference_path("fmi3/ClockKinds.fmu"))
    system.connect("A.y1", "s.u")
    names = ["s.tick", "s.y", "s.held", "k.constant.count"]
    results = run(system, backend, stop_time=4, output_variables=names)
    ticks = [s for s in results.activations if s.clock == "s.tick"]
    assert [(s.first, s.interval, s.count) for s in ticks] == [(Fraction(2, 3), Fraction(1, 2), 5)]
    alive = (results.time >= 2 / 3) & (results.time <= 3)
    absent = np.ma.getmaskarray(results["s.held"])
    assert absent[results.time < 2 / 3].all()
    assert not absent[(results.time > 2 / 3) & (results.time < 3)].any()
    assert absent[~alive].all()
    assert rows_at(results, 3.0, "s.held")[-1] is None
    assert results["s.y"][~np.ma.getmaskarray(results["s.y"])].tolist() == [3.0] * 5
    assert int(results["k.constant.count"][-1]) == 41, "the other component goes on"


def test_activations_before_a_change_keep_their_times(backend: Backend) -> None:
    """The resolution of time becomes finer when a clock of other intervals joins."""
    system = SystemBuilder("finer")
    system.add("k", reference_path("fmi3/ClockKinds.fmu"))
    seventh = {"interval.counter": 1, "interval.resolution": 7}
    system.add("s", reference_path("fmi3/Sampler.fmu"), seventh, lifetime=Lifetime("1/3"))
    system.add("later", reference_path("fmi3/ClockKinds.fmu"), lifetime=Lifetime(1))
    results = run(system, backend, stop_time=2)
    found = {a.clock: (a.first, a.interval, a.count) for a in results.activations}
    assert found["k.constant"] == (Fraction(0), Fraction(1, 10), 21)
    assert found["later.constant"] == (Fraction(1), Fraction(1, 10), 11)
    assert found["s.tick"] == (Fraction(1, 3), Fraction(1, 7), 12)


def test_a_change_at_an_event(backend: Backend) -> None:
    """The first bounce removes the ball's neighbour; a second one changes nothing more."""
    system = SystemBuilder("event")
    system.add("ball", reference_path("fmi3/BouncingBall.fmu"), interface="ModelExchange")
    system.add(
        "k", reference_path("fmi3/ClockKinds.fmu"), lifetime=Lifetime(until_event="event of ball")
    )
    results = run(system, backend, stop_time=1.5, output_variables=["ball.h", "k.constant.count"])
    changes = [e for e in results.events if e.name == "change of the structure"]
    bounce = (2 / 9.81) ** 0.5
    assert [e.time for e in changes] == [pytest.approx(bounce, abs=1e-9)]
    absent = np.ma.getmaskarray(results["k.constant.count"])
    assert absent[results.time > changes[0].time].all()
    assert not absent[results.time < changes[0].time].any()


def test_a_change_can_cause_another_one_at_the_same_instant(backend: Backend) -> None:
    """At 1 s, d begins; e begins because of that change."""
    system, constants = SystemBuilder("chain"), reference_path("fmi3/LoopFunction.fmu")
    for name, life in {
        "c": Lifetime(),
        "d": Lifetime(1),
        "e": Lifetime(from_event="change of the structure"),
    }.items():
        system.add(name, constants, {"c0": 1}, lifetime=life)
    results = run(system, backend, stop_time=2)
    found = {name: rows_at(results, 1.0, f"{name}.y") for name in "cde"}
    assert found == {"c": [1, 1, 1], "d": [None, 1, 1], "e": [None, None, 1]}
    assert [(e.components, e.index) for e in results.events] == [(("d",), 1), (("e",), 2)]


def test_an_event_that_does_not_occur_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    system = SystemBuilder("misspelt")
    system.add("A", constant(tmp_path / "A.fmu", 1.0))
    life = Lifetime(from_event="bounse")
    system.add("k", reference_path("fmi3/ClockKinds.fmu"), lifetime=life)
    run(system, Backend.FASTEST, event_mode=None)
    assert "the event 'bounse', at which the structure of the system changes" in caplog.text


def test_a_structure_that_cannot_be_simulated_is_an_error_at_its_time(
    backend: Backend, tmp_path: Path
) -> None:
    """Two sources of one input, from 4 s on: the rows until then are kept."""
    system = SystemBuilder("twice")
    for name, value in (("A", 1.0), ("B", 2.0)):
        system.add(name, constant(tmp_path / f"{name}.fmu", value))
    system.add("C", reference_path("fmi3/FillingTank.fmu"))
    system.connect("A.y1", "C.inflow", suppress_unit_conversion=True)
    system.connect(
        "B.y1", "C.inflow", lifetime=Lifetime(from_time=4), suppress_unit_conversion=True
    )
    with pytest.raises(SimulationError, match=r"changes at t = 4 s.*C\.inflow") as caught:
        run(system, backend)
    assert caught.value.results is not None
    assert caught.value.results.time[-1] == 4.0


def test_a_loop_that_exists_in_an_interval_is_solved_there(
    backend: Backend, tmp_path: Path
) -> None:
    """y = u / 2 + 1 and u = y: y is 2 in the loop, and 1 without it."""
    gain = LinearSystem(a=[[0.0]], b=[[0.0]], c=[[0.0]], d=[[0.5]], f=[1.0])
    write_fmu(tmp_path / "gain.fmu", gain, reference_path("fmi3/LinearSystem.fmu"))
    system = SystemBuilder("loop")
    system.add("g", tmp_path / "gain.fmu")
    system.add("one", constant(tmp_path / "one.fmu", 0.0))
    system.connect("g.y1", "g.u1", lifetime=Lifetime(2, 5))
    results = run(system, backend, stop_time=8, event_mode=None, loops="all")
    y = results["g.y1"]
    assert rows_at(results, 1.0, "g.y1") == [1.0]
    assert y[(results.time > 3) & (results.time < 5)].tolist() == [2.0] * 1
    assert rows_at(results, 7.0, "g.y1") == [1.0]


def test_values_after_a_change_agree_in_the_order_of_dataflow(backend: Backend) -> None:
    """g = 2 u is connected at 2 s; h = 3 g and m = h join there: their first inputs are already those of the change."""
    loop_function = reference_path("fmi3/LoopFunction.fmu")
    system = SystemBuilder("chain")
    system.add("g", loop_function, {"c1": 2, "u": 1})
    system.add("five", loop_function, {"c0": 5, "c1": 0})
    system.add("h", loop_function, {"c1": 3}, lifetime=Lifetime(2))
    system.add("m", loop_function, lifetime=Lifetime(2))
    system.connect("five.y", "g.u", lifetime=Lifetime(2))
    system.connect("g.y", "h.u")
    system.connect("h.y", "m.u")
    results = run(system, backend, stop_time=3, event_mode=None)
    found = {name: rows_at(results, 2.0, f"{name}.y") for name in "ghm"}
    assert found == {"g": [2.0, 10.0], "h": [None, 30.0], "m": [None, 30.0]}


def test_outputs_without_event_mode_are_corrected_or_follow_at_once(
    backend: Backend, tmp_path: Path
) -> None:
    """FMI forbids to read outputs after inputs were set in Step Mode. Linear ones are corrected by directional derivatives;
    after a lost connection a very short step shows the others."""
    gain = LinearSystem(a=[[0.0]], b=[[0.0]], c=[[0.0]], d=[[2.0]])
    write_fmu(tmp_path / "gain.fmu", gain, reference_path("fmi2/LinearSystem.fmu"))
    system = SystemBuilder("chain")
    for name in "gh":
        system.add(name, tmp_path / "gain.fmu")
    system.add("one", constant(tmp_path / "one.fmu", 1.0))
    system.connect("one.y1", "g.u1", lifetime=Lifetime(2, 3))
    system.connect("g.y1", "h.u1")
    results = run(system, backend, stop_time=4, output_variables=["?.?1"])
    names = ("g.u1", "g.y1", "h.u1", "h.y1")
    assert [rows_at(results, 2.0, n) for n in names] == [[0.0, v] for v in (1.0, 2.0, 2.0, 4.0)]
    assert rows_at(results, 3.0, "g.u1") == [1.0, 0.0]
    soon = results.time[results.time > 3.0][0]
    assert soon < 3.001
    assert rows_at(results, soon, "g.y1") == [0.0]


@pytest.mark.parametrize("fmu", ["fmi3/LoopFunction.fmu", "fmi2/LinearSystem.fmu"])
def test_a_loop_without_solution_is_an_error_of_the_change(
    fmu: str, backend: Backend, tmp_path: Path
) -> None:
    """y = u + 1 and u = y from 2 s on, with Event Mode and without."""
    system, path, (u, y) = SystemBuilder("loop"), reference_path(fmu), ("u", "y")
    starts: dict[str, Any] = {"c0": 1}
    if "Linear" in fmu:
        path, starts, u, y = tmp_path / "gain.fmu", {}, "u1", "y1"
        one = LinearSystem(a=[[0.0]], b=[[0.0]], c=[[0.0]], d=[[1.0]], f=[1.0])
        write_fmu(path, one, reference_path(fmu))
    system.add("g", path, starts)
    system.add("k", reference_path("fmi3/EventSource.fmu"), {"count": 0})
    system.connect(f"g.{y}", f"g.{u}", lifetime=Lifetime(2))
    with pytest.raises(SimulationError, match=r"changes at t = 2 s.*loop of g\.u") as caught:
        run(system, backend, stop_time=4, event_mode=None, loops="all")
    assert caught.value.results is not None
    assert caught.value.results.time[-1] == 2.0


@pytest.mark.parametrize(
    ("lifetime", "message"),
    [
        ({"from_time": 3, "until_time": 2}, "is empty"),
        ({"from_time": 1, "from_event": "ball.bounce"}, "Give one of them"),
        ({"from_time": "soon"}, "is not a time"),
    ],
)
def test_lifetimes_that_are_none(lifetime: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        Lifetime(**lifetime)


def test_settings_that_need_one_structure_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="run with pauses"):
        Simulation(switched(tmp_path).build(), stop_time=10, step_size=1).start()
    with pytest.raises(OptionError, match="fits no variable in any structure"):
        run(switched(tmp_path), Backend.FASTEST, output_variables=["D.y"])


def test_states_are_those_of_what_exists_at_the_start_and_at_the_end(
    backend: Backend, tmp_path: Path
) -> None:
    """g exists until 1 s, h from 1 s to 3 s, and C is fed by h from 2 s on; the first run ends at 3/2 s. FMUs of Model
    Exchange do not keep its stop time."""
    system, unable = SystemBuilder("states"), tmp_path / "unable.fmu"
    edited_fmu(LOOP_FUNCTION, unable, capabilities={"canSerializeFMUState": None})
    dahlquist = reference_path("fmi3/Dahlquist.fmu")
    system.add("C", dahlquist, interface="ModelExchange")
    system.add("g", unable, lifetime=Lifetime(until_time=1))
    system.add("h", dahlquist, {"k": 3}, interface="ModelExchange", lifetime=Lifetime(1, 3))
    system.connect("h.x", "C.u", lifetime=Lifetime(2))
    file = tmp_path / "run.states"
    given = {"stop_time": 4, "step_size": 0.5, "output_variables": ["C.*", "h.x"]}
    whole = run(system, backend, **given)
    run(system, backend, **given | {"stop_time": 1.5, "final_fmu_state": file})
    then = run(system, backend, **given | {"start_time": 1.5, "initial_fmu_state": file})
    for name in ("time", "C.x", "C.u", "h.x"):
        expected = whole[name][whole.time >= 1.5]
        assert then[name].tolist() == expected.tolist(), name
    with pytest.raises(OptionError, match="The state of 'g' cannot be written"):
        run(system, backend, stop_time=0.5, step_size=0.5, final_fmu_state=file)
    with pytest.raises(FileError, match=r"has states of other components: h\."):
        run(system, backend, start_time=3, initial_fmu_state=file)


LOOP_FUNCTION = reference_path("fmi3/LoopFunction.fmu")


def test_components_that_a_checkpoint_cannot_continue_are_refused(tmp_path: Path) -> None:
    """Also one that begins later."""
    unable, attributes = tmp_path / "unable.fmu", {"canSerializeFMUState": None}
    edited_fmu(reference_path("fmi3/LoopFunction.fmu"), unable, capabilities=attributes)
    system = switched(tmp_path)
    system.add("later", unable, lifetime=Lifetime(9))
    with pytest.raises(
        OptionError, match=r"'later' in a system whose.*canSerializeFMUState is false"
    ):
        run(system, Backend.FASTEST, checkpoint=tmp_path / "run.checkpoint")
    assert not (tmp_path / "run.checkpoint").exists()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"start_values": {"h.c1": 4}}, 40.0),
        ({"sequence": ("h", "g", "five"), "algorithm": "gauss-seidel"}, 30.0),
        ({"inputs": {"h.u": "linear", "g.*": "linear"}}, 30.0),
    ],
)
def test_settings_may_name_what_exists_later(
    settings: dict[str, Any], expected: float, backend: Backend
) -> None:
    """g = 2 five is connected from 1 s on, h = 3 g exists from 2 s on."""
    loop_function = reference_path("fmi3/LoopFunction.fmu")
    system = SystemBuilder("later")
    system.add("five", loop_function, {"c0": 5, "c1": 0})
    system.add("g", loop_function, {"c1": 2})
    system.add("h", loop_function, {"c1": 3}, lifetime=Lifetime(2))
    system.connect("five.y", "g.u", lifetime=Lifetime(1))
    system.connect("g.y", "h.u")
    results = run(system, backend, stop_time=3, output_variables=["h.y"], **settings)
    assert float(results["h.y"][-1]) == expected
    for name in settings.keys() & {"inputs", "start_values"}:
        with pytest.raises(InputError, match=r"q\.u"):
            run(system, backend, **{name: {"q.u": next(iter(settings[name].values()))}})


def test_signals_of_the_input_feed_what_exists(backend: Backend) -> None:
    """A column that jumps when its component begins, one whose input gets another source, and a function that ends."""
    system, settings = fed()
    results = run(system, backend, stop_time=6, **settings)
    assert rows_at(results, 2.0, "g.y") == [10.0, 20.0, 20.0]
    assert rows_at(results, 3.0, "g.y") == [20.0, None]
    assert [rows_at(results, t, "input.y")[-1] for t in range(7)] == [None, None, 7, 8, 1, 1, 1]
    assert rows_at(results, 2.0, "C.inflow") == [0.5, 5.0, 5.0]
    assert rows_at(results, 4.0, "C.inflow") == [5.0, 0.0, 1.0]
    assert rows_at(results, 6.0, "C.level") == [0.5 + 2 * 5.0 + 2 * 1.0]
    changes = [e.components for e in results.events if e.name == "change of the structure"]
    assert changes == [("input",), ("g",), ("C",)]
    assert {i.name: i.calls for i in results.statistics.instances} == {
        "C": 6,
        "g": 3,
        "input": 4,
        "input_": 6,
    }


def test_an_input_that_has_lost_its_source_gets_its_signal(
    backend: Backend, tmp_path: Path
) -> None:
    given = {"time": [0, 9, 9], "C.inflow": [4.0, 4.0, 6.0]}
    results = run(switched(tmp_path), backend, input=given, output_variables=["C.inflow"])
    found = [rows_at(results, t, "C.inflow") for t in (0, 5, 8, 9)]
    assert found == [[1.0], [1.0, -2.0], [-2.0, 4.0], [4.0, 6.0]]


def test_signals_that_fit_nothing_in_any_structure_are_refused() -> None:
    system, settings = fed()
    settings["input"]["imput.u"] = settings["input"]["g.u"]
    with pytest.raises(OptionError, match=r"'imput\.u' fits no open input in any.*'input\.u'"):
        run(system, Backend.FASTEST, **settings)
    run(system, Backend.FASTEST, ignore_further_columns=True, **settings)
    with pytest.raises(OptionError, match=r"'q\.u' fits no open input"):
        run(system, Backend.FASTEST, ignore_further_columns=True, input={"q.u": lambda t: t})


@pytest.mark.parametrize(
    ("sequence", "expected"), [("bka", [1, 0, -1, -1, 0]), ("kab", [1, 1, 0, -1, -1])]
)
def test_the_order_of_the_description_holds_in_each_structure(
    sequence: str, expected: list[float], backend: Backend, tmp_path: Path
) -> None:
    """a' = b and b' = -a from a = 1, b = 0 in steps of 1 s with held inputs. If b steps first, b -= a, then a += b."""
    unit = LinearSystem(a=[[0.0]], b=[[1.0]], c=[[1.0]], x0=[1.0])
    write_fmu(tmp_path / "unit.fmu", unit, reference_path("fmi3/LinearSystem.fmu"))
    system = SystemBuilder("ring")
    system.add("a", tmp_path / "unit.fmu")
    system.add("b", tmp_path / "unit.fmu", {"x1": 0})
    system.add("k", constant(tmp_path / "k.fmu", 1.0), lifetime=Lifetime(until_time=2))
    system.connect("b.y1", "a.u1")
    system.connect("a.y1", "b.u1", factor=-1.0)
    description = replace(system.build(), sequence=tuple(sequence))
    results = Simulation(
        description, stop_time=4, step_size=1, algorithm="gauss-seidel", backend=backend
    ).run()
    assert [rows_at(results, t, "a.y1")[-1] for t in range(5)] == expected


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_polynomials_begin_and_end_with_their_connection(
    version: str, backend: Backend, tmp_path: Path
) -> None:
    """x' = u with u = t from 2 s to 5 s, held in the first step, then on the line through the last two points."""
    system = LinearSystem(a=[[0.0]], b=[[1.0]], c=[[1.0]], d=[[0.0]])
    write_fmu(tmp_path / "x.fmu", system, reference_path(f"{version}/LinearSystem.fmu"))
    builder = SystemBuilder("polynomials")
    builder.add("time", reference_path("fmi3/EventSource.fmu"), {"count": 0})
    builder.add("i", tmp_path / "x.fmu")
    builder.connect("time.ramp", "i.u1", lifetime=Lifetime(2, 5))
    given = {"stop_time": 7, "algorithm": "jacobi:inputs=linear", "output_variables": ["i.x1"]}
    results = run(builder, backend, **given)
    assert [rows_at(results, t, "i.x1")[-1] for t in range(8)] == [0, 0, 0, 2, 5.5, 10, 10, 10]
    with pytest.raises(SimulationError, match="'i' has a process of its own"):
        run(builder, backend, isolate=["i"], **given)


def test_statistics_are_those_of_all_structures(backend: Backend, tmp_path: Path) -> None:
    """Steps end at 1 s, 2 s, ..., and shortly after the changes at 2 s and 4 s. Between these the loop of g is solved: each
    step in two sweeps of g, the first one in three."""
    gain = LinearSystem(a=[[0.0]], b=[[0.0]], c=[[0.0]], d=[[0.5]], f=[1.0])
    write_fmu(tmp_path / "gain.fmu", gain, reference_path("fmi3/LinearSystem.fmu"))
    system = SystemBuilder("numbers")
    system.add("A", constant(tmp_path / "A.fmu", 1.0), lifetime=Lifetime(until_time=4))
    system.add("B", constant(tmp_path / "B.fmu", 1.0))
    system.add("g", tmp_path / "gain.fmu")
    system.connect("g.y1", "g.u1", lifetime=Lifetime(2, 4))
    found = run(system, backend, stop_time=6, loops="all").statistics
    assert found.steps == 8
    assert {i.name: i.calls for i in found.instances} == {"A": 5, "B": 8, "g": 10}
    assert [loop.variables for loop in found.loops] == [("g.u1", "g.y1")]


def test_a_history_of_outputs_allows_changes(backend: Backend, tmp_path: Path) -> None:
    """Predictive keeps a history. x is 5 at 5 s, then falls by 2 per s."""
    system = switched(tmp_path)
    results = run(system, backend, event_clock="predictive")
    assert float(results["C.level"][-1]) == pytest.approx(-1.0, abs=1e-12)


def test_an_event_clock_may_have_nothing_to_do_in_a_structure(backend: Backend) -> None:
    """Nothing else has indicators, nor any floating point output."""
    system = SystemBuilder("later")
    system.add("k", reference_path("fmi3/ClockKinds.fmu"))
    system.add("ball", reference_path("fmi3/BouncingBall.fmu"), lifetime=Lifetime(1, 2))
    results = run(system, backend, stop_time=3, event_clock="predictive")
    bounce = next(e for e in results.events if e.name == "ball.bounce")
    assert bounce.time == pytest.approx(1 + (2 / 9.81) ** 0.5, abs=1e-7)


def test_processes_have_room_for_the_states_of_later_structures(
    backend: Backend, tmp_path: Path
) -> None:
    """The ball that joins has events that are located, which needs states of all FMUs."""
    system = switched(tmp_path)
    ball = reference_path("fmi3/BouncingBall.fmu")
    system.add("ball", ball, lifetime=Lifetime(from_time=3))
    found = [
        run(system, backend, stop_time=4, isolate=isolate, output_variables=["C.level", "ball.h"])
        for isolate in (True, None)
    ]
    for name in ("C.level", "ball.h"):
        assert found[0][name].tolist() == found[1][name].tolist()


def test_who_joins_gets_the_parameters_that_the_event_clock_needs(
    backend: Backend, tmp_path: Path
) -> None:
    """Predictive fires the bounces of a ball, so the ball must ignore them (eventPolicy 2): also one that comes later."""
    system = switched(tmp_path)
    ball = reference_path("fmi3/BouncingBall.fmu")
    system.add("ball", ball, lifetime=Lifetime(from_time=3))
    names = ["ball.h", "ball.eventPolicy"]
    results = run(system, backend, stop_time=4, event_clock="predictive", output_variables=names)
    bounce = results.events[-1]
    assert (bounce.name, bounce.right["ball.eventPolicy"]) == ("ball.bounce", 2)
    assert bounce.time == pytest.approx(3 + 0.451523640986, abs=1e-9)


def car(version: str, *lives: Lifetime) -> SystemBuilder:
    """The quarter car with its bond, connected in these intervals; the wheel is there for all of them."""
    system = SystemBuilder("car")
    system.add("chassis", reference_path(f"{version}/QuarterCarChassisA.fmu"))
    life = Lifetime(from_time=lives[0].from_time)
    system.add("wheel", reference_path(f"{version}/QuarterCarWheelA.fmu"), lifetime=life)
    for life in lives:
        system.connect("chassis.velocity", "wheel.velocity", lifetime=life)
        system.connect("wheel.force", "chassis.force", factor=-1.0, lifetime=life)
    suspension = (
        Port("chassis", input="force", output="velocity", power="in"),
        Port("wheel", input="velocity", output="force", power="in"),
    )
    system.power_bond("suspension", *suspension, scale=750.0)
    return system


CAR: dict[str, Any] = {
    "stop_time": "1/20",
    "step_size": "1/1000",
    "algorithm": "Jacobi",  # held: polynomials begin again after a change
    "output_variables": ["*"],
}


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_a_power_bond_goes_on_over_a_change_elsewhere(version: str, backend: Backend) -> None:
    undisturbed = run(car(version, Lifetime()), backend, **CAR)
    system = car(version, Lifetime())
    life = Lifetime("1/50", "3/100")
    system.add("g", reference_path("fmi3/LoopFunction.fmu"), lifetime=life)
    results = run(system, backend, **CAR)
    assert results.power_bonds == undisturbed.power_bonds
    inputs = {"chassis.force": "linear", "wheel.velocity": "linear"}
    extrapolated = run(system, backend, inputs=inputs, **CAR)  # held again in the first step
    assert 0.0 < extrapolated.power_bonds[0].mean_error < results.power_bonds[0].mean_error
    last = np.append(np.diff(results.time) > 0, True)
    for name, values in undisturbed.columns.items():
        assert np.ma.getdata(results[name])[last].tolist() == values.tolist(), name


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_a_power_bond_counts_while_it_exists(version: str, backend: Backend) -> None:
    """It begins with the wheel at 10 ms, is not there from 20 ms to 30 ms, and ends at 45 ms; its sums go on."""
    lives = Lifetime("1/100", "1/50"), Lifetime("3/100", "9/200")
    results = run(car(version, *lives), backend, **CAR)
    residual, energy = (results[f"suspension.residual_{n}"] for n in ("power", "energy"))
    there = ~np.ma.getmaskarray(residual)
    times = results.time[there]
    assert (times.min(), times.max()) == (0.01, 0.045)
    assert not ((times > 0.02) & (times < 0.03)).any()
    (bond,) = results.power_bonds
    h = np.diff(times, prepend=times[0]) * (np.diff(times, prepend=times[0]) < 0.009)
    lost = bond.event_energy  # the very short steps of FMUs without Event Mode
    assert bond.residual_energy + lost == pytest.approx((residual[there] * h).sum(), rel=1e-9)
    assert bond.residual_energy == energy[there][-1]
    assert bond.mean_error == pytest.approx((abs(residual[there]) * h).sum() / 0.025 / 2, rel=1e-6)
    assert abs(lost) < 1e-6
    assert bond.scale == 750.0
    rows = rows_at(results, 0.03, "suspension.residual_energy")
    assert rows == [None, rows_at(results, 0.02, "suspension.residual_energy")[0]]


def test_bonds_of_one_input_in_different_structures(backend: Backend) -> None:
    """A chassis that gets another wheel: the second bond begins when the first one ends."""
    system = car("fmi3", Lifetime(until_time="1/50"))
    second, life = "second wheel", Lifetime("1/50")
    system.add(second, reference_path("fmi3/QuarterCarWheelA.fmu"), lifetime=life)
    system.connect("chassis.velocity", f"{second}.velocity", lifetime=life)
    system.connect(f"{second}.force", "chassis.force", factor=-1.0, lifetime=life)
    ports = (
        Port("chassis", input="force", output="velocity", power="in"),
        Port(second, input="velocity", output="force", power="in"),
    )
    system.power_bond("second", *ports)
    results = run(system, backend, **CAR)
    for bond in results.power_bonds:
        energy = results[f"{bond.name}.transmitted_energy"]
        last = energy[~np.ma.getmaskarray(energy)][-1]
        assert bond.transmitted_energy == last != 0.0
    assert {bond.name for bond in results.power_bonds} == {"second", "suspension"}


@pytest.mark.parametrize(
    ("port", "message"), [("chassis", "crosswise in no structure"), ("axle", "no component 'axle'")]
)
def test_a_bond_that_exists_in_no_structure_is_refused(port: str, message: str) -> None:
    other = Port("wheel", input="road", output="force", power="in")
    bond = PowerBond("road", (Port(port, input="force", output="velocity", power="in"), other))
    with pytest.raises(DescriptionError, match=message):
        run(car("fmi3", Lifetime("1/100")), Backend.FASTEST, power_bonds=[bond], **CAR)


@cache
def accurate(backend: Backend, accuracy: float) -> Results:
    """c exists from 1 s to 3 s, and its output has the largest error."""
    system, dahlquist = SystemBuilder("accurate"), reference_path("fmi2/Dahlquist.fmu")
    system.add("a", dahlquist)
    system.add("b", dahlquist, {"k": 3})
    system.add("c", dahlquist, {"k": 0.5}, lifetime=Lifetime(1, 3))
    system.connect("b.x", "a.u", factor=2)
    system.connect("a.x", "b.u", factor=-1)
    system.connect("a.x", "c.u")
    given = {
        "stop_time": 4,
        "step_size": None,
        "event_mode": None,
        "algorithm": Jacobi(LINEAR),
    }
    return run(system, backend, accuracy=accuracy, **given)


def test_an_accuracy_is_that_of_all_structures(backend: Backend) -> None:
    results, exact = accurate(backend, 1e-3), accurate(Backend.FASTEST, 1e-5)
    note = results.statistics.notes[-1]
    assert "accuracy 0.001 reached" in note
    assert "in 'c.dx'" in note
    for name in ("a.x", "b.x", "c.x", "c.dx"):
        curves = []
        for of in (results, exact):
            there = ~np.ma.getmaskarray(of[name])
            at = np.linspace(1.0005, 2.9995, 1000)
            curves.append(np.interp(at, of.time[there], np.ma.getdata(of[name])[there]))
        error = np.sqrt(np.mean((curves[0] - curves[1]) ** 2))
        assert 0.0 < error < 1e-3 * abs(curves[1]).max(), name


@pytest.mark.parametrize(
    ("lives", "chosen"),
    [
        ((Lifetime(),), "ECCO, by the residual energy"),
        ((Lifetime(until_time="1/50"), Lifetime("3/100")), "PID, by the error"),
    ],
)
def test_the_controller_for_an_accuracy_fits_all_structures(
    lives: tuple[Lifetime, ...], chosen: str
) -> None:
    """The road feeds the wheel all the time; the bond is not there from 20 ms to 30 ms."""
    system = car("fmi2", *lives)
    road = reference_path("fmi3/EventSource.fmu")
    system.add("road", road, {"count": 0})
    system.connect("road.ramp", "wheel.road", suppress_unit_conversion=True)
    system.add("g", LOOP_FUNCTION, lifetime=Lifetime("1/50"))
    given = {**CAR, "step_size": None, "accuracy": 0.05, "output_variables": []}
    results = run(system, Backend.FASTEST, **given)
    (note,) = (text for text in results.statistics.notes if text.startswith("accuracy 0.05: "))
    assert chosen in note
    assert "accuracy 0.05 reached" in results.statistics.notes[-1]


def test_an_accuracy_with_a_structure_without_connections(tmp_path: Path) -> None:
    """Steps are fixed, since no controller fits the structure from 8 s on."""
    results = run(switched(tmp_path), Backend.FASTEST, accuracy=1e-3)
    assert "fixed steps, because no continuous output feeds" in " ".join(results.statistics.notes)
    assert rows_at(results, 10.0, "C.level") == [-1.0]
