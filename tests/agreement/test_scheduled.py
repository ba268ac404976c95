"""Scheduled Execution FMUs through every wrapper: the same calls give the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed
from guard import Guarded

from fmimaster import reference_path
from fmimaster.base.errors import CallError
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.journaled import Journaled
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.surviving import RestartedInstance
from fmimaster.plan.plan import InstancePlan
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType, Source

START = 0.5


@pytest.fixture
def file() -> Iterator[FmuFile]:
    fmu = FmuFile(Source(reference_path("fmi3/Partitions.fmu")))
    yield fmu
    fmu.close()


def trace(instance: Instance, between: Callable[[int], None] = lambda k: None) -> list[Any]:
    """All outputs and answers over ten seconds, from START on; `between` is called before each second."""
    by_name = {v.name: v for v in instance.model.variables}
    clocks = [by_name[n] for n in ("fast", "request", "slow", "later")]
    counts = [
        v for v in instance.model.variables if v.type is DataType.INT32 and v.name != "amount"
    ]
    ticks, order = np.zeros(4, np.bool_), np.zeros(1, np.int64)
    amount, fifth = np.ones(1, np.int32), np.zeros(1, np.bool_)
    numbers, later = np.zeros(len(counts), np.int32), Intervals.of(1)

    def bound(make: Any, kind: DataType, variables: list[Any], values: Any) -> Callable[[], None]:
        return make(kind, [v.value_reference for v in variables], values)  # type: ignore[no-any-return]

    set_clocks = bound(instance.setter, DataType.CLOCK, clocks, ticks)
    set_amount = bound(instance.setter, DataType.INT32, [by_name["amount"]], amount)
    set_after = bound(instance.setter, DataType.FLOAT64, [by_name["laterAfter"]], np.array([4.5]))
    get_counts = bound(instance.getter, DataType.INT32, counts, numbers)
    get_order = bound(instance.getter, DataType.INT64, [by_name["order"]], order)
    get_fifth = bound(instance.getter, DataType.CLOCK, [by_name["fifth"]], fifth)
    ask = instance.intervals([by_name["later"].value_reference], later)
    instance.enter_initialization_mode(START, None, None)
    set_after()
    ask()
    instance.enter_event_mode()
    found: list[Any] = []
    is_announced = False
    for k in range(10):
        between(k)
        for ticks[:] in ([True, k % 8 < 2, k % 4 == 3, False], [False, False, False, True]):
            if ticks[3] and not is_announced:
                continue
            set_clocks()
            if ticks[1]:
                set_amount()
            get_fifth()
            get_counts()
            get_order()
            instance.update_discrete_states()
            ask()
            is_announced = later.qualifier[0] == 2
            found.append((numbers.tolist(), order.item(), fifth.item(), later.qualifier.tolist()))
        instance.enter_step_mode()
        instance.do_step(START + k, 1.0)
        instance.enter_event_mode()
    instance.terminate()
    return found


def test_the_trace_is_the_one_that_the_readme_describes(file: FmuFile) -> None:
    found = trace(file.instantiate("se", InstanceOptions()))
    assert len(found) == 11
    assert [order for _, order, _, _ in found] == [12, 12, 1, 13, 1, 14, 1, 1, 13, 12, 12]
    assert [k for k, (_, _, fifth, _) in enumerate(found) if fifth] == [2, 7, 10]
    # fastTicks, requestTicks, slowTicks, laterTicks, total, sum, outcome
    assert found[-1][0] == [10, 4, 2, 1, 15, 4, 1000]


def test_a_guard_and_a_journal_change_nothing(file: FmuFile) -> None:
    expected = trace(file.instantiate("plain", InstanceOptions()))
    guarded = Guarded(Journaled(file.instantiate("se", InstanceOptions())))
    assert trace(guarded) == expected


@pytest.mark.parametrize("serializes", [True, False])
def test_a_new_instance_takes_over_at_any_time(file: FmuFile, serializes: bool) -> None:
    expected = trace(file.instantiate("plain", InstanceOptions()))
    journaled = Journaled(file.instantiate("se", InstanceOptions()), serializes=serializes)

    def take_over(k: int) -> None:
        noise = journaled.move_to(file.instantiate(f"se{k}", InstanceOptions()))
        assert noise.is_exact, noise

    assert trace(journaled, take_over) == expected


def isolated(file: FmuFile) -> Instance:
    from fmimaster.run.isolated.instance import IsolatedInstance
    from fmimaster.run.isolated.loss import Limits

    plan = InstancePlan("se", file.source, file.model, {}, True, False, ())
    instance = IsolatedInstance(plan, [], file, InstanceOptions(), n_places=1, limits=Limits())
    instance.load()
    return instance


def test_a_process_of_its_own_changes_nothing(file: FmuFile) -> None:
    expected = trace(file.instantiate("plain", InstanceOptions()))
    apart = isolated(file)
    try:
        assert trace(apart) == expected
    finally:
        apart.free()


def test_a_lost_process_is_started_again_with_its_activations(file: FmuFile) -> None:
    expected = trace(file.instantiate("plain", InstanceOptions()))
    made: list[Instance] = []

    def make() -> Instance:
        made.append(isolated(file))
        return made[-1]

    restarted = RestartedInstance(make, tries=3)

    def kill(k: int) -> None:
        if k in (3, 5, 8):
            made[-1].abandon()

    try:
        assert trace(restarted, kill) == expected
        assert len(made) == 4
        assert restarted.warnings == ()
    finally:
        restarted.free()


def test_an_activation_in_c_cannot_be_undone_without_fmu_states(tmp_path: Path) -> None:
    path = changed(
        reference_path("fmi3/Partitions.fmu"),
        tmp_path / "a.fmu",
        description=lambda text: text.replace("canGetAndSetFMUState", "other").replace(
            "canSerializeFMUState", "another"
        ),
    )
    without = FmuFile(Source(path))
    found = []

    def go_back(instance: Instance) -> None:
        instance.restore(0)
        instance.update_discrete_states()  # requests without an answer are sent with the next one

    for instance in (without.instantiate("se", InstanceOptions()), isolated(without)):
        fast = next(v for v in instance.model.variables if v.name == "fast")
        tick = instance.setter(DataType.CLOCK, [fast.value_reference], np.ones(1, np.bool_))
        instance.enter_initialization_mode(START, None, None)
        instance.enter_event_mode()
        instance.save(0)
        tick()
        instance.update_discrete_states()
        with pytest.raises(CallError) as error:
            go_back(instance)
        found.append((str(error.value), error.value.function, error.value.status))
        instance.free()
    without.close()
    assert found[1] == found[0]
    assert found[0][0].startswith(
        "'se' cannot go back to t = 0.5 s: a model partition was activated"
    )
