"""Types of columns, as a job declares them."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Union

from ._source import here
from .errors import JobError
from .sql import exact

Number = Union[int, str, float, decimal.Decimal]
Day = Union[str, datetime.date]


def _text(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in text) + '"'


def toml(value: object) -> str:
    """A value of a job file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    raise JobError(f"a {type(value).__name__} stands in no job file", source=here())


class ColumnType:
    """A type of a column: its values, its exact range, and what its owner lets queries do with it.

    `null` allows empty cells. `of` names the column of the owner's file where that has another name. `may` lists what queries may do
    (`"filter"`, `"join"`, `"group-by"`, `"sort"`, `"window"`), `reveal` what may be opened (`"never"`, `"aggregates"`, `"rows"`).
    """

    word: ClassVar[str]
    fields: dict[str, Any]
    guesses: tuple[str, ...] = ()

    def __init__(self, fields: dict[str, Any], *, null: bool = False, of: str | Sequence[str] | None = None, may: Iterable[str] | None = None, reveal: str | None = None) -> None:
        more = {"of": of if of is None or isinstance(of, str) else list(of), "null": null or None, "may": None if may is None else list(may), "reveal": reveal}
        self.fields = {name: one for name, one in (fields | more).items() if one is not None}

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_short(one)}" for name, one in self.fields.items())
        guess = "  # guess: " + ", ".join(self.guesses) if self.guesses else ""
        return f"{type(self).__name__}({fields}){guess}"


def _short(value: object) -> str:
    if isinstance(value, list) and len(value) > 6:
        return "[" + ", ".join(map(repr, value[:5])) + f", … {len(value)} in all]"
    return repr(value)


def _whole(value: int | str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        try:
            return value.__index__()
        except (AttributeError, TypeError):
            raise JobError(f"{value!r} is no whole number", source=here(), help="an integer has whole ends; a decimal is vw.Decimal(scale, min, max)") from None
    return value


class Integer(ColumnType):
    """Whole numbers from `min` to `max`, of at most 62 bits."""

    word = "integer"

    def __init__(self, min: int, max: int, **more: Any) -> None:
        super().__init__({"min": _whole(min), "max": _whole(max)}, **more)


Int = Integer


class Decimal(ColumnType):
    """Exact decimals of `scale` digits after the point, from `min` to `max`. A float is taken if it is exactly a decimal."""

    word = "decimal"

    def __init__(self, scale: int, min: Number, max: Number, **more: Any) -> None:
        ends = {name: format(exact(end, here()), "f") if isinstance(end, float) else str(end) for name, end in (("min", min), ("max", max))}
        super().__init__({"scale": _whole(scale)} | ends, **more)


def _day(day: Day) -> str:
    return day.strftime("%Y-%m-%d") if isinstance(day, datetime.date) else day


class Date(ColumnType):
    """Days from `min` to `max`; `format` is that of text files, such as `"%d.%m.%Y"`."""

    word = "date"

    def __init__(self, min: Day, max: Day, *, format: str | None = None, **more: Any) -> None:
        super().__init__({"min": _day(min), "max": _day(max), "format": format}, **more)


class Category(ColumnType):
    """One of the public texts `values`."""

    word = "category"

    def __init__(self, values: Iterable[str], **more: Any) -> None:
        super().__init__({"values": list(values)}, **more)


class Bool(ColumnType):
    """True or false."""

    word = "bool"

    def __init__(self, **more: Any) -> None:
        super().__init__({}, **more)


class Key(ColumnType):
    """Digests of `bits` bits, 64, 80 or 128, that joins compare and no query opens; of one column of the owner's file, or of several."""

    word = "key"

    def __init__(self, bits: int = 80, **more: Any) -> None:
        super().__init__({"bits": _whole(bits)}, **more)


class Rows:
    """How many rows a table has: made by `vw.up_to`."""

    def __init__(self, up_to: int, bucket: str | None) -> None:
        self.up_to, self.bucket = up_to, bucket

    def __repr__(self) -> str:
        return f"up_to({self.up_to}" + (f", bucket={self.bucket!r})" if self.bucket else ")")


def up_to(rows: int, *, bucket: str | None = None) -> Rows:
    """At most so many rows: how many, the owner alone knows. With `bucket="pow2"` it is more than half as many."""
    return Rows(rows, bucket)
