"""Networks whose weights an owner brings: split, declared, and applied by parties."""

from __future__ import annotations

import decimal
import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest
from nets import KNOWN, dense, file_of, meant, node, read

import veilworks as vw

pytest.importorskip("onnx")
D = decimal.Decimal


def small(folder: pathlib.Path, **more: Any) -> vw.Network:
    """Two dense layers over age and pay."""
    tensors = {"w": np.array([[1.5, 0.0], [-0.25, 1.0]]), "b": np.array([-0.05, 0.0]), "v": np.array([[1.0], [-1.0]]), "c": np.array([2.5])}
    nodes = [node("Gemm", "x w b", "a"), node("Relu", "a", "h"), node("Gemm", "h v c", "y")]
    return read(file_of(nodes, [2], tensors), folder, features=["age", "pay"], outputs=["risk"], places=2, **more)


def image(folder: pathlib.Path) -> vw.Network:
    """A convolution, a pool and a dense layer, with a sigmoid between."""
    rng = np.random.default_rng(4)
    tensors = {"k": rng.normal(size=(2, 1, 2, 3)).round(3), "b": rng.normal(size=2).round(3), "w": rng.normal(size=(2, 8)).round(3), "c": rng.normal(size=2).round(3)}
    nodes = [
        node("Conv", "x k b", "a1", kernel_shape=[2, 3], pads=[1, 1, 0, 1]),
        node("MaxPool", "a1", "a2", kernel_shape=[2, 2], strides=[2, 2]),
        node("Sigmoid", "a2", "a3"),
        node("Flatten", "a3", "a4"),
        node("Gemm", "a4 w c", "y", transB=1),
    ]
    return read(file_of(nodes, [1, 4, 4], tensors), folder, outputs=["first", "second"], places=3)


def asked(network: vw.Network, columns: dict[str, Any], rows: int, parties: int = 3, adversary: str | None = None) -> vw.Job:
    """A job that applies a network to rows of a clinic, whose weights a laboratory brings if it has none."""
    job = vw.Job("read", owners=["clinic", "lab"], parties=["a", "b", "c", "d"][:parties], recipients=["registry"], adversary=adversary)
    table = job.table("rows", owner="clinic", rows=rows, columns={"id": vw.Integer(0, 1 << 20)} | columns)
    weights = job.table("weights", owner="lab", **network.declared) if network.secret else None
    job.open(table.apply(job.model("net", network, weights=weights), places=3).order_by("id"), to="registry")
    return job


AGES = {"age": vw.Integer(0, 120), "pay": vw.Decimal(2, 0, 100)}
ROWS: dict[str, Any] = {"rows": {"id": [0, 1, 2], "age": [20, 90, 120], "pay": [D("1.25"), D("40"), D("99.99")]}}


def test_a_network_is_split(tmp_path: pathlib.Path) -> None:
    network = small(tmp_path)
    shape, weights = network.split()
    assert weights.numbers == [D(one) for one in ("1.5", "0", "-0.25", "1", "-0.05", "0", "1", "-1", "2.5")]
    assert [layer["dense"] for layer in json.loads(shape.text)["layers"] if "dense" in layer] == [
        {"outputs": 2, "bounds": {"weight": "2", "bias": "0.05"}},
        {"outputs": 1, "bounds": {"weight": "1", "bias": "5"}},
    ]
    assert (shape.secret, len(weights), network.secret) == (9, 9, 0)
    assert shape.declared["rows"] == 9 and shape.declared["columns"]["weight"].fields == {"scale": 2, "min": "-5", "max": "5"}
    assert shape.features == network.features and shape.outputs == network.outputs
    # What people see has no weight.
    assert repr(weights) == "<Weights: 9 numbers of 2 places>" and "secret weights within 2.00" in repr(shape)
    shape.save(tmp_path / "shape.json")
    assert vw.Network.read(tmp_path / "shape.json").text == shape.text
    given, _ = network.split(bounds=("2.5", 3))
    assert [layer["dense"]["bounds"] for layer in json.loads(given.text)["layers"] if "dense" in layer] == [{"weight": "2.50", "bias": "3.00"}] * 2
    given, _ = network.split(bounds=[(1.5, D("0.05")), ("1", 2.5)])
    assert json.loads(given.text)["layers"][0]["dense"]["bounds"] == {"weight": "1.50", "bias": "0.05"}
    shape, weights = image(tmp_path).split()
    of = json.loads(shape.text)["layers"][0]["convolution"]
    assert (of["outputs"], of["size"], of["padding"]) == (2, [2, 3], [1, 1, 0, 1]) and "weights" not in of
    assert shape.secret == len(weights) == 12 + 2 + 16 + 2 and shape._cells == 2


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (("1.4", 3), "a weight of layer 0 is 1.5 without its sign, beyond the bound 1.4"),
        ([("1.5", "0.05"), ("1", "2.4")], "a bias of layer 2 is 2.5 without its sign, beyond the bound 2.4"),
        ([("1.5", "0.05")], "the network has 2 layers with weights, and bounds of 1"),
        ([("1.5", "0.05", 1)] * 2, "the bounds of a layer are a pair, of weights and of biases"),
        (("1.505", 3), "a bound is a number from 0 on with no more than 2 places, and not 1.505"),
        ((-2, 3), "a bound is a number from 0 on with no more than 2 places, and not -2"),
        (("NaN", 3), "a bound is a number from 0 on with no more than 2 places, and not NaN"),
        ((True, 3), "a bound is a number, and not True"),
        ("2", "bounds are a pair, of weights and of biases, or a list of pairs"),
        ((), "bounds are a pair, of weights and of biases, or a list of pairs"),
    ],
)
def test_bounds_that_do_not_hold_are_refused(tmp_path: pathlib.Path, bounds: Any, said: str) -> None:
    with pytest.raises(vw.JobError, match=re.escape(f"the network is not split: {said}")):
        small(tmp_path).split(bounds)


