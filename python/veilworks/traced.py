"""Functions of columns with contracts: recorded once, checked where they are used, and computed on plain values to compare."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, NamedTuple, overload

from . import _veil
from ._source import here
from .columns import Aggregate, Column, Expression, column
from .data import batches
from .errors import JobError, Source, raise_run
from .job import Job
from .result import Answer
from .sql import Node, identifier
from .tables import Table
from .types import Bool, ColumnType, Integer


class CircuitStats(NamedTuple):
    """What a function costs in a row: ANDs of bits, products of integers, and how many of either follow each other."""

    ands: int
    products: int
    depth: int


def _text(node: Node, names: Mapping[str, str]) -> str:
    return "".join(str(text) for text, _ in node.pieces(lambda name: ((names.get(name, identifier(name)), None),)))


class Traced:
    """A function of columns, made by `vw.traced`: called with columns it is one. Calls are checked against the contract of each argument."""

    def __init__(self, function: Callable[..., Any], contracts: Mapping[str, ColumnType], source: Source | None) -> None:
        self._function, self.contracts, self._source = function, dict(contracts), source
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__wrapped__ = function
        for name in self.contracts:
            if self.contracts[name].word == "key":
                raise JobError(f"argument `{name}` of {self.__name__} is a key, which joins compare and nothing computes with", source=source)
        # What is wrong with the function itself is said where it is made.
        _, table = self._own("owner", 1)
        self._made = self._trace([column(table, name, source) for name in self.contracts])

    def _own(self, owner: str, rows: int, *more: tuple[str, ColumnType]) -> tuple[Job, Table]:
        """A job with one table, whose columns are the contracts."""
        job = Job("a function", owners=[owner], parties=["a", "b", "c"], recipients=["reader"])
        return job, job.table("arguments", owner=owner, rows=rows, columns=self.contracts | dict(more))

    def _trace(self, arguments: list[Any]) -> Expression:
        """Runs the function twice: what is made of random numbers, clocks or files is not the same twice."""
        found: list[Expression] = []
        for _ in range(2):
            made = self._function(*arguments)
            if not isinstance(made, Column) or isinstance(made, Aggregate):
                raise JobError(f"{self.__name__} makes a {type(made).__name__}, and not a column", source=self._source, help="make it of its arguments: arithmetic, vw.where, functions of vw")
            found.append(made)
        if _text(found[0]._node, {}) != _text(found[1]._node, {}):
            raise JobError(
                f"{self.__name__} is not the same function twice",
                source=self._source,
                help="random numbers, clocks, files and counters are not of a job: give what it needs as an argument, or as a constant",
            )
        return found[0]

    def __call__(self, *arguments: Any) -> Any:
        """The column that the function makes of columns of one table; constants may stand for some."""
        source = here()
        if len(arguments) != len(self.contracts):
            raise JobError(f"{self.__name__} takes {len(self.contracts)} arguments, and not {len(arguments)}", source=source)
        table = next((one._table for one in arguments if isinstance(one, Expression) and one._table is not None), None)
        if table is None:
            raise JobError(f"{self.__name__} takes columns", source=source, help=f"of plain values: {self.__name__}.clear(...)")
        self._checked(table, arguments, source)
        return self._trace(list(arguments))

    def _checked(self, table: Table, arguments: tuple[Any, ...], source: Source | None) -> None:
        """Has the planner compare what arguments may have with the contracts."""
        job = table._job
        names = [f"argument_{at}" for at in range(len(arguments))]
        given = table.assign(**dict(zip(names, arguments))).select(*names)
        problems = job._compared(given, dict(zip(names, self.contracts.values()))).outside("given", "contract")
        for at, has, wanted in problems:
            name = list(self.contracts)[at]
            raise JobError(f"argument `{name}` of {self.__name__} may be {has}, and its contract is {wanted}", source=source, help="clip or cast it, declare a narrower column, or widen the contract")

    # On plain values.

    def clear(self, *arguments: Any) -> Any:
        """The value of the function on plain values, one for each argument, as parties would open it: by the meaning of the algebra, without any sharing.

        With lists, equally long, a list of values; a single value stands for all rows. A value outside of a contract is a `DataError`.
        """
        source = here()
        if len(arguments) != len(self.contracts):
            raise JobError(f"{self.__name__} takes {len(self.contracts)} arguments, and not {len(arguments)}", source=source)
        lengths = {len(one) for one in arguments if isinstance(one, (list, tuple))}
        if len(lengths) > 1:
            raise JobError(f"the lists have {' and '.join(map(str, sorted(lengths)))} values", source=source)
        rows = lengths.pop() if lengths else 1
        if rows == 0:
            return []
        data = {name: list(one) if isinstance(one, (list, tuple)) else [one] * rows for name, one in zip(self.contracts, arguments)}
        job, table = self._own("owner", rows, ("place", Integer(0, rows - 1)))
        value = self._trace([column(table, name, source) for name in self.contracts])
        job.open(table.assign(value=value).select("place", "value"), to="reader", name="values")
        try:
            (answer,) = job._plan().clear([("owner", "arguments", batches("arguments", data | {"place": list(range(rows))}))])
        except _veil.Failure as failure:
            raise_run(failure)
        found = {row["place"]: row["value"] for row in Answer(answer).to_dicts()}
        values = [found[place] for place in range(rows)]
        return values if any(isinstance(one, (list, tuple)) for one in arguments) else values[0]

    @property
    def sql(self) -> str:
        """The function as SQL, over columns that are named like its arguments."""
        return _text(self._made._node, {})

    def stats(self) -> CircuitStats:
        """What the function costs in a row: by the circuits of a job that opens it for a row, without what looks at whether cells are in their ranges."""
        job, table = self._own("owner", 1)
        value = self._trace([column(table, name, self._source) for name in self.contracts])
        job.open(table.assign(value=value).select("value"), to="reader", name="values")
        circuits = job._plan().circuits()
        return CircuitStats(
            sum(products for _, ring, products, _ in circuits if ring == "Z_2"),
            sum(products for _, ring, products, _ in circuits if ring != "Z_2"),
            sum(depth for *_, depth in circuits),
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}: {kind!r}" for name, kind in self.contracts.items())
        return f"<traced {self.__name__}({arguments})>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(repr(kind))}</td></tr>" for name, kind in self.contracts.items())
        return f"<table><caption>{escape(self.__name__)}, a function of columns</caption><tr><th>argument</th><th>contract</th></tr>{rows}</table><pre>{escape(self.sql)}</pre>"


def _contracts(function: Callable[..., Any], given: Mapping[str, Any], source: Source | None) -> dict[str, ColumnType]:
    signature = inspect.signature(function)
    hints = inspect.get_annotations(function, eval_str=True) if not given else {}
    contracts: dict[str, ColumnType] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) or parameter.default is not parameter.empty:
            raise JobError(f"argument `{name}` of {function.__name__} is no plain argument", source=source, help="constants are those of the program: write them into the function")
        kind = given.get(name, hints.get(name))
        if isinstance(kind, type) and issubclass(kind, Bool):
            kind = kind()
        if not isinstance(kind, ColumnType):
            raise JobError(f"argument `{name}` of {function.__name__} has no contract", source=source, help=f"write @vw.traced({name}=vw.Integer(0, 120)), or the type as its hint")
        contracts[name] = kind
    for name in given:
        if name not in contracts:
            raise JobError(f"{function.__name__} has no argument `{name}`", source=source)
    if not contracts:
        raise JobError(f"{function.__name__} takes no column", source=source)
    return contracts


@overload
def traced(function: Callable[..., Any], /) -> Traced: ...


@overload
def traced(**contracts: ColumnType | type[Bool]) -> Callable[[Callable[..., Any]], Traced]: ...


def traced(function: Callable[..., Any] | None = None, /, **contracts: Any) -> Traced | Callable[[Callable[..., Any]], Traced]:
    """Makes a function of columns of a function of Python, with a contract for each argument: `@vw.traced(age=vw.Integer(0, 120), smoker=vw.Bool)`, or
    `@vw.traced` with the types as hints.

    The function is run when it is made and at each call, twice each time: it has to be the same function both times. A call with a column that may have values
    outside of the contract is refused, by the planner's own ranges. `f.clear(...)` is its value on plain values, `f.stats()` what it costs in a row.
    """
    source = here()
    if function is not None:
        return Traced(function, _contracts(function, contracts, source), source)
    return lambda function: Traced(function, _contracts(function, contracts, source), source)
