"""Tables whose rows no participant sees, and what is asked of them: recorded, and written as SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Union

from ._source import Secret, here
from .columns import Aggregate, Column, Expression, column
from .errors import InSql, JobError, Source
from .sql import Name, Node, Piece, Pieces, Ref, Text, flat, identifier
from .types import ColumnType, Rows

if TYPE_CHECKING:
    from .job import Job
    from .models import Model
    from .networks import NetworkModel

Value = Union[Expression, Callable[["Table"], Expression], Any]


class Table(Secret):
    """A relation: rows of columns, of which names and types are public. Methods make new ones; nothing is computed before the job runs."""

    def __init__(self, job: Job, op: Op, names: tuple[str, ...] | None) -> None:
        self._job, self._op, self._names = job, op, names

    # What people see.

    def _what(self) -> str:
        return f"{self._title()}"

    def _title(self) -> str:
        return self._op.title()

    def _declared(self, name: str) -> ColumnType | None:
        return self._op.declared(name)

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self._names or ())

    def __repr__(self) -> str:
        lines = [f"<Table {self._title()}{self._op.rows_words()}>"]
        for name in self.columns:
            kind = self._declared(name)
            lines.append(f"  {name}{f': {kind!r}' if kind else ''}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(repr(self._declared(name) or 'computed'))}</td></tr>" for name in self.columns)
        title = escape(self._title() + self._op.rows_words())
        return f"<table><caption>{title}; its rows are secret</caption><tr><th>column</th><th>type</th></tr>{rows}</table>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.columns]

    # Columns.

    def _lacks(self, name: str, names: tuple[str, ...]) -> str:
        """That there is no such column, and why if it is one that other models have."""
        if name == "standard_error" and isinstance(self._op, Fitted):
            return f"{self._title()} has no standard errors: coefficients that are penalised, or are fitted by gradient descent, have none"
        return f"{self._title()} has no column `{name}`; it has {', '.join(names)}"

    def col(self, name: str) -> Column:
        """The column of this name, also where a method has it."""
        source = here()
        if self._names is not None and name not in self._names:
            raise JobError(self._lacks(name, self._names), source=source)
        return column(self, name, source)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._names is not None and name not in self._names:
            raise AttributeError(self._lacks(name, self._names))
        return self.col(name)

    def __getitem__(self, which: Any) -> Any:
        """A column by its name, some columns by a list of names, or the rows for which a condition is true."""
        if isinstance(which, str):
            return self.col(which)
        if isinstance(which, Expression) or callable(which):
            return self.where(which)
        if isinstance(which, (list, tuple)) and all(isinstance(name, str) for name in which):
            return self.select(*which)
        raise JobError(f"a table is asked for a column, a list of columns or a condition, and not for {type(which).__name__}", source=here(), help="rows have no public positions")

    def _own(self, value: Value, aggregate: bool = False) -> Node:
        """An expression over this table."""
        source = here()
        if callable(value) and not isinstance(value, Expression):
            value = value(self)
        if not isinstance(value, Expression):
            from .sql import literal

            return Node((literal(value),), source)
        if value._table is not None and value._table is not self:
            raise JobError(
                f"the expression is of {value._table._title()}, and this is {self._title()}",
                source=source,
                help="take columns of the table itself, or write lambda t: t.name",
            )
        if isinstance(value, Aggregate) and not aggregate:
            raise JobError("an aggregate is of groups, and stands in .agg(...) alone", source=source)
        if aggregate and not isinstance(value, Aggregate):
            raise JobError("a group of rows has one value of an aggregate alone", source=source, help="write .sum(), .mean(), .min(), .count() … of the column")
        return value._node

    def _behind(self, nodes: list[Node]) -> tuple[Table, list[Node]]:
        """The table behind the loops whose states the expressions read, and the expressions over it."""
        if not any(node.held() for node in nodes):
            return self, nodes
        from .loops import behind

        return behind(self, nodes)

    def _known(self, what: str) -> tuple[str, ...]:
        if self._names is None:
            raise JobError(f"{what} needs the names of columns", source=here(), help="say them: job.sql(..., columns=[...])")
        return self._names

    def _have(self, names: Iterable[str]) -> tuple[str, ...]:
        found = tuple(names)
        for name in found:
            if not isinstance(name, str):
                raise JobError(f"{name!r} is no name of a column", source=here(), help="name a computed column first: .assign(name=...)")
            self.col(name)
        return found

    # What is made of it.

    def where(self, *conditions: Value) -> Table:
        """The rows for which all conditions are true; where one is unknown, since a value is missing, it is not."""
        table, nodes = self._behind([self._own(condition) for condition in conditions])
        looped = table is not self
        for node in nodes:
            table = Table(self._job, Where(table, node, here()), table._names)
        return table.select(*self._known("where")) if looped else table

    filter = where

    def assign(self, **columns: Value) -> Table:
        """All columns, and these, which may read those."""
        names = self._known("assign")
        new = {name: self._own(value) for name, value in columns.items()}
        every = (*names, *(name for name in new if name not in names))
        table, nodes = self._behind(list(new.values()))
        return Table(self._job, Assign(table, dict(zip(new, nodes)), every, here()), every)

    def predict(self, model: Model, score: str | None = None) -> Column:
        """What a model gives for the columns that have the names of its features; with `score`, the score of this class."""
        return model.of(self, score)

    def apply(self, network: NetworkModel, *, keep: Iterable[str] | None = None, places: int = 3, scores: bool = False) -> Table:
        """What a network gives for each row, from the columns that have the names of its features, in a table: the columns `keep`, which are no features (without it
        all that are none), then its outputs, decimals of so many places; or of a network of classes the column `class`, and with `scores` also `score_0`,
        `score_1` and so on, by the order of its classes. A row without a value of a feature has none of the network."""
        source = here()
        features = getattr(getattr(network, "network", None), "features", None)
        if features is None or self._job._models.get(network.name) is not network.network:
            raise JobError("a table is applied to a network of its job", source=source, help="job.model(name, vw.network(...)) declares one; of trees it is table.predict(model)")
        if isinstance(places, bool) or not isinstance(places, int) or not 0 <= places <= 9:
            raise JobError("places are a number from 0 to 9", source=source)
        if isinstance(keep, str):
            raise JobError("columns that are kept are a list", source=source, help=f"keep=[{keep!r}]")
        names = self._known("apply")
        missing = [name for name in features if name not in names]
        if missing:
            some = ", ".join(missing[:12]) + (", …" if len(missing) > 12 else "")
            raise JobError(f"{self._title()} has no column for {len(missing)} of the {len(features)} features of network `{network.name}`", source=source, help=f"there is no {some}")
        of_network = set(features)
        kept = tuple(name for name in names if name not in of_network) if keep is None else self._have(keep)
        given = network.gives(scores)
        for name in kept:
            if name in of_network:
                raise JobError(f"`{name}` is a feature of network `{network.name}`, and is not kept", source=source, help=f"keep a copy: .assign(own_{name}=table[{name!r}])")
            if name in given or kept.count(name) > 1:
                raise JobError(f"two columns would have the name `{name}`", source=source, help="rename the column before, or leave it out: keep=[...]")
        fields: dict[str, object] = {"model": network.name, "places": places}
        if scores:
            fields["scores"] = True
        return Table(self._job, Applied(self.select(*kept, *features), fields, kept, source), (*kept, *given))

    def select(self, *names: str) -> Table:
        """These columns alone, in this order."""
        names = self._have(names[0] if len(names) == 1 and not isinstance(names[0], str) else names)
        if not names:
            raise JobError("a table has at least one column", source=here())
        return Table(self._job, Assign(self, {}, names, here()), names)

    def rename(self, **names: str) -> Table:
        """The same columns, of which some have other names: `rename(old="new")`."""
        self._have(names)
        every = tuple(names.get(name, name) for name in self._known("rename"))
        if len(set(every)) < len(every):
            raise JobError("two columns would have one name", source=here())
        new = {names[name]: column(self, name, here())._node for name in names}
        return Table(self._job, Assign(self, new, every, here()), every)

    def drop(self, *names: str) -> Table:
        """All columns but these."""
        self._have(names)
        return self.select(*(name for name in self._known("drop") if name not in names))

    def distinct(self) -> Table:
        """Each row once."""
        return Table(self._job, Distinct(self, here()), self._known("distinct"))

    def join(self, other: Table, on: str | Iterable[str] | Mapping[str, str], how: str = "inner", suffix: str | None = None) -> Table:
        """The rows of this table with those of another that have the same keys.

        `on` names the keys: of both tables, or `{"own": "other's"}`. `how` is `"inner"`, `"left"`, or `"semi"` and `"anti"`, which have the rows
        that have a partner, or none, and no column of the other table. `suffix` is put behind names of the other table that this one has, too.
        """
        source = here()
        if not isinstance(other, Table):
            raise JobError(f"a table is joined with a table, and not with a {type(other).__name__}", source=source)
        pairs = {on: on} if isinstance(on, str) else dict(on) if isinstance(on, Mapping) else {name: name for name in on}
        if how not in ("inner", "left", "semi", "anti"):
            raise JobError(f"how={how!r} is none of inner, left, semi and anti", source=source)
        if not pairs:
            raise JobError("a join has at least one key", source=source)
        self._have(pairs)
        other._have(pairs.values())
        own = self._known("join")
        taken: dict[str, str] = {}
        if how in ("inner", "left"):
            for name in other._known("join"):
                if pairs.get(name) == name:
                    continue
                new = name + (suffix or "") if name in own else name
                if new in own or new in taken:
                    raise JobError(f"both tables have a column `{name}`", source=source, help='say suffix="_2", or select and rename before')
                taken[new] = name
        return Table(self._job, Join(self, other, pairs, how, taken, source), (*own, *taken))

    merge = join

    def group_by(self, *keys: str | Column | Iterable[str]) -> Grouped:
        """Groups of rows that have the same values in these columns."""
        every: Iterable[Any] = keys
        if len(keys) == 1 and not isinstance(keys[0], (str, Expression)):
            every = keys[0]
        names: list[Any] = [key._name if isinstance(key, Column) and key._table is self and key._name else key for key in every]
        return Grouped(self, self._have(names))

    groupby = group_by

    def agg(self, **aggregates: Value) -> Table:
        """One row of aggregates of all rows."""
        return Grouped(self, ()).agg(**aggregates)

    def count(self) -> Aggregate:
        """How many rows there are."""
        return Aggregate(self, Node(("count(*)",), here()), "rows", True)

    def order_by(self, *names: str, descending: bool | Iterable[str] = False) -> Table:
        """The rows ordered by these columns, rows without a value last; `descending` for all of them, or the names of some."""
        names = self._have(names)
        down = set(names if descending is True else () if descending is False else self._have(descending))
        if not names:
            raise JobError("rows are ordered by at least one column", source=here())
        return Table(self._job, Order(self, tuple((name, name in down) for name in names), here()), self._names)

    sort_values = order_by

    def limit(self, rows: int) -> Table:
        """The first so many rows in their order."""
        return Table(self._job, Limit(self, _count(rows), here()), self._names)

    head = limit

    def limit_rows(self, rows: int, *, overflow: str = "refuse", name: str | None = None) -> Table:
        """The same rows, with a public bound on how many they are. If there are more, `overflow` says what happens: `"refuse"` ends the run, `"flag"` and
        `"drop"` leave rows out, with or without a bit to the recipient that says so."""
        return Table(self._job, Bounded(self, _count(rows), overflow, name, here()), self._known("limit_rows"))

    def open(self, to: str, **how: Any) -> None:
        """`job.open` of this table."""
        self._job.open(self, to=to, **how)


def _count(rows: int) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise JobError(f"{rows!r} is no public number of rows from 1 on", source=here())
    return rows


class Grouped:
    """Groups of rows, of which aggregates are made."""

    def __init__(self, table: Table, keys: tuple[str, ...]) -> None:
        self._table, self._keys = table, keys

    def __repr__(self) -> str:
        return f"<groups of {self._table._title()} by {', '.join(self._keys)}>"

    def __getattr__(self, name: str) -> Column:
        return getattr(self._table, name)  # type: ignore[no-any-return]

    def agg(self, **aggregates: Value) -> Table:
        """A row for each group: its keys, and these aggregates."""
        table = self._table
        made = {name: table._own(value, True) for name, value in aggregates.items()}
        if not made and not self._keys:
            raise JobError("agg takes at least one aggregate", source=here())
        for name in made:
            if name in self._keys:
                raise JobError(f"`{name}` is a key of the groups, and an aggregate", source=here())
        behind, nodes = table._behind(list(made.values()))
        return Table(table._job, Group(behind, self._keys, dict(zip(made, nodes)), here()), (*self._keys, *made))

    def count(self, name: str = "count") -> Table:
        """A row for each group: its keys, and how many rows it has."""
        return self.agg(**{name: self._table.count()})


def concat(tables: Iterable[Table]) -> Table:
    """The rows of several tables with the same columns."""
    every = list(tables)
    if len(every) < 2:
        raise JobError("concat takes at least two tables", source=here())
    names = every[0]._known("concat")
    for table in every[1:]:
        if table._known("concat") != names:
            raise JobError(f"{table._title()} has other columns than {every[0]._title()}, or in another order", source=here(), help="select the same: .select(...)")
    return Table(every[0]._job, Stack(tuple(every), here()), names)


# How each is written.


@dataclass
class Statement:
    """A SELECT under construction."""

    sources: list[Pieces] = field(default_factory=list)
    where: list[Pieces] = field(default_factory=list)
    items: dict[str, Pieces] = field(default_factory=dict)
    # Items that are columns of a source as they are: what later conditions may read without a subquery.
    plain: set[str] = field(default_factory=set)
    aliases: list[str] = field(default_factory=list)
    group: list[Pieces] | None = None
    order: list[Pieces] = field(default_factory=list)
    limit: Piece | None = None
    distinct: bool = False
    qualified: bool = False

    def is_open(self) -> bool:
        """Whether conditions and columns can still be put into it."""
        return self.group is None and not self.order and self.limit is None and not self.distinct

    def text(self, source: Source | None) -> list[tuple[str, Source | None]]:
        """The text of it."""
        pieces: list[Piece] = [("SELECT DISTINCT " if self.distinct else "SELECT ", source)]
        for at, (name, of) in enumerate(self.items.items()):
            pieces += [(", ", source)] if at else []
            pieces += of
            bare = len(of) == 1 and isinstance(of[0][0], Ref) and of[0][0].name == name
            pieces += [] if bare else [(f" AS {identifier(name)}", source)]
        for at, one in enumerate(self.sources):
            pieces += [("\nFROM " if at == 0 else "\n", source), *one]
        for at, condition in enumerate(self.where):
            pieces += [("\nWHERE " if at == 0 else "\n  AND ", source), *condition]
        for at, key in enumerate(self.group or ()):
            pieces += [("\nGROUP BY " if at == 0 else ", ", source), *key]
        for at, key in enumerate(self.order):
            pieces += [("\nORDER BY " if at == 0 else ", ", source), *key]
        pieces += [self.limit] if self.limit else []
        return flat(tuple(pieces), self.qualified)


class Writer:
    """Writes the queries of a job. Names follow from what is asked alone, so that one question has one text."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.ctes: dict[str, tuple[str, list[tuple[str, Source | None]]]] = {}
        self.steps: dict[str, Text] = {}
        self.bounds: dict[str, tuple[int, str]] = {}
        # Of steps that are models: what is said of them, and the fewest rows.
        self.fits: dict[str, tuple[dict[str, object], int | None]] = {}
        # Of steps to which a network is applied: which, and how.
        self.applied: dict[str, dict[str, object]] = {}

    def fresh(self, stem: str) -> str:
        """A name that no other relation has."""
        at = 1
        while f"{stem}{at}" in self.taken:
            at += 1
        self.taken.add(f"{stem}{at}")
        return f"{stem}{at}"

    def query(self, table: Table) -> Text:
        """The text of a query."""
        outer, self.ctes = self.ctes, {}
        own = set(self.taken)
        body = lower(self, table)
        pieces: list[tuple[str, Source | None]] = []
        for at, (name, text) in enumerate(self.ctes.values()):
            pieces += [("WITH " if at == 0 else ",\n", None), (f"{name} AS (\n", None), *text, ("\n)", None)]
        pieces += [("\n", None)] if self.ctes else []
        # Names of one query are free in the next.
        self.taken = own | set(self.steps)
        self.ctes = outer
        return Text((*pieces, *body))

    def relation(self, table: Table) -> str:
        """The name by which a table stands in FROM."""
        table = bare(table)
        op = table._op
        if isinstance(op, Base):
            return op.name
        if isinstance(op, (Bounded, Fitted, Applied, Turn)):
            return op.step(self)
        body = lower(self, table)
        text = "".join(text for text, _ in body)
        if text not in self.ctes:
            self.ctes[text] = (self.fresh("r"), body)
        return self.ctes[text][0]


