"""Jobs: who takes part, which tables they bring, what is asked and to whom it is opened."""

from __future__ import annotations

import decimal
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple, overload

from . import _veil
from ._bar import Bar
from ._source import here
from .columns import Aggregate
from .data import Data, batches
from .errors import JobError, PlanError, Source, raise_run, refused_range
from .models import Forest, Model, TableFunction
from .networks import Network, NetworkModel
from .result import Answer, Result
from .shadow import Shadow
from .sql import Text, exact
from .tables import Base, Op, Sql, Table, Writer
from .types import ColumnType, Rows, toml


@dataclass
class _Open:
    """A query of the job."""

    name: str
    table: Table
    to: str | None
    min_count: int | None
    files: list[str] | None
    source: Source | None
    keep: str | None = None
    open_size: Mapping[str, Any] | None = None


class Cost(NamedTuple):
    """What a run costs over a network: seconds from the first message to the last, rounds that follow each other, and payload bytes and messages that all
    participants send; `sent` has the bytes of each."""

    net: str
    seconds: float
    rounds: int
    bytes: int
    messages: int
    sent: dict[str, int]


def _exact(number: Any, source: Source | None) -> int | str:
    """A number as a job file has it, with all its digits."""
    if isinstance(number, float):
        number = exact(number, source)
    if isinstance(number, int) and not isinstance(number, bool):
        return int(number)
    try:
        return format(decimal.Decimal(number), "f")
    except (decimal.InvalidOperation, TypeError, ValueError):
        raise JobError(f"{number!r} is no number", source=source) from None


