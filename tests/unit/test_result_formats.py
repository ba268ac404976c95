"""Files of results by suffix: each holds the rows, units, metadata, events and steps."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from fmimaster import Simulation, reference_path
from fmimaster.base.errors import CallError, FileError, OptionError
from fmimaster.record.causes import Cause, Event, Kind, Steps
from fmimaster.results import hdf5
from fmimaster.results.files import facts_of
from fmimaster.results.formats import FORMATS, SUFFIXES
from fmimaster.results.results import _ELSEWHERE, Results

SYSTEM = reference_path("systems/two-mass-b1-fmi3.ssp")
pytestmark = pytest.mark.filterwarnings(
    "ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning"
)


@pytest.fixture(params=FORMATS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A path with each suffix; skipped where its library is not installed."""
    pytest.importorskip(FORMATS[request.param].library or "numpy")
    return tmp_path / f"rows{request.param}"


@pytest.fixture(scope="module")
def results() -> Results:
    return Simulation(SYSTEM, stop_time=0.2, event_clock="none").run()


EVENT = Event(1.0, 1, "jump", False, ("a",), Cause(Kind.DETECTED), {"a.x": 1.0}, {"a.x": 2.0})


@pytest.fixture
def mixed() -> Results:
    """All that a table can hold."""
    return Results(
        time=[0.0, 1.0, 1.0, 2.0],
        columns={
            "float": [0.1, -1e300, np.inf, 2.0],
            "integer": np.arange(4, dtype=np.int32),
            "truth": [True, False, True, True],
            "text": ["a", 'ä, "b"', "", "c"],
            "masked": np.ma.MaskedArray([1.0, 2.0, 3.0, 4.0], [False, True, False, False]),
            "array": np.arange(16.0).reshape(4, 2, 2),
            "a/b.ü": [1.0, 2.0, 3.0, 4.0],
        },
        units={"float": "m", "array": "N.m", "a/b.ü": "°C"},
        metadata={"started": "today", "settings": {"stop_time": 2.0, "names": ["é"]}},
        events=[EVENT],
        steps=[Steps(0.0, 2.0, Cause(Kind.GRID), 2)],
    )


def assert_same(read: Results, written: Results) -> None:
    assert read.names == written.names
    for name, values in written.items():
        assert np.array_equal(read[name], values), name
    assert read.units == written.units
    assert read.metadata == written.metadata
    assert (read.events, read.steps) == (written.events, written.steps)


def test_results_come_back_with_all_their_bits_and_facts(results: Results, file: Path) -> None:
    results.write(file)
    assert_same(Results.read(file), results)
    beside = [f"{file.name}.json"] if file.suffix == ".csv" else []
    assert sorted(p.name for p in file.parent.iterdir()) == [file.name, *beside]


