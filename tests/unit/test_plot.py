"""Figures of results: what is drawn where, read from the artists; how it looks is judged by eye."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from fmimaster.base.errors import FileError, OptionError
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.results.plot import plot_results, save_figure
from fmimaster.results.results import Results

TIME = [0.0, 1.0, 1.0, 2.0]


@pytest.fixture
def masses() -> Results:
    return Results(
        time=TIME,
        columns={
            "upper.x": [2.0, 1.0, 1.0, 2.0],
            "upper.v": [0.0, -1.0, 1.0, 0.0],
            "lower.x": [1.0, 0.0, 0.0, 1.0],
            "lower.v": [0.0, -1.0, 1.0, 0.0],
            "contact": [False, True, True, False],
            "mode": ["free", "touch", "free", "free"],
        },
        units={"upper.x": "m", "lower.x": "m", "upper.v": "m/s", "lower.v": "m/s"},
    )


def constant(*names: str, unit: str = "") -> Results:
    units = dict.fromkeys(names, unit) if unit else {}
    return Results(time=[0.0, 1.0], columns={name: [1.0, 1.0] for name in names}, units=units)


def legend(axes: Axes | Figure) -> list[str]:
    found = axes.legends[0] if isinstance(axes, Figure) else axes.get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


def labels(figure: Figure) -> list[str]:
    return [axes.get_ylabel() for axes in figure.axes]


def test_there_is_one_axes_per_unit(masses: Results) -> None:
    figure = plot_results(masses)
    assert labels(figure) == ["x in m", "v in m/s", "contact"]
    assert [legend(axes) for axes in figure.axes] == [
        ["upper.x", "lower.x"],
        ["upper.v", "lower.v"],
        ["contact"],
    ]


def test_columns_without_unit_share_an_axes_if_their_last_parts_agree() -> None:
    figure = constant("a.x", "a.v", "b.x", "b.c[1]", "b.c[2]").plot()
    assert [legend(axes) for axes in figure.axes] == [["a.x", "b.x"], ["a.v"], ["b.c[1]", "b.c[2]"]]
    assert labels(figure) == ["x", "v", "c"]


def test_different_quantities_of_one_unit_are_named_as_far_as_there_is_room() -> None:
    assert labels(constant("a.position", "b.length", unit="m").plot()) == ["position, length in m"]
    long = [f"a.quantity_with_a_long_name_{k}" for k in range(3)]
    assert labels(constant(*long, unit="m").plot()) == ["m"]


def test_the_unit_1_is_not_shown() -> None:
    assert labels(constant("a.slip", unit="1").plot()) == ["slip"]


def test_time_is_labelled_below_the_lowest_axes_only(masses: Results) -> None:
    assert [axes.get_xlabel() for axes in masses.plot().axes] == ["", "", "time in s"]


def test_names_choose_and_order_what_is_drawn(masses: Results) -> None:
    figure = masses.plot(["*.v", "lower.x"])
    assert labels(figure) == ["v in m/s", "x in m"]


def test_rows_at_the_same_time_are_drawn_as_a_jump(masses: Results) -> None:
    (line,) = masses.plot("upper.v").axes[0].lines
    np.testing.assert_array_equal(line.get_xydata(), np.c_[TIME, [0.0, -1.0, 1.0, 0.0]])


@pytest.mark.parametrize("values", [[0, 1], [False, True]])
def test_integers_and_booleans_are_drawn_as_steps(values: list[int]) -> None:
    (line,) = Results(time=[0.0, 1.0], columns={"n": values}).plot().axes[0].lines
    assert line.get_drawstyle() == "steps-post"


def test_floats_are_joined_by_straight_lines(masses: Results) -> None:
    assert masses.plot("upper.x").axes[0].lines[0].get_drawstyle() == "default"


def test_integers_and_floats_of_one_unit_stand_apart() -> None:
    results = Results(
        time=[0.0], columns={"x": [0.5], "n": [1]}, units={"x": "1/min", "n": "1/min"}
    )
    assert [legend(axes) for axes in results.plot().axes] == [["x"], ["n"]]


def test_elements_of_arrays_are_drawn_one_by_one() -> None:
    results = Results(time=[0.0, 1.0], columns={"r": [[1.0, 2.0], [3.0, 4.0]]})
    assert legend(results.plot().axes[0]) == ["r[1]", "r[2]"]


def test_more_columns_than_colours_are_shared_out_over_several_axes() -> None:
    figure = constant(*(f"c{i}.x" for i in range(12)), unit="m").plot()
    assert [len(legend(axes)) for axes in figure.axes] == [6, 6]


def test_no_two_columns_of_an_axes_have_the_same_colour() -> None:
    lines = constant(*(f"c{i}.x" for i in range(7))).plot().axes[0].lines
    assert len({line.get_color() for line in lines}) == 7


def test_tables_differ_by_their_dashes_and_columns_by_their_colours(masses: Results) -> None:
    figure = plot_results([("Jacobi", masses), ("Gauss-Seidel", masses)], "*.x")
    (axes,) = figure.axes
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-", "--", "--"]
    colours = [line.get_color() for line in axes.lines]
    assert colours[:2] == colours[2:]
    assert legend(axes) == ["upper.x", "lower.x"]
    assert legend(figure) == ["Jacobi", "Gauss-Seidel"]


def test_a_column_of_only_one_table_is_drawn_once() -> None:
    figure = plot_results([("one", constant("a.x", "b.x")), ("two", constant("b.x", "c.x"))])
    assert legend(figure.axes[0]) == ["a.x", "b.x", "c.x"]
    assert len(figure.axes[0].lines) == 4


def test_a_reference_is_drawn_below_the_results(masses: Results) -> None:
    figure = masses.plot("upper.x", reference=masses)
    below, above = figure.axes[0].lines
    assert below.get_linewidth() > above.get_linewidth()
    assert legend(figure) == ["reference"]


def test_communication_points_are_ticks_at_the_bottom(masses: Results) -> None:
    figure = masses.plot("upper.x", communication_points=True)
    (ticks,) = figure.axes[0].collections
    corners = [np.asarray(path.vertices) for path in ticks.get_paths()]
    assert [c[0, 0] for c in corners] == [0.0, 1.0, 2.0]
    assert all(c[:, 1].max() < 0.05 for c in corners)
    assert legend(figure) == ["communication points"]


def test_ticks_that_would_overlap_are_drawn_once() -> None:
    rows = np.linspace(0.0, 1.0, 100_001)
    results = Results(time=rows, columns={"x": rows})
    (ticks,) = results.plot(communication_points=True).axes[0].collections
    assert len(ticks.get_paths()) == 3001


def test_a_plain_figure_has_no_key(masses: Results) -> None:
    assert masses.plot().legends == []


def test_a_dollar_sign_is_no_formula(masses: Results) -> None:
    figure = constant("a.$x$").plot(title="$")
    assert legend(figure.axes[0]) == [r"a.\$x\$"]
    assert figure.axes[0].get_title(loc="left") == r"\$"


def test_a_reference_without_rows_leaves_the_results_alone(masses: Results) -> None:
    empty = Results(time=[], columns={"upper.x": np.empty((0, 2))})
    assert len(masses.plot("upper.x", reference=empty).axes[0].lines) == 1


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_hardly_any_rows_can_be_drawn(rows: int, tmp_path: Path) -> None:
    results = Results(time=np.zeros(rows), columns={"x": np.zeros(rows)})
    save_figure(results.plot(communication_points=True), tmp_path / "figure.png")


def test_an_unknown_name_gets_a_suggestion(masses: Results) -> None:
    with pytest.raises(OptionError) as error:
        masses.plot(["uper.x"])
    assert str(error.value) == (
        "No column of the results matches 'uper.x'."
        " Did you mean 'upper.x' or 'upper.v' or 'lower.x'?"
    )


def test_a_name_that_is_like_none_gets_a_list_of_columns(masses: Results) -> None:
    with pytest.raises(OptionError) as error:
        masses.plot("*.pressure")
    assert str(error.value) == (
        "No column of the results matches '*.pressure'."
        " There are upper.x, upper.v, lower.x, lower.v, contact, mode."
    )
    with pytest.raises(KeyError, match=r"no column 'p'\. There are x1, .*, x8 and 2 more\."):
        constant(*(f"x{k}" for k in range(1, 11)))["p"]


def test_text_alone_cannot_be_plotted(masses: Results) -> None:
    with pytest.raises(OptionError) as error:
        masses.plot("mode")
    assert str(error.value) == ("There is nothing to plot: no chosen column contains numbers.")


def test_chosen_columns_that_have_no_room_are_an_error() -> None:
    with pytest.raises(OptionError) as error:
        constant(*(f"a.x{i}" for i in range(57))).plot("*")
    assert str(error.value) == (
        "57 columns need 9 axes; a figure has room for 8."
        " Choose fewer columns by name, or by a pattern such as 'engine.*'."
    )


def test_of_too_many_columns_those_are_drawn_that_have_room() -> None:
    figure = constant(*(f"a.x{i}" for i in range(60))).plot()
    assert sum(len(legend(axes)) for axes in figure.axes) == 56
    assert legend(figure) == ["4 more columns have no room here: choose some by name"]


def test_quantities_without_unit_share_an_axes_if_there_are_too_many() -> None:
    figure = constant(*(f"a.x{i}" for i in range(9))).plot()
    assert [len(legend(axes)) for axes in figure.axes] == [5, 4]


def test_too_many_tables_are_an_error(masses: Results) -> None:
    with pytest.raises(OptionError) as error:
        plot_results([("", masses)] * 5)
    assert str(error.value) == (
        "There are 5 tables to plot; a figure can distinguish 4. Plot fewer at a time."
    )


def test_tables_with_contradicting_units_are_an_error() -> None:
    with pytest.raises(OptionError) as error:
        plot_results(constant("x", unit="m"), reference=constant("x", unit="mm"))
    assert str(error.value) == (
        "Column 'x' is in m in one table and in mm in another; expected one unit."
    )


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_figure_gives_the_same_file(masses: Results, tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
    save_figure(masses.plot(title="masses"), first)
    save_figure(masses.plot(title="masses"), second)
    assert first.stat().st_size > 1000
    assert first.read_bytes() == second.read_bytes()


def test_an_unknown_suffix_is_an_error(masses: Results, tmp_path: Path) -> None:
    path = tmp_path / "figure.docx"
    with pytest.raises(OptionError) as error:
        save_figure(masses.plot(), path)
    assert str(error.value) == (
        f"The figure '{path}' has the suffix '.docx'; expected .pdf, .png, .svg."
    )


def test_a_figure_in_no_folder_cannot_be_written(masses: Results, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "figure.png"
    with pytest.raises(FileError) as error:
        save_figure(masses.plot(), path)
    assert str(error.value) == f"The figure '{path}' cannot be written: No such file or directory."


# Magnitudes -----------------------------------------------------------------------------------------------------------

WAVE = np.sin(np.linspace(0.0, 6.0, 50))


def of_length(**columns: ArrayLike) -> Results:
    """Columns in m over 50 rows."""
    full = {name: np.broadcast_to(values, 50) for name, values in columns.items()}
    return Results(time=np.arange(50.0), columns=full, units=dict.fromkeys(full, "m"))


def shared(results: Results) -> list[list[str]]:
    return [legend(axes) for axes in results.plot().axes]


def test_a_constant_far_away_has_an_axes_of_its_own() -> None:
    assert shared(of_length(x=WAVE, sea=1000.0, y=2 * WAVE)) == [["x", "y"], ["sea"]]


def test_a_constant_near_the_others_is_drawn_with_them() -> None:
    assert shared(of_length(x=WAVE, limit=2.0)) == [["x", "limit"]]


def test_columns_share_an_axes_if_each_spans_a_tenth_of_it() -> None:
    assert shared(of_length(x=WAVE, small=0.11 * WAVE)) == [["x", "small"]]
    assert shared(of_length(x=WAVE, small=0.09 * WAVE)) == [["x"], ["small"]]


def test_rounding_errors_make_no_axes_of_their_own() -> None:
    assert shared(of_length(x=WAVE, rest=1.0 + 1e-15 * WAVE)) == [["x", "rest"]]


def test_values_that_are_not_finite_do_not_count() -> None:
    wild = np.where(np.arange(50) == 7, np.inf, WAVE)
    assert shared(of_length(x=WAVE, wild=wild, none=np.nan)) == [["x", "wild", "none"]]


def test_a_masked_value_is_a_gap() -> None:
    """As of a component that exists in parts of the run."""
    parts = np.ma.masked_array([1, 1, 99, 3], [False, False, True, False])
    (line,) = Results(time=[0.0, 1.0, 2.0, 3.0], columns={"n": parts}).plot().axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), [1.0, 1.0, np.nan, 3.0])


# Lines that coincide, and long names ----------------------------------------------------------------------------------


def test_lines_that_coincide_are_drawn_in_turns() -> None:
    results = of_length(a=WAVE, b=WAVE, other=-WAVE, c=WAVE + 1e-4)
    figure = results.plot()
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "--", "-", "--"]
    a, b, other, c = seen(figure, [str(line.get_color()) for line in figure.axes[0].lines])
    assert [n / other for n in (a, b, c)] == pytest.approx([1 / 3] * 3, rel=0.2)


def seen(figure: Figure, colours: Sequence[str]) -> list[int]:
    """How many points of a figure have each of the colours, without legends."""
    for axes in figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        legend.remove()
    figure.set_dpi(200)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    points = np.asarray(canvas.buffer_rgba())[..., :3]
    return [
        int((points == np.round(255 * np.array(to_rgb(c)))).all(axis=-1).sum()) for c in colours
    ]


def test_lines_that_coincide_in_part_can_both_be_seen() -> None:
    branch = np.where(np.arange(50) < 30, WAVE, WAVE + 1.0)
    lines = of_length(a=WAVE, b=branch).plot().axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--"]


def test_of_several_tables_the_first_is_widest_and_palest(masses: Results) -> None:
    first, second, third = plot_results([(n, masses) for n in "abc"], "upper.x").axes[0].lines
    assert first.get_linewidth() > second.get_linewidth() > third.get_linewidth()
    palest, paler, dark = (line.get_alpha() or 0.0 for line in (first, second, third))
    assert palest < paler < dark == 1.0


def test_a_long_name_goes_on_in_another_line_of_the_legend() -> None:
    name = "hydraulics.cylinder.left.pressure_sensor.filtered.value"
    (shown,) = legend(constant(name).plot().axes[0])
    assert shown.split("\n") == ["hydraulics.cylinder.left.", "  pressure_sensor.filtered.value"]


# Axes of the caller, notebooks and pyplot -----------------------------------------------------------------------------


def test_lines_go_into_the_axes_of_the_caller(masses: Results, pyplot: Any) -> None:
    _, axes = pyplot.subplots()
    assert masses.plot("*.v", ax=axes) is axes
    assert legend(axes) == ["upper.v", "lower.v"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time in s", "v in m/s")


def test_an_axes_of_the_caller_takes_several_units(masses: Results) -> None:
    axes = Figure().subplots()
    masses.plot(["upper.v", "upper.x"], ax=axes)
    assert legend(axes) == ["upper.v in m/s", "upper.x in m"]
    assert axes.get_ylabel() == ""


def test_a_notebook_gets_a_picture_without_pyplot(masses: Results) -> None:
    assert masses.plot()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert "matplotlib.pyplot" not in sys.modules


def test_the_figure_is_one_of_pyplot_if_the_caller_uses_it(masses: Results, pyplot: Any) -> None:
    assert masses.plot() is pyplot.gcf()


def test_a_figure_for_a_file_is_not_kept_by_pyplot(masses: Results, pyplot: Any) -> None:
    plot_results(masses)
    assert pyplot.get_fignums() == []


def test_show_opens_a_window(masses: Results, pyplot: Any, windows: Path) -> None:
    assert isinstance(masses.plot("upper.x", show=True), Figure)
    masses.plot("upper.v", ax=pyplot.subplots()[1], show=True)
    assert sorted(p.name for p in windows.iterdir()) == ["1.png", "2.png"]


# Events ---------------------------------------------------------------------------------------------------------------


def eventful(number: int) -> Results:
    events = [
        Event(k / number, 1, "e", k % 2 == 0, ("a", "b")[: 2 - k % 2], Cause(Kind.DETECTED))
        for k in range(number)
    ]
    return Results(time=[0.0, 1.0], columns={"x": [0.0, 1.0]}, events=events)


def marks(figure: Figure) -> list[tuple[int, float]]:
    """Of each kind of events: how many marks, and how low they reach."""
    return [
        (len(lines.get_segments()), float(lines.get_segments()[0][0][1]))
        for lines in figure.axes[0].collections
        if isinstance(lines, LineCollection)
    ]


def test_few_events_are_lines_shared_and_private_ones_told_apart() -> None:
    figure = eventful(10).plot()
    assert marks(figure) == [(5, 0.0), (5, 0.0)]
    assert legend(figure) == ["shared events", "private events"]
    styles = {line.get_linestyle() for line in figure.legends[0].get_lines()}
    assert len(styles) == 2


def test_many_events_are_ticks_at_the_top_and_hide_nothing() -> None:
    figure = eventful(20_000).plot()
    assert [(n <= 3001, low > 0.9) for n, low in marks(figure)] == [(True, True)] * 2
    assert legend(figure)[0].startswith("shared events (long ticks")


def test_events_of_tables_that_are_compared_are_not_marked() -> None:
    figure = plot_results([("a", eventful(3)), ("b", eventful(3))])
    assert marks(figure) == []


# Clocks and superdense time -------------------------------------------------------------------------------------------


def drawn(line: Line2D) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a line shows: x and y."""
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def superdense(between: float = 1.0) -> Results:
    """Five rows at t = 1: a clock ticks in the last four of them."""
    time = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + between, 2.0 + between])
    tick = np.array([False, True, False, True, True, True, True, False, False])
    return Results(
        time=time,
        columns={
            "x": np.arange(9.0),
            "y": np.ma.MaskedArray(np.arange(9) ** 2, ~tick),
            "tick": tick,
        },
        metadata={"clocks": ["tick"]},
    )


