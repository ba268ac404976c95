"""Hostile manifests and terminals cost a warning: the FMU has a model all the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

from event_fmus import EXTRA, event_fmu, manifest
from fuzzing import survives
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import edited_bytes, edited_xml

from fmimaster.fmu.description.terminals import FILE, read_terminals
from fmimaster.fmu.layered_standards import read_layered_standards
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.system.model import Model, Source

TERMINALS = b"""<fmiTerminalsAndIcons fmiVersion="3.0">
  <GraphicalRepresentation><Icon x1="0" y1="0" x2="1" y2="1"/></GraphicalRepresentation>
  <Terminals>
    <Terminal name="flange" matchingRule="plug" terminalKind="mechanical" description="a flange">
      <TerminalMemberVariable variableName="x" memberName="s" variableKind="signal"/>
      <TerminalMemberVariable variableName="u_x" memberName="f" variableKind="signal"/>
      <Terminal name="inner" matchingRule="bus">
        <TerminalStreamMemberVariable inStreamMemberName="hi" outStreamMemberName="ho" inStreamVariableName="u_v"
          outStreamVariableName="v"/>
      </Terminal>
    </Terminal>
  </Terminals>
</fmiTerminalsAndIcons>"""
OTHER = b"""<fmiLayeredStandardManifest xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"
  fmi-ls:fmi-ls-name="org.fmi-standard.fmi-ls-bus" fmi-ls:fmi-ls-version="1.0.0-beta.1"
  fmi-ls:fmi-ls-description="buses"/>"""
DOCUMENTS = (manifest(), OTHER)


def models() -> tuple[Model, ...]:
    """Models of an FMU without a manifest, of both versions."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for version in ("2.0", "3.0"):
            fmu = FmuFile(Source(event_fmu(Path(folder) / "a.fmu", None, version=version)))
            fmu.close()
            found.append(fmu.model)
    return tuple(found)


MODELS = models()


def hostile(documents: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    return st.one_of(edited_xml(documents), edited_bytes(documents))


@settings(max_examples=200, deadline=None)
@given(
    documents=st.lists(hostile(DOCUMENTS), min_size=1, max_size=2),
    model=st.sampled_from(MODELS),
)
def test_manifests(documents: list[bytes], model: Model) -> None:
    with tempfile.TemporaryDirectory(prefix="fmimaster-fuzz-") as folder:
        for k, document in enumerate(documents):
            file = Path(folder) / EXTRA.replace("org.", f"org{k}.")
            file.parent.mkdir(parents=True)
            file.write_bytes(document)
        found = survives(read_layered_standards, UnpackedFmu(Path(folder), "a.fmu"), model)
    assert isinstance(found, Model), found
    assert len(found.layered_standards) == len(documents)
    if any(s.problems for s in found.layered_standards):
        assert found.broken_manifests


@settings(max_examples=100, deadline=None)
@given(document=hostile((TERMINALS,)), model=st.sampled_from(MODELS))
def test_terminals(document: bytes, model: Model) -> None:
    with tempfile.TemporaryDirectory(prefix="fmimaster-fuzz-") as folder:
        file = Path(folder) / FILE
        file.parent.mkdir(parents=True)
        file.write_bytes(document)
        found = survives(read_terminals, UnpackedFmu(Path(folder), "a.fmu"), model)
    assert isinstance(found, tuple), found
