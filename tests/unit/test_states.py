"""The FMI state machine as a table."""

from __future__ import annotations

import pytest

from fmimaster.system.states import FmiCall, State, after, call_between, calls_in, states_that_allow

LIFE = [
    (FmiCall.SET_START, State.INSTANTIATED),
    (FmiCall.ENTER_CONFIGURATION_MODE, State.CONFIGURATION_MODE),
    (FmiCall.SET_STRUCTURAL, State.CONFIGURATION_MODE),
    (FmiCall.EXIT_CONFIGURATION_MODE, State.INSTANTIATED),
    (FmiCall.ENTER_INITIALIZATION_MODE, State.INITIALIZATION_MODE),
    (FmiCall.SET_START, State.INITIALIZATION_MODE),
    (FmiCall.SET_INPUT, State.INITIALIZATION_MODE),
    (FmiCall.GET, State.INITIALIZATION_MODE),
    (FmiCall.EXIT_INITIALIZATION_MODE, State.STEP_MODE),
    (FmiCall.SET_INPUT, State.STEP_MODE),
    (FmiCall.DO_STEP, State.STEP_MODE),
    (FmiCall.GET, State.STEP_MODE),
    (FmiCall.TERMINATE, State.TERMINATED),
    (FmiCall.GET, State.TERMINATED),
]


def test_a_whole_life_of_an_instance_is_allowed() -> None:
    state = State.INSTANTIATED
    for call, expected in LIFE:
        following = after(state, call)
        assert following is expected, call
        state = following


@pytest.mark.parametrize("state", State)
def test_a_state_can_be_saved_and_restored_everywhere_without_leaving_it(state: State) -> None:
    assert after(state, FmiCall.GET_FMU_STATE) is state
    assert after(state, FmiCall.SET_FMU_STATE) is state


@pytest.mark.parametrize(
    ("state", "call"),
    [
        (State.INSTANTIATED, FmiCall.GET),
        (State.INSTANTIATED, FmiCall.SET_INPUT),
        (State.INSTANTIATED, FmiCall.DO_STEP),
        (State.INSTANTIATED, FmiCall.SET_STRUCTURAL),
        (State.CONFIGURATION_MODE, FmiCall.SET_START),
        (State.CONFIGURATION_MODE, FmiCall.ENTER_INITIALIZATION_MODE),
        (State.INITIALIZATION_MODE, FmiCall.DO_STEP),
        (State.INITIALIZATION_MODE, FmiCall.TERMINATE),
        (State.STEP_MODE, FmiCall.SET_START),
        (State.STEP_MODE, FmiCall.ENTER_INITIALIZATION_MODE),
        (State.TERMINATED, FmiCall.DO_STEP),
        (State.TERMINATED, FmiCall.TERMINATE),
    ],
)
def test_a_call_out_of_place_is_not_allowed(state: State, call: FmiCall) -> None:
    assert after(state, call) is None
    assert state not in states_that_allow(call)


@pytest.mark.parametrize("call", FmiCall)
def test_every_call_is_allowed_somewhere(call: FmiCall) -> None:
    allowed = states_that_allow(call)
    assert allowed
    assert allowed == tuple(s for s in State if after(s, call) is not None)


def test_every_state_can_be_reached() -> None:
    reached = {State.INSTANTIATED}
    for _ in State:
        reached |= {s for r in reached for c in FmiCall if (s := after(r, c)) is not None}
    assert reached == set(State)


@pytest.mark.parametrize("state", State)
def test_at_most_one_call_leads_from_one_state_to_another(state: State) -> None:
    for following in State:
        calls = [c for c in calls_in(state) if after(state, c) is following is not state]
        assert calls == ([call_between(state, following)] if calls else [])
        assert (call_between(state, following) is None) == (not calls)


def test_all_calls_of_a_state_are_those_after_which_there_is_a_state() -> None:
    for state in State:
        assert set(calls_in(state)) == {c for c in FmiCall if after(state, c) is not None}
