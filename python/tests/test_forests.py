"""Models of other libraries against their own predictions: equal to the last place, but for the rounding of leaves."""

from __future__ import annotations

import decimal
import json
import math
import pathlib
import struct
from fractions import Fraction
from typing import Any, Callable

import numpy as np
import pytest

import veilworks as vw
from veilworks._models import floats

sklearn_datasets = pytest.importorskip("sklearn.datasets")
sklearn_ensemble = pytest.importorskip("sklearn.ensemble")
sklearn_tree = pytest.importorskip("sklearn.tree")

Row = dict[str, Any]


def _walk(node: Any, row: Row) -> list[Fraction]:
    while isinstance(node, dict):
        name, sign, bound = node["if"]
        value = row[name]
        if value is None:
            goes = node["null"] == "yes"
        elif sign == "in":
            goes = value in bound
        else:
            goes = Fraction(value) <= Fraction(bound) if sign == "<=" else Fraction(value) < Fraction(bound)
        node = node["yes" if goes else "no"]
    return [Fraction(one) for one in ([node] if isinstance(node, str) else node)]


def _scores(model: vw.Forest, row: Row) -> list[Fraction]:
    """What the file means, without any of the package."""
    of = json.loads(model.text)
    scores = [Fraction(one) for one in of["base"]]
    for tree in of["trees"]:
        found = _walk(tree["root"], row)
        first = of["classes"].index(tree["class"]) if "class" in tree else 0
        for at, one in enumerate(found):
            scores[first + at] += one
    return scores


def _decimals(rows: Any, places: int = 3) -> Any:
    """The same rows as decimals of so many places, with the floats that they are."""
    exact = [[None if math.isnan(x) else decimal.Decimal(f"{x:.{places}f}") for x in row] for row in rows.tolist()]
    return exact, np.array([[math.nan if x is None else float(x) for x in row] for row in exact])


def _rows(model: vw.Forest, exact: Any) -> list[Row]:
    return [dict(zip(model.features, row)) for row in exact]


def _close(model: vw.Forest, trees: int) -> float:
    """Half a unit for each leaf and the base; doubles of the library lose a little more."""
    return 10.0**-model.places * (trees + 1) / 2 + 1e-10


def test_bounds_are_those_of_rounding() -> None:
    rng = np.random.default_rng(5)
    for case in range(4000):
        places = int(rng.integers(0, 6))
        scale = 10.0 ** int(rng.integers(-3, 7))
        threshold = float(np.float32(rng.normal() * scale)) if case % 2 else round(float(rng.normal()) * scale, places)
        for through in (floats.SINGLE, floats.DOUBLE):
            for strict in (False, True):
                sign, bound = floats.test(threshold, strict, through)
                near = decimal.Decimal(threshold).quantize(decimal.Decimal(1).scaleb(-places))
                for step in range(-2, 3):
                    x = near + step * decimal.Decimal(1).scaleb(-places)
                    read = float(x) if through == floats.DOUBLE else struct.unpack("<f", struct.pack("<f", float(x)))[0]
                    goes = read < threshold if strict else read <= threshold
                    assert (Fraction(x) < Fraction(bound) if sign == "<" else Fraction(x) <= Fraction(bound)) == goes, (x, threshold, strict, through)
    # A tenth as a single is above a tenth; XGBoost rounds the feature as well.
    tenth = float(np.float32(0.1))
    sign, bound = floats.test(tenth, True, floats.SINGLE)
    assert Fraction(bound) < Fraction(1, 10)
    assert floats.test(tenth, False, floats.SINGLE)[1].startswith("0.1000000")
    assert floats.test(math.inf, False, floats.DOUBLE)[0] == "<="
    with pytest.raises(ValueError, match="no number"):
        floats.test(math.nan, False, floats.DOUBLE)


def _diabetes() -> Any:
    data = sklearn_datasets.load_diabetes(scaled=False)
    exact, rows = _decimals(data.data)
    return exact, rows, data.target, [f"x{at}" for at in range(10)]