def lower(writer: Writer, table: Table) -> list[tuple[str, Source | None]]:
    """The text of a table, without the relations that it reads."""
    if isinstance(table._op, (Sql, Stack)):
        return table._op.text(writer)
    return statement(writer, table).text(table._op.source)


def statement(writer: Writer, table: Table) -> Statement:
    """A table as a SELECT."""
    return table._op.statement(writer, table)


def source_of(writer: Writer, table: Table) -> Statement:
    """A SELECT of all columns of a table, which stands in FROM."""
    name = writer.relation(table)
    made = Statement([((identifier(name), table._op.source),)], aliases=[name])
    for column_name in table._known("this"):
        made.items[column_name] = ((Ref(name, column_name), table._op.source),)
    made.plain = set(made.items)
    return made


def bare(table: Table) -> Table:
    """The same rows without an order, which says nothing where more is made of them."""
    op = table._op
    if isinstance(op, Order):
        return bare(op.table)
    if isinstance(op, Where):
        return Table(table._job, Where(bare(op.table), op.condition, op.source), table._names)
    if isinstance(op, Assign):
        return Table(table._job, Assign(bare(op.table), op.new, op.every, op.source), table._names)
    return table


def ordered(table: Table) -> tuple[tuple[str, bool, Source | None], ...]:
    """The order of the rows of a table that has not been cut: by which of its columns, and whether descending. Filters and choices of columns keep it."""
    op = table._op
    if isinstance(op, Order):
        own = tuple((name, down, op.source) for name, down in op.by)
        return own + tuple(one for one in ordered(op.table) if one[0] not in dict(op.by))
    if isinstance(op, Where):
        return ordered(op.table)
    if isinstance(op, (Assign, Turn)):
        return tuple(one for one in ordered(op.table))
    return ()


