"""Every method means what it means in pandas, on random tables, through a run of all participants."""

from __future__ import annotations

import decimal
import math
from typing import Any, Callable

import numpy as np
import pandas as pd
import pytest

import veilworks as vw
from builders import frames, job, people, stays

D = decimal.Decimal
Veil = Callable[[vw.Table, vw.Table], vw.Table]
Pandas = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


def _rounded(number: Any, places: int) -> Any:
    return None if pd.isna(number) else D(number).quantize(D(1).scaleb(-places), rounding=decimal.ROUND_HALF_UP)


def _mean(cells: pd.Series, places: int = 4) -> Any:
    there = [D(cell) for cell in cells if not pd.isna(cell)]
    return _rounded(sum(there, D(0)) / len(there), places) if there else None


def _sum(cells: pd.Series) -> Any:
    there = [cell for cell in cells if not pd.isna(cell)]
    return sum(there) if there else None


def _sd(cells: pd.Series, squared: bool) -> Any:
    there = [D(cell) for cell in cells if not pd.isna(cell)]
    if len(there) < 2:
        return None
    mean = sum(there, D(0)) / len(there)
    var = sum(((one - mean) ** 2 for one in there), D(0)) / (len(there) - 1)
    return _rounded(var if squared else var.sqrt(), 3)


