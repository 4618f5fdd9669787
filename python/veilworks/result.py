"""What a run has opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from . import _veil

if TYPE_CHECKING:
    import pandas
    import polars


class Answer:
    """A relation that was opened to a recipient. Arrow takes it as it is: `pyarrow.table(answer)`, `polars.DataFrame(answer)`."""

    def __init__(self, of: _veil.Answer) -> None:
        self._of = of

    @property
    def name(self) -> str:
        """The query."""
        return self._of.query

    @property
    def recipient(self) -> str:
        """Who got it."""
        return self._of.recipient

    @property
    def incomplete(self) -> bool | None:
        """Whether a bound has left out rows; None where no bound says so."""
        return self._of.incomplete

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Its columns with their types."""
        return self._of.columns

    def __len__(self) -> int:
        return self._of.rows

    def to_dicts(self) -> list[dict[str, Any]]:
        """Its rows: int, decimal.Decimal, datetime.date, str, bool and None."""
        return self._of.dicts()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def to_csv(self) -> str:
        """The text of its CSV file."""
        return self._of.csv()

    def to_json(self) -> Any:
        """The object of its JSON file."""
        return json.loads(self._of.json())

    def to_pandas(self) -> pandas.DataFrame:
        """A frame of pandas, whose decimals are decimal.Decimal."""
        import pandas

        frame = pandas.DataFrame(self.to_dicts(), columns=[name for name, _ in self.columns])
        made: pandas.DataFrame = frame.convert_dtypes()
        return made

    def to_polars(self) -> polars.DataFrame:
        """A frame of polars."""
        import polars

        return polars.DataFrame(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._of.__arrow_c_stream__(requested_schema)

    def _rows(self) -> tuple[list[str], list[list[str]], int]:
        rows = self.to_dicts()
        names = [name for name, _ in self.columns]
        return names, [["" if row[name] is None else str(row[name]) for name in names] for row in rows[:20]], max(0, len(rows) - 20)

    def __repr__(self) -> str:
        names, rows, more = self._rows()
        widths = [max(map(len, column)) for column in zip(names, *rows)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in (names, *rows)]
        return "\n".join([f"<{self.name}, to {self.recipient}>", *lines, *([f"… and {more} more rows"] if more else [])])

    def _repr_html_(self) -> str:
        names, rows, more = self._rows()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        rest = f"<p>… and {more} more rows</p>" if more else ""
        return f"<table><caption>{escape(self.name)}, to {escape(self.recipient)}</caption><tr>{head}</tr>{body}</table>{rest}"

    def __reduce__(self) -> Any:
        raise TypeError("what has data of participants is neither pickled nor copied; write it: to_csv(), to_pandas()")


class Result:
    """What a run has opened: an answer for each query, by name. Where there is one, its methods are the result's."""

    def __init__(
        self,
        answers: list[Answer],
        opened: list[tuple[str | None, str]],
        plan_hash: str,
        *,
        receipt: dict[str, Any] | None = None,
        statistics: Any = None,
    ) -> None:
        self._answers = answers
        self._opened, self._plan_hash, self._receipt, self._statistics = opened, plan_hash, receipt, statistics

    @property
    def opened(self) -> list[tuple[str | None, str]]:
        """All that the run has opened: to whom, which is None for the computing parties, and what, in words."""
        return list(self._opened)

    @property
    def plan_hash(self) -> str:
        """The hash of the plan that has run."""
        return self._plan_hash

    @property
    def receipt(self) -> dict[str, Any] | None:
        """What states the origin of the result: participants with their keys, protocol, opened values, times, and SHA-256 of each file. None where the run wrote no files,
        as in `run_local`, and at participants that received nothing."""
        return self._receipt

    @property
    def statistics(self) -> Any:
        """The result of a job with statistics, as its JSON file has it; None of other jobs."""
        return self._statistics

    @property
    def answers(self) -> list[Answer]:
        """All of them."""
        return list(self._answers)

    def __getitem__(self, name: str) -> Answer:
        for answer in self._answers:
            if answer.name == name:
                return answer
        raise KeyError(f"{name!r}; there are {', '.join(answer.name for answer in self._answers)}")

    def _only(self) -> Answer:
        if len(self._answers) != 1:
            raise ValueError(f"the run has {len(self._answers)} answers; take one: result[{self._answers[0].name!r}]" if self._answers else "the run has no answer")
        return self._answers[0]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows of the only answer."""
        return self._only().to_dicts()

    def to_pandas(self) -> pandas.DataFrame:
        """The only answer as a frame of pandas."""
        return self._only().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The only answer as a frame of polars."""
        return self._only().to_polars()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._only().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._answers))

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self._answers)

    def __reduce__(self) -> Any:
        raise TypeError("what has data of participants is neither pickled nor copied; write it: to_csv(), to_pandas()")
