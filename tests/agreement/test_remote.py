"""FMUs on other machines: the bits of a run in this process, and what follows if a host is lost or is none.

Hosts are threads of this process, or commands, on the loop-back; tests/faults/test_network.py has machines of their own.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster import FmuLostError, Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import Aligned, Jacobi, Waveform
from fmimaster.apart import connection
from fmimaster.apart.connection import (
    SECRET,
    SECRET_FILE,
    Address,
    HostConnection,
    LinkRole,
    MessageKind,
)
from fmimaster.base.errors import InputError, OptionError
from fmimaster.events import EarlyReturn
from fmimaster.inputs import Polynomial
from fmimaster.run.choice import native_executor
from fmimaster.steps import FreeStep

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="not on Windows yet"),
    pytest.mark.skipif(native_executor() is None, reason="processes of FMUs need the kernel"),
    pytest.mark.in_this_process("the tests say which FMUs are isolated"),
]

WORD = "a secret that nobody guesses"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, WORD)


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """The address of a host in this process."""
    from fmimaster.run.isolated.listening import Listener

    listener = Listener(Address("127.0.0.1", 0), WORD.encode())
    thread = threading.Thread(target=listener.serve)
    thread.start()
    yield str(listener.address)
    listener.close()
    thread.join()


def assert_same_bits(one: Results, other: Results) -> None:
    assert list(one) == list(other)
    np.testing.assert_array_equal(one.time, other.time)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "derivatives": ("two-mass-b1-fmi2", {"algorithm": Jacobi(Polynomial(2, 2)), "step_size": 0.05}),
    "sweeps": (
        "two-mass-b1-fmi3",
        {
            "algorithm": Waveform(Aligned(Jacobi(Polynomial(2, 2))), sweeps=2),
            "step_size": FreeStep("0.2"),
            "event_clock": EarlyReturn(),
        },
    ),
    "clocks": ("thermostat-fmi3", {"event_clock": "early-return", "stop_time": 20.0}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_over_the_network_has_the_bits_of_one_in_this_process(host: str, name: str) -> None:
    system, settings = RUNS[name]
    path, settings = reference_path(f"systems/{system}.ssp"), {"stop_time": 1.0, **settings}
    here = Simulation(path, isolate=False, **settings).run()
    assert_same_bits(here, Simulation(path, isolate={"*": host}, **settings).run())


def test_text_binaries_and_arguments_in_python_go_over_the_network(host: str) -> None:
    path = reference_path("fmi3/Feedthrough.fmu")
    system = SystemBuilder()
    system.add("first", path, {"String_input": "Größe"})
    system.add("second", path)
    for name in Simulation(path, stop_time=1, step_size=1).run().names:
        system.connect(f"first.{name}", f"second.{name.replace('_output', '_input')}")
    times: dict[str, Any] = {"stop_time": 0.5, "step_size": 0.1}
    here = Simulation(system.build(), isolate=False, **times).run()
    for backend in ("native", "reference"):
        where: dict[str, Any] = {"first": (host,), "second": True}
        there = Simulation(system.build(), isolate=where, backend=backend, **times).run()
        assert_same_bits(here, there)


FAULT: dict[str, Any] = {"stop_time": 1.0, "step_size": 0.1}


def test_a_crash_is_told_with_fmu_address_call_and_rows(host: str) -> None:
    run = Simulation(
        reference_path("fmi3/Faulty.fmu"),
        start_values={"fault": 9, "faultTime": 0.5},
        isolate={"Faulty": host},
        **FAULT,
    )
    what = rf"'Faulty' at {host} was ended by SIGSEGV, in fmi3DoStep at t = 0\.5 s \(step 0\.1 s\)"
    with pytest.raises(FmuLostError, match=what) as caught:
        run.run()
    assert caught.value.results.rows == 6


def test_a_crash_is_survived_by_a_new_process_on_the_same_host(host: str, tmp_path: Path) -> None:
    values = {"fault": 9, "faultTime": 0.5, "marker": str(tmp_path / "crashed")}
    path = reference_path("fmi3/Faulty.fmu")
    here = Simulation(path, start_values={}, isolate=False, **FAULT).run()
    there = Simulation(
        path, start_values=values, isolate={"*": host}, on_fault="restart", **FAULT
    ).run()
    np.testing.assert_array_equal(here["x"], there["x"])
    assert any("was started again in a new process once" in n for n in there.statistics.notes)


# What is no host ------------------------------------------------------------------------------------------------------


def simulate(address: str) -> None:
    Simulation(reference_path("fmi3/Dahlquist.fmu"), isolate={"*": address}, stop_time=1).run()


def test_another_secret_is_refused(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "another secret than theirs")
    with pytest.raises(OptionError, match=rf"The host at {host} has another secret"):
        simulate(host)


def test_a_secret_is_needed_and_may_be_in_a_file(
    host: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(SECRET)
    with pytest.raises(OptionError, match=r"secret .* is not set"):
        simulate(host)
    file = tmp_path / "secret"
    monkeypatch.setenv(SECRET_FILE, str(file))
    with pytest.raises(OptionError, match=r"cannot be read"):
        simulate(host)
    file.write_text(f"{WORD}\n")
    simulate(host)


def test_another_version_is_refused(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fmimaster.run.isolated import remote

    mine = remote.identity()
    monkeypatch.setattr(remote, "identity", lambda: {**mine, "fmimaster": "0.0.1"})
    with pytest.raises(
        OptionError, match=r"has another fmimaster: 'fmimaster' is .*'0\.0\.1' here"
    ):
        simulate(host)


def test_nothing_listens_or_something_else_does() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"

        def greet() -> None:
            connection, _ = other.accept()
            connection.sendall(b"SSH-2.0-OpenSSH_9.2p1 and more")
            connection.close()

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(OptionError, match=r"is no host of fmimaster .* began with b'SSH-2"):
            simulate(address)
        thread.join()
    with pytest.raises(FmuLostError, match=rf"'Dahlquist' has no host \({address}: .*refused\)"):
        simulate(address)


@pytest.mark.parametrize(
    "where", ["engine", "tcp://a", "tcp://a:99999", "http://a:1", (), 7, ("tcp://a:1", "b")]
)
def test_what_is_no_address_is_refused(where: Any) -> None:
    with pytest.raises(OptionError, match="isolate: "):
        Simulation(reference_path("fmi3/Dahlquist.fmu"), isolate={"*": where})


def test_other_machines_reach_a_host_only_if_that_is_said() -> None:
    from fmimaster.run.isolated.listening import Listener

    with pytest.raises(OptionError, match=r"nothing is encrypted.*--unencrypted"):
        Listener(Address("0.0.0.0", 0), WORD.encode())


def test_an_fmu_without_a_binary_for_the_host_is_refused_with_its_address(
    host: str, tmp_path: Path
) -> None:
    import zipfile

    path = tmp_path / "elsewhere.fmu"
    with (
        zipfile.ZipFile(reference_path("fmi3/Dahlquist.fmu")) as original,
        zipfile.ZipFile(path, "w") as changed,
    ):
        for name in original.namelist():
            changed.writestr(name.replace("x86_64-linux", "aarch64-windows"), original.read(name))
    with pytest.raises(InputError, match=rf"At {host}: .*aarch64-windows"):
        Simulation(path, isolate={"*": host}, stop_time=1).run()


def greeted(host: str, role: LinkRole, session: bytes) -> socket.socket:
    address = Address.of(host, "host")
    return connection.connected(address, WORD.encode(), session, role)


def test_a_host_survives_what_is_no_message(host: str) -> None:
    """Before the greeting, and after it."""
    address = Address.of(host, "host")
    for content in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(200), bytes(1000)):
        with socket.create_connection(address) as stranger:
            stranger.sendall(content)
    session = connection.new_session()
    control, steps = (greeted(host, role, session) for role in LinkRole)
    with steps:
        control.sendall(b"\xff" * 100)
        wire = HostConnection(control)
        kinds = []
        while True:
            try:
                if (message := wire.next()) is not None:
                    kinds.append(message[0])
            except EOFError:
                break
        wire.close()
    assert kinds == [MessageKind.IDENTITY, MessageKind.REFUSED]
    simulate(host)
