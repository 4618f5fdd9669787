"""Guesses of columns from a table that is at hand: a first draft of a declaration, to be read by a person."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from typing import Any

from ._source import here
from .errors import JobError
from .types import Bool, Category, ColumnType, Date, Decimal, Integer, Key

# A text column with more values than this is a key rather than a category.
_MOST_VALUES = 64


def infer(data: Any) -> dict[str, ColumnType]:
    """Types for the columns of a table: whole numbers, decimals, dates, booleans, categories of at most 64 values, keys.

    Ranges are rounded outwards, so that they say less of the data. Each column says what was guessed, in its `repr` and in the job file: **read it**,
    since ranges and values of categories are public, and all participants have to declare the same.
    """
    return {name: _column(name, cells) for name, cells in _columns(data).items()}


def _columns(data: Any) -> dict[str, list[Any]]:
    if isinstance(data, Mapping):
        return {str(name): list(cells) for name, cells in data.items()}
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        try:
            every = data.to_dict(as_series=False)
        except TypeError:
            every = data.to_dict(orient="list")
        return {str(name): cells for name, cells in every.items()}
    if hasattr(data, "to_pydict"):
        return {str(name): cells for name, cells in data.to_pydict().items()}
    raise JobError(f"a {type(data).__name__} is no table to guess from", source=here(), help="give a frame of pandas or polars, a table of pyarrow, or a dict of columns")


def _missing(cell: Any) -> bool:
    return cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")


def _outwards(number: decimal.Decimal, up: bool) -> decimal.Decimal:
    """The next number of one digit, and of two where that is much farther, at least as far out."""
    if number == 0:
        return decimal.Decimal(0)
    step = decimal.Decimal(1).scaleb(number.adjusted() - 1) * 5
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    return (number / step).to_integral_value(rounding) * step


def _column(name: str, cells: list[Any]) -> ColumnType:
    there = [cell for cell in cells if not _missing(cell)]
    null = len(there) < len(cells)
    made, guesses = _kind(name, there, null)
    made.guesses = (*guesses, *(["empty cells are allowed, since there are some"] if null else []))
    return made


def _kind(name: str, there: list[Any], null: bool) -> tuple[ColumnType, list[str]]:
    if not there:
        raise JobError(f"column `{name}` has no value to guess from", source=here(), help="declare it, or leave it out")
    if all(isinstance(cell, bool) or type(cell).__name__ in ("bool_", "bool") for cell in there):
        return Bool(null=null), ["true and false"]
    if all(isinstance(cell, datetime.date) for cell in there):
        days = [cell.date() if isinstance(cell, datetime.datetime) else cell for cell in there]
        low, high = min(days).year, max(days).year
        return Date(f"{low}-01-01", f"{high}-12-31", null=null), ["whole years"]
    if all(isinstance(cell, str) for cell in there):
        values = sorted(set(there))
        if len(values) <= _MOST_VALUES and len(values) < len(there):
            return Category(values, null=null), ["the values that there are"]
        return Key(80, null=null), ["a key, since it has many texts"]
    numbers = [decimal.Decimal(str(cell)) for cell in there]
    if not all(number.is_finite() for number in numbers):
        raise JobError(f"column `{name}` has an infinite number", source=here())
    scale = max(max(0, -int(number.normalize().as_tuple().exponent)) for number in numbers)
    low, high = _outwards(min(numbers), False), _outwards(max(numbers), True)
    low = min(low, decimal.Decimal(0)) if low >= 0 else low
    if scale == 0:
        floor, ceiling = low.to_integral_value(decimal.ROUND_FLOOR), high.to_integral_value(decimal.ROUND_CEILING)
        return Integer(int(floor), int(ceiling), null=null), ["the range, rounded outwards"]
    ends = [format(end.quantize(decimal.Decimal(1).scaleb(-scale)), "f") for end in (low, high)]
    return Decimal(scale, *ends, null=null), ["the digits after the point", "the range, rounded outwards"]
