"""The table of results, made by hand."""

import pickle
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fmimaster.base.errors import ColumnError, OptionError
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.results.statistics import InstanceStatistics, Statistics


@pytest.fixture
def bounce() -> Results:
    """A ball that touches the ground at 1 s: two rows at that time."""
    return Results(
        time=[0.0, 1.0, 1.0, 2.0],
        columns={
            "ball.h": [1.0, 0.0, 0.0, 1.0],
            "ball.v": [0.0, -2.0, 2.0, 0.0],
            "ball.state": ["down", "down", "up", "up"],
            "ground.forces": np.arange(16).reshape(4, 2, 2),
        },
        units={"ball.h": "m", "ball.v": "m/s", "ground.forces": "N"},
        metadata={"system": "bounce.ssp"},
    )


def test_a_column_is_found_by_its_name(bounce: Results) -> None:
    assert bounce["ball.v"].tolist() == [0.0, -2.0, 2.0, 0.0]


def test_time_is_found_by_its_name(bounce: Results) -> None:
    assert bounce["time"] is bounce.time
    assert "time" in bounce


def test_names_are_those_of_the_columns_without_time(bounce: Results) -> None:
    assert bounce.names == ("ball.h", "ball.v", "ball.state", "ground.forces")


def test_results_are_a_mapping_with_time_as_the_first_name(bounce: Results) -> None:
    assert isinstance(bounce, Mapping)
    assert list(bounce) == ["time", *bounce.names]
    assert len(bounce) == 5
    assert dict(bounce)["time"] is bounce.time
    assert all(values is bounce[name] for name, values in bounce.items())


def test_rows_are_counted(bounce: Results) -> None:
    assert bounce.rows == 4


def test_results_are_equal_to_themselves_only(bounce: Results) -> None:
    assert bounce == bounce
    assert bounce != pickle.loads(pickle.dumps(bounce))
    assert {bounce: 1}[bounce] == 1


def test_an_unknown_name_gets_a_suggestion(bounce: Results) -> None:
    assert "ball.w" not in bounce
    assert bounce.get("ball.w") is None
    with pytest.raises(ColumnError) as error:
        bounce["v"]
    assert str(error.value) == "The results have no column 'v'. Did you mean 'ball.v'?"
    assert error.value.name == "v"
    assert isinstance(error.value, OptionError)
    assert isinstance(error.value, KeyError)


def test_the_superdense_index_counts_rows_at_the_same_time() -> None:
    results = Results(time=[0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0], columns={})
    assert results.index.tolist() == [0, 0, 1, 2, 0, 0, 1]


