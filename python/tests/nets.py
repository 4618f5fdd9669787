"""What the file of a network means, without any of the package; how far that is from weights that were not rounded; and ONNX files to try."""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

import veilworks as vw
from veilworks import _veil

SMALLEST = '{"version":1,"kind":"network","source":"","places":0,"features":[{"name":"x"}],"layers":[{"activation":"relu"}],"outputs":["y"]}'


def known() -> bool:
    """Whether the compiled part reads files of networks."""
    try:
        _veil.read_model("model", SMALLEST)
    except ValueError:
        return False
    return True


KNOWN = known()


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importers are tested with an older compiled part as well: test_networks_run.py says whether this one reads their files."""
    if not KNOWN:
        monkeypatch.setattr(_veil, "read_model", lambda name, text: f"{name}: {len(json.loads(text)['layers'])} layers")


class Meant(NamedTuple):
    """Cells of the last layer, and for each how far it may be from that of weights before they were rounded."""

    cells: Any
    bound: Any


def _windows(cells: Any, size: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> Any:
    """Cells of each window: [down, across, channel, row, column]."""
    top, left, bottom, right = padding
    zero = cells.flat[0] * 0
    image = np.pad(cells, ((0, 0), (top, bottom), (left, right)), constant_values=zero)
    down = (image.shape[1] - size[0]) // stride[0] + 1
    across = (image.shape[2] - size[1]) // stride[1] + 1
    return [[image[:, a * stride[0] : a * stride[0] + size[0], b * stride[1] : b * stride[1] + size[1]] for b in range(across)] for a in range(down)]


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {"relu": (lambda x: max(x, x * 0), 1.0), "sigmoid": (lambda x: type(x)(_sigmoid(float(x))), 0.25), "tanh": (lambda x: type(x)(math.tanh(float(x))), 1.0)}


def _numbers(of: Any, number: Callable[[str], Any]) -> Any:
    """Numbers of lists in lists, all texts."""
    found = np.array(of, dtype=object)
    assert all(type(one) is str for one in found.flat)
    return np.vectorize(number, otypes=[object if number is Fraction else float])(found)


def meant(network: vw.Network, row: Sequence[Any], number: Callable[[Any], Any] = Fraction) -> Meant:
    """What a network gives for a row: exact but for sigmoid and tanh, which are those of doubles; or in doubles with `number=float`."""
    of = json.loads(network.text)
    assert set(of) <= {"version", "kind", "source", "places", "features", "shape", "layers", "outputs", "classes"} and of["version"] == 1 and of["kind"] == "network"
    assert ("outputs" in of) != ("classes" in of) and len(row) == len(of["features"])
    half = 10.0 ** -of["places"] / 2
    kind = object if number is Fraction else float
    cells = np.array([number(one) for one in row], dtype=kind).reshape(of.get("shape", [len(row), 1, 1]))
    bound = np.zeros(cells.shape)
    given: list[Meant] = []
    for layer in of["layers"]:
        ((what, about),) = layer.items()
        if what == "dense":
            assert set(about) == {"weights", "bias"}
            weights, bias = _numbers(about["weights"], number), _numbers(about["bias"], number)
            flat, far = cells.reshape(-1), bound.reshape(-1)
            bound = (np.abs(weights).astype(float) @ far + half * (np.abs(flat).astype(float) + far).sum() + half).reshape(-1, 1, 1)
            cells = (weights @ flat + bias).reshape(-1, 1, 1)
        elif what == "convolution":
            assert {"weights", "bias"} <= set(about) <= {"weights", "bias", "stride", "padding"}
            weights, bias = _numbers(about["weights"], number), _numbers(about["bias"], number)
            flat_weights = weights.reshape(len(weights), -1)
            how = weights.shape[2:], about.get("stride", [1, 1]), about.get("padding", [0, 0, 0, 0])
            sums = [[flat_weights @ one.reshape(-1) + bias for one in line] for line in _windows(cells, *how)]
            size = np.abs(cells).astype(float) + bound
            far_of = [[np.abs(flat_weights).astype(float) @ one.reshape(-1) for one in line] for line in _windows(bound, *how)]
            more = [[half * one.sum() + half for one in line] for line in _windows(size, *how)]
            bound = np.moveaxis(np.array(far_of), 2, 0) + np.array(more)
            cells = np.moveaxis(np.array(sums, dtype=kind), 2, 0)
        elif what == "pool":
            assert {"kind", "size"} <= set(about) <= {"kind", "size", "stride"}
            windows = _windows(cells, about["size"], about.get("stride", about["size"]), [0] * 4)
            far_windows = _windows(bound, about["size"], about.get("stride", about["size"]), [0] * 4)
            many = about["size"][0] * about["size"][1]
            if about["kind"] == "max":
                found, far_found = [[one.max(axis=(1, 2)) for one in line] for line in windows], [[one.max(axis=(1, 2)) for one in line] for line in far_windows]
            else:
                assert about["kind"] == "mean"
                found, far_found = [[one.sum(axis=(1, 2)) / many for one in line] for line in windows], [[one.mean(axis=(1, 2)) for one in line] for line in far_windows]
            cells, bound = np.moveaxis(np.array(found, dtype=kind), 2, 0), np.moveaxis(np.array(far_found), 2, 0)
        elif what == "activation":
            function, steep = FUNCTIONS[about]
            cells, bound = np.array([function(one) for one in cells.flat], dtype=kind).reshape(cells.shape), bound * steep
        else:
            assert what == "add" and 0 <= about < len(given)
            other = given[about]
            assert other.cells.shape == cells.shape
            cells, bound = cells + other.cells, bound + other.bound
        given.append(Meant(cells, bound))
    names = of.get("outputs") or of["classes"]
    assert cells.size == len(names) or (cells.size == 1 and len(of["classes"]) == 2)
    return Meant(cells.reshape(-1), bound.reshape(-1))


def class_of(network: vw.Network, cells: Any) -> str:
    """The class with the highest score, of several the first."""
    if len(cells) == 1:
        return network.classes[int(cells[0] > 0)]
    return network.classes[next(at for at, one in enumerate(cells) if one == max(cells))]


def file_of(nodes: Sequence[Any], sizes: Sequence[Any], tensors: dict[str, Any], *, output: str = "y", opset: int = 17, kind: int = 11, batch: Any = "N", more: Callable[[Any], None] | None = None) -> bytes:
    """An ONNX file of a graph from `x` to `output`."""
    onnx = pytest.importorskip("onnx")
    weights = [one if isinstance(one, onnx.TensorProto) else onnx.numpy_helper.from_array(np.asarray(one), name) for name, one in tensors.items()]
    graph = onnx.helper.make_graph(
        list(nodes),
        "graph",
        [onnx.helper.make_tensor_value_info("x", kind, [batch, *sizes])],
        [onnx.helper.make_tensor_value_info(output, kind, None)],
        weights,
    )
    whole = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], producer_name="tests", producer_version="1")
    if more is not None:
        more(whole)
    return bytes(whole.SerializeToString())


def node(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    """A node that reads names between spaces."""
    onnx = pytest.importorskip("onnx")
    return onnx.helper.make_node(operator, inputs.split(), output.split(), **attributes)


def lenet(rng: np.random.Generator) -> bytes:
    """LeNet-5: two convolutions with pools, and three dense layers."""
    shapes = {"c1": (6, 1, 5, 5), "b1": (6,), "c2": (16, 6, 5, 5), "b2": (16,), "d1": (120, 400), "b3": (120,), "d2": (84, 120), "b4": (84,), "d3": (10, 84), "b5": (10,)}
    weights = {name: rng.normal(size=shape) / math.sqrt(math.prod(shape[1:]) or 1) for name, shape in shapes.items()}
    nodes = [
        node("Conv", "x c1 b1", "a1", pads=[2, 2, 2, 2], kernel_shape=[5, 5]),
        node("Relu", "a1", "a2"),
        node("MaxPool", "a2", "a3", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "a3 c2 b2", "a4", kernel_shape=[5, 5]),
        node("Relu", "a4", "a5"),
        node("MaxPool", "a5", "a6", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "a6", "a7"),
        node("Gemm", "a7 d1 b3", "a8", transB=1),
        node("Relu", "a8", "a9"),
        node("Gemm", "a9 d2 b4", "a10", transB=1),
        node("Relu", "a10", "a11"),
        node("Gemm", "a11 d3 b5", "a12", transB=1),
        node("Softmax", "a12", "y"),
    ]
    return file_of(nodes, [1, 28, 28], weights)


def random(seed: int, **shapes: Any) -> dict[str, Any]:
    """Numbers of these shapes."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def norm(seed: int, channels: int) -> dict[str, Any]:
    """What a BatchNormalization reads."""
    rng = np.random.default_rng(seed)
    return {"scale": rng.normal(size=channels), "shift": rng.normal(size=channels), "mean": rng.normal(size=channels), "var": rng.random(channels) + 0.01}