def opened(writer: Writer, table: Table, nodes: Iterable[Node] = ()) -> Statement:
    """A SELECT into which more can be put, where these expressions read columns alone."""
    table = bare(table)
    if isinstance(table._op, (Base, Bounded, Sql, Stack)):
        return source_of(writer, table)
    made = statement(writer, table)
    reads = {name for node in nodes for name in node.names()}
    if made.is_open() and reads <= made.plain:
        return made
    return source_of(writer, table)


@dataclass(eq=False)
class Op:
    """How a table is made."""

    source: Source | None

    def title(self) -> str:
        return f"a {type(self).__name__.lower()}"

    def rows_words(self) -> str:
        return ""

    def declared(self, name: str) -> ColumnType | None:
        return None

    def inputs(self) -> tuple[Table, ...]:
        return ()

    def statement(self, writer: Writer, table: Table) -> Statement:
        raise NotImplementedError


@dataclass(eq=False)
class Base(Op):
    """A table of an owner."""

    name: str
    owner: str
    rows: int | Rows
    types: dict[str, ColumnType]

    def title(self) -> str:
        return f"table `{self.name}`"

    def rows_words(self) -> str:
        return f" of {self.owner}, {self.rows} rows"

    def declared(self, name: str) -> ColumnType | None:
        return self.types.get(name)

    def statement(self, writer: Writer, table: Table) -> Statement:
        return source_of(writer, table)


