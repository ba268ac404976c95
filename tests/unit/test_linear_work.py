"""What a task takes grows no faster than its steps, variables, connections, events and clocks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from command_line import changed
from growing_work import lines, run_here, steep

from fmimaster import Simulation, SystemBuilder, reference_path, validate
from fmimaster.algorithms import Jacobi
from fmimaster.events import Predictive
from fmimaster.fmu.load import Loader
from fmimaster.inputs import Polynomial
from fmimaster.prepare.preparation import prepare
from fmimaster.results.table import Table
from fmimaster.run.executor import Backend
from fmimaster.system.python_component import PythonComponent

Work = Callable[[int], None]

pytestmark = pytest.mark.in_this_process(
    "counts lines of Python, of which there are more while it waits for processes"
)


def steps(n: int) -> None:
    """Of two FMUs, in Python: the kernel does most of it in C."""
    builder, path = SystemBuilder("pair"), reference_path("fmi3/Dahlquist.fmu")
    for name in "a", "b":
        builder.add(name, path)
    builder.connect("a.x", "b.u")
    builder.connect("b.x", "a.u")
    system = builder.build()
    run_here(Simulation(system, stop_time=n, step_size=1, backend=Backend.REFERENCE))


def steps_in_c(n: int) -> None:
    """The same in the kernel, with so many rows that they are handed on in parts."""
    path, stop = reference_path("fmi3/Dahlquist.fmu"), 1000 * n
    run_here(Simulation(path, stop_time=stop, step_size=1, backend=Backend.NATIVE))


def connections(n: int) -> None:
    """From one component to another; around a circle it would be measured which outputs depend on which inputs."""
    names = [f"v{k}" for k in range(n)]
    builder = SystemBuilder("many")
    builder.add("a", PythonComponent(outputs=dict.fromkeys(names, 0.0)))
    builder.add("b", PythonComponent(inputs=dict.fromkeys(names, 0.0)))
    for name in names:
        builder.connect(f"a.{name}", f"b.{name}")
    run_here(Simulation(builder.build(), stop_time=1, step_size=1))


def columns(n: int) -> None:
    """All are chosen by their names, as it is done to compare two runs."""
    names = [f"v{k}" for k in range(n)]
    table = Table(time=[0.0], columns={name: [0.0] for name in names})
    assert len(table.select(names).columns) == n


def events(n: int) -> None:
    """Of a ball that bounces on a floor every 0.36 s."""
    g, period = 9.81, 0.36
    builder, path = SystemBuilder("bouncing"), reference_path("fmi3/CradleBall.fmu")
    floor = {"x": -1.0, "v": 0.0, "m": 1e300, "right.m": 1.0, "right.r": 0.5, "r": 0.5}
    ball = {"v": g * period / 2, "m": 1.0, "left.m": 1e300, "left.r": 0.5, "r": 0.5, "g": -g}
    builder.add("floor", path, floor)
    builder.add("ball", path, {"x": 0.0, **ball})
    for name in "xva":
        builder.connect(f"floor.{name}", f"ball.left.{name}")
        builder.connect(f"ball.{name}", f"floor.right.{name}")
    builder.share_event("bounce", "floor.right", "ball.left")
    settings = Simulation(
        builder.build(),
        algorithm=Jacobi(Polynomial(2, 2)),
        event_clock=Predictive(),
        step_size=period / 4,  # all bounces take equally many steps
        stop_time=period * (n + 0.5),
    )
    assert len(run_here(settings).events) >= n


def clocks(n: int) -> None:
    """Periodic clocks that tick together ten times, each of an FMU of its own."""
    builder = SystemBuilder("clocks")
    for k in range(n):
        builder.add(f"s{k}", reference_path("fmi3/Sampler.fmu"))
    run_here(Simulation(builder.build(start_time=0, stop_time=1, step_size=0.1)))


def clocks_in_turn(n: int) -> None:
    """Of each ten ticks; no two at one instant."""
    builder = SystemBuilder("clocks")
    for k in range(n):
        start = {"interval.counter": n, "interval.resolution": 10, "shift.counter": k}
        builder.add(f"s{k}", reference_path("fmi3/Sampler.fmu"), start)
    run_here(Simulation(builder.build(start_time=0, stop_time=n, step_size=0.1)))


@pytest.mark.parametrize(
    ("work", "size"),
    [
        (steps, 50),
        (steps_in_c, 100),
        (connections, 20),
        (columns, 50),
        (events, 20),
        (clocks, 4),
        (clocks_in_turn, 4),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_run_takes_work_in_proportion(
    work: Work, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # folders of other tests are looked at
    assert not steep(work, size)


def _with_outputs(version: int, n: int, folder: Path) -> Path:
    """An FMU with so many more outputs, which are never read."""

    def edit(text: str) -> str:
        more = range(100, 100 + n)
        if version == 3:
            variables = [
                f'<Float64 name="y{k}" valueReference="{k}" causality="output"/>' for k in more
            ]
            outputs = [f'<Output valueReference="{k}"/>' for k in more]
            text = text.replace("<ModelStructure>", "<ModelStructure>" + "".join(outputs))
        else:
            first = text.count("<ScalarVariable ") + 1
            variables = [
                f'<ScalarVariable name="y{k}" valueReference="{k}" causality="output"><Real/></ScalarVariable>'
                for k in more
            ]
            outputs = [f'<Unknown index="{first + k}"/>' for k in range(n)]
            text = text.replace("</Outputs>", "".join(outputs) + "</Outputs>")
        return text.replace("</ModelVariables>", "".join(variables) + "</ModelVariables>")

    path = reference_path(f"fmi{version}/Dahlquist.fmu")
    return changed(path, folder / f"{version}_{n}.fmu", description=edit)


@pytest.mark.parametrize("version", [2, 3])
def test_a_model_is_prepared_and_checked_in_proportion_to_its_variables(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 50
    files = {n: _with_outputs(version, n, tmp_path) for n in (size, 2 * size, 4 * size)}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # folders of other tests are looked at

    def work(n: int) -> None:
        with Loader() as loader:
            plan = prepare(Simulation(files[n], stop_time=1, step_size=1), loader).plan
        assert len(plan.recorded) > n
        validate(files[n])

    assert not steep(work, size)


MOST_LINES = 220
"""Of Python that are executed to validate one more output; 244 when its attributes were read three times."""


@pytest.mark.parametrize("version", [2, 3])
def test_a_variable_like_others_takes_few_lines(version: int, tmp_path: Path) -> None:
    few, more = 50, 100
    files = {n: _with_outputs(version, n, tmp_path) for n in (few, more)}

    def work(n: int) -> None:
        validate(files[n])

    work(few)  # what is done once in a process
    taken = [lines(partial(work, n)).total() for n in (few, more)]
    assert (taken[1] - taken[0]) / (more - few) <= MOST_LINES
