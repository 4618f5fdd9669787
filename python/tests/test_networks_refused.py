"""ONNX files that are hostile, or have what is not read: each is an error that says what is wrong with it."""

from __future__ import annotations

import functools
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nets import BN, file_of, near, node, norm, random, read, reference
from nets import reader as reader

import veilworks as vw

onnx: Any = pytest.importorskip("onnx")


def refused(folder: pathlib.Path, why: str, nodes: list[Any], sizes: list[Any], tensors: dict[str, Any], **more: Any) -> None:
    with pytest.raises(vw.JobError, match=why):
        read(file_of(nodes, sizes, tensors, **more), folder)


def test_operators_that_are_not_read(tmp_path: pathlib.Path) -> None:
    w = random(1, w=(4, 4), k=(2, 1, 3, 3))
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
    refuse("Conv `y`: it takes 2 channels, and there are 1", [node("Conv", "x k", "y", group=2)], image, w)
    for groups in (-1, 0, 3, 2**40):
        refuse(f"Conv `y`: its 2 outputs are of {groups} groups", [node("Conv", "x k", "y", group=groups)], image, w)
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
    refuse("MaxPool `y`: a window of 3 by 3", [node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[0, 2], ceil_mode=1)], image, w)
    refuse("MaxPool `y`: the size of its windows is missing", [node("MaxPool", "x", "y")], image, w)
    refuse("MaxPool `y`: a window of", [node("MaxPool", "x", "y", kernel_shape=[1 << 40, 1 << 40])], image, w)
    refuse("MatMul `c`: it reads what MaxPool `y` gives besides|Flatten `z`: it reads what", [node("MaxPool", "x", "y i", kernel_shape=[2, 2]), node("Flatten", "i", "z")], image, w, output="z")
    refuse("BatchNormalization `y`: it is of training", [node("BatchNormalization", f"x {BN}", "y", training_mode=1)], [3], norm(1, 3))
    refuse("BatchNormalization `y`: a variance is not above 0", [node("BatchNormalization", f"x {BN}", "y")], [3], norm(1, 3) | {"var": -np.ones(3)})
    refuse("BatchNormalization `y`: `scale` has the dimensions \\[2\\], and there are 3 channels", [node("BatchNormalization", f"x {BN}", "y")], [3], norm(1, 2))
    refuse("it has numbers for each cell, with spatial=0", [node("BatchNormalization", f"x {BN}", "y", spatial=0)], [3], norm(1, 3), opset=7)
    refuse("the output `y`: BatchNormalization `y` is folded into a dense layer or a convolution before or after it", [node("Relu", "x", "a"), node("BatchNormalization", f"a {BN}", "y")], [3], norm(1, 3))
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
    many = [gemm, node("Relu", "a", "a0"), *(node("Mul", f"a{at} tiny", f"a{at + 1}") for at in range(6)), node("MatMul", "a6 w", "y")]
    refuse("Mul `a4`: numbers that are multiplied between layers become too long", many, [4], w | {"tiny": np.array(3e-308)})
    layers = [node("Relu", "x", "a0"), *(node("Relu", f"a{at}", f"a{at + 1}") for at in range(64))]
    refuse("Relu `a64`: a network has at most 64 layers", layers, [4], w, output="a64")
    refuse("a graph of 1025 nodes is not read", [node("Identity", "x", f"a{at}") for at in range(1025)], [4], w)


def test_integers_are_cast(tmp_path: pathlib.Path) -> None:
    nodes = [node("Reshape", "x to", "o"), node("Cast", "o", "a", to=11), node("Div", "a all", "b"), node("Conv", "b w", "y")]
    data = file_of(nodes, [16], random(1, w=(2, 1, 3, 3)) | {"to": np.array([-1, 1, 4, 4]), "all": np.array(255.0)}, kind=2)
    rows = np.random.default_rng(1).integers(0, 256, size=(2, 16)).astype(np.uint8)
    network = read(data, tmp_path)
    assert network.features[-1] == "p15"
    near(network, rows, reference(data, rows))


def test_graphs_that_are_not_read(tmp_path: pathlib.Path) -> None:
    w = random(1, w=(4, 4))
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


def test_writers_with_long_names(tmp_path: pathlib.Path) -> None:
    def more(of: Any) -> None:
        of.producer_name = "a\n\x00" + "ä" * 300

    network = read(file_of([node("MatMul", "x w", "y")], [4], random(1, w=(4, 4)), more=more), tmp_path)
    assert network.source.startswith("ONNX, ai.onnx 17, written by aää") and 190 < len(network.source.encode()) <= 200


def test_attributes_of_other_types(tmp_path: pathlib.Path) -> None:
    w = random(1, w=(4, 4), k=(2, 1, 3, 3))
    refuse = functools.partial(refused, tmp_path)
    refuse("the attribute alpha is an integer, and not a float", [node("Gemm", "x w", "y", alpha=1)], [4], w)
    refuse("the attribute transB is a text, and not an integer", [node("Gemm", "x w", "y", transB="1")], [4], w)
    refuse("the attribute pads is an integer, and not integers", [node("Conv", "x k", "y", pads=1)], [1, 6, 6], w)
    refuse("the attribute auto_pad is floats, and not a text", [node("Conv", "x k", "y", auto_pad=[1.0])], [1, 6, 6], w)
    refuse("the attribute value is texts, and not a tensor", [node("Constant", "", "v", value=["a"]), node("MatMul", "x v", "y")], [4], w)
    refuse("it has a tensor, value, and this has none", [node("Constant", "", "v", value_float=1.0), node("Add", "x v", "y")], [4], w)
    refuse("the attribute alpha is not finite", [node("Gemm", "x w", "y", alpha=math.nan)], [4], w)
    refuse("the attribute epsilon is not finite", [node("BatchNormalization", f"x {BN}", "y", epsilon=math.inf)], [3], norm(1, 3))
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
    tensors = {name: one.astype(np.float32) for name, one in (random(1, w=(2, 1, 2, 2), b=(2,), v=(2, 8)) | norm(1, 2)).items()}
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