@pytest.mark.measured
def test_rows_that_are_written_during_the_run_are_the_same(
    results: Results, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.run.rows._rows_of_a_block", lambda _: 8)
    Simulation(SYSTEM, stop_time=0.2, event_clock="none").run(output_file=file)
    read = Results.read(file)
    assert {**read.metadata, "started": 0, "wall_time": 0, "settings": 0} == {
        **results.metadata,
        "started": 0,
        "wall_time": 0,
        "settings": 0,
    }
    assert read.rows == 21
    for name, values in results.items():
        assert np.array_equal(read[name], values), name


def test_what_a_format_cannot_hold_is_as_documented(mixed: Results, file: Path) -> None:
    mixed.write(file)
    read = Results.read(file)
    expected = mixed if file.suffix == ".h5" else mixed.expand()
    if file.suffix == ".mat":
        expected = expected.select([n for n in expected.names if n != "text"])
    assert read.names == expected.names
    assert read.units == expected.units
    assert (read.metadata, read.events, read.steps) == (mixed.metadata, mixed.events, mixed.steps)
    for name in expected.names:
        if name != "masked":
            assert read[name].tolist() == expected[name].tolist(), name
        if file.suffix in (".parquet", ".h5"):
            assert read[name].dtype == expected[name].dtype
    absent = np.isnan(np.ma.filled(read["masked"], np.nan))
    assert absent.tolist() == [False, True, False, False]


def test_a_table_without_rows_comes_back(file: Path) -> None:
    Results(time=[], columns={"x": []}).write(file)
    read = Results.read(file)
    assert (read.rows, read.names) == (0, ("x",))


def test_names_and_shapes_that_formats_treat_in_another_way_come_back(file: Path) -> None:
    if file.suffix == ".mat":
        pytest.skip("it has no place for arrays without elements")
    odd = ("a/b", "a%2Fb", ".", "..", "", "fmimaster.json", "x" * 5000, "Time")
    written = Results(
        time=[0.0, 1.0],
        columns={"none": np.empty((2, 0)), **{name: [1.0, k] for k, name in enumerate(odd)}},
    )
    written.write(file)
    read = Results.read(file)
    assert [n for n in read.names if n != "none"] == list(odd)
    assert [read[name][1] for name in odd] == [*range(len(odd))]


def test_hdf5_holds_more_columns_than_a_scale_can_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each listed column takes 16 bytes of an attribute of 64 kB."""
    h5py = pytest.importorskip("h5py")
    assert 16 * hdf5._MOST_SCALED < 65_536
    monkeypatch.setattr(hdf5, "_MOST_SCALED", 2)
    names = ["a", "b", "c"]
    Results(time=[0.0], columns={n: [1.0] for n in names}).write(tmp_path / "r.h5")
    assert list(Results.read(tmp_path / "r.h5").names) == names
    with h5py.File(tmp_path / "r.h5") as file:
        assert [len(file[name].dims[0]) for name in names] == [1, 1, 0]


def test_hdf5_is_compressed(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    time = np.arange(20_000) / 1000
    columns = {"speed": np.sin(time), "constant": np.ones(len(time)), "count": np.arange(20_000)}
    written = Results(time=time, columns=columns)
    written.write(tmp_path / "r.h5")
    assert (tmp_path / "r.h5").stat().st_size < 0.5 * 4 * 8 * len(time)
    assert_same(Results.read(tmp_path / "r.h5"), written)


def test_rows_of_large_arrays_are_stored_in_small_pieces(tmp_path: Path) -> None:
    """HDF5 refuses pieces of 4 GB, and keeps a piece of each column in memory."""
    h5py = pytest.importorskip("h5py")
    Results(time=[0.0], columns={"field": np.ones((1, 500, 500))}).write(tmp_path / "r.h5")
    with h5py.File(tmp_path / "r.h5") as file:
        assert file["field"].chunks == (1, 500, 500)
    assert (Results.read(tmp_path / "r.h5")["field"] == 1.0).all()


def test_what_a_library_refuses_is_an_error_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with pytest.raises(FileError, match=r"r\.h5' cannot be written: .*NULL"):
        Results(time=[0.0], columns={"text": ["a\0b"]}).write(tmp_path / "r.h5")


def test_long_facts_do_not_make_a_parquet_file_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs refuse a file with an entry of more than 100 MB in its metadata."""
    arrow = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("fmimaster.results.parquet._MOST_LETTERS", 100)
    written = Results(time=[0.0], columns={"x": [1.0]}, metadata={"note": "ä" * 200})
    written.write(tmp_path / "r.parquet")
    assert_same(Results.read(tmp_path / "r.parquet"), written)
    found = arrow.ParquetFile(tmp_path / "r.parquet").metadata.metadata
    pieces = [text.decode() for key, text in found.items() if key.startswith(b"fmimaster")]
    assert len(pieces) > 3
    assert max(map(len, pieces)) == 100


def test_integers_that_a_mat_file_rounds_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    columns = {"exact": [2**53], "count": [2**53 + 1]}
    Results(time=[0.0], columns=columns).write(tmp_path / "r.mat")
    assert caplog.messages == [
        "r.mat: the format has doubles only; integers beyond 2**53 are rounded: count"
    ]


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ([1.0, 0.0], "r.h5' holds no results"),
        (["a", "b"], "r.h5' holds no results"),
        ([[1.0, 2.0]], "r.h5': 'time' has the shape (1, 2), expected one axis"),
    ],
)
def test_a_file_of_another_program_without_times_is_told(
    time: list[object], words: str, tmp_path: Path
) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["time"] = time
    with pytest.raises(FileError, match=re.escape(words)):
        Results.read(tmp_path / "r.h5")


def test_absent_times_are_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"time": [None, 1.0], "x": [1.0, 2.0]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "r.parquet")
    with pytest.raises(FileError, match="time has absent values"):
        Results.read(tmp_path / "r.parquet")


