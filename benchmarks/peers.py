"""Other tools that pip installs, each asked to simulate the same system and to record all outputs.

A tool that is not installed, or cannot do a system, says so in a word instead of a number.
"""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from zipfile import ZipFile

import fmpy
import numpy as np
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from systems import Component, FmuFile, Measured, System, fmu_file


class NotPossibleError(Exception):
    """A tool cannot do a system; the text says why in a word or two."""


@dataclass(frozen=True)
class Tool:
    """A tool by the name of its package and how it simulates.

    Attributes
    ----------
    shift : int
        The first row of the tool is that many steps after the start.
    settled : int
        So many rows of the tool are left out of the comparison: the initial outputs are not settled.
    remark : str
        Why it does not agree better.
    """

    name: str
    package: str
    run: Callable[[System], Measured]
    shift: int = 0
    settled: int = 0
    remark: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether its package can be imported."""
        return importlib.util.find_spec(self.package) is not None


class Clock:
    """Wall and CPU time since it was made, in s."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def measured(self, rows: Any) -> Measured:
        """What has gone by, with the rows that were recorded by then."""
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return Measured(wall, cpu, rows)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that goes away."""
    path = Path(tempfile.mkdtemp(prefix="benchmark-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# fmpy's own calls


def _instantiated(file: FmuFile, name: str) -> Any:
    kind = FMU2Slave if file.description.fmiVersion == "2.0" else FMU3Slave
    fmu = kind(
        guid=file.description.guid,
        modelIdentifier=file.description.coSimulation.modelIdentifier,
        unzipDirectory=str(file.folder),
        instanceName=name,
    )
    if kind is FMU2Slave:  # a logger that is silent
        callbacks = fmpy.fmi2.fmi2CallbackFunctions()
        callbacks.logger = fmpy.fmi2.fmi2CallbackLoggerTYPE(lambda *_: None)
        callbacks.allocateMemory = fmpy.fmi2.fmi2CallbackAllocateMemoryTYPE(fmpy.fmi2.calloc)
        callbacks.freeMemory = fmpy.fmi2.fmi2CallbackFreeMemoryTYPE(fmpy.fmi2.free)
        fmu.instantiate(callbacks=callbacks)
    else:
        fmu.instantiate()
    return fmu


def _real(fmu: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return (
        (fmu.getReal, fmu.setReal)
        if isinstance(fmu, FMU2Slave)
        else (fmu.getFloat64, fmu.setFloat64)
    )


def _set_start_values(fmu: Any, component: Component) -> None:
    for name, value in component.start_values.items():
        reference = component.file.references[name]
        if isinstance(value, str):
            fmu.setString([reference], [value])
        else:
            _real(fmu)[1]([reference], [value])


def fmpy_calls(system: System) -> Measured:
    """A plain loop over fmpy's methods: set, step, get, append."""
    fmus = [_instantiated(c.file, c.name) for c in system.components]
    reads, writes = [], []
    for i, (fmu, component) in enumerate(zip(fmus, system.components, strict=True)):
        file = component.file
        _set_start_values(fmu, component)
        get, set_ = _real(fmu)
        reads.append((get, [file.references[o] for o in file.outputs]))
        wired = [
            (a, component_output(system, a, o), x) for a, o, b, x in system.connections if b == i
        ]
        sources = [(a, k) for a, k, _ in wired]
        writes.append((set_, [file.references[x] for _, _, x in wired], sources))
        if system.fmi == 2:
            fmu.setupExperiment(startTime=0.0, stopTime=float(system.stop))
            fmu.enterInitializationMode()
        else:
            fmu.enterInitializationMode(startTime=0.0, stopTime=float(system.stop))
    values = [get(references) for get, references in reads]
    for _ in range(system.passes):
        for (set_, inputs, sources), (get, outputs), i in zip(
            writes, reads, range(len(fmus)), strict=True
        ):
            set_(inputs, [values[a][k] for a, k in sources])
            values[i] = get(outputs)
    for fmu in fmus:
        fmu.exitInitializationMode()
    rows = [values]
    h = float(system.step)
    clock = Clock()
    for n in range(system.steps):
        for set_, inputs, sources in writes:
            set_(inputs, [values[a][k] for a, k in sources])
        for fmu in fmus:
            fmu.doStep(n * h, h)
        values = [get(outputs) for get, outputs in reads]
        rows.append(values)
    measured = clock.measured(None)
    for fmu in fmus:
        fmu.terminate()
        fmu.freeInstance()
    array = np.array([[x for part in row for x in part] for row in rows])
    return Measured(measured.wall, measured.cpu, array)


