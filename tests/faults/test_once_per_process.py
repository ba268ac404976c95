"""An FMU that allows one instance per process has one: told by its file and its token, over all simulations and threads.

If it is used more than once, its instances have processes of their own.
"""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import changed, reference, system

from fmimaster import ModelError, Simulation, simulate, validate
from fmimaster.front import Severity
from fmimaster.prepare import isolation

pytestmark = pytest.mark.in_this_process("second instances in the process of the run are refused")

ONCE = '<CoSimulation canBeInstantiatedOnlyOncePerProcess="true"'
SETTINGS = {"stop_time": 1, "step_size": "1/4", "isolate": False}
AUTOMATIC = {**SETTINGS, "isolate": None}


@pytest.fixture(params=["fmi2", "fmi3"])
def once(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An FMU that allows one instance per process."""
    return changed(
        reference(f"{request.param}/Dahlquist.fmu"),
        tmp_path / "once.fmu",
        description=lambda text: text.replace("<CoSimulation", ONCE, 1),
    )


def twins(once: Path, how: str) -> list[Path]:
    """The FMU and the same one under another path."""
    folder = once.parent / "other"
    folder.mkdir()
    other = folder / "twin.fmu"
    if how == "copy":
        shutil.copy(once, other)
    elif how == "symbolic link":
        other.symlink_to(once)
        if not other.exists():
            pytest.skip("wine has no symbolic links")
    else:
        other.hardlink_to(once)
    return [once, other]


@pytest.mark.parametrize("how", ["copy", "symbolic link", "hard link"])
def test_another_path_is_no_other_fmu(
    once: Path, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = system(tmp_path / "s", dict(zip("ab", twins(once, how), strict=True)))
    for act in (Simulation(path, **SETTINGS).prepare, Simulation(path, **SETTINGS).run):  # type: ignore[arg-type]
        with pytest.raises(ModelError, match=r"'b' would be the second instance of .*first is 'a'"):
            act()
    [note] = [f for f in validate(path) if f.what.startswith("a, b are instances of one FMU")]
    assert note.severity is Severity.NOTE
    monkeypatch.setattr(isolation, "native_executor", lambda: None)
    [error] = [f.what for f in validate(path) if f.severity is Severity.ERROR]
    assert error.startswith("a, b are instances of one FMU")


def test_used_more_than_once_it_has_processes_of_its_own(once: Path, tmp_path: Path) -> None:
    path = system(tmp_path / "s", {"a": once, "b": once})
    run = Simulation(path, **AUTOMATIC)  # type: ignore[arg-type]
    assert any(n.startswith("'a', 'b' have processes of their own") for n in run.prepare().notes)
    results = run.run()
    alone = simulate(once, **SETTINGS)  # type: ignore[arg-type]
    assert list(results["a.x"]) == list(results["b.x"]) == list(alone["x"])


def test_without_a_token_the_file_tells(once: Path, tmp_path: Path) -> None:
    token = "guid" if b'fmiVersion="2' in _description(once) else "instantiationToken"

    def without(text: str) -> str:
        before, _, rest = text.partition(f'{token}="')
        return f'{before}{token}="{rest[rest.index(chr(34)) :]}'

    bare = changed(once, tmp_path / "bare.fmu", description=without)
    builder = system(tmp_path / "s", {"a": bare, "b": bare})
    with pytest.raises(ModelError, match="second instance"):
        Simulation(builder, **SETTINGS).prepare()  # type: ignore[arg-type]


def _description(path: Path) -> bytes:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return archive.read("modelDescription.xml")


def test_a_simulation_in_another_thread_is_refused_while_the_first_one_runs(once: Path) -> None:
    running, ended = threading.Event(), threading.Event()
    endless = {**SETTINGS, "stop_time": 1e9, "output_interval": 1e6}

    def progress(_: object) -> None:
        running.set()
        if ended.is_set():
            raise TimeoutError

    def first() -> None:
        with pytest.raises(TimeoutError):
            Simulation(once, **endless).run(progress)  # type: ignore[arg-type]

    with ThreadPoolExecutor() as pool:
        result = pool.submit(first)
        assert running.wait(30)
        try:
            with pytest.raises(ModelError, match="second instance"):
                simulate(once, **SETTINGS)  # type: ignore[arg-type]
        finally:
            ended.set()
        result.result()
    # and it is free again, for as many simulations as come one after the other
    for _ in range(2):
        assert simulate(once, **SETTINGS).rows == 5  # type: ignore[arg-type]


def test_one_that_cannot_be_instantiated_is_not_in_use(once: Path, tmp_path: Path) -> None:
    broken = changed(
        once,
        tmp_path / "broken.fmu",
        name=lambda n: "" if n.startswith("binaries/") else n,
    )
    with pytest.raises(ModelError, match="no binary"):
        simulate(broken, **SETTINGS)  # type: ignore[arg-type]
    assert simulate(once, **SETTINGS).rows == 5  # type: ignore[arg-type]


def test_an_fmu_whose_file_is_deleted_during_the_run_is_freed(
    once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copy(once, tmp_path / "copy.fmu"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    once_and_gone = Simulation(once, **SETTINGS)  # type: ignore[arg-type]
    results = once_and_gone.run(lambda *_: once.unlink(missing_ok=True))
    assert not once.exists()
    assert results.rows == 5
    assert list(temporary.iterdir()) == []
    assert simulate(copy, **SETTINGS).rows == 5  # type: ignore[arg-type]
