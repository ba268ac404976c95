"""The modes of Gauss-Seidel on the four units of Holzinger and Benedikt (2019), in all 24 sequences.

sequence.md 7, acceptance 4 and 5, and section 6.3; the figures of its section 2.3.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from numpy.typing import NDArray

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import AlongLine, GaussSeidel, InputMode, Jacobi
from fmimaster.configure import named, reading
from fmimaster.events import EarlyReturn
from fmimaster.run import Backend
from fmimaster.sequences.levels import level_sets
from fmimaster.steps import FixedStep

MODES = {name: reading.mode(name) for name in named.MODES}

DATA = Path(__file__).parents[1] / "data"
TABLE = np.genfromtxt(DATA / "seq_paper_24.csv", delimiter=",", names=True, dtype=None)
SEQUENCES = [str(row["sequence"]) for row in TABLE]
OUTPUTS = ("y11", "y12", "y21", "y31", "y41", "y42")
NAMES = [f"S{name[1]}.{name}" for name in OUTPUTS]
CONNECTIONS = {
    "S1.u11": "S4.y42",
    "S2.u21": "S1.y11",
    "S3.u31": "S2.y21",
    "S3.u32": "S4.y41",
    "S4.u41": "S1.y12",
    "S4.u42": "S3.y31",
}
FOUR_MODES = ("lin", "sub", "end", "mid")
LIN_AND_THOROUGH = ["lin", *(pytest.param(m, marks=pytest.mark.thorough) for m in FOUR_MODES[1:])]
SOME = ("3412", "2143", "1324")
"""Sequences with 0, 3 and 1 stale inputs of direct feed-through."""

Rows = NDArray[np.float64]


def orientation(sequence: str) -> frozenset[tuple[str, str]]:
    """The connected pairs, each in the order in which its units step."""
    pairs = {frozenset((s[1], t[1])) for t, s in CONNECTIONS.items()}
    ordered = (sorted(pair, key=sequence.index) for pair in pairs)
    return frozenset((first, second) for first, second in ordered)


CLASSES: dict[frozenset[tuple[str, str]], list[str]] = {}
"""Sequences whose results have the same bits, as a test of classes shows."""
for one in SEQUENCES:
    CLASSES.setdefault(orientation(one), []).append(one)


def rows_of(results: Results) -> Rows:
    """Shape (151, 6)."""
    rows: Rows = np.array([results[name] for name in NAMES]).T
    return rows


def reference(name: str) -> Rows:
    rows: Rows = np.loadtxt(DATA / name, delimiter=",", skiprows=1)
    return rows[:, 1:]


def run(sequence: str, mode: InputMode, version: str = "fmi2", **settings: Any) -> Rows:
    algorithm = GaussSeidel(mode=mode, levels=settings.pop("levels", False))
    system = settings.pop("system", reference_path(f"systems/four-units-{version}.ssp"))
    order = [f"S{k}" for k in sequence]
    return rows_of(simulate(system, algorithm=algorithm, sequence=order, **settings))


@cache
def simulated(sequence: str, mode: str, version: str = "fmi2") -> Rows:
    return run(sequence, MODES[mode], version)


def rms(values: Rows) -> Rows:
    found: Rows = np.sqrt(np.mean(values**2, axis=0))
    return found


def errors(rows: Rows) -> dict[str, float]:
    """Relative errors of y11 and y12, of both, and of all outputs, as in section 2.3."""
    exact = reference("seq_paper_mono_euler.csv")
    found = rms(rows - exact) / rms(exact)
    return {"y11": found[0], "y12": found[1], "S1": found[:2].mean(), "all": found.mean()}


@pytest.mark.thorough
@pytest.mark.parametrize("mode", FOUR_MODES)
def test_all_24_sequences_have_the_errors_of_the_table(mode: str) -> None:
    """sequence.md 7, 4: equal to seq_paper_24.csv to 1e-5; FMI 2.0."""
    for row in TABLE:
        found = errors(simulated(str(row["sequence"]), mode))
        expected = {name: float(row[f"{mode}_{name}"]) for name in found}
        assert found == pytest.approx(expected, rel=1e-5), row["sequence"]


@pytest.mark.parametrize("mode", LIN_AND_THOROUGH)
def test_fmi_3_gives_the_same_values(mode: str) -> None:
    """sequence.md 7, 4; FMI 3.0: a sequence of each class with lin, some in the other modes to save time."""
    for sequence in [one for one, *_ in CLASSES.values()] if mode == "lin" else SOME:
        # the line is evaluated by the FMU in FMI 2.0, by the importer in FMI 3.0
        expected = simulated(sequence, mode)
        off = np.abs(simulated(sequence, mode, "fmi3") - expected).max(axis=0)
        assert (off <= 1e-12 * np.abs(expected).max(axis=0)).all()


def test_trajectories_of_all_24_sequences_with_lin_are_those_of_the_specification() -> None:
    """sequence.md 7, 4: equal to 1e-7 of the maximum; the file has 9 digits."""
    columns = np.genfromtxt(DATA / "seq_paper_24_lin_y11_y12.csv", delimiter=",", names=True)
    for sequence in SEQUENCES:
        rows = simulated(sequence, "lin")
        for k, name in enumerate(OUTPUTS[:2]):
            expected = columns[f"{name}_{sequence}"]
            assert np.abs(rows[:, k] - expected).max() <= 1e-7 * np.abs(expected).max()


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("mode", ["lin", "sub", "end"])
def test_trajectories_of_the_best_sequence_are_those_of_the_specification(
    mode: str, version: str
) -> None:
    """sequence.md 7, 4: equal to 1e-7 of the maximum, all six outputs."""
    expected = reference(f"seq_paper_3412_{mode}.csv")
    off = np.abs(simulated("3412", mode, version) - expected).max(axis=0)
    assert (off <= 1e-7 * np.abs(expected).max(axis=0)).all()


def test_with_all_connections_stale_it_is_jacobi() -> None:
    """sequence.md 2.3: Jacobi is all inputs stale."""
    every = {(source[:2], target[:2]) for target, source in CONNECTIONS.items()}
    system = reference_path("systems/four-units-fmi2.ssp")
    found = rows_of(
        simulate(system, algorithm=GaussSeidel(mode=AlongLine(), stale=frozenset(every)))
    )
    expected = reference("seq_paper_jacobi.csv")
    assert (np.abs(found - expected).max(axis=0) <= 1e-7 * np.abs(expected).max(axis=0)).all()


@pytest.mark.parametrize("mode", ["lin", "end"])
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_both_executors_give_the_same_bits(mode: str, version: str) -> None:
    for sequence in SOME[:2]:
        settings: dict[str, Any] = {"version": version, "stop_time": 0.01}
        native = run(sequence, MODES[mode], **settings)
        interpreted = run(sequence, MODES[mode], backend=Backend.REFERENCE, **settings)
        assert np.array_equal(native, interpreted)


def test_both_executors_give_the_same_bits_in_the_other_modes() -> None:
    for mode in ("mid", "held", "sub"):
        native = run("3412", MODES[mode], stop_time=0.01)
        interpreted = run("3412", MODES[mode], stop_time=0.01, backend=Backend.REFERENCE)
        assert np.array_equal(native, interpreted), mode


# Classes of sequences -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", LIN_AND_THOROUGH)
def test_14_results_are_distinct_and_equal_inside_an_orientation_class(mode: str) -> None:
    """sequence.md 7, 5."""
    classes = [{simulated(s, mode).tobytes() for s in alike} for alike in CLASSES.values()]
    assert [len(results) for results in classes] == [1] * 14
    assert len(set().union(*classes)) == 14


def test_levels_in_threads_give_the_same_bits() -> None:
    """sequence.md 7, 5: bit-identical when levels run in parallel threads."""
    arcs = {(int(s[1]), int(t[1])) for t, s in CONNECTIONS.items()}
    for sequence, *_ in CLASSES.values():  # its levels are those of its class
        if len(level_sets([int(k) for k in sequence], arcs)) == 4:
            continue  # nothing is parallel
        found = run(sequence, MODES["lin"], levels=True, threads=2)
        assert np.array_equal(found, simulated(sequence, "lin")), sequence


@pytest.mark.parametrize(
    ("most", "same", "error"),
    [(1, None, 0.11879), (2, "1324", 0.10426), (3, "4312", 0.04899), (4, "3412", 0.01857)],
)
def test_more_levels_are_more_accurate(most: int, same: str | None, error: float) -> None:
    """sequence.md 3: the best orientation with so many levels, and its error of S1."""
    system = reference_path("systems/four-units-fmi2.ssp")
    algorithm = GaussSeidel(mode=AlongLine(), most_levels=most)
    found = rows_of(simulate(system, algorithm=algorithm))
    assert errors(found)["S1"] == pytest.approx(error, abs=6e-6)
    expected = simulated(same, "lin") if same else rows_of(simulate(system, algorithm=Jacobi()))
    assert np.array_equal(found, expected)


# What the modes are worth ---------------------------------------------------------------------------------------------


def rank(of: str, mode: str, name: str) -> int:
    """How many sequences are better, plus 1; equal ones are those of one class."""
    better = errors(simulated(of, mode))[name] * (1 - 1e-9)
    return 1 + sum(
        len(alike) for alike in CLASSES.values() if errors(simulated(alike[0], mode))[name] < better
    )


@pytest.mark.parametrize(
    ("mode", "ranks"),
    [
        ("lin", (1, 1, 1, 1)),
        pytest.param("sub", (3, 1, 1, 1), marks=pytest.mark.thorough),
        ("end", (17, 24, 24, 21)),
        pytest.param("mid", (3, 18, 18, 3), marks=pytest.mark.thorough),
    ],
)
def test_the_published_optimum_is_the_best_sequence_if_inputs_are_interpolated(
    mode: str, ranks: tuple[int, ...]
) -> None:
    """sequence.md 2.3: does {3,4,1,2} win? Errors of y11, y12, of both, of all outputs."""
    assert tuple(rank("3412", mode, name) for name in ("y11", "y12", "S1", "all")) == ranks


@pytest.fixture(scope="module", params=["fmi2", "fmi3"])
def held_units(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Systems of units that cannot interpolate: with directional derivatives, with a declared linear dependence, and with
    neither, so that they cannot be corrected."""
    folder, version = tmp_path_factory.mktemp("units"), request.param
    cannot: dict[str, str | None] = {
        "canHandleVariableCommunicationStepSize": "true",
        "maxInputDerivativeOrder": None,
        "canInterpolateInputs": None,
        "providesIntermediateUpdate": None,
    }
    lost = cannot | {"providesDirectionalDerivatives": None}
    files = {}
    for name, capabilities in (("derivatives", cannot), ("linear", lost), ("neither", lost)):
        for k in range(1, 5):
            kind: dict[str, str | None] = {} if name == "linear" else {"dependenciesKind": None}
            unknowns = {o: kind for o in OUTPUTS if o[1] == str(k)}
            edited_fmu(
                reference_path(f"{version}/FourUnitsS{k}.fmu"),
                folder / f"{name}{k}.fmu",
                capabilities=capabilities,
                unknowns=unknowns,
            )
        files[name] = folder / name
    return files


