"""Functions in processes of their own: values, exceptions, crashes, deadlines, limits; and nothing that remains."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import acts_apart as acts
import numpy as np
import pytest
from processes import ABORT, CRASHED, is_there, needs_memory_limits, wait_until_gone

from fmimaster.apart.plain import DamagedError, decoded, encoded, error_of, plain_error
from fmimaster.apart.process import Process
from fmimaster.apart.run import EndCause, run_apart
from fmimaster.base.errors import CallError, OptionError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="how Linux forks processes")


def test_the_value_and_the_output_of_a_function_come_back() -> None:
    ended = run_apart(acts.doubled, 21)
    assert (ended.cause, ended.value, ended.output) == (EndCause.RETURNED, 42, "doubling 21\n")
    assert ended.how == ""
    assert ended.seconds > 0.0


def test_a_large_value_comes_back() -> None:
    assert run_apart(acts.allocate, 1 << 26).value == 1 << 26
    assert len(run_apart(bytes, 1 << 22).value) == 1 << 22


def test_an_exception_comes_back() -> None:
    ended = run_apart(acts.fail, "not today")
    assert ended.cause is EndCause.RAISED
    assert isinstance(ended.error, ValueError)
    assert str(ended.error) == "not today"


def test_an_exception_that_cannot_be_pickled_comes_back_as_text() -> None:
    assert str(run_apart(acts.fail_in_a_way_of_its_own).error) == "Local: it cannot be pickled"


def test_a_crash_is_survived_and_named() -> None:
    ended = run_apart(acts.crash)
    assert ended.cause is EndCause.SIGNAL
    assert ended.how == f"was ended by {CRASHED}"


def test_an_exit_is_survived_and_its_status_named() -> None:
    ended = run_apart(acts.leave, 3)
    assert (ended.cause, ended.output) == (EndCause.EXIT, "leaving\n")
    assert ended.how == f"ended with exit status 3{ABORT}"


def test_a_deadline_ends_a_function() -> None:
    ended = run_apart(acts.sleep, deadline=1.0)
    assert ended.cause is EndCause.DEADLINE
    assert ended.how == "did not end within 1 s"
    assert ended.output == "sleeping\n"
    assert ended.seconds >= 1.0


@needs_memory_limits
def test_a_memory_limit_makes_allocations_fail() -> None:
    ended = run_apart(acts.allocate, 1 << 30, memory_limit=1 << 28)
    assert ended.cause is EndCause.MEMORY
    assert ended.how == "exceeded its memory limit of 268 MB"
    assert run_apart(acts.allocate, 1 << 26, memory_limit=1 << 28).value == 1 << 26


def test_what_a_function_has_started_ends_with_it() -> None:
    wait_until_gone(run_apart(acts.start_another_and_leave).value)


def test_the_process_has_the_surroundings_of_this_one_but_nothing_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OF_THIS_TEST", "1")
    found = run_apart(acts.surroundings).value
    assert found["folder"] == str(tmp_path)
    assert found["environment"] == dict(os.environ)
    assert found["interrupt"]
    assert not found["modules"]


@LINUX
def test_the_process_has_no_descriptors_but_its_own_and_a_group_of_its_own() -> None:
    found = run_apart(acts.descriptors).value
    assert len(found) <= 5  # three, the channel, and that of the folder which is listed
    assert run_apart(acts.has_own_group).value


def test_several_threads_run_functions_apart() -> None:
    values: dict[int, int] = {}

    def work(k: int) -> None:
        values[k] = run_apart(acts.doubled, k).value

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == {k: 2 * k for k in range(4)}


@LINUX
def test_nothing_remains_open_after_many_functions() -> None:
    run_apart(acts.doubled, 1)
    before = len(os.listdir("/proc/self/fd"))
    for k in range(5):
        run_apart(acts.doubled, k)
        run_apart(acts.leave, k)
    assert len(os.listdir("/proc/self/fd")) == before


@LINUX
def test_a_process_that_is_lost_with_the_preloaded_one_says_so_and_the_next_one_works() -> None:
    process = Process(acts.sleep_apart)
    assert process.ended() is None
    server = int(
        Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
    )
    os.kill(server, signal.SIGKILL)
    end = process.kill()
    assert end.how == "was lost with the process that had started it"
    process.close()
    assert run_apart(acts.doubled, 4).value == 8
    assert not is_there(process.pid)


def test_a_function_is_found_on_the_present_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_apart(acts.doubled, 1)  # the preloaded process has the path until now
    (tmp_path / "made_later.py").write_text("def tripled(x): return 3 * x\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    tripled = importlib.import_module("made_later").tripled
    assert run_apart(tripled, 2).value == 6


def test_files_of_the_working_directory_are_not_taken_for_modules(tmp_path: Path) -> None:
    for name in ("json", "struct", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    program = (
        "import sys; sys.path[:] = sys.argv[1:]; from fmimaster.apart.run import run_apart; "
        "import acts_apart; print(run_apart(acts_apart.doubled, 2).value)"
    )
    command = [sys.executable, "-c", program, *map(os.path.abspath, sys.path)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout == "4\n", run.stderr


ORPHAN = """
import os, signal, sys
from fmimaster.apart.process import Process
import acts_apart
process = Process(acts_apart.sleep_apart)
process.ended()
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@LINUX
def test_no_process_outlives_the_one_that_has_started_it() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", ORPHAN], env=environment, stdout=subprocess.PIPE, check=False
    )
    assert run.returncode == -signal.SIGKILL
    wait_until_gone(int(run.stdout))


