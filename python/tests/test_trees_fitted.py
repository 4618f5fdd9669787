"""Trees that are fitted to secret rows, against scikit-learn's on columns whose numbers are put in place of the cuts around them."""

from __future__ import annotations

import decimal
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest

import veilworks as vw

# A library without types of its own.
trees: Any = import_module("sklearn.tree")

AGES = [20, 35, 50, 65, 80]
WEIGHTS = ["50.5", "72.25", "90"]
COLUMNS: dict[str, Any] = {"age": vw.Integer(0, 99), "weight": vw.Decimal(2, 30, 130), "smoker": vw.Bool(), "ward": vw.Category(["south", "icu", "north"])}


def patients(count: int, seed: int) -> Any:
    draws = np.random.default_rng(seed)
    frame: Any = pd.DataFrame({"id": np.arange(count), "age": draws.integers(0, 100, count)})
    frame["weight"] = [decimal.Decimal(int(units)) / 100 for units in draws.integers(3000, 13001, count)]
    frame["smoker"] = draws.random(count) < 0.3
    frame["ward"] = draws.choice(["icu", "north", "south"], count, p=[0.2, 0.5, 0.3])
    odds = frame.age / 40 + frame.smoker + 1.5 * (frame.ward == "icu") - frame.weight.astype(float) / 60
    frame["again"] = draws.random(count) < 1 / (1 + np.exp(-odds))
    frame["outcome"] = np.where(frame.again, np.where(draws.random(count) < 0.4, "died", "moved"), "well")
    frame["cost"] = [decimal.Decimal(int(units)) / 100 for units in np.clip(2000 + 3000 * odds + draws.normal(0, 900, count), -9999, 99999)]
    return frame


def binned(frame: Any) -> Any:
    """Features as scikit-learn takes them: places among cuts, and a column of each text."""
    return np.column_stack(
        [
            np.searchsorted(AGES, frame.age),
            np.searchsorted([float(cut) for cut in WEIGHTS], frame.weight.astype(float)),
            frame.smoker,
            *(frame.ward == ward for ward in ("icu", "north", "south")),
        ]
    )


TARGETS: dict[str, Any] = {"again": vw.Bool(), "outcome": vw.Category(["well", "died", "moved"]), "cost": vw.Decimal(2, -100, 1000)}
NAMES: dict[str, Any] = {"id": vw.Integer(0, 9999)}


def job_of(frame: Any) -> tuple[vw.Job, vw.Table]:
    job = vw.Job("trees", owners=["clinic"], parties=["a", "b", "c"], recipients=["registry"])
    return job, job.table("patients", owner="clinic", rows=len(frame), columns=NAMES | COLUMNS | TARGETS)


def grown(frame: Any, y: str, depth: int = 3, min_count: int = 20) -> Any:
    job, rows = job_of(frame)
    model = vw.ml.DecisionTree(depth=depth, cuts={"age": AGES, "weight": WEIGHTS}, places=9, min_count=min_count)
    job.open(model.fit(rows, x=list(COLUMNS), y=y), to="registry")
    return job.run_local({"patients": frame})


def holds(frame: Any, node: Any) -> Any:
    """For which rows the condition of a node holds."""
    column = frame[node.feature]
    if node.feature == "ward":
        return (column == node.cut).to_numpy()
    if node.feature == "smoker":
        assert node.cut == "false"
        return ~column.to_numpy()
    return (column.astype(float) <= float(node.cut)).to_numpy()


@pytest.mark.parametrize("y", list(TARGETS))
def test_trees_are_those_of_scikit_learn(y: str) -> None:
    frame, least = patients(600, 3), 20
    result = grown(frame, y)
    nodes: Any = result.to_pandas().set_index("node")
    if y == "cost":
        other = trees.DecisionTreeRegressor(max_depth=3, min_samples_leaf=least).fit(binned(frame), frame.cost.astype(float))
        values = ["mean"]
    else:
        other = trees.DecisionTreeClassifier(max_depth=3, min_samples_leaf=least).fit(binned(frame), frame[y])
        values = ["share"] if y == "again" else ["share_0", "share_1", "share_2"]
    assert list(nodes.columns) == ["feature", "cut", "rows", *values]
    wanted, cells, seen = other.tree_, binned(frame), set()

    def same(number: int, at: int, rows: Any) -> None:
        node = nodes.loc[number]
        seen.add(number)
        assert node["rows"] == rows.sum() == wanted.n_node_samples[at]
        of = wanted.value[at][0]
        assert [float(node[name]) for name in values] == pytest.approx(of[1:] if y == "again" else of, abs=1e-8)
        left, right = wanted.children_left[at], wanted.children_right[at]
        if left == -1:
            assert pd.isna(node.feature) and pd.isna(node.cut)
            return
        first, goes = holds(frame, node), cells[:, wanted.feature[at]] <= wanted.threshold[at]
        if node.feature == "ward":
            # There the column is 0 of what does not hold.
            goes, left, right = ~goes, right, left
        assert (rows & first == rows & goes).all(), number
        same(2 * number, left, rows & first)
        same(2 * number + 1, right, rows & ~first)

    same(1, 0, np.ones(len(frame), dtype=bool))
    assert seen == set(nodes.index) and len(seen) > 8

    # The tree that was opened is a model of the next job.
    classes = ["well", "ill"] if y == "again" else ["died", "moved", "well"] if y == "outcome" else None
    forest = vw.forest(result, features=list(COLUMNS), values={"ward": ["icu", "north", "south"]}, places=9, classes=classes)
    job, rows = job_of(frame)
    tree = job.model("tree", forest)
    if classes:
        scores = {f"score_{at}": rows.predict(tree, score=name) for at, name in enumerate(classes)}
        job.open(rows.assign(**scores).select("id", *scores), to="registry")
    else:
        job.open(rows.assign(score_0=rows.predict(tree)).select("id", "score_0"), to="registry")
    found: Any = job.run_local({"patients": frame}).to_pandas().sort_values("id")
    assert list(found.id) == list(frame.id)
    by_parties = found.drop(columns="id").astype(float).to_numpy()
    predicted = other.predict_proba(cells) if classes else other.predict(cells)[:, None]
    assert np.abs(by_parties - predicted).max() < 1e-8


