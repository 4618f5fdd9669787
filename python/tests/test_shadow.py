"""Shadow runs: what sample rows use of the ranges that are declared and derived, against pandas and numpy."""

from __future__ import annotations

import datetime
import decimal
import pathlib
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import veilworks as vw

D = decimal.Decimal
ROWS = 40


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    cents = rng.integers(1, 90_000, ROWS)
    made: pd.DataFrame = pd.DataFrame(
        {
            "cost": [None if at % 9 == 4 else D(int(one)) / 100 for at, one in enumerate(cents)],
            "days": rng.integers(3, 60, ROWS),
            "ward": rng.choice(["east", "north", "west"], ROWS),
            "since": [datetime.date(2024, 1, 1) + datetime.timedelta(int(one)) for one in rng.integers(0, 300, ROWS)],
            "again": rng.random(ROWS) < 0.5,
        }
    )
    return made


def _job() -> tuple[vw.Job, vw.Table]:
    of = vw.Job("shadows", owners=["north"], parties=["p0", "p1", "p2"], recipients=["ministry"])
    columns = {
        "cost": vw.Decimal(2, "0.01", "9999999.99", null=True),
        "days": vw.Integer(0, 4000),
        "ward": vw.Category(["east", "north", "south", "west"]),
        "since": vw.Date("2000-01-01", "2029-12-31"),
        "again": vw.Bool(),
    }
    return of, of.table("stays", owner="north", rows=vw.up_to(1000), columns=columns)


def _bits(low: int, high: int) -> int:
    return (int(high) - int(low)).bit_length()


def test_ranges_are_those_of_pandas() -> None:
    job, t = _job()
    job.open(t.assign(clipped=t.days.clip(10, 30), product=t.days * t.cost), to="ministry", name="rows")
    job.open(t.group_by("ward").agg(total=t.days.sum(), n=t.count()), to="ministry", name="wards")
    frame = _frame()
    report = job.shadow({"stays": frame})
    cost, days = report["stays", "cost"], report["stays", "days"]
    there = frame.cost.dropna()
    assert (cost.derived, cost.rows, cost.nulls) == (False, ROWS, ROWS - len(there))
    assert cost.proved == (D("0.01"), D("9999999.99")) and cost.observed == (there.min(), there.max())
    assert cost.bits == _bits(1, 999_999_999) and cost.used_bits == _bits(int(there.min() * 100), int(there.max() * 100))
    assert days.observed == (frame.days.min(), frame.days.max()) and days.unused_bits == _bits(0, 4000) - _bits(frame.days.min(), frame.days.max())
    assert report["stays", "since"].observed == (frame.since.min(), frame.since.max())
    assert report["stays", "ward"].observed == (frame.ward.min(), frame.ward.max())
    assert report["stays", "again"].observed == (False, True)
    # Derived columns.
    clipped = report["rows", "clipped"]
    assert clipped.derived and clipped.proved == (10, 30)
    assert (clipped.at_min, clipped.at_max) == (int((frame.days <= 10).sum()), int((frame.days >= 30).sum()))
    assert report.clipped["rows", "clipped"] == (clipped.at_min, clipped.at_max)
    product = (frame.cost * frame.days).dropna()
    assert report["rows", "product"].observed == (product.min(), product.max())
    wards = frame.groupby("ward").days.sum()
    total = report["wards", "total"]
    assert total.rows == len(wards) and total.observed == (wards.min(), wards.max())
    # The range is that of the 1000 rows of the job.
    assert total.proved == (0, 4_000_000) and total.unused_bits == _bits(0, 4_000_000) - _bits(wards.min(), wards.max())
    assert report.unused_bits["wards", "total"] == total.unused_bits
    assert report.max_error is None


def test_distances_from_doubles_are_those_of_numpy() -> None:
    job, t = _job()
    job.open(t.assign(y=vw.log(t.days + 1), s=vw.sigmoid((t.days - 30) * D("0.1")))[["days", "y", "s"]], to="ministry", name="rows")
    frame = _frame()
    report = job.shadow({"stays": frame})
    answer = job._plan().clear(job._given({"stays": pa.Table.from_pandas(frame, preserve_index=False)}))[0].dicts()
    days = np.array([row["days"] for row in answer], dtype=float)
    for name, doubles in [("y", np.log(days + 1)), ("s", 1 / (1 + np.exp(-(days - 30) * 0.1)))]:
        fixed = np.array([float(row[name]) for row in answer])
        error = report["rows", name].max_error
        assert error is not None and 0 < error < 1e-6
        assert error == pytest.approx(np.abs(fixed - doubles).max(), rel=1e-6)
    assert report["rows", "days"].max_error is None
    assert report.max_error == max(report["rows", "y"].max_error or 0, report["rows", "s"].max_error or 0)


def test_a_report_is_seen_and_goes_on() -> None:
    job, t = _job()
    job.open(t[["days", "ward"]], to="ministry", name="rows")
    report = job.shadow({"stays": _frame()})
    assert [(one.relation, one.column) for one in report] == [("stays", "days"), ("stays", "ward"), ("rows", "days"), ("rows", "ward")]
    text = repr(report)
    assert "table stays: 40 rows" in text and "query rows: 40 rows" in text and "0 to 4000" in text
    assert "<td>0 to 4000</td>" in report._repr_html_()
    frame, table, polars = report.to_pandas(), pa.table(report), report.to_polars()
    assert list(frame.columns) == table.column_names == polars.columns
    assert len(frame) == len(report) == len(report.columns) == 4
    assert list(frame.used_bits) == [one.used_bits for one in report]
    assert isinstance(polars, pl.DataFrame) and table["rows"].to_pylist() == [ROWS] * 4
    with pytest.raises(KeyError, match="there are stays.days"):
        report["stays", "cost"]
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(report)


def test_a_sample_that_is_none_is_refused(tmp_path: pathlib.Path) -> None:
    job, t = _job()
    job.open(t[["days", "cost"]], to="ministry", name="rows")
    frame = _frame()
    frame.loc[3, "days"] = 5000
    with pytest.raises(vw.DataError, match="row 4, column `days`: `5000` is outside the declared range 0 to 4000") as caught:
        job.shadow({"stays": frame})
    assert [(one.row, one.column, one.cell) for one in caught.value.problems] == [(4, "days", "5000")]
    with pytest.raises(vw.DataError, match="no column `days`"):
        job.shadow({"stays": frame.rename(columns={"days": "nights"})})
    with pytest.raises(vw.DataError, match="no file is given for table `stays`"):
        job.shadow()
    with pytest.raises(vw.JobError, match="no table `people`"):
        job.shadow({"people": frame})
    with pytest.raises(vw.JobError, match="opens nothing"):
        _job()[0].shadow({"stays": frame})
    blocks = tmp_path / "job.toml"
    blocks.write_text(
        """version = 1
kind = "stats"
name = "pay"
owners = ["mill"]
parties = ["a", "b", "c"]
recipients = ["press"]
column = [{ name = "pay", type = "integer", min = 0, max = 9 }]
block = [{ name = "mill", rows = 3, holds = { mill = ["pay"] } }]
analysis = [{ name = "mean pay", kind = "mean", of = "pay", to = "press" }]
"""
    )
    with pytest.raises(vw.JobError, match="the job has no queries over tables"):
        vw.Job.read(blocks).shadow()
