"""Networks of ONNX files against the evaluator of ONNX: no further from it than the rounding of weights, and doubles, allow."""

from __future__ import annotations

import decimal
import json
import math
import pathlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from nets import BN, class_of, dense, file_of, lenet, meant, near, node, norm, random, read, reference
from nets import reader as reader

import veilworks as vw

onnx: Any = pytest.importorskip("onnx")


Case = tuple[list[Any], list[int], dict[str, Any], dict[str, Any]]


CASES: dict[str, Callable[[], Case]] = {
    "gemm": lambda: ([node("Gemm", "x w b", "y")], [5], random(1, w=(5, 3), b=(3,)), {}),
    "gemm, turned and scaled": lambda: ([node("Gemm", "x w b", "y", transB=1, alpha=0.3, beta=-1.7)], [5], random(2, w=(3, 5), b=(1, 3)), {}),
    "gemm without bias": lambda: ([node("Gemm", "x w", "y")], [4], random(3, w=(4, 2)), {}),
    "gemm, one bias for all": lambda: ([node("Gemm", "x w b", "y")], [4], random(3, w=(4, 2), b=()), {}),
    "matmul and add": lambda: ([node("MatMul", "x w", "a"), node("Add", "b a", "c"), node("Relu", "c", "d"), node("MatMul", "d v", "y")], [5], random(4, w=(5, 6), b=(6,), v=(6, 2)), {}),
    "activations": lambda: (
        [node("Sigmoid", "x", "a"), node("MatMul", "a w", "b"), node("Tanh", "b", "c"), node("MatMul", "c v", "d"), node("Relu", "d", "y")], [4], random(5, w=(4, 5), v=(5, 3)), {}
    ),
    "convolution": lambda: ([node("Conv", "x w b", "y")], [2, 6, 5], random(6, w=(3, 2, 3, 2), b=(3,)), {}),
    "convolution with pads and strides": lambda: (
        [node("Conv", "x w", "a", pads=[1, 0, 2, 1], strides=[2, 1], kernel_shape=[3, 2]), node("Relu", "a", "y")], [2, 6, 5], random(7, w=(3, 2, 3, 2)), {}
    ),
    "same, upper": lambda: ([node("Conv", "x w b", "y", auto_pad="SAME_UPPER", strides=[2, 2])], [1, 7, 6], random(8, w=(2, 1, 4, 3), b=(2,)), {}),
    "same, lower": lambda: ([node("Conv", "x w b", "y", auto_pad="SAME_LOWER", strides=[1, 2])], [1, 7, 6], random(9, w=(2, 1, 4, 3), b=(2,)), {}),
    "valid": lambda: ([node("Conv", "x w b", "y", auto_pad="VALID", dilations=[1, 1], group=1)], [1, 7, 6], random(9, w=(2, 1, 4, 3), b=(2,)), {}),
    "convolution by groups": lambda: ([node("Conv", "x w b", "y", group=2)], [4, 6, 5], random(20, w=(6, 2, 3, 2), b=(6,)), {}),
    "depthwise, then pointwise": lambda: ([node("Conv", "x w", "a", group=3, pads=[1, 1, 1, 1]), node("Conv", "a v b", "y")], [3, 5, 4], random(21, w=(3, 1, 3, 3), v=(2, 3, 1, 1), b=(2,)), {}),
    "pools": lambda: (
        [node("MaxPool", "x", "a", kernel_shape=[3, 2], strides=[1, 2]), node("AveragePool", "a", "y", kernel_shape=[2, 2], count_include_pad=1)], [2, 7, 8], {}, {}
    ),
    "a pool whose last windows fit": lambda: ([node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)], [1, 7, 7], {}, {}),
    "pools of whole images": lambda: ([node("Conv", "x w", "a"), node("GlobalAveragePool", "a", "b"), node("Flatten", "b", "c"), node("MatMul", "c v", "y")], [2, 5, 4], random(10, w=(4, 2, 2, 2), v=(4, 3)), {}),
    "the largest of whole images": lambda: ([node("GlobalMaxPool", "x", "a"), node("Reshape", "a to", "y")], [3, 4, 4], {"to": np.array([0, -1])}, {}),
    "norm after convolution": lambda: ([node("Conv", "x w b", "a"), node("BatchNormalization", f"a {BN}", "c"), node("Relu", "c", "y")], [2, 5, 5], random(11, w=(3, 2, 2, 2), b=(3,)) | norm(1, 3), {}),
    "norm after dense": lambda: ([node("Gemm", "x w b", "a"), node("BatchNormalization", f"a {BN}", "y", epsilon=0.1)], [4], random(12, w=(4, 3), b=(3,)) | norm(2, 3), {}),
    "norm before dense": lambda: ([node("BatchNormalization", f"x {BN}", "a"), node("Gemm", "a w b", "y")], [4], random(13, w=(4, 3), b=(3,)) | norm(3, 4), {}),
    "norm between pool and convolution": lambda: (
        [node("MaxPool", "x", "a", kernel_shape=[2, 2]), node("BatchNormalization", f"a {BN}", "c"), node("Conv", "c w b", "y")], [2, 6, 7], random(14, w=(3, 2, 3, 2), b=(3,)) | norm(4, 2), {}
    ),
    "norm, then a mean and a dense layer": lambda: (
        [node("Relu", "x", "r"), node("BatchNormalization", f"r {BN}", "a"), node("AveragePool", "a", "c", kernel_shape=[2, 3]), node("Flatten", "c", "d"), node("Gemm", "d w b", "y")],
        [2, 6, 6], random(15, w=(2 * 5 * 4, 3), b=(3,)) | norm(5, 2), {},
    ),
    "norm twice, and a scaled result": lambda: (
        [node("Conv", "x w", "a"), node("BatchNormalization", f"a {BN}", "c"), node("BatchNormalization", f"c {BN}", "d"), node("Mul", "d two", "e"), node("Sub", "one e", "y")],
        [2, 5, 5], random(11, w=(3, 2, 2, 2)) | norm(1, 3) | {"two": np.array(2.5), "one": np.array([1.0])}, {},
    ),
    "residual": lambda: (
        [node("Gemm", "x w b", "a"), node("Relu", "a", "c"), node("Gemm", "c v b", "d"), node("Relu", "d", "e"), node("Gemm", "e u b", "f"), node("Add", "f c", "g"), node("Relu", "g", "y")],
        [3], random(16, w=(3, 4), v=(4, 4), u=(4, 4), b=(4,)), {},
    ),
    "residual of images, with norm": lambda: (
        [node("Conv", "x w", "a"), node("Conv", "a v", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", f"c {BN}", "d"), node("Add", "a d", "e"), node("Add", "e e", "y")],
        [1, 4, 5], random(17, w=(3, 1, 2, 2), v=(3, 3, 3, 3)) | norm(6, 3), {},
    ),
    "norm of what two read": lambda: (
        # The first layer's cells are read as they are, too: the norm goes into the layer after it.
        [node("Conv", "x w", "a"), node("BatchNormalization", f"a {BN}", "c"), node("Conv", "c v", "d"), node("Add", "d a", "y")],
        [1, 4, 5], random(18, w=(3, 1, 2, 2), v=(3, 3, 1, 1)) | norm(7, 3), {},
    ),
    "images over 255": lambda: ([node("Div", "x all", "a"), node("Conv", "a w b", "y", pads=[1, 1, 1, 1])], [1, 5, 5], random(19, w=(2, 1, 3, 3), b=(2,)) | {"all": np.array(255.0)}, {}),
    "normalised images": lambda: (
        [node("Div", "x all", "a"), node("Sub", "a m", "c"), node("Div", "c s", "d"), node("Conv", "d w b", "y", strides=[2, 2])],
        [3, 6, 6], random(20, w=(2, 3, 3, 3), b=(2,)) | {"all": np.array([[255.0]]), "m": np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1), "s": np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)}, {},
    ),
    "a mean image": lambda: (
        [node("Sub", "x m", "a"), node("Flatten", "a", "c"), node("Gemm", "c w b", "y")], [2, 3, 3], random(21, w=(18, 3), b=(3,), m=(2, 3, 3)), {}
    ),
    "numbers that become images": lambda: (
        [node("Mul", "x f", "o"), node("Reshape", "o to", "a"), node("Conv", "a w", "c"), node("Reshape", "c back", "d"), node("Add", "d p", "e"), node("MatMul", "e v", "y")],
        [12], random(22, w=(2, 1, 2, 2), v=(12, 3), p=(1, 12)) | {"to": np.array([-1, 1, 3, 4]), "back": np.array([0, -1]), "f": np.full(12, 0.5)}, {},
    ),
    "steps that change nothing": lambda: (
        [node("Identity", "x", "a"), node("Dropout", "a", "c m"), node("Cast", "c", "d", to=1), node("Cast", "d", "d2", to=11), node("Constant", "", "w", value=onnx.numpy_helper.from_array(random(23, w=(4, 3))["w"])), node("Identity", "w", "w2"),
         node("MatMul", "d2 w2", "e"), node("Dropout", "e ratio", "f"), node("Cast", "f", "y", to=11)],
        [4], {"ratio": np.array(0.5, dtype=np.float32), "unused": np.ones(3)}, {},
    ),
    "flatten from the end": lambda: ([node("Flatten", "x", "a", axis=-3), node("MatMul", "a w", "y")], [2, 2, 3], random(24, w=(12, 3)), {}),
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
    weights = random(3, w=(2, 1, 2, 2), v=(8, 2))
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
    nodes, tensors = dense("x", "a", 4, 3, 1)
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
        nodes, tensors = dense("x", "a", 4, 3, 1)
        data = file_of([*nodes, node("Softmax", "a", "y", **more)], [4], tensors, opset=opset)
        assert read(data, tmp_path).classes == ["0", "1", "2"]