def dense(first: str, last: str, terms: int, outputs: int, seed: int) -> tuple[list[Any], dict[str, Any]]:
    """A dense layer, and its weights."""
    made = random(seed, **{f"w{last}": (terms, outputs), f"b{last}": (outputs,)})
    return [node("Gemm", f"{first} w{last} b{last}", last)], made


BN = "scale shift mean var"


def read(data: bytes, folder: pathlib.Path, **more: Any) -> vw.Network:
    """The network of a file."""
    file = folder / "model.onnx"
    file.write_bytes(data)
    return vw.network(file, **more)


def reference(data: bytes, rows: Any, wanted: str = "y") -> Any:
    """What ONNX means, as its own evaluator computes it in doubles."""
    from onnx.reference import ReferenceEvaluator

    whole = import_module("onnx").load_from_string(data)
    whole.graph.output[0].name = wanted
    given: Any = ReferenceEvaluator(whole).run(None, {"x": rows})
    return np.asarray(given[0])


def near(network: vw.Network, rows: Any, wanted: Any, exact: int = 1) -> None:
    """The first rows in fractions, all in doubles: each cell is as near as weights allow that were rounded once."""
    assert len(rows) == len(wanted)
    for at, (row, cells) in enumerate(zip(rows, wanted)):
        number: Any = Fraction if at < exact else float
        found = meant(network, [Fraction(one) for one in row.reshape(-1).tolist()] if at < exact else row.reshape(-1).tolist(), number)
        cells = cells.reshape(-1)
        assert found.cells.shape == cells.shape
        # Doubles of the reference lose digits of sums.
        slack = found.bound + 1e-11 * (1 + np.abs(cells))
        assert (np.abs(found.cells.astype(float) - cells) <= slack).all(), (found.cells.astype(float), cells, slack)
        assert found.bound.max() < 1e-4
