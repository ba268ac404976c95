"""What a run must know about an FMU before it is unpacked: names, experiment, capabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fmimaster.base.errors import ModelError
from fmimaster.conformance.cases import FmuCase
from fmimaster.fmu.description.findings import Findings
from fmimaster.fmu.description.interfaces import (
    interface_element,
    read_capabilities,
    read_experiment,
)
from fmimaster.system.archive import open_archive
from fmimaster.system.declarations import Capabilities, DefaultExperiment
from fmimaster.system.description import Source
from fmimaster.system.xml import Element, child, children, local_name, parse_xml

MOST_LOCALS = 20
"""So many local variables are recorded of an FMU without outputs."""

_NOT_RECORDED = ("Binary", "Clock")
"""Types of FMI 3.0 without columns in results."""


@dataclass(frozen=True)
class FmuDescription:
    """Facts from a model description.

    Attributes
    ----------
    names : frozenset of str
        Of all variables.
    recorded : frozenset of str
        Those that can be columns of results.
    inputs : frozenset of str
    instead_of_outputs : tuple of str
        Local variables that are recorded, if there are no outputs.
    experiment : DefaultExperiment
    capabilities : Capabilities
        Of the interface.
    """

    names: frozenset[str]
    recorded: frozenset[str]
    inputs: frozenset[str]
    instead_of_outputs: tuple[str, ...]
    experiment: DefaultExperiment
    capabilities: Capabilities


def read_facts(case: FmuCase) -> FmuDescription:
    """Read them; its variables are not checked, because the run does that.

    Raises
    ------
    FileError, ModelError
        If there is no model description that can be read, or it does not offer the interface.
    """
    if case.problem:
        raise ModelError(case.problem)
    if case.fmi_version.startswith("1."):
        raise ModelError(
            f"'{case.fmu}' is of FMI {case.fmi_version}. Expected FMI 2.0 or 3.0: export it again."
        )
    if case.interface is None:
        raise ModelError(
            f"'{case.fmu}' offers neither Co-Simulation nor Model Exchange. Expected one of them."
        )
    with open_archive(Source(case.path)) as archive:
        text = archive.read("modelDescription.xml")
    root = parse_xml(text, f"{case.fmu}/modelDescription.xml")
    used = interface_element(root, case.interface, case.fmu)
    variables = list(child(root, "ModelVariables") or ())
    outputs = [v for v in variables if v.get("causality") == "output" and _is_recorded(v)]
    local = [v.get("name") or "" for v in variables if _is_changing(v) and _is_recorded(v)]
    findings = Findings()
    return FmuDescription(
        frozenset(_names(variables)),
        frozenset(_names([v for v in variables if _is_recorded(v)])),
        frozenset(v.get("name") or "" for v in variables if v.get("causality") == "input"),
        () if outputs else tuple(local[:MOST_LOCALS]),
        read_experiment(root, findings),
        read_capabilities(
            used,
            case.interface,
            is_fmi2=case.fmi_version.startswith("2."),
            findings=findings,
        ),
    )


def _names(variables: list[Element]) -> Iterator[str]:
    for variable in variables:
        yield variable.get("name") or ""
        for alias in children(variable, "Alias"):
            yield alias.get("name") or ""


def _is_recorded(variable: Element) -> bool:
    return local_name(variable) not in _NOT_RECORDED and not variable.get("clocks")


def _is_changing(variable: Element) -> bool:
    is_local = (variable.get("causality") or "local") == "local"
    return is_local and variable.get("variability") not in ("constant", "fixed")