def test_the_superdense_index_of_many_rows_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are counted in parts; an instant may lie in several of them."""
    monkeypatch.setattr("fmimaster.results.table._ROWS_AT_ONCE", 4)
    time = np.repeat(np.arange(7.0), [1, 9, 3, 1, 1, 2, 4])
    expected = [i for n in (1, 9, 3, 1, 1, 2, 4) for i in range(n)]
    for rows in range(len(time) + 1):
        assert Results(time=time[:rows], columns={}).index.tolist() == expected[:rows]


def test_a_table_without_repeated_times_takes_no_memory_for_its_index() -> None:
    index = Results(time=np.arange(1000.0), columns={}).index
    assert index.strides == (0,)
    assert index.tolist() == [0] * 1000


def test_a_time_that_decreases_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmimaster.results.table._ROWS_AT_ONCE", 4)
    for row in range(8):
        time = np.arange(9.0)
        time[row + 1 :] -= 1.5
        with pytest.raises(OptionError, match=rf"between rows {row} and {row + 1};"):
            Results(time=time, columns={})


def test_a_superdense_index_that_is_given_is_kept() -> None:
    assert Results(time=[0.0, 1.0], columns={}, index=[0, 3]).index.tolist() == [0, 3]


def test_arrays_are_read_only(bounce: Results) -> None:
    for array in (bounce.time, bounce.index, bounce["ball.h"], bounce["ball.state"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_mappings_are_read_only(bounce: Results) -> None:
    with pytest.raises(TypeError):
        bounce.units["ball.h"] = "mm"  # type: ignore[index]


def test_text_becomes_python_objects(bounce: Results) -> None:
    assert bounce["ball.state"].dtype == object
    assert type(bounce["ball.state"][0]) is str


def test_the_given_array_stays_writable_for_its_owner() -> None:
    mine = np.array([1.0, 2.0])
    Results(time=[0.0, 1.0], columns={"x": mine})
    mine[0] = 3.0


def test_a_table_without_rows_is_legal() -> None:
    empty = Results(time=[], columns={"x": []})
    assert empty.rows == 0
    assert repr(empty) == "<Results: 0 rows, 1 columns>"


def test_the_representation_is_short(bounce: Results) -> None:
    assert repr(bounce) == "<Results: 4 rows, 4 columns, 0 s to 2 s>"


def test_a_pickled_table_is_the_same_and_still_read_only(bounce: Results) -> None:
    copy = pickle.loads(pickle.dumps(bounce))
    assert copy.names == bounce.names
    for name in ("time", *bounce.names):
        np.testing.assert_array_equal(copy[name], bounce[name], strict=True)
        assert not copy[name].flags.writeable
    assert copy.units == bounce.units
    assert copy.metadata == bounce.metadata
    assert copy.index.tolist() == bounce.index.tolist()


def test_decreasing_time_is_an_error() -> None:
    with pytest.raises(OptionError) as error:
        Results(time=[0.0, 2.0, 1.5], columns={})
    assert str(error.value) == (
        "time decreases from 2.0 s to 1.5 s between rows 1 and 2;"
        " expected increasing or repeated times."
    )


def test_time_with_two_axes_is_an_error() -> None:
    with pytest.raises(OptionError) as error:
        Results(time=[[0.0]], columns={})
    assert str(error.value) == "time has the shape (1, 1); expected one axis, the rows."


def test_a_column_of_another_length_is_an_error() -> None:
    with pytest.raises(OptionError) as error:
        Results(time=[0.0, 1.0], columns={"x": [1.0]})
    assert str(error.value) == "Column 'x' has the shape (1,); expected 2 rows, as time has."


def test_a_column_of_an_unknown_type_is_an_error() -> None:
    with pytest.raises(OptionError) as error:
        Results(time=[0.0], columns={"x": [1j]})
    assert str(error.value) == (
        "Column 'x' has the type complex128;"
        " expected floats, integers, Booleans, or objects for text."
    )


def test_a_column_called_time_is_an_error() -> None:
    with pytest.raises(OptionError) as error:
        Results(time=[0.0], columns={"time": [0.0]})
    assert str(error.value) == "A column is called 'time', which is the name of the time itself."


def test_a_unit_of_no_column_is_an_error() -> None:
    with pytest.raises(OptionError) as error:
        Results(time=[0.0], columns={"speed": [0.0]}, units={"speeed": "m/s"})
    assert str(error.value) == (
        "A unit is given for 'speeed', which is not a column. Did you mean 'speed'?"
    )


def test_select_takes_patterns_in_their_order(bounce: Results) -> None:
    chosen = bounce.select(["ground.*", "*.?"])
    assert chosen.names == ("ground.forces", "ball.h", "ball.v")
    assert chosen.units == {"ground.forces": "N", "ball.h": "m", "ball.v": "m/s"}
    assert chosen.metadata == bounce.metadata


def test_select_takes_each_column_once(bounce: Results) -> None:
    assert bounce.select(["ball.v", "ball.v", "ball.*"]).names == ("ball.v", "ball.h", "ball.state")


def test_select_takes_a_single_name(bounce: Results) -> None:
    assert bounce.select("ball.h").names == ("ball.h",)


def test_brackets_in_a_pattern_mean_themselves() -> None:
    results = Results(time=[0.0], columns={"x1": [0.0], "x[1]": [1.0]})
    assert results.select("x[1]").names == ("x[1]",)


def test_a_pattern_that_matches_nothing_is_an_error(bounce: Results) -> None:
    with pytest.raises(OptionError) as error:
        bounce.select(["bal.h"])
    assert (
        str(error.value)
        == "No column of the results matches 'bal.h'. Did you mean 'ball.h' or 'ball.v'?"
    )


def test_expand_makes_a_column_of_each_element_counted_from_one(bounce: Results) -> None:
    expanded = bounce.select(["ball.h", "ground.*"]).expand()
    assert expanded.names == (
        "ball.h",
        *(f"ground.forces[{k}]" for k in ("1,1", "1,2", "2,1", "2,2")),
    )
    assert expanded["ground.forces[2,1]"].tolist() == [2, 6, 10, 14]
    assert expanded.units["ground.forces[2,1]"] == "N"


def test_to_structured_has_the_fields_of_fmpy(bounce: Results) -> None:
    table = bounce.to_structured()
    assert table.dtype.names == ("time", *bounce.names)
    assert table["ball.v"].tolist() == [0.0, -2.0, 2.0, 0.0]
    assert table["ground.forces"].shape == (4, 2, 2)
    assert table.dtype["ground.forces"].base == np.int64


def test_an_unknown_attribute_gets_a_suggestion(bounce: Results) -> None:
    named = replace(bounce, columns={"h": np.zeros(4)}, units={})
    for name, meant in {
        "to_dataframe": "Did you mean to_pandas()?",
        "to_csv": "Did you mean write('results.csv')?",
        "unit": "Did you mean 'units'?",
        "h": "Columns are items: results['h'].",
    }.items():
        with pytest.raises(AttributeError) as error:
            getattr(named, name)
        assert str(error.value) == f"'Results' object has no attribute '{name}'. {meant}"


def test_a_notebook_shows_the_first_and_last_rows_with_units(bounce: Results) -> None:
    page = bounce._repr_html_()
    assert "4 rows, 4 columns, 0 s to 2 s" in page
    cells = re.findall(r"<t[hd] [^>]*>(.*?)</t[hd]>", page)
    assert cells[:10] == ["time", *bounce.names, "s", "m", "m/s", "", "N"]
    assert cells[10:15] == ["0", "1", "0", "down", "array 2 × 2"]
    assert len(cells) == 5 * (2 + 4)
    assert "data:image/png;base64,iVBOR" in page


def test_a_notebook_shows_few_of_many_rows_and_columns_and_escapes_names() -> None:
    many = Results(time=np.arange(100.0), columns={f"<b>{k}": np.arange(100) for k in range(20)})
    page = many.select([f"<b>{k}" for k in range(12)])._repr_html_()
    assert "5 more columns: &lt;b&gt;7, &lt;b&gt;8, &lt;b&gt;9, &lt;b&gt;10, …" in page
    assert page.count("<tr>") == 2 + 4 + 1 + 4
    assert "<b>" not in page


def test_a_notebook_shows_a_table_without_numbers_or_rows(bounce: Results) -> None:
    assert "<img" not in bounce.select("ball.state")._repr_html_()
    assert "0 rows, 1 column" in Results(time=[], columns={"x": []})._repr_html_()


def test_to_pandas_has_time_as_its_index(bounce: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(
        Index=lambda values, name: (name, values.tolist()),
        DataFrame=lambda data, index: SimpleNamespace(names=list(data), index=index, attrs={}),
    )
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    frame = bounce.select(["ball.h"]).to_pandas()
    assert frame.names == ["ball.h"]
    assert frame.index == ("time", [0.0, 1.0, 1.0, 2.0])
    assert frame.attrs["units"] == {"ball.h": "m"}


def test_to_pandas_says_what_to_install(bounce: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OptionError) as error:
        bounce.to_pandas()
    assert str(error.value) == (
        "to_pandas() needs the library pandas, which is not installed."
        ' Install it with: pip install "fmimaster[pandas]"'
    )


def test_statistics_are_summed_up_in_an_aligned_table() -> None:
    statistics = Statistics(
        steps=1000,
        attempts=1010,
        rejections=10,
        seconds=1.25,
        instances=(
            InstanceStatistics("upper", 10_000, 0.5),
            InstanceStatistics("load.lower", 100, 0.0625),
        ),
        warnings=("The step was small.",),
    )
    assert statistics.lines() == [
        "1000 steps in 1.25 s (1010 attempts, 10 rejections)",
        "instance    calls  seconds  share",
        "upper       10000      0.5  40.0%",
        "load.lower    100   0.0625   5.0%",
        "(rest)               0.688  55.0%",
        "warning: The step was small.",
    ]


def test_the_summary_says_where_the_time_went_and_how_fast_the_run_was() -> None:
    statistics = Statistics(
        steps=700,
        attempts=700,
        rejections=0,
        seconds=2.0,
        instances=(InstanceStatistics("upper", 700, 0.5),),
        simulated=7.0,
        start_seconds=0.125,
        recording_seconds=0.25,
        writing_seconds=0.75,
        is_estimated=True,
    )
    assert statistics.real_time_factor == 3.5
    assert statistics.lines() == [
        "700 steps in 2 s, real-time factor 3.5 (700 attempts, 0 rejections)",
        "instance     calls  seconds (estimated)  share",
        "upper          700                  0.5  25.0%",
        "(recording)                        0.25  12.5%",
        "(writing)                          0.75  37.5%",
        "(rest)                              0.5  25.0%",
        "before the first step: 0.125 s to load and initialize",
    ]


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("steps", [10, 3000])
def test_times_of_a_run_add_up(steps: int) -> None:
    run = Simulation(reference_path("systems/two-mass-b1-fmi3.ssp"), stop_time=steps / 100)
    told = run.run().statistics
    assert told.simulated == steps / 100
    in_steps = sum(one.seconds for one in told.instances)
    assert told.is_estimated
    assert min(one.seconds for one in told.instances) > 0.0
    assert told.recording_seconds > 0.0
    assert told.writing_seconds == 0.0
    # estimates: equal to the whole but for rounding where they are limited by it
    assert in_steps + told.recording_seconds <= told.seconds * (1 + 1e-12)
    assert told.start_seconds > 0.0


def test_shares_of_instances_never_add_up_to_more_than_the_whole() -> None:
    parallel = (InstanceStatistics("upper", 10, 1.2), InstanceStatistics("lower", 10, 0.8))
    lines = Statistics(
        steps=10, attempts=10, rejections=0, seconds=1.25, instances=parallel
    ).lines()
    assert [line.split()[-1] for line in lines[2:4]] == ["60.0%", "40.0%"]


def test_statistics_without_instances_are_one_line() -> None:
    statistics = Statistics(steps=0, attempts=0, rejections=0, seconds=0.0)
    assert statistics.lines() == ["0 steps in 0 s (0 attempts, 0 rejections)"]


def test_statistics_of_a_run_too_short_to_be_timed_have_no_share() -> None:
    statistics = Statistics(
        steps=1, attempts=1, rejections=0, seconds=0.0, instances=(InstanceStatistics("a", 1, 0.0),)
    )
    assert statistics.lines()[-1] == "a             1        0      -"


def test_statistics_pickle() -> None:
    statistics = Statistics(
        1, 1, 0, 0.5, instances=(InstanceStatistics("a", 1, 0.25),), warnings=("w",)
    )
    assert pickle.loads(pickle.dumps(statistics)) == statistics


def test_a_structured_array_shows_where_there_is_no_value() -> None:
    column = np.ma.MaskedArray([1, 2], [False, True])
    made = Results(time=[0.0, 1.0], columns={"tick": column}).to_structured()
    assert made["tick"].tolist() == [1, None]
    assert made["time"].tolist() == [0.0, 1.0]
