"""Guesses of columns from a table that is at hand: a first draft of a declaration, to be read by a person."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

from . import _veil
from ._source import here
from .data import batches
from .errors import JobError, raise_run
from .types import Bool, Category, ColumnType, Date, Decimal, Integer, Key


def infer(data: Any) -> dict[str, ColumnType]:
    """Types for the columns of a table: whole numbers, decimals, dates, booleans, categories of at most 64 values, keys. It guesses as `veil job new` does.

    `data` is whatever `run_local` takes. Ranges are rounded outwards, so that they say less of the data. Each column says what was guessed, in its `repr`
    and in the job file: **read it**, since ranges and values of categories are public, those of few rows too, and all participants have to declare the same.
    """
    table = batches("table", data)
    try:
        guessed = _veil.guess(pathlib.Path(table) if isinstance(table, str) else table, isinstance(data, Mapping))
    except _veil.Failure as failure:
        raise_run(failure)
    return {name: _column(name, word, takes, null, guesses) for name, word, takes, null, guesses in guessed}


def _column(name: str, word: str, takes: list[Any], null: bool, guesses: list[str]) -> ColumnType:
    made: ColumnType
    if word == "integer":
        made = Integer(*takes, null=null)
    elif word == "decimal":
        made = Decimal(*takes, null=null)
    elif word == "date":
        made = Date(takes[0], takes[1], format=takes[2], null=null)
    elif word == "category":
        made = Category(takes, null=null)
    elif word == "bool":
        made = Bool(null=null)
    elif word == "key":
        made = Key(80, null=null)
    else:
        raise JobError(f"column `{name}`: {takes[0]}", source=here(), help="declare it, or leave it out")
    made.guesses = tuple(guesses)
    return made
