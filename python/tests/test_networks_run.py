"""Networks that parties apply to secret rows, against what their files mean; and that the compiled part reads all that importers write."""

from __future__ import annotations

import decimal
import json
import math
import pathlib
import re
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from nets import KNOWN, class_of, file_of, lenet, meant, node, read
from test_networks import CASES

import veilworks as vw

onnx: Any = pytest.importorskip("onnx")
datasets: Any = import_module("sklearn.datasets")
neural_network: Any = import_module("sklearn.neural_network")
pipeline: Any = import_module("sklearn.pipeline")
preprocessing: Any = import_module("sklearn.preprocessing")

Rows = Sequence[Sequence[Any]]


def job_of(columns: dict[str, Any], rows: int) -> tuple[vw.Job, vw.Table]:
    job = vw.Job("read", owners=["clinic"], parties=["a", "b", "c"], recipients=["registry"])
    return job, job.table("rows", owner="clinic", rows=rows, columns={"id": vw.Integer(0, 1 << 20)} | columns)


def data_of(names: Sequence[str], rows: Rows) -> dict[str, Any]:
    return {"rows": {"id": list(range(len(rows)))} | {name: [row[at] for row in rows] for at, name in enumerate(names)}}


def decimals(rows: Any, places: int) -> list[list[decimal.Decimal]]:
    return [[decimal.Decimal(f"{x:.{places}f}") for x in row] for row in rows.tolist()]


def applied(network: vw.Network, columns: dict[str, Any], rows: Rows, *, scores: bool = False, places: int = 3) -> tuple[Any, float]:
    """What three parties give, by row, as a frame of pandas; and how far that is from the network at most, as the plan says."""
    job, table = job_of(columns, len(rows))
    job.open(table.apply(job.model("net", network), places=places, scores=scores), to="registry")
    said = re.search(r"within ([0-9.]+) of the network's", " ".join(job.explain().split()))
    assert said is not None
    # Doubles of sigmoid and tanh, by which files are read here, are off as well.
    bound = float(said[1]) + 1e-9
    found: Any = job.run_local(data_of(network.features, rows)).to_pandas()
    assert len(found) == len(rows)
    return found.sort_values("id").reset_index(drop=True), bound


def agree(network: vw.Network, found: Any, bound: float, rows: Rows) -> int:
    """Scores are those of the file, and classes where scores tell them apart: how many these are."""
    told = 0
    for at, row in enumerate(rows):
        cells = meant(network, [Fraction(one) for one in row]).cells
        names = [f"score_{at}" for at in range(len(cells))] if len(cells) > 1 else ["score_1"]
        for name, cell in zip(names, cells):
            assert abs(float(found[name][at]) - float(cell)) <= bound, (at, name)
        first, second = sorted(cells, reverse=True)[:2] if len(cells) > 1 else (abs(cells[0]) * 2, 0)
        if first - second > 2 * bound:
            told += 1
            assert found["class"][at] == class_of(network, cells), at
    return told


def test_the_compiled_part_reads_networks(tmp_path: pathlib.Path) -> None:
    assert KNOWN
    for case, made in CASES.items():
        nodes, sizes, tensors, more = made()
        network = read(file_of(nodes, sizes, tensors), tmp_path, **more)
        again = vw.Network(json.dumps(json.loads(network.text), indent=1))
        assert (again.features, again.outputs, repr(again)) == (network.features, network.outputs, repr(network)), case
    digits = read(lenet(np.random.default_rng(1)), tmp_path)
    assert len(digits.classes) == 10


