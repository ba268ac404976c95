"""Parameters of a system reach the components over its connectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from fmimaster import DescriptionError, reference_path, simulate
from fmimaster.system.declarations import Experiment
from fmimaster.system.description import (
    Component,
    Connection,
    Connector,
    Endpoint,
    Parameter,
    System,
    SystemDescription,
)
from fmimaster.system.model import Causality, Source, Transformation


def nested(*parameters: Parameter, outer: tuple[Parameter, ...] = ()) -> SystemDescription:
    """A Dahlquist FMU in a subsystem whose parameter 'rate' and input 'drive' lead to its k and u."""
    source = Source(Path(reference_path("fmi3/Dahlquist.fmu")))
    inside = System(
        "inside",
        components=(Component("d", source),),
        connectors=(
            Connector("rate", Causality.PARAMETER),
            Connector("drive", Causality.INPUT),
        ),
        connections=(
            Connection(Endpoint("", "rate"), Endpoint("d", "k"), Transformation(2.0)),
            Connection(Endpoint("", "drive"), Endpoint("d", "u")),
        ),
        parameters=parameters,
    )
    root = System("root", systems=(inside,), parameters=outer)
    return SystemDescription(root, Experiment(0.0, 1.0, step_size=0.5))


def test_a_systems_parameter_is_transformed_on_its_way() -> None:
    r = simulate(nested(Parameter("rate", 1.5)), output_variables=["inside.d.k"])
    assert r["inside.d.k"][0] == 3.0


def test_the_outer_system_wins() -> None:
    description = nested(Parameter("rate", 1.5), outer=(Parameter("inside.rate", 4.0),))
    assert simulate(description, output_variables=["inside.d.k"])["inside.d.k"][0] == 8.0


def test_a_value_for_an_input_connector_is_a_start_value() -> None:
    r = simulate(nested(Parameter("drive", 0.25)), output_variables=["inside.d.u"])
    assert list(r["inside.d.u"]) == [0.25, 0.25, 0.25]


def test_a_parameter_that_leads_nowhere_is_a_note() -> None:
    r = simulate(nested(Parameter("rat", 1.0), Parameter("d.kk", 2.0), Parameter("rate", 1.0)))
    (note,) = [n for n in r.statistics.notes if "fit nothing" in n]
    assert note == (
        "parameters fit nothing in the system and are ignored: 'inside.rat', 'inside.d.kk'."
    )


def test_a_value_of_the_user_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(
        DescriptionError, match=r"'inside\.rat' is neither 'component.variable' nor"
    ):
        simulate(nested(), start_values={"inside.rat": 1.0})
