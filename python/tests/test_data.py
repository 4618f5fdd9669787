"""Tables come and go as Arrow."""

from __future__ import annotations

import datetime
import decimal
import pathlib
from typing import Any, Callable

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veilworks as vw

D = decimal.Decimal
COLUMNS: dict[str, list[Any]] = {
    "pay": [D("1.50"), None, D("3.25"), D("0.75")],
    "sex": ["f", "m", "f", None],
    "age": [30, 40, 50, 60],
    "born": [datetime.date(1990, 1, 2), datetime.date(1980, 3, 4), datetime.date(1970, 5, 6), datetime.date(1960, 7, 8)],
    "fit": [True, False, True, True],
}


def _job(rows: int = 8) -> vw.Job:
    of = vw.Job("data", owners=["mill"], parties=["a", "b", "c"], recipients=["press"])
    columns = {
        "pay": vw.Decimal(2, 0, "99.99", null=True),
        "sex": vw.Category(["f", "m"], null=True),
        "age": vw.Integer(0, 120),
        "born": vw.Date("1900-01-01", "2020-12-31"),
        "fit": vw.Bool(),
    }
    table = of.table("people", owner="mill", rows=vw.up_to(rows), columns=columns)
    of.open(table, to="press")
    return of


def _rows(of: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in COLUMNS) for row in of), key=lambda row: row[2])


WANT = [tuple(COLUMNS[name][at] for name in COLUMNS) for at in range(4)]
TABLE = pa.table(COLUMNS)

GIVERS: dict[str, Callable[[pathlib.Path], Any]] = {
    "dict": lambda _: COLUMNS,
    "pyarrow table": lambda _: TABLE,
    "pyarrow batch": lambda _: TABLE.to_batches()[0],
    "pyarrow chunks": lambda _: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 2), TABLE.slice(3)]),
    "pyarrow slice": lambda _: pa.concat_tables([TABLE, TABLE]).slice(4),
    "dictionary": lambda _: TABLE.set_column(1, "sex", TABLE["sex"].dictionary_encode()),
    "large text": lambda _: TABLE.set_column(1, "sex", TABLE["sex"].cast(pa.large_string())),
    "reader": lambda _: TABLE.to_reader(max_chunksize=1),
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.DataFrame(TABLE),
    "duckdb": lambda _: duckdb.sql("SELECT * FROM TABLE_"),
    "more columns": lambda _: TABLE.append_column("unread", pa.array([{"a": 1}] * 4)),
}
TABLE_ = TABLE


@pytest.mark.parametrize("giver", GIVERS)
def test_tables_of_other_libraries_come_in(giver: str, tmp_path: pathlib.Path) -> None:
    assert _rows(_job().run_local({"people": GIVERS[giver](tmp_path)}).to_dicts()) == WANT