def test_files_that_are_no_networks(tmp_path: pathlib.Path) -> None:
    nodes, tensors = [node("MatMul", "x w", "y")], {"w": np.ones((2, 3))}
    network = read(file_of(nodes, [2], tensors), tmp_path)
    for change in [
        {"surprise": 1}, {"version": 2}, {"kind": "net"}, {"places": 16}, {"shape": [1, 1, 3]}, {"layers": []}, {"layers": [{"activation": "selu"}]}, {"outputs": ["a", "b"]},
        {"classes": ["a", "b", "c"]}, {"features": [{"name": "x"}, {"name": "x"}]}, {"layers": [{"dense": {"weights": [[1, 2]] * 3, "bias": ["0"] * 3}}]},
    ]:  # fmt: skip
        with pytest.raises(vw.JobError, match="this is no network"):
            vw.Network(json.dumps(json.loads(network.text) | change))
    for text in ["", "[]", "{", "{}", "[" * 100_000]:
        with pytest.raises(vw.JobError, match="this is no network"):
            vw.Network(text)
    with pytest.raises(vw.JobError):
        read(file_of(nodes, [2], tensors), tmp_path, features=["a", "a"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["relu", "logistic", "tanh"])
def test_parties_read_digits_as_scikit_learn_does(activation: str) -> None:
    images, target = datasets.load_digits(return_X_y=True)
    fitted = neural_network.MLPClassifier(hidden_layer_sizes=(16,), activation=activation, max_iter=60, random_state=1).fit(images, target)
    network = vw.network(fitted, features=[f"p{at}" for at in range(64)])
    rows = images[:40].astype(int).tolist()
    found, bound = applied(network, {name: vw.Integer(0, 16) for name in network.features}, rows, scores=True)
    assert list(found.columns) == ["id", "class", *(f"score_{at}" for at in range(10))]
    assert agree(network, found, bound, rows) >= 38
    assert (found["class"].astype(str) == fitted.predict(images[:40]).astype(str)).sum() >= 38


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parties_foretell_what_scikit_learn_does() -> None:
    data, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    rows = decimals(data[:60], 2)
    fitted = pipeline.make_pipeline(preprocessing.StandardScaler(), neural_network.MLPRegressor(hidden_layer_sizes=(9, 5), max_iter=80, random_state=1)).fit(data, target)
    network = vw.network(fitted, outputs=["progress"], places=12)
    found, bound = applied(network, {name: vw.Decimal(2, 0, 1000) for name in network.features}, rows)
    wanted = fitted.predict(np.array([[float(one) for one in row] for row in rows]))
    for at, row in enumerate(rows):
        one = meant(network, [Fraction(cell) for cell in row])
        assert abs(float(found["progress"][at]) - float(one.cells[0])) <= bound
        assert abs(float(found["progress"][at]) - wanted[at]) <= bound + one.bound[0] + 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_score_of_two_classes() -> None:
    data, target = datasets.load_breast_cancer(return_X_y=True)
    data = data[:, :10]
    fitted = pipeline.make_pipeline(preprocessing.MinMaxScaler(), neural_network.MLPClassifier(hidden_layer_sizes=(6,), max_iter=200, random_state=1)).fit(data, target)
    network = vw.network(fitted, classes=["malignant", "benign"])
    rows = decimals(data[:50], 4)
    found, bound = applied(network, {name: vw.Decimal(4, 0, 5000) for name in network.features}, rows, scores=True)
    assert list(found.columns) == ["id", "class", "score_1"]
    assert agree(network, found, bound, rows) >= 45


def _images(rng: np.random.Generator, count: int, sizes: Sequence[int]) -> list[list[int]]:
    made: list[list[int]] = rng.integers(0, 256, size=(count, math.prod(sizes))).tolist()
    return made


def test_parties_read_images(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(6)
    shapes = {"k": (4, 1, 3, 3), "v": (4, 4, 3, 3), "scale": (4,), "shift": (4,), "mean": (4,), "w": (4, 3), "b": (3,)}
    tensors: dict[str, Any] = {name: rng.normal(size=shape) / 2 for name, shape in shapes.items()} | {"var": rng.random(4) + 0.5, "all": np.array(255.0)}
    nodes = [
        node("Div", "x all", "a"), node("Conv", "a k", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", "c scale shift mean var", "d"), node("Relu", "d", "e"),
        node("Conv", "e v", "f", pads=[1, 1, 1, 1]), node("Add", "f e", "g"), node("Relu", "g", "h"), node("MaxPool", "h", "i", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "i", "j"), node("Flatten", "j", "l"), node("Gemm", "l w b", "m"), node("Softmax", "m", "y"),
    ]  # fmt: skip
    network = read(file_of(nodes, [1, 8, 8], tensors), tmp_path)
    rows = _images(rng, 12, [8, 8])
    found, bound = applied(network, {name: vw.Integer(0, 255) for name in network.features}, rows, scores=True)
    assert agree(network, found, bound, rows) >= 6


def test_parties_read_digits_by_lenet(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(4)
    whole = onnx.load_from_string(lenet(rng))
    whole.graph.node.insert(0, node("Div", "x all", "x0"))
    whole.graph.node[1].input[0] = "x0"
    whole.graph.initializer.append(onnx.numpy_helper.from_array(np.array(255.0), "all"))
    network = read(whole.SerializeToString(), tmp_path)
    rows = _images(rng, 3, [28, 28])
    found, bound = applied(network, {name: vw.Integer(0, 255) for name in network.features}, rows, scores=True, places=6)
    assert bound < 0.01 and agree(network, found, bound, rows) == 3


def test_rows_without_a_value_and_later_queries(tmp_path: pathlib.Path) -> None:
    tensors = {"w": np.array([[0.5, -0.25], [0.125, 1.0]]), "b": np.array([-30.0, 2.0])}
    nodes = [node("Gemm", "x w b", "a"), node("Relu", "a", "y")]
    network = read(file_of(nodes, [2], tensors), tmp_path, features=["age", "pay"], outputs=["first", "second"])
    columns = {"age": vw.Integer(0, 120, null=True), "ward": vw.Category(["x", "y"]), "pay": vw.Decimal(2, 0, 100)}
    job, table = job_of(columns, 6)
    risk = job.model("risk", network)
    found = table.apply(risk, places=2)
    job.open(found.order_by("id"), to="registry", name="all")
    job.open(found.where(found["first"] > 5).group_by("ward").agg(most=lambda t: t["second"].max()).order_by("ward"), to="registry", name="wards")
    ages, pays = [20, None, 80, 90, None, 100], [decimal.Decimal(one) for one in ("1.25", "2", "30", "40.5", "5", "0")]
    data = {"rows": {"id": list(range(6)), "age": ages, "ward": list("xyxyxy"), "pay": pays}}
    answers = job.run_local(data)
    rows = answers["all"].to_dicts()
    for at, row in enumerate(rows):
        assert list(row) == ["id", "ward", "first", "second"]
        age = ages[at]
        if age is None:
            assert row["first"] is None and row["second"] is None
            continue
        wanted = meant(network, [age, Fraction(pays[at])]).cells
        assert all(abs(Fraction(row[name]) - cell) <= Fraction(1, 100) for name, cell in zip(("first", "second"), wanted))
    wards: dict[str, Any] = {}
    for row in rows:
        if row["first"] is not None and row["first"] > 5:
            wards[row["ward"]] = max(row["second"], wards.get(row["ward"], 0))
    assert {row["ward"]: row["most"] for row in answers["wards"].to_dicts()} == wards and len(wards) == 2


def test_a_network_is_part_of_the_plan(tmp_path: pathlib.Path) -> None:
    nodes, tensors = [node("MatMul", "x w", "y")], {"w": np.array([[1.0], [2.0]])}

    def asked(network: vw.Network, **more: Any) -> vw.Job:
        job, table = job_of({"age": vw.Integer(0, 120), "pay": vw.Decimal(2, 0, 100)}, 2)
        job.open(table.apply(job.model("risk", network), **more), to="registry")
        return job

    network = read(file_of(nodes, [2], tensors), tmp_path, features=["age", "pay"], outputs=["risk"])
    job = asked(network)
    assert "risk" in job.explain()
    job.save(tmp_path / "job.toml")
    again = vw.Job.read(tmp_path / "job.toml")
    assert again.plan_hash == job.plan_hash == asked(vw.Network.read(tmp_path / "risk.json")).plan_hash
    # One weight is another plan, and so is one place.
    other = vw.Network(network.text.replace('"2"', '"2.000000001"'))
    assert len({one.plan_hash for one in (job, asked(other), asked(network, places=4))}) == 3
    data = data_of(["age", "pay"], [[20, decimal.Decimal("1.5")], [90, decimal.Decimal("0.25")]])
    assert [row["risk"] for row in sorted(again.run_local(data).to_dicts(), key=lambda row: int(row["id"]))] == [decimal.Decimal("23"), decimal.Decimal("90.5")]


def test_columns_that_are_no_features(tmp_path: pathlib.Path) -> None:
    nodes, tensors = [node("MatMul", "x w", "y")], {"w": np.array([[1.0], [2.0]])}
    network = read(file_of(nodes, [2], tensors), tmp_path, features=["ward", "again"], outputs=["risk"])
    job, table = job_of({"ward": vw.Category(["x", "y"]), "again": vw.Bool()}, 5)
    job.open(table.apply(job.model("risk", network)), to="registry")
    with pytest.raises(vw.JobError, match="ward"):
        job.plan_hash
    network = read(file_of(nodes, [2], tensors), tmp_path, features=["id", "again"], outputs=["risk"])
    job, table = job_of({"again": vw.Bool()}, 3)
    job.open(table.apply(job.model("risk", network), keep=[], places=0), to="registry")
    found = job.run_local({"rows": {"id": [0, 1, 2], "again": [True, False, True]}}).to_dicts()
    assert sorted(int(row["risk"]) for row in found) == [1, 2, 4]
