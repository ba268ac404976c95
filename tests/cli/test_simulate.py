"""``fmimaster simulate``: every option does what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import PLAIN, Outcome, changed, reference, system

from fmimaster import OptionError
from fmimaster.algorithms import Algorithm, AlongLine, AtMiddle, GaussSeidel, Jacobi, Subsequence
from fmimaster.commands import settings
from fmimaster.commands.cli import _parser
from fmimaster.front.simulation import Simulation
from fmimaster.inputs import FIRST_ORDER, Polynomial
from fmimaster.results.csv import read_csv

Run = Callable[..., Outcome]


@pytest.fixture
def dahlquist() -> Path:
    return reference("fmi3/Dahlquist.fmu")


@pytest.fixture
def two_mass() -> Path:
    return reference("systems/two-mass-b1-mixed.ssp")


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_the_file_holds_what_the_api_returns(run: Run, two_mass: Path, tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    outcome = run(
        "simulate", two_mass, "--stop-time", "1", "--step-size", "1/50", "--output-file", table
    )
    assert outcome.status == 0
    expected = Simulation(two_mass, stop_time=1, step_size="1/50").run()
    written = read_csv(table)
    assert written.names == expected.names
    assert all(np.array_equal(written[n], expected[n]) for n in ("time", *expected.names))


def test_the_summary_tells_steps_instances_and_where_the_file_went(
    run: Run, two_mass: Path, tmp_path: Path
) -> None:
    table = tmp_path / "a.csv"
    outcome = run("simulate", two_mass, *PLAIN, "--stop-time", "1", "--output-file", table)
    assert outcome.out == ""
    assert "100 steps in " in outcome.err
    assert "\nupper " in outcome.err
    assert "\nlower " in outcome.err
    assert f"101 rows written to {table}" in outcome.err


def test_each_note_is_told_once(run: Run, dahlquist: Path) -> None:
    note = "note: step size 0.1 s from 'Dahlquist', the smallest that an FMU suggests"
    assert run("simulate", dahlquist, "--stop-time", "1").err.count(note) == 1


def test_the_summary_repeats_nothing_that_the_log_has_shown(run: Run, dahlquist: Path) -> None:
    outcome = run("simulate", dahlquist, "--verbose")
    assert outcome.err.count("stop time 10 s from the default experiment of 'Dahlquist'") == 1


def test_without_a_file_the_range_of_each_output_is_printed(run: Run, dahlquist: Path) -> None:
    lines = run("simulate", dahlquist, "--stop-time", "1").out.splitlines()
    assert [line.split() for line in lines] == [
        ["variable", "unit", "first", "last", "smallest", "largest"],
        ["x", "1", "0.367879", "0.367879", "1"],
        ["dx", "-1", "-0.367879", "-1", "-0.367879"],
    ]


def test_ranges_of_all_types_are_printed(run: Run) -> None:
    outcome = run("simulate", reference("fmi3/Feedthrough.fmu"))
    rows = {line.split()[0]: line.split()[1:] for line in outcome.out.splitlines()}
    assert rows["String_output"] == ["'text'", "'text'"]
    assert rows["Boolean_output"] == ["False", "False", "False", "False"]
    assert rows["Float64_vector_output[2]"] == ["0", "0", "0", "0"]


def test_a_dash_writes_the_table_to_the_standard_output(run: Run, dahlquist: Path) -> None:
    outcome = run("simulate", dahlquist, "--stop-time", "0.2", "--output-file", "-")
    assert outcome.out.splitlines()[0] == '"time","x","dx"'
    assert len(outcome.out.splitlines()) == 4


def test_start_and_stop_time(run: Run, dahlquist: Path, tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    run("simulate", dahlquist, "--start-time", "-1", "--stop-time", "-0.5", "--output-file", table)
    assert read_csv(table).time.tolist() == pytest.approx([-1, -0.9, -0.8, -0.7, -0.6, -0.5])


def test_start_values_may_be_negative_and_have_an_exponent(run: Run, dahlquist: Path) -> None:
    values = ["--start-value", "k", "-1e-3", "--start-value", "x", "-.5"]
    outcome = run("simulate", dahlquist, *values, "--stop-time", "1")
    assert outcome.status == 0
    x = next(line for line in outcome.out.splitlines() if line.startswith("x"))
    assert x.split()[1:3] == ["-0.5", "-0.5005"]


def test_start_values_of_a_system_have_the_name_of_the_component(run: Run, two_mass: Path) -> None:
    value = ["--start-value", "upper.x", "-2", "--output-variable", "upper.x"]
    outcome = run("simulate", two_mass, "--stop-time", "0.1", *value)
    assert outcome.out.splitlines()[1].split()[:3] == ["upper.x", "m", "-2"]


def test_output_variables_are_chosen_by_globs(run: Run, two_mass: Path) -> None:
    globs = ["--output-variable", "*.x", "--output-variable", "upper.m?"]
    outcome = run("simulate", two_mass, "--stop-time", "0.1", *globs, "--output-file", "-")
    assert outcome.out.splitlines()[0] == '"time","upper.x","upper.m1","upper.m2","lower.x"'


def test_the_output_interval_thins_out_rows(run: Run, dahlquist: Path) -> None:
    interval = ["--stop-time", "1", "--output-interval", "0.5", "--output-file", "-"]
    times = [line.split(",")[0] for line in run("simulate", dahlquist, *interval).out.splitlines()]
    assert times[1:] == ["0.0", "0.5", "1.0"]


def test_an_input_file_feeds_inputs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text(
        '"time","Float64_continuous_input"\n0,1\n1,3\n', encoding="utf-8"
    )
    fmu, name = reference("fmi3/Feedthrough.fmu"), "Float64_continuous_output"
    options = ["--input-file", tmp_path / "u.csv", "--output-variable", name, "--stop-time", "1"]
    outcome = run("simulate", fmu, *options)
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[1].split()[:2] == [name, "1"]


def test_a_figure_is_written(run: Run, dahlquist: Path, tmp_path: Path) -> None:
    figure = tmp_path / "a.svg"
    outcome = run("simulate", dahlquist, "--stop-time", "1", "--plot", figure)
    assert outcome.out == ""
    assert f"figure written to {figure}" in outcome.err
    assert figure.read_text(encoding="utf-8").startswith("<?xml")


def test_a_figure_of_an_unknown_format_is_refused_before_the_run(run: Run, dahlquist: Path) -> None:
    outcome = run("simulate", dahlquist, "--plot", "a.bmp")
    assert "expected .pdf, .png, .svg" in outcome.error
    assert "steps" not in outcome.err


def test_an_fmu_that_ends_the_simulation_is_told(run: Run) -> None:
    values = ["--start-value", "fault", "8", "--start-value", "faultTime", "0.5"]
    outcome = run("simulate", reference("fmi3/Faulty.fmu"), *values)
    assert outcome.status == 0
    assert (
        "an FMU requested the end of the simulation at t = 0.6 s, before the stop time 10 s"
        in outcome.err
    )


def test_a_lossy_conversion_can_be_allowed(run: Run, tmp_path: Path) -> None:
    fmu = reference("fmi3/Feedthrough.fmu")
    path = system(tmp_path, {"a": fmu, "b": fmu}, ["a.Float64_discrete_output -> b.Int32_input"])
    assert run("simulate", path).status == 2
    assert run("simulate", path, "--allow-lossy-conversions").status == 0


def chosen(*options: str) -> Algorithm | str | None:
    """The algorithm that these options choose."""
    return settings.simulation(_parser().parse_args(["simulate", "a.fmu", *options])).algorithm


@pytest.mark.parametrize("name", ["GaussSeidel", "gauss-seidel", "gauss_seidel", "gaussseidel"])
def test_algorithms_are_known_by_several_spellings(name: str) -> None:
    assert chosen("--algorithm", name) == GaussSeidel()


def test_the_default_algorithm_is_that_of_the_api() -> None:
    assert chosen() is Simulation("a.fmu").algorithm is None


def test_inputs_are_a_setting_of_the_algorithm() -> None:
    assert chosen("--algorithm", "jacobi", "--inputs", "first-order") == Jacobi(FIRST_ORDER)
    assert chosen("--inputs", "2,1") == Jacobi(Polynomial(2, 1))


def test_mode_and_levels_are_settings_of_gauss_seidel() -> None:
    assert chosen("--mode", "lin") == GaussSeidel(mode=AlongLine())
    assert chosen("--mode", "lin:sub-steps=10") == GaussSeidel(mode=AlongLine(10))
    assert chosen("--mode", "sub:parts=4", "--levels") == GaussSeidel(
        mode=Subsequence(4), levels=True
    )
    assert chosen("--most-levels", "3") == GaussSeidel(most_levels=3)
    first_order = chosen("--algorithm", "GaussSeidel", "--inputs", "first-order", "--mode", "mid")
    assert first_order == GaussSeidel(FIRST_ORDER, mode=AtMiddle())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mode", "line"), "There is no mode 'line'. Did you mean 'lin'?"),
        (("--mode", "lin:sub_steps=2.5"), "expected a whole number, such as 5"),
        (("--mode", "lin:sub_steps=0"), "expected at least 1"),
        (("--mode", "lin:parts=2"), "--mode lin has no setting 'parts'"),
        (("--mode", "end:parts=2"), "--mode end has no setting 'parts'. It has none."),
        (("--loop-tolerance", "nan"), "--loop-tolerance nan: expected a number greater than 0."),
        (("--algorithm", "jacobi", "--levels"), "Algorithm Jacobi has no setting --levels"),
        (("--algorithm", "jacobi", "--mode", "lin"), "Algorithm Jacobi has no setting --mode"),
    ],
)
def test_modes_that_mean_nothing_are_refused(options: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        chosen(*options)


def test_the_algorithm_makes_a_difference(run: Run, two_mass: Path) -> None:
    def last(*options: str) -> str:
        chosen = ["--stop-time", "1", "--output-variable", "lower.x"]
        return run("simulate", two_mass, *chosen, *options).out.splitlines()[1]

    plain = "--event-clock", "none"
    gauss_seidel, jacobi = (last("--algorithm", a, *plain) for a in ("gauss-seidel", "jacobi"))
    assert len({gauss_seidel, jacobi, last()}) == 3


def test_an_executor_that_is_not_there_is_told(run: Run, dahlquist: Path) -> None:
    message = run("simulate", dahlquist, "--backend", "refrence").error
    assert "There is no backend 'refrence'. Did you mean 'reference'?" in message
    assert "There are fastest, native, reference." in message


def test_all_executors_write_the_same_bytes(run: Run, two_mass: Path, tmp_path: Path) -> None:
    pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")
    written = []
    for executor in ("reference", "native", "fastest"):
        file = tmp_path / f"{executor}.csv"
        run("simulate", two_mass, *PLAIN, "--backend", executor, "--output-file", file)
        written.append(file.read_bytes())
    assert len(written[0].splitlines()) == 702  # 7 s in steps of 0.01 s, and the names
    assert written[1] == written[0]
    assert written[2] == written[0]


def test_a_streamed_file_has_the_bytes_of_one_that_is_written_at_the_end(
    run: Run, two_mass: Path, tmp_path: Path
) -> None:
    streamed, kept = tmp_path / "streamed.csv", tmp_path / "kept.csv"
    run("simulate", two_mass, "--output-file", streamed)
    run("simulate", two_mass, "--output-file", kept, "--plot", tmp_path / "rows.png")
    assert streamed.read_bytes() == kept.read_bytes()


def test_inputs_that_mean_nothing_are_told(run: Run, dahlquist: Path) -> None:
    message = run("simulate", dahlquist, "--inputs", "frist-order").error
    assert "hermite, adaptive, or POINTS,DERIVATIVES" in message
    assert "Did you mean 'first-order'?" in message


def test_progress_is_shown_on_a_terminal_only(
    run: Run, dahlquist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in run("simulate", dahlquist).err
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = run("simulate", dahlquist, "--output-file", "-")
    assert "\x1b" in shown.err
    assert "\x1b" not in shown.out
    assert "\x1b" not in run("simulate", dahlquist, "--no-progress").err


@pytest.mark.parametrize("command", ["simulate", "info", "plan", "validate"])
def test_an_fmu_packed_with_backslashes_is_like_any_other(
    run: Run, dahlquist: Path, tmp_path: Path, command: str
) -> None:
    path = changed(dahlquist, tmp_path / "Dahlquist.fmu", name=lambda n: n.replace("/", "\\"))
    expected, outcome = run(command, dahlquist), run(command, path)
    assert outcome.status == 0
    assert outcome.out == expected.out.replace(str(dahlquist), str(path))


# What the FMUs leave open ---------------------------------------------------------------------------------------------


COMMANDS: list[tuple[str, ...]] = [("simulate", "--no-progress"), ("plan",), ("validate",)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_of_stop_times_that_disagree_the_smallest_is_taken_and_told(
    run: Run, dahlquist: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = system(tmp_path, {"a": dahlquist, "b": reference("fmi3/BouncingBall.fmu")})
    path.write_text(
        re.sub("<ssd:DefaultExperiment.*?/>", "", path.read_text(encoding="utf-8")),
        encoding="utf-8",
    )
    outcome = run(*command, path)
    assert outcome.status == 0
    told = outcome.err + outcome.out
    assert "top time 3 s from the default experiment of 'b', the smallest that" in told


def without_stop_time(dahlquist: Path, folder: Path) -> Path:
    """An FMU that suggests no stop time."""
    return changed(
        dahlquist,
        folder / "a.fmu",
        description=lambda text: re.sub("<DefaultExperiment.*?/>", "", text),
    )


@pytest.mark.parametrize("command", ["simulate", "validate"])
def test_without_a_stop_time_the_message_names_the_option(
    run: Run, dahlquist: Path, tmp_path: Path, command: str
) -> None:
    outcome = run(command, without_stop_time(dahlquist, tmp_path))
    assert outcome.status == (0 if command == "validate" else 2)
    expected = "Give one: stop_time (--stop-time)."
    assert expected in outcome.err + outcome.out


@pytest.mark.parametrize(
    ("options", "step", "stop"),
    [((), 0.002, 1.0), (("--step-size", "3"), 3.0, 1500.0), (("--step-rule", "ramp"), 0.002, 1.0)],
)
def test_a_plan_needs_no_stop_time(
    run: Run,
    dahlquist: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    step: float,
    stop: float,
) -> None:
    outcome = run("plan", without_stop_time(dahlquist, tmp_path), "--json", *options)
    assert outcome.status == 0, outcome.err
    facts = json.loads(outcome.out)
    assert (facts["times"]["step"], facts["times"]["stop"]) == (step, stop)
    expected = f"no stop time is given: this is the plan of a run until {stop:g} s; a run needs stop_time (--stop-time)"
    assert expected in facts["notes"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_an_fmu_without_outputs_is_told_the_option_that_records_more(
    run: Run, dahlquist: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    silent = changed(
        dahlquist,
        tmp_path / "a.fmu",
        description=lambda text: re.sub(
            "<Output .*?/>", "", text.replace('causality="output"', 'causality="local"')
        ),
    )
    outcome = run(*command, silent)
    assert outcome.status == 0, outcome.err
    assert "--output-variable '*'" in outcome.err + outcome.out
    if command[0] != "validate":
        assert "--output-variable" not in run(*command, silent, "--output-variable", "*").err


def test_an_accuracy_chooses_the_controller_and_says_why(run: Run, tmp_path: Path) -> None:
    system, table = reference("systems/quarter-car-b-fmi2.ssp"), tmp_path / "a.csv"
    options = ["--accuracy", "1e-2", "--stop-time", "1", "--output-interval", "0.1"]
    outcome = run("simulate", system, *options, "--output-file", table)
    assert (
        "note: accuracy 0.01: ECCO, by the residual energy of the power bond 'suspension'; Gauss-Seidel with inputs linear "
        "over a step; no step is undone\nnote: accuracy 0.01 reached: the error is about"
        in outcome.err
    )
    assert f"11 rows written to {table}" in outcome.err
    assert len(read_csv(table).time) == 11


def test_a_tolerance_for_all_power_bonds(run: Run) -> None:
    system = reference("systems/quarter-car-a-fmi2.ssp")
    options = ["--step-rule", "ecco", "--step-size", "0.01", "--stop-time", "1"]
    steps = [
        int(run("simulate", system, *options, "--bond-tolerance", t).err.split(" steps")[0])
        for t in ("1e-5", "1e-4")
    ]
    assert steps[0] > steps[1]


def test_a_results_file_of_an_unknown_format_is_refused_before_the_run(
    run: Run, tmp_path: Path
) -> None:
    message = run("simulate", "no.fmu", "--output-file", tmp_path / "rows.txt").error
    assert "has the suffix '.txt', which decides on the format; expected .csv, .parquet" in message


def test_fmu_states_are_written_and_read(run: Run, tmp_path: Path) -> None:
    dahlquist = reference("fmi3/Dahlquist.fmu")
    state, rows = tmp_path / "state.bin", tmp_path / "rows.csv"
    run("simulate", dahlquist, "--stop-time", 1, "--final-fmu-state-file", state)
    assert state.stat().st_size > 0
    options = ["--start-time", 1, "--stop-time", 1.1, "--initial-fmu-state-file", state]
    refused = run("simulate", dahlquist, *options, "--output-file", rows).error
    assert "after the stop time 1 s" in refused  # this FMU keeps its stop time
    assert rows.read_text(encoding="utf-8").splitlines()[1].startswith("1.0,0.36")