def of_files(stem: Path) -> Any:
    builder = SystemBuilder("four units")
    for k in range(1, 5):
        builder.add(f"S{k}", stem.with_name(f"{stem.name}{k}.fmu"))
    for target, source in CONNECTIONS.items():
        builder.connect(source, target)
    return builder.build(stop_time=0.15, step_size=0.001)


@pytest.mark.parametrize(
    ("sub_steps", "error"), [(1, 0.10416), (2, 0.05893), (5, 0.03166), (10, 0.02334)]
)
def test_sub_steps_in_place_of_interpolated_inputs(
    held_units: dict[str, Path], sub_steps: int, error: float
) -> None:
    """sequence.md 6.3: the error of S1 with the sequence 3412; one micro step of 10 in each part at most."""
    system = of_files(held_units["neither"])
    found = errors(run("3412", AlongLine(sub_steps), system=system))
    assert found["S1"] == pytest.approx(error, abs=6e-6)


@pytest.mark.parametrize("means", ["derivatives", "linear"])
def test_held_inputs_and_corrected_outputs_in_place_of_interpolated_inputs(
    held_units: dict[str, Path], means: str
) -> None:
    """sequence.md 6.3: 0.01703, as good as lin without any sub-step."""
    found = errors(run("3412", AlongLine(), system=of_files(held_units[means])))
    assert found["S1"] == pytest.approx(0.01703, abs=6e-6)