def test_files_come_in(tmp_path: pathlib.Path) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet", row_group_size=1)
    with pa.OSFile(str(tmp_path / "people.arrow"), "wb") as file, pa.ipc.new_file(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    TABLE.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    for given in (vw.parquet(tmp_path / "people.parquet"), tmp_path / "people.arrow", str(tmp_path / "people.csv")):
        assert _rows(_job().run_local({"people": given}).to_dicts()) == WANT


def test_answers_go_out(tmp_path: pathlib.Path) -> None:
    result = _job().run_local({"people": TABLE}, out=tmp_path)
    result = _job().run_local({"people": TABLE})
    answer = result["answer"]
    arrow = pa.table(answer)
    assert arrow.schema.field("pay").type == pa.decimal128(38, 2)
    assert arrow.schema.field("born").type == pa.date32()
    assert _rows(arrow.to_pylist()) == WANT
    assert _rows(answer.to_polars().to_dicts()) == WANT
    frame = answer.to_pandas()
    assert list(frame.columns) == list(COLUMNS) and len(frame) == len(answer) == 4
    assert frame["age"].sum() == 180
    assert answer.to_json()["rows"][0][0] is None or isinstance(answer.to_json()["rows"][0][0], str)
    assert answer.to_csv().splitlines()[0] == "pay,sex,age,born,fit"
    assert "<td>30</td>" in answer._repr_html_() and "1.50" in repr(result)
    assert duckdb.execute("SELECT sum(age) FROM arrow").fetchall() == [(180,)]


def test_result_files_are_written(tmp_path: pathlib.Path) -> None:
    _job().run_local({"people": TABLE}, out=tmp_path)
    assert (tmp_path / "press" / "answer.csv").read_text().startswith("pay,sex,age,born,fit\n")


def test_floats_of_frames() -> None:
    floats = TABLE.set_column(0, "pay", pa.array([1.5, None, 3.25, 0.75]))
    assert _rows(_job().run_local({"people": floats}).to_dicts()) == WANT
    inexact = TABLE.set_column(0, "pay", pa.array([1.1, None, 3.25, 0.75]))
    with pytest.raises(vw.DataError, match="is a binary fraction") as caught:
        _job().run_local({"people": inexact})
    assert (caught.value.problems[0].row, caught.value.problems[0].column) == (1, "pay")
    got = _job().run_local({"people": vw.as_written(inexact)}).to_dicts()
    assert D("1.1") in [row["pay"] for row in got]


def test_arrays_of_other_types_are_refused() -> None:
    with pytest.raises(vw.DataError, match="column `age`.*Utf8|column `born`"):
        _job().check({"people": TABLE.set_column(3, "born", pa.array([1, 2, 3, 4]))})
    with pytest.raises(vw.JobError, match="this is one column"):
        _job().check({"people": pa.array([1, 2])})
    with pytest.raises(vw.DataError, match="is there twice"):
        _job().check({"people": TABLE.append_column("age", TABLE["age"])})


class _Lies:
    """A stream that is none."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.given


@pytest.mark.parametrize("given", [None, 7, "stream", TABLE.schema.__arrow_c_schema__()])
def test_capsules_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(vw.JobError, match="table `people`"):
        _job().check({"people": _Lies(given)})


def test_a_stream_is_taken_once() -> None:
    capsule = TABLE.__arrow_c_stream__()
    _job().check({"people": _Lies(capsule)})
    with pytest.raises(vw.JobError, match="table `people`"):
        _job().check({"people": _Lies(capsule)})


def test_arrays_that_lie_are_refused() -> None:
    indices = pa.DictionaryArray.from_arrays(pa.array([9], pa.int32()), pa.array(["f"]), safe=False)
    with pytest.raises(vw.JobError, match="table `people`"):
        _job().check({"people": pa.RecordBatch.from_arrays([indices], names=["sex"])})
    latin = pa.StringArray.from_buffers(1, pa.py_buffer((0).to_bytes(4, "little") + (1).to_bytes(4, "little")), pa.py_buffer(b"\xff"))
    with pytest.raises(vw.JobError, match="table `people`"):
        _job().check({"people": pa.RecordBatch.from_arrays([latin], names=["sex"])})


def test_guesses() -> None:
    guessed = vw.infer(TABLE)
    assert {name: type(kind).__name__ for name, kind in guessed.items()} == {"pay": "Decimal", "sex": "Category", "age": "Integer", "born": "Date", "fit": "Bool"}
    assert all("guess" in repr(kind) for kind in guessed.values())
    assert guessed["age"].fields == {"min": 0, "max": 60}
    assert guessed["born"].fields["min"] == "1960-01-01"
    assert guessed["pay"].fields["null"] is True
    assert {name: repr(kind) for name, kind in vw.infer(TABLE.to_pandas()).items() if name != "born"} == {name: repr(kind) for name, kind in guessed.items() if name != "born"}
    of = vw.Job("guessed", owners=["mill"], parties=["a", "b", "c"], recipients=["press"])
    of.open(of.table("people", owner="mill", rows=4, columns=guessed), to="press")
    assert of.text.count("# guess: ") == 5
    assert _rows(of.run_local({"people": TABLE}).to_dicts()) == WANT


def test_floats_are_rounded_where_the_table_says_so() -> None:
    of = vw.Job("pay", owners=["mill"], parties=["p0", "p1", "p2"], recipients=["press"])
    columns = {"pay": vw.Decimal(2, 0, 100, null=True)}
    t = of.table("t", owner="mill", rows=4, columns=columns, written={"round": True, "missing": ["NaN", "n/a"]})
    of.open(t.agg(total=t.pay.sum(), n=t.pay.count()), to="press")
    for cells in ([12.34, 0.1, float("nan"), 7.995001], ["12.340", "0.10", "n/a", "7.995"]):
        got = of.run_local({"t": {"pay": cells}}).to_dicts()
        assert got == [{"total": D("20.44"), "n": 3}], (cells, got)
    other = vw.Job("pay", owners=["mill"], parties=["p0", "p1", "p2"], recipients=["press"])
    t = other.table("t", owner="mill", rows=4, columns=columns)
    other.open(t.agg(total=t.pay.sum(), n=t.pay.count()), to="press")
    assert other.plan_hash != of.plan_hash
    with pytest.raises(vw.DataError, match="binary fraction"):
        other.run_local({"t": {"pay": [12.34, 0.1, 1.0, 7.995001]}})