def test_what_has_no_weights_is_not_split(tmp_path: pathlib.Path) -> None:
    shape, _ = small(tmp_path).split()
    with pytest.raises(vw.JobError, match="it has been split before: its weights are an owner's"):
        shape.split()
    none = vw.Network('{"version":1,"kind":"network","source":"","places":0,"features":[{"name":"x"}],"layers":[{"activation":"relu"}],"outputs":["y"]}')
    with pytest.raises(vw.JobError, match="it has no weights"):
        none.split()
    with pytest.raises(vw.JobError, match="all weights of the network are in its file"):
        none.declared  # noqa: B018


def test_weights_are_saved(tmp_path: pathlib.Path) -> None:
    _, weights = small(tmp_path).split()
    weights.save(tmp_path / "weights.csv")
    assert (tmp_path / "weights.csv").read_text() == "weight\n1.5\n0\n-0.25\n1\n-0.05\n0\n1\n-1\n2.5\n"
    pyarrow = pytest.importorskip("pyarrow.parquet")
    weights.save(tmp_path / "weights.parquet")
    assert pyarrow.read_table(tmp_path / "weights.parquet")["weight"].to_pylist() == weights.numbers
    with pytest.raises(vw.JobError, match=r"weights are written to a `.csv` or a `.parquet` file"):
        weights.save(tmp_path / "weights.json")


def within(job: vw.Job) -> float:
    said = re.search(r"within ([0-9.]+) of the network's", " ".join(job.explain().split()))
    assert said is not None
    return float(said[1])


@pytest.mark.skipif(not KNOWN, reason="the compiled part is older")
@pytest.mark.parametrize(("parties", "adversary"), [(3, None), (4, None), (4, "malicious")])
def test_parties_apply_what_an_owner_brings(tmp_path: pathlib.Path, parties: int, adversary: str | None) -> None:
    network = small(tmp_path)
    shape, weights = network.split()
    job = asked(shape, AGES, 3, parties, adversary)
    found = job.run_local(ROWS | {"weights": weights.frame()}).to_dicts()
    for row, age, pay in zip(found, ROWS["rows"]["age"], ROWS["rows"]["pay"], strict=True):
        assert abs(float(row["risk"]) - float(meant(network, [age, float(pay)], float).cells[0])) <= 0.002
    # Weights of few places: the owner's rounding is in what is said.
    assert within(job) > within(asked(network, AGES, 3)) and within(job) > 0.5
    text = " ".join(job.explain().split())
    assert "models that are applied, public to all participants but for secret weights" in text
    assert "its secret weights are 9 numbers of `weights`, column `weight`, of lab, which no participant sees" in text
    for path in ("weights.csv", "weights.parquet"):
        weights.save(tmp_path / path)
        assert job.run_local(ROWS | {"weights": str(tmp_path / path)}).to_dicts() == found


