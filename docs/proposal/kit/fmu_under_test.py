"""An FMU of FMI 2.0 or FMI 3.0 as the checker reads it: its variables, its manifests, and how it may fail. Needs FMPy."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

LEVEL = "{http://fmi-standard.org/fmi-ls-manifest}"
EVENTS = "org.fmimaster.fmi-ls-events"
POLYNOMIALS = "org.fmimaster.fmi-ls-input-polynomials"


@dataclass(frozen=True)
class Event:
    """An event of the manifest; names of variables, and None for what is not declared."""

    name: str
    scope: str
    indicators: tuple[str, ...]
    derivatives: tuple[str | None, ...]
    trigger: str | None
    announce: str | None
    active: str | None
    without_step: bool
    payload: tuple[tuple[str, str], ...]
    """Output and input of each payload."""
    contact: Mapping[str, str] | None


class Fmu:
    """An unpacked FMU with its manifests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = Path(fmpy.extract(str(path)))
        self.description = fmpy.read_model_description(str(self.folder), validate=False)
        self.is_fmi3 = str(self.description.fmiVersion).startswith("3")
        self.variables = {v.name: v for v in self.description.modelVariables}
        self.manifest = self._manifest(EVENTS)
        self.version = (
            (self.manifest.get(f"{LEVEL}fmi-ls-version") or "") if self.manifest is not None else ""
        )
        found = () if self.manifest is None else self.manifest.iterfind("Event")
        self.events = tuple(_event(e) for e in found)
        self.policy = self._one("Policy")
        self.look_ahead = (self._one("LookAhead") or {}).get("next")
        own = self._manifest(POLYNOMIALS)
        roots = [r for r in (self.manifest, own) if r is not None]
        self.polynomials = [dict(e.attrib) for r in roots for e in r.iterfind("InputPolynomial")]
        signals = [s for e in self.events for s in (e.trigger, e.announce) if s]
        clocks = [s for s in signals if s in self.variables and self.variables[s].type == "Clock"]
        untriggered = [e for e in self.events if e.trigger is None]
        self.can: Any = self.description.coSimulation
        self.has_event_mode = self.is_fmi3 and bool(self.can.hasEventMode)
        self.event_mode = self.has_event_mode and bool(clocks or untriggered)
        self.saves_states = bool(self.can.canGetAndSetFMUstate)
        """Whether it can get and set its FMU state; a check that finds that it cannot makes it false."""
        self._unused: list[Any] = []

    @property
    def outputs(self) -> list[str]:
        """The outputs that ModelStructure lists."""
        return [u.variable.name for u in self.description.outputs if u.variable]

    @property
    def is_later(self) -> bool:
        """Whether the manifest is of a later minor version than this checker."""
        parts = self.version.split(".")
        return len(parts) == 3 and parts[1].isdecimal() and parts[0] == "0" and int(parts[1]) > 3

    @property
    def classes(self) -> list[str]:
        """The conformance classes by the manifest."""
        with_contact = bool(self.events) and any(e.contact for e in self.events)
        triggered = bool(self.events) and all(e.trigger for e in self.events)
        holds = {
            "indicators": bool(self.events),
            "triggers": triggered and self.policy is not None,
            "shared": triggered and any(e.scope == "shared" for e in self.events),
            "contacts": with_contact,
            "look-ahead": self.look_ahead is not None,
            "polynomials": bool(self.polynomials),
        }
        return [name for name, does in holds.items() if does]

    def is_clock(self, name: str | None) -> bool:
        """Whether a variable is a Clock."""
        return name is not None and self.variables[name].type == "Clock"

    def close(self) -> None:
        """Unload the libraries, and remove the unpacked files."""
        while self._unused:
            self._unused.pop().freeLibrary()
        shutil.rmtree(self.folder, ignore_errors=True)

    def binary(self) -> Any:
        """FMPy's object for an instance that is to be made. Loading takes long: it is used again."""
        if self._unused:
            return self._unused.pop()
        return (FMU3Slave if self.is_fmi3 else FMU2Slave)(
            guid=self.description.guid,
            unzipDirectory=str(self.folder),
            modelIdentifier=self.can.modelIdentifier,
            instanceName="checked",
        )

    def free(self, binary: Any) -> None:
        """Free the instance of an object of FMPy, which can then be used for another one."""
        (binary.fmi3FreeInstance if self.is_fmi3 else binary.fmi2FreeInstance)(binary.component)
        self._unused.append(binary)

    def manifest_file(self, name: str) -> Path:
        """Where the manifest of a layered standard is, or would be."""
        return self.folder / "extra" / name / "fmi-ls-manifest.xml"

    def _manifest(self, name: str) -> ET.Element | None:
        file = self.manifest_file(name)
        return ET.parse(file).getroot() if file.is_file() else None

    def _one(self, tag: str) -> dict[str, str] | None:
        element = None if self.manifest is None else self.manifest.find(tag)
        return None if element is None else dict(element.attrib)

    def policy_value(self, name: str) -> int | None:
        """The value of the policy parameter; None if there is none."""
        return int(self.policy[name]) if self.policy and name in self.policy else None

    def dependencies(self, output: str) -> list[str] | None:
        """The variables on which an output depends directly, by ModelStructure; None if it does not say."""
        for unknown in self.description.outputs:
            if str(unknown.variable and unknown.variable.name) == output:
                if unknown.dependencies is None:
                    return None
                return [v.name for v in unknown.dependencies]
        return None

    def dependencies_of(self, known: str) -> list[str]:
        """The outputs that depend directly on a variable; all if ModelStructure does not say."""
        return [n for n in self.outputs if (d := self.dependencies(n)) is None or known in d]

    def observed(self) -> list[str]:
        """Scalar outputs that show what an event does, and indicators; no announcements and no forecast."""
        left_out = {e.announce for e in self.events} | {self.look_ahead}
        names = [
            v.name
            for v in self.description.modelVariables
            if v.causality == "output"
            and v.type in GETTERS
            and v.type != "Clock"
            and not v.dimensions
        ]
        more = [n for e in self.events for n in (*e.indicators, *e.derivatives, e.active) if n]
        return [n for n in dict.fromkeys((*names, *more)) if n not in left_out or n in more]


def _event(element: ET.Element) -> Event:
    indicators = list(element.iterfind("Indicator"))
    contact = element.find("Contact")
    return Event(
        element.get("name", ""),
        element.get("scope", ""),
        tuple(i.get("name", "") for i in indicators),
        tuple(i.get("derivative") for i in indicators),
        element.get("trigger"),
        element.get("announce"),
        element.get("active"),
        element.get("rightLimitsWithoutStep", "false").strip() in ("true", "1"),
        tuple((p.get("output", ""), p.get("input", "")) for p in element.iterfind("Payload")),
        None if contact is None else dict(contact.attrib),
    )


class EndlessStops(Exception):
    """The FMU makes no progress."""

    def __init__(self, told: str, policy: int | None) -> None:
        super().__init__(told)
        self.policy = policy


class StopsUntilTriggered(EndlessStops):
    """FMI 2.0: after a stop its state has to be set again, and then it stops again. That is no fault."""


class StepFails(Exception):
    """A step of the FMU returned an error, or was discarded."""

    def __init__(self, told: str, status: int) -> None:
        super().__init__(told)
        self.status = status


GETTERS = {
    "Real": "getReal",
    "Integer": "getInteger",
    "Float64": "getFloat64",
    "Int32": "getInt32",
    "Int64": "getInt64",
    "Boolean": "getBoolean",
    "Clock": "getClock",
}