def test_units_that_another_program_wrote_as_bytes_are_text(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["time"], file["x"] = [0.0], [1.0]
        file["x"].attrs["units"] = np.bytes_("m/s")
    assert Results.read(tmp_path / "r.h5").units == {"x": "m/s"}


def test_a_run_that_fails_leaves_its_rows(file: Path) -> None:
    fault = {"fault": 3, "faultTime": 0.5}
    with pytest.raises(CallError):
        Simulation(reference_path("fmi3/Faulty.fmu"), start_values=fault).run(output_file=file)
    assert Results.read(file).time.tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert not list(file.parent.glob("*.part"))


def test_a_run_that_is_refused_leaves_the_older_file(file: Path) -> None:
    file.write_bytes(b"older")
    with pytest.raises(OptionError):
        Simulation(SYSTEM, stop_time=1, output_variables=["no"]).run(output_file=file)
    assert file.read_bytes() == b"older"
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_a_folder_is_refused_before_the_run(file: Path) -> None:
    file.mkdir()
    seen: list[object] = []
    with pytest.raises(FileError, match="Is a directory"):
        Simulation(SYSTEM, stop_time=0.2, event_clock="none").run(
            progress=seen.append, output_file=file
        )
    assert not seen
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_rows_stay_if_the_older_file_cannot_be_replaced(
    results: Results, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows while another program has it open."""
    if file.suffix == ".csv":
        pytest.skip("it is written in its place")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("fmimaster.base.files.os.replace", refuse)
        with pytest.raises(FileError, match=r"The rows are in '.*\.part'"):
            results.write(file)
    (part,) = file.parent.glob(f"{file.name}.*.part")
    part.rename(file)
    assert_same(Results.read(file), results)


@pytest.mark.skipif(sys.platform != "win32", reason="a file that is read can be replaced here")
def test_an_older_file_that_is_read_is_replaced_when_it_is_closed(
    results: Results, file: Path
) -> None:
    results.write(file)
    with file.open("rb") as older:
        timer = threading.Timer(0.3, older.close)
        timer.start()
        results.write(file)
        timer.join()
    assert_same(Results.read(file), results)


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a privilege of Windows")
def test_a_link_stays_a_link(results: Results, file: Path) -> None:
    file.symlink_to(file.with_name(f"target{file.suffix}"))
    results.write(file)
    assert file.is_symlink()
    assert Results.read(file).rows == results.rows


def test_a_file_of_another_kind_is_told(file: Path) -> None:
    file.write_bytes(b"\x00\x01 no results")
    with pytest.raises(FileError, match=rf"rows{file.suffix}'"):
        Results.read(file)


def test_steps_are_shown_from_each_format(results: Results, file: Path) -> None:
    results.write(file)
    assert tuple(facts_of(file).steps()) == results.steps


@pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.xlsx"])
def test_an_unknown_suffix_is_refused_before_the_run(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"expected \.csv, \.parquet, \.h5, \.mat"):
        Simulation("no.fmu").run(output_file=tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("suffix", "library", "extra"), [(".parquet", "pyarrow", "parquet"), (".h5", "h5py", "hdf5")]
)
def test_a_library_that_is_missing_is_named_before_the_run(
    suffix: str, library: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"{library}.parquet", raising=False)
    with pytest.raises(OptionError) as error:
        Simulation("no.fmu").run(output_file=tmp_path / f"rows{suffix}")
    assert str(error.value) == (
        f"A {suffix} file needs the library {library}, which is not installed."
        f' Install it with: pip install "fmimaster[{extra}]"'
    )


def test_a_mat_file_has_the_form_of_dymola(mixed: Results, tmp_path: Path) -> None:
    """The matrices that tools for Modelica expect, in their order."""
    io = pytest.importorskip("scipy.io")
    mixed.write(tmp_path / "rows.mat")
    read = io.loadmat(tmp_path / "rows.mat", chars_as_strings=True)
    names = [name for name in read if not name.startswith("__")]
    assert names == ["Aclass", "name", "description", "dataInfo", "data_1", "data_2", "fmimaster"]
    assert [row.strip() for row in read["Aclass"]] == ["Atrajectory", "1.1", "", "binTrans"]
    assert read["data_1"].tolist() == [[0.0, 2.0]]
    assert read["dataInfo"].T[:2].tolist() == [[0, 1, 0, -1], [2, 2, 0, -1]]
    assert read["data_2"].shape == (len(mixed.expand()) - 1, 4)  # no text
    assert read["data_2"][0].tolist() == mixed.time.tolist()


def test_metadata_tells_where_results_come_from(results: Results) -> None:
    about = results.metadata
    assert about["system"] == str(SYSTEM)
    assert about["settings"] == {"stop_time": 0.2, "event_clock": "none"}
    assert [c["name"] for c in about["components"]] == ["upper", "lower"]
    assert {len(c["sha256"]) for c in about["components"]} == {64}
    assert (about["start_time"], about["stop_time"], about["end_time"]) == (0.0, 0.2, 0.2)
    assert (about["steps"], about["events"]) == (20, 0)
    assert about["wall_time"] > 0


@pytest.mark.parametrize("system", ["two-mass-b1-fmi3", "thermostat-fmi2", "quarter-car-b-fmi3"])
def test_metadata_repeat_a_run_whose_methods_were_chosen(system: str) -> None:
    path = reference_path(f"systems/{system}.ssp")
    first = Simulation(path, stop_time=0.5).run()
    about = first.metadata
    assert about["chosen"]
    again = Simulation(path, **about["settings"], **about["chosen"]).run()
    assert not again.metadata["chosen"]
    assert {n: again[n].tolist() for n in again.names} == {
        n: first[n].tolist() for n in first.names
    }


def test_a_data_frame_has_units_and_metadata(mixed: Results) -> None:
    pytest.importorskip("pandas")
    made = mixed.to_pandas()
    assert list(made.columns) == list(mixed.expand().names)
    assert made.attrs["units"]["array[1,2]"] == "N.m"
    assert made.attrs["metadata"] == dict(mixed.metadata)
    assert made.index.name == "time"


def test_a_data_set_of_xarray_has_units_and_dimensions(mixed: Results) -> None:
    pytest.importorskip("xarray")
    made = mixed.to_xarray()
    assert made["array"].dims == ("time", "array_1", "array_2")
    assert made["float"].attrs == {"units": "m"}
    assert made["time"].attrs == {"units": "s"}
    assert made["float"].values.tolist() == mixed["float"].tolist()


def test_a_data_set_of_xarray_can_be_written_as_netcdf(results: Results, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    results.to_xarray().to_netcdf(tmp_path / "r.nc", engine="scipy")
    with xarray.open_dataset(tmp_path / "r.nc", engine="scipy") as read:
        assert json.loads(read.attrs["settings"]) == results.metadata["settings"]
        assert read["time"].values.tolist() == results.time.tolist()


def test_xarray_that_is_missing_is_named(mixed: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(OptionError, match=r'pip install "fmimaster\[xarray\]"'):
        mixed.to_xarray()


# What is said about formats ---------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def test_the_page_of_results_describes_each_format_with_its_library() -> None:
    rows = re.findall(
        r"^\| `(\.\w+)` \|(.*)$", (ROOT / "docs/results.md").read_text("utf-8"), re.MULTILINE
    )
    assert [suffix for suffix, _ in rows] == list(FORMATS)
    for suffix, row in rows:
        extra = re.search(r"fmimaster\[(\w+)\]", row)
        # scipy is installed in any case
        needed = FORMATS[suffix].extra if FORMATS[suffix].extra != "all" else ""
        assert (extra[1] if extra else "") == needed


def test_each_extra_installs_the_library_of_its_format() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    extras = dict(re.findall(r"^(\w+) = (\[.*)$", project, re.MULTILINE))
    for row in FORMATS.values():
        needs = extras[row.extra] if row.extra not in ("", "all") else project
        assert f'"{row.library.partition(".")[0]}' in needs


@pytest.mark.parametrize("page", ["command-line.md", "coming-from-omsimulator.md", "results.md"])
def test_a_page_that_names_formats_names_all(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    assert [suffix for suffix in FORMATS if f"{suffix}`" not in text] == []


def test_help_and_docstrings_name_all_formats() -> None:
    assert SUFFIXES == ".csv, .parquet, .h5 or .mat"
    for suffix, row in FORMATS.items():
        assert f"``{suffix}``, {row.words}" in (Results.write.__doc__ or "")
        assert all(name in _ELSEWHERE for name in row.known_as)
    in_code = ", ".join(f"`{suffix}`" for suffix in list(FORMATS)[:-1])
    page = (ROOT / "docs/command-line.md").read_text("utf-8")
    assert page.count(f"{in_code} or `{list(FORMATS)[-1]}`") == 2
