"""The exceptions: their tree, their facts, and suggestions for near-misses."""

from __future__ import annotations

import pickle
import re

import pytest

from fmimaster.base import errors
from fmimaster.base.errors import (
    CallError,
    ConvergenceError,
    Interrupted,
    LoopError,
    SimulationError,
    did_you_mean,
)

CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type)
    and issubclass(kind, BaseException)
    and not issubclass(kind, Warning)  # described below the tree
    and kind.__module__ == errors.__name__
}


def drawn() -> dict[str, str]:
    """Class → parent, as the tree in the docstring draws them."""
    parents: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        entry = re.match(r"^ {4}([│├└─ ]*)([A-Z]\w+)(\s|$)", line)
        if entry:
            depth = len(entry[1])
            path = [(d, name) for d, name in path if d < depth]
            if path:
                parents[entry[2]] = path[-1][1]
            path.append((depth, entry[2]))
    return parents


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    real = {n: k.__bases__[0].__name__ for n, k in CLASSES.items() if n != "FmimasterError"}
    assert drawn() == real


def test_the_first_sentence_of_each_class_stands_in_the_tree() -> None:
    text = errors.__doc__ or ""
    described = {name: kind for name, kind in CLASSES.items() if name != "FmimasterError"}
    said = {n: re.search(rf"{n} +(.+)$", text, re.MULTILINE) for n in described}
    sentences = {
        n: (k.__doc__ or "").split("\n")[0].rstrip(".").lower() for n, k in described.items()
    }
    wrong = [n for n, s in said.items() if not (s and s[1].lower().startswith(sentences[n][:30]))]
    assert wrong == []


def test_an_interruption_is_a_keyboard_interrupt_too() -> None:
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert issubclass(Interrupted, SimulationError)


def call_error() -> CallError:
    return CallError(
        "it failed",
        instance="pump",
        function="fmi3DoStep",
        status="fmi3Error",
        messages=["a", "b"],
        time=1.5,
    )


def test_a_call_error_has_its_facts_as_attributes() -> None:
    error = call_error()
    assert str(error) == "it failed"
    assert (error.instance, error.function, error.status) == ("pump", "fmi3DoStep", "fmi3Error")
    assert (error.messages, error.time, error.results) == (("a", "b"), 1.5, None)


def test_errors_come_through_pickle_with_their_facts() -> None:
    # a sweep over processes hands them back
    loop = LoopError(
        "not solved",
        loop=["a.y"],
        reason="diverged",
        method="Newton",
        sweeps=3,
        values={"a.y": 1.0},
        residuals={"a.y": 2.0},
    )
    for error in (ConvergenceError("no", time=2.0), call_error(), loop):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (str(copy), vars(copy)) == (str(error), vars(error))


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("speeed", ["speed", "torque"], " Did you mean 'speed'?"),
        ("Speed", ["speed", "speeds"], " Did you mean 'speed'?"),
        ("X", ["tank.X", "x"], " Did you mean 'x'?"),
        ("x", ["tank.x", "pump.y"], " Did you mean 'tank.x'?"),
        ("x", ["tank.x", "pump.x"], " Did you mean 'tank.x' or 'pump.x'?"),
        ("colour", ["speed"], ""),
        ("x", [], ""),
    ],
)
def test_the_nearest_known_name_is_suggested(name: str, known: list[str], said: str) -> None:
    assert did_you_mean(name, known) == said