@dataclass(eq=False)
class Of(Op):
    """Made of one table."""

    table: Table

    def title(self) -> str:
        return f"{WORDS[type(self).__name__]} {self.table._title()}"

    def declared(self, name: str) -> ColumnType | None:
        return self.table._declared(name)

    def inputs(self) -> tuple[Table, ...]:
        return (self.table,)


WORDS = {
    "Where": "rows of",
    "Assign": "columns of",
    "Distinct": "distinct rows of",
    "Order": "ordered rows of",
    "Limit": "the first rows of",
    "Bounded": "a bounded number of rows of",
    "Turn": "a turn of a loop over",
    "Fitted": "a model of",
    "Applied": "what a network gives for",
    "Group": "groups of",
    "Join": "a join of",
}


@dataclass(eq=False)
class Where(Of):
    """Rows for which a condition is true."""

    def __init__(self, table: Table, condition: Node, source: Source | None) -> None:
        self.table, self.condition, self.source = table, condition, source

    def statement(self, writer: Writer, table: Table) -> Statement:
        by = ordered(self.table)
        made = opened(writer, self.table, [self.condition, *(column(table, name, at)._node for name, _, at in by)])
        made.where.append(self.condition.pieces(made.items.__getitem__))
        made.order = in_order(made, by)
        return made


