"""Regressions against scikit-learn and statsmodels, on their own data sets."""

from __future__ import annotations

import decimal
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest

import veilworks as vw

# Libraries without types of their own.
sm: Any = import_module("statsmodels.api")
cluster: Any = import_module("sklearn.cluster")
datasets: Any = import_module("sklearn.datasets")
decomposition: Any = import_module("sklearn.decomposition")
linear_model: Any = import_module("sklearn.linear_model")
preprocessing: Any = import_module("sklearn.preprocessing")


def declared(frame: Any, places: int) -> tuple[dict[str, Any], Any]:
    """Columns whose ranges are those of the data, rounded outwards, and the data with so many places."""
    columns: dict[str, Any] = {}
    data: Any = pd.DataFrame(index=frame.index)
    for name in frame.columns:
        if frame[name].dtype == bool:
            columns[name], data[name] = vw.Bool(), frame[name]
        elif np.issubdtype(frame[name].dtype, np.integer):
            columns[name], data[name] = vw.Integer(int(frame[name].min()), int(frame[name].max())), frame[name]
        else:
            unit = decimal.Decimal(1).scaleb(-places)
            data[name] = [decimal.Decimal(float(x)).quantize(unit) for x in frame[name]]
            columns[name] = vw.Decimal(places, min(data[name]), max(data[name]))
    return columns, data


def fitted(frame: Any, y: str, model: Any, places: int = 4) -> tuple[Any, Any]:
    """The model by parties, by term, and the numbers that it was fitted to."""
    columns, data = declared(frame, places)
    job = vw.Job("models", owners=["clinic"], parties=["a", "b", "c"], recipients=["registry"])
    rows = job.table("rows", owner="clinic", rows=len(data), columns=columns)
    job.open(model.fit(rows, x=[name for name in frame.columns if name != y], y=y), to="registry")
    found = job.run_local({"rows": data}).to_pandas().astype({"coefficient": float}).set_index("term")
    return found, data.astype(float)


def near(found: Any, wanted: Any, of_error: float, part: float) -> None:
    """Coefficients are within a part of their standard errors of what a library has, and standard errors within a part of theirs."""
    errors = wanted.bse
    for term in found.index:
        name = "const" if term == "intercept" else term
        assert abs(found.coefficient[term] - wanted.params[name]) < of_error * errors[name], term
        assert abs(float(found.standard_error[term]) / errors[name] - 1) < part, term


def test_least_squares() -> None:
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame
    found, data = fitted(frame, "target", vw.ml.LinearRegression(places=9))
    near(found, sm.OLS(data.target, sm.add_constant(data.drop(columns="target"))).fit(), 1e-4, 1e-4)


def test_logistic_regression() -> None:
    frame = datasets.load_breast_cancer(as_frame=True).frame[["mean texture", "mean smoothness", "mean symmetry", "target"]].rename(columns=lambda name: name.replace(" ", "_"))
    frame["target"] = frame.target == 1
    found, data = fitted(frame, "target", vw.ml.LogisticRegression(places=9), 5)
    near(found, sm.Logit(data.target, sm.add_constant(data.drop(columns="target"))).fit(disp=0), 1e-3, 1e-3)


def test_counts() -> None:
    frame = sm.datasets.randhie.load_pandas().data.iloc[::5][["mdvis", "lncoins", "idp", "hlthg"]].round(4)
    frame = frame.astype({"mdvis": int, "idp": int, "hlthg": int}).reset_index(drop=True)
    found, data = fitted(frame, "mdvis", vw.ml.PoissonRegression(places=9))
    near(found, sm.GLM(data.mdvis, sm.add_constant(data.drop(columns="mdvis")), family=sm.families.Poisson()).fit(), 3e-3, 1e-3)


def test_penalties_are_those_of_scikit_learn() -> None:
    frame = datasets.load_breast_cancer(as_frame=True).frame.rename(columns=lambda name: name.replace(" ", "_"))
    frame["target"] = frame.target == 1
    frame = frame[["mean_radius", "mean_texture", "worst_concavity", "worst_symmetry", "target"]]
    found, data = fitted(frame, "target", vw.ml.LogisticRegression(ridge="0.5", places=9, steps=10), 4)
    assert list(found.columns) == ["coefficient"]
    features = data.drop(columns="target")
    other = linear_model.LogisticRegression(C=2.0, tol=1e-12, max_iter=100_000).fit(features, data.target)
    for name, wanted in zip(features.columns, other.coef_[0]):
        assert found.coefficient[name] == pytest.approx(wanted, abs=2**-10), name
    assert found.coefficient["intercept"] == pytest.approx(other.intercept_[0], abs=2**-8)
    # The same answer for each row.
    by_parties = features @ found.coefficient[features.columns] + found.coefficient["intercept"] > 0
    assert (by_parties == other.predict(features).astype(bool)).all()

    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame[["age", "bmi", "bp", "target"]]
    found, data = fitted(frame, "target", vw.ml.LinearRegression(ridge=decimal.Decimal("12.5"), places=9))
    ridge = linear_model.Ridge(alpha=12.5, tol=1e-12).fit(data.drop(columns="target"), data.target)
    for name, wanted in zip(["age", "bmi", "bp"], ridge.coef_):
        assert found.coefficient[name] == pytest.approx(wanted, rel=1e-5), name


