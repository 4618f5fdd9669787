"""What sample rows use of the ranges of a job."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from . import _veil

if TYPE_CHECKING:
    import pandas
    import polars

Cell = int | decimal.Decimal | datetime.date | str | bool


@dataclass(frozen=True)
class ShadowColumn:
    """A column of a table, whose range is declared, or of a query (`derived`), whose range follows from those.

    Ranges are pairs of the least and the greatest value; `proved` is None for quotients and keys, `observed` where the sample has no value, and for keys. `bits` and
    `used_bits` are what the two take. `at_min` and `at_max` count rows at the ends of the proved range, where `clip` puts what is beyond. `max_error` is the largest distance
    from IEEE doubles, of a column that functions such as `vw.log` made.
    """

    relation: str
    derived: bool
    column: str
    type: str
    rows: int
    nulls: int
    proved: tuple[Cell, Cell] | None
    observed: tuple[Cell, Cell] | None
    bits: int | None
    used_bits: int | None
    at_min: int | None
    at_max: int | None
    max_error: float | None

    @property
    def unused_bits(self) -> int | None:
        """Bits of the proved range that no value of the sample needs; None where there is no range or no value."""
        return None if self.bits is None or self.used_bits is None else self.bits - self.used_bits


def _cell(kind: str, text: str) -> Cell:
    if kind == "integer":
        return int(text)
    if kind == "bool":
        return text == "true"
    if kind == "date":
        return datetime.date.fromisoformat(text)
    return decimal.Decimal(text) if kind.startswith("decimal") else text


def _column(of: dict[str, Any]) -> ShadowColumn:
    def ends(pair: list[str] | None) -> tuple[Cell, Cell] | None:
        return None if pair is None else (_cell(of["type"], pair[0]), _cell(of["type"], pair[1]))

    least, greatest = of.pop("at_ends") or (None, None)
    return ShadowColumn(**of | {"proved": ends(of["proved"]), "observed": ends(of["observed"]), "at_min": least, "at_max": greatest})


class Shadow:
    """What a shadow run reports, column by column: `job.shadow(data)`. Arrow takes it as it is: `pyarrow.table(report)`, `polars.DataFrame(report)`."""

    def __init__(self, json_text: str, text: str, table: _veil.Batches) -> None:
        self._text, self._table = text, table
        self._columns = [_column(of) for of in json.loads(json_text)["columns"]]

    @property
    def columns(self) -> list[ShadowColumn]:
        """The columns that queries read, by table, then those that queries make, by query."""
        return list(self._columns)

    def __getitem__(self, name: tuple[str, str]) -> ShadowColumn:
        """A column by the names of its relation and of itself: `report["stays", "cost"]`."""
        for column in self._columns:
            if (column.relation, column.column) == name:
                return column
        raise KeyError(f"{name!r}; there are {', '.join(f'{one.relation}.{one.column}' for one in self._columns)}")

    @property
    def unused_bits(self) -> dict[tuple[str, str], int]:
        """Columns whose range is wider than the sample needs, with the bits that it does not use."""
        return {(one.relation, one.column): one.unused_bits for one in self._columns if one.unused_bits}

    @property
    def clipped(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Columns of queries with rows at the ends of their range, where `clip` puts what is beyond: how many at the least value, and at the greatest."""
        return {(one.relation, one.column): (one.at_min or 0, one.at_max or 0) for one in self._columns if one.derived and (one.at_min or one.at_max)}

    @property
    def max_error(self) -> float | None:
        """The largest distance from IEEE doubles of all columns; None where no function made one."""
        return max((one.max_error for one in self._columns if one.max_error is not None), default=None)

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[ShadowColumn]:
        return iter(self._columns)

    def to_pandas(self) -> pandas.DataFrame:
        """A frame of pandas with a row for each column; values of ranges are texts."""
        import pyarrow

        made: pandas.DataFrame = pyarrow.table(self._table).to_pandas().convert_dtypes()
        return made

    def to_polars(self) -> polars.DataFrame:
        """A frame of polars with a row for each column; values of ranges are texts."""
        import polars

        return polars.DataFrame(self._table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str:
        def span(pair: tuple[Cell, Cell] | None) -> str:
            return "" if pair is None else f"{pair[0]} to {pair[1]}"

        def line(one: ShadowColumn) -> list[str]:
            bits = "" if one.bits is None else f"{'–' if one.used_bits is None else one.used_bits} of {one.bits}"
            at = "" if one.at_min is None else f"{one.at_min} and {one.at_max}"
            error = "" if one.max_error is None else f"{one.max_error:.1e}"
            return [one.relation, one.column, span(one.proved) or one.type, span(one.observed), bits, str(one.nulls), at, error]

        head = "".join(f"<th>{name}</th>" for name in ("relation", "column", "proved", "observed", "bits used", "nulls", "at the ends", "from doubles"))
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line(one)) + "</tr>" for one in self._columns)
        return f"<table><caption>shadow run</caption><tr>{head}</tr>{body}</table>"

    def __reduce__(self) -> Any:
        raise TypeError("what has data of participants is neither pickled nor copied; write it: to_pandas()")
