"""Networks as layers one after the other, and as a model's file has them. What scales cells between layers is folded into the weights beside it, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Union

MOST_FEATURES = 4096
MOST_LAYERS = 64
MOST_CELLS = 1 << 16
MOST_WEIGHTS = 1 << 20
# Bytes of what a network says of its source.
_MOST_TEXT = 200
# Binary digits of a number that stands between layers: many products of floats fit.
_MOST_BITS = 1 << 12
# Decimal digits that a sum has beyond its places, before it is rounded.
_GUARD = 40

Number = Union[float, Fraction]
# Channels, rows and columns.
Cells = tuple[int, int, int]


def named(features: Sequence[str] | None, count: int, stem: str) -> list[str]:
    """The names of so many features: those that are given, else `x0`, `x1` and so on, with another stem `p0`."""
    if not 0 < count <= MOST_FEATURES:
        raise ValueError(f"a network has 1 to {MOST_FEATURES} features, and not {count}")
    names = [f"{stem}{at}" for at in range(count)] if features is None else [str(name) for name in features]
    if len(names) != count:
        raise ValueError(f"the network has {count} features, and {len(names)} are named")
    return names


def root_below(of: Fraction) -> Fraction:
    """1 over the root of a positive number, as a decimal of more than fifty digits."""
    places = 60 + max(len(str(of.numerator)) - len(str(of.denominator)), 0)
    return Fraction(math.isqrt(of.denominator * 100**places // of.numerator), 10**places)


@dataclass(frozen=True)
class Window:
    """Windows over an image: rows and columns, how far it is to the next one, and zeros above, to the left, below and to the right."""

    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def places(self, rows: int, columns: int) -> tuple[int, int]:
        """How many there are below and beside each other."""
        top, left, bottom, right = self.padding
        found = []
        for size, stride, length, before, after in ((self.size[0], self.stride[0], rows, top, bottom), (self.size[1], self.stride[1], columns, left, right)):
            if size < 1 or stride < 1 or not 0 <= before < size or not 0 <= after < size or length + before + after < size:
                raise ValueError(f"a window of {self.size[0]} by {self.size[1]}, padding {list(self.padding)}, does not fit an image of {rows} by {columns}")
            found.append((length + before + after - size) // stride + 1)
        return found[0], found[1]


@dataclass(frozen=True)
class Affine:
    """A factor and a summand for each channel, or for each cell; `of` says which step of a library it comes from."""

    factors: tuple[Fraction, ...]
    summands: tuple[Fraction, ...]
    of: str

    def after(self, other: Affine | None) -> Affine:
        """What is done by another one first, and then by this."""
        if other is None:
            return self
        each = zip(self.factors, self.summands, other.factors, other.summands, strict=True)
        done = [(factor * first, factor * second + summand) for factor, summand, first, second in each]
        if any(max(one.numerator.bit_length(), one.denominator.bit_length()) > _MOST_BITS for pair in done for one in pair):
            raise ValueError(f"{self.of}: numbers that are multiplied between layers become too long")
        return Affine(tuple(factor for factor, _ in done), tuple(summand for _, summand in done), self.of)

    def by_cell(self, cells: Cells) -> Affine:
        """The same for each cell."""
        many = cells[1] * cells[2]
        if len(self.factors) != cells[0] or many == 1:
            return self
        factors, summands = (tuple(one for one in of for _ in range(many)) for of in (self.factors, self.summands))
        return Affine(factors, summands, self.of)

    def by_channel(self, cells: Cells) -> Affine:
        """The same for each channel, if all cells of a channel have the same."""
        many = cells[1] * cells[2]
        if len(self.factors) == cells[0]:
            return self
        parts = [of[first : first + many] for of in (self.factors, self.summands) for first in range(0, len(of), many)]
        if any(one is not part[0] and one != part[0] for part in parts for one in part):
            raise ValueError(f"{self.of} has different numbers within a channel, and a window takes one for each channel")
        return Affine(self.factors[::many], self.summands[::many], self.of)


@dataclass
class Linear:
    """A dense layer, or a convolution, which has a window: of each output its weights and its bias. `before` is done to cells first, `after` to sums."""

    weights: Sequence[Sequence[Number]]
    bias: Sequence[Number]
    window: Window | None
    before: Affine | None = None
    after: Affine | None = None

    def written(self, places: int) -> dict[str, Any]:
        """The layer of a file: each number is rounded once."""
        scale = 10**places
        terms = len(self.weights[0])
        before, summands = [(scale, 1)] * terms, [(0, 1)] * terms
        if self.before is not None:
            # Of a convolution, a channel has a weight for each cell of the window.
            many = terms // len(self.before.factors)
            before = [(factor.numerator * scale, factor.denominator) for factor in self.before.factors for _ in range(many)]
            summands = [one.as_integer_ratio() for one in self.before.summands for _ in range(many)]
        rows, bias = [], []
        for at, row in enumerate(self.weights):
            factor, summand = (self.after.factors[at], self.after.summands[at]) if self.after is not None else (Fraction(1), Fraction(0))
            over, under = factor.as_integer_ratio()
            ratios = [one.as_integer_ratio() for one in row]
            rows.append([_decimal(_rounded(n * times * over, d * by * under), places) for (n, d), (times, by) in zip(ratios, before)])
            constant = [(n * plus * over, d * by * under) for (n, d), (plus, by) in zip(ratios, summands) if n and plus]
            n, d = self.bias[at].as_integer_ratio()
            constant += [(n * over, d * under), summand.as_integer_ratio()]
            bias.append(_decimal(_total(constant, places), places))
        if self.window is None:
            return {"dense": {"weights": rows, "bias": bias}}
        high, wide = self.window.size
        images = [[[row[first + at * wide : first + (at + 1) * wide] for at in range(high)] for first in range(0, len(row), high * wide)] for row in rows]
        of: dict[str, Any] = {"weights": images, "bias": bias}
        if self.window.stride != (1, 1):
            of["stride"] = list(self.window.stride)
        if any(self.window.padding):
            of["padding"] = list(self.window.padding)
        return {"convolution": of}


def _rounded(over: int, under: int) -> int:
    """A quotient as a whole number, halves away from zero."""
    units = (2 * abs(over) + under) // (2 * under)
    return units if over >= 0 else -units


def _total(terms: Sequence[tuple[int, int]], places: int) -> int:
    """The sum of quotients in units of 10^-places, halves away from zero."""
    scale = 10 ** (places + _GUARD)
    least, open = 0, 0
    for over, under in terms:
        units, rest = divmod(over * scale, under)
        least += units
        open += rest != 0
    # The sum is at least `least`, and less than `open` more: the digits decide, unless half a unit is between these.
    low, high = _rounded(least, 10**_GUARD), _rounded(least + open, 10**_GUARD)
    if low == high:
        return low
    whole = sum((Fraction(over, under) for over, under in terms), Fraction(0)) * 10**places
    return _rounded(whole.numerator, whole.denominator)


def _decimal(units: int, places: int) -> str:
    """A number of so many units of its last place, without zeros at its end."""
    digits = str(abs(units)).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return ("-" if units < 0 else "") + whole + ("." + part if part else "")


@dataclass(frozen=True)
class Value:
    """Cells that a layer gives, -1 for the features, after what is still to be folded into a layer. Others than the next step read them if they are shared."""

    layer: int
    cells: Cells
    affine: Affine | None = None
    shared: bool = False

    @property
    def count(self) -> int:
        """How many cells there are."""
        return math.prod(self.cells)


Layer = Union[Linear, dict[str, Any]]


class Chain:
    """Layers, each of which takes what the one before gives."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.cells: Cells | None = None
        self._weights = 0

    def _last(self, value: Value) -> None:
        if value.layer != len(self.layers) - 1:
            raise ValueError("it takes what is not of the layer before it: layers stand one after the other, and an addition alone reaches back")

    def _push(self, value: Value, layer: Layer, cells: Cells) -> Value:
        if math.prod(cells) > MOST_CELLS:
            raise ValueError(f"a layer gives at most {MOST_CELLS} cells, and not {math.prod(cells)}")
        if len(self.layers) == MOST_LAYERS:
            raise ValueError(f"a network has at most {MOST_LAYERS} layers")
        if self.cells is None:
            self.cells = value.cells
        self.layers.append(layer)
        return Value(len(self.layers) - 1, cells)

    def linear(self, value: Value, weights: Sequence[Sequence[Number]], bias: Sequence[Number], window: Window | None = None) -> Value:
        """Sums of cells times weights: of all cells, or of those of windows. What is still to be done to the cells is folded into the weights."""
        self._last(value)
        terms = value.count if window is None else value.cells[0] * window.size[0] * window.size[1]
        if not weights or len(bias) != len(weights) or any(len(row) != terms for row in weights):
            raise ValueError(f"it takes {len(weights[0]) if weights else 0} cells for an output, and there are {terms}")
        self._weights += terms * len(weights)
        if self._weights > MOST_WEIGHTS:
            raise ValueError(f"a network has at most {MOST_WEIGHTS} weights")
        before = value.affine
        rows = columns = 1
        if window is not None:
            rows, columns = window.places(value.cells[1], value.cells[2])
        if before is not None and window is not None:
            before = before.by_channel(value.cells)
            if any(window.padding) and any(before.summands):
                raise ValueError(f"{before.of} adds something before a convolution that pads with zeros afterwards, and is not folded into it: do it to the data, or train without padding")
        elif before is not None:
            before = before.by_cell(value.cells)
        return self._push(value, Linear(weights, bias, window, before), (len(weights), rows, columns))

    def scaled(self, value: Value, affine: Affine) -> Value:
        """Cells times factors, and something more: in the layer before, if it is linear and is not read by others, else in the one that comes."""
        before = self.layers[value.layer] if value.layer >= 0 else None
        if len(affine.factors) not in (value.cells[0], value.count):
            raise ValueError(f"{affine.of} has numbers for {len(affine.factors)} of {value.count} cells")
        if isinstance(before, Linear) and not value.shared and value.affine is None and len(affine.factors) == value.cells[0]:
            before.after = affine.after(before.after)
            return value
        if value.affine is not None and len(value.affine.factors) != len(affine.factors):
            return replace(value, affine=affine.by_cell(value.cells).after(value.affine.by_cell(value.cells)))
        return replace(value, affine=affine.after(value.affine))

    def _plain(self, value: Value) -> None:
        if value.affine is not None:
            raise ValueError(f"{value.affine.of} is folded into a dense layer or a convolution before or after it, and there is none that nothing else reads")

    def activation(self, value: Value, word: str) -> Value:
        """A function of each cell."""
        self._last(value)
        self._plain(value)
        return self._push(value, {"activation": word}, value.cells)

    def pool(self, value: Value, kind: str, window: Window) -> Value:
        """The largest cell of each window, or the mean."""
        self._last(value)
        affine = value.affine
        if affine is not None:
            # The mean of scaled cells is the scaled mean; the largest is, if nothing is turned round.
            affine = affine.by_channel(value.cells)
            if kind == "max" and any(factor <= 0 for factor in affine.factors):
                self._plain(value)
        rows, columns = window.places(value.cells[1], value.cells[2])
        of: dict[str, Any] = {"kind": kind, "size": list(window.size)}
        if window.stride != window.size:
            of["stride"] = list(window.stride)
        return replace(self._push(value, {"pool": of}, (value.cells[0], rows, columns)), affine=affine)

    def add(self, one: Value, other: Value) -> Value:
        """Cells of the layer before, and those of an earlier one."""
        last, earlier = (one, other) if one.layer >= other.layer else (other, one)
        self._last(last)
        for value in (last, earlier):
            self._plain(value)
        if earlier.layer < 0:
            raise ValueError("it adds the features themselves: what a layer gives is added to what a later one does")
        if last.cells != earlier.cells:
            raise ValueError(f"it adds {list(earlier.cells)} to {list(last.cells)} channels, rows and columns")
        return self._push(last, {"add": earlier.layer}, last.cells)

    def finish(self, value: Value) -> None:
        """Says that these cells are what the network gives."""
        self._last(value)
        self._plain(value)
        if not self.layers:
            raise ValueError("it computes nothing of its features")

    def logit(self) -> None:
        """Leaves out a sigmoid at the end, which is above one half where what it takes is above 0."""
        if self.layers[-1] == {"activation": "sigmoid"}:
            self.layers.pop()


