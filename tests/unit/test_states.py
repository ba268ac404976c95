"""The FMI state machine as a table."""

from __future__ import annotations

import pytest

from fmimaster.system.states import Call, State, after, call_between, calls_in, states_that_allow

LIFE = [
    (Call.SET_START, State.INSTANTIATED),
    (Call.ENTER_CONFIGURATION_MODE, State.CONFIGURATION_MODE),
    (Call.SET_STRUCTURAL, State.CONFIGURATION_MODE),
    (Call.EXIT_CONFIGURATION_MODE, State.INSTANTIATED),
    (Call.ENTER_INITIALIZATION_MODE, State.INITIALIZATION_MODE),
    (Call.SET_START, State.INITIALIZATION_MODE),
    (Call.SET_INPUT, State.INITIALIZATION_MODE),
    (Call.GET, State.INITIALIZATION_MODE),
    (Call.EXIT_INITIALIZATION_MODE, State.STEP_MODE),
    (Call.SET_INPUT, State.STEP_MODE),
    (Call.DO_STEP, State.STEP_MODE),
    (Call.GET, State.STEP_MODE),
    (Call.TERMINATE, State.TERMINATED),
    (Call.GET, State.TERMINATED),
]


def test_a_whole_life_of_an_instance_is_allowed() -> None:
    state = State.INSTANTIATED
    for call, expected in LIFE:
        following = after(state, call)
        assert following is expected, call
        state = following


@pytest.mark.parametrize("state", State)
def test_a_state_can_be_saved_and_restored_everywhere_without_leaving_it(state: State) -> None:
    assert after(state, Call.GET_FMU_STATE) is state
    assert after(state, Call.SET_FMU_STATE) is state


@pytest.mark.parametrize(
    ("state", "call"),
    [
        (State.INSTANTIATED, Call.GET),
        (State.INSTANTIATED, Call.SET_INPUT),
        (State.INSTANTIATED, Call.DO_STEP),
        (State.INSTANTIATED, Call.SET_STRUCTURAL),
        (State.CONFIGURATION_MODE, Call.SET_START),
        (State.CONFIGURATION_MODE, Call.ENTER_INITIALIZATION_MODE),
        (State.INITIALIZATION_MODE, Call.DO_STEP),
        (State.INITIALIZATION_MODE, Call.TERMINATE),
        (State.STEP_MODE, Call.SET_START),
        (State.STEP_MODE, Call.ENTER_INITIALIZATION_MODE),
        (State.TERMINATED, Call.DO_STEP),
        (State.TERMINATED, Call.TERMINATE),
    ],
)
def test_a_call_out_of_place_is_not_allowed(state: State, call: Call) -> None:
    assert after(state, call) is None
    assert state not in states_that_allow(call)


@pytest.mark.parametrize("call", Call)
def test_every_call_is_allowed_somewhere(call: Call) -> None:
    allowed = states_that_allow(call)
    assert allowed
    assert allowed == tuple(s for s in State if after(s, call) is not None)


def test_every_state_can_be_reached() -> None:
    reached = {State.INSTANTIATED}
    for _ in State:
        reached |= {s for r in reached for c in Call if (s := after(r, c)) is not None}
    assert reached == set(State)


@pytest.mark.parametrize("state", State)
def test_at_most_one_call_leads_from_one_state_to_another(state: State) -> None:
    for following in State:
        calls = [c for c in calls_in(state) if after(state, c) is following is not state]
        assert calls == ([call_between(state, following)] if calls else [])
        assert (call_between(state, following) is None) == (not calls)


def test_all_calls_of_a_state_are_those_after_which_there_is_a_state() -> None:
    for state in State:
        assert set(calls_in(state)) == {c for c in Call if after(state, c) is not None}
