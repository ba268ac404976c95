"""What all tests share: Python FMUs in place of files, and reproducible examples of hypothesis."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import pytest
from forks import Forks
from fuzzing import FUZZ_PROFILE
from hypothesis import settings
from kernel_encodings import as_written
from python_fmu import Bench, PythonFmu, describe

from fmimaster.configure.settings import Settings
from fmimaster.front import attempts
from fmimaster.front.simulation import Simulation
from fmimaster.prepare.prepared import OwnProcess
from fmimaster.results import growth
from fmimaster.results.results import Results
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend

settings.register_profile("fmimaster", deadline=None, derandomize=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-minutes",
        type=float,
        default=0,
        metavar="N",
        help="run each test in tests/fuzz/ for N minutes, with other examples each time",
    )

    parser.addoption(
        "--as-written", action="store_true", help="the kernel executes programs as they are written"
    )

    parser.addoption(
        "--isolate",
        action="store_true",
        help="all FMUs have processes of their own, unless a test decides; FMUs in Python stay where they are",
    )

    parser.addoption(
        "--repetitions",
        type=int,
        metavar="N",
        help="repeat N times what tests of faults and interrupted runs repeat; default: as few as each test needs",
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(FUZZ_PROFILE if config.getoption("--fuzz-minutes") else "fmimaster")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The half million objects of a collection live as long as the tests: they are not searched for garbage again and
    again, which would take a tenth of the time of the tests."""
    gc.disable()
    result = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    return result


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """FMU cards that tests make are not kept in the user's folder, and none of the user's is used."""
    with pytest.MonkeyPatch.context() as patch:
        if "ZIG_GLOBAL_CACHE_DIR" not in os.environ:  # for C libraries, made for minutes
            kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            patch.setenv("ZIG_GLOBAL_CACHE_DIR", str(kept / "zig"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


_MEMORY = Path("/dev/shm")
"""Files in memory, on Linux."""


@pytest.fixture(autouse=True, scope="session")
def unpacked_in_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """FMUs are unpacked in memory, where there is room: some disks take 4 ms to remove one folder, and each
    unpacked FMU has about five."""
    tmp_path_factory.getbasetemp()  # what tests keep for those who look at it stays on the disk
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < 2**30:
        yield
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(params=[Backend.REFERENCE, Backend.NATIVE], ids=["reference", "native"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """The interpreter in Python, then the kernel, which must do all of the run."""
    if request.param is Backend.NATIVE and native_executor() is None:
        pytest.skip("the kernel is not built")
    chosen: Backend = request.param
    return chosen


@pytest.fixture(params=[Backend.REFERENCE, Backend.FASTEST], ids=["reference", "native"])
def each_executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a test on the interpreter in Python, and again on the kernel where that can do its system."""
    if request.param is Backend.FASTEST and native_executor() is None:
        pytest.skip("the kernel is not built")
    monkeypatch.setattr(Bench, "backend", request.param)


@pytest.fixture
def repetitions(request: pytest.FixtureRequest) -> Callable[[int], range]:
    """repetitions(usual): as many repetitions as --repetitions asks for, or the usual number."""
    asked: int | None = request.config.getoption("--repetitions")
    return lambda usual: range(usual if asked is None else asked)


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """Starts commands in processes of their own."""
    with Forks() as forks:
        yield forks


@pytest.fixture
def pyplot() -> Iterator[Any]:
    """matplotlib.pyplot as a user imports it; other tests do not find it: it keeps figures."""
    pyplot = import_module("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")
    del sys.modules["matplotlib.pyplot"]


@pytest.fixture
def windows(pyplot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a file for each figure that was shown in a window."""
    folder = tmp_path / "windows"
    folder.mkdir()
    monkeypatch.setenv("SHOWN_FIGURES", str(folder))
    pyplot.switch_backend("module://showing_backend")
    yield folder
    pyplot.switch_backend("agg")


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Simulation]:
    """simulation(units, connections, start_values, **settings): a Simulation through the front door, whose FMU files
    are Python FMUs. They are owned and freed by the Loader."""

    def make(
        units: Mapping[str, PythonFmu],
        connections: Any = (),
        start_values: Mapping[str, Any] | None = None,
        shared_events: Mapping[str, Sequence[str]] | None = None,
        **options: Any,
    ) -> Simulation:
        files = {f"{name}.fmu": unit for name, unit in units.items()}
        monkeypatch.setattr(
            "fmimaster.fmu.load.FmuFile", lambda source, **_: files[source.path.name]
        )
        options.setdefault("backend", Bench.backend)
        return Simulation(describe(units, connections, start_values, shared_events), **options)

    return make


@pytest.fixture
def not_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run does with lost FMUs applies to all FMUs, but they stay in this process: losses are raised there."""

    def instance(maker: Any, prepared: Any, i: int, options: Any) -> Any:
        planned, component = prepared.plan.instances[i], prepared.components[i]
        return maker.loader.instantiate(component, planned.name, options)

    monkeypatch.setattr(
        "fmimaster.prepare.preparation.isolated_fmus",
        lambda settings, components, *_: dict.fromkeys(components, OwnProcess()),
    )
    monkeypatch.setattr("fmimaster.session.instances.InstanceMaker.instance", instance)


@pytest.fixture
def simulate(simulation: Callable[..., Simulation]) -> Callable[..., Results]:
    """simulate(units, connections, start_values, **settings): the results of that simulation."""
    return lambda *system, **options: simulation(*system, **options).run()


@pytest.fixture(autouse=True, scope="session")
def encoding(pytestconfig: pytest.Config) -> Iterator[None]:
    """Instructions are fused, unless the kernel shall execute them as they are written."""
    with as_written() if pytestconfig.getoption("--as-written") else nullcontext():
        yield


def _stays(test: pytest.Item) -> bool:
    """Whether it is marked, with a reason."""
    marker = test.get_closest_marker("in_this_process")
    if marker is not None and not marker.args:
        pytest.fail("in_this_process has no reason")
    return marker is not None


def _isolate_used(settings: Settings) -> Any:
    """All FMUs, unless the test decides."""
    return True if settings.isolate is None else settings.isolate


@pytest.fixture(autouse=True)
def isolation(request: pytest.FixtureRequest) -> Iterator[None]:
    """FMUs are in processes of their own if the option of the test run forces it, and the test is not about FMUs in this
    process."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("--isolate") and not _stays(request.node):
            patch.setattr(Settings, "isolate_used", property(_isolate_used))
        yield


@pytest.fixture(autouse=True)
def one_run(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs are not measured by a second one unless they ask for it, or the test is marked ``measured``: there are
    thousands, many of them with rough steps. Nor do they warn of what such steps show without a measurement."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("measured") is None:
            patch.setattr(attempts, "MOST_SECONDS", -1.0)
            patch.setattr(attempts, "BEGINNING_STEPS", inf)
            patch.setattr(growth, "LEAST_STEPS", inf)
        yield


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """A job in the background of a shell ignores Ctrl-C, and so do its children: some tests press it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