class Assign(Of):
    """Columns, some of them computed."""

    def __init__(self, table: Table, new: dict[str, Node], every: tuple[str, ...], source: Source | None) -> None:
        self.table, self.new, self.every, self.source = table, new, every, source

    def declared(self, name: str) -> ColumnType | None:
        return None if name in self.new else self.table._declared(name)

    def statement(self, writer: Writer, table: Table) -> Statement:
        by = ordered(self.table)
        made = opened(writer, self.table, [*self.new.values(), *(column(self.table, name, at)._node for name, _, at in by)])
        made.order = in_order(made, by)
        items, plain = {}, set()
        for name in self.every:
            node = self.new.get(name)
            if node is None:
                items[name] = made.items[name]
                plain |= {name} & made.plain
            else:
                items[name] = node.pieces(made.items.__getitem__)
                plain |= {name} if all(isinstance(part, Name) for part in node.parts) else set()
        made.items, made.plain = items, plain
        return made


class Distinct(Of):
    """Each row once."""

    def __init__(self, table: Table, source: Source | None) -> None:
        self.table, self.source = table, source

    def statement(self, writer: Writer, table: Table) -> Statement:
        made = opened(writer, self.table)
        made.distinct = True
        return made


class Order(Of):
    """Rows in an order."""

    def __init__(self, table: Table, by: tuple[tuple[str, bool], ...], source: Source | None) -> None:
        self.table, self.by, self.source = table, by, source

    def statement(self, writer: Writer, table: Table) -> Statement:
        inner = bare(self.table)
        by = ordered(table)
        made = source_of(writer, inner) if isinstance(inner._op, (Sql, Stack)) else statement(writer, inner)
        if made.limit:
            made = source_of(writer, inner)
        if made.is_open():
            made.order = in_order(made, by)
        else:
            made.order = [((identifier(name), at), (" DESC NULLS LAST" if down else "", at)) for name, down, at in by]
        return made


