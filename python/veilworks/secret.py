"""Networks whose weights stay with an owner: their shape, which is public, and the table of their weights."""

from __future__ import annotations

import decimal
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, Union

from ._source import here
from .errors import JobError
from .types import Decimal

Number = Union[int, str, float, decimal.Decimal]
Bounds = Union[tuple[Number, Number], Sequence[tuple[Number, Number]]]

# The column of a table of weights.
_COLUMN = "weight"
# Digits of numbers: all that a file has room for are exact.
_EXACT = decimal.Context(prec=60, traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Inexact])


class Weights:
    """The weights and biases of a network that was split, in the order of its table: of each layer the weights of all outputs for each cell that it takes, and last the biases."""

    def __init__(self, numbers: Sequence[decimal.Decimal], places: int) -> None:
        self.numbers, self.places = list(numbers), places

    def __len__(self) -> int:
        return len(self.numbers)

    def frame(self) -> dict[str, list[decimal.Decimal]]:
        """The table, as `run_local` and `job.check` take it."""
        return {_COLUMN: list(self.numbers)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table for its owner: a `.csv` file, or a `.parquet` file by pyarrow."""
        file = pathlib.Path(path)
        if file.suffix == ".csv":
            file.write_text("\n".join([_COLUMN, *(format(number, "f") for number in self.numbers)]) + "\n", encoding="utf-8")
            return
        if file.suffix != ".parquet":
            raise JobError(f"weights are written to a `.csv` or a `.parquet` file, and not to {file}", source=here())
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise JobError(f"Parquet files are written by pyarrow, which is not installed ({error})", source=here(), help="pip install 'veilworks[arrow]', or write a `.csv` file") from None
        column = pyarrow.array(self.numbers, pyarrow.decimal128(38, self.places))
        pyarrow.parquet.write_table(pyarrow.table({_COLUMN: column}), file)

    def __repr__(self) -> str:
        # The numbers are a secret.
        return f"<Weights: {len(self)} numbers of {self.places} places>"


def _layers(of: Any) -> Iterator[tuple[int, str, Any]]:
    """The layers that have weights, each with its number and its kind."""
    for at, layer in enumerate(of["layers"]):
        for kind in ("dense", "convolution"):
            if kind in layer:
                yield at, kind, layer[kind]


def _rows(kind: str, of: Any) -> list[list[decimal.Decimal]]:
    """For each output a weight for each cell."""
    if kind == "dense":
        return [[decimal.Decimal(one) for one in row] for row in of["weights"]]
    return [[decimal.Decimal(one) for channel in row for line in channel for one in line] for row in of["weights"]]


def _least(most: decimal.Decimal, places: int) -> decimal.Decimal:
    """The least of 1, 2 and 5 times a power of ten, and of the last place, that is not below."""
    power = decimal.Decimal(1).scaleb(-places)
    if most == 0:
        return most
    while True:
        for step in (1, 2, 5):
            if step * power >= most:
                return step * power
        power = power.scaleb(1)


def _bound(of: Number, places: int) -> decimal.Decimal:
    """A bound as a decimal of so many places at most."""
    if isinstance(of, bool) or not isinstance(of, (int, str, float, decimal.Decimal)):
        raise ValueError(f"a bound is a number, and not {of!r}")
    try:
        bound = decimal.Decimal(str(of))
        if bound.is_finite() and bound >= 0:
            return bound.quantize(decimal.Decimal(1).scaleb(-places), context=_EXACT)
    except decimal.DecimalException:
        pass
    raise ValueError(f"a bound is a number from 0 on with no more than {places} places, and not {of}")


def _pairs(bounds: Any, layers: int, places: int) -> list[tuple[decimal.Decimal, decimal.Decimal] | None]:
    """The bounds of each layer."""
    if bounds is None:
        return [None] * layers
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or not bounds:
        raise ValueError("bounds are a pair, of weights and of biases, or a list of pairs")
    each = list(bounds) if isinstance(bounds[0], (tuple, list)) else [bounds] * layers
    if len(each) != layers:
        raise ValueError(f"the network has {layers} layers with weights, and bounds of {len(each)}")
    if any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in each):
        raise ValueError("the bounds of a layer are a pair, of weights and of biases")
    return [(_bound(pair[0], places), _bound(pair[1], places)) for pair in each]


def split(of: Any, bounds: Bounds | None) -> tuple[Any, Weights]:
    """The shape of a network, and its weights."""
    layers = list(_layers(of))
    if not layers:
        raise ValueError("it has no weights")
    if any("bounds" in layer for _, _, layer in layers):
        raise ValueError("it has been split before: its weights are an owner's")
    places: int = of["places"]
    shape = of | {"layers": list(of["layers"])}
    numbers: list[decimal.Decimal] = []
    for (at, kind, layer), pair in zip(layers, _pairs(bounds, len(layers), places), strict=True):
        rows, bias = _rows(kind, layer), [decimal.Decimal(one) for one in layer["bias"]]
        greatest = max(abs(one) for row in rows for one in row), max(abs(one) for one in bias)
        weight, of_bias = pair or (_least(greatest[0] or decimal.Decimal(1).scaleb(-places), places), _least(greatest[1], places))
        for what, bound, most in (("weight", weight, greatest[0]), ("bias", of_bias, greatest[1])):
            if most > bound:
                raise ValueError(f"a {what} of layer {at} is {most:f} without its sign, beyond the bound {bound.normalize():f}")
        numbers += [row[term] for term in range(len(rows[0])) for row in rows]
        numbers += bias
        left = {name: value for name, value in layer.items() if name not in ("weights", "bias")}
        size = {"size": [len(layer["weights"][0][0]), len(layer["weights"][0][0][0])]} if kind == "convolution" else {}
        shape["layers"][at] = {kind: {"outputs": len(rows)} | size | {"bounds": {"weight": f"{weight:f}", "bias": f"{of_bias:f}"}} | left}
    return shape, Weights(numbers, places)


def column(of: Any) -> dict[str, Any]:
    """The column that an owner of weights brings."""
    bounds = [decimal.Decimal(bound) for _, _, layer in _layers(of) for bound in (layer.get("bounds") or {}).values()]
    most = max(bounds, default=decimal.Decimal(0))
    return {_COLUMN: Decimal(of["places"], -most, most)}
