"""The conformance kit of the proposal: fmpy passes the class of those who ignore it, fmimaster passes all."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmu_checking import MANIFEST, changed, replaced
from pytest import approx

from fmimaster import simulate
from fmimaster.algorithms import Jacobi
from fmimaster.base.errors import AccuracyWarning
from fmimaster.events import LookAhead, Predictive
from fmimaster.inputs import Polynomial
from fmimaster.studies.demos.two_mass import TwoMassReference

SOURCES = Path(__file__).parents[2] / "docs" / "proposal" / "kit"
Case = dict[str, Any]
Table = list[list[str]]
CASES = [
    pytest.param(case, version, id=f"{case['name']}-{version}")
    for case in json.loads((SOURCES / "cases.json").read_text(encoding="utf-8"))["cases"]
    for version in case["versions"]
]
NONE = [p for p in CASES if p.values[0]["class"] == "none"]  # type: ignore[index]
SETTINGS: dict[str, dict[str, Any]] = {
    "none": {},
    "indicators": {"event_clock": LookAhead()},
    "look-ahead": {"event_clock": LookAhead(in_fmu=True)},
    "triggers": {"event_clock": Predictive()},
    "shared": {"event_clock": Predictive(), "algorithm": Jacobi(Polynomial(2, 2))},
    "contacts": {"event_clock": Predictive(), "algorithm": Jacobi(Polynomial(2, 2))},
}


@pytest.fixture(scope="module")
def kit(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit, made of the reference FMUs."""
    folder = tmp_path_factory.mktemp("kit")
    subprocess.run([sys.executable, SOURCES / "make.py", reference, folder], check=True)
    return folder


