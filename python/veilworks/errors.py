"""Exceptions: what went wrong, where in your own program, and what to write instead."""

from __future__ import annotations

import datetime
import decimal
import linecache
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, overload

from . import _veil


class Source(NamedTuple):
    """A line of your program."""

    file: str
    line: int

    def quoted(self) -> str:
        """The line with its text, if that is known."""
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}, line {self.line}" + (f":\n    {text}" if text else "")


class VeilError(Exception):
    """What all errors of the package are."""

    help: str = ""
    source: Source | None = None


class JobError(VeilError, ValueError):
    """A job says what no job can: a name, a range, a type, a participant. `line` and `column` are of the text of the job, where the fault has a place there."""

    def __init__(self, message: str, *, source: Source | None = None, help: str = "", line: int | None = None, column: int | None = None) -> None:
        where = f"\n  {source.quoted()}" if source else ""
        super().__init__(message + where + (f"\n  {help}" if help else ""))
        self.source, self.help, self.line, self.column = source, help, line, column


class Range(NamedTuple):
    """What an operand may be: numbers or days from `min` to `max`, as the planner proves it from the declared columns."""

    min: int | decimal.Decimal | datetime.date
    max: int | decimal.Decimal | datetime.date


class PlanError(JobError):
    """A question that parties do not answer as it is put. `source` is the line of your program that put it.

    Where the ranges of an operation are refused, `operation` is its name (`*`, `ln`, `sum`), `range` what each operand may be, and `remedies` what to write
    instead, where operands are `x` and `y`: each alone helps.
    """

    def __init__(
        self,
        message: str,
        *,
        source: Source | None = None,
        help: str = "",
        line: int | None = None,
        column: int | None = None,
        operation: str | None = None,
        range: Sequence[Range] = (),
        remedies: Sequence[str] = (),
    ) -> None:
        super().__init__(message, source=source, help=help, line=line, column=column)
        self.operation, self.range, self.remedies = operation, tuple(range), tuple(remedies)


class InSql(Source):
    """A line of your program that gives a text of SQL: what is wrong in it is said in SQL."""


_PARSED: dict[str, Callable[[str], int | decimal.Decimal | datetime.date]] = {"integer": int, "decimal": decimal.Decimal, "date": datetime.date.fromisoformat}


def refused_range(of: tuple[str, str, list[tuple[str, str, str]], list[str], str, list[str]], message: str, source: Source | None, line: int, column: int) -> PlanError:
    """A refusal of the ranges of an operation, in words of Python where Python wrote it."""
    operation, what, ends, remedies, instead, in_sql = of
    sql = source is None or isinstance(source, InSql)
    return PlanError(
        message if sql else what,
        source=source,
        help="" if sql else instead,
        line=line,
        column=column,
        operation=operation,
        range=[Range(_PARSED[kind](least), _PARSED[kind](greatest)) for kind, least, greatest in ends],
        remedies=in_sql if sql else remedies,
    )


class SecretError(VeilError, TypeError):
    """A program asked for a value that no participant has, such as the truth of a condition on a row."""

    def __init__(self, message: str, *, source: Source | None, help: str) -> None:
        where = f"\n  {source.quoted()}" if source else ""
        super().__init__(f"{message}{where}\n  {help}")
        self.source, self.help = source, help


class Problem(NamedTuple):
    """A cell that does not fit its column: its row from 1, its line in a text file, the name of its column, its text, and what is wrong. Only the owner of a
    table sees it."""

    row: int
    line: int | None
    column: str | None
    cell: str
    what: str


class Problems(Sequence[Problem]):
    """The first cells of a table at fault, and the file that they are in: a sequence, and a table of Arrow with the columns file, row, line, column, cell and
    what: `pyarrow.table(error.problems)`."""

    def __init__(self, problems: Iterable[Problem] = (), file: str = "") -> None:
        self._problems, self.file = list(problems), file

    @overload
    def __getitem__(self, at: int) -> Problem: ...

    @overload
    def __getitem__(self, at: slice) -> list[Problem]: ...

    def __getitem__(self, at: int | slice) -> Problem | list[Problem]:
        return self._problems[at]

    def __len__(self) -> int:
        return len(self._problems)

    def __repr__(self) -> str:
        return repr(self._problems)

    def _table(self) -> _veil.Batches:
        return _veil.Batches.of_problems([(self.file, one.row, one.line, one.column, one.cell, one.what) for one in self])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> Any:
        raise TypeError("what has data of participants is neither pickled nor copied")


class DataError(VeilError, ValueError):
    """A table is not as the job declares it. `problems` has the first of its cells at fault, as a list and as a table of Arrow."""

    def __init__(self, message: str, problems: Iterable[Problem] = (), file: str = "") -> None:
        super().__init__(message)
        self.problems = Problems(problems, file)


class RunError(VeilError):
    """A run has ended, and nothing was published."""


class LinkLost(RunError):
    """A participant was not reached, is not reached any more, or gave up: `peer`, if one is known, and `step`, the message that was under way."""

    def __init__(self, message: str, *, peer: str | None = None, step: str | None = None) -> None:
        super().__init__(message)
        self.peer, self.step = peer, step


class Stalled(RunError):
    """Participants did not come, or nothing came from them for too long: `waits_for` has their names."""

    def __init__(self, message: str, *, waits_for: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.waits_for = list(waits_for)


class CheckFailed(RunError):
    """A participant cheated, or a check of what owners supply failed. `suspects` has the names of those of whom one lied."""

    def __init__(self, message: str, *, suspects: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.suspects = list(suspects)


class DeviceFailed(RunError):
    """A device failed."""


class NotApproved(VeilError):
    """A job was not approved here, so that it does not run here. `home.approve(job)` shows it and asks."""


class Refused(VeilError):
    """A participant refuses a job: by a rule of its policy, whose name is `rule` where it is this participant's own, or by a person. `by` has the name
    of another participant that refuses."""

    def __init__(self, message: str, *, rule: str | None = None, by: str | None = None) -> None:
        super().__init__(message)
        self.rule, self.by = rule, by


def _message(failure: _veil.Failure) -> tuple[str, str, str, tuple[str | None, int, int] | None, list[Any]]:
    kind, message, help, at, cells, _, _ = failure.args
    return kind, message, help, at, cells


def raise_run(failure: _veil.Failure) -> NoReturn:
    """Raises what ended a check of tables, or a run."""
    kind, message, help, _, cells = _message(failure)
    text = message + (f"\n  {help}" if help else "")
    suspects, waits_for, peer, step, table = failure.args[5]
    if kind == "input":
        raise DataError(text, [Problem(*cell) for cell in cells], "" if table is None else str(table)) from None
    if kind == "usage":
        raise JobError(message, help=help) from None
    if kind == "check":
        raise CheckFailed(text, suspects=suspects) from None
    if waits_for:
        raise Stalled(text, waits_for=waits_for) from None
    if kind == "link":
        raise LinkLost(text, peer=peer, step=step) from None
    raise (DeviceFailed if kind == "device" else RunError)(text) from None