class Job:
    """A job that is written down as it is asked: tables of owners, questions over them, recipients of the answers.

    The text of the job, `job.text`, is all that counts: Rust parses, plans, hashes and runs it, here and at participants without Python.
    """

    def __init__(
        self,
        name: str,
        *,
        owners: Sequence[str],
        parties: Sequence[str],
        recipients: Sequence[str] = (),
        salt: str | None = None,
        adversary: str | None = None,
    ) -> None:
        self._head: dict[str, Any] = {"name": name, "owners": list(owners), "parties": list(parties), "recipients": list(recipients), "salt": salt, "adversary": adversary}
        self._tables: dict[str, tuple[Base, str]] = {}
        self._bare: dict[str, str] = {}
        self._models: dict[str, Forest | Network] = {}
        self._functions: dict[str, str] = {}
        # Tables of the weights of networks, by their names.
        self._weights: dict[str, str] = {}
        self._opens: list[_Open] = []
        self._fixed: tuple[str, pathlib.Path] | None = None
        self._path: pathlib.Path | None = None
        self._planned: tuple[str, _veil.Job] | None = None
        self._texts: dict[str, Text] = {}

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Job:
        """A job file, as it is: to explain, check and run it."""
        file = pathlib.Path(path)
        job = Job(file.stem, owners=(), parties=())
        try:
            job._fixed = (file.read_text(encoding="utf-8"), file.parent)
            job._path = file.absolute()
        except OSError as error:
            raise JobError(f"{file} cannot be read: {error.strerror}", source=here()) from None
        job._head["name"] = job._plan().name
        return job

    # What is asked.

    def table(
        self,
        name: str,
        *,
        owner: str | None = None,
        rows: int | Rows,
        columns: Mapping[str, ColumnType],
        stored: str | None = None,
        opened_size: int | None = None,
        first_rows: int | None = None,
        unique: Iterable[str | Sequence[str]] = (),
        sorted_by: str | Sequence[str] = (),
        file: str | None = None,
        written: Mapping[str, Any] | None = None,
    ) -> Table:
        """Declares a table of an owner. Its rows stay with the owner; how many it has room for, and what its columns are, is public.

        `written` says how the owner's data are written: `decimal`, `thousands` and `dates` (`"%d.%m.%Y"`), which are the owner's own; `missing` (words for
        an empty cell) and `round=True` for numbers with more digits than a column keeps, as floats have, on which participants agree.

        `stored` names a dataset that the parties have kept, instead of an `owner`: rows, columns and claims are then those that `veil shares show` prints at a
        party; `opened_size` and `first_rows` as well.
        """
        source = here()
        self._changes(source)
        if (owner is None) == (stored is None):
            raise JobError(f"table `{name}` is an owner's, or stored", source=source, help="say one of owner=... and stored=...")
        if name in self._tables:
            raise JobError(f"the job has a table `{name}` already", source=source)
        fields = []
        for column, kind in columns.items():
            if not isinstance(kind, ColumnType):
                raise JobError(f"column `{column}` has no type: {kind!r}", source=source, help="write vw.Integer(0, 120), vw.Category([...]), vw.Bool() …")
            guess = f"  # guess: {', '.join(kind.guesses)}" if kind.guesses else ""
            fields.append(f"  {toml({'name': column, 'type': kind.word} | kind.fields)},{guess}")
        places = {"up_to": rows.up_to} | ({"bucket": rows.bucket} if rows.bucket else {}) if isinstance(rows, Rows) else rows
        claims = [[claim] if isinstance(claim, str) else list(claim) for claim in unique]
        order = [sorted_by] if isinstance(sorted_by, str) else list(sorted_by)
        of = f"owner = {toml(owner)}" if stored is None else f"stored = {toml(stored)}"
        lines = ["[[table]]", f"name = {toml(name)}", of, f"rows = {toml(places)}"]
        lines += [f"{field} = {toml(number)}" for field, number in (("opened_size", opened_size), ("first_rows", first_rows)) if number is not None]
        lines += [f"sorted_by = {toml(order)}"] if order else []
        lines += [f"unique = {toml(claims)}"] if claims else []
        lines += [f"file = {toml(file)}"] if file else []
        lines += [f"written = {toml(dict(written))}"] if written else []
        base = Base(source, name, owner or f"kept as {stored}", rows, dict(columns))
        self._tables[name] = (base, "\n".join([*lines, "column = [", *fields, "]"]) + "\n")
        # The same without what its owner lets queries do: for questions about types, which are never asked of parties.
        bare = [f"  {toml({'name': column, 'type': kind.word} | {field: one for field, one in kind.fields.items() if field not in ('may', 'reveal')})}," for column, kind in columns.items()]
        self._bare[name] = "\n".join([*lines, "column = [", *bare, "]"]) + "\n"
        return Table(self, base, tuple(columns))

    @overload
    def model(self, name: str, of: Forest | str | os.PathLike[str]) -> Model: ...

    @overload
    def model(self, name: str, of: Network, *, weights: Table | None = None) -> NetworkModel: ...

    def model(self, name: str, of: Forest | Network | str | os.PathLike[str], *, weights: Table | None = None) -> Model | NetworkModel:
        """Declares a model of trees: a `Forest`, of `vw.forest`, or the path of its file; or a `Network`, of `vw.network`. All participants have it, with every
        threshold and leaf, or every weight; but for the `weights` that an owner brings of a network that was split, in a table of the job."""
        source = here()
        self._changes(source)
        if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
            raise JobError(f"`{name}` is no name of a model", source=source, help="lower-case letters, digits and `_`, no digit first")
        if name in self._models:
            raise JobError(f"the job has a model `{name}` already", source=source)
        if isinstance(of, Network):
            if of.secret and weights is None:
                raise JobError(
                    f"network `{name}` has {of.secret} weights that an owner brings, and no table of them",
                    source=source,
                    help='weights = job.table("weights", owner="lab", **shape.declared), and job.model(name, shape, weights=weights)',
                )
            if weights is not None:
                self._weights[name] = self._of_weights(name, of, weights, source)
            self._models[name] = of
            return NetworkModel(name, of)
        if weights is not None:
            raise JobError(f"model `{name}` is of trees, and takes no weights of a table", source=source)
        forest = of if isinstance(of, Forest) else Forest.read(of)
        self._models[name] = forest
        return Model(name, forest)

    def function(self, name: str, values: Sequence[Any] | Mapping[str, Any], *, first: Any = 0, step: Any = 1, decimals: int = 0) -> TableFunction:
        """Declares a public function by up to 4096 values, exact: of numbers from `first` on, `step` (1, `D("0.1")`, …) apart; or, by a mapping, of the texts of a category.
        `decimals` are those of its values. Called with a column, it gives a column: `tax = job.function("tax", [0, D("0.14")], decimals=2)`, `tax(t.bracket)`."""
        source = here()
        self._changes(source)
        if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
            raise JobError(f"`{name}` is no name of a function", source=source, help="lower-case letters, digits and `_`, no digit first")
        if name in self._functions:
            raise JobError(f"the job has a function `{name}` already", source=source)
        texts = isinstance(values, Mapping)
        if texts and (first != 0 or step != 1):
            raise JobError(f"function `{name}` is of texts, which have no first and no step", source=source)
        of: dict[str, Any] = {"of": list(values)} if texts else {"first": _exact(first, source), "step": _exact(step, source)}
        listed = values.values() if isinstance(values, Mapping) else values
        of |= {"scale": decimals, "values": [_exact(value, source) for value in listed]}
        self._functions[name] = f"[function.{name}]\n" + "".join(f"{field} = {toml(value)}\n" for field, value in of.items())
        return TableFunction(name)

    def _of_weights(self, name: str, of: Network, weights: Table, source: Source | None) -> str:
        """The name of a table of weights."""
        op = getattr(weights, "_op", None)
        if not isinstance(op, Base) or weights._job is not self:
            raise JobError(f"the weights of network `{name}` are a table of this job as its owner brings it", source=source, help='job.table("weights", owner="lab", **shape.declared)')
        if not of.secret:
            raise JobError(f"all weights of network `{name}` are in its file, and it takes none of a table", source=source, help="shape, weights = network.split() takes them out")
        if op.rows != of.secret or len(op.types) != 1:
            raise JobError(f"network `{name}` has {of.secret} weights that an owner brings, and `{op.name}` is no table of one column and as many rows", source=source, help="job.table(..., **shape.declared)")
        return op.name

    def sql(self, text: str, *, tables: Iterable[Table] | None = None, columns: Sequence[str] | None = None) -> Table:
        """A relation by a query in SQL. `tables` are those that it reads, else it may read all of the job; `columns` are the names of its columns, for methods that need them."""
        reads = tuple(tables) if tables is not None else tuple(Table(self, base, tuple(base.types)) for base, _ in self._tables.values())
        return Table(self, Sql(text.strip(), reads, here()), None if columns is None else tuple(columns))

    def open(self, what: Table | Aggregate, *, to: str, name: str | None = None, min_count: int | None = None, files: Sequence[str] | None = None) -> None:
        """Asks that a relation be opened to a participant, and to no other. With `min_count`, groups of fewer rows are left out."""
        source = here()
        self._changes(source)
        if isinstance(what, Aggregate):
            if what._table is None:
                raise JobError("an aggregate of no table", source=source)
            what = what._table.agg(value=what)
        if not isinstance(what, Table):
            raise JobError(f"a table or an aggregate is opened, and not a {type(what).__name__}", source=source, help="select columns of the table: table[[...]]")
        if what._job is not self:
            raise JobError(f"{what._title()} is of another job", source=source)
        name = name if name is not None else "answer" if not self._opens else f"answer{len(self._opens) + 1}"
        if any(other.name == name for other in self._opens):
            raise JobError(f"two answers have the name `{name}`", source=source, help="say another: job.open(..., name=...)")
        self._opens.append(_Open(name, what, to, min_count, list(files) if files else None, source))

    def keep(
        self,
        table: Table,
        dataset: str,
        *,
        to: str | None = None,
        name: str | None = None,
        min_count: int | None = None,
        open_size: Mapping[str, Any] | None = None,
    ) -> None:
        """Asks that the parties keep their shares of a relation as a dataset of this name, which later jobs of theirs load: `job.table(..., stored=dataset)`. Nothing is
        opened by it, unless `to` says to whom the relation is opened as well, or `open_size` which bucket of the number of its rows:
        `{"round_up_to": 1000, "why": "the next joins are smaller"}`. Such a job is run by homes, and not by `run_local`."""
        source = here()
        self.open(table, to=to or "", name=name, min_count=min_count)
        one = self._opens[-1]
        one.to, one.keep, one.open_size, one.source = to, dataset, open_size, source

    def _changes(self, source: Source | None) -> None:
        if self._fixed is not None:
            raise JobError("a job that was read from a file stays as it is", source=source, help="make one by vw.Job(...)")
        self._planned = None

    # What it means.

    @property
    def text(self) -> str:
        """The text of its job file."""
        if self._fixed is not None:
            return self._fixed[0]
        if not self._opens:
            raise JobError("the job opens nothing", source=here(), help="job.open(table, to=...)")
        opens = sorted(self._opens, key=lambda one: one.name)
        writer = Writer([*self._tables, *(one.name for one in opens)])
        texts = {one.name: writer.query(one.table) for one in opens}
        read = set(self._weights.values())
        for one in opens:
            _reads(one.table._op, read)
        self._texts = writer.steps | texts
        head = {"version": 1, "kind": "query"} | self._head
        parts = ["".join(f"{field} = {toml(value)}\n" for field, value in head.items() if value is not None)]
        for name in sorted(self._models):
            weights = self._weights.get(name)
            parts.append(f"[model.{name}]\nfile = {toml(f'{name}.json')}\n" + (f"weights = {toml(weights)}\n" if weights else ""))
        parts += [text for _, text in sorted(self._functions.items())]
        parts += [text for name, (_, text) in sorted(self._tables.items()) if name in read]
        for name, text in writer.steps.items():
            fit, least = writer.fits.get(name, (None, None))
            of_model = {"fit": fit, "min_count": least, "apply": writer.applied.get(name)}
            parts.append(_query(name, text) + "".join(f"{field} = {toml(value)}\n" for field, value in of_model.items() if value is not None))
        for one in opens:
            more = {"to": one.to, "keep": one.keep, "open_size": dict(one.open_size) if one.open_size else None, "min_count": one.min_count, "file": one.files}
            parts.append(_query(one.name, texts[one.name]) + "".join(f"{field} = {toml(value)}\n" for field, value in more.items() if value is not None))
        for name, (rows, overflow) in writer.bounds.items():
            parts.append(f"[[bound]]\nof = {toml(name)}\nrows = {rows}\noverflow = {toml(overflow)}\n")
        return "\n".join(parts)

    def _plan(self) -> _veil.Job:
        text = self.text
        if self._planned is None or self._planned[0] != text:
            folder = self._fixed[1] if self._fixed else pathlib.Path.cwd()
            try:
                self._planned = (text, _veil.Job.parse(text, folder, self._beside()))
            except _veil.Failure as failure:
                raise self._refused(failure) from None
        return self._planned[1]

    def _compared(self, given: Table, contracts: Mapping[str, ColumnType]) -> _veil.Job:
        """A job that no participant runs: it opens columns of this job as `given`, and columns of these types as `contract`, so that their ranges are compared."""
        other = Job(self.name, owners=[*self._head["owners"], "contract"], parties=self._head["parties"], recipients=["reader"], salt=self._head["salt"])
        other._tables = {name: (base, self._bare[name]) for name, (base, _) in self._tables.items()}
        other._models, other._weights, other._functions = self._models, self._weights, self._functions
        name = next(name for name in (f"contract_{at}" for at in range(len(self._tables) + 1)) if name not in self._tables)
        contract = other.table(name, owner="contract", rows=1, columns=contracts)
        other._opens = [_Open("given", given, "reader", None, None, here()), _Open("contract", contract, "reader", None, None, here())]
        try:
            return _veil.Job.parse(other.text, pathlib.Path.cwd(), other._beside())
        except _veil.Failure as failure:
            raise other._refused(failure) from None

    def _refused(self, failure: _veil.Failure) -> JobError:
        _, message, help, at, *_ = failure.args
        if self._fixed is None:
            # There is no such file: what is wrong is in this program.
            message = re.sub(r"\A\S*job\.toml(:\d+)*: ", "", message)
        if at is None:
            return PlanError(message, help=help)
        query, line, column = at
        text = self._texts.get(query) if query else None
        if query and text:
            source = text.source(line, column)
            if failure.args[6] is not None:
                return refused_range(failure.args[6], message, source, line, column)
            return PlanError(message, source=source, help=help, line=line, column=column)
        if query and failure.args[6] is not None:
            return refused_range(failure.args[6], message, None, line, column)
        lines = self.text.split("\n")
        excerpt = f"\n  {lines[line - 1]}\n  {' ' * (column - 1)}^" if line <= len(lines) else ""
        of = PlanError if query else JobError
        return of(message + excerpt, source=self._declared_at(line), help=help, line=line, column=column)

    def _declared_at(self, line: int) -> Source | None:
        """The line of the program that declared what is in this line of the job's text."""
        before = "\n".join(self.text.split("\n")[:line])
        found = [(before.rfind(f"[[table]]\nname = {toml(name)}\n"), base.source) for name, (base, _) in self._tables.items()]
        found += [(before.rfind(f"[[query]]\nname = {toml(one.name)}"), one.source) for one in self._opens]
        best = max(found, key=lambda one: one[0], default=(-1, None))
        return best[1] if best[0] >= 0 else None

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._head["name"])

    @property
    def plan_hash(self) -> str:
        """The hash of its plan, on which all participants agree: it covers all that is read, computed and opened. Its first 16 digits, as messages show it."""
        return self._plan().plan_hash

    @property
    def plan(self) -> str:
        """All 64 digits of the plan's hash."""
        return self._plan().plan

    @property
    def opens(self) -> list[tuple[str | None, str]]:
        """What is opened: to whom, which is None for the computing parties, and what."""
        return self._plan().opens

    @property
    def guarantee(self) -> str:
        """What the result is worth."""
        return self._plan().guarantee

    def explain(self, *, plan: bool = False) -> str:
        """What `veil explain` prints: what is opened to whom and what is not, which columns are read, what it costs; with `plan`, the operators."""
        return self._plan().explain(pathlib.Path("job.toml"), plan)

    def cost(self, net: str = "lan", *, parties: int | None = None, adversary: str | None = None) -> Cost:
        """What a run costs, as `veil explain` estimates it: over `"lan"`, `"wan"` or `"loopback"`, which is one machine.

        With `parties` or `adversary` (`"semi-honest"`, `"malicious"`), what the same job costs among so many parties, or against that adversary, to compare:
        the job stays as it is.
        """
        plan = self._plan()
        if parties is not None or adversary is not None:
            plan = self._among(parties, adversary)
        rounds, seconds, participants = plan.costs()
        of = dict(seconds)
        if net not in of:
            raise JobError(f"net={net!r} is none of {', '.join(of)}", source=here())
        sent = {name: (messages, bytes) for name, _, messages, bytes in participants}
        return Cost(net, of[net], rounds, sum(bytes for _, bytes in sent.values()), sum(messages for messages, _ in sent.values()), {name: bytes for name, (_, bytes) in sent.items()})

    def _among(self, parties: int | None, adversary: str | None) -> _veil.Job:
        if self._fixed is not None:
            raise JobError("a job that was read from a file has the parties that it has", source=here(), help="make one by vw.Job(...)")
        names = list(self._head["parties"])
        if parties is not None:
            taken = {*names, *self._head["owners"], *self._head["recipients"]}
            more = (name for name in (f"party-{at}" for at in range(1, parties + len(taken) + 1)) if name not in taken)
            names = [*names, *more][:parties]
        head = self._head
        self._head = head | {"parties": names, "adversary": adversary if adversary is not None else None if parties is not None else head["adversary"]}
        try:
            return _veil.Job.parse(self.text, pathlib.Path.cwd(), self._beside())
        except _veil.Failure as failure:
            raise self._refused(failure) from None
        finally:
            self._head = head

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the job file, which `veil explain`, `veil run`, `veil submit` and colleagues without Python take: same plan hash. Models are written beside it."""
        self._plan()
        self._write(pathlib.Path(path))

    def _beside(self) -> dict[str, bytes]:
        """Files of models, which stand beside the job's."""
        return {f"{name}.json": of.text.encode() for name, of in self._models.items()}

    def _write(self, file: pathlib.Path) -> None:
        if file.name in (f"{name}.json" for name in self._models):
            raise JobError(f"{file} is the name of a model of the job", source=here())
        for name, of in self._models.items():
            of.save(file.parent / f"{name}.json")
        file.write_text(self.text, encoding="utf-8")

    # Runs.

    def _given(self, data: Mapping[str, Data]) -> list[tuple[str, str, Any]]:
        known = {table: owner for owner, table, _ in self._plan().data}
        for name in data:
            if name not in known and name not in self._tables:
                raise JobError(f"the job has no table `{name}`; it reads {', '.join(known)}", source=here())
        return [(known[name], name, batches(name, table)) for name, table in data.items() if name in known]

    def check(self, data: Mapping[str, Data] | None = None) -> list[tuple[str, int, int]]:
        """Looks at every cell of the tables as their owners would, and runs nothing: of each table its name, its rows, and bytes that were read."""
        try:
            return self._plan().check(self._given(data or {}))
        except _veil.Failure as failure:
            raise_run(failure)

    def shadow(self, data: Mapping[str, Data] | None = None) -> Shadow:
        """A shadow run: the queries in the clear on sample rows, in this process and without any connection, to see whether the ranges that people declared hold and are not
        wasteful. Of each column that queries read or make it reports the proved and the observed range, the bits of both, rows at the ends of the range, where `clip` acts, and how
        far functions are from IEEE doubles.

        A table may have fewer rows than the job says. A cell outside its declared range is a `DataError`, with its row and column. The report changes no plan.
        """
        plan = self._plan()
        given = self._given(data or {})
        try:
            return Shadow(*plan.shadow(given))
        except _veil.Failure as failure:
            raise_run(failure)

    def run_local(
        self,
        data: Mapping[str, Data] | None = None,
        *,
        progress: bool | None = None,
        timeout: float | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> Result:
        """Runs all participants in this process, on tables that are given here or are where the job says: to try and to test. This process sees all data."""
        plan = self._plan()
        given = self._given(data or {})
        bar = Bar(progress)
        try:
            answers = plan.run(given, bar, timeout, None if out is None else pathlib.Path(out))
        except _veil.Failure as failure:
            raise_run(failure)
        finally:
            bar.close()
        return Result([Answer(answer) for answer in answers], plan.opens, plan.plan_hash)

    # What people see.

    def __repr__(self) -> str:
        return f"<Job {self.name}: tables {', '.join(self._tables) or 'of a file'}>"

    def _repr_html_(self) -> str:
        if self._fixed is None and not self._opens:
            return f"<p>Job <b>{escape(self.name)}</b>, which opens nothing yet</p>"
        rows = "".join(f"<tr><td>{escape(to or 'the computing parties')}</td><td>{escape(what)}</td></tr>" for to, what in self.opens)
        return f"<table><caption>Job {escape(self.name)}</caption><tr><th>to</th><th>what is opened</th></tr>{rows}</table><p>{escape(self.guarantee)}</p><p>plan {escape(self.plan_hash)}</p>"

    def __reduce__(self) -> Any:
        raise TypeError("a job is neither pickled nor copied: job.save(path) writes it")


def _query(name: str, text: Text) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"""', '""\\"')
    if escaped.endswith('"'):
        escaped = escaped[:-1] + '\\"'
    return f'[[query]]\nname = {toml(name)}\nsql = """\n{escaped}"""\n'


def _reads(op: Op, into: set[str]) -> None:
    if isinstance(op, Base):
        into.add(op.name)
    for table in op.inputs():
        _reads(table._op, into)


def sql(text: str, *, tables: Sequence[Table], columns: Sequence[str] | None = None, to: str | None = None, name: str | None = None, min_count: int | None = None) -> Table:
    """A query over tables of a job; with `to`, it is opened as `job.open` does."""
    if not tables:
        raise JobError("a query is over at least one table", source=here())
    made = tables[0]._job.sql(text, tables=tables, columns=columns)
    if to is not None:
        made._job.open(made, to=to, name=name, min_count=min_count)
    return made
