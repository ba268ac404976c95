"""The HTML report of a conformance run: safe for texts from anywhere, without requests, sorted and filtered."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import PATIENCE

from fmimaster.conformance import changes, page, sheet
from fmimaster.conformance.curve import curves
from fmimaster.conformance.measures import measure
from fmimaster.conformance.page import write_page
from fmimaster.conformance.sheet import SheetColumn
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictCause, VerdictOutcome
from fmimaster.results.results import Results

TIME = np.linspace(0.0, 1.0, 201)
EVIL = "</script><img src=x onerror=alert(1)> \x1b[31m \u202e & \"'"

_CHROMIUM = shutil.which("chromium")
_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


def verdict(name: str, factor: float, **others: Any) -> Verdict:
    reference = Results(time=TIME, columns={"x": np.sin(9.0 * TIME)}, units={"x": "m"})
    results = Results(time=TIME, columns={"x": factor * np.sin(9.0 * TIME)}, units={"x": "m"})
    found = measure(results, reference, 0.0, 1.0)
    return replace(
        Verdict(
            name=name,
            fmu=f"{name}.fmu",
            model=name.rpartition("/")[2],
            exporter="Tool",
            fmi_version="2.0",
            interface="CoSimulation",
            outcome=VerdictOutcome.PASSED if found.passed else VerdictOutcome.FAILED,
            cause=VerdictCause.NONE if found.passed else VerdictCause.DEVIATION,
            reason=found.problem,
            measures=found.measures,
            curves=curves(results, reference),
            results=f"results/{name}",
            seconds=0.25,
        ),
        **others,
    )


def report(folder: Path) -> str:
    verdicts = (
        verdict("a/small", 1.01),
        verdict("b/large", 2.0),
        verdict("c/middle", 1.1),
        Verdict(
            name=EVIL,
            fmu=EVIL,
            model=EVIL,
            outcome=VerdictOutcome.REJECTED,
            cause=VerdictCause.REFUSED,
            reason=EVIL,
            results="results/evil",
        ),
    )
    place = folder / "results" / "evil"
    place.mkdir(parents=True)
    (place / "log.txt").write_text(EVIL, encoding="utf-8")
    (place / "card.json").write_text(json.dumps({EVIL: EVIL}), encoding="utf-8")
    run = ConformanceRun(
        folder="/fmus",
        started="2026-11-22T21:00:00+00:00",
        version="1",
        platform="x86_64-linux",
        settings={"workers": 2},
        verdicts=verdicts,
    )
    return write_page(run, folder).read_text("utf-8")


class Attributes(HTMLParser):
    """All elements of a page, and all their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def test_the_page_makes_no_request(tmp_path: Path) -> None:
    text = report(tmp_path)
    page = Attributes(text)
    assert [v for n, v in page.attributes if n in ("src", "href", "action")] == ["data:,"]
    assert re.findall(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text) == []
    assert "default-src 'none'" in text


def test_texts_of_fmus_are_no_part_of_the_page(tmp_path: Path) -> None:
    text = report(tmp_path)
    page = Attributes(text)
    assert "img" not in page.elements
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_details_hold_log_and_card(tmp_path: Path) -> None:
    found = re.findall(r'<script type="application/json">(.*)</script>', report(tmp_path))
    details = [json.loads(text) for text in found]
    (evil,) = [d for d in details if d["texts"]]
    (card, card_text, _), (log, log_text, _) = evil["texts"]
    assert (card, log) == ("FMU card", "Log")
    assert "is not an FMU card" in card_text
    assert log_text.startswith("</script><img")
    assert [d["plots"][0]["band"] is not None for d in details if d["plots"]] == [
        True,
        False,
        False,
    ]


