"""Inputs between communication points: polynomials through outputs."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.inputs.polynomial import ADAPTIVE as ADAPTIVE
    from fmimaster.inputs.polynomial import FIRST_ORDER as FIRST_ORDER
    from fmimaster.inputs.polynomial import HERMITE as HERMITE
    from fmimaster.inputs.polynomial import HOLD as HOLD
    from fmimaster.inputs.polynomial import INTERPOLATED as INTERPOLATED
    from fmimaster.inputs.polynomial import LINEAR as LINEAR
    from fmimaster.inputs.polynomial import MIDPOINT as MIDPOINT
    from fmimaster.inputs.polynomial import NEPCE as NEPCE
    from fmimaster.inputs.polynomial import QUADRATIC as QUADRATIC
    from fmimaster.inputs.polynomial import Polynomial as Polynomial
else:
    __getattr__, __dir__ = public_names(__name__)
