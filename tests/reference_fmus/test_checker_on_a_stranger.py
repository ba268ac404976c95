"""The kit's checker on an FMU that was written from the text alone: it passes, and changed copies are named.

ball_on_a_table.c is compiled once with all changes; the environment variable FM_MUTANT selects one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmu_checking import DESCRIPTION, MANIFEST, broken, changed, check, replaced

SOURCE = Path(__file__).parent / "ball_on_a_table.c"
TOKEN = "{ball on a table}"
INPUTS = {"table": [[0, 0.1], [2, 0.3]], "table_v": [[0, 0.1], [2, 0.1]]}
JUMP = {"event": "bounce", "at": 0.2, "set": {"table": 1.0}}
EXPERIMENT = {"stop": 2, "step": 0.01, "set": {"h": 0.8, "v": 0.3}, "inputs": INPUTS, "jump": JUMP}
CHANGES = [
    ('#include "fmi3Functions.h"', '#include "fmi3Functions.h"\n#include <stdlib.h>\n'
     'static int mutant(void) { const char* n = getenv("FM_MUTANT"); return n ? atoi(n) : 0; }'),
    ("/* the reset of the event */", "if ((mutant() == 1 && gap(s) > 1e-2) || (mutant() == 2 && gap_v(s) > 0)) return;"),
    ("if (s->in != s->seen) {", "if (mutant() == 3 ? s->in > s->seen : s->in != s->seen) {"),
    ("    s->seen = s->in;\n    s->armed",
     "    if (mutant() == 9 && on(s)) reset(s);\n    s->seen = mutant() == 4 ? s->in - 1 : s->in;\n    s->armed"),
    ("case GAP: v[k] = gap(s);", "case GAP: v[k] = gap(s) + (mutant() == 6 && gap(s) > .4 ? .05 : 0);\n"
     "            if (mutant() == 7 && gap(s) > .4 && gap(s) < .43) v[k] = NAN;"),
    ("case GAP_A: v[k] = gap_a(s);", "case GAP_A: v[k] = mutant() == 8 ? NAN : gap_a(s);"),
    ("if (s->policy == EXECUTE) reset(s);\n        if (left == 0)",
     "if (mutant() == 15 && left > 1e-6) { move(s, left); reset(s); break; }\n"
     "        if (s->policy == EXECUTE || (mutant() == 10 && !b->early)) reset(s);\n        if (left == 0)"),
    ("s->clock_in || s->in != s->seen", "s->clock_in || (s->in != s->seen && mutant() != 11)"),
    ("    s->out = (int)((", "    if (mutant() != 12) s->out = (int)(("),
    ("s->mode == EVENT && s->clock_out;",
     "s->mode == EVENT && (s->clock_out || mutant() == 13 || (mutant() == 14 && s->was_out));"),
    ("    s->clock_in = s->clock_out = 0;\n    *more", "    s->was_out = s->clock_out;\n"
     "    s->clock_in = s->clock_out = 0;\n    *more"),
    ("    int resting, mode;", "    int resting, mode, was_out;"),
    ("double left = step,", "if (mutant() == 16 && on(s) && s->policy == ANNOUNCE) s->armed = 0;\n"
     "    if (mutant() == 22 && on(s)) s->armed = 0;\n"
     "    if (mutant() == 21 && s->policy == ANNOUNCE) return fmi3Error;\n    double table = s->table, left = step,"),
    ("s->armed = 1;\n    s->t", "s->armed = 1;\n    if (mutant() == 19) s->table = table;\n    s->t"),
    ("(s->pending || on(s))", "(s->pending || (on(s) && mutant() != 17))"),
    ("    s->t = t;\n    if (s->pending", "    s->t = t;\n    if (mutant() == 4) counter(s);\n    if (s->pending"),
    ("{ SELF; memcpy(s, f, sizeof *s);", "{ SELF; if (mutant() != 18) memcpy(s, f, sizeof *s);"),
    ("z.h = 1;", "z.h = 1; if (mutant() == 20) z.policy = 1; if (mutant() == 4) z.in = 7;"),
]  # fmt: skip


def number(name: str, reference: int, text: str, kind: str = "Float64") -> str:
    return f'<{kind} name="{name}" valueReference="{reference}" {text}/>'


def description(with_clocks: bool) -> str:
    calculated = 'causality="output" variability="continuous" initial="calculated"'
    exact = 'causality="output" variability="continuous" initial="exact"'
    given = 'causality="input" variability="continuous" start="0"'
    fixed = 'causality="parameter" variability="fixed"'
    clock = 'variability="discrete" intervalVariability="triggered"'
    signals = (
        number("bounce.in", 9, f'causality="input" {clock}', "Clock")
        + number("bounce.out", 10, f'causality="output" {clock}', "Clock")
        if with_clocks
        else number("bounce.in", 9, 'causality="input" variability="discrete" start="0"', "Int32")
        + number(
            "bounce.out",
            10,
            'causality="output" variability="discrete" initial="calculated"',
            "Int32",
        )
    )
    variables = (
        number("time", 0, 'causality="independent" variability="continuous"')
        + number("h", 1, f'{exact} start="1"')
        + number("v", 2, f'{exact} start="0"')
        + number("table", 3, given)
        + number("table_v", 4, f'{given} derivative="3"')
        + number("g", 5, f'{fixed} start="9.81"')
        + number("e", 6, f'{fixed} start="0.7"')
        + number("v_rest", 7, f'{fixed} start="1e-3"')
        + number("eventPolicy", 8, 'causality="parameter" variability="tunable" start="0"', "Int32")
        + signals
        + number("gap", 11, calculated)
        + number("gap.v", 12, f'{calculated} derivative="11"')
        + number("gap.a", 13, f'{calculated} derivative="12"')
    )
    outputs = {1: "3 9", 2: "4 9", 10: "", 11: "3 9", 12: "4 9", 13: "3 4 9"}
    initial = {10: "", 11: "1 3", 12: "2 4", 13: "1 2 3 4 5"}
    structure = "".join(
        f'<{tag} valueReference="{k}" dependencies="{d}"/>'
        for tag, known in (("Output", outputs), ("InitialUnknown", initial))
        for k, d in known.items()
    )
    return (
        f'<fmiModelDescription fmiVersion="3.0" modelName="Ball" instantiationToken="{TOKEN}">'
        '<CoSimulation modelIdentifier="ball" hasEventMode="true" mightReturnEarlyFromDoStep="true" '
        'canHandleVariableCommunicationStepSize="true" canGetAndSetFMUState="true"/>'
        f"<ModelVariables>{variables}</ModelVariables><ModelStructure>{structure}</ModelStructure>"
        "</fmiModelDescription>"
    )


def manifest(with_clocks: bool) -> str:
    right = "" if with_clocks else ' rightLimitsWithoutStep="true"'
    return (
        '<fmiLayeredStandardManifest xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest" '
        'fmi-ls:fmi-ls-name="org.fmimaster.fmi-ls-events" fmi-ls:fmi-ls-version="0.3.0" '
        'fmi-ls:fmi-ls-description="A ball on a table">'
        f'<Event name="bounce" scope="coupled" announce="bounce.out" trigger="bounce.in"{right}>'
        '<Indicator name="gap" derivative="gap.v"/><Indicator name="gap.v" derivative="gap.a"/></Event>'
        '<Policy parameter="eventPolicy" execute="0" announce="1" ignore="2"/></fmiLayeredStandardManifest>'
    )


@pytest.fixture(scope="module")
def balls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The FMU with a counter and with Clocks, and an experiment for both."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("balls")
    text = SOURCE.read_text(encoding="utf-8")
    for old, new in CHANGES:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "ball.c").write_text(text, encoding="utf-8")
    headers = Path(fmpy.__file__).parent / "c-code"
    command = [compiler, "-O1", "-shared", "-fPIC", f"-I{headers}", f'-DTOKEN="{TOKEN}"']
    command += [str(folder / "ball.c"), "-o", str(folder / "ball.so"), "-lm"]
    subprocess.run(command, check=True)
    for name, with_clocks in (("counter", False), ("clocks", True)):
        with zipfile.ZipFile(folder / f"{name}.fmu", "w") as archive:
            archive.writestr(DESCRIPTION, description(with_clocks))
            archive.writestr(MANIFEST, manifest(with_clocks))
            platform = f"{fmpy.platform_tuple}/ball{fmpy.sharedLibraryExtension}"
            archive.write(folder / "ball.so", f"binaries/{platform}")
    (folder / "experiment.json").write_text(json.dumps(EXPERIMENT), encoding="utf-8")
    return folder


def checked(main: Any, fmu: Path, *options: str) -> tuple[int, str]:
    given = ("--experiment", str(fmu.parent / "experiment.json"), "--stop", "0.6")
    return check(main, fmu, *(options or given))


ALL = {"M6", "M11", "M14", "F1", "F2", "F5", "F9", "F10", "F15", "F17", "F18", "F19"}


@pytest.mark.parametrize(
    ("name", "more"),
    [("counter", {"M10", "F8", "F12"}), ("clocks", set())],
    ids=["counter", "clocks"],
)
def test_a_conforming_fmu_passes_all_checks(
    main: Any, balls: Path, name: str, more: set[str]
) -> None:
    """Its inputs move: an event may be on already a little before it (false failure of F9)."""
    status, text = checked(main, balls / f"{name}.fmu")
    assert (status, broken(text)) == (0, set()), text
    assert set(re.findall(r"^pass  (\w+)\n", text, re.MULTILINE)) >= ALL | more
    assert text.startswith("classes by the manifest: indicators, triggers\n")


def test_an_event_that_is_on_at_the_start_is_triggered_there(main: Any, balls: Path) -> None:
    status, text = checked(main, balls / "counter.fmu", "--set", "h=0", "v=-1", "--stop", "0.1")
    assert (status, broken(text)) == (0, set()), text
    assert {"pass  F9", "pass  F15", "----  F5   nothing to check"} <= set(text.splitlines())


MUTANTS = [
    ("F9", "counter", 1, "a trigger 0.01 s before it is not executed"),
    ("F10", "counter", 2, "a second trigger changes nothing, neither at the same instant nor 0.01 s later"),
    ("F8", "counter", 3, "a counter that changes by -3 does not trigger once"),
    ("F8", "counter", 4, "'bounce.in' seen last does not start with its start value"),
    ("M6", "counter", 6, "'gap' jumps by -0.05 at t = 0.268535"),
    ("M6", "counter", 7, "'gap' is nan at t = 0.26 s. No event is checked"),
    ("M6", "clocks", 8, "'gap.a' is nan at t = 0 s"),
    ("F15", "counter", 10, "policy announce, no early return: it is executed without a trigger"),
    ("F8", "counter", 11, "a counter that is set in Event Mode does not trigger once"),
    ("F5", "counter", 12, "'bounce.out' goes from 0 to 0"),
    ("F5", "clocks", 13, "the Clock 'bounce.out' is active 0.01 s before it"),
    ("F5", "clocks", 14, "the Clock 'bounce.out' is active after fmi3UpdateDiscreteStates"),
    ("F17", "counter", 15, "executed by the FMU inside of a step, h, v, gap, gap.v are not as after a trigger"),
    ("F19", "counter", 16, "policy announce: the FMU does not stop with a step of length zero"),
    ("F19", "clocks", 17, "in Event Mode: it is not executed in fmi3UpdateDiscreteStates"),
    ("F17", "counter", 18, "setting an FMU state does not restore h, v, gap, gap.v"),
    ("F1", "counter", 19, "the FMU itself has executed it before its indicators reach 0"),
    ("M11", "counter", 20, "'eventPolicy' is 1 in a new instance, but execute is 0"),
    ("F17", "counter", 21, "(error) at t = 0 s, step size 0.01 s, policy announce"),
    ("F19", "counter", 22, "is not executed at the start of the next step"),
]  # fmt: skip
LONG = {1, 7, 11, 14, 20, 22}
"""Mutants that are like others."""


@pytest.mark.parametrize(
    ("requirement", "name", "mutant", "told"),
    [pytest.param(*m, marks=pytest.mark.thorough if m[2] in LONG else ()) for m in MUTANTS],
    ids=str,
)
def test_a_fault_is_named_by_its_requirement(
    main: Any, balls: Path, requirement: str, name: str, mutant: int, told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(os.environ, "FM_MUTANT", str(mutant))
    status, text = checked(main, balls / f"{name}.fmu")
    assert status == 1
    [line] = re.findall(rf"^FAIL  {requirement} .*", text, re.MULTILINE)
    assert told in line, text


def test_an_event_that_is_executed_in_initialization_mode_is_found(
    main: Any, balls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "FM_MUTANT", "9")
    _, text = checked(main, balls / "counter.fmu", "--set", "h=0", "v=-1", "--stop", "0.1")
    assert "FAIL  F15  event 'bounce' is on in Initialization Mode, and is executed there" in text


FILES: dict[str, tuple[str, Callable[[str], str], str]] = {
    "input not listed": (DESCRIPTION, replaced('"11" dependencies="3 9"', '"11" dependencies="9"'),
                         "FAIL  M14  event 'bounce': gap depends directly on 'table', but ModelStructure does not list"),
    "two payloads": (MANIFEST, replaced("coupled", "shared", "(?=</Event>)", 2 * '<Payload output="v" input="table"/>'),
                     "Duplicate key-sequence ['table'] in unique identity-constraint 'eachInputHasItsPayload'"),
    "no policy": (MANIFEST, replaced("<Policy[^>]*/>", ""),
                  "up to 0.6 s: without a Policy the FMU executes it itself, and nobody can trigger it"),
    "later version": (MANIFEST, replaced("0.3.0", "0.9.0", "<Indicator ", '<New/><Indicator sort="a" ', ' scope="coupled"',
                                         ' scope="coupled" colour="red"'),
                      "pass  M1; not checked: version 0.9.0 is later than that of this checker"),
    "no early return": (DESCRIPTION, replaced(' mightReturnEarlyFromDoStep="true"', ""),
                        "pass  F5; not checked: with the policy announce the FMU does not stop at event 'bounce'"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_other_files_change_what_is_said(main: Any, balls: Path, name: str, tmp_path: Path) -> None:
    member, change, told = FILES[name]
    shutil.copy(balls / "experiment.json", tmp_path)
    _, text = checked(main, changed(balls / "counter.fmu", tmp_path / "a.fmu", member, change))
    assert told in text, text
