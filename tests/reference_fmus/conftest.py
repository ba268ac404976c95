"""What the tests of the reference FMUs share: models, versions, and instances that are freed."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fmu_checking
import pytest
from reference_instance import MODELS, VERSIONS, Instance, Instantiate


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of the reference FMUs that the package was built with."""
    folder = Path(str(importlib.resources.files("fmimaster"))) / "reference"
    if not (folder / "systems").is_dir():
        pytest.skip("the reference FMUs are not built: python fmus/build.py fmimaster/reference")
    return folder


@pytest.fixture(scope="module")
def main() -> Iterator[Any]:
    """The main function of the kit's checker for FMUs."""
    yield from fmu_checking.imported()


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def instantiate(reference: Path, tmp_path: Path) -> Iterator[Instantiate]:
    """instantiate(model, version, **options of fmpy) makes an Instance, freed after the test."""
    instances: list[Instance] = []
    logs: dict[str, list[str]] = {}

    def make(model: str, version: str, **options: Any) -> Instance:
        folder = tmp_path / f"{model}-{len(instances)}"
        archive = reference / version / f"{model}.fmu"
        instance = Instance(archive, folder, version, logs, **options)
        instances.append(instance)
        return instance

    yield make
    for instance in instances:
        instance.fmu.freeInstance()
