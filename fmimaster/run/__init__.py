"""A run: the loop over steps, and the executors of programs."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.run.executor import Backend as Backend
else:
    __getattr__, __dir__ = public_names(__name__)
