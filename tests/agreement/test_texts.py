"""Text and binaries move and are recorded by the kernel as by the interpreter in Python, and FMUs get the same calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from call_trace import traced
from kernel_encodings import as_written

from fmimaster import PythonComponent, Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Waveform
from fmimaster.run import Backend

TEXTS = ["", "one", "one", "größer", "x" * 300, "one", "", "", "two\n", "two\n", "three"]
BINARIES = [b"", b"\0", b"\0\0", b"\0\0", b"\xff\0a", b"", b"b" * 700, b"c", b"c", b"c", b"d"]
TIMES = np.arange(len(TEXTS)) / 8
DEFAULT: dict[str, Any] = {"start_time": 0, "stop_time": TIMES[-1], "step_size": 0.125}


class Speaker(PythonComponent):
    """Speaks the texts one after the other, each time as another object, and hears one."""

    inputs = {"heard": "nothing"}
    outputs = {"spoken": TEXTS[0], "before": ""}
    states = {"k": 0}

    def step(self, t: float, h: float) -> None:
        self.before = self.heard
        self.k = round((t + h) * 8)
        self.spoken = "".join([*TEXTS[self.k]])


def chain(*, versions: tuple[str, ...] = ("fmi3", "fmi2", "fmi3")) -> Any:
    """A speaker, FMUs that pass its text on, back to the speaker."""
    builder = SystemBuilder("chain")
    builder.add("speaker", Speaker())
    source = "speaker.spoken"
    for k, version in enumerate(versions):
        builder.add(f"f{k}", reference_path(f"{version}/Feedthrough.fmu"))
        builder.connect(source, f"f{k}.String_input")
        source = f"f{k}.String_output"
    builder.connect(source, "speaker.heard")
    return builder.build(**DEFAULT)


def run(backend: Backend, system: Any, **settings: Any) -> Results:
    return simulate(system, backend=backend, output_variables=["*String*", "speaker.*"], **settings)


ALGORITHMS = [
    Jacobi(),
    GaussSeidel(),
    Waveform(GaussSeidel(), sweeps=2),
    Waveform(Jacobi(), tolerance=1e-9),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_both_executors_record_the_same_texts(algorithm: Algorithm) -> None:
    expected, found = (
        run(b, chain(), algorithm=algorithm) for b in Backend if b.value != "fastest"
    )
    assert expected["speaker.spoken"].tolist() == TEXTS
    assert set(TEXTS) <= {*expected["f0.String_output"].tolist(), TEXTS[-1]}
    for name, column in expected.items():
        assert column.tolist() == found[name].tolist(), name
        assert column.dtype == found[name].dtype, name


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.in_this_process("calls are traced in the process of the run")
def test_fmus_get_the_same_calls(algorithm: Algorithm, version: str) -> None:
    def calls(backend: Backend) -> list[tuple[Any, ...]]:
        with traced() as trace:
            run(backend, chain(versions=(version,) * 3), algorithm=algorithm)
        return trace.calls

    expected = calls(Backend.REFERENCE)
    given = [c[-2 if version == "fmi3" else -1] for c in expected if c[1] == f"{version}SetString"]
    assert ("größer".encode(),) in given
    assert calls(Backend.NATIVE) == expected
    with as_written():
        assert calls(Backend.NATIVE) == expected


@pytest.mark.in_this_process("calls are traced in the process of the run")
def test_binaries_reach_fmus_as_they_are() -> None:
    """By way of another FMU, in which a null ends nothing."""
    builder = SystemBuilder("pair")
    for name in ("a", "b"):
        builder.add(name, reference_path("fmi3/Feedthrough.fmu"))
    builder.connect("a.Binary_output", "b.Binary_input")
    system = builder.build(**DEFAULT)
    given = {"time": TIMES, "a.Binary_input": BINARIES}

    def calls(backend: Backend) -> list[tuple[Any, ...]]:
        with traced() as trace:
            simulate(system, backend=backend, input=given, algorithm=GaussSeidel())
        return trace.calls

    expected = calls(Backend.REFERENCE)
    for name in ("a", "b"):
        given_to = [c[4] for c in expected if c[:2] == (name, "fmi3SetBinary")]
        assert given_to == [(value,) for value in BINARIES]
    assert calls(Backend.NATIVE) == expected


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_texts_survive_the_end_of_a_block_of_rows(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.run.rows.BLOCK_BYTES", 0)
    monkeypatch.setattr("fmimaster.run.rows.LEAST_ROWS", 3)
    assert run(backend, chain())["speaker.spoken"].tolist() == TEXTS


def test_ctrl_c_while_a_text_is_made_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from fmimaster.run.native.objects import Objects

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Objects, "part", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(Backend.NATIVE, chain())
