"""What ``help()`` shows of the main entry point."""

from __future__ import annotations

import inspect
import pydoc
import re

import fmimaster
from fmimaster import Results, Simulation, simulate


def test_help_of_simulate_has_each_setting_what_it_returns_and_raises() -> None:
    page = pydoc.plain(pydoc.render_doc(simulate))
    assert re.search(r"simulate\(\s*system:", page)  # Python 3.13 begins a line behind (
    assert inspect.signature(simulate).return_annotation is Results
    for name in inspect.signature(Simulation).parameters:
        assert re.search(rf"^ +(\w+, )*{name}(, \w+)* : \S", page, re.MULTILINE), name
    for section in ("Parameters", "Returns", "Warns", "Raises", "Examples"):
        assert re.search(rf"^ +{section}\n +---", page, re.MULTILINE), section
    assert simulate.__name__ == "simulate"
    assert fmimaster.simulate is simulate
