"""``fmimaster`` in processes of its own that begin at once: forks of a process that has imported what it needs.

    with Forks() as forks:
        done = forks.run("simulate", fmu, cwd=folder)

A new Python imports for half a second. This is for tests of how a command ends, not of how Python begins or of its streams.
Windows has no forks: there, each command is a new Python.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TypeAlias

from processes import PATIENCE

IMPORTED = (
    *("fmimaster.__main__", "fmimaster.commands.cli", "fmimaster.commands.simulate"),
    *("fmimaster.commands.running", "fmimaster.front.simulation", "fmimaster.run.native.executor"),
    *("fmimaster.run.reference.executor", "fmimaster.session.own_process"),
    *("fmimaster.fmu.fmi2", "fmimaster.fmu.fmi3"),
)
_NUMBER = struct.Struct("=i")


_ANEW = """import sys
{first}
sys.argv[0] = "fmimaster"
from fmimaster.__main__ import main
sys.exit(main())"""


class Forked:
    """A command that was begun, with those attributes of ``subprocess.Popen`` that tests use."""

    def __init__(self, report: int, streams: Sequence[IO[str]]) -> None:
        self._report, self._streams, self._printed = report, streams, list[str]()
        self.returncode: int | None = None
        """None while it runs; the negative number of a signal that has ended it."""
        self.pid = self._number(PATIENCE)

    def _number(self, seconds: float) -> int:
        if not select.select([self._report], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired("fmimaster", seconds)
        return int(_NUMBER.unpack(os.read(self._report, _NUMBER.size))[0])

    def wait(self, timeout: float = PATIENCE) -> int:
        """Its status."""
        if self.returncode is None:
            self.returncode = self._number(timeout)
            os.close(self._report)
        return self.returncode

    def poll(self) -> int | None:
        """Its status, if it has ended."""
        try:
            return self.wait(timeout=0.0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self) -> tuple[str, str]:
        """What it has printed to both streams when it has ended."""
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        for stream in self._streams:
            if not stream.closed:
                stream.seek(0)
                self._printed.append(stream.read())
                stream.close()
        return self._printed[0], self._printed[1]


Begun: TypeAlias = "Forked | subprocess.Popen[str]"
"""A command that was begun."""


class Forks:
    """Starts commands. The process that is forked is there from the first one on."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None

    def _serve(self) -> None:
        self._control, other = socket.socketpair()
        folder = str(Path(__file__).parent)
        code = f"import sys; sys.path[:0] = [{folder!r}]; import forks; forks.serve()"
        self._server = subprocess.Popen(
            [sys.executable, "-c", code, str(other.fileno())],
            pass_fds=[other.fileno()],
            env={
                **os.environ,
                "OPENBLAS_NUM_THREADS": "1",
            },  # a process with threads is forked badly
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        other.close()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._control.close()
            self._server.wait(PATIENCE)

    def begin(
        self,
        *arguments: object,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        first: str = "",
    ) -> Begun:
        """Start a command.

        Parameters
        ----------
        environment
            Variables beside those of this process.
        first
            Code that is executed before the command, in its process.
        """
        words = [str(a) for a in arguments]
        variables = {**os.environ, **(environment or {})}
        if sys.platform == "win32":
            return subprocess.Popen(
                [sys.executable, "-c", _ANEW.format(first=first), *words],
                cwd=cwd,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="backslashreplace",
            )
        if self._server is None:
            self._serve()
        request = {
            "arguments": words,
            "folder": str(cwd or Path.cwd()),
            "environment": variables,
            "first": first,
        }
        streams = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]  # noqa: SIM115
        reading, writing = os.pipe()
        numbers = [*(stream.fileno() for stream in streams), writing]
        socket.send_fds(self._control, [json.dumps(request).encode() + b"\n"], numbers)
        os.close(writing)
        return Forked(reading, streams)

    def run(
        self, *arguments: object, cwd: Path | None = None, first: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """The status and the outputs of a command."""
        process = self.begin(*arguments, cwd=cwd, first=first)
        out, err = process.communicate()
        return subprocess.CompletedProcess([*map(str, arguments)], process.wait(), out, err)


# In the process that is forked ----------------------------------------------------------------------------------------


def serve() -> None:
    """Fork for each request, until there will be none; a fork runs the command."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for module in IMPORTED:
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    gc.freeze()
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 3)
        while text and not text.endswith(b"\n"):
            text += control.recv(1 << 20)
        if not text:
            return
        if os.fork() == 0:
            control.close()
            _keep(descriptors[2])
            break
        for descriptor in descriptors:
            os.close(descriptor)
    request = json.loads(text)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, descriptor in enumerate(descriptors[:2], start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = ["fmimaster", *request["arguments"]]
    exec(request["first"], {})
    sys.exit(sys.modules["fmimaster.__main__"].main())


def _keep(report: int) -> None:
    """Fork the command; return in it. This process tells its number and, when it has ended, its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(report)
        return
    os.write(report, _NUMBER.pack(pid))
    _, status = os.waitpid(pid, 0)
    os.write(report, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)