_ACTIONS = """<script>
const errors = [];
addEventListener("error", event => errors.push(event.message));
const names = () => [...body.rows].filter(r => r.facets && !r.hidden).map(r => r.id);
const found = {start: names()};
const all_buttons = [...document.querySelectorAll("th button, .tallies button")];
const press = text => all_buttons.find(b => b.textContent.includes(text)).click();
press("RMS"); found.falling = names();
press("RMS"); found.rising = names();
press("failed"); found.failed = names(); press("failed");
find.value = "MIDDLE tool"; find.dispatchEvent(new Event("input")); found.middle = names();
rows.find(r => r.id === "b/large").click();
found.plots = document.querySelectorAll(".details figure svg path.band").length;
const plot = document.querySelector(".details figure svg");
plot.dispatchEvent(new PointerEvent("pointermove", {clientX: plot.getBoundingClientRect().right}));
found.pointed = document.querySelector(".details figure p").textContent;
found.errors = errors;
found.requests = performance.getEntriesByType("resource").length;
document.body.replaceChildren(make("pre", {textContent: "FOUND" + JSON.stringify(found) + "END"}));
</script>"""


@pytest.mark.skipif(_CHROMIUM is None, reason="needs chromium")
def test_rows_are_sorted_filtered_and_unfolded_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "acted.html"
    page.write_text(report(tmp_path) + _ACTIONS, "utf-8")
    command = [str(_CHROMIUM), *_OPTIONS.split(), f"--user-data-dir={tmp_path / 'user'}"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=PATIENCE
    )
    text = re.search("FOUND(.*)END", done.stdout)
    assert text is not None, done.stderr
    found = json.loads(unescape(text[1]))
    evil = next(name for name in found["start"] if "onerror" in name)
    assert found["start"] == ["b/large", evil, "a/small", "c/middle"]
    assert found["falling"] == ["b/large", "c/middle", "a/small", evil]
    assert found["rising"] == ["a/small", "c/middle", "b/large", evil]
    assert found["failed"] == ["b/large"]
    assert found["middle"] == ["c/middle"]
    assert found["plots"] == 1
    assert found["pointed"].endswith("t = 1 s")
    assert found["errors"] == []
    assert found["requests"] == 0


_PIXELS = {
    "Verdict": 101,
    "Change": 101,
    "Before": 101,
    "Now": 101,
    "FMI": 153,
    "Exporter": 120,
    "Results": 137,
    "Outside": 88,
    "RMS": 96,
    "Largest": 96,
    "Jumps": 105,
    "Run time": 98,
    "RMS before": 120,
    "RMS now": 110,
}
"""Least width of a column, as chromium draws it with the longest words."""
_AROUND = 55
"""Pixels beside the table: the padding of the page, and a scroll bar."""


@pytest.mark.parametrize("columns", [page._COLUMNS, changes._COLUMNS])
@pytest.mark.parametrize("width", [861, 1001, 1271, 1280, 1366, 1501])
def test_the_table_fits_the_window(columns: tuple[SheetColumn, ...], width: int) -> None:
    css = (Path(sheet.__file__).parent / "sheet.css").read_text(encoding="utf-8")
    rules = css[: css.index("@media (max-width")]
    for limit, inside in re.findall(r"@media \(max-width: (\d+)px\) \{(.*)\}\n", css):
        rules += inside if width <= int(limit) else ""
    hidden = {int(rank) for rank in re.findall(r"\.rank(\d) \{ display: none; \}", rules)}
    least = dict(re.findall(r"(td\.\S+) \{[^}]*?min-width: ([\d.]+)rem", rules))
    pixels = {
        **_PIXELS,
        "FMU": 16 * float(least["td.name"]),
        "Reason": 16 * float(least["td.text:last-child"]),
    }
    assert sum(pixels[c.title] for c in columns if c.rank not in hidden) + _AROUND <= width
    assert {columns[0].title, "FMU", "Reason"} <= {c.title for c in columns if c.rank not in hidden}


_WIDTHS = """<script>
addEventListener("load", () => document.body.append(
  `FOUND${document.documentElement.scrollWidth} ${innerWidth}END`));
</script>"""


@pytest.mark.skipif(_CHROMIUM is None, reason="needs chromium")
def test_the_page_fits_1280_pixels_in_a_browser(tmp_path: Path) -> None:
    file = tmp_path / "wide.html"
    file.write_text(report(tmp_path) + _WIDTHS, "utf-8")
    command = [str(_CHROMIUM), *_OPTIONS.split(), f"--user-data-dir={tmp_path / 'user'}"]
    command += ["--window-size=1280,900", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    text = re.search(r"FOUND(\d+) (\d+)END", done.stdout)
    assert text is not None, done.stderr
    assert int(text[1]) <= int(text[2]) == 1280