def test_a_clocked_variable_has_a_mark_at_each_tick_and_is_held_lightly() -> None:
    held, marks = superdense().plot("y").axes[0].lines
    assert drawn(marks)[1].tolist() == [1, 9, 16, 25, 36]
    assert (marks.get_linestyle(), held.get_drawstyle()) == ("None", "steps-post")
    assert (held.get_alpha() or 1.0) < 0.5
    assert [values[-1] for values in drawn(held)] == [3.0, 36.0]


def test_clocks_have_bars_in_an_axes_of_their_own() -> None:
    figure = superdense().plot()
    assert legend(figure.axes[-1]) == ["tick"]
    assert figure.axes[-1].get_ylabel() == "clocks"
    (bars,) = [c for c in figure.axes[-1].collections if isinstance(c, LineCollection)]
    assert len(bars.get_segments()) == 5


def test_rows_of_an_instant_are_side_by_side_in_their_order() -> None:
    figure = superdense().plot("x")
    (line,) = figure.axes[0].lines
    x, y = drawn(line)
    assert (np.diff(x) >= 0.0).all()
    # within the instant, values are held and then jump
    assert y[2:11].tolist() == [2, 2, 3, 3, 4, 4, 5, 5, 6]
    assert 1.0 < x[3] < x[5] < x[7] < x[9] < 1.2
    assert [text.get_text() for text in figure.axes[0].texts] == list("01234")
    assert legend(figure) == ["rows of one instant, side by side"]


def test_rows_of_an_instant_leave_the_next_one_alone() -> None:
    figure = superdense(between=0.05).plot("x")
    (line,) = figure.axes[0].lines
    assert 1.0 < drawn(line)[0][-3] < 1.05
    assert [text.get_text() for text in figure.axes[0].texts] == ["0–4"]


def test_a_jump_is_a_vertical_line_also_in_superdense_time() -> None:
    x, _ = drawn(superdense().plot("x").axes[0].lines[0])
    assert x[:2].tolist() == [0.0, 0.0]


def test_clocked_columns_go_into_the_axes_of_the_caller(pyplot: Any) -> None:
    axes = Figure().subplots()
    superdense().plot(["y", "tick"], ax=axes)
    assert [drawn(line)[1].tolist() for line in axes.lines] == [[1, 9, 16, 25, 36], [1.0] * 5]


def test_a_clock_that_never_ticks_is_drawn() -> None:
    never = np.ma.MaskedArray([1.0, 2.0], [True, True])
    columns: dict[str, ArrayLike] = {"y": never, "c": [False, False]}
    figure = Results(time=[0.0, 1.0], columns=columns, metadata={"clocks": ["c"]}).plot()
    assert [legend(axes) for axes in figure.axes] == [["y"], ["c"]]
