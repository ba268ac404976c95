"""What processes of their own do in tests of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any, NoReturn

from fmimaster.kernel._kernel import ffi


def doubled(x: int) -> int:
    sys.stdout.write(f"doubling {x}\n")
    return 2 * x


def fail(text: str) -> NoReturn:
    raise ValueError(text)


def fail_in_a_way_of_its_own() -> NoReturn:
    class Local(Exception):
        pass

    raise Local("it cannot be pickled")


def crash() -> None:
    ffi.cast("int *", 16)[0]


def leave(status: int) -> None:
    sys.stderr.write("leaving\n")
    os._exit(status)


def sleep() -> None:
    sys.stdout.write("sleeping\n")
    time.sleep(1000)


def start_another_and_leave() -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]).pid


def allocate(size: int) -> int:
    return len(bytearray(size))


def surroundings() -> dict[str, Any]:
    return {
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "main": sys.modules["__main__"].__name__,
        "modules": "pytest" in sys.modules,
    }


def descriptors() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc/self/fd"))


def has_own_group() -> bool:
    return os.getpgrp() == os.getpid()


def sleep_apart(*_: object) -> None:
    time.sleep(1000)
