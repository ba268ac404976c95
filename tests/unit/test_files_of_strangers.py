"""Small files that would take all memory, never end, or lead to other files: refused, by one error."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import survives

from fmimaster import FileError, Results, Simulation, SystemBuilder, reference_path, resume
from fmimaster.base.codec import Decoder
from fmimaster.cards import FmuCard
from fmimaster.conformance.recorded import read_recorded
from fmimaster.conformance.reference_file import read_reference
from fmimaster.conformance.verdict import ConformanceRun
from fmimaster.results.files import row_writer
from fmimaster.results.formats import FORMATS
from fmimaster.session.checkpoint_file import FORMAT, CheckpointFile
from fmimaster.studies.optimization.runs import KeptRuns

BALL = reference_path("fmi3/BouncingBall.fmu")
ROWS = 10**9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller limits: the files are written in less time."""
    monkeypatch.setattr("fmimaster.base.files.ANY_GROWTH", 2**22)
    monkeypatch.setattr("fmimaster.system.zip_entries.ANY_GROWTH", 2**22)
    monkeypatch.setattr("fmimaster.base.files._MOST_BRACKETS", 10_000)


def large_hdf5(file: Any) -> None:
    file.create_dataset("time", (ROWS,), "f8", chunks=(1024,))


def large_chunk(file: Any) -> None:
    file.create_dataset("time", (1,), "f8", maxshape=(None,), chunks=(ROWS // 8,), fillvalue=0.0)


def long_text_in_all_rows(file: Any) -> None:
    h5py: Any = pytest.importorskip("h5py")

    n = 2_000
    file["time"] = np.zeros(n)
    text = file.create_dataset("text", (n,), h5py.string_dtype(), fillvalue="x" * 40_000)
    assert text.size == n


def link_out(file: Any) -> None:
    h5py: Any = pytest.importorskip("h5py")

    file["time"] = [0.0]
    file["x"] = h5py.ExternalLink("other.h5", "/secret")


def values_elsewhere(file: Any) -> None:
    file["time"] = [0.0]
    file.create_dataset("x", (1,), "f8", external=[("/etc/passwd", 0, 8)])


def dangling_link(file: Any) -> None:
    h5py: Any = pytest.importorskip("h5py")

    file["time"] = h5py.SoftLink("/nowhere")


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (large_hdf5, "would take 8,000,000,000 in memory"),
        (large_chunk, "in memory"),
        (long_text_in_all_rows, "in memory"),
        (link_out, "'x' is a link"),
        (values_elsewhere, "the values of 'x' are in another file"),
        (dangling_link, "'time' is a link"),
    ],
)
def test_hdf5(write: Callable[[Any], None], why: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write(file)
    refused(lambda: Results.read(tmp_path / "a.h5"), why)


def test_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    part = arrow.table({"time": np.zeros(2**16), "x": np.zeros(2**16)})
    with parquet.ParquetWriter(tmp_path / "a.parquet", part.schema) as writer:
        for _ in range(16):
            writer.write_table(part)
    refused(lambda: Results.read(tmp_path / "a.parquet"), "in memory")


def test_long_equal_texts_are_one_object(tmp_path: Path) -> None:
    """They would take 1 GB."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = arrow.DictionaryArray.from_arrays(np.zeros(1000, np.int32), ["x" * 10**6])
    table = arrow.table({"time": np.zeros(1000), "text": text})
    parquet.write_table(table, tmp_path / "a.parquet", store_schema=False)
    read: Any = survives(Results.read, tmp_path / "a.parquet")
    assert set(map(len, read["text"])) == {10**6}


def test_mat(tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    content = io.BytesIO()
    scipy_io.savemat(content, {"data_2": np.zeros(2**20)}, do_compression=True)
    (tmp_path / "a.mat").write_bytes(content.getvalue())
    refused(lambda: Results.read(tmp_path / "a.mat"), "in memory")


READERS: dict[str, Callable[[Path], Any]] = {
    "card.json": FmuCard.read,
    "a.checkpoint": resume,
    "verdicts.jsonl": ConformanceRun.read,
    "verdicts.csv": read_recorded,
    "runs.json": lambda path: KeptRuns(path.parent, {}),
    **dict.fromkeys(["a.csv", "a.h5", "a.parquet", "a.mat"], Results.read),
}


@pytest.mark.parametrize("name", READERS)
def test_a_named_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("pipes of POSIX")
    os.mkfifo(tmp_path / name)
    refused(lambda: READERS[name](tmp_path / name), "a named pipe, expected a file")


@pytest.mark.parametrize("name", ["card.json", "verdicts.jsonl", "verdicts.csv", "runs.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\n", b"[" * 100_000 + b"\n", None])
def test_no_such_file(name: str, content: bytes | None, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.write(content or b"")
        if content is None:
            file.truncate(10**10)
    refused(lambda: READERS[name](tmp_path / name), str(tmp_path / name))


def test_a_large_reference_is_not_read_cell_by_cell(tmp_path: Path) -> None:
    """Each cell takes some 100 bytes, and there can be one for two bytes of the file."""
    (tmp_path / "a_ref.csv").write_text("time,x\n" + "0,true\n" * 3_000_000, encoding="utf-8")
    refused(lambda: read_reference(tmp_path / "a_ref.csv"), "expected a number")


def test_a_long_cell_is_not_told_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"time,{'n' * 9999}\n0,1\n1,{'x' * 9999}\n", encoding="utf-8")
    error = survives(Results.read, tmp_path / "a.csv")
    assert len(str(error)) < 1000


def test_a_device_is_no_card() -> None:
    refused(lambda: FmuCard.read(Path(os.devnull)), "a device, expected a file")


def test_a_deep_document_is_no_card(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("[" * 100_000 + "]" * 100_000, encoding="utf-8")
    refused(lambda: FmuCard.read(tmp_path / "card.json"), "is not an FMU card")


def test_a_document_of_millions_of_lists_is_no_card(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("[" + "[]," * 10_000 + "[]]", encoding="utf-8")
    refused(lambda: FmuCard.read(tmp_path / "card.json"), "lists and objects")


def test_a_line_of_a_table_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmimaster.base.files.MOST_LINE", 1000)
    (tmp_path / "a.csv").write_text("time,x\n" + "0" * 2000 + ",1\nx,1\n", encoding="utf-8")
    refused(lambda: Results.read(tmp_path / "a.csv"), "has a line of more than 1,000 characters")


def test_a_checkpoint_of_zeros(tmp_path: Path) -> None:
    head = {
        "format": FORMAT,
        "time": 0,
        "fingerprint": {},
        "identity": "00",
        "length": 0,
        "settings": "",
        "settings not written": "",
        "output file": "",
        "instances whose calls are repeated": [],
    }
    with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("checkpoint.json", json.dumps(head), zipfile.ZIP_STORED)
        archive.writestr("state.json", b"0" * 10**6)
        archive.writestr("parts", b"")
    refused(lambda: CheckpointFile.read(tmp_path / "a"), "'state.json' is packed")


@pytest.mark.parametrize(
    "text",
    [
        '{"fraction": "1e99999999"}',
        '{"fraction": 3}',
        '{"tuple": [{"bytes": 0}, {"bytes": 0}]}',
        '{"object": ["fmimaster.instants.instant:Instant", {}]}',
        '{"object": ["fmimaster.algorithms.jacobi:Jacobi", {}]}',
        "[" * 100_000,
        '{"array": ["<f8", [1000000000000], 0]}',
    ],
)
def test_the_content_of_a_checkpoint(text: str) -> None:
    refused(lambda: Decoder([b"12345678"]).value(text), "")


def system() -> SystemBuilder:
    builder = SystemBuilder()
    builder.add("a", BALL)
    builder.add("b", BALL)
    return builder


def test_fmu_states_of_zeros(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("states.json", json.dumps({"time": 0, "members": {"a": "s", "b": "t"}}))
        archive.writestr("s", b"\0" * 10**7)
        archive.writestr("t", b"")
    run = Simulation(system(), stop_time=1, initial_fmu_state=tmp_path / "a")
    refused(run.run, "An archive that grows")


def test_fmu_states_have_room_in_the_free_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.base.files.left", lambda: 2**23)
    with (tmp_path / "a").open("wb") as file:
        file.truncate(10**10)
    run = Simulation(BALL, stop_time=1, initial_fmu_state=tmp_path / "a")
    refused(run.run, "in memory, of which 8,388,608 are free")


def test_a_checkpoint_has_room_in_the_free_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Simulation(BALL, stop_time=1, checkpoint=tmp_path / "a")
    with run.start():
        pass
    with zipfile.ZipFile(tmp_path / "a") as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        for name, content in found.items():
            archive.writestr(name, content if name != "parts" else bytes(2**23))
    monkeypatch.setattr("fmimaster.base.files.left", lambda: 2**23)
    refused(lambda: CheckpointFile.read(tmp_path / "a"), "in memory, of which 8,388,608 are free")


def test_one_state_for_two_components(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("states.json", json.dumps({"time": 0, "members": {"a": "s", "b": "s"}}))
        archive.writestr("s", b"1")
    run = Simulation(system(), stop_time=1, initial_fmu_state=tmp_path / "a")
    refused(run.run, "two components have one state")


def test_an_empty_file_of_fmu_states(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    refused(Simulation(BALL, stop_time=1, initial_fmu_state=tmp_path / "a").run, "is empty")


SUFFIXES = {suffix[1:]: row.library or "numpy" for suffix, row in FORMATS.items()}


def written(columns: dict[str, Any], file: Path) -> Path:
    pytest.importorskip(SUFFIXES[file.suffix[1:]])
    rows = len(next(iter(columns.values())))
    Results(time=np.arange(float(rows)), columns=columns).write(file)
    return file


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_number_of_columns_is_bounded(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written({f"x{k}": np.zeros(1) for k in range(200)}, tmp_path / f"a.{suffix}")
    monkeypatch.setattr("fmimaster.results.columns._MOST_COLUMNS", 100)
    refused(lambda: Results.read(file), "columns, more than the 100")


@pytest.mark.parametrize("suffix", ["parquet", "h5", "mat"])
def test_a_table_has_room_in_the_free_memory(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with holes can have any size and take no room on the disk."""
    file = written({"x": np.random.default_rng(0).random(10**6)}, tmp_path / f"a.{suffix}")
    monkeypatch.setattr("fmimaster.base.files.left", lambda: 2**24)
    refused(lambda: Results.read(file), "in memory, of which 16,777,216 are free")


def test_a_table_without_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmimaster.base.files.MOST_LINE", 2**20)
    monkeypatch.setattr("fmimaster.results.numbers.MOST_LINE", 2**20)
    with (tmp_path / "a.csv").open("wb") as file:
        file.write(b"time,x\n0,1\n")
        file.truncate(4 * 10**9)
    refused(lambda: Results.read(tmp_path / "a.csv"), "has a line of more than")


def test_binaries_of_one_length_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """They would take 2 GB."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = arrow.binary(10**5)
    one = arrow.array([b"x" * 10**5], kind)
    many = arrow.DictionaryArray.from_arrays(np.zeros(2000, np.int32), one).cast(kind)
    part = arrow.table({"time": np.zeros(2000), "x": many})
    with parquet.ParquetWriter(tmp_path / "a.parquet", part.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(part)
    refused(lambda: Results.read(tmp_path / "a.parquet"), "not fixed_size_binary")


@pytest.mark.parametrize(
    ("suffix", "content", "why"),
    [
        ("h5", {"time": 1.0}, "'time' has the shape ()"),
        ("h5", {"time": None}, "column 'time' has no values"),
        ("mat", {"x": 1.0}, "it has no 'dataInfo'"),
        ("csv", b"", "is empty"),
        ("h5", b"abc", "is not an HDF5 file"),
        ("parquet", b"PAR1" + b"\0" * 50 + b"PAR1", "is not a Parquet file"),
    ],
)
def test_what_is_wrong_is_said(suffix: str, content: Any, why: str, tmp_path: Path) -> None:
    module: Any = pytest.importorskip(SUFFIXES[suffix])
    file = tmp_path / f"a.{suffix}"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif suffix == "mat":
        module.savemat(file, content)
    else:
        with module.File(file, "w") as target:
            target["time"] = module.Empty("f8") if content["time"] is None else content["time"]
    refused(lambda: Results.read(file), why)


def test_a_figure_shows_the_beginning_of_a_long_name(tmp_path: Path) -> None:
    plot: Any = pytest.importorskip("fmimaster.results.plot")
    name = "x" * 10**6
    table = Results(time=[0.0, 1.0], columns={name: [0.0, 1.0]}, units={name: "m" * 10**6})
    figure = survives(plot.plot_results, table)
    survives(plot.save_figure, figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


def test_a_figure_of_thousands_of_columns() -> None:
    panels: Any = pytest.importorskip("fmimaster.results.panels")
    columns = {f"x{k}": np.full(2, float(k % 2)) for k in range(10_000)}
    columns |= {f"y{k}": np.array([10.0 * k, 10.0 * k + 1.0]) for k in range(10_000)}
    found: Any = survives(panels.panels, [Results(time=[0.0, 1.0], columns=columns)], None, None)
    shown, left_out = found
    assert sum(len(panel.names) for panel in shown) + left_out == len(columns)


@pytest.mark.parametrize("clocks", [5, None, "ab", [1], {"x": 1}])
def test_clocks_in_the_facts_are_names(clocks: Any, tmp_path: Path) -> None:
    """A figure of such results ended with a TypeError."""
    file = tmp_path / "a.csv"
    Results(time=[0.0], columns={"x": [1.0]}, metadata={"clocks": ["x"]}).write(file)
    assert Results.read(file).metadata["clocks"] == ["x"]
    facts = file.with_name("a.csv.json")
    facts.write_text(
        facts.read_text(encoding="utf-8").replace('["x"]', json.dumps(clocks)), encoding="utf-8"
    )
    refused(lambda: Results.read(file), "does not hold the events and steps of a run")


def test_an_empty_state_of_a_component(tmp_path: Path) -> None:
    """It was passed over: the component began with its start values."""
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("states.json", json.dumps({"time": 0, "members": {"a": "s", "b": "t"}}))
        archive.writestr("s", b"1")
        archive.writestr("t", b"")
    run = Simulation(system(), stop_time=1, initial_fmu_state=tmp_path / "a")
    refused(run.run, "has an empty state of 'b'")


@pytest.mark.parametrize("fmu", [BALL, None], ids=["FMU", "system"])
def test_incomplete_fmu_states(fmu: Any, tmp_path: Path) -> None:
    """They were passed to a single FMU as its state."""
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("states.json", json.dumps({"time": 0, "members": {"a": "s", "b": "t"}}))
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-10])
    run = Simulation(fmu or system(), stop_time=1, initial_fmu_state=tmp_path / "a")
    refused(run.run, "is damaged or incomplete")


@pytest.mark.parametrize("suffix", [s for s in SUFFIXES if s != "csv"])
def test_two_writers_of_one_file_do_not_share_their_rows(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip(SUFFIXES[suffix])
    file = tmp_path / f"a.{suffix}"
    with row_writer(file) as first, row_writer(file) as second:
        first.write(Results(time=[0.0], columns={"x": [1.0]}))
        second.write(Results(time=[0.0], columns={"x": [2.0]}))
    assert Results.read(file)["x"].tolist() == [1.0]
    assert list(tmp_path.iterdir()) == [file]


def refused(read: Callable[[], Any], why: str) -> None:
    """Refused as a file, in little time and memory."""
    error = survives(read)
    assert isinstance(error, FileError)
    assert why in str(error)
