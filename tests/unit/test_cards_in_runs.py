"""Runs that use FMU cards: what a card refutes is not relied on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from edited_fmu import edited_fmu

import fmimaster
from fmimaster import OptionError, Simulation, SystemBuilder, reference_path
from fmimaster.cards import FmuCard
from fmimaster.cards.card import keep_card
from fmimaster.cards.measured import Repetition, ReplayedStep, Tried
from fmimaster.loops.unknowns import precision
from fmimaster.prepare.prepared import Prepared

FUNCTION = reference_path("fmi3/LoopFunction.fmu")


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An FMU that declares no dependencies of its output at all."""
    folder = tmp_path_factory.mktemp("silent")
    nothing = {"dependencies": None, "dependenciesKind": None}
    return edited_fmu(FUNCTION, folder / "silent.fmu", unknowns={"y": nothing})


@pytest.fixture(scope="module")
def card(silent: Path) -> FmuCard:
    """Its card."""
    return fmimaster.probe(silent, use_cache=False)


def prepared(fmu: Path, cards: FmuCard | str | Sequence[FmuCard | str] | None) -> Prepared:
    """Two of these FMUs, each fed by the other one."""
    system = SystemBuilder("loop")
    for name in ("one", "two"):
        system.add(name, fmu)
    system.connect("one.y", "two.u")
    system.connect("two.y", "one.u")
    return Simulation(system, stop_time=1, step_size=0.1, cards=cards).prepare()


def test_dependencies_that_are_not_declared_are_those_that_were_seen(
    silent: Path, card: FmuCard
) -> None:
    without, used = prepared(silent, None), prepared(silent, card)
    [before, _], [model, _] = ([i.model for i in p.plan.instances] for p in (without, used))
    assert before.assumed_dependencies == {"y"}
    assert model.assumed_dependencies == frozenset()
    assert before.dependencies["y"] == {"u", "q", "set", "reset"}
    assert model.dependencies["y"] == {"u"}
    assert not without.plan.step_groups
    assert len(used.plan.step_groups) == 1
    assert any("One measured point cannot prove" in w for w in used.warnings)


