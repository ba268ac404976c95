"""The log messages of an FMU that is measured."""

from __future__ import annotations

import logging
from types import TracebackType

from fmimaster.fmu.binary import MESSAGE


class Messages(logging.Handler):
    """Collects the messages of FMUs, and keeps all messages from the standard error. A context manager."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._log = logging.getLogger("fmimaster")
        self._before = self._log.level, self._log.propagate

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message of an FMU, without the name of its instance."""
        if record.msg == MESSAGE and isinstance(record.args, tuple):
            _, status, text = record.args
            self.texts.append(f"[{status}] {text}")

    def __enter__(self) -> Messages:
        self._log.addHandler(self)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._log.removeHandler(self)
        self._log.setLevel(self._before[0])
        self._log.propagate = self._before[1]
