"""The scripts that run FMUs of other tools, run on FMUs of our own."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forks import Forks
from misbehaving_fmu import Act, misbehaving
from processes import PATIENCE
from recorded_calls import VARIABLE, calls, first_difference, record

from fmimaster import reference_path

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the scripts record calls of libraries for Linux"
)
SCRIPTS = Path(__file__).parents[2] / "conformance"
Table = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """FMU → its line of the table."""
    folder = tmp_path_factory.mktemp("fmus")
    for version in ("fmi2", "fmi3"):
        shutil.copy(reference_path(f"{version}/Dahlquist.fmu"), folder / f"{version}.fmu")
    (folder / "fmi2_in.csv").write_text("time,u\n0,0\n10,5\n", encoding="utf-8")
    misbehaving(folder, "fmi3", Act("DoStep", "chdir", "/no/such/folder"), name="Crashing")
    misbehaving(folder, "fmi2", Act("Instantiate", "return", 3), name="Refusing")
    hanging = tmp_path_factory.mktemp("hanging")
    misbehaving(hanging, "fmi2", Act("DoStep", "hang", since=0.5), name="Hanging")
    # only the limit of the FMU that reaches it in any case is short
    return lines(folder, PATIENCE) | lines(hanging, 1)


def lines(folder: Path, limit: float) -> Table:
    """FMU → its line of the table, with so many seconds for each run."""
    alone = str(SCRIPTS / "alone.py")
    command = [sys.executable, alone, str(folder), "--table", str(folder / "table"), "--waves"]
    done = subprocess.run(
        [*command, "--limit", str(limit)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    with (folder / "table.csv").open(newline="", encoding="utf-8") as file:
        return {line["fmu"]: line for line in csv.DictReader(file)}


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_an_fmu_that_runs_gives_the_same_bits_and_calls(table: Table, version: str) -> None:
    line = table[f"{version}.fmu"]
    assert (line["native"], line["reference"], line["fmpy"]) == ("ran",) * 3
    assert line["same bits"] == "yes"
    assert int(line["same calls"]) > int(line["steps"])
    assert float(line["difference"]) <= 1e-12


def test_an_fmu_that_crashes_hangs_or_refuses_ends_itself_only(table: Table) -> None:
    assert table["Crashing.fmu"]["native"] == "crashed"
    assert table["Hanging.fmu"]["reference"] == "timed out"
    assert table["Refusing.fmu"]["native"] == "refused"


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_calls_with_other_arguments_are_found(forks: Forks, version: str, tmp_path: Path) -> None:
    original = reference_path(f"{version}/Dahlquist.fmu")
    fmu = record(original, tmp_path / "recorded.fmu", "Dahlquist")
    lists = []
    for k, step_size in enumerate(["0.5", "0.25"]):
        file = tmp_path / str(k)
        options = ("--step-size", step_size, "--output-file", tmp_path / "rows.csv")
        process = forks.begin(
            *("simulate", fmu, "--stop-time", "1", *options), environment={VARIABLE: str(file)}
        )
        _, printed = process.communicate()
        assert process.wait() == 0, printed
        lists.append(calls(file))
    assert first_difference(lists[0], lists[0]) == ""
    assert f"{version}DoStep 0x0p+0 0x1p-1" in first_difference(*lists)
