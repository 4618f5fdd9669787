"""Columns of secret values, and what is made of them: expressions that are recorded, and computed by parties on shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, Union

from ._source import Secret, here
from .errors import JobError, Source
from .sql import Name, Node, literal

if TYPE_CHECKING:
    from .tables import Table

Of = TypeVar("Of", bound="Expression")
Operand = Union["Expression", Any]


class Expression(Secret):
    """An expression over the rows of a table."""

    __slots__ = ("_table", "_node", "_name")

    def __init__(self, table: Table | None, node: Node, name: str = "") -> None:
        self._table, self._node, self._name = table, node, name

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        """Functions of NumPy on columns, and arithmetic of its numbers with columns."""
        from .functions import UFUNCS

        made = UFUNCS.get(ufunc.__name__)
        if made is None or method != "__call__" or more:
            raise JobError(f"NumPy's {ufunc.__name__} is not computed on columns", source=here(), help=f"there are {', '.join(sorted(UFUNCS))}")
        if any(getattr(one, "ndim", 0) for one in inputs):
            raise JobError("an array stands beside a column", source=here(), help="constants are single numbers; rows of an owner are a table")
        # Numbers of NumPy are those of Python, which leave arithmetic with columns to columns.
        return made(*(one.item() if hasattr(one, "item") and not isinstance(one, Expression) else one for one in inputs))

    def _what(self) -> str:
        return f"column `{self._name}`" if self._name else "an expression"

    def __repr__(self) -> str:
        table = self._table._title() if self._table is not None else "constants"
        kind = self._table._declared(self._name) if self._table is not None and self._name else None
        return f"<{type(self).__name__} {self._name or 'expression'}{f': {kind!r}' if kind else ''}, of {table}>"

    def _make(self, *parts: str | Operand) -> Any:
        """An expression of words and operands, which are all of one table."""
        table = self._table
        nodes: list[str | Name | Node] = []
        aggregate = False
        for part in parts:
            if isinstance(part, _Word):
                nodes.append(part.text)
            elif isinstance(part, Expression):
                table = same(table, part._table)
                aggregate = aggregate or isinstance(part, Aggregate)
                nodes.append(part._node)
            else:
                nodes.append(literal(part))
        node = Node(tuple(nodes), here())
        return (Aggregate if aggregate else Column)(table, node)

    def _with(self, sign: str, other: Operand, swapped: bool = False) -> Any:
        a, b = (other, self) if swapped else (self, other)
        return self._make(_Word("("), a, _Word(f" {sign} "), b, _Word(")"))

    def __add__(self, other: Operand) -> Any:
        return self._with("+", other)

    def __radd__(self, other: Operand) -> Any:
        return self._with("+", other, True)

    def __sub__(self, other: Operand) -> Any:
        return self._with("-", other)

    def __rsub__(self, other: Operand) -> Any:
        return self._with("-", other, True)

    def __mul__(self, other: Operand) -> Any:
        return self._with("*", other)

    def __rmul__(self, other: Operand) -> Any:
        return self._with("*", other, True)

    def __truediv__(self, other: Operand) -> Any:
        return _quotient(self, self, other)

    def __rtruediv__(self, other: Operand) -> Any:
        return _quotient(self, other, self)

    def __mod__(self, other: Operand) -> Any:
        if isinstance(other, bool) or not isinstance(other, int) or other < 1:
            raise JobError("% takes a public whole number from 1 on", source=here())
        # As in Python, the remainder of a negative number is not negative.
        inner = self._make(_Word("(("), self, _Word(" % "), other, _Word(") + "), other, _Word(")"))
        return self._make(_Word("("), inner, _Word(" % "), other, _Word(")"))

    def __floordiv__(self, other: Operand) -> Any:
        raise JobError("// is not in the dialect", source=here(), help="write / for the exact quotient, and .round(places) for what is opened of it")

    def __pow__(self, other: Operand) -> Any:
        if isinstance(other, (bool, Expression)) or not hasattr(other, "__index__") or not 1 <= other <= 16:
            raise JobError("** takes a public whole number from 1 to 16", source=here(), help="write vw.sqrt(x), or vw.exp(y * vw.log(x))")
        return self._make(_Word("power("), self, _Word(", "), other, _Word(")"))

    def __neg__(self) -> Any:
        return self._make(_Word("(- "), self, _Word(")"))

    def __abs__(self) -> Any:
        return self._make(_Word("abs("), self, _Word(")"))

    def __eq__(self, other: Operand) -> Any:
        return self._with("=", other)

    def __ne__(self, other: Operand) -> Any:
        return self._with("<>", other)

    def __lt__(self, other: Operand) -> Any:
        return self._with("<", other)

    def __le__(self, other: Operand) -> Any:
        return self._with("<=", other)

    def __gt__(self, other: Operand) -> Any:
        return self._with(">", other)

    def __ge__(self, other: Operand) -> Any:
        return self._with(">=", other)

    def __and__(self, other: Operand) -> Any:
        return self._with("AND", other)

    def __rand__(self, other: Operand) -> Any:
        return self._with("AND", other, True)

    def __or__(self, other: Operand) -> Any:
        return self._with("OR", other)

    def __ror__(self, other: Operand) -> Any:
        return self._with("OR", other, True)

    def __invert__(self) -> Any:
        return self._make(_Word("(NOT "), self, _Word(")"))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self._what()} has no `{name}`; docs/python.md lists what columns have")

    __hash__ = Secret.__hash__

    def round(self: Of, places: int = 0) -> Of:
        """Rounded to so many decimal places, halves away from zero."""
        made: Of = self._make(_Word("round("), self, _Word(", "), places, _Word(")"))
        return made


class _Word:
    """Words of SQL, among operands that are constants where they are texts."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def same(a: Table | None, b: Table | None) -> Table | None:
    """The one table that two expressions are of."""
    if a is None or b is None or a is b:
        return a if b is None else b
    raise JobError(
        f"columns of {a._title()} and of {b._title()} stand in one expression, and rows of two tables are not the same",
        source=here(),
        help="take columns of one table: after t2 = t[condition], write t2.x; of two tables, join them first",
    )


