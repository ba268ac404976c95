"""What a command imports: no more than it uses, since importing is most of the time of a short command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from fmimaster import reference_path

_SLOW = {
    "fmpy",
    "importlib.metadata",
    "lxml",
    "matplotlib",
    "numpy",
    "numpy.ma",
    "pandas",
    "pygraphviz",
    "rich",
    "scipy",
}
"""Packages that take 20 ms and more to import."""

_SELDOM = {
    f"fmimaster.{module}"
    for module in (
        "algorithms.refreshed",
        "algorithms.replay",
        "algorithms.richardson",
        "algorithms.own_steps",
        "algorithms.sequential",
        "algorithms.step_loops",
        "algorithms.waveform",
        "algorithms.wrapper",
        "steps.prediction_errors",
        "steps.doubling_errors",
        "events.look_ahead",
        "steps.multi_rate",
        "steps.pid",
        "events.predictive",
        "program.delays",
        "program.listing",
    )
}
"""What a setting must ask for, or a loop of the system."""

_NOT_OF_AN_FMU = {
    f"fmimaster.{module}"
    for module in (
        "algorithms.differences",
        "algorithms.modes",
        "cards.card",
        "events.indicator_courses",
        "configure.input_signals",
        "fmu.journaled",
        "fmu.computed",
        "loops.anderson",
        "loops.discrete",
        "loops.hook",
        "loops.newton",
        "loops.search",
        "plan.tearing",
        "prepare.attached_input",
        "results.comparison",
        "results.panels",
        "sequences.exact",
        "session.checkpoints",
        "session.fmu_states",
        "session.stepwise",
        "steps.locate",
        "steps.ramp",
        "system.osp",
        "system.ssp",
    )
}
"""What the simulation of a single FMU with all defaults does not need."""

_MOST_MODULES = 226 if sys.platform == "win32" else 225
"""Modules of fmimaster that such a simulation may import; each takes about 0.5 ms of CPU time."""

_SCRIPT = """
import json, sys
from fmimaster.commands.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.stdout.flush()
print(json.dumps(sorted(sys.modules)))
"""


def imported(*arguments: str) -> set[str]:
    """Modules that a command imports, with the arguments of the command line."""
    run = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


def slow(modules: set[str]) -> set[str]:
    """The slow packages among modules."""
    return _SLOW & modules


def parts(modules: set[str]) -> set[str]:
    """The folders of fmimaster among modules."""
    return {name.split(".")[1] for name in modules if name.count(".") > 1 and name.startswith("fm")}


def test_what_must_not_be_imported_exists() -> None:
    assert [name for name in sorted(_SELDOM | _NOT_OF_AN_FMU) if find_spec(name) is None] == []


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_version_and_help_import_no_package_and_no_command(arguments: list[str]) -> None:
    modules = imported(*arguments)
    assert slow(modules) == set()
    assert parts(modules) == {"base", "commands"}
    assert {name for name in modules if name.startswith("fmimaster.commands.")} == {
        "fmimaster.commands.cli",
        "fmimaster.commands.parser",
        "fmimaster.commands.text",
    }


@pytest.mark.parametrize("given", [{}, {"OPENBLAS_THREAD_TIMEOUT": "20"}])
def test_threads_of_numpy_do_not_wait_busily_for_work(given: dict[str, str]) -> None:
    script = """
import os, sys
from fmimaster.__main__ import main
assert "numpy" not in sys.modules
sys.argv[1:] = []
main()
print(os.environ["OPENBLAS_THREAD_TIMEOUT"])
"""
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"} | given
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.splitlines()[-1] == given.get("OPENBLAS_THREAD_TIMEOUT", "4")


def test_help_of_simulate_imports_options_and_no_simulation() -> None:
    modules = imported("simulate", "--help")
    assert slow(modules) == set()
    assert parts(modules) == {"base", "commands", "configure", "results"}
    assert {name for name in modules if name.startswith("fmimaster.results.")} == {
        "fmimaster.results.formats"
    }


def test_info_imports_what_reads_an_fmu() -> None:
    modules = imported("info", str(reference_path("fmi2/Dahlquist.fmu")))
    assert slow(modules) == {"lxml", "numpy"}
    assert parts(modules) == {
        "apart",
        "base",
        "commands",
        "fmu",
        "pages",
        "system",
    }


def test_simulate_imports_neither_scipy_nor_what_other_commands_do() -> None:
    system = str(reference_path("systems/survey-two-mass-fmi2.ssp"))
    modules = imported("simulate", system, "--stop-time", "0.1", "--step-size", "0.01")
    assert slow(modules) == {"fmpy", "lxml", "numpy"}
    assert not parts(modules) & {"studies"}
    assert modules & _SELDOM == set()


def test_the_simulation_of_an_fmu_imports_what_it_uses() -> None:
    modules = imported("simulate", str(reference_path("fmi2/Dahlquist.fmu")))
    assert modules & (_SELDOM | _NOT_OF_AN_FMU) == set()
    assert len([name for name in modules if name.startswith("fmimaster")]) <= _MOST_MODULES


def test_what_a_setting_asks_for_is_imported() -> None:
    system = str(reference_path("systems/survey-two-mass-fmi2.ssp"))
    run = ("simulate", system, "--stop-time", "0.1", "--step-size", "0.01")
    modules = imported(*run, "--algorithm", "automatic-sequence", "--step-rule", "ramp")
    assert modules & _SELDOM >= {"fmimaster.algorithms.sequential"}
    modules = imported(*run, "--step-rule", "ecco")
    assert modules & _SELDOM >= {"fmimaster.steps.pid"}
