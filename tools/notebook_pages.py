"""Notebooks as pages of the documentation, executed: a hook of mkdocs (``hooks`` in mkdocs.yml).

Each ``*.ipynb`` below docs/ is run from its first cell to its last one, in a folder of its own, and becomes a page with
what its cells show. The file itself, without outputs, is offered beside it. Also a command:

    python tools/notebook_pages.py NOTEBOOK.ipynb EXECUTED.ipynb
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SECONDS = 120
"""No cell may take longer."""


def executed(notebook: Path) -> Any:
    """The notebook with the outputs of its cells.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell raises.
    """
    import nbformat
    from nbclient import NotebookClient

    document = nbformat.read(notebook, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(document, timeout=SECONDS, resources=resources).execute()
    return document


def page(document: Any) -> str:
    """An executed notebook as Markdown."""
    return "\n\n".join(part for cell in document.cells for part in _cell(cell)) + "\n"


def _cell(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
    elif cell.cell_type == "code":
        yield f"```python\n{cell.source}\n```"
        for output in cell.outputs:
            yield f'<div class="notebook-output" markdown="1">\n\n{_output(output)}\n\n</div>'


def _output(output: Any) -> str:
    """What a notebook shows of an output: the richest form."""
    if output.output_type == "stream":
        return _text(output.text)
    if "text/html" in output.data:
        one_line = " ".join(output.data["text/html"].split("\n"))  # no blank line, which ends HTML
        return f"<div>{one_line}</div>"
    if "image/png" in output.data:
        return f'<img alt="{output.data["text/plain"]}" src="data:image/png;base64,{output.data["image/png"].strip()}">'
    return _text(output.data["text/plain"])


def _text(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def main() -> None:
    """Execute a notebook, and write it with its outputs."""
    import nbformat

    nbformat.write(executed(Path(sys.argv[1])), sys.argv[2])


# What mkdocs calls ----------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """A page for each notebook, beside the file."""
    from mkdocs.structure.files import File

    for notebook in sorted(Path(config.docs_dir).rglob("*.ipynb")):
        uri = notebook.relative_to(config.docs_dir).with_suffix(".md").as_posix()
        files.append(File.generated(config, uri, content=page(executed(notebook))))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Other pages link to the file, which is what there is without mkdocs; the page itself offers the file."""
    if (Path(config.docs_dir) / page.file.src_uri).with_suffix(".ipynb").exists():
        return markdown
    return re.sub(r"(\]\([^)\s]*)\.ipynb([)#])", r"\1.md\2", markdown)


if __name__ == "__main__":
    main()
