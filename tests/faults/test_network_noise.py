"""Noise between a run and a host: bytes are changed on the way. Both sides go on, or end with an error."""

from __future__ import annotations

import random
import socket
import sys
import threading
from contextlib import suppress

import pytest

from fmimaster import Simulation, reference_path
from fmimaster.apart.connection import SECRET, Address
from fmimaster.base.errors import FmimasterError
from fmimaster.run.choice import native_executor

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform == "win32", reason="not on Windows yet"),
    pytest.mark.skipif(native_executor() is None, reason="processes of FMUs need the kernel"),
    pytest.mark.in_this_process("the tests say which FMUs are isolated"),
]

WORD = "a secret that nobody guesses"
FMU = reference_path("fmi3/Feedthrough.fmu")


class NoisyWay:
    """Passes on what comes to a port, and changes bytes at one place of what goes one way.

    Parameters
    ----------
    connection : int
        0: the first one that is made, or 1.
    to_host : bool
        Whether what goes to the host is changed.
    """

    def __init__(self, host: Address, seed: int) -> None:
        self._random = random.Random(seed)
        self._host = host
        self._connection = self._random.randrange(2)
        self._to_host = self._random.random() < 0.5
        self._left = int(10 ** self._random.uniform(0.0, 4.0))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._socket.getsockname()[1]}"
        self._open = [self._socket]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            for number in range(2):
                here, _ = self._socket.accept()
                there = socket.create_connection(self._host)
                self._open += [here, there]
                for one, other, is_to_host in ((here, there, True), (there, here, False)):
                    noisy = number == self._connection and is_to_host == self._to_host
                    threading.Thread(
                        target=self._pass, args=(one, other, noisy), daemon=True
                    ).start()

    def _pass(self, one: socket.socket, other: socket.socket, is_noisy: bool) -> None:
        with suppress(OSError):
            while content := one.recv(1 << 16):
                if is_noisy and self._left < len(content):
                    changed = bytearray(content)
                    for at in range(self._left, min(self._left + 4, len(content))):
                        changed[at] = self._random.choice((0, 255, self._random.randrange(256)))
                    content, is_noisy = bytes(changed), False
                elif is_noisy:
                    self._left -= len(content)
                other.sendall(content)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for one in self._open:
            one.close()


def test_noise_is_survived_by_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    from fmimaster.run.isolated import remote
    from fmimaster.run.isolated.listening import Listener

    monkeypatch.setenv(SECRET, WORD)
    monkeypatch.setattr(remote, "STARTING_TIMEOUT", 2.0)
    monkeypatch.setattr(remote, "_ENDING_TIMEOUT", 0.5)
    monkeypatch.setattr("fmimaster.apart.connection.PATIENCE", 2.0)
    listener = Listener(Address("127.0.0.1", 0), WORD.encode())
    threading.Thread(target=listener.serve, daemon=True).start()
    ends = list[str]()
    for seed in range(60):
        way = NoisyWay(listener.address, seed)
        try:
            Simulation(
                FMU, isolate={"*": way.address}, call_timeout=1.0, stop_time=1, step_size=0.1
            ).run()
            ends.append("")
        except (FmimasterError, RuntimeError) as error:  # the latter if a request was changed
            ends.append(str(error))
        finally:
            way.close()
    Simulation(FMU, isolate={"*": str(listener.address)}, stop_time=1, step_size=0.1).run()
    listener.close()
    assert len(set(ends)) > 5
    assert len(list(filter(None, ends))) > 20
