"""Make the kit: FMUs, systems, inputs and exact results in one folder.

    python fmus/build.py BUILT
    python docs/proposal/kit/make.py BUILT KIT

needs NumPy, and writes one FMU by the modules in fmus/. KIT then has, for each case and version of FMI,
``cases/<case>-<version>.fmu`` or ``.ssp``, and

    cases.json        what is to be simulated; see index.md
    inputs/           inputs as CSV
    exact/            exact results as CSV
    judge.py          compares results with them
    check_fmu.py      checks an FMU, with the modules that it uses, the schemas, and experiments/ for the reference FMUs
    importer.py       an importer of the class indicators
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import exact

HERE = Path(__file__).resolve().parent
MANIFEST = "extra/org.fmimaster.fmi-ls-events/fmi-ls-manifest.xml"
POLYNOMIALS = "extra/org.fmimaster.fmi-ls-input-polynomials/fmi-ls-manifest.xml"
CHECKER = (
    *(
        "check_fmu.py",
        "check_manifest.py",
        "check_continuous.py",
        "check_policies.py",
        "check_triggers.py",
        "check_inputs.py",
    ),
    *("driven.py", "fmu_under_test.py", "simulated.py", "report.py"),
)
LEVEL = "http://fmi-standard.org/fmi-ls-manifest"


def reduced(manifest: bytes, case: dict[str, Any]) -> bytes:
    """The manifest with the elements and without the attributes that the case says: what one class needs, and no more."""
    ET.register_namespace("fmi-ls", LEVEL)
    root = ET.fromstring(manifest)
    for element in list(root):
        kept = element.tag.rpartition("}")[2] in case["keep"]
        name = element.get("name")
        if not kept or (name is not None and name not in case.get("events", [name])):
            root.remove(element)
            continue
        for attribute in case.get("without", ()):
            element.attrib.pop(attribute, None)
    text = ET.tostring(root, encoding="unicode")
    for pattern, other in case.get("replace", ()):
        text = re.sub(pattern, other, text)
    return text.encode()


def described(description: bytes, case: dict[str, Any]) -> bytes:
    """The model description with the capabilities that the case says, of FMI 3.0."""
    text = description.decode()
    for name, value in case.get("capabilities", {}).items():
        text = re.sub(rf'\b{name}="\w+"', f'{name}="{value}"', text)
    return text.encode()


def write_fmu(source: Path, target: Path, case: dict[str, Any]) -> None:
    """Copy an FMU, with the manifest and the capabilities of the case."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == POLYNOMIALS and "keep" in case:
                continue
            if info.filename == MANIFEST and "keep" in case:
                content = reduced(content, case)
            if info.filename == "modelDescription.xml":
                content = described(content, case)
            new.writestr(info, content, zipfile.ZIP_DEFLATED)


def write_modes(template: Path, target: Path) -> Path:
    """A level that rises to 1 and falls to 0. The event `down` is off while it falls: a trigger at 0.5 would stop it.

    Its FMU would execute that event itself, so it is for importers that trigger all events.
    """
    sys.path.insert(0, str(HERE.parents[2] / "fmus"))
    from hybrid_system import Event, HybridSystem, Mode, Transition
    from hybrid_writer import Variant, write_fmu

    sys.path.pop(0)
    modes = (
        Mode({"x": {"1": 1.0}}, {"x": {"x": 1.0}, "y": {"1": 1.0}}, on=True),
        Mode({"x": {"1": -1.0}}, {"x": {"x": 1.0}, "y": {"1": -1.0}}),
        Mode({}, {"x": {"x": 1.0}}),
    )
    down = {0: Transition(({"1": 1.0, "x": -1.0},), 1), 1: Transition(({"x": 1.0, "1": -0.5},), 2)}
    events = (Event("down", down), Event("up", {1: Transition(({"x": 1.0},), 0)}))
    system = HybridSystem({"x": 0.2}, modes, {"x": "", "y": ""}, events=events)
    return write_fmu(target, system, template, Variant(polynomial=False))


def write_inputs(folder: Path) -> None:
    """A ball of 3 kg that comes from the right."""
    with (folder / "meeting.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "right.x", "right.v"])
        writer.writerows([[0.0, 3.0, -0.5], [3.0, 1.5, -0.5]])


def make(built: Path, kit: Path) -> None:
    """Fill the folder `kit`.

    Parameters
    ----------
    built
        What ``fmus/build.py`` has made.
    """
    for name in ("cases", "inputs", "exact"):
        (kit / name).mkdir(parents=True, exist_ok=True)
    for name in ("cases.json", "judge.py", "exact.py", "index.md", *CHECKER, "importer.py"):
        shutil.copy(HERE / name, kit / name)
    for source in (HERE / "experiments", HERE.parent / "schema"):
        shutil.copytree(source, kit / source.name, dirs_exist_ok=True)
    cases = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))["cases"]
    for case in cases:
        for version in case["versions"]:
            target = kit / "cases" / f"{case['name']}-{version}"
            if "fmu" in case:
                source = built / version / f"{case['fmu']}.fmu"
                if case.get("modes"):
                    source = write_modes(source, target.with_suffix(".fmu.part"))
                write_fmu(source, target.with_suffix(".fmu"), case)
                target.with_suffix(".fmu.part").unlink(missing_ok=True)
            else:
                source = built / "systems" / f"{case['system']}-{version}.ssp"
                shutil.copy(source, target.with_suffix(".ssp"))
    write_inputs(kit / "inputs")
    for motion in sorted({case["motion"] for case in cases}):
        exact.write(motion, kit / "exact")


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