def _iris() -> Any:
    data = sklearn_datasets.load_iris()
    exact, rows = _decimals(data.data, 1)
    return exact, rows, data.target, ["sl", "sw", "pl", "pw"]


def _cancer() -> Any:
    data = sklearn_datasets.load_breast_cancer()
    exact, rows = _decimals(data.data, 4)
    return exact, rows, data.target, [f"f{at}" for at in range(30)]


REGRESSORS: list[Callable[[], Any]] = [
    lambda: sklearn_tree.DecisionTreeRegressor(max_depth=6, random_state=1),
    lambda: sklearn_tree.ExtraTreeRegressor(max_depth=6, random_state=1),
    lambda: sklearn_ensemble.RandomForestRegressor(n_estimators=20, max_depth=7, random_state=1),
    lambda: sklearn_ensemble.ExtraTreesRegressor(n_estimators=10, max_depth=7, random_state=1),
    lambda: sklearn_ensemble.GradientBoostingRegressor(n_estimators=30, random_state=1),
    lambda: sklearn_ensemble.GradientBoostingRegressor(n_estimators=5, init="zero", random_state=1),
    lambda: sklearn_ensemble.HistGradientBoostingRegressor(max_iter=20, random_state=1),
]


@pytest.mark.parametrize("make", REGRESSORS)
def test_regressors_of_scikit_learn(make: Callable[[], Any]) -> None:
    exact, rows, target, names = _diabetes()
    fitted = make().fit(rows, target)
    model = vw.forest(fitted, features=names, places=9)
    assert not model.classes and type(fitted).__name__ in model.source
    found = [float(_scores(model, row)[0]) for row in _rows(model, exact)]
    trees = len(json.loads(model.text)["trees"])
    assert np.abs(np.array(found) - fitted.predict(rows)).max() <= _close(model, trees)


def test_missing_values_go_where_scikit_learn_sends_them() -> None:
    _, rows, target, names = _diabetes()
    rng = np.random.default_rng(3)
    rows[rng.random(rows.shape) < 0.1] = math.nan
    exact, rows = _decimals(rows)
    for fitted in (
        sklearn_tree.DecisionTreeRegressor(max_depth=6, random_state=1),
        sklearn_ensemble.RandomForestRegressor(n_estimators=10, max_depth=6, random_state=1),
        sklearn_ensemble.HistGradientBoostingRegressor(max_iter=10, random_state=1),
    ):
        for seen in (rows, np.nan_to_num(rows)):
            fitted.fit(seen, target)
            model = vw.forest(fitted, features=names, places=9)
            found = [float(_scores(model, row)[0]) for row in _rows(model, exact)]
            assert np.abs(np.array(found) - fitted.predict(rows)).max() <= _close(model, 10)


CLASSIFIERS: list[Callable[[], Any]] = [
    lambda: sklearn_tree.DecisionTreeClassifier(max_depth=4, random_state=1),
    lambda: sklearn_tree.ExtraTreeClassifier(max_depth=4, random_state=1),
    lambda: sklearn_ensemble.RandomForestClassifier(n_estimators=20, max_depth=5, random_state=1),
    lambda: sklearn_ensemble.ExtraTreesClassifier(n_estimators=20, max_depth=5, random_state=1),
    lambda: sklearn_ensemble.GradientBoostingClassifier(n_estimators=15, random_state=1),
    lambda: sklearn_ensemble.HistGradientBoostingClassifier(max_iter=10, random_state=1),
]