def test_one_score_of_two_classes(tmp_path: pathlib.Path) -> None:
    nodes, tensors = dense("x", "a", 4, 1, 1)
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
    nodes, tensors = dense("x", "y", 4, 3, 1)
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
    tensors = random(1, w=(2, 1, 3, 3)) | {"m": np.array(0.5)}
    conv = node("Conv", "a w", "y", pads=[1, 1, 1, 1])
    with pytest.raises(vw.JobError, match="Conv `y`: Sub `a` adds something before a convolution that pads with zeros afterwards"):
        read(file_of([node("Sub", "x m", "a"), conv], [1, 5, 5], tensors), tmp_path)
    data = file_of([node("Mul", "x m", "a"), conv], [1, 5, 5], tensors)
    rows = np.random.default_rng(1).normal(size=(2, 1, 5, 5))
    near(read(data, tmp_path), rows, reference(data, rows))


def test_the_largest_of_what_is_turned_round(tmp_path: pathlib.Path) -> None:
    nodes = [node("Relu", "x", "r"), node("Mul", "r f", "a"), node("MaxPool", "a", "c", kernel_shape=[2, 2]), node("Conv", "c w", "y")]
    tensors = random(1, w=(2, 1, 1, 1))
    data = file_of(nodes, [1, 4, 4], tensors | {"f": np.array(0.5)})
    rows = np.random.default_rng(1).normal(size=(2, 1, 4, 4))
    near(read(data, tmp_path), rows, reference(data, rows))
    with pytest.raises(vw.JobError, match="MaxPool `c`: Mul `a` is folded into a dense layer or a convolution"):
        read(file_of(nodes, [1, 4, 4], tensors | {"f": np.array(-0.5)}), tmp_path)
