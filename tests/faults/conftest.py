"""The command line for the tests of this folder."""

from collections.abc import Callable

import pytest
from command_line import Outcome, command


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """run("simulate", path, ...): what the command came to."""
    return lambda *arguments: command(capfd, *arguments)
