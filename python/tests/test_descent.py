"""Regressions by gradient descent against scikit-learn, and against the same steps in doubles with other orders of rows."""

from __future__ import annotations

import decimal
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_models import declared, job_of

import veilworks as vw

# Libraries without types of their own.
datasets: Any = import_module("sklearn.datasets")
linear_model: Any = import_module("sklearn.linear_model")


def cells(data: Any, columns: dict[str, Any], names: list[str]) -> tuple[Any, Any, Any]:
    """Features as a model has them, with a column of ones before them; what they are divided by, and what comes off before."""
    halves, centres = [], []
    for name in names:
        if isinstance(columns[name], vw.Bool):
            low, high, unit = 0, 1, 1
        else:
            unit = 10 ** int(columns[name].fields.get("scale", 0))
            low, high = (int(decimal.Decimal(columns[name].fields[end]) * unit) for end in ("min", "max"))
        centre = low + (high - low) // 2
        half = max(high - centre, centre - low, 1)
        halves.append(2.0 ** np.ceil(np.log2(half)) / unit)
        centres.append(centre / unit)
    x = (data[names].to_numpy(dtype=float) - centres) / halves
    return np.column_stack([np.ones(len(x)), x]), np.array(halves), np.array(centres)


def descended(x: Any, y: Any, batches: int, epochs: int, rate: float, momentum: float, mean: Any) -> Any:
    """The steps of the page of fitted models."""
    w, v, rows = np.zeros(x.shape[1]), np.zeros(x.shape[1]), len(x)
    for _ in range(epochs):
        for k in range(batches):
            batch = slice(k * rows // batches, (k + 1) * rows // batches)
            v = momentum * v + rate * batches / rows * x[batch].T @ (y[batch] - mean(x[batch] @ w))
            w = np.clip(w + v, -32, 32)
    return w


def opened(data: Any, columns: dict[str, Any], names: list[str], y: str, model: Any) -> Any:
    job = vw.Job("models", owners=["clinic"], parties=["a", "b", "c"], recipients=["registry"])
    rows = job.table("rows", owner="clinic", rows=len(data), columns=columns)
    job.open(model.fit(rows, x=names, y=y), to="registry")
    found: Any = job.run_local({"rows": data}).to_pandas()
    assert list(found.columns) == ["term", "coefficient"]
    return found.astype({"coefficient": float}).set_index("term").coefficient


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def cancer() -> tuple[Any, dict[str, Any], list[str]]:
    frame = datasets.load_breast_cancer(as_frame=True).frame.rename(columns=lambda name: name.replace(" ", "_"))
    frame["target"] = frame.target == 1
    names = ["mean_radius", "mean_texture", "worst_concavity", "worst_symmetry"]
    columns, data = declared(frame[[*names, "target"]], 4)
    return data, columns, names


def test_whole_batches_end_at_the_model_of_scikit_learn() -> None:
    data, columns, names = cancer()
    model = vw.ml.LogisticRegression(method="gradient", epochs=100, rate=15, momentum="0.8", ridge=10, places=9)
    found = opened(data, columns, names, "target", model)
    other = linear_model.LogisticRegression(C=0.1, tol=1e-12, max_iter=100_000).fit(data[names].astype(float), data.target)
    _, halves, _ = cells(data, columns, names)
    for name, wanted, half in zip(names, other.coef_[0], halves):
        assert found[name] * half == pytest.approx(wanted * half, abs=2**-10), name
    features = data[names].astype(float)
    by_parties = features @ found[names] + found["intercept"] > 0
    assert (by_parties == other.predict(features)).all()


def test_batches_are_of_rows_in_a_random_order() -> None:
    data, columns, names = cancer()
    # An owner's order that misleads: all rows of one kind, then those of the other.
    data = data.sort_values("target").reset_index(drop=True)
    x, halves, _ = cells(data, columns, names)
    y = data.target.to_numpy(dtype=float)
    steps = (9, 2, 2.0, 0.5, sigmoid)
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(x)) for _ in range(300)]
    by_order = np.array([descended(x[order], y[order], *steps) for order in orders])
    model = vw.ml.LogisticRegression(method="gradient", batch=64, epochs=2, rate=2, momentum="0.5", places=9, min_count=60)
    assert -(-len(x) // 64) == steps[0]
    found = opened(data, columns, names, "target", model)
    found_cells = found[names].to_numpy() * halves
    mean, spread = by_order.mean(axis=0)[1:], by_order.std(axis=0)[1:]
    assert (np.abs(found_cells - mean) < 5 * spread).all(), (found_cells, mean, spread)
    # In the order of the owner they would end elsewhere.
    unmoved = descended(x, y, *steps)[1:]
    assert (np.abs(unmoved - mean) > 5 * spread).any(), (unmoved, mean, spread)
    again = opened(data, columns, names, "target", model)
    assert (again != found).any(), "two runs have one order"


def test_whole_batches_are_the_steps_of_doubles() -> None:
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame[["age", "bmi", "bp", "target"]]
    frame = frame.astype({"target": int, "age": int})
    columns, data = declared(frame, 4)
    names = ["age", "bmi", "bp"]
    found = opened(data, columns, names, "target", vw.ml.LinearRegression(method="gradient", epochs=12, rate="0.5", momentum="0.25", places=9))
    x, halves, _ = cells(data, columns, names)
    y, of_target, centre = cells(data, columns, ["target"])
    wanted = descended(x, y[:, 1], 1, 12, 0.5, 0.25, lambda z: z)[1:] * of_target[0] / halves
    for name, coefficient in zip(names, wanted):
        assert found[name] == pytest.approx(coefficient, rel=1e-4, abs=1e-4), name


def test_least_squares_by_batches_predict_as_scikit_learn() -> None:
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame[["age", "bmi", "bp", "s5", "target"]]
    frame = frame.astype({"target": int, "age": int})
    columns, data = declared(frame, 4)
    names = ["age", "bmi", "bp", "s5"]
    model = vw.ml.LinearRegression(method="gradient", batch=111, epochs=25, rate="0.4", momentum="0.8", places=9, min_count=100)
    found = opened(data, columns, names, "target", model)
    features, target = data[names].astype(float), data.target.astype(float)
    other = linear_model.LinearRegression().fit(features, target)
    by_parties = features @ found[names] + found["intercept"]
    left, wanted = ((target - by_parties) ** 2).mean(), ((target - other.predict(features)) ** 2).mean()
    # The last batches weigh most: the mean square is within a hundredth of the least.
    assert wanted <= left < 1.01 * wanted


def test_a_model_is_saved_and_read(tmp_path: Any) -> None:
    job, rows = job_of()
    steps: dict[str, Any] = {"method": "gradient", "epochs": 3, "rate": "0.5", "momentum": "0.9", "limit": 16}
    model = vw.ml.LogisticRegression(batch=100, **steps).fit(rows, x=["age", "cost"], y="again")
    job.open(model.where(model.term != "intercept"), to="registry")
    assert 'fit = { family = "logistic", target = "again", method = "gradient", batch = 100, epochs = 3, rate = "0.5", momentum = "0.9", limit = 16, places = 6 }' in job.text
    job.save(tmp_path / "job.toml")
    assert vw.Job.read(tmp_path / "job.toml").plan_hash == job.plan_hash
    assert "a logistic regression on age, cost, by gradient descent at rate 0.5 with momentum 0.9 in 3 epochs of 2 batches of up to 100 rows" in job.explain()
    # A batch of 50 rows is fewer than the 60 of three terms.
    job, rows = job_of()
    job.open(vw.ml.LogisticRegression(batch=64, **steps).fit(rows, x=["age", "cost"], y="again"), to="registry")
    with pytest.raises(vw.JobError, match="a step of this model is of as few as 50 rows, those of a batch, and a model is of at least 60"):
        job.plan_hash


def test_mistakes_are_said_where_they_are_made() -> None:
    _, rows = job_of()
    inexact: Any = 0.1
    of: Any = vw.ml.LogisticRegression
    for make, said in [
        (lambda: of(method="sgd"), "'sgd' is no method of a regression"),
        (lambda: of(batch=10), "`batch` is of gradient descent"),
        (lambda: of(momentum="0.5"), "`momentum` is of gradient descent"),
        (lambda: of(method="gradient", epochs=3), "gradient descent needs a rate"),
        (lambda: of(method="gradient", rate=1), "gradient descent needs epochs"),
        (lambda: of(method="gradient", rate=1, epochs=3, steps=4), "gradient descent has epochs, and no steps"),
        (lambda: of(method="gradient", rate=inexact, epochs=3), "binary fraction"),
        (lambda: of(method="gradient", rate="fast", epochs=3), "'fast' is no rate"),
        (lambda: of(method="gradient", rate=1, epochs=3, momentum="some"), "'some' is no momentum"),
        (lambda: of(method="gradient", rate=1, epochs=3).fit(rows, x=["age"], y="again").col("standard_error"), "has no standard errors"),
        (lambda: of(ridge=1).fit(rows, x=["age"], y="again").col("standard_error"), "has no standard errors"),
    ]:
        with pytest.raises(vw.JobError, match=said) as caught:
            make()  # type: ignore[no-untyped-call]
        assert caught.value.source is not None and caught.value.source.file.endswith("test_descent.py")
    with pytest.raises(AttributeError, match="penalised, or are fitted by gradient descent, have none"):
        of(method="gradient", rate=1, epochs=3).fit(rows, x=["age"], y="again").standard_error
    for more, said in [
        ({"rate": 0}, "`rate` is \"0\": the rate of gradient descent is above 0 and up to 1000"),
        ({"batch": 201}, "a batch has 1 to 200 rows, as many as there are places for rows, and this has 201"),
        ({"epochs": 3000}, "`epochs` is `3000`: there are 1 to 2048 epochs"),
        ({"momentum": 1}, "the momentum of gradient descent is from 0 to 0.99"),
        ({"limit": 2000}, "the limit of coefficients is 1 to 1024, and this is 2000"),
    ]:
        job, rows = job_of()
        with pytest.raises(vw.JobError, match=said.replace("(", "\\(")):
            job.open(of(**{"method": "gradient", "rate": 1, "epochs": 3, **more}).fit(rows, x=["age"], y="again"), to="registry")
            job.plan_hash


def test_few_rows_have_no_model() -> None:
    job, rows = job_of(60)
    model = vw.ml.LinearRegression(method="gradient", epochs=2, rate=1, min_count=50)
    job.open(model.fit(rows.where(rows.age < 40), x=["age"], y="cost"), to="registry")
    data = pd.DataFrame({"age": list(range(60)), "cost": [decimal.Decimal(at) for at in range(60)], "ward": ["a"] * 60, "again": [True] * 60})
    assert job.run_local({"rows": data}).to_dicts() == []
