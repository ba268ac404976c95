"""The systems that are made of reference FMUs, as SSP."""

from __future__ import annotations

import io
import math
import string
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import bodies
import quarter_car
from archives import Files, archive_bytes
from linear_system import RIGID_LINK, TWO_MASS, LinearSystem
from linear_writer import MODEL, fmu_files

SYSTEMS = Path(__file__).resolve().parent / "systems"

STOP_TIMES = {"b1": "7", "b2": "7", "b3": "20"}  # [s] benchmarks of the two masses
# b2: c(t) = -0.554 (1 - cos(4.255 t)), f(t) = -13.823 + 1.024 sin(3.462 t + 2.9)
CEILINGS = {"b2": {"c0": "-0.554", "ca": "0.554", "cw": "4.255", "cp": repr(math.pi / 2)}}
FLOORS = {"b2": {"f0": "-13.823", "fa": "1.024", "fw": "3.462", "fp": "2.9"}}
FMI_VERSIONS = {"fmi2": ("fmi2", "fmi2"), "fmi3": ("fmi3", "fmi3"), "mixed": ("fmi2", "fmi3")}

Archives = Mapping[tuple[str, str], bytes]
"""FMUs by FMI version and model."""


def all_systems(archives: Archives) -> Iterator[tuple[str, Files]]:
    """The name of each system, and the files of its SSP archive."""
    for benchmark in STOP_TIMES:
        for versions in FMI_VERSIONS:
            name = f"two-mass-{benchmark}-{versions}"
            yield name, build_two_mass(name, benchmark, versions, archives)
    for version in ("fmi2", "fmi3"):
        for kind, build in (
            ("thermostat", build_thermostat),
            ("four-units", build_four_units),
        ):
            name = f"{kind}-{version}"
            yield name, build(name, version, archives)
        for kind, masses in (("rigid-link", RIGID_LINK), ("survey-two-mass", TWO_MASS)):
            name = f"{kind}-{version}"
            yield name, build_linear(name, kind, masses, version, archives)
        for kind, car in quarter_car.ALL.items():
            name = f"{kind}-{version}"
            yield name, build_car(name, car, version, archives)
    for kind, system in bodies.ALL.items():
        for version in system.versions:
            name = f"{kind}-{version}"
            yield name, build_bodies(name, system, version, archives)


def ssp_version(fmi_versions: Iterable[str]) -> str:
    """SSP 1.0 knows FMI 1.0 and 2.0 only."""
    return "2.0" if "fmi3" in fmi_versions else "1.0"


def build_two_mass(name: str, benchmark: str, versions: str, archives: Archives) -> Files:
    """The files of one SSP archive of the two masses."""
    template = string.Template((SYSTEMS / "two-mass.ssd").read_text(encoding="utf-8"))
    text = template.substitute(
        name=name,
        ssp=ssp_version(FMI_VERSIONS[versions]),
        stop_time=STOP_TIMES[benchmark],
        ceiling=parameter_binding("ceiling", CEILINGS.get(benchmark, {})),
        floor=parameter_binding("floor", FLOORS.get(benchmark, {})),
    )
    upper, lower = FMI_VERSIONS[versions]
    return {
        "SystemStructure.ssd": text.encode(),
        "resources/TwoMassUpper.fmu": archives[upper, "TwoMassUpper"],
        "resources/TwoMassLower.fmu": archives[lower, "TwoMassLower"],
    }


def build_bodies(name: str, system: bodies.Bodies, version: str, archives: Archives) -> Files:
    """The files of the SSP archive of some bodies of one kind."""
    versions = system.versions[version]
    text = bodies.ssd(name, system, versions, ssp_version(versions), parameter_binding)
    fmus = {
        f"resources/{system.model}-{v}.fmu": archives[v, system.model]
        for v in sorted(set(versions))
    }
    return {"SystemStructure.ssd": text.encode(), **fmus}


CLOCK_IN_SSD = {
    "clock_output": '\n          <ssd:Connector name="crossing.out" kind="output"/>',
    "clock_input": '\n          <ssd:Connector name="sample" kind="input"/>',
    "clock_connection": '\n      <ssd:Connection startElement="room" startConnector="crossing.out"'
    ' endElement="controller" endConnector="sample"/>',
}


def build_thermostat(name: str, version: str, archives: Archives) -> Files:
    """The files of the SSP archive of the thermostat; FMI 2.0 has no clocks to connect."""
    template = string.Template((SYSTEMS / "thermostat.ssd").read_text(encoding="utf-8"))
    clock = CLOCK_IN_SSD if version == "fmi3" else dict.fromkeys(CLOCK_IN_SSD, "")
    return {
        "SystemStructure.ssd": template.substitute(
            name=name, ssp=ssp_version([version]), **clock
        ).encode(),
        "resources/ThermostatRoom.fmu": archives[version, "ThermostatRoom"],
        "resources/ThermostatController.fmu": archives[version, "ThermostatController"],
    }


def build_four_units(name: str, version: str, archives: Archives) -> Files:
    """The files of the SSP archive of the four units."""
    template = string.Template((SYSTEMS / "four-units.ssd").read_text(encoding="utf-8"))
    models = [f"FourUnitsS{k}" for k in range(1, 5)]
    return {
        "SystemStructure.ssd": template.substitute(name=name, ssp=ssp_version([version])).encode(),
        **{f"resources/{model}.fmu": archives[version, model] for model in models},
    }


def build_linear(
    name: str,
    template_name: str,
    systems: Mapping[str, LinearSystem],
    version: str,
    archives: Archives,
) -> Files:
    """The files of the SSP archive of linear systems, each of which is a component of its name."""
    template = string.Template((SYSTEMS / f"{template_name}.ssd").read_text(encoding="utf-8"))
    with zipfile.ZipFile(io.BytesIO(archives[version, MODEL])) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return {
        "SystemStructure.ssd": template.substitute(name=name, ssp=ssp_version([version])).encode(),
        **{
            f"resources/{component}.fmu": archive_bytes(fmu_files(system, files))
            for component, system in systems.items()
        },
    }


def build_car(name: str, car: quarter_car.Car, version: str, archives: Archives) -> Files:
    """The files of one SSP archive of quarter-car FMUs."""
    template = string.Template((SYSTEMS / f"{car.template}.ssd").read_text(encoding="utf-8"))
    text = template.substitute(
        name=name,
        ssp=ssp_version([version]),
        stop_time=car.stop_time,
        **car.tolerances,
        **{c: parameter_binding(c, car.values.get(c, {})) for c in quarter_car.COMPONENTS},
    )
    return {
        "SystemStructure.ssd": text.encode(),
        **{f"resources/{model}.fmu": archives[version, model] for model in car.models},
    }


def parameter_binding(name: str, values: Mapping[str, str]) -> str:
    """The element of a component that gives its Real parameters values; nothing for no values."""
    if not values:
        return ""
    lines = [
        "<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>",
        f'  <ssv:ParameterSet version="1.0" name="{name}"><ssv:Parameters>',
        *(
            f'    <ssv:Parameter name="{key}"><ssv:Real value="{value}"/></ssv:Parameter>'
            for key, value in values.items()
        ),
        "  </ssv:Parameters></ssv:ParameterSet>",
        "</ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>",
    ]
    return "".join(f"\n        {line}" for line in lines)
