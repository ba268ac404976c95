"""Values of another type are refused where they are given, with the name of the argument and what is expected."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fmimaster import OptionError, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi, Waveform
from fmimaster.configure.settings import Settings
from fmimaster.events import Predictive
from fmimaster.fmu import Cvode, Restart
from fmimaster.inputs.polynomial import LINEAR
from fmimaster.loops import LoopSolver
from fmimaster.results.files import row_writer
from fmimaster.sequences import GivenWeights
from fmimaster.steps import PID, FixedStep, MultiRate, PowerResidual
from fmimaster.system import LevelCrossing, Port, PowerBond

DAHLQUIST = reference_path("fmi3/Dahlquist.fmu")


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Jacobi, {"inputs": "linear"}, "Jacobi: inputs='linear', expected a Polynomial."),
        (Waveform, {"base": "Jacobi"}, "Waveform: base='Jacobi', expected an Algorithm."),
        (
            Waveform,
            {"base": Jacobi},
            "Waveform: base: Jacobi is a class. Give an object: Jacobi().",
        ),
        (
            Waveform,
            {"base": Jacobi(), "sweeps": 2.5},
            "Waveform: sweeps=2.5, expected a whole number.",
        ),
        (Predictive, {"near": "1e-4"}, "Predictive: near='1e-4', expected a number."),
        (Predictive, {"near": True}, "Predictive: near=True, expected a number."),
        (Predictive, {"go_back": 1}, "Predictive: go_back=1, expected True or False."),
        (GaussSeidel, {"mode": "lin"}, "GaussSeidel: mode='lin', expected an InputMode."),
        (LoopSolver, {"bounded": "3"}, "LoopSolver: bounded='3', expected a whole number or None."),
        (PID, {"estimators": 3}, "PID: estimators=3, expected a sequence (each an Estimator)."),
        (
            MultiRate,
            {"size": 0.1, "components": [3]},
            "MultiRate: components=[3], expected a mapping.",
        ),
        (
            GivenWeights,
            {"given": {"a.u": "x"}},
            "GivenWeights: given['a.u']='x', expected a number.",
        ),
        (Restart, {"tries": "x"}, "Restart: tries='x', expected a whole number."),
        (Cvode, {"relative": "x"}, "Cvode: relative='x', expected a number or None."),
        (LevelCrossing, {"level": "x"}, "LevelCrossing: level='x', expected a number."),
        (
            Port,
            {"component": "a", "input": "u", "output": "y", "power": 1},
            "Port: power=1, expected 'in' or 'out'.",
        ),
        (
            PowerBond,
            {"name": "b", "ports": (1, 2)},
            "PowerBond: ports[0]=1, expected a Port.",
        ),
    ],
)
def test_a_value_of_another_type_is_refused_when_the_object_is_made(
    kind: Callable[..., object], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError) as error:
        kind(**given)
    assert str(error.value) == message


def test_arguments_by_position_are_checked_too() -> None:
    kind: Any = Waveform
    with pytest.raises(OptionError, match="Waveform: base='Jacobi', expected an Algorithm"):
        kind("Jacobi", 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.connect(1, 2), "connect: source=1, expected a text."),
        (lambda s: s.connect("a.y", target=2), "connect: target=2, expected a text."),
        (lambda s: s.connect("a.y", "b.u", factor="2"), "connect: factor='2', expected a number."),
        (lambda s: s.set(3, 1.0), "set: name=3, expected a text."),
        (lambda s: s.add(3, "a.fmu"), "add: name=3, expected a text."),
        (lambda s: s.add("a", "a.fmu", [1]), "add: start_values=[1], expected a mapping or None."),
        (lambda s: s.share_event("e", "a", 1), "share_event: members=1, expected a text."),
        (lambda s: s.power_bond("b", "x", "y"), "power_bond: first='x', expected a Port."),
    ],
)
def test_so_it_is_by_the_builder_of_systems(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(OptionError) as error:
        call(SystemBuilder())
    assert str(error.value) == message


def test_numbers_of_numpy_and_fractions_are_numbers_and_lists_are_sequences() -> None:
    assert Predictive(near=np.float32(0.5)).near == 0.5
    assert Waveform(Jacobi(LINEAR), np.int64(3)).sweeps == 3
    assert FixedStep(Fraction(1, 3)).size == Fraction(1, 3)
    residual: Any = [PowerResidual()]
    assert PID(0.1, estimators=residual).estimators == residual


def test_classes_of_users_with_their_own_arguments_are_not_checked() -> None:
    class Own(Predictive):
        def __init__(self, near: str) -> None:
            super().__init__(near=float(near))

    assert Own("0.5").near == 0.5


def test_dataclasses_of_users_are_checked_too() -> None:
    @dataclass(frozen=True)
    class Own(Predictive):
        more: int = 1

    made: Any = Own
    with pytest.raises(OptionError, match=r"^Own: more='2', expected a whole number\.$"):
        made(more="2")


@pytest.mark.parametrize("target", [3, io.BytesIO(), [], ("a.csv",)])
def test_what_is_neither_a_path_nor_a_text_stream_gets_no_rows(target: Any) -> None:
    with pytest.raises(OptionError, match="expected a path or a text stream"):
        Simulation(DAHLQUIST, stop_time=1, step_size=0.5).run(output_file=target)


def test_a_temporary_file_is_a_text_stream() -> None:
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as stream, row_writer(stream):
        pass


@pytest.mark.parametrize("name", [f.name for f in fields(Settings) if f.name != "system"])
def test_no_setting_takes_any_object(name: str) -> None:
    given: dict[str, Any] = {name: object()}
    with pytest.raises(OptionError, match="object"):
        Simulation(DAHLQUIST, **given).run()
