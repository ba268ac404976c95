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

from fmimaster import FileError, FmuCard, Results, Simulation, SystemBuilder, reference_path, resume
from fmimaster.checkpoint.codec import Decoder
from fmimaster.checkpoint.file import FORMAT, CheckpointFile

BALL = reference_path("fmi3/BouncingBall.fmu")
ROWS = 10**9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller limits: the files are written in less time."""
    monkeypatch.setattr("fmimaster.files.ANY_GROWTH", 2**22)
    monkeypatch.setattr("fmimaster.system.zip_entries.ANY_GROWTH", 2**22)
    monkeypatch.setattr("fmimaster.files._MOST_BRACKETS", 10_000)


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


@pytest.mark.parametrize("name", ["a.csv", "a.h5", "a.parquet", "a.mat", "card.json", "a"])
def test_a_named_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("pipes of POSIX")
    os.mkfifo(tmp_path / name)
    read: Any = {"card.json": FmuCard.read, "a": resume}.get(name, Results.read)
    refused(lambda: read(tmp_path / name), "a named pipe, expected a file")


def test_a_device_is_no_card() -> None:
    refused(lambda: FmuCard.read(Path(os.devnull)), "a device, expected a file")


def test_a_deep_document_is_no_card(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("[" * 100_000 + "]" * 100_000)
    refused(lambda: FmuCard.read(tmp_path / "card.json"), "is not an FMU card")


def test_a_document_of_millions_of_lists_is_no_card(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("[" + "[]," * 10_000 + "[]]")
    refused(lambda: FmuCard.read(tmp_path / "card.json"), "lists and objects")


def test_a_line_of_a_table_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmimaster.files._MOST_LINE", 1000)
    (tmp_path / "a.csv").write_text("time,x\n" + "0" * 2000 + ",1\nx,1\n")
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
        '{"object": ["fmimaster.control.instant:Instant", {}]}',
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


def test_one_state_for_two_components(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("states.json", json.dumps({"time": 0, "members": {"a": "s", "b": "s"}}))
        archive.writestr("s", b"1")
    run = Simulation(system(), stop_time=1, initial_fmu_state=tmp_path / "a")
    refused(run.run, "two components have one state")


def test_an_empty_file_of_fmu_states(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    refused(Simulation(BALL, stop_time=1, initial_fmu_state=tmp_path / "a").run, "is empty")


@pytest.mark.parametrize("suffix", ["parquet", "h5", "mat"])
def test_two_writers_of_one_file_do_not_share_their_rows(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip({"parquet": "pyarrow", "h5": "h5py", "mat": "scipy"}[suffix])
    from fmimaster.results.files import row_writer

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