# With events ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::fmimaster.AccuracyWarning")
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("levels", [False, True])
def test_an_fmu_that_stops_at_its_events_is_corrected_when_it_has_come_back(
    version: str, levels: bool
) -> None:
    """One of FMI 2.0 discards its step, after which it takes no call but one that restores it."""
    results = simulate(
        reference_path(f"systems/two-mass-b3-{version}.ssp"),
        algorithm=GaussSeidel(mode=AlongLine(), levels=levels),
        step_size=FixedStep("0.01"),
        event_clock=EarlyReturn(),
        stop_time=0.6,
    )
    [collision] = results.events
    # indicators depend directly on held inputs: half a step
    assert collision.time == pytest.approx(0.540735, abs=0.005)


def test_a_last_part_of_a_step_with_the_inputs_at_its_end_has_the_second_order(
    tmp_path: Path,
) -> None:
    """u = cos 3t feeds y = x + u, x' = u - x, of an FMU that holds inputs and has no partial derivatives."""
    wave = {"a": [[0.0, -3.0], [3.0, 0.0]], "c": [[1.0, 0.0]], "x0": [1.0, 0.0]}
    linear_fmu(tmp_path / "made.fmu", "fmi2", a=[[-1.0]], b=[[1.0]], c=[[1.0]], d=[[1.0]])
    system = SystemBuilder("last part")
    system.add("wave", linear_fmu(tmp_path / "wave.fmu", "fmi2", **wave))
    cannot = {"canInterpolateInputs": None, "providesDirectionalDerivatives": None}
    plain = edited_fmu(
        tmp_path / "made.fmu",
        tmp_path / "plain.fmu",
        capabilities=cannot,
        unknowns={"y1": {"dependenciesKind": None}},
    )
    system.add("plain", plain)
    system.connect("wave.y1", "plain.u1")

    def error(size: float, *, to_end: bool) -> float:
        algorithm = GaussSeidel(mode=AlongLine(sub_steps=1, to_end=to_end))
        results = simulate(system, algorithm=algorithm, step_size=size, stop_time=3)
        t = results.time
        x = (np.cos(3 * t) + 3 * np.sin(3 * t) - np.exp(-t)) / 10
        return float(np.abs(results["plain.y1"] - x - np.cos(3 * t)).max())

    first, half = (error(size, to_end=True) for size in (0.05, 0.025))
    assert first / half == pytest.approx(4.0, rel=0.1)
    assert first < error(0.05, to_end=False) / 20