def test_a_tree_is_saved_and_read(tmp_path: Any) -> None:
    frame = patients(100, 5)
    job, rows = job_of(frame)
    model = vw.ml.DecisionTree(depth=2, cuts={"age": 4, "weight": [decimal.Decimal("50.5"), 90]}).fit(rows, x=["age", "weight"], y="again")
    assert model.columns == ["node", "feature", "cut", "rows", "share"]
    assert vw.ml.DecisionTree().fit(rows, x=["age"], y="outcome").columns[4:] == ["share_0", "share_1", "share_2"]
    assert vw.ml.DecisionTree().fit(rows, x=["age"], y="cost").columns[4:] == ["mean"]
    job.open(model.where(model.rows > 30), to="registry")
    assert 'fit = { family = "tree", target = "again", depth = 2, cuts = { age = 4, weight = ["50.5", 90] }, places = 6 }' in job.text
    job.save(tmp_path / "job.toml")
    assert vw.Job.read(tmp_path / "job.toml").plan_hash == job.plan_hash
    assert "a decision tree on age, weight, of up to 2 levels of splits by 6 public candidates, of at most 100 rows; each node shows how many rows it has, and none has fewer than 20" in job.explain()


def test_mistakes_are_said_where_they_are_made() -> None:
    _, rows = job_of(patients(100, 5))
    inexact: Any = {"weight": [50.5]}
    wrong: Any = {"age": "many"}
    for make, said in [
        (lambda: vw.ml.DecisionTree(cuts=inexact), "a cut of `weight` is a binary fraction"),
        (lambda: vw.ml.DecisionTree(cuts=wrong), "cuts of `age` are a list of numbers, or how many, and not 'many'"),
        (lambda: vw.ml.DecisionTree().fit(rows, x="age", y="again"), "features are a list of columns"),
        (lambda: vw.ml.DecisionTree().fit(rows, x=["age", "again"], y="again"), "the target `again` is a feature as well"),
        (lambda: vw.ml.DecisionTree(cuts={"weight": 3}).fit(rows, x=["age"], y="again"), "there are cuts of `weight`, which is no feature"),
    ]:
        with pytest.raises(vw.JobError, match=said) as caught:
            make()  # type: ignore[no-untyped-call]
        assert caught.value.source is not None and caught.value.source.file.endswith("test_trees_fitted.py")
    for depth, cuts, said in [(7, {}, "a tree has 1 to 6 levels of splits"), (2, {"age": 64}, "a column has 1 to 63 of them"), (2, {"age": [99]}, "cuts of feature 1 of a tree")]:
        job, rows = job_of(patients(100, 5))
        job.open(vw.ml.DecisionTree(depth=depth, cuts=cuts).fit(rows, x=["age"], y="again"), to="registry")  # type: ignore[arg-type]
        with pytest.raises(vw.JobError, match=said):
            job.plan_hash


def test_only_whole_trees_are_models() -> None:
    frame = patients(200, 7)
    job, rows = job_of(frame)
    tree = vw.ml.DecisionTree(depth=2, min_count=5).fit(rows, x=["age", "ward"], y="outcome")
    job.open(tree, to="registry", name="whole")
    job.open(tree.where(tree.node < 3), to="registry", name="part")
    job.open(tree.select("node", "feature", "cut", "rows"), to="registry", name="bare")
    job.open(tree.where(tree.node > 1), to="registry", name="below")
    result = job.run_local({"patients": frame})
    texts = {"ward": ["icu", "north", "south"]}
    labels = ["died", "moved", "well"]
    model = vw.forest(result["whole"], values=texts, classes=labels)
    assert model.features == ["age", "ward"] and model.classes == labels and model.source == "a tree fitted by veilworks"
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("part", {"values": texts, "classes": labels}, "node 2 is split, and its child 4 is not there: open all nodes of the tree"),
        ("bare", {"values": texts}, "nodes of a tree have the columns `share`, `share_0` and so on, or `mean`"),
        ("below", {"values": texts, "classes": labels}, "the tree has no root"),
        ("whole", {"values": texts}, "the tree has 3 classes, and 0 are named"),
        ("whole", {"classes": labels}, "is no number: say values="),
        ("whole", {"values": texts, "classes": labels, "features": ["age"]}, "the tree asks for `ward`, and the features are age"),
    ]
    for answer, more, said in wrong:
        with pytest.raises(vw.JobError, match=said):
            vw.forest(result[answer], **more)
