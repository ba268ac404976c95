"""A run: FMUs are called in one thread, while the calling thread handles signals and progress."""

from fmimaster.session.attendance import Attendance
from fmimaster.session.progress import Progress, ProgressCallback, silent
from fmimaster.session.session import Session
from fmimaster.session.signals import Signals
from fmimaster.session.stepwise import Run
from fmimaster.session.work_thread import any_left_alone

__all__ = [
    "Attendance",
    "Progress",
    "ProgressCallback",
    "Run",
    "Session",
    "Signals",
    "any_left_alone",
    "silent",
]
