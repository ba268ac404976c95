"""What a run does when an FMU is lost, as text: ``"stop"``, ``"restart:tries=3"``, ``"drop"``."""

from __future__ import annotations

from collections.abc import Mapping

from fmimaster.configure.named.text import among, defaults_of, option_name, settings_of
from fmimaster.fmu.faults.policy import Drop, FaultPolicy, Restart, Stop

FAULT_POLICIES: Mapping[str, type[FaultPolicy]] = {
    option_name(kind.__name__): kind for kind in (Stop, Restart, Drop)
}
"""Name → class."""


def fault_policy(text: str, where: str = "on_fault") -> FaultPolicy:
    """The policy of that name. Settings are its fields.

    Raises
    ------
    OptionError

    Examples
    --------
    >>> fault_policy("restart:tries=5")
    Restart(tries=5)
    """
    name, _, settings = text.partition(":")
    kind = FAULT_POLICIES[among("way to handle a fault", name, FAULT_POLICIES)]
    return kind(**settings_of(where, name, defaults_of(kind), settings))
