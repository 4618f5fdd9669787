"""Loops with a public number of turns over secret columns: a body that is recorded once, and repeated."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ._source import here
from .columns import Aggregate, Column, Expression, case, column, same
from .errors import JobError, Source
from .sql import Held, Node, Piece, Pieces, literal
from .tables import Assign, Table, Turn
from .types import Bool, Category, ColumnType, Date, Decimal, Integer

# Operations of all turns of a loop, at most.
MOST_OPERATIONS = 10_000


class State(Column):
    """A column that a loop changes, made by `vw.state`: what it was before the loop, within the loop what the turn makes of it so far, and behind it what the last turn made."""

    __slots__ = ("kind", "_loop", "_source")

    def __init__(self, table: Table | None, node: Node, kind: ColumnType, source: Source | None) -> None:
        super().__init__(table, node)
        self.kind, self._source = kind, source
        self._loop: for_range | None = None

    def _what(self) -> str:
        return "a state"

    def __repr__(self) -> str:
        return f"<State: {self.kind!r}, of {self._table._title() if self._table is not None else 'constants'}>"

    def update(self, value: Any) -> None:
        """Says what the turn makes of the state. A decimal is rounded to the places of the state."""
        source = here()
        if self._loop is None or not self._loop._open:
            raise JobError("a state is changed within its loop", source=source, help="write: with vw.for_range(10, x): x.update(...)")
        value = _expression(value, source)
        self._table, self._node = same(self._table, value._table), _rounded(value, self.kind)._node
        self._loop._updated[id(self)] = source


def _expression(value: Any, source: Source | None) -> Expression:
    if isinstance(value, Aggregate):
        raise JobError("a state is a value of each row, and an aggregate is of groups", source=source)
    return value if isinstance(value, Expression) else Column(None, Node((literal(value),), source))


def _rounded(value: Expression, kind: ColumnType) -> Expression:
    return value.round(int(kind.fields["scale"])) if isinstance(kind, Decimal) else value


def state(initial: Any, kind: ColumnType | type[Bool]) -> State:
    """A column that a loop changes, from a first value on: a column, or a constant. Its type is a contract: the first value, and what each turn makes of any value of the type, are proved
    to be within it; a decimal is rounded to its places. `with vw.for_range(8, x): x.update(...)`."""
    source = here()
    if isinstance(kind, type) and issubclass(kind, Bool):
        kind = kind()
    if not isinstance(kind, (Integer, Decimal, Date, Bool, Category)):
        raise JobError("a state is a number, a date, a category or a condition with a range", source=source, help="write vw.state(x, vw.Decimal(6, 0, 100))")
    first = _rounded(_expression(initial, source), kind)
    return State(first._table, first._node, kind, source)


class for_range:
    """A loop of a public number of turns: `with vw.for_range(8, x): x.update((x + t.cost / x) / 2)`.

    The body runs once. It is repeated as a query for each turn, and all turns have at most 10 000 operations. That each turn keeps its states within their types is
    proved once, for any values of these; a body that may leave them is refused with the line that changes the state.
    """

    def __init__(self, turns: int, *states: State) -> None:
        self._source = here()
        if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
            raise JobError("a loop has a public number of turns from 1 on", source=self._source)
        if not states or not all(isinstance(one, State) for one in states):
            raise JobError("a loop changes states", source=self._source, help="write x = vw.state(t.cost, vw.Decimal(6, 0, 100)), then with vw.for_range(8, x): …")
        if len({id(one) for one in states}) < len(states):
            raise JobError("a state stands twice in one loop", source=self._source)
        self.turns, self._states, self._open = turns, states, False
        self._updated: dict[int, Source | None] = {}
        self._first: list[Node] = []
        self._body: list[Node] = []
        self._table: Table | None = None
        self._printed = False

    def __enter__(self) -> for_range:
        if self._first:
            raise JobError("a loop is entered once", source=here())
        for one in self._states:
            if one._loop is not None and one._loop._open:
                raise JobError("a loop stands in no loop", source=self._source, help="write the inner turns one after the other, or in a loop of its own before")
        self._open = True
        for at, one in enumerate(self._states):
            self._first.append(one._node)
            one._node, one._loop = Node((Held(self, at),), self._source), self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open = False
        if kind is not None:
            for one, first in zip(self._states, self._first):
                one._node, one._loop = first, None
            return
        if not self._updated:
            raise JobError("no turn of the loop changes a state", source=self._source, help="write x.update(...) in it")
        for one in self._states:
            self._table = same(self._table, one._table)
        if self._table is None:
            raise JobError("a loop is over rows of a table, and this reads no column", source=self._source)
        self._body = [one._node for one in self._states]
        counted: dict[int, int] = {}
        operations = self.turns * sum(_operations(node, counted) for node in self._body)
        if operations > MOST_OPERATIONS:
            raise JobError(
                f"the loop has {operations} operations in its {self.turns} turns, and {MOST_OPERATIONS} are the most",
                source=self._source,
                help="write fewer turns; what does not depend on a state goes before the loop, t = t.assign(…), and what stands twice in the body into a state of its own",
            )
        self._proved(self._table)
        for at, one in enumerate(self._states):
            one._table, one._node = self._table, Node((Held(self, at),), self._source)

    def _proved(self, table: Table) -> None:
        """Has the planner compare what the first values and a turn may be with the types of the states."""
        known: dict[int, list[str]] = {}
        base = self._before(table, known)
        names = base._known("a loop")
        held = _fresh(names, len(self._states))
        known[id(self)] = held
        read = next((name for node in (*self._first, *self._body) for name in _names(node, set())), None)
        if read is None:
            raise JobError("a loop is over rows of a table, and this reads no column", source=self._source)
        any_of = {name: _any(column(table, read, self._source), one.kind, self._source)._node for name, one in zip(held, self._states)}
        typed = self._turn(base, any_of, (*names, *held))
        made = {f"{word}_{at}": node.replaced(_place(known)) for word, nodes in (("first", self._first), ("turn", self._body)) for at, node in enumerate(nodes)}
        kinds = {name: self._states[int(name.partition("_")[2])].kind for name in made}
        given = Table(table._job, Assign(typed, made, tuple(made), self._source), tuple(made))
        for at, has, wanted in table._job._compared(given, kinds).outside("given", "contract"):
            word, _, place = list(made)[at].partition("_")
            one = self._states[int(place)]
            if word == "first":
                raise JobError(f"the first value of a state may be {has}, and its type is {wanted}", source=one._source, help="clip it, x.clip(…), or widen the type")
            raise JobError(
                f"what a turn makes of a state may be {has}, and its type is {wanted}",
                source=self._updated.get(id(one), self._source),
                help="clip what the turn makes, (…).clip(…), or widen the type; write .fillna(…) where a value may be missing, or null=True into the type",
            )

    def _before(self, table: Table, known: dict[int, list[str]]) -> Table:
        """The table with the states of other loops that this one reads."""
        return _after(table, [*self._first, *self._body], known, self)

    def _turn(self, of: Table, new: dict[str, Node], every: tuple[str, ...]) -> Table:
        return Table(of._job, Turn(Table(of._job, Assign(of, new, every, self._source), every), self._source), every)

    def _behind(self, table: Table, known: dict[int, list[str]]) -> Table:
        """The table with what the last turn made, in further columns, whose names `known` then has."""
        if self._open:
            raise JobError("a table is made within a loop, of a state that the loop still changes", source=here(), help="make it behind the loop")
        made = self._before(table, known)
        names = made._known("a loop")
        held = _fresh(names, len(self._states))
        known[id(self)] = held
        for nodes in [self._first, *[self._body] * self.turns]:
            made = self._turn(made, {name: node.replaced(_place(known)) for name, node in zip(held, nodes)}, (*names, *held))
        return made

    def _pieces(self, at: int, of: Callable[[str], Pieces]) -> Pieces:
        """The loop in words: no SQL, but the same for the same loop."""
        name = f"state{at + 1}"
        if self._printed:
            return ((name, self._source),)
        self._printed = True
        try:
            out: list[Piece] = [(f"loop of {self.turns} turns (", self._source)]
            for place, (first, body) in enumerate(zip(self._first, self._body or self._first)):
                out += [(f"state{place + 1} = ", self._source), *first.pieces(of), (", then ", self._source), *body.pieces(of), ("; ", self._source)]
            return (*out, (f"{name})", self._source))
        finally:
            self._printed = False


def _place(known: dict[int, list[str]]) -> Callable[[Held], str]:
    return lambda held: known[id(held.loop)][held.at]


def _after(table: Table, nodes: list[Node], known: dict[int, list[str]], but: for_range | None = None) -> Table:
    """The table behind all loops whose states the nodes read."""
    for node in nodes:
        for held in node.held():
            if held.loop is not but and id(held.loop) not in known:
                table = held.loop._behind(table, known)
    return table


def behind(table: Table, nodes: list[Node]) -> tuple[Table, list[Node]]:
    """The table behind the loops whose states the nodes read, and the nodes over it."""
    known: dict[int, list[str]] = {}
    table = _after(table, nodes, known)
    return table, [node.replaced(_place(known)) for node in nodes]


def _names(node: Node, seen: set[int]) -> list[str]:
    """The columns that a node reads, also in other loops."""
    found = node.names()
    for held in node.held():
        if id(held.loop) not in seen:
            seen.add(id(held.loop))
            for one in (*held.loop._first, *held.loop._body):
                found += _names(one, seen)
    return found


def _operations(node: Node, counted: dict[int, int]) -> int:
    """Operations of an expression, of parts that stand several times each time."""
    if id(node) not in counted:
        counted[id(node)] = 1 + sum(_operations(part, counted) for part in node.parts if isinstance(part, Node))
    return counted[id(node)]


def _fresh(names: tuple[str, ...], count: int) -> list[str]:
    found: list[str] = []
    at = 1
    while len(found) < count:
        if f"state{at}" not in names:
            found.append(f"state{at}")
        at += 1
    return found


def _any(of: Column, kind: ColumnType, source: Source | None) -> Expression:
    """Any value of a type: an expression that the planner knows the range of, and nothing more."""
    fields = kind.fields
    ends: list[Any]
    if isinstance(kind, Category):
        ends = list(fields["values"])
    elif isinstance(kind, Bool):
        ends = [True, False]
    elif isinstance(kind, Date):
        ends = [datetime.date.fromisoformat(fields["min"]), datetime.date.fromisoformat(fields["max"])]
    else:
        ends = [decimal.Decimal(str(fields["min"])), decimal.Decimal(str(fields["max"]))]
    branches = [(of == of, one) for one in ends]
    if fields.get("null"):
        made: Expression = case(*branches, otherwise=Column(None, Node(("NULL",), source)))
    else:
        made = case(*branches, otherwise=ends[-1])
    return _rounded(made, kind)
