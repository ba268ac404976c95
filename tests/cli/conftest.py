"""The command line for the tests of this folder."""

from collections.abc import Callable
from functools import partial

import pytest
from command_line import Outcome, command


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """run("simulate", path, ...): what the command came to."""
    return partial(command, capfd)
