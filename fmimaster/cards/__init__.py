"""Measurements of what an FMU really does, beside what it declares: its card."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.cards.card import FmuCard as FmuCard
else:
    __getattr__, __dir__ = public_names(__name__)
