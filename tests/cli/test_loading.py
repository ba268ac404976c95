"""Commands that simulate nothing load no library in their process: an FMU whose library ends the process when it is loaded
ends none of them. If one of them did load it, this test run itself would end.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome
from misbehaving_fmu import VERSIONS, Act, misbehaving

from fmimaster.run.choice import native_executor

pytestmark = pytest.mark.skipif(
    native_executor() is None, reason="processes of FMUs need the kernel"
)

Run = Callable[..., Outcome]

SYSTEM = """<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
    version="1.0" name="pair">
  <ssd:System name="pair">
    <ssd:Elements>
      <ssd:Component name="a" type="application/x-fmu-sharedlibrary" source="Misbehaving.fmu"/>
      <ssd:Component name="b" type="application/x-fmu-sharedlibrary" source="Misbehaving.fmu"/>
    </ssd:Elements>
    <ssd:Connections>
      <ssd:Connection startElement="a" startConnector="x" endElement="b" endConnector="u"/>
    </ssd:Connections>
  </ssd:System>
  <ssd:DefaultExperiment startTime="0" stopTime="1"/>
</ssd:SystemStructureDescription>
"""


@pytest.fixture(params=VERSIONS)
def leaving(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with an FMU that ends its process when it is loaded, and a system of two of them."""
    acts = Act("Load", "trace", tmp_path / "trace"), Act("Load", "leave", 0)
    misbehaving(tmp_path, request.param, *acts)
    (tmp_path / "SystemStructure.ssd").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["page", "json"])
@pytest.mark.parametrize("command", ["validate", "info", "plan"])
def test_what_reads_an_fmu_does_not_load_it(
    run: Run, leaving: Path, command: str, options: tuple[str, ...]
) -> None:
    for system in ("Misbehaving.fmu", "SystemStructure.ssd"):
        outcome = run(command, leaving / system, *options)
        assert outcome.status == 0, outcome.err
        assert outcome.out
    assert not (leaving / "trace").exists()


def test_plan_with_a_figure_and_programs_does_not_load_it(run: Run, leaving: Path) -> None:
    pytest.importorskip("pygraphviz")
    figure = leaving / "plan.svg"
    system = leaving / "SystemStructure.ssd"
    assert run("plan", system, "--programs", "--figure", figure).status == 0
    assert figure.exists()
    assert not (leaving / "trace").exists()


def test_probe_survives_it_and_says_so(run: Run, leaving: Path) -> None:
    outcome = run("probe", leaving / "Misbehaving.fmu", "--no-cache")
    assert outcome.status == 0
    assert "ended with exit status 0" in outcome.out
    assert (leaving / "trace").read_text(encoding="utf-8").startswith("- Load\n")


def test_conformance_survives_it_and_says_so(run: Run, leaving: Path) -> None:
    outcome = run("conformance", leaving, "--output-folder", leaving / "out")
    assert outcome.status == 1
    assert "The process of the FMU ended with exit status 0" in outcome.out
    assert (leaving / "trace").read_text(encoding="utf-8").startswith("- Load\n")