def test_clusters_are_those_of_scikit_learn() -> None:
    frame = datasets.load_iris(as_frame=True).frame[["petal length (cm)", "petal width (cm)"]]
    frame.columns = pd.Index(["length", "width"])
    _, data = declared(frame, 1)
    job = vw.Job("flowers", owners=["garden"], parties=["a", "b", "c"], recipients=["museum"])
    # Half of each range is a power of two: distances are those of the numbers themselves, and their weights are equal.
    columns = {name: vw.Decimal(1, 0, "12.8") for name in frame.columns}
    rows = job.table("flowers", owner="garden", rows=len(data), columns=columns)
    start = [["1.0", "0.2"], ["4.0", "1.0"], ["6.0", "2.5"]]
    job.open(vw.ml.KMeans(start=start, steps=12, places=3).fit(rows, x=["length", "width"]), to="museum")
    found: Any = job.run_local({"flowers": data}).to_pandas().sort_values("cluster")
    wanted = cluster.KMeans(3, init=np.array(start, dtype=float), n_init=1, max_iter=100, tol=0).fit(data.astype(float))
    assert list(found["rows"]) == list(np.bincount(wanted.labels_))
    assert np.abs(found[["length", "width"]].astype(float).to_numpy() - wanted.cluster_centers_).max() < 2e-3


def test_components_are_those_of_scikit_learn() -> None:
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame[["age", "bmi", "bp", "s1", "s2", "s5"]]
    columns, data = declared(frame, 4)
    job = vw.Job("patterns", owners=["clinic"], parties=["a", "b", "c"], recipients=["registry"])
    rows = job.table("rows", owner="clinic", rows=len(data), columns=columns)
    job.open(vw.ml.PCA(3).fit(rows, x=list(frame.columns)), to="registry")
    found: Any = job.run_local({"rows": data}).to_pandas().sort_values("component").astype(float)
    wanted = decomposition.PCA(3).fit(preprocessing.StandardScaler().fit_transform(data.astype(float)))
    assert np.abs(found["share"] - wanted.explained_variance_ratio_).max() < 1e-5
    weights = np.arange(1, 7)
    for loadings, other in zip(found[list(frame.columns)].to_numpy(), wanted.components_):
        # The sign is that for which later features weigh positively.
        assert np.abs(loadings - other * np.sign(other @ weights)).max() < 1e-4


def job_of(rows: int = 200) -> tuple[vw.Job, vw.Table]:
    job = vw.Job("models", owners=["clinic"], parties=["a", "b", "c"], recipients=["registry"])
    columns = {"age": vw.Integer(0, 120), "cost": vw.Decimal(2, 0, 1000), "ward": vw.Category(["a", "b"]), "again": vw.Bool()}
    return job, job.table("rows", owner="clinic", rows=rows, columns=columns)


def test_a_model_is_saved_and_read(tmp_path: Any) -> None:
    job, rows = job_of()
    model = vw.ml.LogisticRegression(ridge="0.25").fit(rows.assign(old=rows.age > 60), x=["old", "cost"], y="again")
    job.open(model.where(model.term != "intercept"), to="registry")
    assert 'fit = { family = "logistic", target = "again", ridge = "0.25", places = 6 }' in job.text
    job.save(tmp_path / "job.toml")
    assert vw.Job.read(tmp_path / "job.toml").plan_hash == job.plan_hash
    assert "a logistic regression on old, cost, penalised by 0.25, in 8 steps, of at least 60 and at most 200 rows" in job.explain()


def test_mistakes_are_said_where_they_are_made() -> None:
    _, rows = job_of()
    inexact: Any = 0.1
    for make, said in [
        (lambda: vw.ml.LinearRegression(ridge=inexact), "binary fraction"),
        (lambda: vw.ml.LinearRegression(ridge="much"), "'much' is no penalty"),
        (lambda: vw.ml.LinearRegression().fit(rows, x="age", y="cost"), "features are a list of columns"),
        (lambda: vw.ml.LinearRegression().fit(rows, x=["age", "cost"], y="cost"), "the target `cost` is a feature as well"),
        (lambda: vw.ml.LinearRegression().fit(rows, x=["weight"], y="cost"), "has no column `weight`"),
    ]:
        with pytest.raises(vw.JobError, match=said) as caught:
            make()  # type: ignore[no-untyped-call]
        assert caught.value.source is not None and caught.value.source.file.endswith("test_models.py")
    for x, y, steps, said in [
        (["age"], "cost", 0, "a model is fitted in 1 to 64 steps"),
        (["age"], "cost", None, "the target of a logistic regression is a condition, or 0 and 1"),
        (["ward"], "again", None, "fit does not take a category"),
    ]:
        job, rows = job_of()
        job.open(vw.ml.LogisticRegression(steps=steps).fit(rows, x=x, y=y), to="registry")
        with pytest.raises(vw.JobError, match=said):
            job.plan_hash
    job, rows = job_of(30)
    job.open(vw.ml.LogisticRegression().fit(rows, x=["age"], y="again"), to="registry")
    with pytest.raises(vw.JobError, match="a model of at least 40 rows is fitted to at most 30"):
        job.plan_hash


def test_few_rows_have_no_model() -> None:
    job, rows = job_of(60)
    job.open(vw.ml.LinearRegression(min_count=50).fit(rows.where(rows.age < 40), x=["age"], y="cost"), to="registry")
    data = {"age": list(range(60)), "cost": [decimal.Decimal(at) for at in range(60)], "ward": ["a"] * 60, "again": [True] * 60}
    assert job.run_local({"rows": data}).to_dicts() == []
