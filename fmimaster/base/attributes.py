"""Errors for attributes that do not exist, with the one that is probably meant."""

from __future__ import annotations

from collections.abc import Mapping

from fmimaster.base.errors import did_you_mean


def unknown_attribute(
    of: object, name: str, elsewhere: Mapping[str, str], hint: str = ""
) -> AttributeError:
    """The error for an attribute that an object does not have.

    Parameters
    ----------
    elsewhere : name → what it is here
        Names that other libraries have.
    hint
        Sentence with a leading blank that is used if ``elsewhere`` does not have the name.
    """
    meant = ""
    if not name.startswith("_"):
        known = [n for n in dir(of) if not n.startswith("_")]
        given = f" Did you mean {elsewhere[name]}?" if name in elsewhere else hint
        meant = given or did_you_mean(name, known)
    return AttributeError(f"'{type(of).__name__}' object has no attribute '{name}'.{meant}")