ENDING = """
import os
from pathlib import Path
from fmimaster.apart.run import run_apart
import acts_apart
run_apart(acts_apart.doubled, 1)
print(Path(f"/proc/self/task/{os.getpid()}/children").read_text())
"""


@LINUX
def test_a_program_waits_for_the_end_of_what_it_has_started() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", ENDING]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not is_there(int(run.stdout))
    assert run.stderr == ""  # no warning that a process still runs


def test_a_function_of_a_script_is_refused() -> None:
    def local() -> None: ...

    local.__module__ = "__main__"
    with pytest.raises(OptionError, match="Define it in a module of its own"):
        run_apart(local)


@pytest.mark.parametrize("deadline", [0.0, -1.0, float("nan")])
def test_a_deadline_that_is_not_positive_is_refused(deadline: float) -> None:
    with pytest.raises(OptionError, match=r"deadline: .*, expected a positive number of seconds"):
        run_apart(acts.doubled, 1, deadline=deadline)


def test_numbers_of_numpy_come_back_as_numbers() -> None:
    assert decoded(list[float], encoded([np.float64(1.5), np.float32(0.25)])) == [1.5, 0.25]
    assert decoded(int, encoded(np.int64(3))) == 3


def test_damage_is_told_in_words_and_not_by_classes() -> None:
    content = encoded([1.0, 2.0])
    assert decoded(list[float], content) == [1.0, 2.0]
    for damaged in (content[:-1], content + b"a", content[:3]):
        with pytest.raises(DamagedError, match=r"^lengths of parts that do not fit$"):
            decoded(list[float], damaged)


def test_errors_of_fmimaster_keep_what_they_know_and_others_only_their_text() -> None:
    ours = CallError("no step", instance="a", function="fmi3DoStep", status="Error", time=1.5)
    come_back = error_of(plain_error(ours))
    assert isinstance(come_back, CallError)
    assert (str(come_back), come_back.time, come_back.instance) == ("no step", 1.5, "a")
    foreign = ValueError("no number")
    vars(foreign)["status"] = object()  # of another package; it could not be sent
    come_back = error_of(plain_error(foreign))
    assert (type(come_back), str(come_back), vars(come_back)) == (ValueError, "no number", {})


TREE = """
import os, subprocess
from fmimaster.apart.watch import adopt_orphans, children, end_children
adopt_orphans()
spared = subprocess.Popen(["sleep", "60"])
shell = ["sh", "-c", "setsid sleep 60 & echo ready; wait"]
with subprocess.Popen(shell, stdout=subprocess.PIPE) as process:
    process.stdout.read(6)
    end_children([spared.pid])
print(children() == {spared.pid})
end_children()
print(children())
"""


@LINUX
def test_children_end_with_those_that_become_children_by_their_end() -> None:
    """A process in a session of its own is an orphan when the one that has started it was killed."""
    run = subprocess.run([sys.executable, "-c", TREE], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("True\nset()\n", "")
