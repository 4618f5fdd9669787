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
    """What a function costs in a row: ANDs of bits, products of integers, how many of either follow each other, gates of all kinds, of which those that are no products are
    local, and the bytes that all parties send for them, in many rows."""

    ands: int
    products: int
    depth: int
    gates: int
    bytes: float


# Rows over which bytes are averaged: messages are whole bytes.
_ROWS = 8192


class FunctionCircuit:
    """The circuit of a function among so many parties, against an adversary."""

    def __init__(self, function: Traced, parties: int, adversary: str | None) -> None:
        self._function, self._parties, self._adversary = function, parties, adversary

    def stats(self) -> CircuitStats:
        """What it costs in a row: of the passes that compute the function, without what looks at whether cells are in their ranges, moves rows and opens them."""
        function = self._function
        job, table = function._own("owner", _ROWS, parties=self._parties, adversary=self._adversary)
        value = function._trace([column(table, name, function._source) for name in function.contracts])
        job.open(table.assign(value=value).select("value"), to="reader", name="values")
        circuits = [one for one in job._plan().circuits() if one[0] == _ROWS and one[3] > 0]
        return CircuitStats(
            sum(products for _, ring, _, products, _, _ in circuits if ring == "Z_2"),
            sum(products for _, ring, _, products, _, _ in circuits if ring != "Z_2"),
            sum(depth for _, _, _, _, depth, _ in circuits),
            sum(gates for _, _, gates, _, _, _ in circuits),
            sum(sent for *_, sent in circuits) / _ROWS,
        )

    def __repr__(self) -> str:
        against = f", {self._adversary}" if self._adversary else ""
        return f"<circuit of {self._function.__name__} among {self._parties} parties{against}>"


def _text(node: Node, names: Mapping[str, str]) -> str:
    return "".join(str(text) for text, _ in node.pieces(lambda name: ((names.get(name, identifier(name)), None),)))


class Traced:
    """A function of columns, made by `vw.traced`: called with columns it is one. Calls are checked against the contract of each argument."""

    def __init__(self, function: Callable[..., Any], contracts: Mapping[str, ColumnType], source: Source | None, returns: ColumnType | None = None) -> None:
        self._function, self.contracts, self._source, self.returns = function, dict(contracts), source, returns
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__wrapped__ = function
        for name in self.contracts:
            if self.contracts[name].word == "key":
                raise JobError(f"argument `{name}` of {self.__name__} is a key, which joins compare and nothing computes with", source=source)
        # What is wrong with the function itself is said where it is made.
        _, table = self._own("owner", 1)
        self._made = self._trace([column(table, name, source) for name in self.contracts])
        if returns is not None:
            self._within(table, returns)

    def _own(self, owner: str, rows: int, *more: tuple[str, ColumnType], parties: int = 3, adversary: str | None = None) -> tuple[Job, Table]:
        """A job with one table, whose columns are the contracts."""
        job = Job("a function", owners=[owner], parties=[f"p{at}" for at in range(parties)], recipients=["reader"], adversary=adversary)
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

    def _within(self, table: Table, returns: ColumnType) -> None:
        """Has the planner compare what the result may be, of all arguments within their contracts, with its own contract."""
        given = table.assign(result=self._made).select("result")
        for _, has, wanted in table._job._compared(given, {"result": returns}).outside("given", "contract"):
            fewer = f"round it, .round({returns.fields['scale']}), clip it" if returns.word == "decimal" else "clip it"
            raise JobError(
                f"the result of {self.__name__} may be {has}, and its contract is {wanted}",
                source=self._made._node.source or self._source,
                help=f"{fewer}, or widen the contract; write .fillna(…) where a value may be missing, or null=True into the contract",
            )

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

    def circuit(self, *, parties: int = 3, adversary: str | None = None) -> FunctionCircuit:
        """The circuit that the function is among so many parties, 3 or 4, against an adversary, `"semi-honest"` or `"malicious"`: `f.circuit(parties=4).stats()`."""
        return FunctionCircuit(self, parties, adversary)

    def stats(self) -> CircuitStats:
        """What the function costs in a row among three parties: `f.circuit().stats()`."""
        return self.circuit().stats()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}: {kind!r}" for name, kind in self.contracts.items())
        returns = f" -> {self.returns!r}" if self.returns is not None else ""
        return f"<traced {self.__name__}({arguments}){returns}>"

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


def _returns(function: Callable[..., Any], source: Source | None) -> ColumnType | None:
    """The contract of the result: its hint, if that is a type of columns."""
    hint = getattr(function, "__annotations__", {}).get("return")
    if isinstance(hint, str):
        try:
            hint = eval(hint, getattr(function, "__globals__", {}))
        except Exception as error:
            raise JobError(f"the hint of the result of {function.__name__} is not read: {error}", source=source, help="write a type of columns, or no hint") from None
    if isinstance(hint, type) and issubclass(hint, Bool):
        hint = hint()
    if isinstance(hint, ColumnType) and hint.word == "key":
        raise JobError(f"the result of {function.__name__} is a key, and nothing computes one", source=source)
    return hint if isinstance(hint, ColumnType) else None


@overload
def traced(function: Callable[..., Any], /) -> Traced: ...


@overload
def traced(**contracts: ColumnType | type[Bool]) -> Callable[[Callable[..., Any]], Traced]: ...


def traced(function: Callable[..., Any] | None = None, /, **contracts: Any) -> Traced | Callable[[Callable[..., Any]], Traced]:
    """Makes a function of columns of a function of Python, with a contract for each argument: `@vw.traced(age=vw.Integer(0, 120), smoker=vw.Bool)`, or
    `@vw.traced` with the types as hints.

    A hint of the result, `-> vw.Decimal(3, 0, 1)`, is a contract, too: what the result may be, of all arguments within theirs, is proved to be within it.
    The function is run when it is made and at each call, twice each time: it has to be the same function both times. A call with a column that may have values
    outside of the contract is refused, by the planner's own ranges. `f.clear(...)` is its value on plain values, `f.circuit().stats()` what it costs in a row.
    """
    source = here()
    if function is not None:
        return Traced(function, _contracts(function, contracts, source), source, _returns(function, source))
    return lambda function: Traced(function, _contracts(function, contracts, source), source, _returns(function, source))
