"""``fmimaster plan --figure``: components by levels, fresh and stale connections, loops."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome, declared_fmu, system

from fmimaster.commands.plan_figure import plan_figure

Run = Callable[..., Outcome]

drawn = pytest.mark.skipif(find_spec("pygraphviz") is None, reason="pygraphviz is not installed")


def facts(
    levels: Sequence[Sequence[str]],
    connections: Sequence[tuple[str, str, bool]],
    loops: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A plan: connections as ``("a.y", "b.u", whether it is fresh)``."""
    order = [name for level in levels for name in level]
    return {
        "system": "s",
        "algorithm": "GaussSeidel()",
        "order": order,
        "sequence": {"levels": levels},
        "stepLoops": loops,
        "components": [{"name": name, "modelName": f"Model{name}"} for name in order],
        "connections": [
            {
                "source": a,
                "target": b,
                "sourceComponent": a.partition(".")[0],
                "targetComponent": b.partition(".")[0],
                "fresh": fresh,
            }
            for a, b, fresh in connections
        ],
    }


def texts(plan: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """What is written in the figure, and where, in points."""
    (axes,) = plan_figure(plan).axes
    return {text.get_text(): text.get_position() for text in axes.texts if text.get_text()}


@drawn
def test_components_stand_in_the_columns_of_their_levels() -> None:
    placed = texts(facts([["a", "b"], ["c"]], [("a.y", "c.u", True), ("c.y", "a.u", False)]))
    columns = {name: placed[name][0] for name in ("1. a", "2. b", "3. c", "level 1", "level 2")}
    assert columns["1. a"] == columns["2. b"] == columns["level 1"]
    assert columns["3. c"] == columns["level 2"] > columns["level 1"]
    assert {"y → u", "Modela", "s, GaussSeidel: 2 levels"} <= set(placed)


@drawn
def test_many_connections_of_two_components_are_one_line_and_the_rest_is_counted() -> None:
    arcs = [(f"a.y{k}", f"b.u{k}", True) for k in range(5)]
    placed = texts(facts([["a"], ["b"]], arcs))
    assert [t for t in placed if "→" in t] == ["y0 → u0", "y1 → u1"]
    assert "and 3 connections more" in placed


@drawn
def test_names_are_shown_as_they_are_and_long_ones_lose_their_middle() -> None:
    name = "$x_1$" + "y" * 60 + "end"
    placed = texts(facts([[name]], []))
    (shown,) = [text for text in placed if text.startswith("1. ")]
    assert shown.startswith(r"1. \$x_1\$y")
    assert "…" in shown
    assert shown.endswith("yend")


@drawn
def test_lines_within_a_level_and_from_a_component_to_itself_are_drawn() -> None:
    arcs = [
        ("a.y", "a.u", False),
        ("a.y", "b.u", False),
        ("b.y", "a.v", False),
        ("a.y", "c.u", True),
    ]
    assert {"y → u", "y → v"} <= set(texts(facts([["a", "b"], ["c"]], arcs)))


@drawn
def test_a_large_graph_is_drawn_smaller() -> None:
    names = [f"c{k}" for k in range(300)]
    figure = plan_figure(facts([names, ["z"]], [(f"{name}.y", "z.u", True) for name in names]))
    assert max(figure.get_size_inches()) == pytest.approx(100)
    assert max(float(text.get_fontsize()) for text in figure.axes[0].texts) < 10


@drawn
def test_the_same_plan_gives_the_same_figure(tmp_path: Path, run: Run) -> None:
    fmus = {n: declared_fmu(tmp_path / f"{n}.fmu", ["u"], {"y": ["u"]}) for n in "ab"}
    path = system(tmp_path / "s", fmus, ["a.y -> b.u", "b.y -> a.u"])
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        outcome = run("plan", path, "--step-size", "0.1", "--figure", picture)
        assert (outcome.status, outcome.err) == (0, f"figure written to {picture}\n")
        assert "Connections" in outcome.out
    one, two = (picture.read_bytes() for picture in pictures)
    assert one == two


def test_without_the_library_the_message_says_what_to_install(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    path = system(tmp_path / "s", {"a": declared_fmu(tmp_path / "a.fmu", [], {"y": []})})
    error = run("plan", path, "--step-size", "0.1", "--figure", tmp_path / "p.png").error
    assert "needs the library pygraphviz" in error
    assert 'pip install "fmimaster[graph]"' in error


def test_a_figure_of_another_format_is_refused(tmp_path: Path, run: Run) -> None:
    path = system(tmp_path / "s", {"a": declared_fmu(tmp_path / "a.fmu", [], {"y": []})})
    assert "expected .pdf, .png, .svg" in run("plan", path, "--figure", tmp_path / "p.jpg").error
