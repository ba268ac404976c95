"""The schemas of docs/proposal, as lxml and xmllint read them without a network: what they import comes from FMPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
from lxml import etree

PROPOSAL = Path(__file__).parents[1] / "docs" / "proposal"
MANIFEST = PROPOSAL / "schema" / "fmi3LayeredStandardEventsManifest.xsd"
POLYNOMIALS = PROPOSAL / "schema" / "fmi3LayeredStandardInputPolynomialsManifest.xsd"
SYSTEM = PROPOSAL / "schema" / "fmi3LayeredStandardEventsSystem.xsd"
OFFICIAL = "https://raw.githubusercontent.com/modelica/fmi-standard/v3.0.2/schema/"
"""Where the schemas of FMI 3.0 are, which ours import."""
OF_FMPY = Path(fmpy.__file__).parent / "schema" / "fmi3"


class _FromFmpy(etree.Resolver):
    def resolve(self, url: str, *rest: Any) -> Any:
        context = rest[-1]
        if url.startswith(OFFICIAL):
            found: Any = self
            return found.resolve_filename(str(OF_FMPY / url.removeprefix(OFFICIAL)), context)
        return None


def schema(path: Path) -> etree.XMLSchema:
    """A schema; nothing is fetched."""
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_FromFmpy())
    return etree.XMLSchema(etree.parse(path, parser))


def catalogue(folder: Path) -> Path:
    """A catalogue for xmllint, by the environment variable XML_CATALOG_FILES: it finds the same files."""
    path = folder / "catalogue.xml"
    path.write_text(
        '<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">'
        f'<rewriteURI uriStartString="{OFFICIAL}" rewritePrefix="{OF_FMPY.as_uri()}/"/></catalog>\n',
        encoding="utf-8",
    )
    return path