def judge(kit: Path, results: Path) -> tuple[int, str]:
    """Exit status and output of the judge, in this process: a test below runs it in one of its own."""
    spec = spec_from_file_location("judge", kit / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules["judge"] = module = module_from_spec(spec)  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = module.main(results)
    del sys.modules["judge"]
    return status, printed.getvalue()


def archive(kit: Path, case: Case, version: str) -> Path:
    kind = ".fmu" if "fmu" in case else ".ssp"
    return kit / "cases" / f"{case['name']}-{version}{kind}"


def by_fmimaster(kit: Path, case: Case, version: str, result: Path, **more: Any) -> None:
    settings = {"stop_time": case["stop"], "step_size": case["step"], **SETTINGS[case["class"]]}
    if "set" in case:
        settings["start_values"] = case["set"]
    if "input" in case:
        settings["input"] = kit / "inputs" / case["input"]
    simulate(archive(kit, case, version), **(settings | more)).write(result)


def by_fmpy(kit: Path, case: Case, version: str, result: Path) -> None:
    given = None
    if "input" in case:
        given = np.genfromtxt(
            kit / "inputs" / case["input"], delimiter=",", names=True, deletechars=""
        )
    values = fmpy.simulate_fmu(
        str(archive(kit, case, version)),
        stop_time=case["stop"],
        output_interval=case["step"],
        start_values=case.get("set", {}),
        input=given,
        output=[name for name in names_of(kit, case) if name != "time"],
    )
    with result.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(values.dtype.names)
        writer.writerows(values.tolist())


def names_of(kit: Path, case: Case) -> list[str]:
    with (kit / "exact" / f"{case['motion']}.csv").open(encoding="utf-8") as file:
        names = next(csv.reader(file))
    return case.get("values") or [name for name in names[1:] if not name.startswith("der(")]


@pytest.mark.parametrize(("case", "version"), CASES)
def test_fmimaster_passes(kit: Path, tmp_path: Path, case: Case, version: str) -> None:
    name = f"{case['name']}-{version}"
    by_fmimaster(kit, case, version, tmp_path / f"{name}.csv")
    status, text = judge(kit, tmp_path)
    assert (status, f"pass  {name}\n" in text) == (0, True), text


@pytest.mark.parametrize(("case", "version"), NONE)
def test_fmpy_passes_the_class_of_those_who_ignore_it(
    kit: Path, tmp_path: Path, case: Case, version: str
) -> None:
    name = f"{case['name']}-{version}"
    by_fmpy(kit, case, version, tmp_path / f"{name}.csv")
    status, text = judge(kit, tmp_path)
    assert (status, f"pass  {name}\n" in text) == (0, True), text


def by_importer(kit: Path, case: Case, version: str, result: Path) -> None:
    """The importer of the kit, which has nothing of fmimaster."""
    command = [
        sys.executable,
        str(kit / "importer.py"),
        str(archive(kit, case, version)),
        str(result),
    ]
    command += ["--stop", str(case["stop"]), "--step", str(case["step"])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_importer_of_100_lines_passes_the_class_indicators(kit: Path, tmp_path: Path) -> None:
    for name in ("indicators-ball", "indicators-later-ball"):
        for version in ("fmi2", "fmi3"):
            by_importer(kit, case_of(name), version, tmp_path / f"{name}-{version}.csv")
    status, text = judge(kit, tmp_path)
    assert status == 0, text
    for version in ("fmi2", "fmi3"):
        assert f"passed      class indicators, {version}\n" in text
    assert "fmimaster" not in (kit / "importer.py").read_text(encoding="utf-8").replace(
        "org.fmimaster", ""
    )


# What the judge finds -------------------------------------------------------------------------------------------------


def case_of(name: str) -> Case:
    cases: list[Case] = json.loads((SOURCES / "cases.json").read_text(encoding="utf-8"))["cases"]
    return next(case for case in cases if case["name"] == name)


def rewritten(kit: Path, folder: Path, name: str, change: Callable[[Table], Table]) -> str:
    """What the judge says of right results after a change to their rows."""
    path = folder / f"{name}-fmi3.csv"
    by_fmimaster(kit, case_of(name), "fmi3", path)
    head, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    path.write_text("\n".join(",".join(row) for row in [head, *change(rows)]), encoding="utf-8")
    status, text = judge(kit, folder)
    assert status == 1
    assert f"failed      class {case_of(name)['class']}, fmi3\n" in text
    return text


def test_the_judge_finds_an_event_that_is_late(kit: Path, tmp_path: Path) -> None:
    def late(rows: Table) -> Table:
        return [[repr(float(t) + 1e-4 * (0 < float(t) < 2.0)), *rest] for t, *rest in rows]

    text = rewritten(kit, tmp_path, "triggers-ball", late)
    assert "v is -0.122625 at t = 0.0126 s, expected -0.123606" in text
    assert "there is no row with the right limits of the event at 0.451523641 s" in text


def test_the_judge_finds_that_right_limits_are_missing(kit: Path, tmp_path: Path) -> None:
    def first_of_each_time(rows: Table) -> Table:
        return [row for k, row in enumerate(rows) if k == 0 or row[0] != rows[k - 1][0]]

    text = rewritten(kit, tmp_path, "shared-cradle", first_of_each_time)
    assert "there is no row with the right limits of the event at 0.5 s" in text


@pytest.mark.parametrize("name", ["indicators-ball", "look-ahead-ceiling"])
@pytest.mark.parametrize("part", [0.4, 0.1])
def test_the_judge_finds_steps_that_are_too_short_to_show_anything(
    kit: Path, tmp_path: Path, name: str, part: float
) -> None:
    """Steps of 0.4 of the step size are near each event, without any indicator."""
    case = case_of(name)
    path = tmp_path / f"{name}-fmi3.csv"
    by_fmimaster(kit, case, "fmi3", path, step_size=part * case["step"], event_clock="none")
    status, text = judge(kit, tmp_path)
    assert status == 1
    assert "0% of the time is in steps longer than 0.075 s, expected at least 50%" in text


@pytest.mark.parametrize("name", ["indicators-ball", "look-ahead-ceiling"])
def test_an_importer_that_stops_at_events_by_early_return_does_not_pass_without_indicators(
    kit: Path, tmp_path: Path, name: str
) -> None:
    """The FMUs of these classes have no Event Mode, and do not return early."""
    path = tmp_path / f"{name}-fmi3.csv"
    by_fmimaster(kit, case_of(name), "fmi3", path, event_clock="none")
    status, text = judge(kit, tmp_path)
    assert status == 1
    assert "no communication point is near the event at" in text


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda rows: rows[:3] + rows[5:], "there is no row between 0.02 s and 0.05 s"),
        (lambda rows: rows[1:], "it starts at 0.01 s, expected 0.0 s"),
        (lambda rows: rows[:5] + rows[3:], "time goes back from 0.04 s to 0.03 s"),
        (
            lambda rows: [["nan", *r[1:]] if k == 5 else r for k, r in enumerate(rows)],
            "a value or a time is no number",
        ),
        (lambda rows: [*rows[:5], rows[5][:1], *rows[6:]], "a row without a value for each column"),
        (lambda rows: [], "it has no rows"),
    ],
)
def test_the_judge_finds_rows_that_are_not_those_of_a_simulation(
    kit: Path, tmp_path: Path, change: Callable[[Table], Table], fault: str
) -> None:
    assert fault in rewritten(kit, tmp_path, "none-ball", change)


def test_results_of_no_case_are_named_and_nothing_judged_is_nothing_passed(
    kit: Path, tmp_path: Path
) -> None:
    (tmp_path / "none_ball-fmi3.csv").write_text("time,h,v\n", encoding="utf-8")
    status, text = judge(kit, tmp_path)
    assert status == 1
    assert "not judged  none_ball-fmi3.csv  it is named as no case\n" in text


def test_the_judge_finds_an_importer_that_does_not_use_indicators(
    kit: Path, tmp_path: Path
) -> None:
    case = case_of("indicators-ball")
    path = tmp_path / "indicators-ball-fmi2.csv"
    by_fmimaster(kit, case, "fmi2", path, event_clock="none")
    status, text = judge(kit, tmp_path)
    assert status == 1
    assert "no communication point is near the event at 0.451523641 s" in text


