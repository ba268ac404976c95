"""FMU cards: what an FMU really does, measured in processes of their own."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import changed
from misbehaving_fmu import Act, misbehaving
from processes import ABORT

import fmimaster
from fmimaster import FileError, OptionError, reference_path
from fmimaster.cards import FmuCard
from fmimaster.cards.card import (
    FORBIDDEN,
    NO_RUN,
    NOT_DECLARED,
    NOTHING_THERE,
    cached_card,
    keep_card,
)
from fmimaster.cards.findings import Weight, differences
from fmimaster.cards.measured import Repetition, ReplayedStep
from fmimaster.studies.probing import answers
from fmimaster.studies.probing.excitation import Use
from fmimaster.studies.probing.page import card_page
from fmimaster.studies.probing.subject import Subject
from fmimaster.system.model import Source

BALL = reference_path("fmi3/BouncingBall.fmu")


@pytest.fixture(scope="module")
def ball() -> FmuCard:
    """The card of an FMU without faults."""
    return fmimaster.probe(BALL)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> FmuCard:
    """The card of an FMU that ends the process when its state is saved, hangs in a reset, prints, and so on."""
    path = misbehaving(
        tmp_path_factory.mktemp("faulty"),
        "fmi2",
        Act("GetState", "exit", 3),
        Act("Reset", "hang"),
        Act("EnterInitializationMode", "print", "hello"),
        Act("EnterInitializationMode", "umask", "000"),
        canGetAndSetFMUstate="true",
    )
    return fmimaster.probe(path, use_cache=False, deadline=8.0)


def test_an_fmu_without_faults_has_no_differences(ball: FmuCard) -> None:
    assert differences(ball) == ()
    assert ball.not_measured == {"feedthrough": NOTHING_THERE}


def test_repetitions_of_a_reference_fmu_are_exact(ball: FmuCard) -> None:
    assert ball.replay is not None
    assert ball.serialization is not None
    assert ball.two_instances is not None
    found = [
        *(ball.two_processes, ball.replay.again, ball.serialization.again, ball.reset),
        *(ball.two_instances.beside, ball.read_at_end, ball.read_before),
    ]
    assert [r.differences for r in found if r is not None] == [{}] * 7
    assert {r.moved for r in found if r is not None} == {5}


def test_an_early_return_happens_only_if_it_is_allowed(ball: FmuCard) -> None:
    assert ball.early_return is not None
    assert ball.early_return.allowed > 0
    assert ball.early_return.forbidden == 0


def test_a_measurement_that_ends_the_process_or_hangs_is_a_fault(faulty: FmuCard) -> None:
    assert dict(faulty.failures) == {
        "replay": f"the process ended with exit status 3{ABORT}",
        "reset": "the process did not end within 8 s",
    }
    faults = [d.measurement for d in differences(faulty) if d.weight is Weight.FAULT]
    assert sorted(faults) == ["replay", "reset"]


def test_the_other_measurements_go_on_after_a_fault(faulty: FmuCard) -> None:
    assert faulty.not_measured["serialization"] == NOT_DECLARED
    assert faulty.two_processes is not None
    assert faulty.varying_steps is not None
    assert faulty.leak is not None


def test_settings_of_the_process_that_an_fmu_changes_and_its_output_are_on_the_card(
    faulty: FmuCard,
) -> None:
    assert faulty.stepping is not None
    changes = ("the file mode mask (umask) to 000",)
    assert faulty.stepping.changes == (() if sys.platform == "win32" else changes)  # it is 0 there
    assert "hello" in faulty.printed["stepping"]


def test_the_page_begins_with_the_differences_and_fits_80_columns(
    faulty: FmuCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = card_page(faulty)
    assert max(map(len, lines)) <= 80
    assert lines.index("Faults") < lines.index("What was measured") < lines.index("Cost")


def test_the_page_has_no_clocks_by_intervals_if_the_fmu_has_none(ball: FmuCard) -> None:
    page = " ".join(" ".join(card_page(ball)).split())
    assert "clocks 1 input clock without an interval: not measured" in page


def test_a_card_is_the_same_after_a_file(ball: FmuCard, faulty: FmuCard, tmp_path: Path) -> None:
    for card in (ball, faulty):
        card.write(tmp_path / "card.json")
        assert FmuCard.read(tmp_path / "card.json") == card
    assert [p.name for p in tmp_path.iterdir()] == ["card.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: [], "not an FMU card"),
        (lambda c: {**c, "form": 99}, "of form 99, this version of fmimaster reads form 1."),
        (lambda c: {**c, "colour": "red"}, "'colour' is not known"),
        (lambda c: {k: v for k, v in c.items() if k != "fmu"}, "'fmu' is missing"),
        (lambda c: {**c, "stepping": {**c["stepping"], "steps": "many"}}, "is a str, not a int"),
        (lambda c: {**c, "leak": 3}, "is a int, not a dict"),
    ],
)
def test_a_damaged_card_is_refused(ball: FmuCard, change: Any, message: str) -> None:
    with pytest.raises(FileError, match=message):
        FmuCard.from_json(change(ball.to_json()), "card.json")


def test_the_output_for_programs_is_a_card_too(ball: FmuCard) -> None:
    assert FmuCard.from_json({**ball.to_json(), "differences": []}, "card.json") == ball


def test_a_file_that_is_no_card_is_refused(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("{not JSON", encoding="utf-8")
    with pytest.raises(FileError, match="is not an FMU card"):
        FmuCard.read(tmp_path / "card.json")
    with pytest.raises(FileError, match="does not exist"):
        FmuCard.read(tmp_path / "missing.json")


def test_a_kept_card_is_used_again(
    ball: FmuCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cached_card(ball.sha256, None) is None
    keep_card(ball, None)
    began: list[str] = []
    assert fmimaster.probe(BALL, progress=began.append) == ball
    assert began == []


def test_a_damaged_kept_card_is_not_used(
    ball: FmuCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_card(ball, None)
    [path] = tmp_path.rglob("*.json")
    path.write_text(path.read_text(encoding="utf-8")[:1000], encoding="utf-8")
    assert cached_card(ball.sha256, None) is None
    path.write_text(json.dumps({**ball.to_json(), "fmimaster": "0.0.1"}), encoding="utf-8")
    assert cached_card(ball.sha256, None) is None


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan")])
def test_a_deadline_of_zero_is_refused(deadline: float) -> None:
    with pytest.raises(OptionError, match=r"deadline: .* greater than 0"):
        fmimaster.probe(BALL, deadline=deadline)


def test_the_clocks_of_a_scheduled_execution_fmu_tick() -> None:
    card = fmimaster.probe(reference_path("fmi3/Partitions.fmu"), use_cache=False)
    assert (card.interface, card.input_clocks) == ("ScheduledExecution", 4)
    assert card.failures == {}
    assert card.stepping is not None
    assert card.stepping.ticks > 100
    page = " ".join(" ".join(card_page(card)).split())
    assert "3 clocks by intervals" in page
    assert "1 input clock without an interval: not measured" in page


def test_clocks_tick_in_a_measurement_as_in_a_run() -> None:
    path = reference_path("fmi3/ClockKinds.fmu")
    with Subject(Use(Source(path), "kinds")) as subject:
        unit = subject.unit()
        found = dict(zip(subject.names(), unit.trace(10).values[-1].tolist(), strict=True))
    run = fmimaster.simulate(path, stop_time=10 * subject.times.size, step_size=subject.times.size)
    assert found == {name: run[name][-1] for name in found}
    assert sum(v > 1 for v in found.values()) >= 4


def test_a_get_after_a_set_without_a_step_may_be_refused_and_then_says_nothing(
    tmp_path: Path,
) -> None:
    path = misbehaving(tmp_path, "fmi3", Act("Get", "refuse_stale"))
    assert answers.feedthrough(Use(Source(path), "strict"), True).in_step_mode is None


def test_what_follows_a_get_after_a_set_without_a_step_is_no_fault(tmp_path: Path) -> None:
    """FMI 2.0.5, 4.2.4; FMI 3.0.2, 4.2.1.2."""
    card = fmimaster.probe(
        misbehaving(tmp_path, "fmi3", Act("Get", "crash_stale")), use_cache=False
    )
    assert card.failures == {}
    assert card.not_measured["read_before"] == FORBIDDEN
    assert card.feedthrough is not None
    assert card.feedthrough.in_step_mode is None
    assert [d for d in differences(card) if d.measurement in ("read_before", "feedthrough")] == []


def test_each_input_is_back_at_its_start_value_when_the_next_one_is_tried() -> None:
    """latch = set or (q and not reset), at q = set = reset = false: set has an effect, and reset alone has none."""
    use = Use(Source(reference_path("fmi3/LoopFunction.fmu")), "function")
    found = answers.feedthrough(use, False)
    assert found.at_start["latch"] == ("q", "set")


def test_other_bytes_of_the_same_state_are_no_difference(ball: FmuCard) -> None:
    assert ball.serialization is not None
    card = replace(ball, serialization=replace(ball.serialization, equal=False))
    assert differences(card) == ()
    assert "not equal after a restore" in " ".join(card_page(card))


def test_a_failure_to_load_is_told_once_and_may_be_mended_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    card = fmimaster.probe(misbehaving(tmp_path, "fmi3", Act("Instantiate", "return", 3)))
    assert list(card.failures) == ["loading"]
    assert card.not_measured["stepping"] == NO_RUN
    assert cached_card(card.sha256, None) is None


def test_results_that_change_by_a_forbidden_get_are_no_fault(ball: FmuCard) -> None:
    assert ball.read_before is not None
    card = replace(ball, read_before=replace(ball.read_before, differences={"h": 0.1}))
    assert differences(card) == ()
    exchanged = replace(card, interface="ModelExchange")  # where it is allowed
    assert [d.measurement for d in differences(exchanged)] == ["read_before"]


def test_a_model_exchange_fmu_without_states_is_not_at_fault_for_what_is_copied(
    tmp_path: Path,
) -> None:
    def edit(text: str) -> str:
        text = text.replace('canGetAndSetFMUState="true"', 'canGetAndSetFMUState="false"')
        return text.replace('canSerializeFMUState="true"', "").replace(
            'stepSize="0.01"', 'stepSize="0.1"'
        )

    path = changed(BALL, tmp_path / "Ball.fmu", description=edit)
    card = fmimaster.probe(path, interface="ModelExchange", use_cache=False)
    assert card.declared["canGetAndSetFMUState"] is False
    assert "it has executed an event" in card.not_measured["replay"]
    assert "replay" not in card.failures
    assert not [d for d in differences(card) if d.measurement in ("replay", "early_return")]
    other = Repetition(steps=1, moved=1, differences={"h": 1.0})
    noisy = ReplayedStep(again=other, save_seconds=0.0, restore_seconds=0.0)
    assert not [d for d in differences(replace(card, replay=noisy)) if d.measurement == "replay"]


def test_inputs_count_as_varied_only_if_some_were(ball: FmuCard) -> None:
    assert ball.stepping is not None
    assert not ball.stepping.varied  # it has no input
    assert "no input varied" in " ".join(card_page(ball))
