"""Networks in jobs: what is written of them, and what is no network of a table."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from nets import dense, file_of, node, random, read
from nets import reader as reader

import veilworks as vw


def _network(folder: pathlib.Path, **more: Any) -> vw.Network:
    nodes, tensors = dense("x", "a", 2, 3, 1)
    return read(file_of(nodes, [2], tensors, output="a"), folder, features=["age", "pay"], **more)


def _asked(network: vw.Network) -> tuple[vw.Job, vw.Table, vw.NetworkModel]:
    job = vw.Job("read", owners=["clinic"], parties=["a", "b", "c"], recipients=["registry"])
    columns: dict[str, vw.ColumnType] = {"id": vw.Integer(0, 99), "age": vw.Integer(0, 120), "ward": vw.Category(["x", "y"]), "pay": vw.Decimal(2, 0, 100)}
    return job, job.table("people", owner="clinic", rows=10, columns=columns), job.model("risk", network)


def test_a_network_is_applied_to_a_table(tmp_path: pathlib.Path) -> None:
    job, people, risk = _asked(_network(tmp_path, classes=["low", "mid", "high"]))
    found = people.apply(risk)
    assert found.columns == ["id", "ward", "class"]
    scored = people.where(people.age > 18).apply(risk, keep=["id"], places=5, scores=True)
    assert scored.columns == ["id", "class", "score_0", "score_1", "score_2"]
    job.open(found.group_by("class").count(), to="registry", name="counts")
    job.open(scored.where(scored.score_2 > 1)[["id", "class"]], to="registry", name="high")
    job.open(found.order_by("id"), to="registry", name="all")
    text = job.text
    assert '[model.risk]\nfile = "risk.json"\n' in text
    assert '[[query]]\nname = "applied1"\nsql = """\nSELECT id, ward, age, pay\nFROM people"""\napply = { model = "risk", places = 3 }\n' in text
    assert 'SELECT id, age, pay\nFROM people\nWHERE (age > 18)"""\napply = { model = "risk", places = 5, scores = true }\n' in text
    assert 'SELECT class, count(*) AS "count"\nFROM applied1\nGROUP BY class"""' in text and 'SELECT id, class\nFROM applied2\nWHERE (score_2 > 1)"""' in text
    assert text.count("apply = ") == 2 and "SELECT id, ward, class\nFROM applied1\nORDER BY id" in text
    assert "Category" in repr(found) and "what a network gives for" in repr(found)


def test_columns_of_networks(tmp_path: pathlib.Path) -> None:
    _, people, risk = _asked(_network(tmp_path, outputs=["a", "b", "c"]))
    assert people.apply(risk, keep=[]).columns == ["a", "b", "c"]
    with pytest.raises(vw.JobError, match="network `risk` has no classes, and no scores"):
        people.apply(risk, scores=True)
    nodes, tensors = dense("x", "a", 2, 1, 1)
    one = read(file_of(nodes, [2], tensors, output="a"), tmp_path, features=["age", "pay"], classes=["no", "yes"])
    _, people, risk = _asked(one)
    assert people.apply(risk, keep=["id"], scores=True).columns == ["id", "class", "score_1"]
    # Of images as well.
    nodes = [node("Conv", "x w", "a", pads=[0, 1, 0, 0], strides=[1, 2]), node("AveragePool", "a", "y", kernel_shape=[1, 2], strides=[1, 1])]
    image = read(file_of(nodes, [1, 2, 5], random(1, w=(2, 1, 2, 2))), tmp_path, classes=["a", "b", "c", "d"])
    assert vw.NetworkModel("image", image).gives(True) == ["class", "score_0", "score_1", "score_2", "score_3"]


def test_mistakes_are_said_where_they_are_made(tmp_path: pathlib.Path) -> None:
    network = _network(tmp_path, outputs=["a", "id", "c"])
    job, people, risk = _asked(network)
    other = _asked(network)[2]
    other.network = _network(tmp_path)
    text: Any = "id"
    for make, said in [
        (lambda: people.apply(risk), "two columns would have the name `id`"),
        (lambda: people.apply(risk, keep=["age"]), "`age` is a feature of network `risk`, and is not kept"),
        (lambda: people.apply(risk, keep=["ward", "ward"]), "two columns would have the name `ward`"),
        (lambda: people.apply(risk, keep=text), "columns that are kept are a list"),
        (lambda: people.apply(risk, keep=["weight"]), "has no column `weight`"),
        (lambda: people.apply(risk, keep=[], places=10), "places are a number from 0 to 9"),
        (lambda: people.drop("pay").apply(risk, keep=[]), "has no column for 1 of the 2 features of network `risk`"),
        (lambda: people.apply(other, keep=[]), "a table is applied to a network of its job"),
        (lambda: people.apply(network, keep=[]), "a table is applied to a network of its job"),  # type: ignore[arg-type]
        (lambda: job.model("risk", network), "has a model `risk` already"),
        (lambda: job.model("Risk", network), "no name of a model"),
    ]:
        with pytest.raises(vw.JobError, match=said) as caught:
            make()  # type: ignore[no-untyped-call]
        assert caught.value.source is not None and caught.value.source.file.endswith("test_networks_jobs.py")


def test_a_network_is_saved_and_read(tmp_path: pathlib.Path) -> None:
    network = _network(tmp_path, outputs=["a", "b", "c"])
    network.save(tmp_path / "risk.json")
    again = vw.Network.read(tmp_path / "risk.json")
    assert (again.text, again.features, again.outputs, again.places) == (network.text, ["age", "pay"], ["a", "b", "c"], 9)
    assert repr(network).startswith("<Network ")
    with pytest.raises(vw.JobError, match="cannot be read"):
        vw.Network.read(tmp_path / "none.json")
    with pytest.raises(vw.JobError, match="it is a network, and no model of trees"):
        vw.Forest(network.text)
    (tmp_path / "bad.json").write_bytes(b"\xff")
    with pytest.raises(vw.JobError, match="cannot be read"):
        vw.Network.read(tmp_path / "bad.json")
