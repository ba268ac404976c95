"""Scheduled Execution FMUs as instances: model partitions are activated when clocks are set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed, reference

from fmimaster.base.errors import CallError, ModelError
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.scheduled import ScheduledInstance
from fmimaster.system.clocks import Intervals, Qualifier
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Source

PARTITIONS = "fmi3/Partitions.fmu"


class Used:
    """An instance of Partitions with its variables by name."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._acts: dict[tuple[str, str], tuple[Any, Callable[[], None]]] = {}
        self.later = Intervals.of(1)
        self.ask = instance.intervals([self._of("later").value_reference], self.later)

    def _of(self, name: str) -> Any:
        variable = self.instance.model.variable(name)
        assert variable is not None
        return variable

    def _bound(self, verb: str, name: str) -> tuple[Any, Callable[[], None]]:
        if (verb, name) not in self._acts:
            v = self._of(name)
            values = np.zeros(1, v.type.dtype)
            make = self.instance.setter if verb == "set" else self.instance.getter
            self._acts[verb, name] = values, make(v.type, [v.value_reference], values)
        return self._acts[verb, name]

    def __setitem__(self, name: str, value: Any) -> None:
        values, act = self._bound("set", name)
        values[0] = value
        act()

    def __getitem__(self, name: str) -> Any:
        values, act = self._bound("get", name)
        act()
        return values[0].item()

    def begin(self, start: float = 0.0, **values: Any) -> None:
        self.instance.enter_initialization_mode(start, None, None)
        for name, value in values.items():
            self[name.replace("_", ".")] = value
        self.instance.enter_event_mode()

    def tick(self, *clocks: str) -> None:
        for clock in clocks:
            self[clock] = True

    def advance(self, time: float, size: float = 1.0) -> None:
        self.instance.update_discrete_states()
        self.instance.enter_step_mode()
        assert self.instance.do_step(time, size) is None
        self.instance.enter_event_mode()

    def announced(self) -> float | None:
        """The interval of `later` in s, if it has changed."""
        self.ask()
        if self.later.qualifier[0] != Qualifier.CHANGED:
            return None
        return float(self.later.counter[0] / self.later.resolution[0])


@pytest.fixture
def file() -> Iterator[FmuFile]:
    fmu = FmuFile(Source(reference(PARTITIONS)))
    yield fmu
    fmu.close()


@pytest.fixture
def fmu(file: FmuFile) -> Used:
    return Used(file.instantiate("se", InstanceOptions()))


def test_the_interface_is_chosen_if_it_is_the_only_one(file: FmuFile) -> None:
    assert file.model.interface is Interface.SCHEDULED_EXECUTION
    assert isinstance(file.instantiate("se", InstanceOptions()), ScheduledInstance)


def test_partitions_are_activated_by_priority_and_not_in_the_order_of_setting(fmu: Used) -> None:
    fmu.begin()
    for t in range(3):
        fmu.tick("fast")
        fmu.advance(float(t))
    fmu.tick("slow", "request", "fast")
    assert fmu["order"] == 123


def test_what_a_clock_activates_is_read_before_the_update(fmu: Used) -> None:
    fmu.begin()
    fmu["amount"] = 7
    fmu.tick("request", "fast")
    assert (fmu["sum"], fmu["fastTicks"], fmu["total"]) == (7, 1, 2)


def test_an_output_clock_is_active_until_it_was_read(fmu: Used) -> None:
    fmu.begin()
    active = []
    for t in range(6):
        fmu.tick("fast")
        active.append(fmu["fifth"])
        assert not fmu["fifth"]
        fmu.advance(float(t))
    assert active == [False, False, False, False, True, False]


def test_a_countdown_is_told_once_and_ticks_at_the_same_time(fmu: Used) -> None:
    fmu.begin(laterAfter=0.0)
    assert fmu.announced() is None
    fmu.tick("fast")
    assert fmu.announced() == 0.0
    assert fmu.announced() is None
    fmu.tick("later")
    assert (fmu["laterTicks"], fmu["outcome"], fmu["order"]) == (1, 1000, 14)


def test_what_was_set_is_not_read_without_an_activation(fmu: Used) -> None:
    """FMI 3.0, 5.2.2; the FMU returns Error."""
    fmu.begin()
    fmu.tick("fast")
    assert fmu["fastTicks"] == 1
    fmu["amount"] = 3
    assert fmu["fastTicks"] == 1


