"""Checkpoints: their files, files that are refused, and settings that do not fit."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from edited_fmu import edited_fmu

from fmimaster import (
    AccuracyWarning,
    FileError,
    FmimasterError,
    OptionError,
    PythonComponent,
    Simulation,
    SystemBuilder,
    reference_path,
    resume,
)
from fmimaster.base.codec import Decoder, Encoder, NotPlainError, joined, separated
from fmimaster.configure.checkpoint_interval import CheckpointInterval, interval_of
from fmimaster.instants.instant import Goal, Instant
from fmimaster.record.causes import GRID
from fmimaster.session.checkpoint_file import CheckpointFile
from fmimaster.system.model import DataType

BALL = reference_path("fmi3/BouncingBall.fmu")


def simulation(folder: Path, **settings: Any) -> Simulation:
    given = {"stop_time": 2, "step_size": "0.01", "checkpoint": folder / "run.checkpoint"}
    return Simulation(BALL, **{**given, **settings})


def ended_at(time: float, ended: Simulation, **files: Any) -> None:
    with ended.start(**files) as run:
        run.advance_to(time)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint of a run that has ended early; tests copy it."""
    folder = tmp_path_factory.mktemp("ended")
    ended_at(1.0, simulation(folder))
    return folder


@pytest.fixture
def copied(ended: Path, tmp_path: Path) -> Path:
    """The checkpoint in a copy of the folder."""
    shutil.copytree(ended, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run.checkpoint"


def rows_of(checkpoint: Path) -> Path:
    (rows,) = checkpoint.parent.glob("run.checkpoint.*.rows")
    return rows


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_copy_in_another_folder_continues(copied: Path) -> None:
    assert resume(copied).time[-1] == 2.0


def test_a_run_may_be_ended_and_resumed_again_and_again(tmp_path: Path) -> None:
    expected = simulation(tmp_path, checkpoint=None).run(output_file=tmp_path / "whole.csv")
    run = simulation(tmp_path)
    file = tmp_path / "run.checkpoint"
    ended_at(0.5, run, output_file=tmp_path / "rows.csv")
    for time in (0.9, 1.3):
        ended_at(time, run, resume_from=file, output_file=tmp_path / "rows.csv")
    found = resume(file)
    assert (tmp_path / "rows.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert found.statistics.rows == expected.statistics.rows
    assert len(list(tmp_path.glob("*.rows"))) == 1


def test_a_new_run_replaces_the_files_of_an_older_one(copied: Path) -> None:
    before = rows_of(copied)
    ended_at(0.2, simulation(copied.parent))
    assert rows_of(copied) != before
    assert resume(copied).time[-1] == 2.0


def test_a_checkpoint_does_not_grow_with_the_run(tmp_path: Path) -> None:
    sizes = []
    with simulation(tmp_path, stop_time=200, checkpoint_interval=1).start() as run:
        for time in (2, 200):
            run.advance_to(time)
            sizes.append((tmp_path / "run.checkpoint").stat().st_size)
    assert sizes[1] < 1.2 * sizes[0]


def test_values_that_a_caller_has_set_are_kept(tmp_path: Path) -> None:
    room = reference_path("fmi3/ThermostatRoom.fmu")
    file = tmp_path / "run.checkpoint"
    cold = Simulation(room, stop_time=2, step_size="0.1", checkpoint=file)
    with cold.start() as whole:
        whole["q"] = False
        whole.advance_to(1)
        whole.advance_to(2)
    with cold.start() as first:
        first["q"] = False
        first.advance_to(1)
    with cold.start(resume_from=file) as second:
        assert (second.time, second["q"]) == (1.0, False)
        second.advance_to(2)
    assert second.results["x"].tobytes() == whole.results["x"].tobytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda c: c.unlink(), r"There is no checkpoint '.*run\.checkpoint'"),
        (lambda c: c.write_bytes(c.read_bytes()[:-100]), "damaged or truncated"),
        (lambda c: c.write_text("time,x\n", encoding="utf-8"), "is not a checkpoint of fmimaster"),
        (lambda c: shutil.copy(BALL, c), "is not a checkpoint of fmimaster"),
        (lambda c: rows_of(c).unlink(), r"\.rows' is missing: it belongs to the checkpoint"),
        (lambda c: cut(rows_of(c), 40), "damaged or truncated, so the run cannot be continued"),
        (lambda c: turned(rows_of(c), 100), "damaged or truncated, so the run cannot be continued"),
        (lambda c: turned(rows_of(c), 20), "does not belong to the checkpoint beside it"),
        (lambda c: zeros(rows_of(c)), "run.checkpoint' is damaged: lengths of parts"),
        (lambda c: changed(c, "state.json", '"object"', '"objekt"'), "is damaged: unknown content"),
        (
            lambda c: changed(c, "state.json", "fmimaster.instants.instant", "os"),
            "not a part of fmimaster",
        ),
        (
            lambda c: changed(c, "checkpoint.json", "checkpoint 3", "checkpoint 9"),
            "another version",
        ),
        (
            lambda c: changed(c, "checkpoint.json", '"length"', '"width"'),
            "is damaged: it has no 'length'",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    copied: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(copied)
    with pytest.raises(FileError, match=message):
        resume(copied)


def test_a_results_file_is_not_replaced_if_the_run_cannot_continue(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    ended_at(1.0, simulation(tmp_path), output_file=rows)
    before = rows.read_bytes()
    cut(rows_of(tmp_path / "run.checkpoint"), 10)
    with pytest.raises(FileError):
        resume(tmp_path / "run.checkpoint")
    assert rows.read_bytes() == before


def cut(path: Path, n: int) -> None:
    path.write_bytes(path.read_bytes()[:-n])


def zeros(path: Path) -> None:
    """Behind the head: one record of rows, whose checksum fits."""
    content = path.read_bytes()
    rows = bytes(len(content) - 33 - 13)
    path.write_bytes(content[:33] + struct.pack("<BQI", 0, len(rows), crc32(rows)) + rows)


def turned(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 255
    path.write_bytes(content)


def changed(path: Path, member: str, before: str, after: str) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert before.encode() in members[member]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            new = content.replace(before.encode(), after.encode()) if name == member else content
            archive.writestr(name, new)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"step_size": "0.02"}, "another system, or other settings"),
        ({"stop_time": 3}, "another system, or other settings"),
        ({"start_values": {"h": 2.0}}, "another system, or other settings"),
        ({"system": reference_path("fmi2/BouncingBall.fmu")}, "another file of 'BouncingBall'"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    copied: Path, change: dict[str, Any], what: str
) -> None:
    with pytest.raises(OptionError, match=f"does not belong to this run: {what}"):
        resume(copied, replace(simulation(copied.parent), **change))


def test_a_checkpoint_of_another_version_is_refused(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.session.origin.installed_version", lambda: "9.9")
    with pytest.raises(
        OptionError, match=r"another version of fmimaster 0\.\S+ before, and 9.9 now"
    ):
        resume(copied)


def test_a_failure_to_write_does_not_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    run = simulation(tmp_path)
    with run.start() as running:
        monkeypatch.setattr("fmimaster.session.checkpoint_file.os.fsync", full)
        running.advance_to(1)
    assert running.results.time[-1] == 1.0
    assert "No more checkpoints are written" in caplog.text
    monkeypatch.undo()
    assert resume(tmp_path / "run.checkpoint").time[-1] == 2.0  # from the first one


@pytest.mark.parametrize("serializes", [True, False])
def test_a_run_that_has_dropped_an_fmu_keeps_the_last_checkpoint_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, serializes: bool
) -> None:
    fmu = reference_path("fmi3/Faulty.fmu")
    if not serializes:
        fmu = edited_fmu(fmu, tmp_path / "Faulty.fmu", capabilities={"canSerializeFMUState": None})
    file = tmp_path / "run.checkpoint"
    run = Simulation(
        fmu,
        stop_time=1,
        step_size=0.125,
        start_values={"fault": 9, "faultTime": 0.5},
        on_fault="drop",
        checkpoint=file,
    )
    with pytest.warns(AccuracyWarning, match="was dropped"), run.start() as running:
        running.advance_to(0.75)
    assert running.results["Faulty.dropped"].tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert "No more checkpoints are written: 'Faulty' was dropped" in caplog.text
    assert CheckpointFile.read(file).time == 0.0


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"accuracy": 1e-3}, "checkpoint .* is for one run"),
        ({"checkpoint_interval": 0}, "checkpoint_interval: 0, expected a positive number"),
        ({"checkpoint_interval": "wall=0"}, "expected a positive number"),
        ({"checkpoint_interval": "hours=1"}, "expected a positive number"),
        ({"checkpoint_interval": "often"}, "expected a positive number"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        simulation(tmp_path, **settings)


@pytest.mark.parametrize("name", ["", "missing/run.checkpoint", "ball.fmu"])
def test_places_that_cannot_be_written_are_refused(tmp_path: Path, name: str) -> None:
    shutil.copy(BALL, tmp_path / "ball.fmu")
    run = Simulation(tmp_path / "ball.fmu", stop_time=1, checkpoint=tmp_path / name)
    with pytest.raises(FmimasterError, match=r"is a folder|does not exist|would overwrite"):
        run.run()
    assert (tmp_path / "ball.fmu").read_bytes() == BALL.read_bytes()


def test_intervals_have_two_kinds_of_time() -> None:
    assert interval_of("time=0.5, wall=60") == CheckpointInterval(0.5, 60.0)
    assert interval_of(2) == CheckpointInterval(time=2.0)
    assert interval_of(None) == CheckpointInterval(wall=60.0)
    assert CheckpointInterval(time=1.0).is_over(1.0, 0.0)
    assert not CheckpointInterval(time=1.0).is_over(0.5, 100.0)


# Components in Python -------------------------------------------------------------------------------------------------


class Remembering(PythonComponent):
    """Its output depends on all inputs so far."""

    def __init__(self, plain: bool = True) -> None:
        super().__init__(inputs={"u": 1.0}, outputs={"y": 0.0})
        self.plain = plain

    def start(self, t: float) -> None:
        """Nothing is remembered; what is not plain cannot be written."""
        self.seen: dict[str, list[float]] = {"u": []}
        self.count = np.zeros(2)
        if not self.plain:
            self.calls = np.random.default_rng(1)

    def step(self, t: float, h: float) -> None:
        """The output is a mean."""
        self.seen["u"].append(self.u)
        self.count[1] += 1
        noise = 0.0 if self.plain else float(self.calls.normal())
        self.y = sum(self.seen["u"]) / self.count[1] + np.sin(t) + noise


@pytest.mark.parametrize("plain", [True, False], ids=["its state", "its calls"])
def test_components_in_python_continue(plain: bool, tmp_path: Path) -> None:
    builder = SystemBuilder("means")
    for name in ("a", "b"):
        builder.add(name, Remembering(plain))
    builder.connect("a.y", "b.u")
    builder.connect("b.y", "a.u")
    file = tmp_path / "run.checkpoint"
    run = Simulation(builder.build(), stop_time=2, step_size="0.1", checkpoint=file)
    expected = run.run()
    ended_at(1.0, run)
    with pytest.raises(
        OptionError, match=r"does not contain the settings .* object of \S*Remembering"
    ):
        resume(file)
    found = resume(file, run)
    assert found["b.y"].tobytes() == expected["b.y"].tobytes()


class Clockwork(Remembering):
    """It does not repeat its values: they depend on the number of steps of all objects."""

    steps = 0

    def step(self, t: float, h: float) -> None:
        """Another value each time."""
        Clockwork.steps += 1
        self.y = 1.0 + 1e-3 * Clockwork.steps


def test_what_is_not_repeated_exactly_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    builder = SystemBuilder("one")
    builder.add("clock", Clockwork(plain=False))
    run = Simulation(builder.build(), stop_time=2, step_size="0.5", checkpoint=file)
    ended_at(1.0, run)
    with pytest.warns(
        AccuracyWarning, match=r"'clock' cannot write its state.*'clock.y' differs by"
    ):
        resume(file, run)


# Values as JSON -------------------------------------------------------------------------------------------------------


def test_values_return_as_they_were() -> None:
    value = {
        1: [None, True, 2, -0.0, 1e300, "größer"],
        "tuple": (Fraction(1, 3), frozenset({1}), {2}, b"\0\1"),
        DataType.FLOAT64: Goal(Instant(0.1, 3), GRID),
        "queue": deque([1.0], maxlen=3),
        "path": Path("/a/b").absolute(),
        "number": np.float32(0.1),
    }
    encoder = Encoder()
    text = encoder.text(value)
    returned = Decoder(separated(joined(encoder.parts))).value(text)
    assert returned == value
    assert type(returned[DataType.FLOAT64]) is Goal
    assert returned["queue"].maxlen == 3


def test_arrays_return_in_every_bit() -> None:
    arrays = [
        np.array([[np.nan, -0.0]]),
        np.array(["a", b"b", 1.5], object),
        np.zeros((0, 3), bool),
    ]
    encoder = Encoder()
    text = encoder.text(arrays)
    for array, returned in zip(arrays, Decoder(encoder.parts).value(text), strict=True):
        assert (returned.dtype, returned.shape) == (array.dtype, array.shape)
        assert returned.tolist() == array.tolist() or returned.tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [len, lambda: 0, int, Remembering(), np.random.default_rng()])
