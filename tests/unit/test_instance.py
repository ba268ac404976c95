"""What an instance does not have is said when it is called."""

from __future__ import annotations

import numpy as np
import pytest

from fmimaster import CallError
from fmimaster.fmu.computed import SignalTable, TableInstance


def test_what_it_leaves_out_is_named() -> None:
    table = TableInstance(SignalTable("ramp", np.array([0.0, 1.0]), {}, {}), "ramp")
    with pytest.raises(
        CallError, match="EnterEventMode was called for 'ramp', which does not have"
    ):
        table.enter_event_mode()
    with pytest.raises(CallError, match="'ramp', which does not have"):
        table.update_discrete_states()
