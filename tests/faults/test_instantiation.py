"""What FMUs are given when they are instantiated, and what is set in Intermediate Update Mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from misbehaving_fmu import VERSIONS, Act, misbehaving

from fmimaster import SystemBuilder, reference_path
from fmimaster.algorithms import GaussSeidel
from fmimaster.base.errors import CallError, ModelError
from fmimaster.front.simulate import simulate
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import FIRST_ORDER
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend

pytestmark = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")

BACKENDS = [Backend.REFERENCE, Backend.NATIVE]


@pytest.mark.parametrize(
    ("version", "files", "given"),
    [
        ("fmi3", {}, "without-resources"),
        ("fmi3", {"resources/": b""}, "with-resources"),  # an empty folder is a folder
        ("fmi3", {"resources/map.txt": b"1 2"}, "with-resources"),
        # FMI 2.0 has no null there: the location is a URI
        ("fmi2", {}, "with-resources"),
    ],
)
def test_the_resource_path_is_null_without_resources(
    version: str, files: dict[str, bytes], given: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    simulate(misbehaving(tmp_path, version, trace=trace, files=files))
    assert trace.read_text(encoding="utf-8").splitlines()[0].split()[1] == given


def polynomials(fmu: Path, backend: Backend) -> Simulation:
    """Two FMUs that feed the inputs ``u`` and ``w`` of a third with polynomials."""
    builder = SystemBuilder("system")
    builder.add("source", reference_path("fmi3/Dahlquist.fmu"))
    builder.add("pump", fmu)
    builder.connect("source.x", "pump.u")
    builder.connect("source.dx", "pump.w")
    system = builder.build(stop_time=1, step_size=0.1)
    return Simulation(system, algorithm=GaussSeidel(FIRST_ORDER), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_inputs_with_intermediate_update_are_registered_and_set(
    backend: Backend, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    fmu = misbehaving(tmp_path, "fmi3", trace=trace, providesIntermediateUpdate="true")
    polynomials(fmu, backend).run()
    lines = [line.split()[1] for line in trace.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if line.startswith("requires")] == ["requires-1"]
    assert lines.count("IntermediateSet") == lines.count("IntermediateSet-1") == 10


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_polynomials_nothing_is_registered(backend: Backend, tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    fmu = misbehaving(tmp_path, "fmi3", trace=trace, providesIntermediateUpdate="true")
    simulate(fmu, backend=backend)
    lines = trace.read_text(encoding="utf-8")
    assert "requires" not in lines
    assert "IntermediateSet" not in lines


@pytest.mark.parametrize("status", [3, 4, 99])
def test_a_call_that_fails_in_intermediate_update_mode_ends_the_step(
    status: int, tmp_path: Path
) -> None:
    said = []
    for backend in BACKENDS:
        trace = tmp_path / f"{backend.value}.txt"
        act = Act("IntermediateSet", "return", status, since=0.45)
        fmu = misbehaving(tmp_path, "fmi3", act, trace=trace, providesIntermediateUpdate="true")
        with pytest.raises(CallError, match="fmi3SetFloat64 of 'pump' returned") as caught:
            polynomials(fmu, backend).run()
        error = caught.value
        assert error.results.time.tolist()[-1] == pytest.approx(0.5)
        said.append((str(error), error.time, error.status, trace.read_text(encoding="utf-8")))
    assert said[0] == said[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_fmu_may_refuse_log_categories(version: str, tmp_path: Path) -> None:
    for status in (2, 3):
        results = simulate(misbehaving(tmp_path, version, Act("SetDebugLogging", "return", status)))
        assert results.rows == 11


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("status", [-1, 4, 99])
def test_any_other_failure_to_set_log_categories_is_an_error(
    version: str, status: int, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    fmu = misbehaving(tmp_path, version, Act("SetDebugLogging", "return", status), trace=trace)
    with pytest.raises(ModelError, match=f"{version}SetDebugLogging of 'Misbehaving' returned"):
        simulate(fmu)
    # it is freed, if that is allowed
    last = "SetDebugLogging" if status == 4 else "FreeInstance"
    assert trace.read_text(encoding="utf-8").split()[-1] == last


@pytest.mark.parametrize("version", VERSIONS)
def test_an_fmu_that_refuses_to_be_instantiated_is_named(version: str, tmp_path: Path) -> None:
    acts = Act("Instantiate", "say", "no licence"), Act("Instantiate", "return", 3)
    with pytest.raises(ModelError, match=r"cannot be instantiated as 'Misbehaving'.*no licence"):
        simulate(misbehaving(tmp_path, version, *acts))