def in_order(made: Statement, by: tuple[tuple[str, bool, Source | None], ...]) -> list[Pieces]:
    """ORDER BY of columns that a SELECT reads, or computes."""
    down = " DESC NULLS LAST"
    return [(*(made.items[name] if name in made.plain else ((identifier(name), at),)), (down if falls else "", at)) for name, falls, at in by]


class Limit(Of):
    """The first rows."""

    def __init__(self, table: Table, rows: int, source: Source | None) -> None:
        self.table, self.rows, self.source = table, rows, source

    def statement(self, writer: Writer, table: Table) -> Statement:
        made = statement(writer, self.table) if not isinstance(self.table._op, (Sql, Stack)) else source_of(writer, self.table)
        if made.limit:
            made = source_of(writer, self.table)
        made.limit = (f"\nLIMIT {self.rows}", self.source)
        return made


class Bounded(Of):
    """Rows with a public bound on their number: a query of its own, which opens nothing."""

    def __init__(self, table: Table, rows: int, overflow: str, name: str | None, source: Source | None) -> None:
        self.table, self.rows, self.overflow, self.name, self.source = table, rows, overflow, name, source

    def step(self, writer: Writer) -> str:
        """The name of the query."""
        text = writer.query(self.table)
        bound = (self.rows, self.overflow)
        for name, known in writer.steps.items():
            if str(known) == str(text) and writer.bounds.get(name) == bound and self.name in (None, name):
                return name
        if self.name is not None and self.name in writer.taken:
            raise JobError(f"two relations have the name `{self.name}`", source=self.source)
        name = self.name or writer.fresh("bounded")
        writer.taken.add(name)
        writer.steps[name], writer.bounds[name] = text, bound
        return name

    def statement(self, writer: Writer, table: Table) -> Statement:
        return source_of(writer, table)


