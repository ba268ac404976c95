"""The setting ``input``: tables in memory and functions of time feed open inputs as a CSV file does."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from math import inf, nan, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu

from fmimaster import OptionError, Results, Simulation, SimulationError, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.configure.input_signals import InputSignals
from fmimaster.inputs import FIRST_ORDER, HERMITE, HOLD, LINEAR, Polynomial
from fmimaster.run import Backend

FEEDTHROUGH = reference_path("fmi3/Feedthrough.fmu")
TIME = np.array([0.0, 0.5, 0.5, 1.0])
VALUES = {
    "Float64_continuous_input": np.array([0.0, 1.0, 4.0, 3.0]),
    "Int32_input": np.array([1, 2, 3, 4]),
    "Boolean_input": np.array([True, False, True, True]),
    "String_input": np.array(["a", "b", "c", "d"]),
}
OUTPUTS = tuple(
    name.replace("_input", suffix) for name in VALUES for suffix in ("_input", "_output")
)
SIMULATION = Simulation(FEEDTHROUGH, stop_time=1, step_size=0.25, output_variables=OUTPUTS)


NANOSECOND = np.timedelta64(1, "ns")
NUMBERS = [name for name in OUTPUTS if "String" not in name]
"""What both executors can record."""


def run(**settings: Any) -> Results:
    if "backend" in settings:
        settings["output_variables"] = NUMBERS
    return replace(SIMULATION, **settings).run()


def same(one: Results, other: Results) -> bool:
    return all(np.array_equal(one[n], other[n]) for n in ("time", *OUTPUTS))


@pytest.fixture(scope="module")
def from_file(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = tmp_path_factory.mktemp("input") / "u.csv"
    lines = [",".join(f'"{n}"' for n in ("time", *VALUES))]
    for k, t in enumerate(TIME):
        u, n, b, s = (values[k] for values in VALUES.values())
        lines.append(f'{t},{u},{n},{int(b)},"{s}"')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return run(input=path)


def structured() -> Any:
    kinds = [("time", float), *((n, v.dtype) for n, v in VALUES.items())]
    table = np.empty(len(TIME), kinds)
    table["time"] = TIME
    for name, values in VALUES.items():
        table[name] = values
    return table


def data_frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(VALUES, index=pandas.Index(TIME, name="time"))


def data_frame_with_time(name: str = "time") -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({name: TIME, **VALUES})


@pytest.mark.parametrize(
    "given",
    [
        lambda: {"time": TIME, **VALUES},
        lambda: {"time": TIME.tolist(), **{n: v.tolist() for n, v in VALUES.items()}},
        lambda: Results(time=TIME, columns=VALUES),
        structured,
        data_frame,
        data_frame_with_time,
        lambda: data_frame_with_time("t"),
        lambda: data_frame_with_time("Time [s]"),
    ],
    ids=[
        "arrays",
        "lists",
        "results",
        "structured array",
        "data frame",
        "data frame with time",
        "data frame with t",
        "data frame with Time [s]",
    ],
)
def test_each_kind_of_table_feeds_inputs_as_a_csv_file_does(
    given: Callable[[], Any], from_file: Results
) -> None:
    assert same(run(input=given()), from_file)


def test_row_numbers_of_a_data_frame_are_no_times() -> None:
    with pytest.raises(OptionError) as caught:
        InputSignals.of(data_frame_with_time()[list(VALUES)])
    assert str(caught.value) == (
        "input: the DataFrame has no column 'time', and its index only numbers the rows. "
        "Add the column 'time', in s, or make the times its index."
    )


@pytest.mark.parametrize("backend", [Backend.NATIVE, Backend.REFERENCE])
def test_a_function_is_called_at_communication_points(backend: Backend) -> None:
    called = []

    def u(t: float) -> float:
        called.append(t)
        return sin(t)

    given = {"Float64_continuous_input": u, "Int32_input": lambda t: int(8 * t)}
    results = run(input=given, algorithm=GaussSeidel(), backend=backend)
    # the input component steps first, so that the FMU gets the values at the end of each step
    assert results["Float64_continuous_output"].tolist() == [sin(t) for t in results.time]
    assert results["Int32_output"].tolist() == [0, 2, 4, 6, 8]
    assert set(called) == set(results.time.tolist())


def test_numbers_of_all_types_feed_inputs_and_no_byte_is_lost() -> None:
    given = {
        "time": TIME,
        "Float64_continuous_input": [False, True, True, False],
        "Int32_input": np.array([1, 2, 3, 4], object),
        "Boolean_input": [0.0, 1.0, 0.0, 1.0],
        "Binary_input": [b"a\0", b"b\0", b"c\0", b"d\0"],
    }
    shown = ("Float64_continuous_output", "Int32_output", "Boolean_output")
    results = replace(SIMULATION, output_variables=shown, input=given).run()
    assert [results[name][-1] for name in shown] == [0.5, 3, False]
    assert InputSignals.of(given).columns["Binary_input"][0] == b"a\0"


def test_a_function_stands_beside_arrays() -> None:
    given = {"time": [0, 1], "Float64_continuous_input": [0, 1], "Int32_input": lambda t: 7}
    results = run(input=given, algorithm=GaussSeidel())
    assert results["Float64_continuous_output"].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert set(results["Int32_output"].tolist()) == {7}


def test_a_function_is_extrapolated_through_its_points_since_it_has_no_derivative() -> None:
    given = {"Float64_continuous_input": lambda t: 3.0 * t}

    def output(polynomial: Polynomial) -> list[float]:
        results = run(input=given, algorithm=Jacobi(polynomial))
        return list(results["Float64_continuous_output"])

    assert output(FIRST_ORDER) == output(HOLD) == [0.0, 0.0, 0.75, 1.5, 2.25]
    # the FMU takes no derivatives: it gets the value of the line in the middle of each step
    assert output(HERMITE) == output(LINEAR) == [0.0, 0.0, 1.125, 1.875, 2.625]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "an object of type int, expected the path of a CSV file"),
        ({"Int32_input": [1, 2]}, "'Int32_input' has values, but their times are missing"),
        ({"time": [0, 1], "Int32_input": [1, 2, 3]}, "has 3 values, and 'time' has 2"),
        ({"time": [1, 0], "Int32_input": [1, 2]}, "decreases from 1.0 s to 0.0 s"),
        ({"time": [0, nan], "Int32_input": [1, 2]}, "'time' has NaN or infinite values"),
        ({"time": ["a"], "Int32_input": [1]}, "'time' has values that are not numbers"),
        ({"time": [], "Int32_input": []}, "column 'Int32_input' has no rows"),
        ({"time": [0], "Int32_input": [1.5]}, "is 1.5 at t = 0 s. Expected an integer from -2"),
        ({"time": [0], "UInt8_input": [300]}, "Expected an integer from 0 to 255"),
        ({"time": [0], "Int32_input": ["a"]}, "has text, but the input has the type Int32"),
        ({"time": [0], "String_input": [1]}, "has no text, but the input has the type String"),
        ({"time": [0], "Float32_continuous_input": [inf]}, "is infinite at t = 0 s"),
        ({"time": [0], "Float64_vector_input": [1.0]}, "Only scalar inputs can be given"),
        ({"Int32_input": 3}, "'Int32_input' is a single value; start_values sets constants"),
        ({"time": [0], "Int32_input": [[1]]}, "'Int32_input' is an array of shape (1, 1)"),
        (
            {"time": [0], "Boolean_input": [0.5]},
            "is 0.5 at t = 0 s. Expected an integer from 0 to 1",
        ),
        (
            {"time": [0, 1], "Int32_input": [1, None]},
            "is None at t = 1 s. Expected a value of type",
        ),
        ({"time": [0, 1], "String_input": ["a", None]}, "is None at t = 1 s."),
        ({"time": [0], "Float64_continuous_input": [1j]}, "is np.complex128(1j) at t = 0 s."),
        ({"time": [0], "Float64_continuous_input": [NANOSECOND]}, "of type Float64"),
        ({"time": [NANOSECOND], "Int32_input": [1]}, "'time' has values that are not numbers"),
        ({"time": [0, 1], "Int32_input": [[1], [1, 2]]}, "'Int32_input' have unequal shapes"),
        (
            {"time": [0]},
            "'time' holds the times of the arrays, and there are no signals. Add signals.",
        ),
        ({}, "no signal is given"),
        ({"time": [0], "Int32_inpt": [1]}, "Did you mean 'Int32_input'"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(given: Any, message: str) -> None:
    with pytest.raises(OptionError) as error:
        run(input=given)
    assert message in str(error.value)


@pytest.mark.parametrize("backend", [Backend.NATIVE, Backend.REFERENCE])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("Float64_continuous_input", nan, "returned nan at t = 0.5 s. Return a finite number."),
        ("Float64_continuous_input", "x", "'x' is not a value of type Float64"),
        ("Int32_input", 1.5, "at t = 0.5 s: 1.5 is not a value of type Int32"),
        ("Int32_input", ZeroDivisionError("by zero"), "raised ZeroDivisionError at t = 0.5 s: by"),
    ],
)
def test_a_function_that_fails_ends_the_run_and_its_rows_are_kept(
    name: str, value: Any, message: str, backend: Backend
) -> None:
    def u(t: float) -> Any:
        if t < 0.5:
            return 0
        if isinstance(value, Exception):
            raise value
        return value

    with pytest.raises(SimulationError) as error:
        run(input={name: u}, backend=backend)
    assert message in str(error.value)
    assert error.value.results.time.tolist() == [0.0, 0.25]


def test_an_input_whose_name_begins_with_that_of_the_fmu_is_fed_alone(tmp_path: Path) -> None:
    """``a.x`` of ``a.fmu`` is its input of that name, not its input ``x`` as well."""
    names = ("Float64_continuous_input", "a.Float64_continuous_input")
    source = reference_path("fmi3/Feedthrough.fmu")
    renamed = {"Float64_discrete_input": {"name": names[1]}}
    fmu = edited_fmu(source, tmp_path / "a.fmu", variables=renamed)
    results = Simulation(
        fmu, stop_time=1, input={"time": [0.0], names[1]: [3.0]}, output_variables=names
    ).run()
    assert [results[name][-1] for name in names] == [0.0, 3.0]


def test_further_columns_can_be_ignored() -> None:
    given = {"time": TIME, **VALUES, "voltage": TIME}
    with pytest.raises(OptionError, match="ignore_further_columns"):
        run(input=given)
    assert same(run(input=given, ignore_further_columns=True), run(input={"time": TIME, **VALUES}))
    with pytest.raises(OptionError, match="'voltage' is not an open input"):
        run(input={"time": TIME, "voltage": TIME}, ignore_further_columns=True)


def test_a_simulation_with_an_input_is_a_value() -> None:
    values = np.array([1.0, 2.0])
    one, other = (
        replace(SIMULATION, input={"time": [0, 1], "Float64_continuous_input": values})
        for _ in range(2)
    )
    assert one == other
    values[:] = 5.0  # the simulation has a copy
    assert one == other
    assert one != replace(one, input={"time": [0, 1], "Float64_continuous_input": values})
    assert pickle.loads(pickle.dumps(one)) == one
    assert "<InputSignals: Float64_continuous_input, 2 rows, 0 s to 1 s>" in repr(one.input)


def test_the_old_name_of_the_setting_leads_to_the_new_one() -> None:
    with pytest.raises(OptionError, match=r"no setting 'input_file'\. Its name is 'input' now"):
        Simulation(FEEDTHROUGH, input_file=Path("u.csv"))  # type: ignore[call-arg]


def test_a_digest_tells_inputs_apart() -> None:
    given = {"time": [0.0, 1.0], "Int32_input": [1, 2]}
    one, other = (
        Simulation(FEEDTHROUGH, input=given | more).input for more in ({}, {"Int32_input": [1, 3]})
    )
    assert isinstance(one, InputSignals)
    assert isinstance(other, InputSignals)
    assert one.digest != other.digest
    assert one.digest == InputSignals.of(given).digest


def test_rows_from_given_signals_are_written_with_their_metadata(tmp_path: Path) -> None:
    simulation = replace(SIMULATION, input={"Int32_input": lambda t: 3})
    results = simulation.run(output_file=tmp_path / "rows.csv")
    assert results.rows == 5
    assert same(Results.read(tmp_path / "rows.csv"), simulation.run())


def test_integers_of_a_file_keep_all_their_digits(tmp_path: Path) -> None:
    largest = {"Int64": (-(2**63), 2**63 - 1), "UInt64": (0, 2**64 - 1)}
    rows = [",".join(map(str, (t / 2, *(v[t] for v in largest.values())))) for t in (0, 1)]
    header = ",".join(("time", *(f"{name}_input" for name in largest)))
    file = tmp_path / "in.csv"
    file.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    outputs = [f"{name}_output" for name in largest]
    results = run(input=file, output_variables=outputs)
    for name, (first, last) in largest.items():
        assert [int(v) for v in results[f"{name}_output"][[0, -1]]] == [first, last]
