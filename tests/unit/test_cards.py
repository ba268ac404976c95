"""FMU cards: what an FMU really does, measured in processes of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from misbehaving_fmu import Act, misbehaving

import fmimaster
from fmimaster import FileError, FmuCard, OptionError, reference_path
from fmimaster.cards.cache import cached_card, keep
from fmimaster.cards.card import NOT_DECLARED, NOTHING_THERE
from fmimaster.cards.findings import Weight, differences
from fmimaster.cards.page import card_page

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of their own")

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
    return fmimaster.probe(path, use_cache=False, deadline=1.5)


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
        "replay": "the process ended with exit status 3",
        "reset": "the process did not end within 1.5 s",
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
    assert faulty.stepping.changes == ("the file mode mask (umask) to 000",)
    assert "hello" in faulty.printed["stepping"]


def test_the_page_begins_with_the_differences_and_fits_80_columns(
    faulty: FmuCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = card_page(faulty)
    assert max(map(len, lines)) <= 80
    assert lines.index("Faults") < lines.index("What was measured") < lines.index("Cost")


def test_a_card_is_the_same_after_a_file(ball: FmuCard, faulty: FmuCard, tmp_path: Path) -> None:
    for card in (ball, faulty):
        card.write(tmp_path / "card.json")
        assert FmuCard.read(tmp_path / "card.json") == card
    assert [p.name for p in tmp_path.iterdir()] == ["card.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: [], "not an FMU card"),
        (lambda c: {**c, "form": 99}, "of form 99"),
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
    (tmp_path / "card.json").write_text("{not JSON")
    with pytest.raises(FileError, match="is not an FMU card"):
        FmuCard.read(tmp_path / "card.json")
    with pytest.raises(FileError, match="cannot be read"):
        FmuCard.read(tmp_path / "missing.json")


def test_a_kept_card_is_used_again(
    ball: FmuCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cached_card(ball.sha256, None) is None
    keep(ball, None)
    began: list[str] = []
    assert fmimaster.probe(BALL, progress=began.append) == ball
    assert began == []


def test_a_damaged_kept_card_is_not_used(
    ball: FmuCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep(ball, None)
    [path] = tmp_path.rglob("*.json")
    path.write_text(path.read_text()[:1000])
    assert cached_card(ball.sha256, None) is None
    path.write_text(json.dumps({**ball.to_json(), "fmimaster": "0.0.1"}))
    assert cached_card(ball.sha256, None) is None


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan")])
def test_a_deadline_of_zero_is_refused(deadline: float) -> None:
    with pytest.raises(OptionError, match=r"deadline: .* greater than 0"):
        fmimaster.probe(BALL, deadline=deadline)


def test_a_card_says_that_clocks_do_not_tick() -> None:
    card = fmimaster.probe(reference_path("fmi3/Partitions.fmu"), use_cache=False)
    assert (card.interface, card.input_clocks) == ("ScheduledExecution", 4)
    assert card.failures == {}
    assert "4 input clocks, none of which ticks here" in " ".join(card_page(card))
