"""How the command line takes arguments: groups with examples, pairs, near names."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, reference

from fmimaster.commands import COMMANDS, EXAMPLES
from fmimaster.commands.cli import _parser
from fmimaster.commands.parser import GROUPS

Run = Callable[..., Outcome]


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_fits_the_terminal(run: Run, command: list[str], columns: int) -> None:
    outcome = run(*command, "--help", columns=columns)
    assert outcome.status == 0
    assert max(map(len, outcome.out.splitlines())) <= columns


def test_the_options_of_a_run_are_in_groups_with_an_example(run: Run) -> None:
    page = run("simulate", "--help").out
    titles = [
        line.removesuffix(":") for line in page.splitlines() if re.fullmatch("[A-Z].*:", line)
    ]
    assert titles == ["Arguments", "Options", *GROUPS]
    assert all(f"\n{title}:\n  Example: {example}\n" in page for title, example in GROUPS.items())


@pytest.mark.parametrize("title", GROUPS)
def test_the_example_of_a_group_is_accepted_and_has_its_options(run: Run, title: str) -> None:
    example = GROUPS[title].replace('"', "").split()
    assert _parser().parse_args(["simulate", "a.fmu", *example]).command == "simulate"
    own = run("simulate", "--help").out.partition(f"\n{title}:")[2].partition("\n\n")[0]
    assert f"\n  {example[0]} " in own


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_an_example_that_it_accepts(run: Run, command: str) -> None:
    example = f"fmimaster {command} {EXAMPLES[command]}"
    assert f"\nExample: {example}\n" in run(command, "--help").out
    assert _parser().parse_args(shlex.split(example)[1:]).command == command


@pytest.mark.parametrize(
    "words",
    [["k", "3"], ["k=3"]],
    ids=["NAME VALUE", "NAME=VALUE"],
)
def test_a_start_value_is_two_words_or_one(run: Run, words: list[str]) -> None:
    fmu = reference("fmi3/Dahlquist.fmu")
    options = ("--stop-time", "0.1", "--output-variable", "x", "--output-file", "-")
    expected = run("simulate", "--start-value", *words, fmu, *options)
    assert expected.status == 0
    assert expected.out != run("simulate", fmu, *options).out
    assert expected.out == run("simulate", fmu, f"--start-value={'='.join(words)}", *options).out


@pytest.mark.parametrize(
    ("words", "pair"),
    [
        (["k=-1e-3"], ["k", "-1e-3"]),
        (["--start-value=k=3"], ["k", "3"]),
        (["text=a=b"], ["text", "a=b"]),
        (["empty="], ["empty", ""]),
        (["'a=b'.x=1"], ["'a=b'.x", "1"]),
        ([r"'it\'s=b'", "1"], [r"'it\'s=b'", "1"]),
        (["k", "-3"], ["k", "-3"]),
        (["name=-x"], ["name", "-x"]),
        (["name", "--x"], ["name", "--x"]),
    ],
)
def test_pairs(words: list[str], pair: list[str]) -> None:
    option = [] if words[0].startswith("--") else ["--start-value"]
    parsed = _parser().parse_args(["simulate", *option, *words, "a.fmu"])
    assert (parsed.start_values, parsed.system) == ([pair], "a.fmu")


def test_pairs_of_components_are_written_alike() -> None:
    given = ["--sub-steps", "a=3", "--component-step-size", "b=1/60", "--sub-steps", "c", "2"]
    parsed = _parser().parse_args(["plan", "a.ssp", *given])
    assert parsed.sub_steps == [["a", "3"], ["c", "2"]]
    assert parsed.component_step_size == [["b", "1/60"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("simulte a.fmu", "There is no command 'simulte'. Did you mean 'simulate'?"),
        ("write a.fmu", "There is no command 'write'. See 'fmimaster --help'."),
        ("sim a.fmu", "There is no command 'sim'. Did you mean 'simulate'?"),
        ("a.fmu", "There is no command 'a.fmu'. Did you mean 'fmimaster simulate a.fmu'?"),
        ("help simulate", "Write 'fmimaster --help', or 'fmimaster COMMAND --help'."),
        ("--quiet plan a.fmu", "Options are written after the command: fmimaster COMMAND --quiet"),
        ("simulate a.fmu --stop 1", "no option '--stop'. Did you mean '--stop-time'?"),
        ("simulate a.fmu --stepSize 1", "no option '--stepSize'. Did you mean '--step-size'?"),
        ("simulate a.fmu --output_file=x", "'--output_file'. Did you mean '--output-file'?"),
        ("simulate a.fmu --fmi-logging", "Did you mean '--debug-logging' or '--log-fmi-calls'?"),
        ("simulate a.fmu --relative-tolerance 1", "Did you mean '--tolerance'?"),
        ("simulate a.fmu --visible", "FMUs are always instantiated without a window."),
        (
            "simulate a.fmu --out x",
            "'--output-variable' or '--output-interval' or '--output-file'?",
        ),
        ("info a.fmu --jsn", "'info' has no option '--jsn'. Did you mean '--json'?"),
        ("simulate a.fmu --zzz", "'simulate' has no option '--zzz'. See"),
        ("simulate a.fmu --overwrite", "'simulate' has no option '--overwrite'. See"),
        ("simulate a.fmu b.fmu", "'simulate' takes no further argument 'b.fmu'."),
        ("simulate a.fmu --start-value k", "--start-value: expected NAME=VALUE or NAME VALUE."),
        ("simulate a.fmu --start-value k --json", "expected NAME=VALUE or NAME VALUE."),
        ("simulate a.fmu --start-value a=1 b=2", "repeat the option: --start-value"),
        ("simulate a.fmu --threads two", "--threads: expected a whole number, not 'two'."),
        ("simulate a.fmu --accuracy high", "--accuracy: expected a number, not 'high'."),
    ],
)
def test_what_is_not_known_is_refused_with_what_is_near(
    run: Run, arguments: str, said: str
) -> None:
    outcome = run(*arguments.split())
    assert said in outcome.error
    assert outcome.error.count("\n") == 1
    assert "--help'.\n" in outcome.error


# How much is printed --------------------------------------------------------------------------------------------------


def test_a_quiet_run_prints_its_results_only(run: Run, tmp_path: Path) -> None:
    fmu, table = reference("fmi3/Dahlquist.fmu"), tmp_path / "a.csv"
    loud, quiet = run("simulate", fmu), run("simulate", fmu, "--quiet")
    assert loud.err
    assert (quiet.status, quiet.out, quiet.err) == (0, loud.out, "")
    written = run("simulate", fmu, "--quiet", "--output-file", table, "--check-step")
    assert table.exists()
    assert "100 steps" not in written.err


def test_a_quiet_run_still_warns_and_fails_aloud(run: Run) -> None:
    growing = (reference("fmi3/Dahlquist.fmu"), "--start-value", "k=-1", "--step-size", "0.01")
    loud, quiet = run("simulate", *growing), run("simulate", *growing, "--quiet")
    warnings = [line for line in loud.err.splitlines() if line.startswith("warning: ")]
    assert "grows from t = 0 s to the end of the run" in warnings[0]
    assert quiet.err.splitlines() == warnings
    assert "does not exist" in run("simulate", "no.fmu", "--quiet").error


def test_quiet_and_verbose_exclude_each_other(run: Run) -> None:
    assert "--quiet: not allowed with" in run("info", "a.fmu", "--verbose", "--quiet").error


# JSON -----------------------------------------------------------------------------------------------------------------


def test_a_run_as_json(run: Run, tmp_path: Path) -> None:
    fmu, table = reference("fmi3/Dahlquist.fmu"), tmp_path / "a.csv"
    outcome = run("simulate", fmu, "--stop-time", "1", "--json", "--output-file", table)
    facts = json.loads(outcome.out)
    assert (facts["startTime"], facts["endTime"], facts["rows"]) == (0.0, 1.0, 11)
    assert facts["files"] == {"results": str(table), "figure": None}
    assert facts["error"] is None
    assert facts["statistics"]["steps"] == 10
    assert facts["statistics"]["instances"][0]["calls"] == 10
    rows = table.read_text(encoding="utf-8").splitlines()
    for k, variable in enumerate(facts["variables"], start=1):
        column = [float(row.split(",")[k]) for row in rows[1:]]
        ends = [variable[key] for key in ("first", "last", "smallest", "largest")]
        assert ends == [column[0], column[-1], min(column), max(column)]


def test_a_failed_run_as_json_has_its_error_and_its_rows(run: Run) -> None:
    values = ("--start-value", "fault=3", "--start-value", "faultTime=0.5", "--stop-time", "1")
    outcome = run("simulate", reference("fmi3/Faulty.fmu"), *values, "--json")
    facts = json.loads(outcome.out)
    assert outcome.status == 2
    assert facts["error"]["kind"] == "CallError"
    assert facts["error"]["message"] in outcome.err
    assert facts["rows"] > 1


def test_a_run_that_fails_before_its_first_row_has_no_times_in_json(run: Run) -> None:
    outcome = run("simulate", reference("fmi3/Faulty.fmu"), "--start-value", "fault=6", "--json")
    facts = json.loads(outcome.out)
    assert (facts["startTime"], facts["endTime"], facts["rows"]) == (None, None, 0)
    assert facts["error"]["message"] in outcome.error


def test_json_and_results_do_not_share_the_standard_output(run: Run) -> None:
    message = run("simulate", "a.fmu", "--json", "--output-file", "-").error
    assert "--json and --output-file - both write to the standard output" in message