def _lower(cells: pd.Series, q: float) -> Any:
    there = sorted(cell for cell in cells if not pd.isna(cell))
    return there[max(0, -int(-len(there) * q // 1) - 1)] if there else None


def _grouped(of: pd.DataFrame, by: list[str], **made: Callable[[pd.DataFrame], Any]) -> pd.DataFrame:
    groups = of.groupby(by, sort=False)
    rows = [dict(zip(by, key)) | {name: one(part) for name, one in made.items()} for key, part in groups]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=[*by, *made], dtype=object)
    return frame


def _one(**made: Any) -> pd.DataFrame:
    frame: pd.DataFrame = pd.DataFrame([made], dtype=object)
    return frame


CASES: dict[str, tuple[Veil, Pandas]] = {
    "filter_and": (lambda s, p: s[(s.days > 10) & (s.ward == "it's")], lambda s, p: s[(s.days > 10) & (s.ward == "it's")]),
    "filter_or_not": (lambda s, p: s[~(s.days >= 10) | s.again], lambda s, p: s[~(s.days >= 10) | s.again]),
    "filter_null": (lambda s, p: s[s.cost > D("5000.5")], lambda s, p: s[[not pd.isna(c) and c > D("5000.5") for c in s.cost]]),
    "isna": (lambda s, p: s[s.cost.isna()], lambda s, p: s[s.cost.isna()]),
    "notna": (lambda s, p: s[s.cost.notna()][["patient", "cost"]], lambda s, p: s[s.cost.notna()][["patient", "cost"]]),
    "fillna": (lambda s, p: s.assign(cost=s.cost.fillna(0))[["cost"]], lambda s, p: s[["cost"]].assign(cost=[D(0) if pd.isna(c) else c for c in s.cost])),
    "isin": (lambda s, p: s[s.ward.isin(["east", "north"])], lambda s, p: s[s.ward.isin(["east", "north"])]),
    "between": (lambda s, p: s[s.days.between(0, 40)], lambda s, p: s[s.days.between(0, 40)]),
    "clip": (lambda s, p: s.assign(days=s.days.clip(0, 30))[["days"]], lambda s, p: s[["days"]].assign(days=s.days.clip(0, 30))),
    "arithmetic": (
        lambda s, p: s.assign(x=s.days * 2 - s.patient + 1, y=-s.days, z=7 - s.days)[["x", "y", "z"]],
        lambda s, p: pd.DataFrame({"x": s.days * 2 - s.patient + 1, "y": -s.days, "z": 7 - s.days}),
    ),
    "abs_mod_square": (
        lambda s, p: s.assign(x=abs(s.days), y=s.days % 7, z=s.days**2)[["x", "y", "z"]],
        lambda s, p: pd.DataFrame({"x": s.days.abs(), "y": s.days % 7, "z": s.days**2}),
    ),
    "quotient": (
        lambda s, p: s.assign(x=(s.days / s.patient).round(2), y=(s.days / 7).round(3))[["x", "y"]],
        lambda s, p: pd.DataFrame({"x": [None if b == 0 else _rounded(D(int(a)) / D(int(b)), 2) for a, b in zip(s.days, s.patient)], "y": [_rounded(D(int(a)) / 7, 3) for a in s.days]}, dtype=object),
    ),
    "where": (lambda s, p: s.assign(x=vw.where(s.days > 20, 1, s.patient))[["x"]], lambda s, p: pd.DataFrame({"x": s.patient.where(~(s.days > 20), 1)})),
    "case": (
        lambda s, p: s.assign(x=vw.case((s.days > 60, 3), (s.days > 30, 2), otherwise=1))[["x"]],
        lambda s, p: pd.DataFrame({"x": [3 if d > 60 else 2 if d > 30 else 1 for d in s.days]}),
    ),
    "dates": (
        lambda s, p: s.assign(y=s.since.year, m=s.since.month)[["y", "m"]],
        lambda s, p: pd.DataFrame({"y": [d.year for d in s.since], "m": [d.month for d in s.since]}),
    ),
    "like": (lambda s, p: s[s.ward.like("%st")][["ward"]], lambda s, p: s[s.ward.str.endswith("st")][["ward"]]),
    "rename_drop": (lambda s, p: s.rename(days="stay").drop("cost", "since"), lambda s, p: s.rename(columns={"days": "stay"}).drop(columns=["cost", "since"])),
    "distinct": (lambda s, p: s[["ward", "again"]].distinct(), lambda s, p: s[["ward", "again"]].drop_duplicates()),
    "order_limit": (
        lambda s, p: s.order_by("days", "patient", "since", descending=["days"])[["days", "patient"]].limit(5),
        lambda s, p: s.sort_values(["days", "patient"], ascending=[False, True])[["days", "patient"]].head(5),
    ),
    "group": (
        lambda s, p: s.group_by("ward").agg(n=s.count(), costs=s.cost.count(), total=s.cost.sum(), mean=s.cost.mean(4), low=s.cost.min(), high=s.cost.max()),
        lambda s, p: _grouped(
            s, ["ward"], n=len, costs=lambda g: g.cost.notna().sum(), total=lambda g: _sum(g.cost), mean=lambda g: _mean(g.cost),
            low=lambda g: min((c for c in g.cost if not pd.isna(c)), default=None), high=lambda g: max((c for c in g.cost if not pd.isna(c)), default=None),
        ),
    ),
    "spread": (
        lambda s, p: s.group_by("again").agg(var=s.days.var(3), std=s.days.std(3)),
        lambda s, p: _grouped(s, ["again"], var=lambda g: _sd(g.days, True), std=lambda g: _sd(g.days, False)),
    ),
    "quantiles": (
        lambda s, p: s.agg(median=s.days.median(), low=s.days.quantile("0.25"), kinds=s.ward.nunique()),
        lambda s, p: _one(median=_lower(s.days, 0.5), low=_lower(s.days, 0.25), kinds=s.ward.nunique()),
    ),
    "any_all": (
        lambda s, p: s.group_by("ward").agg(some=(s.days > 50).any(), every=(s.days > -10).all()),
        lambda s, p: _grouped(s, ["ward"], some=lambda g: bool((g.days > 50).any()), every=lambda g: bool((g.days > -10).all())),
    ),
    "aggregate_where": (
        lambda s, p: s.agg(n=s.count().where(s.again), total=s.days.sum().where(s.days > 0), rest=s.days.sum() - s.patient.sum()),
        lambda s, p: _one(n=int(s.again.sum()), total=_sum(s.days[s.days > 0]), rest=s.days.sum() - s.patient.sum()),
    ),
    "group_of_computed": (
        lambda s, p: (lambda t: t.group_by("year").agg(n=t.count()))(s.assign(year=s.since.year)),
        lambda s, p: _grouped(s.assign(year=[d.year for d in s.since]), ["year"], n=len),
    ),
    "having": (
        lambda s, p: (lambda g: g[g.n >= 5])(s.group_by("ward").agg(n=s.count())),
        lambda s, p: (lambda g: g[g.n >= 5])(_grouped(s, ["ward"], n=len)),
    ),
    "join": (
        lambda s, p: s.join(p, on="patient", suffix="_p")[["patient", "days", "age", "ward_p"]],
        lambda s, p: s.merge(p, on="patient", suffixes=("", "_p"))[["patient", "days", "age", "ward_p"]],
    ),
    "join_filter_group": (
        lambda s, p: (lambda j: j.group_by("ward").agg(n=j.count(), age=j.age.max()))(s[s.days > 0].join(p[p.age > 30].drop("ward"), on="patient")),
        lambda s, p: _grouped(s[s.days > 0].merge(p[p.age > 30].drop(columns="ward"), on="patient"), ["ward"], n=len, age=lambda g: g.age.max()),
    ),
    "left_join": (
        lambda s, p: s[s.days > 5].join(p, on="patient", how="left", suffix="_p")[["patient", "days", "age"]],
        lambda s, p: s[s.days > 5].merge(p, on="patient", how="left", suffixes=("", "_p"))[["patient", "days", "age"]],
    ),
    "semi": (lambda s, p: s.join(p[p.age > 40], on="patient", how="semi"), lambda s, p: s[s.patient.isin(p.patient[p.age > 40])]),
    "anti": (lambda s, p: s.join(p, on="patient", how="anti"), lambda s, p: s[~s.patient.isin(p.patient)]),
    "concat": (
        lambda s, p: (lambda t: t.group_by("patient").count("n"))(vw.concat([s[["patient"]], p[p.age > 20][["patient"]]])),
        lambda s, p: _grouped(pd.concat([s[["patient"]], p[p.age > 20][["patient"]]]), ["patient"], n=len),
    ),
    "bounded": (
        lambda s, p: (lambda b: b.agg(n=b.count(), days=b.days.sum()))(s[s.days > 0].limit_rows(24)),
        lambda s, p: _one(n=int((s.days > 0).sum()), days=_sum(s.days[s.days > 0])),
    ),
    "sql": (
        lambda s, p: (lambda q: q[q.n > 2])(vw.sql("SELECT ward, count(*) AS n FROM stays GROUP BY ward", tables=[s], columns=["ward", "n"])),
        lambda s, p: (lambda g: g[g.n > 2])(_grouped(s, ["ward"], n=len)),
    ),
}


def _plain(cell: Any) -> tuple[int, str]:
    """A cell in a form that its type has no part in."""
    if cell is None or pd.isna(cell):
        return (1, "")
    if type(cell).__name__ in ("bool", "bool_"):
        return (0, str(bool(cell)))
    if isinstance(cell, (int, float, D)) or type(cell).__name__.startswith(("int", "float")):
        return (0, format(D(str(cell)).normalize() + 0, "f"))
    return (0, str(cell))


def _rows(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(_plain(cell) for cell in row.values()) for row in rows)


@pytest.mark.parametrize("seed", range(2))
def test_methods_are_those_of_pandas(seed: int) -> None:
    data = frames(seed)
    s = pd.DataFrame(data["stays"])
    s["cost"] = s["cost"].astype(object)
    p = pd.DataFrame(data["people"])
    of = job()
    tables = (stays(of), people(of))
    for name, (veil, _) in CASES.items():
        of.open(veil(*tables), to="ministry", name=name)
    result = of.run_local(data)
    for name, (_, pandas) in CASES.items():
        want = pandas(s, p).astype(object)
        got = result[name].to_dicts()
        assert not got or list(got[0]) == list(want.columns), name
        assert _rows(got) == _rows(want.to_dict("records")), name


def test_an_order_is_kept() -> None:
    data = {"stays": frames(7)["stays"]}
    of = job()
    s = stays(of)
    of.open(s.order_by("days", descending=True)[["days"]], to="ministry")
    got = [row["days"] for row in of.run_local(data).to_dicts()]
    assert got == sorted(data["stays"]["days"], reverse=True)


def test_functions_are_near_those_of_numpy() -> None:
    data = {"stays": frames(3)["stays"]}
    of = job()
    s = stays(of)
    made: dict[str, Any] = {
        "exp": vw.exp((s.days / 40).round(3).clip(-2, 3), 4),
        "log": np.log(vw.maximum(s.days, 1)),
        "log2": np.log2(np.maximum(s.days, 2)),
        "log10": vw.log10(s.days.clip(1, 90), 3),
        "sqrt": np.sqrt(abs(s.days)),
        "sigmoid": vw.sigmoid(s.days / 25, 5),
        "tanh": np.tanh(s.days / 50),
        "erf": vw.erf(s.days / 50),
        "softplus": vw.softplus(s.days / 10, 2),
        "exp2": np.exp2((s.days / 16).round(4).clip(-1, 4)),
        "cube": s.days**3,
        "low": vw.minimum(s.days, s.patient, 30),
    }
    of.open(s.assign(**made)[["days", "patient", *made]], to="ministry")
    rows = of.run_local(data).to_dicts()
    assert len(rows) > 10
    for row in rows:
        x = float(row["days"])
        want = {
            "exp": (math.exp(min(max(round(x / 40, 3), -2), 3)), 1e-4),
            "log": (math.log(max(x, 1)), 1e-6),
            "log2": (math.log2(max(x, 2)), 1e-6),
            "log10": (math.log10(min(max(x, 1), 90)), 1e-3),
            "sqrt": (math.sqrt(abs(x)), 1e-6),
            "sigmoid": (1 / (1 + math.exp(-x / 25)), 1e-5),
            "tanh": (math.tanh(x / 50), 1e-6),
            "erf": (math.erf(x / 50), 1e-6),
            "softplus": (math.log1p(math.exp(x / 10)), 1e-2),
            "exp2": (2 ** min(max(x / 16, -1), 4), 1e-3),
            "cube": (x**3, 0),
            "low": (min(x, row["patient"], 30), 0),
        }
        for name, (real, within) in want.items():
            assert abs(float(row[name]) - real) <= within, (name, x, row[name], real)


def test_functions_are_refused_where_they_have_no_value() -> None:
    of = job()
    s = stays(of)
    of.open(s.assign(x=vw.log(s.days))[["x"]], to="ministry", name="logs")
    with pytest.raises(vw.PlanError, match="has no value for 0 and below") as error:
        of.plan_hash
    assert error.value.source is not None and error.value.source.file == __file__
    with pytest.raises(vw.JobError, match="NumPy's arctan is not computed on columns"):
        np.arctan(s.days)
    with pytest.raises(vw.JobError, match="an array stands beside a column"):
        np.maximum(s.days, np.array([1, 2]))
    with pytest.raises(vw.JobError, match="exp takes a column, and not a int"):
        vw.exp(3)
    with pytest.raises(vw.JobError, match="a public whole number from 1 to 16"):
        s.days**0.5
