"""What runs simulations to learn from them."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.studies import optimization as optimization
    from fmimaster.studies import sweeps as sweeps
else:
    __getattr__, __dir__ = public_names(__name__)