@pytest.mark.skipif(not KNOWN, reason="the compiled part is older")
def test_parties_apply_secret_convolutions(tmp_path: pathlib.Path) -> None:
    network = image(tmp_path)
    shape, weights = network.split()
    names = network.features
    job = asked(shape, {name: vw.Decimal(2, 0, 1) for name in names}, 4)
    rows = np.random.default_rng(8).random((4, 16)).round(2)
    data = {"id": list(range(4))} | {name: [D(f"{x:.2f}") for x in rows[:, at]] for at, name in enumerate(names)}
    found = job.run_local({"rows": data, "weights": weights.frame()}).to_dicts()
    bound = within(job) + 1e-9
    for row, cells in zip(found, rows.tolist(), strict=True):
        wanted = meant(network, cells, float).cells
        assert all(abs(float(row[name]) - float(cell)) <= bound for name, cell in zip(("first", "second"), wanted, strict=True))


@pytest.mark.skipif(not KNOWN, reason="the compiled part is older")
def test_weights_are_no_part_of_a_plan(tmp_path: pathlib.Path) -> None:
    bounds = [("2", "1"), ("2", "5")]
    nodes, tensors = dense("x", "y", 2, 1, 3)
    first, _ = small(tmp_path).split(bounds)
    other = vw.Network(small(tmp_path).text.replace('"1.5"', '"1.75"'))
    second, weights = other.split(bounds)
    assert weights.numbers[0] == D("1.75")
    job, again = asked(first, AGES, 3), asked(second, AGES, 3)
    assert job.plan_hash == again.plan_hash
    wide, _ = other.split([("2", "1"), ("3", "5")])
    third, _ = read(file_of(nodes, [2], tensors), tmp_path, features=["age", "pay"], outputs=["risk"]).split()
    assert len({one.plan_hash for one in (job, asked(wide, AGES, 3), asked(other, AGES, 3), asked(third, AGES, 3))}) == 4
    job.save(tmp_path / "job.toml")
    weights.save(tmp_path / "weights.csv")
    assert vw.Job.read(tmp_path / "job.toml").plan_hash == job.plan_hash
    assert "1.75" not in (tmp_path / "job.toml").read_text() + (tmp_path / "net.json").read_text()


def test_tables_of_weights_are_checked(tmp_path: pathlib.Path) -> None:
    network = small(tmp_path)
    shape, _ = network.split()
    job = vw.Job("read", owners=["clinic", "lab"], parties=["a", "b", "c"], recipients=["registry"])
    table = job.table("rows", owner="clinic", rows=3, columns={"id": vw.Integer(0, 9)} | AGES)
    with pytest.raises(vw.JobError, match="network `net` has 9 weights that an owner brings, and no table of them"):
        job.model("net", shape)
    with pytest.raises(vw.JobError, match="network `net` has 9 weights that an owner brings, and `rows` is no table of one column and as many rows"):
        job.model("net", shape, weights=table)
    weights = job.table("weights", owner="lab", **shape.declared)
    with pytest.raises(vw.JobError, match="all weights of network `net` are in its file, and it takes none of a table"):
        job.model("net", network, weights=weights)
    with pytest.raises(vw.JobError, match="the weights of network `net` are a table of this job as its owner brings it"):
        job.model("net", shape, weights=weights.where(weights.weight > 0))
    other = asked(network, AGES, 3)
    with pytest.raises(vw.JobError, match="the weights of network `third` are a table of this job"):
        other.model("third", shape, weights=weights)


@pytest.mark.skipif(not KNOWN, reason="the compiled part is older")
def test_data_that_are_no_weights_are_refused(tmp_path: pathlib.Path) -> None:
    shape, weights = small(tmp_path).split()
    job = asked(shape, AGES, 3)
    numbers = weights.numbers

    def refused(other: list[Any]) -> str:
        with pytest.raises(vw.DataError) as found:
            job.check(ROWS | {"weights": {"weight": other}})
        return str(found.value)

    job.check(ROWS | {"weights": weights.frame()})
    assert "`2.01` is a weight of layer 0 of network `net`, and the job says that these are from -2.00 to 2.00" in refused([D("2.01"), *numbers[1:]])
    assert "`0.06` is a bias of layer 0" in refused([*numbers[:4], D("0.06"), *numbers[5:]])
    assert "has 8 rows, but the job declares 9 for table `weights`" in refused(numbers[:8])
    assert "is outside the declared range" in refused([D("5.01"), *numbers[1:]])
    with pytest.raises(vw.VeilError, match="weights"):
        job.run_local(ROWS)
