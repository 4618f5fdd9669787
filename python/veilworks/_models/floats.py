"""Which decimal numbers a library sends to the left of a split: exactly, with all that its floats round.

A library compares a feature that it has rounded, to 53 binary digits or also to 24, with a threshold. Rounding never reverses the order of two numbers, so
there is one bound: numbers below it go left, and those above it do not. It is half way between the last float that goes left and the next one.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction

# What a feature goes through before it is compared: from text or a decimal to a double, and on to a single.
DOUBLE = ("d",)
SINGLE = ("d", "f")

_MOST = 2**127 - 1
_MOST_PLACES = 30


def single(of: float) -> float:
    """The nearest single: what a text stands for that is as short as singles allow."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", of))[0])
    except OverflowError:
        raise ValueError(f"{of} is no single") from None


def _bits(of: float, kind: str) -> int:
    return int(struct.unpack("<Q" if kind == "d" else "<I", struct.pack("<" + kind, of))[0])


def _next(of: float, kind: str, up: bool) -> float:
    """The float beside another one."""
    if kind == "d":
        return math.nextafter(of, math.inf if up else -math.inf)
    bits = _bits(of, kind)
    if of == 0.0:
        bits = 1 if up else 0x8000_0001
    elif (of > 0) == up:
        bits += 1
    else:
        bits -= 1
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _most(bound: Fraction, strict: bool, kind: str) -> float:
    """The greatest float that is at most a bound, or below it."""
    try:
        found = float(bound)
        if kind == "f":
            found = single(found)
    except (OverflowError, ValueError):
        raise ValueError("a threshold is beyond what its floats have") from None

    def fits(of: float) -> bool:
        return Fraction(of) < bound if strict else Fraction(of) <= bound

    while not fits(found):
        found = _next(found, kind, False)
    while fits(_next(found, kind, True)):
        found = _next(found, kind, True)
    return found + 0.0


def test(threshold: float, strict: bool, through: tuple[str, ...]) -> list[str]:
    """What is asked of the decimal number itself: `["<=", "41.5"]`, or with `<`, true where the library compares `x <= threshold`, or `x < threshold` if strict."""
    if math.isnan(threshold):
        raise ValueError("a threshold is no number")
    if threshold == math.inf:
        # All numbers that there are.
        return ["<=", str(_MOST)]
    if threshold == -math.inf:
        return ["<", str(-_MOST)]
    bound = Fraction(threshold)
    for kind in reversed(through):
        last = _most(bound, strict, kind)
        bound = (Fraction(last) + Fraction(_next(last, kind, True))) / 2
        # Ties go to the float whose last digit is 0.
        strict = _bits(last, kind) & 1 == 1
    return _written(bound, strict)


def _written(bound: Fraction, strict: bool) -> list[str]:
    places = 0
    while places < _MOST_PLACES and (bound * 10**places).denominator != 1 and abs(bound) * 10 ** (places + 1) < _MOST:
        places += 1
    scaled = bound * 10**places
    # A bound that has more digits is none of the numbers that are compared with it: what is below it is below or at the last one that can be written.
    sign = "<" if strict and scaled.denominator == 1 else "<="
    return [sign, decimal(math.floor(scaled), places)]


def decimal(units: int, places: int) -> str:
    """A number of so many units of its last place."""
    sign, digits = "-" if units < 0 else "", str(abs(units)).rjust(places + 1, "0")
    return sign + (digits[:-places] + "." + digits[-places:] if places else digits)


def rounded(of: float | Fraction, places: int) -> int:
    """Units of 10^-places, halves away from zero."""
    if isinstance(of, float) and not math.isfinite(of):
        raise ValueError("a leaf is no finite number")
    scaled: Fraction = abs(Fraction(of)) * 10**places
    units: int = math.floor(scaled + Fraction(1, 2))
    return units if of >= 0 else -units