def test_an_importer_that_triggers_an_event_that_is_off_fails(kit: Path, tmp_path: Path) -> None:
    """Requirement I40: it does not read `active`."""
    case = case_of("triggers-modes")
    source, fmu = archive(kit, case, "fmi2"), tmp_path / "a.fmu"
    changed(source, fmu, MANIFEST, replaced(' active="on"', ""))
    settings = {"stop_time": case["stop"], "step_size": case["step"], **SETTINGS["triggers"]}
    simulate(fmu, start_values=case["set"], **settings).write(tmp_path / "triggers-modes-fmi2.csv")
    status, text = judge(kit, tmp_path)
    assert status == 1
    assert "FAIL  triggers-modes-fmi2  y is 0 at t = 1.3 s, expected -1" in text


def test_bodies_that_do_not_stay_on_each_other_fail(kit: Path, tmp_path: Path) -> None:
    """Requirement I41: nobody holds the contacts."""
    path = tmp_path / "contacts-stack-fmi3.csv"
    with pytest.warns(AccuracyWarning, match="executes its shared events alone|grows"):
        by_fmimaster(kit, case_of("contacts-stack"), "fmi3", path, event_clock="none")
    status, text = judge(kit, tmp_path)
    assert status == 1
    assert "FAIL  contacts-stack-fmi3  ball2.v is -0.7919" in text


def test_a_one_sided_event_fails(kit: Path, tmp_path: Path) -> None:
    """Each FMU handles the events by itself, as without the standard."""
    case = case_of("shared-rope")
    path = tmp_path / "shared-rope-fmi3.csv"
    with pytest.warns(AccuracyWarning, match="executes its shared events alone"):
        by_fmimaster(kit, case, "fmi3", path, event_clock="none")
    status, text = judge(kit, tmp_path)
    assert status == 1
    assert "FAIL  shared-rope-fmi3" in text


# The exact results ----------------------------------------------------------------------------------------------------


def test_exact_two_masses_are_those_of_another_solution(kit: Path) -> None:
    with (kit / "exact" / "two-masses.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times = np.array([float(row["time"]) for row in rows])
    last = np.append(np.diff(times) > 0, True)  # right limits
    names = ("upper.x", "upper.v", "lower.x", "lower.v")
    values = np.array([[float(row[name]) for name in names] for row in rows])
    other = TwoMassReference(7.0)
    jumps = [event.time for event in other.events]
    apart = last & np.all(np.abs(times[:, None] - jumps) > 1e-9, axis=1)
    assert np.max(np.abs(values[apart] - other(times[apart]))) < 1e-10
    found = times[:-1][np.diff(times) == 0]
    assert sorted(set(found)) == approx(jumps, abs=1e-12)


def test_an_exact_cradle_is_a_sine(kit: Path) -> None:
    with (kit / "exact" / "cradle.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    t = np.array([float(row["time"]) for row in rows])
    first = -0.5 * np.maximum(0, np.cos(np.pi * t))
    fifth = 4 + 0.5 * np.maximum(0, -np.cos(np.pi * t))
    assert np.max(np.abs(np.array([float(row["ball1.x"]) for row in rows]) - first)) < 1e-10
    assert np.max(np.abs(np.array([float(row["ball5.x"]) for row in rows]) - fifth)) < 1e-10


def test_exact_bounces_are_where_the_readme_says(kit: Path) -> None:
    with (kit / "exact" / "ball.csv").open(encoding="utf-8") as file:
        times = [float(row["time"]) for row in csv.DictReader(file)]
    bounces = sorted({a for a, b in pairwise(times) if a == b})
    fall = (2 / 9.81) ** 0.5
    expected = [fall * (1 + 2 * sum(0.7**i for i in range(1, k))) for k in range(1, 9)]
    assert bounces == approx(expected, abs=1e-13)


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a privilege of Windows")
def test_the_kit_needs_numpy_and_nothing_else(kit: Path, tmp_path: Path) -> None:
    """In Python without the packages of this one, but for NumPy."""
    packages = tmp_path / "packages"
    packages.mkdir()
    parent = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (parent / name).exists():
            (packages / name).symlink_to(parent / name)
    results = tmp_path / "results"
    results.mkdir()
    by_fmimaster(kit, case_of("none-ball"), "fmi3", results / "none-ball-fmi3.csv")
    (tmp_path / "nothing").mkdir()
    for script, folder, status, line in (
        ("judge.py", "results", 0, "pass  none-ball-fmi3\n"),
        ("judge.py", "nothing", 1, "not judged  class none, fmi3\n"),
        ("exact.py", "exact", 0, ""),
    ):
        done = subprocess.run(
            [sys.executable, "-S", kit / script, folder],
            cwd=tmp_path,
            env={"PYTHONPATH": str(packages)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert line in done.stdout
