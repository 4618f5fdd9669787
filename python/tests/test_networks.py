"""Networks of other libraries against their own predictions: no further from them than the rounding of weights, and doubles, allow."""

from __future__ import annotations

import decimal
import functools
import json
import math
import pathlib
import pickle
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from nets import KNOWN, Meant, class_of, file_of, lenet, meant, node

import veilworks as vw
from veilworks import _veil

onnx: Any = pytest.importorskip("onnx")
datasets: Any = import_module("sklearn.datasets")
neural_network: Any = import_module("sklearn.neural_network")
pipeline: Any = import_module("sklearn.pipeline")
preprocessing: Any = import_module("sklearn.preprocessing")


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importers are tested with an older compiled part as well: test_networks_run.py says whether this one reads their files."""
    if not KNOWN:
        monkeypatch.setattr(_veil, "read_model", lambda name, text: f"{name}: {len(json.loads(text)['layers'])} layers")


def read(data: bytes, folder: pathlib.Path, **more: Any) -> vw.Network:
    file = folder / "model.onnx"
    file.write_bytes(data)
    return vw.network(file, **more)


def reference(data: bytes, rows: Any, wanted: str = "y") -> Any:
    """What ONNX means, as its own evaluator computes it in doubles."""
    from onnx.reference import ReferenceEvaluator

    whole = onnx.load_from_string(data)
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


# Operators of ONNX.

Case = tuple[list[Any], list[int], dict[str, Any], dict[str, Any]]


def _random(seed: int, **shapes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def _norm(seed: int, channels: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"scale": rng.normal(size=channels), "shift": rng.normal(size=channels), "mean": rng.normal(size=channels), "var": rng.random(channels) + 0.01}


def _dense(first: str, last: str, terms: int, outputs: int, seed: int) -> tuple[list[Any], dict[str, Any]]:
    made = _random(seed, **{f"w{last}": (terms, outputs), f"b{last}": (outputs,)})
    return [node("Gemm", f"{first} w{last} b{last}", last)], made


BN = "scale shift mean var"
CASES: dict[str, Callable[[], Case]] = {
    "gemm": lambda: ([node("Gemm", "x w b", "y")], [5], _random(1, w=(5, 3), b=(3,)), {}),
    "gemm, turned and scaled": lambda: ([node("Gemm", "x w b", "y", transB=1, alpha=0.3, beta=-1.7)], [5], _random(2, w=(3, 5), b=(1, 3)), {}),
    "gemm without bias": lambda: ([node("Gemm", "x w", "y")], [4], _random(3, w=(4, 2)), {}),
    "gemm, one bias for all": lambda: ([node("Gemm", "x w b", "y")], [4], _random(3, w=(4, 2), b=()), {}),
    "matmul and add": lambda: ([node("MatMul", "x w", "a"), node("Add", "b a", "c"), node("Relu", "c", "d"), node("MatMul", "d v", "y")], [5], _random(4, w=(5, 6), b=(6,), v=(6, 2)), {}),
    "activations": lambda: (
        [node("Sigmoid", "x", "a"), node("MatMul", "a w", "b"), node("Tanh", "b", "c"), node("MatMul", "c v", "d"), node("Relu", "d", "y")], [4], _random(5, w=(4, 5), v=(5, 3)), {}
    ),
    "convolution": lambda: ([node("Conv", "x w b", "y")], [2, 6, 5], _random(6, w=(3, 2, 3, 2), b=(3,)), {}),
    "convolution with pads and strides": lambda: (
        [node("Conv", "x w", "a", pads=[1, 0, 2, 1], strides=[2, 1], kernel_shape=[3, 2]), node("Relu", "a", "y")], [2, 6, 5], _random(7, w=(3, 2, 3, 2)), {}
    ),
    "same, upper": lambda: ([node("Conv", "x w b", "y", auto_pad="SAME_UPPER", strides=[2, 2])], [1, 7, 6], _random(8, w=(2, 1, 4, 3), b=(2,)), {}),
    "same, lower": lambda: ([node("Conv", "x w b", "y", auto_pad="SAME_LOWER", strides=[1, 2])], [1, 7, 6], _random(9, w=(2, 1, 4, 3), b=(2,)), {}),
    "valid": lambda: ([node("Conv", "x w b", "y", auto_pad="VALID", dilations=[1, 1], group=1)], [1, 7, 6], _random(9, w=(2, 1, 4, 3), b=(2,)), {}),
    "pools": lambda: (
        [node("MaxPool", "x", "a", kernel_shape=[3, 2], strides=[1, 2]), node("AveragePool", "a", "y", kernel_shape=[2, 2], count_include_pad=1)], [2, 7, 8], {}, {}
    ),
    "a pool whose last windows fit": lambda: ([node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)], [1, 7, 7], {}, {}),
    "pools of whole images": lambda: ([node("Conv", "x w", "a"), node("GlobalAveragePool", "a", "b"), node("Flatten", "b", "c"), node("MatMul", "c v", "y")], [2, 5, 4], _random(10, w=(4, 2, 2, 2), v=(4, 3)), {}),
    "the largest of whole images": lambda: ([node("GlobalMaxPool", "x", "a"), node("Reshape", "a to", "y")], [3, 4, 4], {"to": np.array([0, -1])}, {}),
    "norm after convolution": lambda: ([node("Conv", "x w b", "a"), node("BatchNormalization", f"a {BN}", "c"), node("Relu", "c", "y")], [2, 5, 5], _random(11, w=(3, 2, 2, 2), b=(3,)) | _norm(1, 3), {}),
    "norm after dense": lambda: ([node("Gemm", "x w b", "a"), node("BatchNormalization", f"a {BN}", "y", epsilon=0.1)], [4], _random(12, w=(4, 3), b=(3,)) | _norm(2, 3), {}),
    "norm before dense": lambda: ([node("BatchNormalization", f"x {BN}", "a"), node("Gemm", "a w b", "y")], [4], _random(13, w=(4, 3), b=(3,)) | _norm(3, 4), {}),
    "norm between pool and convolution": lambda: (
        [node("MaxPool", "x", "a", kernel_shape=[2, 2]), node("BatchNormalization", f"a {BN}", "c"), node("Conv", "c w b", "y")], [2, 6, 7], _random(14, w=(3, 2, 3, 2), b=(3,)) | _norm(4, 2), {}
    ),
    "norm, then a mean and a dense layer": lambda: (
        [node("Relu", "x", "r"), node("BatchNormalization", f"r {BN}", "a"), node("AveragePool", "a", "c", kernel_shape=[2, 3]), node("Flatten", "c", "d"), node("Gemm", "d w b", "y")],
        [2, 6, 6], _random(15, w=(2 * 5 * 4, 3), b=(3,)) | _norm(5, 2), {},
    ),
    "norm twice, and a scaled result": lambda: (
        [node("Conv", "x w", "a"), node("BatchNormalization", f"a {BN}", "c"), node("BatchNormalization", f"c {BN}", "d"), node("Mul", "d two", "e"), node("Sub", "one e", "y")],
        [2, 5, 5], _random(11, w=(3, 2, 2, 2)) | _norm(1, 3) | {"two": np.array(2.5), "one": np.array([1.0])}, {},
    ),
    "residual": lambda: (
        [node("Gemm", "x w b", "a"), node("Relu", "a", "c"), node("Gemm", "c v b", "d"), node("Relu", "d", "e"), node("Gemm", "e u b", "f"), node("Add", "f c", "g"), node("Relu", "g", "y")],
        [3], _random(16, w=(3, 4), v=(4, 4), u=(4, 4), b=(4,)), {},
    ),
    "residual of images, with norm": lambda: (
        [node("Conv", "x w", "a"), node("Conv", "a v", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", f"c {BN}", "d"), node("Add", "a d", "e"), node("Add", "e e", "y")],
        [1, 4, 5], _random(17, w=(3, 1, 2, 2), v=(3, 3, 3, 3)) | _norm(6, 3), {},
    ),
    "norm of what two read": lambda: (
        # The first layer's cells are read as they are, too: the norm goes into the layer after it.
        [node("Conv", "x w", "a"), node("BatchNormalization", f"a {BN}", "c"), node("Conv", "c v", "d"), node("Add", "d a", "y")],
        [1, 4, 5], _random(18, w=(3, 1, 2, 2), v=(3, 3, 1, 1)) | _norm(7, 3), {},
    ),
    "images over 255": lambda: ([node("Div", "x all", "a"), node("Conv", "a w b", "y", pads=[1, 1, 1, 1])], [1, 5, 5], _random(19, w=(2, 1, 3, 3), b=(2,)) | {"all": np.array(255.0)}, {}),
    "normalised images": lambda: (
        [node("Div", "x all", "a"), node("Sub", "a m", "c"), node("Div", "c s", "d"), node("Conv", "d w b", "y", strides=[2, 2])],
        [3, 6, 6], _random(20, w=(2, 3, 3, 3), b=(2,)) | {"all": np.array([[255.0]]), "m": np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1), "s": np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)}, {},
    ),
    "a mean image": lambda: (
        [node("Sub", "x m", "a"), node("Flatten", "a", "c"), node("Gemm", "c w b", "y")], [2, 3, 3], _random(21, w=(18, 3), b=(3,), m=(2, 3, 3)), {}
    ),
    "numbers that become images": lambda: (
        [node("Mul", "x f", "o"), node("Reshape", "o to", "a"), node("Conv", "a w", "c"), node("Reshape", "c back", "d"), node("Add", "d p", "e"), node("MatMul", "e v", "y")],
        [12], _random(22, w=(2, 1, 2, 2), v=(12, 3), p=(1, 12)) | {"to": np.array([-1, 1, 3, 4]), "back": np.array([0, -1]), "f": np.full(12, 0.5)}, {},
    ),
    "steps that change nothing": lambda: (
        [node("Identity", "x", "a"), node("Dropout", "a", "c m"), node("Cast", "c", "d", to=1), node("Cast", "d", "d2", to=11), node("Constant", "", "w", value=onnx.numpy_helper.from_array(_random(23, w=(4, 3))["w"])), node("Identity", "w", "w2"),
         node("MatMul", "d2 w2", "e"), node("Dropout", "e ratio", "f"), node("Cast", "f", "y", to=11)],
        [4], {"ratio": np.array(0.5, dtype=np.float32), "unused": np.ones(3)}, {},
    ),
    "flatten from the end": lambda: ([node("Flatten", "x", "a", axis=-3), node("MatMul", "a w", "y")], [2, 2, 3], _random(24, w=(12, 3)), {}),
}  # fmt: skip


@pytest.mark.parametrize("opset", [13, 17, 20, 22])
@pytest.mark.parametrize("case", CASES)
def test_operators(case: str, opset: int, tmp_path: pathlib.Path) -> None:
    nodes, sizes, tensors, more = CASES[case]()
    data = file_of(nodes, sizes, tensors, opset=opset)
    network = read(data, tmp_path, **more)
    rows = np.random.default_rng(7).normal(size=(4, *sizes))
    # A Cast to singles rounds.
    if case == "steps that change nothing":
        rows = rows.astype(np.float32).astype(float)
    if opset < 14 and "BatchNormalization" in {of.op_type for of in nodes}:
        # The evaluator takes a former norm for one of training.
        assert network.text == read(file_of(nodes, sizes, tensors), tmp_path, **more).text.replace("onnx 17", f"onnx {opset}")
    else:
        near(network, rows, reference(data, rows))
    assert network.source == f"ONNX, ai.onnx {opset}, written by tests 1, model.onnx"
    assert network.features[0] in ("p0", "x0") and len(network.features) == math.prod(sizes)


@pytest.mark.parametrize("batch", ["N", None, 1, 3])
def test_batches(batch: Any, tmp_path: pathlib.Path) -> None:
    weights = _random(3, w=(2, 1, 2, 2), v=(8, 2))
    for to in [[-1, 8], [0, 8], [0, -1], *([[batch, 8], [batch, -1]] if isinstance(batch, int) else [])]:
        nodes = [node("Conv", "x w", "a"), node("Reshape", "a to", "b"), node("MatMul", "b v", "y")]
        data = file_of(nodes, [1, 3, 3], weights | {"to": np.array(to)}, batch=batch)
        rows = np.random.default_rng(7).normal(size=(batch if isinstance(batch, int) else 2, 1, 3, 3))
        near(read(data, tmp_path), rows, reference(data, rows))


def test_lenet(tmp_path: pathlib.Path) -> None:
    data = lenet(np.random.default_rng(4))
    network = read(data, tmp_path, places=11)
    assert network.classes == [str(at) for at in range(10)] and not network.outputs and network.features == [f"p{at}" for at in range(784)]
    of = json.loads(network.text)
    assert of["shape"] == [1, 28, 28] and [next(iter(layer)) for layer in of["layers"]] == ["convolution", "activation", "pool"] * 2 + ["dense", "activation"] * 2 + ["dense"]
    rows = np.random.default_rng(5).random(size=(3, 1, 28, 28))
    near(network, rows, reference(data, rows, "a12"))
    probable = reference(data, rows)
    for row, each in zip(rows, probable):
        assert class_of(network, meant(network, row.reshape(-1).tolist(), float).cells) == str(each.argmax())


@pytest.mark.parametrize("ends", [["Softmax"], ["LogSoftmax"], ["Softmax", "ArgMax"], ["ArgMax"], ["Softmax", "Identity", "Cast"], ["ArgMax", "Cast"]])
def test_ends_of_classes(ends: list[str], tmp_path: pathlib.Path) -> None:
    nodes, tensors = _dense("x", "a", 4, 3, 1)
    for at, end in enumerate(ends):
        more: dict[str, Any] = {"ArgMax": {"axis": 1, "keepdims": at % 2}, "Softmax": {"axis": -1}, "Cast": {"to": 1}}.get(end, {})
        nodes.append(node(end, nodes[-1].output[0], f"e{at}", **more))
    data = file_of(nodes, [4], tensors, output=nodes[-1].output[0])
    network = read(data, tmp_path, classes=["a", "b", "c"])
    assert network.classes == ["a", "b", "c"]
    rows = np.random.default_rng(2).normal(size=(3, 4))
    near(network, rows, reference(data, rows, "a"))
    assert read(data, tmp_path).classes == ["0", "1", "2"]
    with pytest.raises(vw.JobError, match="the network has 3 classes, and 2 are named"):
        read(data, tmp_path, classes=["a", "b"])
    with pytest.raises(vw.JobError, match="is left out: the network has classes, and no outputs"):
        read(data, tmp_path, outputs=["a", "b", "c"])


def test_former_softmax_is_over_what_follows_its_axis(tmp_path: pathlib.Path) -> None:
    for opset, more in [(7, {}), (11, {"axis": 1}), (13, {})]:
        nodes, tensors = _dense("x", "a", 4, 3, 1)
        data = file_of([*nodes, node("Softmax", "a", "y", **more)], [4], tensors, opset=opset)
        assert read(data, tmp_path).classes == ["0", "1", "2"]


def test_one_score_of_two_classes(tmp_path: pathlib.Path) -> None:
    nodes, tensors = _dense("x", "a", 4, 1, 1)
    data = file_of([*nodes, node("Sigmoid", "a", "y")], [4], tensors)
    rows = np.random.default_rng(2).normal(size=(8, 4))
    wanted = reference(data, rows)
    number = read(data, tmp_path)
    assert number.outputs == ["output"] and not number.classes
    near(number, rows, wanted)
    assert read(data, tmp_path, outputs=["risk"]).outputs == ["risk"]
    classes = read(data, tmp_path, classes=["no", "yes"])
    assert "sigmoid" in number.text and "sigmoid" not in classes.text
    near(classes, rows, reference(data, rows, "a"))
    found = [class_of(classes, meant(classes, row.tolist(), float).cells) for row in rows]
    assert found == [["no", "yes"][int(one > 0.5)] for one in wanted[:, 0]] and len(set(found)) == 2
    with pytest.raises(vw.JobError, match="has 2 classes, and 1 are named"):
        read(data, tmp_path, classes=["yes"])
    with pytest.raises(vw.JobError, match="classes, or outputs, and not both"):
        read(data, tmp_path, classes=["no", "yes"], outputs=["risk"])
    with pytest.raises(vw.JobError, match="has 1 outputs, and 2 are named"):
        read(data, tmp_path, outputs=["a", "b"])
    nodes, tensors = _dense("x", "y", 4, 3, 1)
    assert read(file_of(nodes, [4], tensors), tmp_path).outputs == ["output_0", "output_1", "output_2"]


def _rounded(of: Fraction, places: int) -> str:
    """Halves away from zero, by decimals."""
    with decimal.localcontext(decimal.Context(prec=500)):
        number = decimal.Decimal(of.numerator) / decimal.Decimal(of.denominator)
        text = format(number.quantize(decimal.Decimal(1).scaleb(-places), decimal.ROUND_HALF_UP), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("raw", [True, False])
def test_each_weight_is_rounded_once(kind: Any, raw: bool, tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(9)
    w, b = rng.normal(size=(2, 3)).astype(kind), rng.normal(size=3).astype(kind)
    # Halves, of both signs, and numbers below half a unit.
    w[0] = [0.5, -2.5, 0.25]
    b[:2] = [-1.5, 2.0**-12]
    tensors = {}
    for name, one in (("w", w), ("b", b)):
        number = {np.float16: 10, np.float32: 1, np.float64: 11}[kind]
        values = one.tobytes() if raw else one.reshape(-1).tolist()
        tensors[name] = onnx.helper.make_tensor(name, number, one.shape, values, raw=raw)
    data = file_of([node("MatMul", "x w", "a"), node("Add", "a b", "y")], [2], tensors, kind={np.float16: 10, np.float32: 1, np.float64: 11}[kind])
    for places in (0, 1, 9, 15):
        (layer,) = json.loads(read(data, tmp_path, places=places).text)["layers"]
        assert layer["dense"]["weights"] == [[_rounded(Fraction(float(w[row, at])), places) for row in range(2)] for at in range(3)]
        assert layer["dense"]["bias"] == [_rounded(Fraction(float(one)), places) for one in b]
    assert json.loads(read(data, tmp_path, places=0).text)["layers"][0]["dense"]["weights"][1][0] == "-3"


def test_what_is_folded_is_exact(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(3)
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in {"w": (3, 2, 2, 2), "b": (3,), "scale": (3,), "shift": (3,), "mean": (3,), "std": (2, 1, 1), "m": (2, 1, 1)}.items()}
    tensors |= {"var": rng.random(3).astype(np.float32) * 10 ** np.array([-8, 0, 8], dtype=np.float32), "all": np.array(255, dtype=np.float32)}
    nodes = [node("Div", "x all", "a"), node("Sub", "a m", "c"), node("Div", "c std", "d"), node("Conv", "d w b", "e"), node("BatchNormalization", f"e {BN}", "y", epsilon=1e-5)]
    (layer,) = json.loads(read(file_of(nodes, [2, 4, 4], tensors, kind=1), tmp_path, places=15).text)["layers"]
    exact: dict[str, Any] = {name: [Fraction(float(one)) for one in array.reshape(-1)] for name, array in tensors.items()}
    epsilon = Fraction(float(np.float32(1e-5)))
    with decimal.localcontext(decimal.Context(prec=80)):
        roots = [Fraction((decimal.Decimal((one + epsilon).numerator) / decimal.Decimal((one + epsilon).denominator)).sqrt()) for one in exact["var"]]
    for to in range(3):
        factor = exact["scale"][to] / roots[to]
        weights = [exact["w"][to * 8 + at] for at in range(8)]
        wanted = [_rounded(weight * factor / 255 / exact["std"][at // 4], 15) for at, weight in enumerate(weights)]
        assert [one for channel in layer["convolution"]["weights"][to] for row in channel for one in row] == wanted
        bias = exact["b"][to] - sum(weight * exact["m"][at // 4] / exact["std"][at // 4] for at, weight in enumerate(weights))
        assert layer["convolution"]["bias"][to] == _rounded((bias - exact["mean"][to]) * factor + exact["shift"][to], 15)


def test_sums_that_end_in_a_half_are_rounded_away_from_zero(tmp_path: pathlib.Path) -> None:
    # One third three times, and a half: digits do not tell on which side the sum is.
    tensors = {"d": np.array([3.0, 3.0, 3.0, 3.0]), "m": np.array([1.0, 1.0, 1.0, -1.5]), "w": np.array([[1.0, -1.0]] * 4)}
    nodes = [node("Sub", "x m", "a"), node("Div", "a d", "c"), node("MatMul", "c w", "y")]
    (layer,) = json.loads(read(file_of(nodes, [4], tensors), tmp_path, places=0).text)["layers"]
    assert layer["dense"]["bias"] == ["-1", "1"]


def test_padding_and_sums_do_not_mix(tmp_path: pathlib.Path) -> None:
    tensors = _random(1, w=(2, 1, 3, 3)) | {"m": np.array(0.5)}
    conv = node("Conv", "a w", "y", pads=[1, 1, 1, 1])
    with pytest.raises(vw.JobError, match="Conv `y`: Sub `a` adds something before a convolution that pads with zeros afterwards"):
        read(file_of([node("Sub", "x m", "a"), conv], [1, 5, 5], tensors), tmp_path)
    data = file_of([node("Mul", "x m", "a"), conv], [1, 5, 5], tensors)
    rows = np.random.default_rng(1).normal(size=(2, 1, 5, 5))
    near(read(data, tmp_path), rows, reference(data, rows))


def test_the_largest_of_what_is_turned_round(tmp_path: pathlib.Path) -> None:
    nodes = [node("Relu", "x", "r"), node("Mul", "r f", "a"), node("MaxPool", "a", "c", kernel_shape=[2, 2]), node("Conv", "c w", "y")]
    tensors = _random(1, w=(2, 1, 1, 1))
    data = file_of(nodes, [1, 4, 4], tensors | {"f": np.array(0.5)})
    rows = np.random.default_rng(1).normal(size=(2, 1, 4, 4))
    near(read(data, tmp_path), rows, reference(data, rows))
    with pytest.raises(vw.JobError, match="MaxPool `c`: Mul `a` is folded into a dense layer or a convolution"):
        read(file_of(nodes, [1, 4, 4], tensors | {"f": np.array(-0.5)}), tmp_path)


# What is not read.


def refused(folder: pathlib.Path, why: str, nodes: list[Any], sizes: list[Any], tensors: dict[str, Any], **more: Any) -> None:
    with pytest.raises(vw.JobError, match=why):
        read(file_of(nodes, sizes, tensors, **more), folder)


def test_operators_that_are_not_read(tmp_path: pathlib.Path) -> None:
    w = _random(1, w=(4, 4), k=(2, 1, 3, 3))
    gemm, refuse = node("MatMul", "x w", "a"), functools.partial(refused, tmp_path)
    image = [1, 6, 6]
    refuse("the operator LeakyRelu is not read: there are Add, ArgMax", [gemm, node("LeakyRelu", "a", "y")], [4], w)
    refuse("the operator ai.onnx.ml.Normalizer is not read", [node("Normalizer", "x", "y", domain="ai.onnx.ml")], [4], w)
    refuse("the operator com.microsoft.Gemm is not read", [node("Gemm", "x w", "y", domain="com.microsoft")], [4], w)
    refuse("Gemm `y`: it turns rows into columns, with transA", [node("Gemm", "x w", "y", transA=1)], [4], w)
    refuse("Gemm `y`: it takes a list of numbers, and not \\[1, 6, 6\\]: a Flatten", [node("Gemm", "x w", "y")], image, w)
    refuse("Gemm `y`: it takes 4 cells for an output, and there are 5", [node("Gemm", "x w", "y")], [5], w)
    refuse("Gemm `y`: its bias `b` has the dimensions \\[3\\], and it has 4 outputs", [node("Gemm", "x w b", "y")], [4], w | {"b": np.ones(3)})
    refuse("MatMul `y`: it is of weights alone", [node("MatMul", "w x", "y")], [4], w)
    refuse("MatMul `y`: its weights are no constants", [gemm, node("MatMul", "a x", "y")], [4], w)
    refuse("Conv `y`: convolutions by groups", [node("Conv", "x k", "y", group=2)], image, w)
    refuse("Conv `y`: windows with gaps", [node("Conv", "x k", "y", dilations=[2, 2])], image, w)
    refuse("Conv `y`: it takes images", [node("Conv", "x k", "y")], [36], w)
    refuse("Conv `y`: it takes 1 channels, and there are 2", [node("Conv", "x k", "y")], [2, 6, 6], w)
    refuse("Conv `y`: its windows are of \\[2, 2\\], and its weights of \\[3, 3\\]", [node("Conv", "x k", "y", kernel_shape=[2, 2])], image, w)
    refuse("Conv `y`: the attribute strides has 1 numbers, and not 2", [node("Conv", "x k", "y", strides=[2])], image, w)
    refuse("Conv `y`: a window of 3 by 3, padding \\[3, 0, 0, 0\\], does not fit", [node("Conv", "x k", "y", pads=[3, 0, 0, 0])], image, w)
    refuse("Conv `y`: a window of 3 by 3, padding \\[-1, 0, 0, 0\\], does not fit", [node("Conv", "x k", "y", pads=[-1, 0, 0, 0])], image, w)
    refuse("Conv `y`: a window of 3 by 3, .*, does not fit an image of 2 by 6", [node("Conv", "x k", "y")], [1, 2, 6], w)
    refuse("Conv `y`: a window", [node("Conv", "x k", "y", strides=[0, 1])], image, w)
    refuse("Conv `y`: a window", [node("Conv", "x k", "y", strides=[-1, 1], auto_pad="SAME_UPPER")], image, w)
    refuse("Conv `y`: auto_pad=ALL is not known", [node("Conv", "x k", "y", auto_pad="ALL")], image, w)
    refuse("Conv `y`: it has pads, and auto_pad=SAME_UPPER", [node("Conv", "x k", "y", auto_pad="SAME_UPPER", pads=[1, 1, 1, 1])], image, w)
    refuse("Conv `y`: its weights `w` have the dimensions \\[4, 4\\]: convolutions are of two", [node("Conv", "x w", "y")], image, w)
    refuse("Conv `y`: its bias `b`", [node("Conv", "x k b", "y")], image, w | {"b": np.ones(1)})
    refuse("MaxPool `y`: it pads with \\[1, 1, 1, 1\\]: a pool has no padding", [node("MaxPool", "x", "y", kernel_shape=[3, 3], pads=[1, 1, 1, 1])], image, w)
    refuse("AveragePool `y`: it pads with", [node("AveragePool", "x", "y", kernel_shape=[3, 3], auto_pad="SAME_LOWER")], image, w)
    refuse("MaxPool `y`: it has windows that go beyond the image, with ceil_mode", [node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)], image, w)
    refuse("MaxPool `y`: the size of its windows is missing", [node("MaxPool", "x", "y")], image, w)
    refuse("MaxPool `y`: a window of", [node("MaxPool", "x", "y", kernel_shape=[1 << 40, 1 << 40])], image, w)
    refuse("MatMul `c`: it reads what MaxPool `y` gives besides|Flatten `z`: it reads what", [node("MaxPool", "x", "y i", kernel_shape=[2, 2]), node("Flatten", "i", "z")], image, w, output="z")
    refuse("BatchNormalization `y`: it is of training", [node("BatchNormalization", f"x {BN}", "y", training_mode=1)], [3], _norm(1, 3))
    refuse("BatchNormalization `y`: a variance is not above 0", [node("BatchNormalization", f"x {BN}", "y")], [3], _norm(1, 3) | {"var": -np.ones(3)})
    refuse("BatchNormalization `y`: `scale` has the dimensions \\[2\\], and there are 3 channels", [node("BatchNormalization", f"x {BN}", "y")], [3], _norm(1, 2))
    refuse("it has numbers for each cell, with spatial=0", [node("BatchNormalization", f"x {BN}", "y", spatial=0)], [3], _norm(1, 3), opset=7)
    refuse("the output `y`: BatchNormalization `y` is folded into a dense layer or a convolution before or after it", [node("Relu", "x", "a"), node("BatchNormalization", f"a {BN}", "y")], [3], _norm(1, 3))
    refuse("Sigmoid `y`: Add `a` is folded into a dense layer", [node("Add", "x c", "a"), node("Sigmoid", "a", "y")], [4], {"c": np.array(1.0)})
    refuse("Div `y`: it divides by 0", [gemm, node("Div", "a c", "y")], [4], w | {"c": np.array(0.0)})
    refuse("Div `y`: it divides by what a layer gives", [gemm, node("Div", "c a", "y")], [4], w | {"c": np.array(1.0)})
    refuse("Mul `y`: it is of two things that layers give", [gemm, node("Relu", "a", "b"), node("Mul", "a b", "y")], [4], w)
    refuse("Add `y`: `c` has the dimensions \\[3\\]: a constant is one number, or one for each channel of \\[4\\]", [gemm, node("Add", "a c", "y")], [4], w | {"c": np.ones(3)})
    refuse("Add `y`: `c` has the dimensions \\[6\\]", [node("Conv", "x k", "a", pads=[1] * 4), node("Add", "a c", "y")], image, w | {"c": np.ones(6)})
    refuse("Add `y`: `c` has the dimensions \\[2, 4\\]", [gemm, node("Add", "a c", "y")], [4], w | {"c": np.ones((2, 4))})
    refuse("Add `y`: it is of weights alone", [node("Add", "w w", "y")], [4], w)
    refuse("Add `y`: it adds the features themselves", [gemm, node("Add", "a x", "y")], [4], w)
    refuse("Add `y`: it adds \\[3\\] to \\[4\\]", [node("MatMul", "x v", "b"), node("MatMul", "b u", "a"), node("Add", "a b", "y")], [4], {"v": np.ones((4, 3)), "u": np.ones((3, 4))})
    refuse("MatMul `b`: it takes what is not of the layer before it", [gemm, node("MatMul", "x w", "b"), node("Add", "a b", "y")], [4], w)
    refuse("Conv `y`: Sub `a` has different numbers within a channel", [node("Sub", "x c", "a"), node("Conv", "a k", "y")], image, w | {"c": np.arange(36.0).reshape(1, 6, 6)})
    refuse("Flatten `y`: it flattens from axis 2", [node("Flatten", "x", "y", axis=2)], image, w)
    refuse("Reshape `y`: it makes \\[4\\] in each row of a batch to \\[2, -1\\]", [gemm, node("Reshape", "a to", "y")], [4], w | {"to": np.array([2, -1])})
    refuse("Reshape `y`: it makes \\[4\\] in each row of a batch to \\[-1\\]", [gemm, node("Reshape", "a to", "y")], [4], w | {"to": np.array([-1])})
    refuse("Reshape `y`: it makes \\[4\\] in each row of a batch to \\[0, 3\\]", [gemm, node("Reshape", "a to", "y")], [4], w | {"to": np.array([0, 3])})
    refuse("Reshape `y`: it makes \\[4\\] in each row of a batch to \\[0, 4\\]", [gemm, node("Reshape", "a to", "y", allowzero=1)], [4], w | {"to": np.array([0, 4])})
    refuse("Reshape `y`: it makes \\[4\\] in each row of a batch to \\[0, -7, 4\\]", [gemm, node("Reshape", "a to", "y")], [4], w | {"to": np.array([0, -7, 4])})
    refuse("Reshape `y`: it makes \\[4\\] to \\[1, 2, 2\\]: images become lists", [gemm, node("Reshape", "a to", "y")], [4], w | {"to": np.array([0, 1, 2, 2])})
    refuse("Reshape `y`: its weights are no constants", [gemm, node("Reshape", "a x", "y")], [4], w)
    refuse("Reshape `y`: the tensor `to` has elements of type 11, and not integers", [gemm, node("Reshape", "a to", "y")], [4], w | {"to": np.array([0.0, 4.0])})
    refuse("Dropout `y`: it is of training", [gemm, node("Dropout", "a r t", "y")], [4], w | {"r": np.array(0.5, dtype=np.float32), "t": np.array(True)})
    refuse("Cast `y`: it makes numbers of type 7", [gemm, node("Cast", "a", "y", to=7)], [4], w)
    refuse("Softmax `y`: it is along axis 0", [gemm, node("Softmax", "a", "y", axis=0)], [4], w)
    refuse("Softmax `y`: it is along axis -1 of \\[4, 1, 1\\]", [node("GlobalAveragePool", "x", "a"), node("Softmax", "a", "y")], [4, 2, 2], w)
    refuse("ArgMax `y`: it is along axis 0", [gemm, node("ArgMax", "a", "y")], [4], w)
    refuse("ArgMax `y`: it takes the last of several", [gemm, node("ArgMax", "a", "y", axis=1, select_last_index=1)], [4], w)
    refuse("Softmax `y`: it is over one score", [gemm, node("MatMul", "a v", "b"), node("Softmax", "b", "y")], [4], w | {"v": np.ones((4, 1))})
    refuse("Relu `y`: it stands after Softmax `b`, which is the end", [gemm, node("Softmax", "a", "b"), node("Relu", "b", "y")], [4], w)
    refuse("ArgMax `y`: it stands after ArgMax `b`", [gemm, node("ArgMax", "a", "b", axis=1), node("ArgMax", "b", "y", axis=1)], [4], w)
    refuse("it computes nothing", [node("Identity", "x", "y")], [4], w)
    refuse("Relu `y`: it takes integers: a Cast", [node("Relu", "x", "y")], [4], w, kind=7)
    refuse("Relu `y`: it has one output, and not 2", [node("Relu", "x", "y z")], [4], w)
    refuse("Relu `y`: it has 1 inputs, and not 2", [node("Relu", "x w", "y")], [4], w)
    refuse("Relu `y`: the attribute alpha is not known", [node("Relu", "x", "y", alpha=1.0)], [4], w)
    layers = [node("Relu", "x", "a0"), *(node("Relu", f"a{at}", f"a{at + 1}") for at in range(64))]
    refuse("Relu `a64`: a network has at most 64 layers", layers, [4], w, output="a64")
    refuse("a graph of 1025 nodes is not read", [node("Identity", "x", f"a{at}") for at in range(1025)], [4], w)


def test_integers_are_cast(tmp_path: pathlib.Path) -> None:
    nodes = [node("Reshape", "x to", "o"), node("Cast", "o", "a", to=11), node("Div", "a all", "b"), node("Conv", "b w", "y")]
    data = file_of(nodes, [16], _random(1, w=(2, 1, 3, 3)) | {"to": np.array([-1, 1, 4, 4]), "all": np.array(255.0)}, kind=2)
    rows = np.random.default_rng(1).integers(0, 256, size=(2, 16)).astype(np.uint8)
    network = read(data, tmp_path)
    assert network.features[-1] == "p15"
    near(network, rows, reference(data, rows))


def test_graphs_that_are_not_read(tmp_path: pathlib.Path) -> None:
    w = _random(1, w=(4, 4))
    gemm, refuse = node("MatMul", "x w", "y"), functools.partial(refused, tmp_path)
    value = onnx.helper.make_tensor_value_info
    refuse("MatMul `y` reads `a`, which is not made before", [node("MatMul", "a w", "y"), node("Relu", "x", "a")], [4], w)
    refuse("MatMul `a` reads `y`, which is not made before", [node("MatMul", "y w", "a"), node("Relu", "a", "y")], [4], w)
    refuse("Relu `y` reads `y`", [node("Relu", "y", "y")], [4], w)
    refuse("Relu `y` makes `y`, which is there already", [gemm, node("Relu", "y", "y")], [4], w)
    refuse("Relu `w` makes `w`, which is there already", [node("Relu", "x", "w"), gemm], [4], w)
    refuse("the output `z` is made by no node", [gemm], [4], w, output="z")
    refuse("the output `x` is made by no node", [gemm], [4], w, output="x")
    refuse("the output `w` is a weight", [gemm], [4], w, output="w")
    refuse("the output `v` is a weight", [gemm, node("Identity", "w", "v")], [4], w, output="v")
    refuse("one input and one output, and this graph has 1 and 2", [gemm], [4], w, more=lambda of: of.graph.output.append(value("x", 1, None)))
    refuse("one input and one output, and this graph has 2 and 1", [gemm], [4], w, more=lambda of: of.graph.input.append(value("z", 1, ["N", 4])))
    refuse("one input and one output, and this graph has 0 and 1", [gemm], [4], w, more=lambda of: of.graph.ClearField("input"))
    refuse("version 6", [gemm], [4], w, opset=6)
    refuse("version 23", [gemm], [4], w, opset=23)
    refuse("version none", [gemm], [4], w, more=lambda of: of.ClearField("opset_import"))
    refuse("version 17, 18", [gemm], [4], w, more=lambda of: of.opset_import.append(onnx.helper.make_opsetid("ai.onnx", 18)))
    refuse("functions of its own", [gemm], [4], w, more=lambda of: of.functions.append(onnx.helper.make_function("d", "f", ["a"], ["b"], [node("Relu", "a", "b")], [])))
    refuse("steps of training", [gemm], [4], w, more=lambda of: of.training_info.add())
    refuse("sparse tensors", [gemm], [4], w, more=lambda of: of.graph.sparse_initializer.add())
    refuse("the input `x` has the dimensions \\['?None'?, None\\]|the input `x` has the dimensions", [gemm], ["M"], w)
    refuse("the input `x` has the dimensions \\[None, -4\\]", [gemm], [-4], w)
    refuse("the input `x` has the dimensions \\[None, 0\\]", [gemm], [0], w)
    refuse("the input `x` has 1 dimensions", [gemm], [], w)
    refuse("the input `x` has elements of type 8", [gemm], [4], w, kind=8)
    refuse("a network has 1 to 4096 features, and not 4097", [gemm], [4097], w)
    refuse("1 to 4096 features, and not 1267650600228229401496703205376", [gemm], [1 << 50, 1 << 50], w)
    # A graph in an attribute, and operators that have one.
    inner = onnx.helper.make_graph([node("Identity", "x", "b")], "inner", [], [value("b", 1, None)])
    refuse("the operator If is not read", [onnx.helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)], [4], w)
    refuse("Gemm `y`: the attribute alpha is a graph, and not a float", [onnx.helper.make_node("Gemm", ["x", "w"], ["y"], alpha=inner)], [4], w)


def test_attributes_of_other_types(tmp_path: pathlib.Path) -> None:
    w = _random(1, w=(4, 4), k=(2, 1, 3, 3))
    refuse = functools.partial(refused, tmp_path)
    refuse("the attribute alpha is an integer, and not a float", [node("Gemm", "x w", "y", alpha=1)], [4], w)
    refuse("the attribute transB is a text, and not an integer", [node("Gemm", "x w", "y", transB="1")], [4], w)
    refuse("the attribute pads is an integer, and not integers", [node("Conv", "x k", "y", pads=1)], [1, 6, 6], w)
    refuse("the attribute auto_pad is floats, and not a text", [node("Conv", "x k", "y", auto_pad=[1.0])], [1, 6, 6], w)
    refuse("the attribute value is texts, and not a tensor", [node("Constant", "", "v", value=["a"]), node("MatMul", "x v", "y")], [4], w)
    refuse("it has a tensor, value, and this has none", [node("Constant", "", "v", value_float=1.0), node("Add", "x v", "y")], [4], w)
    refuse("the attribute alpha is not finite", [node("Gemm", "x w", "y", alpha=math.nan)], [4], w)
    refuse("the attribute epsilon is not finite", [node("BatchNormalization", f"x {BN}", "y", epsilon=math.inf)], [3], _norm(1, 3))
    refuse("there are more than 8 dimensions", [node("Conv", "x k", "y", pads=[1 << 40] * 9)], [1, 6, 6], w)

    def twice(of: Any) -> None:
        of.graph.node[0].attribute.append(of.graph.node[0].attribute[0])

    def referred(of: Any) -> None:
        of.graph.node[0].attribute[0].ref_attr_name = "outer"

    def untyped(of: Any) -> None:
        of.graph.node[0].attribute[0].type = 0

    turned = [node("Gemm", "x w", "y", transB=1)]
    refuse("Gemm `y`: the attribute transB is there twice", turned, [4], w, more=twice)
    refuse("or is another's", turned, [4], w, more=referred)
    # Former files have no types of attributes.
    assert read(file_of(turned, [4], w, more=untyped), tmp_path).text == read(file_of(turned, [4], w), tmp_path).text


def test_tensors_that_are_not_read(tmp_path: pathlib.Path) -> None:
    nodes = [node("MatMul", "x w", "y")]
    make, double = onnx.helper.make_tensor, onnx.TensorProto.DOUBLE

    def refuse(why: str, change: Callable[[Any], None], good: Any = None) -> None:
        tensor = make("w", double, [2, 2], np.ones(4).tobytes(), raw=True) if good is None else good
        change(tensor)
        refused(tmp_path, why, nodes, [2], {"w": tensor})

    def sizes(*of: int) -> Callable[[Any], None]:
        def change(tensor: Any) -> None:
            del tensor.dims[:]
            tensor.dims.extend(of)

        return change

    def at(place: int) -> Callable[[Any], None]:
        return lambda tensor: tensor.__setattr__("raw_data", np.where(np.arange(4) == 1, [math.nan, math.inf, -math.inf][place], 1.0).tobytes())

    for place in range(3):
        refuse("MatMul `y`: the tensor `w` has a number that is not finite", at(place))
    refuse("the tensor `w` has its data in another file", lambda of: of.__setattr__("data_location", onnx.TensorProto.EXTERNAL))
    refuse("the tensor `w` has its data in another file", lambda of: of.external_data.add(key="location", value="../../etc/passwd"))
    refuse("the tensor `w` is a segment of another", lambda of: of.segment.__setattr__("begin", 1))
    refuse("the tensor `w` has not as many elements as its dimensions \\[2, 3\\] say", sizes(2, 3))
    refuse("the tensor `w` has not as many elements as its dimensions \\[1, 2\\] say", sizes(1, 2))
    refuse("the tensor `w` has the dimensions \\[-2, -2\\]", sizes(-2, -2))
    refuse("the tensor `w` has 1099511627776 elements, and a network has at most 1048576 weights", sizes(1 << 20, 1 << 20))
    refuse("elements, and a network has at most 1048576 weights", sizes(*[(1 << 63) - 1] * 8))
    refuse("the tensor `w`: there are more than 8 dimensions", sizes(*[1 << 62] * 9))
    refuse("its weights `w` have the dimensions \\[0, 4\\]|has not as many elements", sizes(0, 4))
    refuse("the tensor `w` has elements of type 7, and not floats", lambda of: None, make("w", onnx.TensorProto.INT64, [2, 2], [1, 2, 3, 4]))
    refuse("the tensor `w` has elements of type 8, and not floats", lambda of: None, make("w", onnx.TensorProto.STRING, [2, 2], ["a"] * 4))
    refuse("the tensor `w` has its data twice", lambda of: of.double_data.append(1.0))
    refuse("the tensor `w` has not as many elements", lambda of: of.float_data.append(1.0), make("w", onnx.TensorProto.FLOAT, [2, 2], [1.0] * 4))
    refuse("the tensor `w` has not as many elements", lambda of: of.float_data.pop(), make("w", onnx.TensorProto.FLOAT, [2, 2], [1.0] * 4))
    refuse("the tensor `w` has floats of more than 16 bits", lambda of: of.int32_data.__setitem__(0, 1 << 20), make("w", onnx.TensorProto.FLOAT16, [2, 2], [1.0] * 4))

    def again(of: Any) -> None:
        of.graph.initializer.append(of.graph.initializer[0])

    refused(tmp_path, "two tensors have the name `w`", nodes, [2], {"w": np.ones((2, 2))}, more=again)
    # A weight that is listed as an input as well, as former files have it, is a weight.
    good = {"w": np.ones((2, 2))}
    listed = file_of(nodes, [2], good, more=lambda of: of.graph.input.append(onnx.helper.make_tensor_value_info("w", 11, [2, 2])))
    assert read(listed, tmp_path).text == read(file_of(nodes, [2], good), tmp_path).text
    # What a name or a dimension says of the size is nothing: memory follows the file.
    big = {"w": np.ones((2, 1 << 19)), "v": np.ones((1 << 19, 2))}
    refused(tmp_path, "MatMul `a`: a layer gives at most 65536 cells|MatMul `y`: a network has at most 1048576 weights", [node("MatMul", "x w", "a"), node("MatMul", "a v", "y")], [2], big)


def test_files_that_are_cut_or_changed(tmp_path: pathlib.Path) -> None:
    nodes = [node("Div", "x all", "a"), node("Conv", "a w b", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", f"c {BN}", "d"), node("Relu", "d", "e"), node("MaxPool", "e", "f", kernel_shape=[2, 2], strides=[2, 2]),
             node("Reshape", "f to", "g"), node("Gemm", "g v", "h", transB=1), node("Softmax", "h", "y")]  # fmt: skip
    tensors = {name: one.astype(np.float32) for name, one in (_random(1, w=(2, 1, 2, 2), b=(2,), v=(2, 8)) | _norm(1, 2)).items()}
    good = file_of(nodes, [1, 4, 4], tensors | {"all": np.array(2, dtype=np.float32), "to": np.array([-1, 8])}, kind=1)
    assert read(good, tmp_path).classes == ["0", "1"]
    for at in range(len(good)):
        with pytest.raises(vw.JobError):
            read(good[:at], tmp_path)
    rng = np.random.default_rng(1)
    kept = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(int(rng.integers(1, 3))):
            data[rng.integers(len(data))] = rng.integers(256)
        try:
            read(bytes(data), tmp_path)
            kept += 1
        except vw.JobError:
            pass
    assert 0 < kept < 3000
    for text in [b"", b"\x00", b"onnx", b"\x3a" + b"\xff" * 9 + b"\x7f", bytes(1000)]:
        with pytest.raises(vw.JobError, match="the network is not read"):
            read(text, tmp_path)
    long = tmp_path / "long.onnx"
    with long.open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(vw.JobError, match="has more than 64 MiB"):
        vw.network(long)
    with pytest.raises(vw.JobError, match="cannot be read: No such file"):
        vw.network(tmp_path / "none.onnx")
    with pytest.raises(vw.JobError, match="is no `.onnx` file"):
        vw.network(pathlib.Path(__file__))


# scikit-learn.


def _fitted(kind: str, rows: Any, target: Any, *, hidden: Any = (12, 7), **more: Any) -> Any:
    return getattr(neural_network, kind)(hidden_layer_sizes=hidden, max_iter=60, random_state=1, **more).fit(rows, target)


def _scored(network: vw.Network, rows: Any) -> list[Meant]:
    return [meant(network, row.tolist(), float) for row in rows]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_digits_of_scikit_learn(activation: str) -> None:
    rows, target = datasets.load_digits(return_X_y=True)
    fitted = _fitted("MLPClassifier", rows, target, activation=activation)
    network = vw.network(fitted, features=[f"p{at}" for at in range(64)])
    assert network.classes == [str(at) for at in range(10)] and network.source.endswith("MLPClassifier")
    found = _scored(network, rows[:300])
    probable = fitted.predict_proba(rows[:300])
    clear = 0
    for one, wanted, label in zip(found, probable, fitted.predict(rows[:300])):
        # Of a softmax, logarithms differ as the scores do; each is off by its bound at most.
        differs = one.cells - one.cells[0] - (np.log(wanted) - np.log(wanted[0]))
        assert (np.abs(differs) <= one.bound + one.bound[0] + 1e-9 * (1 + np.abs(one.cells))).all()
        first, second = np.sort(one.cells)[:-3:-1]
        if first - second > 2 * one.bound.max():
            clear += 1
            assert class_of(network, one.cells) == str(label)
    assert clear > 290


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_classes_of_scikit_learn() -> None:
    data = datasets.load_breast_cancer(as_frame=True)
    labels = np.array(["benign", "malignant"])[1 - data.target]
    fitted = pipeline.make_pipeline(preprocessing.StandardScaler(), neural_network.MLPClassifier(hidden_layer_sizes=(8,), max_iter=40, random_state=1)).fit(data.data, labels)
    network = vw.network(fitted, places=12)
    assert network.classes == ["benign", "malignant"] and network.features == list(data.data.columns)
    assert network.source.endswith("MLPClassifier after StandardScaler")
    found = _scored(network, data.data.to_numpy())
    probable = fitted.predict_proba(data.data)[:, 1]
    for one, wanted, label in zip(found, probable, fitted.predict(data.data)):
        assert one.cells.shape == (1,)
        assert abs(1 / (1 + math.exp(-one.cells[0])) - wanted) <= one.bound[0] / 4 + 1e-9
        if abs(one.cells[0]) > one.bound[0]:
            assert class_of(network, one.cells) == label
    assert vw.network(fitted, classes=["no", "yes"]).classes == ["no", "yes"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scalers", [[], ["StandardScaler"], ["MinMaxScaler"], ["MinMaxScaler", "StandardScaler"]])
def test_diabetes_of_scikit_learn(scalers: list[str]) -> None:
    rows, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    steps: list[Any] = [getattr(preprocessing, name)() for name in scalers]
    fitted = pipeline.make_pipeline(*steps, "passthrough", neural_network.MLPRegressor(hidden_layer_sizes=(9, 5), max_iter=80, random_state=1)).fit(rows, target)
    network = vw.network(fitted, outputs=["progress"], places=12)
    assert network.outputs == ["progress"] and network.features == [f"x{at}" for at in range(10)]
    for one, wanted in zip(_scored(network, rows), fitted.predict(rows)):
        assert abs(one.cells[0] - wanted) <= one.bound[0] + 1e-9 * (1 + abs(wanted))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_several_targets_and_scalers_by_halves() -> None:
    rows, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    both = np.stack([target, -target / 3], axis=1)
    for more in ({"with_mean": False}, {"with_std": False}):
        fitted = pipeline.make_pipeline(preprocessing.StandardScaler(**more), neural_network.MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=20, random_state=1)).fit(rows, both)
        network = vw.network(fitted, places=12)
        assert network.outputs == ["output_0", "output_1"]
        for one, wanted in zip(_scored(network, rows[:50]), fitted.predict(rows[:50])):
            assert (np.abs(one.cells - wanted) <= one.bound + 1e-9 * (1 + np.abs(wanted))).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_of_scikit_learn_that_are_not_read() -> None:
    rows, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    regressor = _fitted("MLPRegressor", rows, target, hidden=(3,))
    labels = np.stack([target > 100, target > 150, target > 200], axis=1).astype(int)
    broken = _fitted("MLPRegressor", rows, target, hidden=(3,))
    broken.coefs_[0][0, 0] = math.nan
    scaler, clipped = preprocessing.StandardScaler(), preprocessing.MinMaxScaler(clip=True)
    for fitted, why in [
        (import_module("sklearn.linear_model").LinearRegression().fit(rows, target), "a LinearRegression is not read; of scikit-learn there are MLPClassifier, MLPRegressor, and these after StandardScaler or MinMaxScaler in a Pipeline"),
        (pipeline.make_pipeline(preprocessing.PolynomialFeatures(), regressor), "a PolynomialFeatures is not read"),
        (pipeline.make_pipeline(regressor, scaler), "ends in its one network"),
        (pipeline.make_pipeline(regressor, regressor), "ends in its one network"),
        (pipeline.make_pipeline("passthrough"), "ends in its one network"),
        (scaler, "ends in its one network"),
        (neural_network.MLPRegressor(), "the MLPRegressor is not fitted"),
        (pipeline.make_pipeline(scaler, regressor), "the StandardScaler is not fitted, or has other features"),
        (pipeline.make_pipeline(clipped.fit(rows), regressor), "a MinMaxScaler that clips is not read"),
        (_fitted("MLPClassifier", rows, labels, hidden=(3,)), "several labels"),
        (broken, "not finite"),
    ]:
        with pytest.raises(vw.JobError, match=why):
            vw.network(fitted)
    classifier = _fitted("MLPClassifier", rows, target > 150, hidden=(3,))
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (regressor, {"features": ["a"]}, "the network has 10 features, and 1 are named"),
        (regressor, {"features": "abcdefghij"}, "are lists of names"),
        (regressor, {"classes": ["a", "b"]}, "a MLPRegressor has outputs, and no classes"),
        (regressor, {"outputs": ["a", "b"]}, "the network has 1 outputs, and 2 are named"),
        (classifier, {"outputs": ["a"]}, "a MLPClassifier has classes, and no outputs"),
        (classifier, {"classes": ["a", "b", "c"]}, "has 2 classes, and 3 are named"),
        (regressor, {"places": 16}, "places are a number from 0 to 15"),
        (regressor, {"places": True}, "places are a number from 0 to 15"),
    ]
    for fitted, more, why in wrong:
        with pytest.raises(vw.JobError, match=why) as caught:
            vw.network(fitted, **more)
        assert caught.value.source is not None and caught.value.source.file.endswith("test_networks.py")


def test_nothing_is_unpickled(tmp_path: pathlib.Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pathlib.Path.touch, (tmp_path / "exploded",))

    file = tmp_path / "network.joblib"
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(vw.JobError, match="is not loaded"):
        vw.network(file)
    with pytest.raises(vw.JobError, match="a Bomb is no network that is known"):
        vw.network(Bomb())
    assert not (tmp_path / "exploded").exists()


# In jobs.


def _network(folder: pathlib.Path, **more: Any) -> vw.Network:
    nodes, tensors = _dense("x", "a", 2, 3, 1)
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
    nodes, tensors = _dense("x", "a", 2, 1, 1)
    one = read(file_of(nodes, [2], tensors, output="a"), tmp_path, features=["age", "pay"], classes=["no", "yes"])
    _, people, risk = _asked(one)
    assert people.apply(risk, keep=["id"], scores=True).columns == ["id", "class", "score_1"]
    # Of images as well.
    nodes = [node("Conv", "x w", "a", pads=[0, 1, 0, 0], strides=[1, 2]), node("AveragePool", "a", "y", kernel_shape=[1, 2], strides=[1, 1])]
    image = read(file_of(nodes, [1, 2, 5], _random(1, w=(2, 1, 2, 2))), tmp_path, classes=["a", "b", "c", "d"])
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
        assert caught.value.source is not None and caught.value.source.file.endswith("test_networks.py")


def test_a_network_is_saved_and_read(tmp_path: pathlib.Path) -> None:
    network = _network(tmp_path, outputs=["a", "b", "c"])
    network.save(tmp_path / "risk.json")
    again = vw.Network.read(tmp_path / "risk.json")
    assert (again.text, again.features, again.outputs, again.places) == (network.text, ["age", "pay"], ["a", "b", "c"], 9)
    assert repr(network).startswith("<Network ")
    with pytest.raises(vw.JobError, match="cannot be read"):
        vw.Network.read(tmp_path / "none.json")
    with pytest.raises(vw.JobError, match="it is a network, which vw.Network reads"):
        vw.Forest(network.text)
    (tmp_path / "bad.json").write_bytes(b"\xff")
    with pytest.raises(vw.JobError, match="cannot be read"):
        vw.Network.read(tmp_path / "bad.json")
