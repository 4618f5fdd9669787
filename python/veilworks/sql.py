"""Text of queries, each piece with the line of the program that made it. Names and constants become SQL here, and nowhere else."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Union

from ._source import here
from .errors import JobError, Source

if TYPE_CHECKING:
    from .loops import for_range

_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
# Words that mean something else where they stand without quotes.
_WORDS = frozenset(
    "all analyse analyze and any array as asc asymmetric at between both by case cast coalesce collate column concurrently constraint count create cross cube"
    " current_date current_time current_timestamp current_user date default deferrable desc distinct do else end escape except exists extract false fetch filter"
    " first following for foreign freeze from full grant group grouping having ilike in initially inner intersect interval into is isnull join key last lateral"
    " leading left like limit localtime localtimestamp natural not notnull null nullif nulls offset on only or order outer over overlaps partition percentile_disc"
    " placing position preceding primary qualify range recursive references returning right rollup round row rows select session_user set sets similar some"
    " substring sum symmetric table tablesample then time timestamp to top trailing trim true unbounded union unique user using values variadic verbose view when"
    " where window with within".split()
)


@dataclass(frozen=True)
class Ref:
    """A column of a relation that stands in FROM under this name."""

    alias: str
    name: str


Piece = tuple[Union[str, Ref], Union[Source, None]]
Pieces = tuple[Piece, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """An expression: words of SQL, names of columns of a relation, and expressions in it."""

    parts: tuple[str | Name | Held | Node, ...]
    source: Source | None

    def names(self) -> list[str]:
        """The columns that it reads."""
        found: list[str] = []
        for part in self.parts:
            if isinstance(part, Name):
                found.append(part.name)
            elif isinstance(part, Node):
                found.extend(part.names())
        return found

    def pieces(self, of: Callable[[str], Pieces]) -> Pieces:
        """Its text, where columns are what `of` says."""
        out: list[Piece] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append((part, self.source))
            elif isinstance(part, Name):
                out.extend((text, self.source) for text, _ in of(part.name))
            elif isinstance(part, Held):
                out.extend(part.loop._pieces(part.at, of))
            else:
                out.extend(part.pieces(of))
        return tuple(out)

    def held(self, seen: set[int] | None = None) -> list[Held]:
        """The states of loops that it reads."""
        seen = set() if seen is None else seen
        found: list[Held] = []
        if id(self) in seen:
            return found
        seen.add(id(self))
        for part in self.parts:
            if isinstance(part, Held):
                found.append(part)
            elif isinstance(part, Node):
                found.extend(part.held(seen))
        return found

    def replaced(self, by: Callable[[Held], str]) -> Node:
        """The same, with columns in the place of the states of loops."""
        if not self.held():
            return self
        parts = [Name(by(part)) if isinstance(part, Held) else part.replaced(by) if isinstance(part, Node) else part for part in self.parts]
        return Node(tuple(parts), self.source)


@dataclass(frozen=True)
class Name:
    """A column of the relation that an expression is about."""

    name: str


@dataclass(frozen=True, eq=False)
class Held:
    """A state of a loop, by its place among them: within the loop what it is so far, behind it what the last turn made."""

    loop: for_range
    at: int


def identifier(name: str) -> str:
    """A name in a query."""
    if _NAME.match(name) and name not in _WORDS:
        return name
    if "\0" in name:
        raise JobError(f"{name!r} is no name", source=here())
    return '"' + name.replace('"', '""') + '"'


def _number(number: decimal.Decimal) -> str:
    text = format(number, "f")
    return f"({text})" if text.startswith("-") else text


def literal(value: object) -> str:
    """A constant in a query, exactly."""
    source = here()
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "TRUE" if value else "FALSE"
    if isinstance(value, numbers.Integral):
        return _number(decimal.Decimal(int(value)))
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise JobError(f"{value} is no number of a query", source=source)
        return _number(value)
    if isinstance(value, float) or (isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational)):
        return _number(exact(float(value), source))
    if isinstance(value, str):
        if "\0" in value:
            raise JobError("a text of a query has no zero bytes", source=source)
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None or value.time() != datetime.time():
            raise JobError(f"{value} is a moment, and columns have dates", source=source, help="write datetime.date(year, month, day)")
        value = value.date()
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, datetime.timedelta):
        if value.seconds or value.microseconds:
            raise JobError(f"{value} is no number of days", source=source, help="dates and their differences are whole days")
        return _number(decimal.Decimal(value.days))
    if value is None:
        raise JobError("None compares to nothing", source=source, help="write .isna() or .notna()")
    raise JobError(f"a {type(value).__name__} is no constant of a query", source=source, help="constants are int, decimal.Decimal, str, bool, datetime.date and datetime.timedelta")


def exact(value: float, source: Source | None) -> decimal.Decimal:
    """A binary fraction as a decimal, if it is one of at most 18 places."""
    if value != value or value in (float("inf"), float("-inf")):
        raise JobError(f"{value} is no number of a query", source=source)
    number = decimal.Decimal(value)
    if -int(number.as_tuple().exponent) > 18:
        raise JobError(
            f"{value!r} is a binary fraction, and not exactly what it looks like: it is {number:.25g}…",
            source=source,
            help=f"write decimal.Decimal({str(value)!r}), which is exact",
        )
    return number


def flat(pieces: Pieces, qualified: bool) -> list[tuple[str, Source | None]]:
    """Text at last: columns with their relation before them, where there are several."""
    out: list[tuple[str, Source | None]] = []
    for text, source in pieces:
        if isinstance(text, Ref):
            name = identifier(text.name)
            text = f"{identifier(text.alias)}.{name}" if qualified else name
        out.append((text, source))
    return out


@dataclass(frozen=True)
class Text:
    """A query's text, and which line of the program made which part of it."""

    pieces: tuple[tuple[str, Source | None], ...]

    def __str__(self) -> str:
        return "".join(text for text, _ in self.pieces)

    def source(self, line: int, column: int) -> Source | None:
        """The line of the program that made what is at this line and column."""
        lines = str(self).split("\n")
        at = sum(len(text) + 1 for text in lines[: line - 1]) + column - 1
        passed, before = 0, None
        for text, source in self.pieces:
            passed += len(text)
            before = source or before
            if at < passed:
                return before
        return before
