"""Whether links lead somewhere, and whether a page fetches anything from elsewhere.

    python tools/links.py SITE

Looks at all pages of the documentation as ``mkdocs build`` has made them, with their anchors, and at the Markdown files
beside docs/ as they are read in the repository. Addresses of other sites are not tried: that would need a network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from lxml import html

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "conformance", "fmus", "tests")
"""With Markdown files that are read in the repository."""

_FETCHED = "//img/@src | //script/@src | //link[not(@rel='canonical')]/@href | //iframe/@src"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)
_HEADING = re.compile(r"^#+ (.+)$", re.M)


class Site:
    """The pages of a site, each with its links and its anchors."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages = {p: html.parse(str(p)).getroot() for p in sorted(folder.rglob("*.html"))}
        self._anchors = {page: set(tree.xpath("//@id")) for page, tree in self._pages.items()}

    @property
    def size(self) -> int:
        """Number of pages."""
        return len(self._pages)

    def problems(self) -> Iterator[str]:
        """Links that lead nowhere, and what is fetched from another site."""
        for page, tree in self._pages.items():
            if page.name == "404.html":  # its addresses are those of the site's root
                continue
            name = page.relative_to(self._folder)
            for address in tree.xpath(_FETCHED):
                if urlsplit(address).netloc:
                    yield f"{name} fetches {address}"
            for address in {*tree.xpath("//a/@href"), *tree.xpath(_FETCHED)}:
                if not self._leads_somewhere(page, urlsplit(address)):
                    yield f"{name} links to {address}"

    def _leads_somewhere(self, page: Path, address: SplitResult) -> bool:
        scheme, netloc, path, _, fragment = address
        if scheme or netloc:
            return True
        target = (page.parent / unquote(path)).resolve() if path else page
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            return False
        anchors = self._anchors.get(target)
        return not fragment or anchors is None or unquote(fragment) in anchors


def problems_of_markdown(file: Path) -> Iterator[str]:
    """Links of a Markdown file that lead nowhere."""
    for link in _LINK.findall(_CODE.sub("", file.read_text(encoding="utf-8"))):
        scheme, netloc, path, _, fragment = urlsplit(link)
        if scheme or netloc:
            continue
        target = file.parent / unquote(path) if path else file
        if not target.exists():
            yield f"{file.relative_to(ROOT)} links to {link}"
        elif fragment and target.suffix == ".md" and fragment not in anchors(target):
            yield f"{file.relative_to(ROOT)} links to {link}, which has no such heading"


def anchors(file: Path) -> set[str]:
    """Anchors of the headings of a Markdown file, as mkdocs and GitHub make them."""
    text = _CODE.sub(lambda code: code[0] if "\n" not in code[0] else "", file.read_text("utf-8"))
    headings = (re.sub(r"[^\w\s-]", "", heading).strip() for heading in _HEADING.findall(text))
    return {re.sub(r"\s+", "-", heading.lower()) for heading in headings}


def main() -> int:
    """Print the problems; the exit status is 1 if there are any."""
    site = Site(Path(sys.argv[1]).resolve())
    beside = [
        *ROOT.glob("*.md"),
        *(file for name in FOLDERS for file in (ROOT / name).rglob("*.md")),
    ]
    found = [*site.problems(), *(p for file in beside for p in problems_of_markdown(file))]
    print("\n".join(found) or f"{site.size} pages and {len(beside)} other files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