def component_output(system: System, component: int, output: str) -> int:
    """Place of an output among those of its component."""
    return system.components[component].file.outputs.index(output)


# fmpy.ssp


def fmpy_ssp(system: System) -> Measured:
    """``fmpy.ssp.simulation.simulate_ssp``, from its first step to its last."""
    from fmpy.ssp import simulation as ssp
    from fmpy.ssp.ssd import Parameter, ParameterSet

    if system.fmi != 2:
        raise NotPossibleError("FMI 2.0 only")
    if any(isinstance(v, str) for c in system.components for v in c.start_values.values()):
        raise NotPossibleError("no String parameters")
    parameters = [
        Parameter(name=f"{c.name}.{name}", type="Real", value=value)
        for c in system.components
        for name, value in c.start_values.items()
    ]
    marks: list[Clock] = []
    instantiate, free = ssp.instantiate_fmu, ssp.free_fmu

    def instantiated(*arguments: Any) -> None:
        instantiate(*arguments)
        marks[:] = [Clock()]  # the loop begins after the last one

    loop: list[Measured] = []

    def freed(component: Any) -> None:
        if not loop:
            loop.append(marks[0].measured(None))
        free(component)

    with folder() as work:
        archive = _ssp(system, work)
        with (
            mock.patch.object(ssp, "instantiate_fmu", instantiated),
            mock.patch.object(ssp, "free_fmu", freed),
        ):
            table = ssp.simulate_ssp(
                str(archive),
                stop_time=(system.steps - 0.5) * float(system.step),
                step_size=float(system.step),
                parameter_set=ParameterSet(name="p", parameters=parameters),
            )
    rows = np.column_stack([table[name] for name in system.names])
    return Measured(loop[0].wall, loop[0].cpu, rows)


def _ssp(system: System, work: Path) -> Path:
    ssd = "http://ssp-standard.org/SSP1/SystemStructureDescription"
    ssc = "http://ssp-standard.org/SSP1/SystemStructureCommon"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<ssd:SystemStructureDescription xmlns:ssd="{ssd}" xmlns:ssc="{ssc}" version="1.0" name="s">',
        '<ssd:System name="s"><ssd:Elements>',
    ]
    archive = work / "system.ssp"
    with ZipFile(archive, "w") as z:
        for path in {c.path for c in system.components}:
            z.write(path, f"resources/{path.name}")
        for c in system.components:
            lines.append(
                f'<ssd:Component name="{c.name}" source="resources/{c.path.name}"><ssd:Connectors>'
            )
            for kind, names in (("input", c.file.inputs), ("output", c.file.outputs)):
                lines += [
                    f'<ssd:Connector name="{n}" kind="{kind}"><ssc:Real/></ssd:Connector>'
                    for n in names
                ]
            lines.append("</ssd:Connectors></ssd:Component>")
        lines.append("</ssd:Elements><ssd:Connections>")
        for a, output, b, name in system.connections:
            source, target = system.components[a].name, system.components[b].name
            lines.append(
                f'<ssd:Connection startElement="{source}" startConnector="{output}" endElement="{target}" '
                f'endConnector="{name}"/>'
            )
        lines.append("</ssd:Connections></ssd:System></ssd:SystemStructureDescription>")
        z.writestr("SystemStructure.ssd", "\n".join(lines))
    return archive


# ecos


def ecos(system: System) -> Measured:
    """ecospy, with its CSV writer, which is the only thing in it that records."""
    tbb = (
        Path(sys.prefix) / "lib" / "libtbb.so.12"
    )  # ecospy needs it and does not bring it; pip install tbb does
    if tbb.is_file():
        ctypes.CDLL(str(tbb), mode=ctypes.RTLD_GLOBAL)
    from ecospy import EcosSimulation, EcosSimulationStructure
    from ecospy.lib import EcosLib

    EcosLib.set_log_level("off")
    with folder() as work, EcosSimulationStructure() as structure:
        for c in system.components:
            structure.add_model(c.name, str(c.path))
        for a, output, b, name in system.connections:
            source, target = system.components[a].name, system.components[b].name
            structure.make_real_connection(f"{source}::{output}", f"{target}::{name}")
        start = {f"{c.name}::{n}": v for c in system.components for n, v in c.start_values.items()}
        structure.add_parameter_set("start", start)
        identifiers = [name.replace(".", "::") for name in system.names]
        with EcosSimulation(float(system.step), structure=structure) as simulation:
            simulation.add_csv_writer(str(work / "rows.csv"), identifiers=identifiers)
            simulation.init(parameter_set="start")
            clock = Clock()
            simulation.step(system.steps)
            simulation.terminate()
            measured = clock.measured(None)
        lines = (work / "rows.csv").read_text(encoding="utf-8").splitlines()
    header = [h.strip().split("[")[0] for h in lines[0].split(",")]
    table = np.array([[float(x) for x in line.split(",")] for line in lines[1:]])
    rows = table[:, [header.index(i) for i in identifiers]]
    return Measured(measured.wall, measured.cpu, rows)