def _quotient(of: Expression, above: Operand, below: Operand) -> Any:
    if not isinstance(below, Expression) and below == 0:
        raise JobError("a division by zero", source=here())
    divisor: tuple[Any, ...] = (below,)
    if isinstance(below, Expression):
        divisor = (_Word("nullif("), below, _Word(", 0)"))
    return of._make(_Word("("), above, _Word(" * 1.0 / "), *divisor, _Word(")"))


class Column(Expression):
    """A column of secret values: one for each row of a table. Conditions are columns, too."""

    __slots__ = ()

    def _call(self, before: str, after: str = ")") -> Column:
        made: Column = self._make(_Word(before), self, _Word(after))
        return made

    def _aggregate(self, before: str, after: str = ")") -> Aggregate:
        return Aggregate(self._table, Node((before, self._node, after), here()), self._name, True)

    def isna(self) -> Column:
        """Where there is no value."""
        return self._call("(", " IS NULL)")

    def notna(self) -> Column:
        """Where there is a value."""
        return self._call("(", " IS NOT NULL)")

    def fillna(self, value: Operand) -> Column:
        """The value, or another where there is none."""
        made: Column = self._make(_Word("coalesce("), self, _Word(", "), value, _Word(")"))
        return made

    def isin(self, values: Iterable[Any]) -> Column:
        """Where the value is one of these public ones."""
        parts: list[Any] = [_Word("("), self, _Word(" IN (")]
        for at, value in enumerate(values):
            parts += ([_Word(", ")] if at else []) + [value]
        if len(parts) == 3:
            raise JobError("isin takes at least one value", source=here())
        made: Column = self._make(*parts, _Word("))"))
        return made

    def between(self, low: Operand, high: Operand) -> Column:
        """Where the value is at least `low` and at most `high`."""
        made: Column = self._make(_Word("("), self, _Word(" BETWEEN "), low, _Word(" AND "), high, _Word(")"))
        return made

    def clip(self, low: Operand, high: Operand) -> Column:
        """The value, or the end of the range that it is beyond."""
        # A choice between a number and an end has the range of both, so that functions of it fit; where there is no value there is none.
        above = self._make(_Word("CASE WHEN "), self, _Word(" < "), low, _Word(" THEN "), low, _Word(" ELSE "), self, _Word(" END"))
        made: Column = self._make(_Word("CASE WHEN "), above, _Word(" > "), high, _Word(" THEN "), high, _Word(" ELSE "), above, _Word(" END"))
        return made

    def nullif(self, value: Operand) -> Column:
        """The value, or none where it is this one: `vw.log(x.nullif(0))`."""
        made: Column = self._make(_Word("nullif("), self, _Word(", "), value, _Word(")"))
        return made

    @property
    def year(self) -> Column:
        """The year of a date."""
        return self._call("extract(year FROM ")

    @property
    def month(self) -> Column:
        """The month of a date, from 1."""
        return self._call("extract(month FROM ")

    def like(self, pattern: str) -> Column:
        """Where a category's text fits a pattern of SQL: `%` is any text, `_` any character."""
        made: Column = self._make(_Word("("), self, _Word(" LIKE "), pattern, _Word(")"))
        return made

    def sum(self) -> Aggregate:
        """The sum of the values that there are; null of none."""
        return self._aggregate("sum(")

    def mean(self, decimals: int | None = None) -> Aggregate:
        """The mean of the values that there are, rounded to so many decimals, else to six or those of the column."""
        mean = self._aggregate("avg(")
        return mean if decimals is None else mean.round(decimals)

    def min(self) -> Aggregate:
        """The least value."""
        return self._aggregate("min(")

    def max(self) -> Aggregate:
        """The greatest value."""
        return self._aggregate("max(")

    def count(self) -> Aggregate:
        """How many rows have a value."""
        return self._aggregate("count(")

    def nunique(self) -> Aggregate:
        """How many different values there are."""
        return self._aggregate("count(DISTINCT ")

    def var(self, decimals: int | None = None) -> Aggregate:
        """The variance of the sample."""
        var = self._aggregate("var_samp(")
        return var if decimals is None else var.round(decimals)

    def std(self, decimals: int | None = None) -> Aggregate:
        """The standard deviation of the sample."""
        std = self._aggregate("stddev_samp(")
        return std if decimals is None else std.round(decimals)

    def median(self) -> Aggregate:
        """The lower median: a value that is there, the first that at least half of all do not exceed."""
        return self.quantile("0.5")

    def quantile(self, q: Any) -> Aggregate:
        """The first value that at least the part `q` of all does not exceed."""
        q = literal(q if not isinstance(q, str) else _decimal(q))
        return self._aggregate(f"percentile_disc({q}) WITHIN GROUP (ORDER BY ")

    def any(self) -> Aggregate:
        """Whether a condition is true of some row."""
        return self._aggregate("bool_or(")

    def all(self) -> Aggregate:
        """Whether a condition is true of all rows."""
        return self._aggregate("bool_and(")