class Turn(Of):
    """Rows with what a turn of a loop makes: a query of its own, so that each turn reads what the one before has made."""

    def __init__(self, table: Table, source: Source | None) -> None:
        self.table, self.source = table, source

    def step(self, writer: Writer) -> str:
        """The name of the query."""
        text = writer.query(bare(self.table))
        for name, known in writer.steps.items():
            if str(known) == str(text) and not any(name in of for of in (writer.bounds, writer.fits, writer.applied)):
                return name
        name = writer.fresh("turn")
        writer.steps[name] = text
        return name

    def statement(self, writer: Writer, table: Table) -> Statement:
        return source_of(writer, table)


class Fitted(Of):
    """The terms of a model of the rows: a query of its own, which opens nothing."""

    def __init__(self, table: Table, fields: dict[str, object], min_count: int | None, source: Source | None) -> None:
        self.table, self.fields, self.min_count, self.source = table, fields, min_count, source

    def declared(self, name: str) -> ColumnType | None:
        return None

    def step(self, writer: Writer) -> str:
        """The name of the query."""
        text, fit = writer.query(self.table), (self.fields, self.min_count)
        for name, known in writer.steps.items():
            if str(known) == str(text) and writer.fits.get(name) == fit:
                return name
        name = writer.fresh("model")
        writer.steps[name], writer.fits[name] = text, fit
        return name

    def statement(self, writer: Writer, table: Table) -> Statement:
        return source_of(writer, table)


class Applied(Of):
    """What a network gives for the rows: a query of its own, which opens nothing."""

    def __init__(self, table: Table, fields: dict[str, object], kept: tuple[str, ...], source: Source | None) -> None:
        self.table, self.fields, self.kept, self.source = table, fields, kept, source

    def declared(self, name: str) -> ColumnType | None:
        return self.table._declared(name) if name in self.kept else None

    def step(self, writer: Writer) -> str:
        """The name of the query."""
        text = writer.query(bare(self.table))
        for name, known in writer.steps.items():
            if str(known) == str(text) and writer.applied.get(name) == self.fields:
                return name
        name = writer.fresh("applied")
        writer.steps[name], writer.applied[name] = text, self.fields
        return name

    def statement(self, writer: Writer, table: Table) -> Statement:
        return source_of(writer, table)


class Group(Of):
    """A row for each group."""

    def __init__(self, table: Table, keys: tuple[str, ...], aggregates: dict[str, Node], source: Source | None) -> None:
        self.table, self.keys, self.aggregates, self.source = table, keys, aggregates, source

    def declared(self, name: str) -> ColumnType | None:
        return None if name in self.aggregates else self.table._declared(name)

    def statement(self, writer: Writer, table: Table) -> Statement:
        keys = [column(self.table, key, self.source)._node for key in self.keys]
        made = opened(writer, self.table, [*keys, *self.aggregates.values()])
        of = made.items.__getitem__
        made.group = [key.pieces(of) for key in keys]
        made.items = {name: key.pieces(of) for name, key in zip(self.keys, keys)} | {name: node.pieces(of) for name, node in self.aggregates.items()}
        made.plain = set()
        return made