def test_a_kept_card_is_used_unasked_where_an_fmu_declares_no_dependencies(
    silent: Path, card: FmuCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing has to be measured at the start. That of another FMU, by its hash, is not used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_card(replace(card, sha256="0" * 64), None)
    stale = prepared(silent, None)
    assert stale.programs.reactions
    assert not any("kept card" in note for note in stale.notes)
    keep_card(card, None)
    used = prepared(silent, None)
    assert not used.programs.reactions
    assert len(used.plan.step_groups) == 1
    assert sum("by its kept card (fmimaster probe): 'y' on 'u'" in n for n in used.notes) == 2


def test_a_loop_that_only_exists_by_assumption_is_not_there(silent: Path, card: FmuCard) -> None:
    assert card.feedthrough is not None
    nothing = replace(card.feedthrough, at_start={}, in_step_mode={})
    used = prepared(silent, replace(card, feedthrough=nothing))
    assert used.plan.instances[0].model.dependencies["y"] == frozenset()


def with_noise(card: FmuCard, noise: float) -> FmuCard:
    """The card of an FMU that does not repeat a step exactly."""
    again = Repetition(steps=20, moved=1, differences={"y": noise})
    return replace(card, replay=ReplayedStep(again=again, save_seconds=1e-6, restore_seconds=1e-6))


def test_the_noise_of_repeated_steps_is_the_precision_of_loops(silent: Path, card: FmuCard) -> None:
    used = prepared(silent, with_noise(card, 1e-6))
    nodes = [(0, "y"), (1, "y")]
    assert precision(used.plan, nodes, replayed=True) == 1e-6
    assert precision(used.plan, nodes) == sys.float_info.epsilon
    assert any("repeated steps differ by 1e-06" in note for note in used.notes)


def test_steps_that_cannot_be_repeated_are_not_repeated(silent: Path, card: FmuCard) -> None:
    used = prepared(silent, with_noise(card, 0.1))
    assert not used.plan.instances[0].model.capabilities.can_get_and_set_fmu_state
    assert any("canGetAndSetFMUState, but steps after a restore differ" in w for w in used.warnings)


def test_a_capability_that_failed_is_not_used(silent: Path, card: FmuCard) -> None:
    failed = replace(card, varying_steps=Tried(refused="the step was refused"))
    used = prepared(silent, failed)
    can = used.plan.instances[0].model.capabilities
    assert not can.can_handle_variable_communication_step_size
    assert any("but the step was refused" in w for w in used.warnings)


@pytest.mark.in_this_process("the card decides which FMUs are isolated")
def test_an_fmu_that_has_ended_its_process_gets_one_of_its_own(silent: Path, card: FmuCard) -> None:
    lost = replace(card, not_measured={"tiny_steps": "the process was ended by SIGSEGV"})
    used = prepared(silent, lost)
    assert set(used.isolated) == {"one", "two"}
    assert "by its card, the process was ended by SIGSEGV" in used.isolated["one"].note
    assert any("process of its own" in note for note in used.notes)
    unused = replace(card, not_measured={"reset": "the process was ended by SIGSEGV"})
    assert not prepared(silent, unused).isolated


@pytest.mark.in_this_process("the card decides which FMUs are isolated")
def test_instances_that_disturb_each_other_get_processes_of_their_own(
    silent: Path, card: FmuCard
) -> None:
    assert card.two_instances is not None
    other = Repetition(steps=20, moved=1, differences={"y": 0.1})
    disturbed = replace(card, two_instances=replace(card.two_instances, beside=other))
    assert set(prepared(silent, disturbed).isolated) == {"one", "two"}
    alone = Simulation(silent, stop_time=1, cards=disturbed).prepare()
    assert not alone.isolated


def test_a_run_without_isolation_warns_if_a_card_recommends_it(silent: Path, card: FmuCard) -> None:
    lost = replace(card, not_measured={"tiny_steps": "the process was ended by SIGSEGV"})
    refused = Simulation(silent, stop_time=1, cards=lost, isolate=False).prepare()
    assert not refused.isolated
    assert any("has no process of its own, although" in w for w in refused.warnings)


def test_a_card_of_another_fmu_is_refused(card: FmuCard, tmp_path: Path) -> None:
    card.write(tmp_path / "card.json")
    for given in (card, str(tmp_path / "card.json")):
        with pytest.raises(OptionError, match=r"belongs to 'silent.fmu'.* no FMU of this system"):
            prepared(FUNCTION, given)


def test_kept_cards_are_used_by_the_hashes_of_the_fmus(
    silent: Path, card: FmuCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert prepared(silent, "cached").cards.warnings == ()
    keep_card(card, None)
    [warning] = prepared(silent, "cached").cards.warnings
    assert warning.startswith("'one', 'two', by their card: ")
    assert prepared(FUNCTION, "cached").cards.warnings == ()


@pytest.mark.parametrize("given", [3, [3], {"a": 1}])
def test_what_is_no_card_is_refused(silent: Path, given: object) -> None:
    with pytest.raises(OptionError, match=r"cards: .* expected cards, their files"):
        prepared(silent, given)  # type: ignore[arg-type]


def test_a_note_says_that_a_card_changes_nothing(silent: Path, card: FmuCard) -> None:
    used = prepared(silent, replace(card, feedthrough=None))
    expected = "'one', 'two', by their card: nothing in this run has to be different."
    assert expected in used.notes


def test_a_note_says_that_there_is_no_kept_card() -> None:
    notes = Simulation(FUNCTION, cards="cached", stop_time=1).prepare().notes
    assert any("no kept card of 'LoopFunction'" in note for note in notes)