def _decimal(text: str) -> Any:
    import decimal

    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise JobError(f"{text!r} is no number", source=here()) from None


class Aggregate(Expression):
    """A number of a group of rows, or of a whole table."""

    __slots__ = ("_bare",)

    def __init__(self, table: Table | None, node: Node, name: str = "", bare: bool = False) -> None:
        super().__init__(table, node, name)
        self._bare = bare

    def _what(self) -> str:
        return f"an aggregate of `{self._name}`" if self._name else "an aggregate"

    def where(self, condition: Column) -> Aggregate:
        """The same of the rows for which a condition is true."""
        if not self._bare:
            raise JobError("a condition stands at an aggregate itself", source=here(), help="write x.sum().where(condition) before you round or add")
        made: Aggregate = self._make(self, _Word(" FILTER (WHERE "), condition, _Word(")"))
        return Aggregate(made._table, made._node, self._name)


def column(table: Table, name: str, source: Source | None) -> Column:
    """A column of a table by its name."""
    return Column(table, Node((Name(name),), source), name)


def where(condition: Column, then: Operand, otherwise: Operand) -> Column:
    """`then` where a condition is true, else `otherwise`; both are computed in every row."""
    if not isinstance(condition, Expression):
        raise JobError(f"{condition!r} is no condition on a column", source=here())
    made: Column = condition._make(_Word("CASE WHEN "), condition, _Word(" THEN "), then, _Word(" ELSE "), otherwise, _Word(" END"))
    return made


def case(*branches: tuple[Column, Operand], otherwise: Operand) -> Column:
    """The value of the first branch whose condition is true, else `otherwise`: `vw.case((x > 9, "high"), (x > 3, "mean"), otherwise="low")`."""
    if not branches:
        raise JobError("case takes at least one branch", source=here())
    parts: list[Any] = [_Word("CASE")]
    for condition, value in branches:
        if not isinstance(condition, Expression):
            raise JobError(f"{condition!r} is no condition on a column", source=here())
        parts += [_Word(" WHEN "), condition, _Word(" THEN "), value]
    made: Column = branches[0][0]._make(*parts, _Word(" ELSE "), otherwise, _Word(" END"))
    return made
