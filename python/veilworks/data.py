"""Tables that a participant brings: objects of other libraries by Arrow, columns of Python, and files."""

from __future__ import annotations

import datetime
import decimal
import glob
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _veil
from ._source import here
from .errors import JobError, raise_run

Data = Any


class Parquet:
    """Files that Rust reads: made by `vw.parquet`."""

    def __init__(self, path: str, columns: tuple[str, ...] | None = None) -> None:
        self.path, self.columns = path, columns

    @property
    def files(self) -> list[str]:
        """The files, by their names in order."""
        if glob.has_magic(self.path) and not os.path.exists(self.path):
            return sorted(glob.glob(self.path, recursive=True))
        return [self.path]

    def read(self) -> _veil.Batches | str:
        """The path of the one file; the rows of several, in memory."""
        files = [os.path.abspath(file) for file in self.files]
        if not files:
            raise JobError(f"no file is named like {self.path}", source=here())
        if len(files) == 1 and self.columns is None:
            return files[0]
        try:
            return _veil.Batches.of_parquet(files, None if self.columns is None else list(self.columns))
        except _veil.Failure as failure:
            raise_run(failure)

    def __repr__(self) -> str:
        return f"parquet({self.path!r}{f', columns={list(self.columns)}' if self.columns else ''})"


def parquet(path: str | os.PathLike[str], *, columns: Iterable[str] | None = None) -> Parquet:
    """A Parquet file, read in batches when it is needed, and never in memory as a whole. Paths of Arrow IPC and CSV files may be given as they are.

    A path with `*` or `**` is all files of such names, one after the other in the order of their names: `vw.parquet("stays-*.parquet")`. The rows of several
    files are read into memory, of `columns` alone where they are said.
    """
    return Parquet(os.fspath(path), None if columns is None else tuple(columns))


class Written:
    """A table whose binary fractions are read as they are written."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"as_written({type(self.data).__name__})"


def as_written(data: Any) -> Written:
    """A table whose floats are read as the shortest decimals that stand for them, as a CSV file has them: 12.34, not 12.339999999999999857891452847979962825775146484375."""
    return Written(data)


def _cell(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        if value.time() != datetime.time():
            raise JobError(f"column `{name}` has {value}, which is not midnight", source=here(), help="store dates")
        return value.date().isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return None if value != value else repr(value)
    return str(value)


def _cells(name: str, cells: list[Any], written: bool) -> list[str | None] | list[float | None]:
    """Cells as texts; as binary fractions where some are, and they are not to be read as they are written."""
    there = [cell for cell in cells if cell is not None]
    small = all(isinstance(cell, float) or (isinstance(cell, int) and not isinstance(cell, bool) and abs(cell) <= 2**53) for cell in there)
    if small and not written and any(isinstance(cell, float) and cell == cell for cell in there):
        return [None if cell is None or cell != cell else float(cell) for cell in cells]
    return [_cell(name, cell) for cell in cells]


def batches(name: str, data: Data) -> _veil.Batches | str:
    """A table in memory, or the path of its file."""
    written = isinstance(data, Written)
    if isinstance(data, Written):
        data = data.data
    if isinstance(data, Parquet):
        return data.read()
    if isinstance(data, (str, os.PathLike)):
        return os.path.abspath(os.fspath(data))
    if isinstance(data, Mapping):
        columns = {str(column): list(cells) for column, cells in data.items()}
        if len({len(cells) for cells in columns.values()}) > 1:
            raise JobError(f"the columns of `{name}` are not equally long", source=here())
        return _veil.Batches.of_columns([(column, _cells(column, cells, written)) for column, cells in columns.items()])
    if not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__arrow_c_array__"):
        raise JobError(
            f"a {type(data).__name__} is no table for `{name}`",
            source=here(),
            help="give a frame of pandas (from 2.2 on), polars or DuckDB, a table of pyarrow, a dict of columns, or the path of a file",
        )
    try:
        table = _veil.Batches.of_arrow(data)
    except ImportError as error:
        raise JobError(f"pandas gives its frames by pyarrow, which is not installed ({error})", source=here(), help="pip install 'veilworks[pandas]'") from None
    except (TypeError, ValueError) as error:
        raise JobError(f"table `{name}`: {error}", source=here()) from None
    return table.written() if written else table
