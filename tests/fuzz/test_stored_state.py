"""Hostile binary results, checkpoints, FMU states and cards: read, or refused by an error of ours."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import survives
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import edited_bytes, edited_json

from fmimaster import Results, Simulation, SystemBuilder, reference_path, resume
from fmimaster.base.codec import Decoder
from fmimaster.cards.card import FmuCard
from fmimaster.cards.measured import Repetition, Tried
from fmimaster.results.files import read_table
from fmimaster.session.checkpoint_file import CheckpointFile
from fmimaster.session.origin import settings_in

BALL = reference_path("fmi3/BouncingBall.fmu")
MODULES = {"parquet": "pyarrow.parquet", "h5": "h5py", "mat": "scipy.io"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@cache
def results(suffix: str) -> bytes:
    pytest.importorskip(MODULES[suffix])
    columns: dict[str, Any] = {
        "x": np.linspace(0, 1, 20),
        "n": np.ma.MaskedArray(np.arange(20), np.arange(20) % 2 == 1),
        "array": np.ones((20, 2, 2)),
    }
    if suffix != "mat":
        columns["text"] = np.array(["a", "bé"] * 10, object)
        columns["binary"] = np.array([b"\0", b""] * 10, object)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / f"a.{suffix}"
        Results(time=np.arange(20.0), columns=columns, units={"x": "m"}).write(file)
        return file.read_bytes()


@pytest.mark.filterwarnings("ignore")  # of SciPy, about odd matrices
@pytest.mark.parametrize("suffix", MODULES)
@settings(max_examples=20)
@given(data=st.data())
def test_binary_results(suffix: str, data: st.DataObject, folder: Path) -> None:
    file = folder / f"a.{suffix}"
    file.write_bytes(data.draw(edited_bytes([results(suffix)])))
    survives(lambda: read_table(file).expand())


# Checkpoints ----------------------------------------------------------------------------------------------------------


@cache
def members() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        builder = SystemBuilder()
        builder.add("a", BALL)
        file = Path(place) / "a.checkpoint"
        run = Simulation(builder, stop_time=1, step_size="0.1", checkpoint=file)
        with run.start() as ended:
            ended.advance_to(0.5)
        with zipfile.ZipFile(file) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        (rows,) = Path(place).glob("*.rows")
        found[rows.name] = rows.read_bytes()
        return found


def packed(content: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, part in content.items():
            if not name.endswith(".rows"):
                archive.writestr(name, part)
    return stream.getvalue()


@settings(max_examples=20)
@given(data=st.data())
def test_a_checkpoint(data: st.DataObject, folder: Path) -> None:
    file = folder / "a.checkpoint"
    file.write_bytes(data.draw(edited_bytes([packed(members())])))
    survives(CheckpointFile.read, file)


def _settings() -> bytes:
    head: dict[str, str] = json.loads(members()["checkpoint.json"])
    return head["settings"].encode()


@settings(max_examples=20)
@given(text=edited_json(_settings))
def test_the_settings_in_a_checkpoint(text: bytes, folder: Path) -> None:
    head = json.loads(members()["checkpoint.json"])
    head["settings"] = text.decode(errors="surrogatepass")
    file = folder / "a.checkpoint"
    file.write_bytes(packed({**members(), "checkpoint.json": json.dumps(head).encode()}))
    survives(lambda: settings_in(file, CheckpointFile.read(file), Simulation))


@settings(max_examples=20)
@given(text=edited_json(lambda: members()["state.json"]))
def test_the_state_in_a_checkpoint(text: bytes, folder: Path) -> None:
    content = {**members(), "state.json": text}
    file = folder / "a.checkpoint"
    file.write_bytes(packed(content))
    for name, part in content.items():
        if name.endswith(".rows"):
            (folder / name).write_bytes(part)
    survives(lambda: Decoder([b"12345678"] * 99).value(text.decode(errors="surrogatepass")))
    survives(CheckpointFile.read, file)


@settings(max_examples=20)
@given(data=st.data())
def test_the_rows_of_a_checkpoint(data: st.DataObject, folder: Path) -> None:
    file = folder / "a.checkpoint"
    (rows,) = (name for name in members() if name.endswith(".rows"))
    file.write_bytes(packed(members()))
    (folder / rows).write_bytes(data.draw(edited_bytes([members()[rows]])))
    survives(resume, file)


# FMU states and cards -------------------------------------------------------------------------------------------------


@cache
def states() -> bytes:
    with tempfile.TemporaryDirectory() as place:
        Simulation(pair(), stop_time=1, final_fmu_state=Path(place) / "a").run()
        return (Path(place) / "a").read_bytes()


@cache
def pair() -> Any:
    builder = SystemBuilder()
    builder.add("a", BALL)
    builder.add("b", BALL)
    return builder.build()


@settings(max_examples=20)
@given(data=st.data())
def test_fmu_states(data: st.DataObject, folder: Path) -> None:
    file = folder / "states"
    content = {"states.json": data.draw(edited_json(_index)), "states/0": b"0", "states/1": b"1"}
    file.write_bytes(data.draw(st.one_of(edited_bytes([states()]), st.just(packed(content)))))
    run = Simulation(pair(), start_time=1, stop_time=1.1, initial_fmu_state=file)
    survives(run.run)


def _index() -> bytes:
    with zipfile.ZipFile(io.BytesIO(states())) as archive:
        return archive.read("states.json")


@cache
def card() -> bytes:
    texts = ("fmu", "sha256", "model_name", "fmi_version", "interface", "generation_tool")
    given: dict[str, Any] = dict.fromkeys((*texts, "platform", "fmimaster", "made"), "a")
    found = FmuCard(
        **given,
        declared={"canGetAndSetFMUState": True},
        declared_feedthrough={"y": ("u",)},
        declared_feedthrough_at_start={},
        varying_steps=Tried(refused=""),
        two_processes=Repetition(steps=3, moved=1, differences={"y": 0.1}),
        not_measured={"leak": "not declared"},
    )
    return json.dumps(found.to_json()).encode()


@settings(max_examples=20)
@given(data=st.data())
def test_a_card(data: st.DataObject, folder: Path) -> None:
    file = folder / "card.json"
    file.write_bytes(data.draw(st.one_of(edited_json(card), edited_bytes([card()]))))
    survives(FmuCard.read, file)
