"""AsciiDoc documents as pages of the documentation: a hook of mkdocs (``hooks`` in mkdocs.yml).

Each ``index.adoc`` below docs/ becomes a page beside it, with the files that it includes. The sources keep to what both
asciidoc, which pip installs, and asciidoctor, which the FMI project uses, read alike: a blank line before the end of a
block, no list right after another one, references with a text.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from lxml import etree, html

CONF = Path(__file__).with_name("asciidoc_pages.conf")
"""Listings with their language, for the colours of the theme."""
_HEADINGS = ("h2", "h3", "h4")
_BLOCKS = ("div", "p", "ul", "ol", "dl", "table", "pre")


def render(source: Path) -> Any:
    """The document as an element ``div``, in the classes of the theme.

    Raises
    ------
    RuntimeError
        If asciidoc reports anything.
    """
    command = [sys.executable, "-m", "asciidoc.asciidoc", "--backend=html5", f"--conf-file={CONF}"]
    command += [
        "--no-header-footer",
        "--attribute=numbered",
        "--attribute=icons!",
        "--out-file=-",
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode or done.stderr:
        raise RuntimeError(
            f"{source} cannot be rendered: {done.stderr.strip()}. Correct the source, or install what is needed: "
            "pip install -e '.[docs]'."
        )
    root = html.fragment_fromstring(done.stdout, create_parent="div")
    title = etree.Element("h1")
    title.text = source.read_text(encoding="utf-8").splitlines()[0].removeprefix("= ")
    root.insert(0, title)
    for convert in (_tables, _admonitions, _code, _links, _permalinks):
        convert(root)
    return root


def _tables(root: Any) -> None:
    """The theme has its own design for tables without classes."""
    for table in root.iter("table"):
        if "tableblock" in table.get("class", ""):
            for element in table.iter("table", "th", "td", "p"):
                element.attrib.pop("class", None)
                element.attrib.pop("style", None)


def _admonitions(root: Any) -> None:
    for block in root.xpath(".//div[@class='admonitionblock']"):
        [content] = block.xpath("./table//td[@class='content']")
        [title] = block.xpath("./table//td[@class='icon']/div")
        content.tag = "div" if any(e.tag in _BLOCKS for e in content) else "p"
        title.tag = "p"
        content.attrib.clear()
        title.set("class", "admonition-title")
        block[:] = [title, content]
        block.set("class", "admonition note")


def _code(root: Any) -> None:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    for span in root.xpath(".//span[@class='monospaced']"):
        span.tag = "code"
        span.attrib.clear()
    for pre in root.xpath(".//pre[@class='source']"):
        code = pre[0]
        language = code.get("class").removeprefix("language-")
        coloured = highlight(
            code.text_content(), get_lexer_by_name(language), HtmlFormatter(nowrap=True)
        )
        block = html.fragment_fromstring(
            f'<div class="highlight"><pre><code>{coloured}</code></pre></div>'
        )
        block.tail = pre.tail
        pre.getparent().replace(pre, block)


def _links(root: Any) -> None:
    """The source links to other sources, which are what there is without mkdocs."""
    for link in root.iter("a"):
        target = link.get("href", "")
        if target.endswith(".md") and ":" not in target:
            link.set("href", target.removesuffix(".md") + ".html")


def _permalinks(root: Any) -> None:
    """Links at headings and at requirements, as the rest of the documentation has them."""
    for heading in root.iter(*_HEADINGS):
        heading.append(_permalink(heading.get("id")))
    for term in root.xpath(".//dt[a[@id]]"):
        anchor = term[0]
        term.set("id", anchor.get("id"))
        number, _, rest = (anchor.tail or "").strip().partition(" ")
        term.remove(anchor)
        strong = etree.SubElement(term, "strong")
        strong.text, strong.tail = number, f" {rest} "
        term.append(_permalink(term.get("id")))


def _permalink(anchor: str) -> Any:
    link = etree.Element(
        "a", {"class": "headerlink", "href": f"#{anchor}", "title": "Permanent link"}
    )
    link.text = "¶"
    return link


def contents(root: Any) -> list[dict[str, Any]]:
    """Headings as mkdocs takes them for its table of contents."""
    tokens: list[dict[str, Any]] = []
    stack: list[tuple[int, list[dict[str, Any]]]] = [(0, tokens)]
    for heading in root.iter("h1", *_HEADINGS):
        level = int(heading.tag[1])
        name = heading.text_content().removesuffix("¶")
        token = {"level": level, "id": heading.get("id", ""), "name": name, "children": []}
        while stack[-1][0] >= level:
            stack.pop()
        stack[-1][1].append(token)
        stack.append((level, token["children"]))
    return tokens


# What mkdocs calls ----------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """A page for each document."""
    from mkdocs.structure.files import File

    for source in sorted(Path(config.docs_dir).rglob("index.adoc")):
        uri = source.relative_to(config.docs_dir).with_suffix(".md").as_posix()
        files.append(File.generated(config, uri, content="\n"))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Other pages link to the source, which is what there is without mkdocs."""
    return re.sub(r"(\]\([^)\s]*)\.adoc([)#])", r"\1.md\2", markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """What the page shows."""
    from mkdocs.structure.toc import get_toc

    del files
    source = (Path(config.docs_dir) / page.file.src_uri).with_suffix(".adoc")
    if not source.exists():
        return content
    root = render(source)
    tokens = contents(root)
    page.toc = get_toc(tokens)
    page.present_anchor_ids = {e.get("id") for e in root.iter("*") if e.get("id")}
    return etree.tostring(root, encoding="unicode", method="html")
