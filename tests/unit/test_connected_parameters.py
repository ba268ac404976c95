"""Calculated parameters that parameters of others take at the start: loops.md, section 4, I3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest
from python_fmu import Bench, PythonFmu, plan_of

from fmimaster import SystemBuilder, reference_path
from fmimaster import simulate as run_simulation
from fmimaster.base.errors import DescriptionError
from fmimaster.program.instructions.steps import Repeat
from fmimaster.results.results import Results
from fmimaster.run import Backend
from fmimaster.system.model import Causality, DataType, Variability
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

CALCULATED = {"causality": Causality.CALCULATED_PARAMETER, "variability": Variability.FIXED}


def unit(f: Callable[[float], float], *, readable: bool = True, **more: Any) -> PythonFmu:
    """q = f(p), a calculated parameter; ``readable``: in Initialization Mode, as in FMI 3.0."""
    return PythonFmu(
        parameters={"p": 0.5},
        outputs={"q": lambda v: f(v.p)},
        depends={"q": []},
        initial_depends={"q": ["p"]},
        attributes={"q": {**CALCULATED, "get_in_initialization": readable}},
        **more,
    )


def chain(readable: bool) -> dict[str, PythonFmu]:
    """a.q = 3 p, b.q = p + 1, c.q = p * p."""
    functions = {"a": lambda p: 3 * p, "b": lambda p: p + 1, "c": lambda p: p * p}
    return {name: unit(f, readable=readable) for name, f in functions.items()}


@pytest.mark.parametrize("readable", [True, False], ids=["FMI 3.0", "FMI 2.0"])
@pytest.mark.parametrize("order", list(permutations("abc")), ids="".join)
def test_a_chain_is_computed_in_its_order_however_it_is_listed(
    order: Sequence[str], readable: bool
) -> None:
    """loops.md 7.2, I3."""
    of_name = chain(readable)
    units = {name: of_name[name] for name in order}
    bench = Bench(units, ["a.q -> b.p", "b.q -> c.p"], {"a.p": 2.0}, outputs=["*.q"])
    assert bench.initialize().stopped is None
    assert [bench.value(f"{name}.q") for name in "abc"] == [6, 7, 49]
    assert not any(isinstance(i, Repeat) for i in bench.programs.initialize.instructions)
    for name, value in (("b", 6.0), ("c", 7.0)):
        assert bench.instances[name].was_set("p") == [value]


def test_a_parameter_is_set_in_initialization_mode_and_not_in_steps(simulate: Simulate) -> None:
    units = {"b": unit(lambda p: p + 1, inputs={"u": 0.0}), "a": unit(lambda p: 3 * p)}
    units["s"] = PythonFmu(outputs={"y": lambda v: v.t})
    rows = simulate(units, ["a.q -> b.p", "s.y -> b.u"], {"a.p": 2.0}, stop_time=1, step_size=0.5)
    b = units["b"].instances[0]
    calls = [call for call, what in b.log if "p" in what]
    assert calls == [FmiCall.SET_START]
    assert rows.rows == 3


def test_an_fmu_is_initialized_first_if_its_calculated_parameter_can_be_read_only_then() -> None:
    units = chain(readable=False)
    bench = Bench(units, ["a.q -> b.p", "b.q -> c.p"], {"a.p": 2.0})
    bench.initialize()
    calls = [call for call, _ in bench.instances["a"].log]
    assert calls.index(FmiCall.EXIT_INITIALIZATION_MODE) < calls.index(FmiCall.GET)


def test_a_parameter_that_is_calculated_from_itself_over_a_late_one_is_refused() -> None:
    with pytest.raises(DescriptionError, match=r"must be initialized before .*FMI 2\.0"):
        plan_of(chain(readable=False), ["a.q -> b.p", "b.q -> a.p"])


def test_parameters_are_converted_as_inputs_are() -> None:
    units = {"a": unit(lambda p: 3 * p), "b": unit(lambda p: p + 1)}
    bench = Bench(units, [("a.q -> b.p", {"factor": 2.0, "offset": 1.0})], {"a.p": 2.0})
    bench.initialize()
    assert bench.instances["b"].was_set("p") == [13.0]


def test_an_output_feeds_no_parameter() -> None:
    source = PythonFmu(outputs={"y": lambda v: 1.0})
    with pytest.raises(
        DescriptionError, match=r"'b\.p' is a parameter; it can have a start value or a"
    ):
        plan_of({"a": source, "b": unit(lambda p: p)}, ["a.y -> b.p"])


def test_types_must_fit() -> None:
    source = unit(lambda p: p)
    boolean = PythonFmu(parameters={"p": False}, attributes={"p": {"type": DataType.BOOLEAN}})
    with pytest.raises(DescriptionError, match=r"a\.q"):
        plan_of({"a": source, "b": boolean}, ["a.q -> b.p"])


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("names", ["AB", "BA"])
def test_a_chain_of_fmus(version: str, names: str) -> None:
    """loops.md 7.2, I3: A.p = 2, A.q = 3 p, B.p <- A.q, B.q = p + 1."""
    if Bench.backend is Backend.FASTEST:
        pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")
    values = {"A": {"p": 2.0, "g": 3.0}, "B": {"g": 1.0, "o": 1.0}}
    builder = SystemBuilder("chain")
    for name in names:
        builder.add(name, reference_path(f"{version}/LoopStart.fmu"), values[name])
    builder.connect("A.q", "B.p")
    results = run_simulation(
        builder, stop_time=0.2, step_size=0.1, output_variables=["*.q"], backend=Bench.backend
    )
    assert results["A.q"].tolist() == [6.0] * 3
    assert results["B.q"].tolist() == [7.0] * 3
    assert any("'B.p' gets its value from 'A.q'" in note for note in results.statistics.notes)


def test_parameters_that_are_calculated_from_each_other_are_solved() -> None:
    """a.q = p / 2 + 1, b.q = p: p = 2, which is reached exactly."""
    units = {"a": unit(lambda p: p / 2 + 1), "b": unit(lambda p: p)}
    bench = Bench(units, ["a.q -> b.p", "b.q -> a.p"], outputs=["*.q"])
    assert bench.initialize().stopped is None
    assert (bench.value("a.q"), bench.value("b.q")) == (2.0, 2.0)
