"""Runs of an image in C give the rows of runs by Python, in every bit; what cannot be in an image is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmimaster.kernel
from fmimaster import DescriptionError, OptionError, Simulation, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi, Richardson, SubSteps, Waveform
from fmimaster.export.export import settled
from fmimaster.export.parts import image_of, variable_of
from fmimaster.fmu.load import Loader
from fmimaster.front import CompiledRuns
from fmimaster.inputs import HERMITE, NEPCE, Polynomial
from fmimaster.run.choice import native_executor
from fmimaster.session.session import Session
from fmimaster.steps import MultiRate

pytestmark = pytest.mark.skipif(native_executor() is None, reason="needs the kernel")

CAR = reference_path("systems/quarter-car-a-fmi3.ssp")
OTHER_CAR = {"chassis.mc": [400.0, 420.0], "wheel.kw": [150e3, 140e3], "wheel.kc": [15e3, 16e3]}
OTHER_B = {"chassis.mc": [400.0, 420.0], "wheel.kw": [150e3, 140e3]}
ALL = {"loops": "all"}

RUNS: dict[str, tuple[str, dict[str, Any], dict[str, list[float]], bool]] = {
    "Jacobi": ("quarter-car-a-fmi2", {}, OTHER_CAR, False),
    "intermediate updates": (
        "quarter-car-a-fmi3",
        {"algorithm": Jacobi(Polynomial(3, 0))},
        OTHER_CAR,
        False,
    ),
    "rollback": ("quarter-car-a-fmi2", {"algorithm": Waveform(GaussSeidel())}, OTHER_CAR, False),
    "rates": (
        "quarter-car-b-fmi2",
        {"step_size": MultiRate("1/100", {"wheel": "1/300"})},
        OTHER_B,
        False,
    ),
    "loops": ("four-units-fmi3", ALL, {}, False),
    "Gauss-Seidel": ("seat-chain-fmi3", {"algorithm": GaussSeidel()}, {}, True),
    "Hermite": ("quarter-car-a-fmi3", {"algorithm": Jacobi(HERMITE)}, OTHER_CAR, True),
    "compensation": ("quarter-car-b-fmi3", {"algorithm": Jacobi(NEPCE)}, OTHER_B, True),
    "sub-steps": (
        "quarter-car-b-fmi2",
        {"algorithm": SubSteps(GaussSeidel(), {"wheel": 3})},
        OTHER_B,
        True,
    ),
    "two steps and one": (
        "quarter-car-a-fmi2",
        {"algorithm": Richardson(Jacobi())},
        OTHER_CAR,
        True,
    ),
    "later start": ("quarter-car-b-nonlinear-fmi2", {"start_time": 0.5}, {}, True),
    "thirds": ("survey-two-mass-fmi3", {"step_size": "1/30"}, {}, True),
}
"""Name → a reference system, settings, start values of two runs, whether it is tested in thorough tests only."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough if is_thorough else ())
        for name, (*_, is_thorough) in RUNS.items()
    ],
)
def test_bits_are_those_of_python(name: str) -> None:
    """In each column of each run; with the usual start values they are compared when the runs are prepared."""
    system, settings, values, _ = RUNS[name]
    path = reference_path(f"systems/{system}.ssp")
    simulation = Simulation(path, **settings, error_estimate=False)
    with simulation.compiled(values) as compiled:
        runs = compiled(values)
    assert [*runs.errors] == [""] * (2 if values else 1)
    for k in range(len(runs.errors)):
        start = {n: v[k] for n, v in values.items()}
        expected = replace(simulation, start_values=start).run()
        rows = np.isin(expected.time, runs.time)
        assert runs.time.tobytes() == expected.time[rows].tobytes()
        for column in runs:
            assert runs[column][k].tobytes() == expected[column][rows].tobytes(), column


def test_rows_at_an_interval_are_those_of_all_steps() -> None:
    """Values are read between many steps at once; the last one is that of the stop time."""
    car = Simulation(CAR, stop_time=1)
    names = ["wheel.force", "chassis.velocity"]
    with car.compiled("wheel.dc", record=names) as every:
        rows = every({"wheel.dc": [700.0, 900.0, 1100.0]})
    with car.compiled("wheel.dc", record=names, output_interval=0.25) as some:
        parts = some({"wheel.dc": [700.0, 900.0, 1100.0]})
    assert parts.time.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    for name in names:
        assert parts[name].tobytes() == np.ascontiguousarray(rows[name][:, ::250]).tobytes()