@pytest.mark.parametrize("data", [_iris, _cancer])
@pytest.mark.parametrize("make", CLASSIFIERS)
def test_classifiers_of_scikit_learn(make: Callable[[], Any], data: Callable[[], Any]) -> None:
    exact, rows, target, names = data()
    fitted = make().fit(rows, target)
    model = vw.forest(fitted, features=names, places=9)
    assert model.classes == [str(one) for one in fitted.classes_]
    found = np.array([[float(one) for one in _scores(model, row)] for row in _rows(model, exact)])
    boosted = "Boosting" in type(fitted).__name__
    wanted = fitted.decision_function(rows) if boosted else fitted.predict_proba(rows)
    if wanted.ndim == 1:
        assert not found[:, 0].any()
        found_scores, wanted = found[:, 1], wanted
    else:
        found_scores = found
    assert np.abs(found_scores - wanted).max() <= _close(model, 60)
    ordered = np.sort(found, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-6
    assert clear.mean() > 0.9
    assert (fitted.classes_[found.argmax(axis=1)] == fitted.predict(rows))[clear].all()


def test_models_of_scikit_learn_that_are_not_read() -> None:
    import sklearn.linear_model
    import sklearn.svm

    _, rows, target, names = _diabetes()
    for fitted, why in [
        (sklearn.linear_model.LinearRegression().fit(rows, target), "a LinearRegression is not read"),
        (sklearn_tree.DecisionTreeRegressor(), "is not fitted"),
        (sklearn_tree.DecisionTreeRegressor(max_depth=2).fit(rows, np.stack([target, target], 1)), "several targets"),
        (sklearn_ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(rows, target), "the loss poisson is not read"),
        (sklearn_ensemble.GradientBoostingRegressor(init=sklearn_tree.DecisionTreeRegressor(max_depth=1), n_estimators=2).fit(rows, target), "begins with a DecisionTreeRegressor"),
        (sklearn_ensemble.HistGradientBoostingRegressor(categorical_features=[1], max_iter=2).fit(np.column_stack([rows[:, 0], rows[:, 1] % 3]), target), "categorical features"),
        (sklearn_tree.DecisionTreeRegressor(random_state=1).fit(np.arange(40.0)[:, None], 4.0 ** np.arange(40)), "32 levels"),
    ]:
        with pytest.raises(vw.JobError, match=why):
            vw.forest(fitted)
    fitted = sklearn_tree.DecisionTreeRegressor(max_depth=2).fit(rows, target)
    for more, why in [({"features": names[:3]}, "10 features, and 3 are named"), ({"places": 31}, "from 0 to 30"), ({"classes": ["a"]}, "0 classes, and 1 are named")]:
        with pytest.raises(vw.JobError, match=why):
            vw.forest(fitted, **more)


def test_nothing_is_unpickled(tmp_path: pathlib.Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pathlib.Path.touch, (tmp_path / "exploded",))

    import pickle

    file = tmp_path / "model.pkl"
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(vw.JobError, match="is not loaded"):
        vw.forest(file)
    with pytest.raises(vw.JobError, match="no model that is known"):
        vw.forest(Bomb())
    assert not (tmp_path / "exploded").exists()


# XGBoost.


def _xgboost() -> Any:
    return pytest.importorskip("xgboost")


@pytest.mark.parametrize("objective", ["reg:squarederror", "binary:logistic", "binary:logitraw", "multi:softprob"])
@pytest.mark.parametrize("method", ["hist", "exact"])
def test_models_of_xgboost(objective: str, method: str, tmp_path: pathlib.Path) -> None:
    xgb = _xgboost()
    exact, rows, target, names = {"r": _diabetes, "b": _cancer, "m": _iris}[objective[0]]()
    parameters: dict[str, Any] = {"objective": objective, "max_depth": 5, "tree_method": method, "seed": 1, "nthread": 2}
    if objective[0] == "m":
        parameters["num_class"] = 3
    booster = xgb.train(parameters, xgb.DMatrix(rows, target, feature_names=names), 20)
    booster.save_model(tmp_path / "model.json")
    model = vw.forest(tmp_path / "model.json", places=9)
    assert model.text == vw.forest(booster, places=9).text
    assert model.features == names
    wanted = booster.predict(xgb.DMatrix(rows, feature_names=names), output_margin=True)
    found = np.array([[float(one) for one in _scores(model, row)] for row in _rows(model, exact)])
    if wanted.ndim == 1:
        found = found[:, -1]
    # Sums of singles.
    assert np.abs(found - wanted).max() <= 2e-6 * max(np.abs(wanted).max(), 1.0) + 1e-7


def test_xgboost_sends_missing_values_and_categories() -> None:
    xgb = _xgboost()
    import pandas as pd

    rng = np.random.default_rng(8)
    wards = ["east", "north", "south", "west", "zoo"]
    ward = rng.integers(0, 5, 600)
    x = np.round(rng.normal(size=600), 2)
    target = np.array([3.0, -1.0, 0.5, 2.0, 0.0])[ward] * (x > 0.1) + x
    gone = rng.random(600) < 0.1
    frame = pd.DataFrame({"x": np.where(gone, np.nan, x), "ward": pd.Categorical([None if rng.random() < 0.1 else wards[at] for at in ward], wards)})
    fitted = xgb.XGBRegressor(n_estimators=12, max_depth=4, enable_categorical=True, tree_method="hist", max_cat_to_onehot=2).fit(frame, target)
    model = vw.forest(fitted, places=9, values={"ward": wards})
    assert '"in"' in model.text and '"null"' in model.text
    rows = [{"x": None if pd.isna(a) else decimal.Decimal(f"{a:.2f}"), "ward": None if pd.isna(b) else b} for a, b in zip(frame["x"], frame["ward"])]
    found = np.array([float(_scores(model, row)[0]) for row in rows])
    assert np.abs(found - fitted.predict(frame)).max() <= 1e-5
    with pytest.raises(vw.JobError, match="say its values in the order of their codes"):
        vw.forest(fitted)
    with pytest.raises(vw.JobError, match="a code beyond its 2 values"):
        vw.forest(fitted, values={"ward": wards[:2]})


def test_files_of_xgboost_that_are_not_read(tmp_path: pathlib.Path) -> None:
    xgb = _xgboost()
    exact, rows, target, names = _diabetes()
    booster = xgb.train({"max_depth": 3}, xgb.DMatrix(rows, target), 3)
    good = json.loads(bytes(booster.save_raw("json")))
    file = tmp_path / "model.json"

    def refused(change: Callable[[Any], Any], why: str) -> None:
        of = json.loads(json.dumps(good))
        change(of["learner"])
        file.write_text(json.dumps(of))
        with pytest.raises(vw.JobError, match=why):
            vw.forest(file)

    trees: Callable[[Any], Any] = lambda of: of["gradient_booster"]["model"]["trees"][0]  # noqa: E731
    refused(lambda of: of["gradient_booster"].update(name="dart"), "gbtree")
    refused(lambda of: of["objective"].update(name="count:poisson"), "count:poisson is not read")
    refused(lambda of: trees(of)["left_children"].__setitem__(1, 0), "node 0 of a tree is reached twice")
    refused(lambda of: trees(of)["left_children"].__setitem__(0, 99), "has no node 99")
    refused(lambda of: trees(of)["left_children"].pop(), "different lengths")
    refused(lambda of: trees(of)["split_indices"].__setitem__(0, 50), "feature 50")
    refused(lambda of: trees(of)["split_conditions"].__setitem__(0, math.nan), "a threshold is no number")
    refused(lambda of: of["gradient_booster"]["model"]["tree_info"].pop(), "tree_info")
    refused(lambda of: of["learner_model_param"].update(base_score="NaN"), "base_score")
    refused(lambda of: of["attributes"].update(best_iteration="0"), "slice the booster")
    refused(lambda of: of.pop("gradient_booster"), "gradient_booster is missing")
    for text in ["", "[]", "{", "{}", "[" * 100_000]:
        file.write_text(text)
        with pytest.raises(vw.JobError):
            vw.forest(file)


# ONNX.


def _onnx(fitted: Any, columns: int, **options: Any) -> Any:
    pytest.importorskip("onnx")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType

    return skl2onnx.convert_sklearn(fitted, initial_types=[("x", FloatTensorType([None, columns]))], target_opset={"": 17, "ai.onnx.ml": 3}, **options)


@pytest.mark.parametrize("make", [REGRESSORS[0], REGRESSORS[2], REGRESSORS[4]])
def test_regressors_of_onnx(make: Callable[[], Any], tmp_path: pathlib.Path) -> None:
    exact, rows, target, names = _diabetes()
    fitted = make().fit(rows, target)
    file = tmp_path / "model.onnx"
    file.write_bytes(_onnx(fitted, 10).SerializeToString())
    model = vw.forest(file, features=names, places=6)
    found = np.array([float(_scores(model, row)[0]) for row in _rows(model, exact)])
    # Leaves and sums are singles there.
    assert np.abs(found - fitted.predict(rows)).max() <= 2e-4


@pytest.mark.parametrize("data", [_iris, _cancer])
@pytest.mark.parametrize("make", [CLASSIFIERS[0], CLASSIFIERS[2], CLASSIFIERS[4]])
def test_classifiers_of_onnx(make: Callable[[], Any], data: Callable[[], Any], tmp_path: pathlib.Path) -> None:
    exact, rows, target, names = data()
    fitted = make().fit(rows, target)
    file = tmp_path / "model.onnx"
    file.write_bytes(_onnx(fitted, len(names)).SerializeToString())
    model = vw.forest(file, features=names, places=6)
    found = np.array([[float(one) for one in _scores(model, row)] for row in _rows(model, exact)])
    boosted = "Boosting" in type(fitted).__name__
    wanted = fitted.decision_function(rows) if boosted else fitted.predict_proba(rows)
    if wanted.ndim == 1:
        wanted = np.stack([np.zeros_like(wanted), wanted], axis=1)
    assert np.abs(found - wanted).max() <= 1e-4
    ordered = np.sort(found, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-4
    assert (np.array(model.classes)[found.argmax(axis=1)] == fitted.predict(rows).astype(str))[clear].all()


def _attributes(**given: Any) -> dict[str, Any]:
    return {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [1.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0], "n_targets": 1,
    } | given  # fmt: skip


def _ensemble(of: dict[str, Any], operator: str = "TreeEnsembleRegressor", opset: int = 3, domain: str = "ai.onnx.ml") -> bytes:
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node(operator, ["x"], ["y"], domain=domain, **of)
    graph = onnx.helper.make_graph([node], "g", [], [])
    whole = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("ai.onnx.ml", opset)])
    return bytes(whole.SerializeToString())


