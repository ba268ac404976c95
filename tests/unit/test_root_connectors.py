"""Connectors of the root system as columns of the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fmimaster import Simulation, reference_path, simulate

SSD = """<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
    xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" name="s" version="1.0">
  <ssd:System name="s">
    <ssd:Connectors>
      <ssd:Connector name="u" kind="input"><ssc:Real/></ssd:Connector>
      <ssd:Connector name="same" kind="output"><ssc:Real/></ssd:Connector>
      <ssd:Connector name="scaled" kind="output"><ssc:Real/></ssd:Connector>
      <ssd:Connector name="free" kind="input"><ssc:Real/></ssd:Connector>
    </ssd:Connectors>
    <ssd:Elements>
      <ssd:Component name="f" type="application/x-fmu-sharedlibrary" source="{fmu}"/>
    </ssd:Elements>
    <ssd:Connections>
      <ssd:Connection startConnector="u" endElement="f" endConnector="Float64_continuous_input"/>
      <ssd:Connection startConnector="free" endElement="f" endConnector="Float64_discrete_input"/>
      <ssd:Connection startElement="f" startConnector="Float64_continuous_output" endConnector="same"/>
      <ssd:Connection startElement="f" startConnector="Float64_continuous_output" endConnector="scaled">
        <ssd:LinearTransformation factor="2" offset="1"/>
      </ssd:Connection>
    </ssd:Connections>
  </ssd:System>
</ssd:SystemStructureDescription>
"""
OUTPUT = "f.Float64_continuous_output"
INPUT = {"time": [0.0, 1.0], "u": [1.0, 3.0]}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("root") / "s.ssd"
    path.write_text(
        SSD.format(fmu=reference_path("fmi3/Feedthrough.fmu").as_uri()), encoding="utf-8"
    )
    return path


def test_connectors_of_the_root_system_come_first_under_their_own_names(system: Path) -> None:
    results = simulate(system, stop_time=1, step_size="1/4", input=INPUT)
    assert results.names[:3] == ("u", "same", "scaled")
    assert results["u"].tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]
    assert np.array_equal(results["same"], results[OUTPUT])
    assert np.array_equal(results["scaled"], 2.0 * results[OUTPUT] + 1.0)


def test_signals_that_are_given_are_recorded_under_the_name_input_only_if_asked_for(
    system: Path,
) -> None:
    settings = Simulation(system, stop_time=1, step_size="1/4", input=INPUT)
    assert not [name for name in settings.run().names if name.startswith("input.")]
    asked = simulate(
        system, stop_time=1, step_size="1/4", input=INPUT, output_variables=["input.u"]
    )
    assert asked.names == ("input.u",)


def test_an_input_that_nothing_feeds_is_no_column(system: Path) -> None:
    assert simulate(system, stop_time=1).names[:2] == ("same", "scaled")


def test_connectors_can_be_chosen_by_name(system: Path, tmp_path: Path) -> None:
    """Also while rows are written during the run."""
    chosen = Simulation(
        system, stop_time=1, step_size="1/4", input=INPUT, output_variables=["scaled"]
    )
    assert chosen.run().names == ("scaled",)
    chosen.run(output_file=tmp_path / "rows.csv")
    first, last = (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()[1::4]
    assert (first, last) == ("0.0,3.0", "1.0,6.0")  # the input of the step before


def test_outputs_are_compared_once(system: Path) -> None:
    """With the step halved: a connector repeats the output that feeds it."""
    pair = Simulation(system, stop_time=1, step_size="1/4", input=INPUT).check_step()
    assert [name for name in pair.names if not name.startswith("f.")] == []