def test_what_is_not_plain_is_refused(value: object) -> None:
    with pytest.raises(NotPlainError):
        Encoder().text([value])


def test_a_list_in_two_places_is_refused_where_it_would_become_two() -> None:
    shared = [1.0]
    with pytest.raises(NotPlainError, match="in two places"):
        Encoder(is_strict=True).text([shared, shared])
    assert Decoder([]).value(Encoder().text([shared, shared])) == [[1.0], [1.0]]


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "fmimaster.commands.cli:main", "subprocess:Popen"]
)
def test_a_file_cannot_name_what_is_not_ours(name: str) -> None:
    with pytest.raises(FileError):
        Decoder([]).value(json.dumps({"object": [name, {}]}))


# Content that makes no sense ------------------------------------------------------------------------------------------


def edited(checkpoint: Path, member: str, edit: Callable[[Any], None]) -> None:
    """Change JSON in a checkpoint; its checksums fit."""
    with zipfile.ZipFile(checkpoint) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(members[member])
    edit(data)
    members[member] = json.dumps(data).encode()
    with zipfile.ZipFile(checkpoint, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("part", ["state", "registers", "store", "recorder", "row", "instances"])
def test_a_state_that_was_edited_is_refused(copied: Path, part: str) -> None:
    def edit(state: Any) -> None:
        (entry,) = (entry for entry in state["dict"] if entry[0] == part)
        entry[1] = {"tuple": []}

    edited(copied, "state.json", edit)
    with pytest.raises(FileError, match="is damaged"):
        resume(copied)


def test_a_checkpoint_without_its_rows_is_refused(copied: Path) -> None:
    edited(copied, "checkpoint.json", lambda head: head.update(length=0))
    with pytest.raises(FileError, match="is damaged or truncated"):
        resume(copied)