def model(chain: Chain, cells: int, *, source: str, features: Sequence[str], places: int, classes: Sequence[str] | None, outputs: Sequence[str] | None) -> dict[str, Any]:
    """What the file of a network has: `classes`, or `outputs`, which have names of their own if there are none."""
    if classes is not None:
        if outputs is not None:
            raise ValueError("a network has classes, or outputs, and not both")
        if len(classes) != max(cells, 2):
            raise ValueError(f"the network has {max(cells, 2)} classes, and {len(classes)} are named")
        if cells == 1:
            chain.logit()
    else:
        names = ["output"] if cells == 1 else [f"output_{at}" for at in range(cells)]
        outputs = names if outputs is None else [str(name) for name in outputs]
        if len(outputs) != cells:
            raise ValueError(f"the network has {cells} outputs, and {len(outputs)} are named")
    if not chain.layers or chain.cells is None:
        raise ValueError("it computes nothing of its features")
    # A hostile file may say more of its writer than a line has room for.
    source = "".join(one for one in source if one.isprintable()).encode()[:_MOST_TEXT].decode(errors="ignore")
    of: dict[str, Any] = {"version": 1, "kind": "network", "source": source, "places": places, "features": [{"name": name} for name in features]}
    if chain.cells[1:] != (1, 1):
        of["shape"] = list(chain.cells)
    of["layers"] = [layer.written(places) if isinstance(layer, Linear) else layer for layer in chain.layers]
    of |= {"outputs": list(outputs or ())} if classes is None else {"classes": [str(one) for one in classes]}
    return of