@pytest.mark.parametrize(("mode", "below", "at", "above"), [("BRANCH_LEQ", 1, 1, 2), ("BRANCH_LT", 1, 2, 2), ("BRANCH_GT", 2, 2, 1), ("BRANCH_GTE", 2, 1, 1)])
def test_modes_of_onnx(mode: str, below: int, at: int, above: int, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "model.onnx"
    for tracks in (0, 1):
        of = _attributes(nodes_modes=[mode, "LEAF", "LEAF"], nodes_missing_value_tracks_true=[tracks, 0, 0])
        file.write_bytes(_ensemble(of))
        model = vw.forest(file, features=["x"], places=0)
        assert [_scores(model, {"x": x})[0] for x in ("1.49", "1.5", "1.51")] == [below, at, above]
        if tracks:
            assert _scores(model, {"x": None})[0] == 1


def test_files_of_onnx_that_are_not_read(tmp_path: pathlib.Path) -> None:
    onnx = pytest.importorskip("onnx")
    file = tmp_path / "model.onnx"

    def refused(data: bytes, why: str) -> None:
        file.write_bytes(data)
        with pytest.raises(vw.JobError, match=why):
            vw.forest(file)

    good = _ensemble(_attributes())
    file.write_bytes(good)
    assert vw.forest(file).features == ["f0"]
    refused(_ensemble(_attributes(nodes_truenodeids=[0, 0, 0])), "node 0 of a tree is reached twice")
    refused(_ensemble(_attributes(nodes_falsenodeids=[1, 0, 0])), "node 1 of a tree is reached twice")
    refused(_ensemble(_attributes(nodes_truenodeids=[7, 0, 0])), "tree 0 has no node 7")
    refused(_ensemble(_attributes(nodes_nodeids=[0, 1, 1])), "two nodes 1")
    refused(_ensemble(_attributes(nodes_featureids=[0, 0])), "different lengths")
    refused(_ensemble(_attributes(nodes_modes=["BRANCH_EQ", "LEAF", "LEAF"])), "mode BRANCH_EQ")
    refused(_ensemble(_attributes(nodes_values=[math.nan, 0.0, 0.0])), "a threshold is no number")
    refused(_ensemble(_attributes(nodes_featureids=[1 << 40, 0, 0])), "1 to 1024 features, and not 1099511627777")
    refused(_ensemble(_attributes(target_nodeids=[1, 0])), "no leaf 0")
    refused(_ensemble(_attributes(target_weights=[math.inf, 0.0])), "no finite number")
    refused(_ensemble(_attributes(target_ids=[0, 3])), "score 3")
    refused(_ensemble(_attributes(n_targets=2)), "several targets")
    refused(_ensemble(_attributes(aggregate_function="MAX")), "aggregate MAX")
    refused(_ensemble(_attributes(post_transform="PROBIT")), "transform PROBIT")
    refused(_ensemble(_attributes(surprise=1)), "unknown attribute surprise")
    refused(_ensemble(_attributes(), opset=5), "version 5 of ai.onnx.ml is not read")
    refused(_ensemble({}, operator="TreeEnsemble", opset=5), "the operator TreeEnsemble is not read")
    refused(_ensemble({}, operator="Loop", domain=""), "the operator Loop is not read")
    depth = 40
    chain = _attributes(
        nodes_treeids=[0] * (2 * depth + 1), nodes_nodeids=list(range(2 * depth + 1)), nodes_featureids=[0] * (2 * depth + 1), nodes_values=[0.0] * (2 * depth + 1),
        nodes_modes=["BRANCH_LEQ", "LEAF"] * depth + ["LEAF"], nodes_truenodeids=[at + 2 for at in range(2 * depth + 1)], nodes_falsenodeids=[at + 1 for at in range(2 * depth + 1)],
        target_nodeids=[2 * depth, 1],
    )  # fmt: skip
    refused(_ensemble(chain), "32 levels")
    outside = onnx.helper.make_tensor("nodes_values_as_tensor", onnx.TensorProto.DOUBLE, [3], [1.5, 0.0, 0.0])
    outside.data_location = onnx.TensorProto.EXTERNAL
    refused(_ensemble(_attributes(nodes_values_as_tensor=outside)), "in another file")
    file.write_bytes(good)
    with pytest.raises(vw.JobError, match="1 features, and 0 are named"):
        vw.forest(file, features=[])
    # Cut anywhere, or with any byte changed, a file is refused or read, and nothing else.
    for at in range(len(good)):
        refused(good[:at], "the model is not read|this is no model")
    rng = np.random.default_rng(1)
    for _ in range(1500):
        data = bytearray(good)
        data[rng.integers(len(data))] = rng.integers(256)
        file.write_bytes(bytes(data))
        try:
            vw.forest(file)
        except vw.JobError:
            pass


# In jobs.


def _asked(model: vw.Forest) -> tuple[vw.Job, vw.Model]:
    job = vw.Job("flowers", owners=["north"], parties=["p0", "p1", "p2"], recipients=["ministry"])
    columns: dict[str, vw.ColumnType] = {"id": vw.Integer(0, 200)}
    columns |= {name: vw.Decimal(1, 0, 10) for name in ("sl", "sw", "pl", "pw")}
    table = job.table("flowers", owner="north", rows=150, columns=columns)
    kind = job.model("kind", model)
    scored = table.assign(kind=table.predict(kind), first=kind.score("0", sl=table.sl, sw=table.sw, pl=table.pl, pw=table.pw))
    job.open(scored[["id", "kind", "first"]].order_by("id"), to="ministry", name="kinds")
    return job, kind


def test_parties_predict_what_scikit_learn_does(tmp_path: pathlib.Path) -> None:
    exact, rows, target, names = _iris()
    fitted = sklearn_ensemble.RandomForestClassifier(n_estimators=12, max_depth=4, random_state=1).fit(rows, target)
    model = vw.forest(fitted, features=names, places=4)
    job, kind = _asked(model)
    data = {"flowers": {"id": list(range(150))} | {name: [row[at] for row in exact] for at, name in enumerate(names)}}
    found = job.run_local(data)["kinds"].to_dicts()
    wanted = fitted.predict_proba(rows)
    ordered = np.sort(wanted, axis=1)
    for at, row in enumerate(found):
        assert abs(float(row["first"]) - wanted[at][0]) <= 13 * 0.5e-4
        if ordered[at][-1] - ordered[at][-2] > 2e-3:
            assert row["kind"] == str(fitted.predict(rows[at : at + 1])[0])
    # Explained, saved and read again.
    assert "models that are applied, public to all participants" in job.explain()
    assert "12 trees" in job.explain() and "ANDs a row" in job.explain()
    job.save(tmp_path / "job.toml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.toml", "kind.json"]
    read = vw.Job.read(tmp_path / "job.toml")
    assert read.plan_hash == job.plan_hash
    assert read.run_local(data)["kinds"].to_dicts() == found
    again, _ = _asked(vw.Forest.read(tmp_path / "kind.json"))
    assert again.plan_hash == job.plan_hash
    # One leaf is another plan.
    of = json.loads(model.text)
    of["base"][0] = "0.0001"
    assert _asked(vw.Forest(json.dumps(of)))[0].plan_hash != job.plan_hash


def test_what_no_model_is_applied_to() -> None:
    exact, rows, target, names = _iris()
    model = vw.forest(sklearn_tree.DecisionTreeClassifier(max_depth=2).fit(rows, target), features=names)
    assert "Forest 1 tree of up to 2 levels" in repr(model)
    job, kind = _asked(model)
    table = job.table("more", owner="north", rows=3, columns={name: vw.Decimal(1, 0, 9) for name in names[:3]})
    with pytest.raises(vw.JobError, match="takes its 4 features, each once"):
        kind(table.sl)
    with pytest.raises(vw.JobError, match="takes its 4 features, each once"):
        kind(table.sl, table.sw, table.pl, sl=table.sl)
    with pytest.raises(vw.JobError, match="is applied to columns"):
        kind(1, 2, 3, 4)
    with pytest.raises(vw.JobError, match="no class of model"):
        kind.score("7", table.sl, table.sw, table.pl, 1)
    with pytest.raises(vw.JobError, match="pw"):
        table.predict(kind)
    with pytest.raises(vw.JobError, match="has a model `kind` already"):
        job.model("kind", model)
    with pytest.raises(vw.JobError, match="no name of a model"):
        job.model("Kind", model)
    with pytest.raises(vw.JobError, match="this is no model"):
        vw.Forest("{}")
    network = (
        '{"version": 1, "kind": "network", "source": "a test", "places": 0, "features": [{"name": "x"}], '
        '"layers": [{"dense": {"weights": [["1"]], "bias": ["0"]}}], "outputs": ["y"]}'
    )
    with pytest.raises(vw.JobError, match="it is a network, and no model of trees"):
        vw.Forest(network)
