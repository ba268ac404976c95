"""The checker for FMUs of the kit: reference FMUs pass, and what is wrong in changed copies is named by its requirement.

A changed copy is compiled with all of its mutations; the environment variable FM_MUTANT selects one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fmu_checking import DESCRIPTION, KIT, MANIFEST, broken, changed, check, refused, replaced
from hybrid_system import Event, HybridSystem, Mode, Signal, Transition
from hybrid_writer import Variant, write_fmu

ROOT = Path(__file__).parents[2]
EXPERIMENTS = KIT / "experiments"


def experiment(model: str) -> tuple[str, ...]:
    path = EXPERIMENTS / f"{model}.json"
    return ("--experiment", str(path)) if path.exists() else ()


# Reference FMUs -------------------------------------------------------------------------------------------------------

TRIGGERED = {"F2", "F5", "F9", "F10", "F12", "F15", "F17", "F18", "M10", "M14"}
CHECKED = {
    ("BouncingBall", "fmi2"): TRIGGERED | {"F1", "F8", "M6"},
    ("BouncingBall", "fmi3"): TRIGGERED - {"F12", "M10"},
    ("TwoMassUpper", "fmi2"): TRIGGERED | {"F8", "F13", "F16", "M8", "M16"},
    ("TwoMassLower", "fmi3"): (TRIGGERED | {"F13", "F16", "M8"}) - {"F12", "M10"},
    ("CradleBall", "fmi2"): (TRIGGERED | {"F8", "F16"}) - {"F2", "M14"},
    ("RopeMass", "fmi3"): TRIGGERED - {"F2", "F12", "M10", "M14"},
    ("HybridLinear", "fmi2"): TRIGGERED | {"F8", "F16", "F19"},
    ("HybridLinear", "fmi3"): (TRIGGERED | {"F16", "F19"}) - {"F12", "M10"},
    ("FillingTank", "fmi3"): {"F2", "F9", "F10", "F18"},
    ("ThermostatRoom", "fmi3"): {"F1", "F4", "F18", "M14"},
}
"""Model and version → requirements that must have been checked, and not left out."""


@pytest.mark.parametrize(("model", "version"), CHECKED)
def test_a_reference_fmu_breaks_nothing(
    main: Any, reference: Path, model: str, version: str
) -> None:
    fmu = reference / version / f"{model}.fmu"
    status, text = check(main, fmu, *experiment(model))
    assert (status, broken(text)) == (0, set()), text
    passed = set(re.findall(r"^pass  (\w+)", text, re.MULTILINE))
    assert CHECKED[model, version] <= passed


OTHER_STARTS = {
    "TwoMassLower": {"x": -10.5, "v": -3.6, "f0": -8.5},
    "CradleBall": {
        "v": 1.1577374674549792,
        "left.m": 1.7843176698151317,
        "right.m": 3.45,
        "e": 0.5,
    },
}


@pytest.mark.parametrize("model", OTHER_STARTS)
def test_other_starts_break_nothing(main: Any, reference: Path, model: str, tmp_path: Path) -> None:
    """A mass that starts below its floor, and copies of shared events that do not know what payloads know; balls that
    stay on each other at the end, with a gap that rounding moves."""
    given = json.loads((EXPERIMENTS / f"{model}.json").read_text(encoding="utf-8"))
    given["set"] |= OTHER_STARTS[model]
    (tmp_path / "experiment.json").write_text(json.dumps(given), encoding="utf-8")
    fmu = reference / "fmi2" / f"{model}.fmu"
    status, text = check(main, fmu, "--experiment", str(tmp_path / "experiment.json"))
    assert (status, broken(text)) == (0, set()), text


def test_an_event_that_is_not_reached_is_told(main: Any, reference: Path) -> None:
    status, text = check(main, reference / "fmi2" / "BouncingBall.fmu", "--stop", "0.3")
    assert status == 2
    assert "????  event 'bounce' does not occur up to 0.3 s. Bring the FMU there by --set" in text


def test_the_checker_runs_as_a_program(reference: Path) -> None:
    fmu = reference / "fmi3" / "BouncingBall.fmu"
    command = [
        sys.executable,
        str(KIT / "check_fmu.py"),
        str(fmu),
        "--set",
        "h=0.2",
        "v=0",
        "--stop",
        "0.5",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "pass  F9\n" in done.stdout


def test_the_kit_lists_the_files_that_the_checker_needs(main: Any) -> None:
    files = (Path(str(getattr(module, "__file__", ""))) for module in sys.modules.values())
    needed = {f"`{file.name}`" for file in files if file.parent == KIT} - {"`check_fmu.py`"}
    text = (KIT / "index.md").read_text(encoding="utf-8")
    [row] = [line for line in text.splitlines() if line.startswith("| of `check_fmu.py` |")]
    assert needed | {"`schema/`"} == set(re.findall(r"`[^`]+`", row.split("|")[2]))


def test_a_name_that_the_fmu_does_not_have_is_told(main: Any, reference: Path) -> None:
    fmu = reference / "fmi3" / "BouncingBall.fmu"
    assert "the FMU has no variable 'height'" in refused(main, fmu, "--set", "height=1")


WRONG_EXPERIMENTS = {
    "speed": ('{"stop": 1, "speed": 2}', "the experiment has the key 'speed'. Known are stop, step, set"),
    "event": ('{"jump": {"event": "bump", "at": 1, "set": {}}}', "the FMU has no event 'bump', only bounce"),
    "at": ('{"jump": {"event": "bounce", "set": {}}}', "'jump' has the keys event, set, expected event, at, set"),
    "late": ('{"stop": 1, "jump": {"event": "bounce", "at": 2, "set": {}}}', "'jump' is at 2 s, not before stop = 1 s"),
    "json": ("{stop: 1}", "Expecting property name"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_EXPERIMENTS)
def test_a_wrong_experiment_is_told(main: Any, reference: Path, name: str, tmp_path: Path) -> None:
    text, told = WRONG_EXPERIMENTS[name]
    (tmp_path / "experiment.json").write_text(text, encoding="utf-8")
    fmu = reference / "fmi3" / "BouncingBall.fmu"
    assert told in refused(main, fmu, "--experiment", str(tmp_path / "experiment.json"))


# Files that are wrong -------------------------------------------------------------------------------------------------

WRONG_FILES = {
    "unknown attribute": ("BouncingBall", MANIFEST, replaced('scope="', 'sort="x" scope="'), "M1"),
    "version": ("BouncingBall", MANIFEST, replaced('fmi-ls-version="0.3.0"', 'fmi-ls-version="0.3"'), "M1"),
    "name": ("BouncingBall", MANIFEST, replaced('fmi-ls-name="org.fmimaster.fmi-ls-events"', 'fmi-ls-name="org.x"'), "M1"),
    "no such variable": ("BouncingBall", MANIFEST, replaced(r"bounce\.dz\[1\]", "bounce.dx"), "M3"),
    "input as indicator": ("CradleBall", MANIFEST, replaced(r"left\.dz\[1\]", "left.x"), "M3"),
    "policy": ("BouncingBall", MANIFEST, replaced('execute="0" announce="1"', 'execute="1" announce="0"'), "M11"),
    "scope": ("ThermostatRoom", MANIFEST, replaced("coupled", "private"), "M14"),
    "payload": ("CradleBall", MANIFEST, replaced('name="left" scope="shared"', 'name="left" scope="coupled"'), "M8"),
    "local": ("BouncingBall", MANIFEST, lambda text: re.sub(
        r'"private"', '"coupled"', text).replace("bounce.z[1]", "bounce.indicator"), "M14"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_files_are_named_without_a_simulation(
    main: Any, reference: Path, name: str, tmp_path: Path
) -> None:
    model, member, change, requirement = WRONG_FILES[name]
    source = reference / "fmi2" / f"{model}.fmu"
    status, text = check(main, changed(source, tmp_path / "a.fmu", member, change))
    assert status == 1
    assert requirement in broken(text)


@pytest.mark.parametrize(
    ("model", "known"), [("BouncingBall", "bounce.in"), ("CradleBall", "left.w")]
)
def test_outputs_without_trigger_or_payload_as_dependency_are_found(
    main: Any, reference: Path, model: str, known: str, tmp_path: Path
) -> None:
    """M10: of one output only, which no look at the files can find."""
    source = reference / "fmi2" / f"{model}.fmu"

    def change(text: str) -> str:
        names = re.findall(r'<ScalarVariable name="([^"]+)"', text)
        v, given = names.index("v") + 1, names.index(known) + 1
        pattern = (
            rf'(<Unknown index="{v}" dependencies="[^"]*?) {given}\b([^"]*" dependenciesKind=")\w+ '
        )
        return re.sub(pattern, r"\1\2", text)

    fmu = changed(source, tmp_path / "a.fmu", DESCRIPTION, change)
    status, text = check(main, fmu, *experiment(model))
    assert (status, broken(text)) == (1, {"M10"}), text
    assert f"v change when '{known}' is set, but ModelStructure does not list this" in text


def test_inputs_on_which_a_shared_event_depends_are_listed(
    main: Any, reference: Path, tmp_path: Path
) -> None:
    """F17: FMI says so of all outputs; an importer needs it for S6 and I12."""
    source = reference / "fmi2" / "CradleBall.fmu"
    change = replaced(
        '"2 5 6 7 8 9 10" dependenciesKind="tunable ', '"5 6 7 8 9 10" dependenciesKind="'
    )
    fmu = changed(source, tmp_path / "a.fmu", DESCRIPTION, change)
    status, text = check(main, fmu, *experiment("CradleBall"))
    assert (status, broken(text)) == (1, {"F17"}), text
    assert "left.z[1] depends directly on 'left.x', but ModelStructure does not list it" in text


# FMUs that do what they must not --------------------------------------------------------------------------------------

SHARED = [
    ("interface/model.h", "#include <stdint.h>", "#include <stdint.h>\n#include <stdlib.h>\n"
     'static inline int mutant(void) { const char *n = getenv("FM_MUTANT"); return n ? atoi(n) : 0; }'),
    ("interface/event_solver.h", "    set_motion(v, m);\n    calculate_outputs(v, *h);",
     "    if (mutant() == 2) calculate_outputs(v, 0.0);\n    set_motion(v, m);\n"
     "    if (mutant() != 2) calculate_outputs(v, *h);"),
    ("interface/event_solver.h", "if (trigger(v, event)->count == of_event->shown) continue;",
     "if (trigger(v, event)->count == of_event->shown || mutant() == 4) continue;\n"
     "            if (mutant() == 9 && is_shown(v, event)) { of_event->shown = trigger(v, event)->count; continue; }"),
    ("interface/event_solver.h", "    if (trigger(v, event) && trigger(v, event)->active) return true;\n",
     "    if (mutant() == 9 && memory->done) return false;\n"
     "    if (trigger(v, event) && trigger(v, event)->active) return mutant() != 4;\n"),
    ("interface/event_solver.h", "    fm_Status status = solve(",
     "    if (mutant() == 5) looks = true, stops = false;\n"
     "    if (mutant() == 13) looks = stops = false;\n    fm_Status status = solve("),
    ("interface/event_solver.h", "            set_motion(v, reset(v, event, 0.0, m, payload));",
     "            set_motion(v, reset(v, event, 0.0, m, payload));\n"
     "            if (mutant() == 8) set_motion(v, reset(v, event, 0.0, get_motion(v), payload));"),
    ("interface/event_solver.h", "            m = execute(self, v, event, 0.0, m, payload);",
     "            m = execute(self, v, event, 0.0, m, payload);\n"
     "            if (mutant() == 8 && active) m = execute(self, v, event, 0.0, m, payload);"),
    ("interface/event_solver.h", "if (located[event] && announcement(v, event)) fm_count(announcement(v, event));",
     "if (located[event] && announcement(v, event)) {\n                fm_count(announcement(v, event));\n"
     "                if (mutant() == 11) fm_count(announcement(v, event));\n            }"),
    ("interface/event_solver.h", "        if (offset) payload", "        if (offset && mutant() != 19) payload"),
    ("interface/event_solver.h", "            else *h = s;",
     "            else *h = s;\n            if (mutant() == 12) *m = reset(v, 0, s, *m, own_payload(v, 0, s));"),
    ("interface/event_solver.h", "    bool looks = v->eventPolicy == EXECUTE || stops;\n",
     "    bool looks = v->eventPolicy == EXECUTE || stops;\n"
     "    if (v->eventPolicy && mutant() == 19 + v->eventPolicy && largest_indicator(v, 0, 0.0, m) <= 0.0) {\n"
     "        memory->event_waits = true;\n        *h = 0.0;\n        return FM_OK;\n    }\n"),
]  # fmt: skip
OF_BALL = [
    ("BouncingBall/model.c", "v->bounce_dz_1 = m.v;", "v->bounce_dz_1 = m.v * (mutant() == 1 ? 1.5 : 1.0);"),
    ("BouncingBall/model.c", "    show_triggered_events(v);\n", "    if (mutant() != 7) show_triggered_events(v);\n"),
    ("BouncingBall/model.c", "v->bounce_z_1 = z.x;",
     "v->bounce_z_1 = z.x + (mutant() == 22 && v->time + s > 0.25 + 1e-10 ? 2.0 : 0.0);"),
    ("BouncingBall/model.c", "v->bounce_z_2 = z.v;", "v->bounce_z_2 = mutant() == 18 && v->h < 0.5 ? NAN : z.v;"),
    ("BouncingBall/model.c", "    double rebound =",
     "    if (mutant() == 14) return (Motion){m.x, 0.9 * m.v};\n    double rebound ="),
    ("interface/instance.c", "    if (variable && follows) fm_refresh(self);",
     "    if (variable && follows) fm_refresh(self);\n    if (mutant() == 15) self->state.variables.h += 1e-9;\n"
     "    if (mutant() == 23) fm_count(&self->state.variables.bounce_out);"),
    ("interface/instance.c", "    memcpy(&self->state, state, sizeof(fm_State));\n    return FM_OK;",
     "    int32_t done = self->state.variables.bounce_in.done, shown = self->state.variables.memory.event[0].shown;\n"
     "    memcpy(&self->state, state, sizeof(fm_State));\n"
     "    if (mutant() == 6) {\n        self->state.variables.bounce_in.done = done;\n"
     "        self->state.variables.memory.event[0].shown = shown;\n    }\n    return FM_OK;"),
]  # fmt: skip
OF_CRADLE = [
    ("interface/partner.h", "    p = (Partner){0.0, 0.0, 0.0};",
     "    if (mutant() == 16) s = 0.0;\n    p = (Partner){0.0, 0.0, 0.0};"),
    ("CradleBall/model.c", "    return (Motion){m.x, after_hit(",
     "    bool part = direction(neighbour) * (m.v - payload.value[0]) > 0.0;\n"
     "    if (mutant() == 24 && part) return m;\n    return (Motion){m.x, after_hit("),
]  # fmt: skip
OF_HYBRID = [
    SHARED[0],
    ("HybridLinear/model.c", "    fm_Status status = solve(self, v, h,",
     "    for (int event = 0; mutant() == 25 && v->eventPolicy == EXECUTE && event < EVENTS; event++) {\n"
     "        if (!is_on(v, event)) continue;\n        fm_Status late = solve(self, v, h, false, false);\n"
     "        execute(self, v, event, *h, false);\n        calculate_outputs(v, *h);\n        return late;\n    }\n"
     "    fm_Status status = solve(self, v, h,"),
]  # fmt: skip
MODELS = {
    "BouncingBall": SHARED + OF_BALL,
    "CradleBall": SHARED + OF_CRADLE,
    "HybridLinear": OF_HYBRID,
}


@pytest.fixture(scope="module")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Changed copies of two models, compiled for both versions of FMI."""
    folder = tmp_path_factory.mktemp("mutants")
    builds = []
    for model, changes in MODELS.items():
        sources = folder / model / "fmus"
        shutil.copytree(ROOT / "fmus", sources, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("LICENSE", "pyproject.toml"):
            shutil.copy(ROOT / name, folder / model)
        for name, old, new in changes:
            text = (sources / name).read_text(encoding="utf-8")
            assert old in text, (name, old)
            (sources / name).write_text(text.replace(old, new), encoding="utf-8")
        command = [sys.executable, str(sources / "build.py"), str(folder / "built")]
        command += ["--only", model]
        builds.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    for build in builds:
        _, told = build.communicate()
        assert build.returncode == 0, told
    return folder / "built"


MUTANTS = [
    ("F18", "BouncingBall", "fmi2", 1, "a derivative that is wrong"),
    ("F1", "BouncingBall", "fmi3", 2, "indicators of the start of the step"),
    ("F9", "BouncingBall", "fmi2", 4, "a trigger is not executed"),
    ("F9", "CradleBall", "fmi3", 4, "a trigger is not executed"),
    ("F15", "BouncingBall", "fmi3", 5, "executed without a trigger"),
    ("F15", "CradleBall", "fmi2", 5, "executed without a trigger"),
    ("F8", "BouncingBall", "fmi2", 6, "the count is not in the FMU state"),
    ("F12", "BouncingBall", "fmi2", 7, "right limits only after a step"),
    ("F10", "CradleBall", "fmi2", 8, "executed twice"),
    ("F10", "CradleBall", "fmi3", 8, "executed twice"),
    ("F10", "CradleBall", "fmi2", 9, "a second trigger is refused"),
    ("F10", "CradleBall", "fmi3", 9, "a second trigger is refused"),
    ("F5", "BouncingBall", "fmi2", 11, "counted twice"),
    ("F5", "CradleBall", "fmi3", 12, "no left limits where it stops"),
    ("F17", "BouncingBall", "fmi2", 13, "the default policy ignores the event"),
    ("F2", "BouncingBall", "fmi3", 14, "it is still on"),
    ("F1", "BouncingBall", "fmi2", 15, "reading changes the state"),
    ("F16", "CradleBall", "fmi3", 16, "a polynomial is held"),
    ("M6", "BouncingBall", "fmi3", 18, "an indicator is NaN"),
    ("F9", "CradleBall", "fmi2", 19, "a payload has no effect"),
    ("F5", "BouncingBall", "fmi3", 20, "it announces again and again"),
    ("F15", "BouncingBall", "fmi3", 21, "it stops with the policy ignore"),
    ("M6", "BouncingBall", "fmi2", 22, "an indicator jumps right after a communication point"),
    ("F1", "BouncingBall", "fmi2", 23, "reading an announcement changes it"),
    ("F9", "CradleBall", "fmi2", 24, "a trigger is refused while bodies part"),
    ("F19", "HybridLinear", "fmi2", 25, "executed at the end of the step after a jump"),
]

ALIKE = {
    ("CradleBall", "fmi3", 4),
    ("CradleBall", "fmi2", 5),
    ("CradleBall", "fmi2", 8),
    ("CradleBall", "fmi2", 9),
}
"""As another one, but in the other version."""


@pytest.mark.parametrize(
    ("requirement", "model", "version", "mutant", "what"),
    [pytest.param(*m, marks=pytest.mark.thorough if m[1:4] in ALIKE else ()) for m in MUTANTS],
    ids=str,
)
def test_what_is_wrong_is_named_by_its_requirement(
    main: Any,
    mutants: Path,
    requirement: str,
    model: str,
    version: str,
    mutant: int,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fmu = mutants / version / f"{model}.fmu"
    monkeypatch.setitem(os.environ, "FM_MUTANT", str(mutant))
    status, text = check(main, fmu, *experiment(model))
    assert status == 1, what
    assert requirement in broken(text), text


def without_trigger(text: str) -> str:
    """The FMU of FMI 2.0 has the counter as an input still, on which its indicators depend."""
    text = re.sub(r' (announce|trigger|rightLimitsWithoutStep)="[^"]*"', "", text)
    text = text.replace('"private"', '"coupled"')
    return re.sub(r"<Policy[^>]*/>", "", text)


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_an_event_without_trigger_must_be_executed_by_the_fmu(
    main: Any, mutants: Path, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = mutants / version / "BouncingBall.fmu"
    fmu = changed(source, tmp_path / "a.fmu", MANIFEST, without_trigger)
    status, text = check(main, fmu, "--step", "0.05", "--stop", "1")
    assert (status, broken(text)) == (0, set()), text
    assert "pass  F4\n" in text
    monkeypatch.setitem(os.environ, "FM_MUTANT", "13")
    if version == "fmi2":
        _, text = check(main, fmu, "--step", "0.05", "--stop", "1")
        assert "F4" in broken(text)


def test_a_forecast_that_is_nan_is_named(
    main: Any, mutants: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = mutants / "fmi2" / "BouncingBall.fmu"

    def change(text: str) -> str:
        policy = re.search(r"<Policy[^>]*/>", text)
        assert policy
        return text.replace(policy[0], policy[0] + '<LookAhead next="bounce.z[2]"/>')

    fmu = changed(source, tmp_path / "a.fmu", MANIFEST, change)
    monkeypatch.setitem(os.environ, "FM_MUTANT", "18")
    _, text = check(main, fmu)
    assert "F13" in broken(text)


# Contacts and modes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "inverse_mass", "expected"),
    [
        pytest.param("fmi2", 2.0, (), marks=pytest.mark.thorough),
        ("fmi3", 2.0, ()),
        ("fmi2", 3.0, ("F21",)),
        ("fmi2", -1.0, ("M15",)),
    ],
)
def test_impulses_and_forces_of_a_contact_are_compared(
    main: Any,
    reference: Path,
    version: str,
    inverse_mass: float,
    expected: tuple[str, ...],
    tmp_path: Path,
) -> None:
    """A body of 0.5 kg, which says that its inverse mass is another one, or is right."""
    outputs = {"x": {"x": 1.0}, "v": {"v": 1.0}, "inverse": {"1": inverse_mass}}
    mode = Mode({"x": {"v": 1.0}, "v": {"f": 2.0}}, outputs)
    hit = Transition(({"x": 1.0}, {"v": 1.0}), 0, {"v": {"v": 1.0, "p": 2.0}})
    system = HybridSystem(
        {"x": 1.0, "v": -1.0},
        (mode,),
        {"x": "v", "v": "", "inverse": ""},
        (Signal("p"), Signal("f")),
        (Event("touch", {0: hit}, shared=True, payload=("v", "p")),),
    )
    template = reference / version / "HybridLinear.fmu"
    path = write_fmu(tmp_path / "body.fmu", system, template, Variant(polynomial=False))
    checker = sys.modules["check_fmu"]
    fmu, report = checker.Fmu(path), checker.Report()
    [event] = fmu.events
    contact = {"velocity": "v", "direction": "1", "inverseMass": "inverse", "restitution": "e"}
    event = replace(event, payload=(), contact=contact | {"impulse": "touch.w", "force": "f"})
    checker.Checker(fmu, checker.Experiment(), report).contact(event)
    fmu.close()
    assert report.broken == expected


@pytest.mark.parametrize(
    ("event", "is_right", "holds"),
    [("down", True, False), ("up", False, False), ("up", False, True)],
)
def test_an_event_may_be_off_in_a_mode(
    main: Any, reference: Path, event: str, is_right: bool, holds: bool, tmp_path: Path
) -> None:
    """A relay: y is 1 from u = 1 on, and 0 from u = -1 on. It can go down where `on` is true.

    If it holds its input, the derivatives of its indicators are 0, and only the input moves them.
    """
    system = HybridSystem(
        {},
        (Mode({}, {"y": {}}), Mode({}, {"y": {"1": 1.0}}, on=True)),
        {"y": ""},
        (Signal("u") if holds else Signal("u", "du"),),
        (
            Event("up", {0: Transition(({"1": 1.0, "u": -1.0},), 1)}),
            Event("down", {1: Transition(({"1": 1.0, "u": 1.0},), 0)}),
        ),
    )
    template = reference / "fmi2" / "HybridLinear.fmu"
    path = write_fmu(tmp_path / "relay.fmu", system, template, Variant(polynomial=False))
    active = replaced(f'name="{event}"', f'name="{event}" active="on"')
    fmu = changed(path, tmp_path / "a.fmu", MANIFEST, active)
    given = tmp_path / "experiment.json"
    slope = "" if holds else ', "du": [[0, 1], [1.5, 1], [1.5, -1]]'
    given.write_text(
        f'{{"stop": 4.5, "inputs": {{"u": [[0, 0], [1.5, 1.5], [4.5, -1.5]]{slope}}}}}',
        encoding="utf-8",
    )
    status, text = check(main, fmu, "--experiment", str(given))
    assert (status, broken(text)) == ((0, set()) if is_right else (1, {"F20"})), text
    told = (
        "pass  F20"
        if is_right
        else "FAIL  F20  event 'up': 'on' is false where its indicators reach 0"
    )
    assert f"\n{told}" in text


def test_the_policy_ignore_may_be_missing(main: Any, reference: Path, tmp_path: Path) -> None:
    """FMI 2.0: what the FMU has announced is forgotten with the state that is set after `fmi2Discard`."""
    source = reference / "fmi2" / "HybridLinear.fmu"
    fmu = changed(source, tmp_path / "a.fmu", MANIFEST, replaced(' ignore="2"', ""))
    status, text = check(main, fmu, *experiment("HybridLinear"))
    assert (status, broken(text)) == (0, set()), text
    assert "pass  F19\n" in text


def test_an_input_may_make_an_event_occur_before_it_is_looked_for(
    main: Any, reference: Path, tmp_path: Path
) -> None:
    """The FMU holds its input, which moves: a little before the event it is on already. That is no failure of F9."""
    up = Transition(({"1": 1.0, "u": -1.0},), 1)
    modes = (Mode({}, {"y": {}}), Mode({}, {"y": {"1": 1.0}}, on=True))
    system = HybridSystem({}, modes, {"y": ""}, (Signal("u"),), (Event("up", {0: up}),))
    template = reference / "fmi2" / "HybridLinear.fmu"
    path = write_fmu(tmp_path / "relay.fmu", system, template, Variant(polynomial=False))
    given = tmp_path / "experiment.json"
    given.write_text(
        '{"stop": 1, "inputs": {"u": [[0, 0], [0.4242, 1], [1, 2]]}}', encoding="utf-8"
    )
    status, text = check(main, path, "--experiment", str(given))
    assert (status, broken(text)) == (0, set()), text
    assert "pass  F9\n" in text
