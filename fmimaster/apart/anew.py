"""A Python process that is started anew: what it gets, and its end.

All that it starts ends with it, and it ends with this process. On Windows they are a job. Elsewhere they are a group, which
the new process ends when a pipe from this one is closed.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from fmimaster.apart.streams import End

_VARIABLE = "FMIMASTER_PASSED"
"""Where a new process finds the numbers of its descriptors, or handles."""

MOST_DESCRIPTORS = 8
"""Largest number of descriptors that are sent at one time."""
_ROOM = 256
"""Bytes in which Windows sends their numbers."""

_KIB = 1024


def python_arguments(module: str, words: Iterable[str]) -> list[str]:
    """Arguments of Python for the function ``main`` of a module, which gets these words, and the path of this process.

    Python imports nothing before the path is set: the working directory may have files with the names of modules.
    """
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    program = f"sys.path[:] = sys.argv[2:]; from {module} import main; main(*sys.argv[1].split())"
    path = map(os.path.abspath, sys.path)
    return [*flags, "-c", f"import sys; {program}", " ".join(words), *path]


if sys.platform == "win32":
    import _winapi
    import msvcrt

    from fmimaster.apart.job import Job, own_python, show_no_dialogs
    from fmimaster.base.memory import private_memory

    WITHOUT_CTRL_C: Mapping[str, Any] = {"creationflags": subprocess.CREATE_NO_WINDOW}
    """Options of ``Popen``: Ctrl-C belongs to the process that starts the other one."""

    class NewProcess(subprocess.Popen[bytes]):
        """A new process.

        Parameters
        ----------
        arguments
            For Python.
        descriptors
            The process gets them by :func:`passed`.
        variables
            Those that are new for it.

        Attributes
        ----------
        report : int
            What can be waited for until it has ended: a descriptor, on Windows a handle.
        """

        def __init__(
            self,
            arguments: Sequence[str],
            descriptors: Sequence[int],
            variables: Mapping[str, str],
            **options: Any,
        ) -> None:
            handles = [msvcrt.get_osfhandle(descriptor) for descriptor in descriptors]
            for handle in handles:
                os.set_handle_inheritable(handle, True)
            program, of_program = own_python()
            words = {_VARIABLE: " ".join(map(str, handles)), **of_program}
            super().__init__(
                [program, *arguments],
                env={**os.environ, **words, **variables},
                startupinfo=subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles}),
                **options,
            )
            self.report = int(self._handle)
            self._job = Job(self.report)

        def kill(self) -> None:
            """End it, and all that it has started."""
            self._job.kill()

        def close(self) -> None:
            """End it if it has not ended, and give up what belongs to it here."""
            self._job.close()

        def give(self, stream: End, descriptors: Sequence[int]) -> None:
            """Let it have these descriptors as well, by a stream to it."""
            here, same = _winapi.GetCurrentProcess(), (0, False, _winapi.DUPLICATE_SAME_ACCESS)
            handles = [msvcrt.get_osfhandle(descriptor) for descriptor in descriptors]
            there = [_winapi.DuplicateHandle(here, h, self.report, *same) for h in handles]
            stream.write(" ".join(map(str, there)).encode().ljust(_ROOM), None)

    def passed() -> list[int]:
        """In the new process, at its start: the descriptors that it was started with."""
        show_no_dialogs()
        return _opened(os.environ.pop(_VARIABLE))

    def received(channel: int) -> list[int]:
        """In the new process: the descriptors that it was given by the stream whose end this is."""
        return _opened(os.read(channel, _ROOM).decode())

    def _opened(numbers: str) -> list[int]:
        """Descriptors of handles."""
        handles = [int(number) for number in numbers.split()]
        for handle in handles:
            os.set_handle_inheritable(handle, False)
        return [msvcrt.open_osfhandle(handle, os.O_RDWR | os.O_BINARY) for handle in handles]

    def limit(memory: int | None) -> None:
        """At most so many bytes of memory more than now."""
        if memory is not None:
            me = _winapi.GetCurrentProcess()
            own = Job(me)  # inside of the other one; nobody closes it before the process ends
            own.limit_memory(private_memory(me) + memory)

else:
    import resource
    import socket

    WITHOUT_CTRL_C: Mapping[str, Any] = {"process_group": 0}

    class NewProcess(subprocess.Popen[bytes]):
        """A new process, as above."""

        def __init__(
            self,
            arguments: Sequence[str],
            descriptors: Sequence[int],
            variables: Mapping[str, str],
            **options: Any,
        ) -> None:
            life, self._life = os.pipe()
            numbers = [life, *descriptors]
            words = {_VARIABLE: " ".join(map(str, numbers))}
            try:
                super().__init__(
                    [sys.executable, *arguments],
                    env={**os.environ, **words, **variables},
                    pass_fds=numbers,
                    **options,
                )
            except BaseException:
                os.close(self._life)
                raise
            finally:
                os.close(life)
            self.report, told = os.pipe()

            def tell_of_end() -> None:
                self.wait()
                os.close(told)

            threading.Thread(target=tell_of_end, name="end of a process", daemon=True).start()

        def kill(self) -> None:
            super().kill()  # perhaps it has no group yet
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

        def close(self) -> None:
            os.close(self._life)
            os.close(self.report)

        def give(self, stream: End, descriptors: Sequence[int]) -> None:
            with socket.socket(fileno=os.dup(stream.fileno())) as connection:
                socket.send_fds(connection, [b"\0"], list(descriptors))

    def passed() -> list[int]:
        life, *descriptors = map(int, os.environ.pop(_VARIABLE).split())

        def end_with_parent() -> None:
            os.read(life, 1)
            os.killpg(0, signal.SIGKILL)

        for number in (life, *descriptors):
            os.set_inheritable(number, False)
        threading.Thread(target=end_with_parent, daemon=True).start()
        return descriptors

    def received(channel: int) -> list[int]:
        with socket.socket(fileno=os.dup(channel)) as connection:
            _, descriptors, _, _ = socket.recv_fds(connection, 1, MOST_DESCRIPTORS)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        return descriptors

    def limit(memory: int | None) -> None:
        """No core dump, and at most so many bytes of memory more than now."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if memory is not None:
            most = _data() + memory
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))

    def _data() -> int:
        """Bytes of private memory of this process, as RLIMIT_DATA counts it; 0 where it is not known."""
        with suppress(OSError), open("/proc/self/status", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("VmData:"):
                    return int(line.split()[1]) * _KIB
        return 0


class _Kept(Protocol):
    def end(self) -> None: ...
    def forget(self) -> None: ...


_T = TypeVar("_T", bound=_Kept)


class Kept(Generic[_T]):
    """A process from which the next ones come, if there is one.

    It ends with this process. In a fork of this process it is forgotten: it belongs to the other one.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.processes: list[_T] = []
        atexit.register(self._end)
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self._forget)

    def _end(self) -> None:
        with suppress(KeyboardInterrupt):  # it ends by itself, nobody has to wait for it
            while self.processes:
                self.processes.pop().end()

    def _forget(self) -> None:
        self.lock = threading.Lock()  # another thread may have held the old one
        while self.processes:
            self.processes.pop().forget()
