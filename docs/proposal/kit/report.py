"""What a check has found: for each requirement whether it was checked, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

EVENTS = (
    *("M1", "M3", "M6", "M8", "M10", "M11", "M14", "M15", "M16"),
    *(
        "F1",
        "F2",
        "F4",
        "F5",
        "F8",
        "F9",
        "F10",
        "F12",
        "F13",
        "F15",
        "F16",
        "F17",
        "F18",
        "F19",
        "F20",
        "F21",
    ),
)
"""All requirements that concern an FMU."""


class Report:
    """Collects verdicts."""

    def __init__(self) -> None:
        self._checked: set[str] = set()
        self._wrong: dict[str, list[str]] = {}
        self._skipped: dict[str, str] = {}
        self._missed: list[str] = []

    def judge(self, requirement: str, is_right: bool, told: str) -> None:
        """Note that a requirement was checked; `told` says what is wrong if it is broken."""
        self._checked.add(requirement)
        if not is_right:
            self.fail(requirement, told)

    def fail(self, requirement: str, told: str) -> None:
        """Note that a requirement is broken."""
        self._wrong.setdefault(requirement, []).append(told)

    def skip(self, requirement: str, why: str) -> None:
        """Note why a requirement was not checked, or not wholly."""
        self._skipped[requirement] = why

    def not_reached(self, event: str, stop: float, why: str = "") -> None:
        """Note that an event did not occur, and why if that is known."""
        told = f"event '{event}' does not occur up to {stop:g} s"
        hint = "Bring the FMU there by --set or --experiment"
        self._missed.append(f"{told}: {why}" if why else f"{told}. {hint}")

    @property
    def broken(self) -> tuple[str, ...]:
        """The requirements that are broken."""
        return tuple(r for r in EVENTS if r in self._wrong)

    @property
    def status(self) -> int:
        """Exit status: 1 if a requirement is broken, 2 if an event was not reached, else 0."""
        return 1 if self._wrong else 2 if self._missed else 0

    def lines(self) -> Iterator[str]:
        """A line for each requirement, and one for each event that was not reached."""
        for requirement in EVENTS:
            wrong = self._wrong.get(requirement)
            if wrong:
                more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
                yield f"FAIL  {requirement:4} {wrong[0]}{more}"
            elif requirement in self._checked:
                more = (
                    f"; not checked: {self._skipped[requirement]}"
                    if requirement in self._skipped
                    else ""
                )
                yield f"pass  {requirement}{more}"
            else:
                yield f"----  {requirement:4} {self._skipped.get(requirement, 'nothing to check')}"
        yield from (f"????  {text}" for text in self._missed)
