"""Which solver a Model Exchange FMU gets, by names and globs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fmimaster import OptionError, PythonComponent
from fmimaster.fmu import Cvode
from fmimaster.fmu.model_exchange.integrator import chosen_solvers
from fmimaster.system.declarations import Interface

CO_SIMULATION = PythonComponent(outputs={"y": 0.0}, step=lambda *_: None).model()
BOTH = replace(CO_SIMULATION, interfaces=(Interface.CO_SIMULATION, Interface.MODEL_EXCHANGE))
EXCHANGED = replace(BOTH, interface=Interface.MODEL_EXCHANGE)
MODELS = {"tank1": EXCHANGED, "tank2": EXCHANGED, "pump": CO_SIMULATION, "valve": BOTH}
CLOSE, USUAL = Cvode(relative=1e-8), Cvode()


@pytest.mark.parametrize(
    ("setting", "chosen"),
    [
        (None, {}),
        (CLOSE, {"tank1": CLOSE, "tank2": CLOSE}),
        ({"tank2": CLOSE}, {"tank2": CLOSE}),
        ({"*": USUAL, "tank2": CLOSE}, {"tank1": USUAL, "tank2": CLOSE}),
        ({"*": USUAL, "*2": CLOSE}, {"tank1": USUAL, "tank2": CLOSE}),
        ({"t*": CLOSE, "*1": CLOSE}, {"tank1": CLOSE, "tank2": CLOSE}),
    ],
    ids=str,
)
def test_a_name_comes_before_a_glob_and_any_glob_before_the_one_for_all(
    setting: Any, chosen: Any
) -> None:
    assert chosen_solvers(setting, MODELS) == chosen


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"tank3": USUAL}, "'tank3' fits no component. Did you mean 'tank"),
        ({"pump": USUAL}, "'pump' is used for Co-Simulation, and has its own solver.*Leave it out"),
        ({"valve": USUAL}, "Choose its Model Exchange interface"),
        ({"t*": USUAL, "*1": CLOSE}, r"'t\*' and '\*1' both fit 'tank1'"),
    ],
    ids=str,
)
def test_what_has_no_effect_or_no_meaning_is_refused(setting: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        chosen_solvers(setting, MODELS)


def test_a_solver_without_any_model_exchange_fmu_is_refused() -> None:
    with pytest.raises(OptionError, match="'pump' is used for Co-Simulation"):
        chosen_solvers(USUAL, {"pump": CO_SIMULATION})