def test_a_second_activation_at_one_time_is_refused(fmu: Used) -> None:
    fmu.begin()
    fmu.tick("request")
    fmu.instance.update_discrete_states()
    fmu.tick("request")
    with pytest.raises(CallError, match=r"clock 'se\.request' ticks a second time at t = 0 s"):
        fmu.instance.update_discrete_states()


def test_an_error_inside_of_a_partition_is_raised(fmu: Used) -> None:
    """The clock ticks at another time than its interval says."""
    fmu.begin()
    fmu.tick("fast")
    fmu.advance(0.0, 0.5)
    fmu.tick("fast")
    with pytest.raises(
        CallError, match="fmi3ActivateModelPartition of 'se' returned fmi3Error"
    ) as e:
        fmu.instance.update_discrete_states()
    assert "'fast' is to tick at t = 1 s" in str(e.value)


def test_a_saved_state_has_the_time_and_what_is_announced(fmu: Used) -> None:
    fmu.begin(laterAfter=1.0)
    fmu.tick("fast")
    fmu.advance(0.0)
    fmu.tick("fast")
    assert fmu["fastTicks"] == 2
    fmu.instance.save(0)
    assert fmu.announced() == 0.0
    fmu.advance(1.0)
    fmu.instance.restore(0)
    assert fmu.announced() == 0.0
    assert fmu["fastTicks"] == 2
    fmu.tick("later")
    assert fmu["laterTicks"] == 1


def test_a_serialized_state_leads_another_instance_to_the_same_place(file: FmuFile) -> None:
    one, other = (Used(file.instantiate(name, InstanceOptions())) for name in ("one", "other"))
    one.begin(laterAfter=0.0)
    other.begin()
    one.tick("fast")
    assert one["fastTicks"] == 1
    other.instance.deserialize(one.instance.serialized())
    assert (other["fastTicks"], other.announced()) == (1, 0.0)
    other.tick("later")
    assert other["order"] == 14
    other.tick("fast")
    with pytest.raises(CallError, match="ticks a second time at t = 0 s"):
        other.instance.update_discrete_states()


def without_states(folder: Path) -> Path:
    return changed(
        reference(PARTITIONS),
        folder / "a.fmu",
        description=lambda text: text.replace("canGetAndSetFMUState", "other").replace(
            "canSerializeFMUState", "another"
        ),
    )


def test_without_fmu_states_a_step_can_be_undone_and_an_activation_cannot(tmp_path: Path) -> None:
    file = FmuFile(Source(without_states(tmp_path)))
    assert file.model.capabilities.can_get_and_set_fmu_state
    assert file.model.capabilities.copies_states
    fmu = Used(file.instantiate("se", InstanceOptions()))
    fmu.begin()
    fmu.tick("fast")
    fmu.instance.update_discrete_states()
    fmu.instance.enter_step_mode()
    fmu.instance.save(0)
    fmu.instance.do_step(0.0, 2.0)
    fmu.instance.restore(0)
    fmu.instance.do_step(0.0, 1.0)
    fmu.tick("fast")
    assert fmu["fastTicks"] == 2
    with pytest.raises(CallError, match="'se' cannot go back to t = 0 s: a model partition"):
        fmu.instance.restore(0)
    file.close()


def test_an_fmu_without_input_clocks_is_refused(tmp_path: Path) -> None:
    path = changed(
        reference(PARTITIONS),
        tmp_path / "a.fmu",
        description=lambda text: text.replace('<Clock name="', '<Boolean name="').replace(
            'clocks="', 'other="'
        ),
    )
    with pytest.raises(ModelError, match="offers Scheduled Execution, but has no input clock"):
        FmuFile(Source(path))


def test_a_clock_without_priority_comes_last_with_a_note(tmp_path: Path) -> None:
    path = changed(
        reference(PARTITIONS),
        tmp_path / "a.fmu",
        description=lambda text: text.replace('priority="1"', ""),
    )
    file = FmuFile(Source(path))
    assert any(
        "a clock of Scheduled Execution has no priority" in n and "request" in n
        for n in file.model.notes
    )
    fmu = Used(file.instantiate("se", InstanceOptions()))
    fmu.begin()
    for t in range(3):
        fmu.tick("fast")
        fmu.advance(float(t))
    fmu.tick("request", "slow", "fast")
    assert fmu["order"] == 132
    file.close()