class Join(Of):
    """Rows of two tables that have the same keys."""

    def __init__(self, table: Table, other: Table, pairs: dict[str, str], how: str, taken: dict[str, str], source: Source | None) -> None:
        self.table, self.other, self.pairs, self.how, self.taken, self.source = table, other, pairs, how, taken, source

    def title(self) -> str:
        return f"the join of {self.table._title()} and {self.other._title()}"

    def declared(self, name: str) -> ColumnType | None:
        return self.other._declared(self.taken[name]) if name in self.taken else self.table._declared(name)

    def inputs(self) -> tuple[Table, ...]:
        return (self.table, self.other)

    def statement(self, writer: Writer, table: Table) -> Statement:
        keys = [column(self.table, own, self.source)._node for own in self.pairs]
        made = opened(writer, self.table, keys)
        relation = writer.relation(self.other)
        alias, at = relation, 1
        while alias in made.aliases:
            at += 1
            alias = f"{relation}_{at}"
        made.aliases.append(alias)
        made.qualified = True
        source = self.source
        stands = identifier(relation) + (f" AS {identifier(alias)}" if alias != relation else "")
        equal: list[Piece] = []
        for at, (key, other) in enumerate(zip(keys, self.pairs.values())):
            equal += [(" AND ", source)] if at else []
            equal += [*key.pieces(made.items.__getitem__), (" = ", source), (Ref(alias, other), source)]
        if self.how in ("semi", "anti"):
            word = "EXISTS" if self.how == "semi" else "NOT EXISTS"
            made.where.append(((f"{word} (SELECT 1 FROM {stands} WHERE ", source), *equal, (")", source)))
            return made
        if made.where:
            # What a LEFT JOIN keeps is what there is before it, and a condition on it stands before it.
            if self.how == "left":
                made = source_of(writer, self.table)
                return Join(self.table, self.other, self.pairs, self.how, self.taken, source)._onto(made, writer)
        word = "JOIN" if self.how == "inner" else "LEFT JOIN"
        made.sources.append(((f"{word} {stands} ON ", source), *equal))
        for new, name in self.taken.items():
            made.items[new] = ((Ref(alias, name), source),)
            made.plain.add(new)
        return made

    def _onto(self, made: Statement, writer: Writer) -> Statement:
        """A LEFT JOIN of a relation as a whole."""
        relation = writer.relation(self.other)
        alias = relation if relation not in made.aliases else f"{relation}_2"
        stands = identifier(relation) + (f" AS {identifier(alias)}" if alias != relation else "")
        equal: list[Piece] = []
        for at, (own, other) in enumerate(self.pairs.items()):
            equal += [(" AND ", self.source)] if at else []
            equal += [*made.items[own], (" = ", self.source), (Ref(alias, other), self.source)]
        made.aliases.append(alias)
        made.qualified = True
        made.sources.append(((f"LEFT JOIN {stands} ON ", self.source), *equal))
        for new, name in self.taken.items():
            made.items[new] = ((Ref(alias, name), self.source),)
            made.plain.add(new)
        return made


class Sql(Op):
    """A query in SQL."""

    def __init__(self, sql: str, reads: tuple[Table, ...], source: Source | None) -> None:
        self.sql, self.reads, self.source = sql, reads, source

    def title(self) -> str:
        return "the query"

    def inputs(self) -> tuple[Table, ...]:
        return self.reads

    def text(self, writer: Writer) -> list[tuple[str, Source | None]]:
        return [(self.sql, InSql(*self.source) if self.source else None)]

    def statement(self, writer: Writer, table: Table) -> Statement:
        return source_of(writer, table)


class Stack(Op):
    """Rows of several tables."""

    def __init__(self, tables: tuple[Table, ...], source: Source | None) -> None:
        self.tables, self.source = tables, source

    def title(self) -> str:
        return "the rows of " + " and ".join(table._title() for table in self.tables)

    def inputs(self) -> tuple[Table, ...]:
        return self.tables

    def text(self, writer: Writer) -> list[tuple[str, Source | None]]:
        out: list[tuple[str, Source | None]] = []
        for at, table in enumerate(self.tables):
            made = statement(writer, bare(table))
            if made.order or made.limit:
                made = source_of(writer, table)
            out += [("\nUNION ALL\n", self.source)] if at else []
            out += made.text(self.source)
        return out

    def statement(self, writer: Writer, table: Table) -> Statement:
        return source_of(writer, table)