def test_runs_that_fail_have_an_error_and_others_go_on() -> None:
    """The words are those of the FMU; rows up to the failure stay."""
    faulty = Simulation(reference_path("fmi2/Faulty.fmu"), error_estimate=False)
    with faulty.compiled("fault") as compiled:
        runs = compiled({"fault": [0, 3, 0, 6]})
    assert [not error for error in runs.errors] == [True, False, True, False]
    assert "Error" in runs.errors[1]
    x = runs["x"]
    assert x[0].tobytes() == x[2].tobytes()
    assert not np.isnan(x[0]).any()
    assert np.isnan(x[1]).any()
    assert x[1][0] == x[0][0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": "wheel.kx"}, "wheel.kx"),
        ({"names": (), "record": ["wheel.forces"]}, "wheel.force"),
        ({"names": (), "output_interval": 0.0015}, "multiple"),
    ],
)
def test_what_is_not_possible_is_refused(arguments: dict[str, Any], words: str) -> None:
    """Before any run in C."""
    with pytest.raises((OptionError, DescriptionError), match=words):
        Simulation(CAR, stop_time=0.1).compiled(**arguments)


def test_numbers_of_values_must_agree() -> None:
    """A value of each name for each run."""
    with Simulation(CAR, stop_time=0.1).compiled(["wheel.kc", "wheel.dc"]) as runs:
        with pytest.raises(OptionError, match=r"wheel\.kc: 2.*wheel\.dc: 3"):
            runs({"wheel.kc": [1.0, 2.0], "wheel.dc": [1.0, 2.0, 3.0]})
        with pytest.raises(OptionError, match="does not vary"):
            runs({"wheel.kw": [1.0]})


def test_every_reason_is_given() -> None:
    """With the component that it concerns."""
    with pytest.raises(OptionError) as caught:
        Simulation(reference_path("systems/two-mass-b1-fmi3.ssp")).compiled()
    for word in ("Predictive", "Ramp", "'upper': it has clocks", "'lower': it has clocks"):
        assert word in str(caught.value)


@pytest.fixture
def unbegun() -> Iterator[Session]:
    """A session that has not begun."""
    settings = Simulation(CAR, error_estimate=False)
    with Loader() as loader:
        prepared = settled(settings, loader)
        yield Session(prepared, loader, prepared.completed(settings))


def image(session: Session) -> bytes:
    """The image of a session."""
    variables = [variable_of(session.plan, "wheel", "kc")]
    return image_of(session, ["wheel", "chassis"], variables)


def test_unknown_memory_is_an_error(unbegun: Session) -> None:
    """An address that belongs to no block is named, and no image is written."""
    from fmimaster.kernel._kernel import ffi

    elsewhere = ffi.new("double[]", 1)
    unbegun.executor.kernel.centre = elsewhere  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match=r"kernel\.centre"):
        image(unbegun)


def test_the_same_system_has_the_same_bytes(unbegun: Session) -> None:
    """Addresses of this process are not in the image."""
    settings = Simulation(CAR, error_estimate=False)
    with Loader() as loader:
        prepared = settled(settings, loader)
        other = Session(prepared, loader, prepared.completed(settings))
        assert image(unbegun) == image(other)


def test_damaged_images_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An image that is cut, changed, or of another kernel, is an error with a message; nothing crashes."""
    whole = b""

    def spoiled(data: bytes) -> str:
        with monkeypatch.context() as patch:
            patch.setattr("fmimaster.export.loaded.image_of", lambda *_: data)
            with pytest.raises(OptionError) as caught:
                Simulation(CAR, stop_time=0.1).compiled()
        return str(caught.value)

    def kept(*arguments: Any) -> bytes:
        nonlocal whole
        whole = image_of(*arguments)
        return whole

    with monkeypatch.context() as patch:
        patch.setattr("fmimaster.export.loaded.image_of", kept)
        Simulation(CAR, stop_time=0.1).compiled().close()
    assert "is no image" in spoiled(b"")
    assert "another kernel" in spoiled(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    for at in (80, len(whole) // 2, len(whole) - 1):
        assert "is damaged" in spoiled(whole[:at])
        assert "is damaged" in spoiled(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


def test_closed_runs_are_refused() -> None:
    """With what to do."""
    runs = Simulation(CAR, stop_time=0.1).compiled()
    assert isinstance(runs, CompiledRuns)
    runs.close()
    with pytest.raises(OptionError, match="closed"):
        runs()


def test_images_can_have_each_hook_of_the_kernel() -> None:
    """The table of functions in C has each that Python writes; the hook that waits for a wall clock is refused before."""
    from fmimaster.export.walk import functions

    source = Path(fmimaster.kernel.__file__).with_name("system_image.c").read_text("utf-8")
    known = {*re.findall(r"FUNCTION\((fm_\w+)\)", source)}
    assert {one.name for one in functions().values()} - known == {"fm_keep_real_time"}
    with pytest.raises(OptionError, match="real_time_factor"):
        Simulation(CAR, real_time_factor=100.0, stop_time=0.1).compiled()
