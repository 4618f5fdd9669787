"""Which line of the user's program is being executed, and what secrets answer to control flow."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from .errors import SecretError, Source

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def here() -> Source | None:
    """The innermost line that is none of this package's."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not os.path.abspath(name).startswith(_PACKAGE):
            return Source(name, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


class Secret:
    """Something whose value no participant has. A program cannot decide by it, since it runs before there is a value, and at all participants alike."""

    __slots__ = ()

    def _what(self) -> str:
        raise NotImplementedError

    def _refused(self, use: str, instead: str) -> NoReturn:
        raise SecretError(f"{use} of {self._what()} is secret", source=here(), help=instead)

    def __bool__(self) -> bool:
        self._refused("the truth", "write `&`, `|` and `~` in the place of `and`, `or` and `not`; (0 < x) & (x < 9) in the place of 0 < x < 9; vw.where(condition, a, b) in the place of `if`")

    def __hash__(self) -> int:
        self._refused("the hash", "use a name as the key: .group_by(\"name\") groups rows, .nunique() counts values, .isin([...]) compares with public ones")

    def __int__(self) -> int:
        self._refused("the number", "open it: job.open(table.agg(x=table.x.sum()), to=...)")

    def __float__(self) -> float:
        self._refused("the number", "open it: job.open(table.agg(x=table.x.mean()), to=...)")

    def __index__(self) -> int:
        self._refused("the number", "positions and lengths are public: write a number")

    def __len__(self) -> int:
        self._refused("the number of rows", "open it with .count(), or bound it with .limit_rows(5000)")

    def __iter__(self) -> NoReturn:
        self._refused("each row", "write what is done to all rows: arithmetic, vw.where, .sum()")

    def __contains__(self, other: object) -> bool:
        self._refused("whether a value is in the rows", "compare and count: (column == value).any()")

    def __array__(self, *_: object, **__: object) -> NoReturn:
        self._refused("the array", "arithmetic, comparisons and aggregates are methods of columns; open what you need")

    def __reduce__(self) -> NoReturn:
        raise TypeError("what may have data of participants is neither pickled nor copied; job.save(path) writes the job")