# libcosim


def libcosim(system: System) -> Measured:
    """libcosimpy, with a time series observer for each output."""
    from libcosimpy.CosimEnums import CosimVariableType
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    if system.fmi != 2:
        raise NotPossibleError("FMI 2.0 only")
    execution = CosimExecution.from_step_size(step_size=int(system.step * 10**9))
    slaves = []
    for c in system.components:
        slave = CosimLocalSlave(fmu_path=str(c.path), instance_name=c.name)
        index = execution.add_local_slave(slave)
        slaves.append((slave, index))
        for name, value in c.start_values.items():
            reference = c.file.references[name]
            if isinstance(value, str):
                execution.string_initial_value(index, reference, value)
            else:
                execution.real_initial_value(index, reference, value)
    for a, output, b, name in system.connections:
        source, target = system.components[a].file, system.components[b].file
        execution.connect_real_variables(
            slaves[a][1], source.references[output], slaves[b][1], target.references[name]
        )
    observer = CosimObserver.create_time_series(buffer_size=system.steps + 10)
    execution.add_observer(observer)
    wanted = [(slaves[i][1], system.components[i].file.references[o]) for i, o in system.columns]
    for index, reference in wanted:
        observer.start_time_series(index, reference, CosimVariableType.REAL)
    execution.step(1)  # the first step also initialises
    clock = Clock()
    execution.step(system.steps - 1)
    measured = clock.measured(None)
    samples = [observer.time_series_real_samples(i, r, 1, system.steps)[2] for i, r in wanted]
    share = system.steps / (system.steps - 1)
    return Measured(measured.wall * share, measured.cpu * share, np.column_stack(samples))


# FMU container


def container(system: System) -> Measured:
    """An FMU container that holds the system, stepped and read by fmpy's calls: it does not record by itself."""
    from fmu_manipulation_toolbox.assembly import AssemblyNode

    logging.getLogger("fmu_manipulation_toolbox").setLevel(logging.ERROR)
    with folder() as work:
        node = AssemblyNode(
            "container.fmu", step_size=float(system.step), auto_link=False, auto_input=False
        )
        names = []
        for path in {c.path for c in system.components}:
            shutil.copy(path, work)
        for c in system.components:
            names.append(f"{c.name}.fmu")
            node.add_fmu(names[-1], c.path.name)
            for name, value in c.start_values.items():
                node.add_start_value(names[-1], name, str(value))
        for a, output, b, name in system.connections:
            node.add_link(names[a], output, names[b], name)
        for i, output in system.columns:
            node.add_output(names[i], output, f"{system.components[i].name}.{output}")
        node.make_fmu(work, fmi_version=2)
        file = fmu_file(work / "container.fmu")
        fmu = _instantiated(file, "container")
        fmu.setupExperiment(startTime=0.0, stopTime=float(system.stop))
        fmu.enterInitializationMode()
        fmu.exitInitializationMode()
        references = [file.references[name] for name in system.names]
        h = float(system.step)
        rows = [fmu.getReal(references)]
        clock = Clock()
        for k in range(system.steps):
            fmu.doStep(k * h, h)
            rows.append(fmu.getReal(references))
        measured = clock.measured(None)
        fmu.terminate()
        fmu.freeInstance()
    return Measured(measured.wall, measured.cpu, np.array(rows))


PEERS = (
    Tool("fmpy's calls in a loop", "fmpy", fmpy_calls, remark="all steps have the same size"),
    Tool(
        "fmpy simulate_ssp",
        "fmpy",
        fmpy_ssp,
        shift=1,
        remark="differs: inputs are 0 in the first step",
    ),
    Tool("ecospy", "ecospy", ecos, remark="CSV with 6 digits after the point"),
    Tool("libcosimpy", "libcosimpy", libcosim, shift=1),
    Tool(
        "FMU container + fmpy's calls",
        "fmu_manipulation_toolbox",
        container,
        settled=1,
        remark="as fmpy's calls",
    ),
)
