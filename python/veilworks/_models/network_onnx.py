"""Networks from ONNX files: layers of `ai.onnx` one after the other, and what stands between them and is folded into their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Union

from . import onnx_graph
from .floats import single
from .networks import Affine, Chain, Number, Value, Window, model, named, root_below
from .onnx_graph import Node, Tensor


@dataclass(frozen=True)
class _Seen:
    """Cells as the file sees them: of which sizes, without that of the batch, and whether they are floats; and the node, if one has ended the network."""

    value: Value
    sizes: tuple[int, ...]
    real: bool
    end: str = ""


@dataclass(frozen=True)
class _Unread:
    """What a node makes besides."""

    node: str


_Made = Union[_Seen, Tensor, _Unread]


class _Reader:
    def __init__(self, graph: onnx_graph.Graph) -> None:
        self.graph, self.chain = graph, Chain()
        count = math.prod(graph.sizes)
        named(None, count, "x")
        self.made: dict[str, _Made] = dict(graph.constants)
        self.made[graph.input] = _Seen(Value(-1, _cells(graph.sizes)), graph.sizes, graph.kind in onnx_graph.REAL)

    def node(self, node: Node) -> None:
        """Reads a node."""
        try:
            if any(node.outputs[1:]) and node.operator not in ("BatchNormalization", "Dropout", "MaxPool"):
                raise ValueError(f"it has one output, and not {len(node.outputs)}")
            made = _OPERATORS[node.operator](self, node)
            node.attributes.rest()
        except ValueError as error:
            raise ValueError(f"{node}: {error}") from None
        self.made[node.outputs[0]] = made
        for name in node.outputs[1:]:
            self.made[name] = _Unread(str(node))

    # What nodes read.

    def _of(self, node: Node, at: int) -> _Made | None:
        name = node.inputs[at] if at < len(node.inputs) else ""
        if not name:
            return None
        made = self.made[name]
        if isinstance(made, _Unread):
            raise ValueError(f"it reads what {made.node} gives besides")
        if isinstance(made, _Seen) and self.graph.uses[name] > 1:
            return replace(made, value=replace(made.value, shared=True))
        return made

    def _inputs(self, node: Node, least: int, most: int | None = None) -> None:
        most = most or least
        if not least <= len(node.inputs) <= most or not all(node.inputs[:least]):
            raise ValueError(f"it has {least}{f' to {most}' if most > least else ''} inputs, and not {len(node.inputs)}")

    def _cells(self, node: Node, at: int = 0, real: bool = True, ended: str = "") -> _Seen:
        seen = self._of(node, at)
        if not isinstance(seen, _Seen):
            raise ValueError("it is of weights alone, and not of what a layer gives")
        if real and not seen.real:
            raise ValueError("it takes integers: a Cast to floats stands before it")
        if seen.end and seen.end.split()[0] not in ended.split():
            raise ValueError(f"it stands after {seen.end}, which is the end of a network")
        return seen

    def _constant(self, node: Node, at: int) -> Tensor:
        tensor = self._of(node, at)
        if not isinstance(tensor, Tensor):
            raise ValueError("its weights are no constants of the file")
        return tensor

    def _image(self, node: Node) -> _Seen:
        seen = self._cells(node)
        if len(seen.sizes) != 3:
            raise ValueError(f"it takes images, of channels, rows and columns, and not {list(seen.sizes)}")
        return seen

    def _flat(self, node: Node) -> _Seen:
        seen = self._cells(node)
        if len(seen.sizes) != 1:
            raise ValueError(f"it takes a list of numbers, and not {list(seen.sizes)}: a Flatten stands before it")
        return seen

    # Layers.

    def gemm(self, node: Node) -> _Seen:
        self._inputs(node, 2, 3)
        seen, weights = self._flat(node), self._constant(node, 1)
        of = node.attributes
        alpha, beta = Fraction(of.float("alpha", 1.0)), Fraction(of.float("beta", 1.0))
        turned = of.integer("transB", 0) != 0
        if of.integer("transA", 0) != 0:
            raise ValueError("it turns rows into columns, with transA")
        rows: Sequence[Sequence[Number]] = _dense(weights, turned)
        bias: list[Number] = [0.0] * len(rows)
        if self._of(node, 2) is not None:
            added = self._constant(node, 2)
            bias = list(_broadcast(added, (len(rows),)) or ())
            if len(bias) == 1:
                bias *= len(rows)
            elif len(bias) != len(rows):
                raise ValueError(f"its bias `{added.name}` has the dimensions {list(added.sizes)}, and it has {len(rows)} outputs")
        if beta != 1:
            bias = [Fraction(one) * beta for one in bias]
        if alpha != 1:
            rows = [[Fraction(one) * alpha for one in row] for row in rows]
        value = self.chain.linear(seen.value, rows, bias)
        return _Seen(value, (len(rows),), True)

    def matmul(self, node: Node) -> _Seen:
        self._inputs(node, 2)
        seen, weights = self._flat(node), self._constant(node, 1)
        rows = _dense(weights, False)
        return _Seen(self.chain.linear(seen.value, rows, [0.0] * len(rows)), (len(rows),), True)

    def conv(self, node: Node) -> _Seen:
        self._inputs(node, 2, 3)
        seen, weights = self._image(node), self._constant(node, 1)
        if len(weights.sizes) != 4 or 0 in weights.sizes:
            raise ValueError(f"its weights `{weights.name}` have the dimensions {list(weights.sizes)}: convolutions are of two dimensions")
        outputs, channels, *size = weights.sizes
        groups = node.attributes.integer("group", 1)
        if not 1 <= groups <= outputs or outputs % groups:
            raise ValueError(f"its {outputs} outputs are of {groups} groups")
        if channels * groups != seen.sizes[0]:
            raise ValueError(f"it takes {channels * groups} channels, and there are {seen.sizes[0]}")
        window = _window(node, seen, size)
        bias: list[Number] = [0.0] * outputs
        if self._of(node, 2) is not None:
            added = self._constant(node, 2)
            if added.sizes != (outputs,):
                raise ValueError(f"its bias `{added.name}` has the dimensions {list(added.sizes)}, and it has {outputs} outputs")
            bias = list(added.floats())
        numbers = weights.floats()
        terms = len(numbers) // outputs
        rows: list[list[Number]] = []
        for at in range(outputs):
            # An output has no weight for channels of other groups.
            before = at * groups // outputs * terms
            row: list[Number] = [0.0] * (groups * terms)
            row[before : before + terms] = numbers[at * terms : (at + 1) * terms]
            rows.append(row)
        value = self.chain.linear(seen.value, rows, bias, window)
        return _Seen(value, value.cells, True)

    def pool(self, node: Node) -> _Seen:
        self._inputs(node, 1)
        seen = self._image(node)
        of, most = node.attributes, node.operator == "MaxPool"
        window = _window(node, seen, None)
        if any(window.padding):
            raise ValueError(f"it pads with {list(window.padding)}: a pool has no padding")
        window.places(seen.sizes[1], seen.sizes[2])
        if of.integer("ceil_mode", 0) != 0 and any((length - size) % stride for length, size, stride in zip(seen.sizes[1:], window.size, window.stride)):
            raise ValueError("it has windows that go beyond the image, with ceil_mode")
        of.ignore("storage_order" if most else "count_include_pad")
        value = self.chain.pool(seen.value, "max" if most else "mean", window)
        return _Seen(value, value.cells, True)

    def whole_pool(self, node: Node) -> _Seen:
        self._inputs(node, 1)
        seen = self._image(node)
        size = seen.sizes[1], seen.sizes[2]
        value = self.chain.pool(seen.value, "mean" if node.operator == "GlobalAveragePool" else "max", Window(size, size))
        return _Seen(value, value.cells, True)

    def activation(self, node: Node) -> _Seen:
        self._inputs(node, 1)
        seen = self._cells(node)
        return replace(seen, value=self.chain.activation(seen.value, node.operator.lower()))

    # What is folded into layers.

    def normalisation(self, node: Node) -> _Seen:
        self._inputs(node, 5)
        seen = self._cells(node)
        if len(seen.sizes) not in (1, 3):
            raise ValueError(f"it takes numbers or images, and not {list(seen.sizes)}")
        of = node.attributes
        if of.integer("training_mode", 0) != 0 or any(node.outputs[1:]):
            raise ValueError("it is of training")
        if of.integer("spatial", 1) != 1:
            raise ValueError("it has numbers for each cell, with spatial=0")
        of.ignore("momentum")
        epsilon = Fraction(of.float("epsilon", single(1e-5)))
        found = []
        for at in range(1, 5):
            tensor = self._constant(node, at)
            if tensor.sizes != (seen.sizes[0],):
                raise ValueError(f"`{tensor.name}` has the dimensions {list(tensor.sizes)}, and there are {seen.sizes[0]} channels")
            found.append([Fraction(one) for one in tensor.floats()])
        if any(one + epsilon <= 0 for one in found[3]):
            raise ValueError("a variance is not above 0")
        factors = [scale * root_below(variance + epsilon) for scale, variance in zip(found[0], found[3])]
        summands = [shift - mean * factor for shift, mean, factor in zip(found[1], found[2], factors)]
        return self._scaled(seen, node, factors, summands)

    def arithmetic(self, node: Node) -> _Seen:
        self._inputs(node, 2)
        of = [self._of(node, 0), self._of(node, 1)]
        if isinstance(of[0], _Seen) and isinstance(of[1], _Seen):
            one, other = self._cells(node, 0), self._cells(node, 1)
            if node.operator != "Add":
                raise ValueError("it is of two things that layers give: these are added, and nothing else")
            if one.sizes != other.sizes:
                raise ValueError(f"it adds {list(other.sizes)} to {list(one.sizes)}")
            return replace(one, value=self.chain.add(one.value, other.value))
        at = 0 if isinstance(of[0], _Seen) else 1
        seen, tensor = self._cells(node, at), self._constant(node, 1 - at)
        numbers = _broadcast(tensor, seen.sizes)
        if numbers is None:
            raise ValueError(f"`{tensor.name}` has the dimensions {list(tensor.sizes)}: a constant is one number, or one for each channel of {list(seen.sizes)}")
        exact = [Fraction(one) for one in numbers]
        if len(exact) == 1:
            exact *= seen.value.cells[0]
        ones, zeros = [Fraction(1)] * len(exact), [Fraction(0)] * len(exact)
        if node.operator == "Add":
            return self._scaled(seen, node, ones, exact)
        if node.operator == "Mul":
            return self._scaled(seen, node, exact, zeros)
        if node.operator == "Sub":
            if at == 0:
                return self._scaled(seen, node, ones, [-one for one in exact])
            return self._scaled(seen, node, [-one for one in ones], exact)
        if at == 1:
            raise ValueError("it divides by what a layer gives")
        if 0 in exact:
            raise ValueError("it divides by 0")
        return self._scaled(seen, node, [1 / one for one in exact], zeros)

    def _scaled(self, seen: _Seen, node: Node, factors: list[Fraction], summands: list[Fraction]) -> _Seen:
        return replace(seen, value=self.chain.scaled(seen.value, Affine(tuple(factors), tuple(summands), str(node))))

    # What changes no number.

    def same(self, node: Node) -> _Made:
        self._inputs(node, 1, 3 if node.operator == "Dropout" else 1)
        of = node.attributes
        if node.operator == "Dropout":
            of.float("ratio", 0.5)
            of.ignore("seed")
            if self._of(node, 2) is not None and any(self._constant(node, 2).integers()):
                raise ValueError("it is of training")
        found = self._of(node, 0)
        if found is None or isinstance(found, _Unread):
            raise ValueError("it reads nothing")
        return found

    def cast(self, node: Node) -> _Made:
        self._inputs(node, 1)
        to = node.attributes.integer("to", 0)
        node.attributes.ignore("saturate")
        found = self._of(node, 0)
        if isinstance(found, _Seen) and found.end.startswith("ArgMax"):
            # Classes, of whichever type.
            return found
        if to not in onnx_graph.REAL or (isinstance(found, Tensor) and found.kind not in onnx_graph.REAL):
            raise ValueError(f"it makes numbers of type {to}, and not floats of floats")
        if isinstance(found, _Seen):
            return replace(found, real=True)
        if found is None or isinstance(found, _Unread):
            raise ValueError("it reads nothing")
        return found

    def constant(self, node: Node) -> _Made:
        self._inputs(node, 0)
        tensor = node.attributes.tensor("value", node.outputs[0])
        if tensor is None:
            raise ValueError("it has a tensor, value, and this has none")
        return tensor

    def flatten(self, node: Node) -> _Seen:
        self._inputs(node, 1)
        seen = self._cells(node, real=False)
        axis = node.attributes.integer("axis", 1)
        if axis not in (1, -len(seen.sizes)):
            raise ValueError(f"it flattens from axis {axis} on, and not each row of the batch")
        return self._reshaped(seen, (math.prod(seen.sizes),))

    def reshape(self, node: Node) -> _Seen:
        self._inputs(node, 2)
        seen, to = self._cells(node, real=False), self._constant(node, 1).integers()
        keeps = node.attributes.integer("allowzero", 0) == 0
        count, said = math.prod(seen.sizes), f"it makes {list(seen.sizes)} in each row of a batch to {to}"
        if len(to) < 2:
            raise ValueError(f"{said}: the batch stays as it is")
        first, *rest = to
        if keeps:
            rest = [seen.sizes[at] if one == 0 and at < len(seen.sizes) else one for at, one in enumerate(rest)]
        # The rest is known, or the batch is.
        same = (keeps and first == 0) or (self.graph.batch is not None and first == self.graph.batch)
        if same and rest.count(-1) == 1:
            others = math.prod(one for one in rest if one != -1)
            rest = [count // others if one == -1 and others > 0 and count % others == 0 else one for one in rest]
        if not (same or first == -1) or any(one < 1 for one in rest) or math.prod(rest) != count:
            raise ValueError(f"{said}: the batch stays as it is, and the rest has as many cells")
        return self._reshaped(seen, tuple(rest))

    def _reshaped(self, seen: _Seen, sizes: tuple[int, ...]) -> _Seen:
        value = seen.value
        if value.layer < 0:
            # Features are an image, or a list of numbers, as the first layer takes them.
            affine = value.affine.by_cell(value.cells) if value.affine is not None else None
            return replace(seen, value=replace(value, cells=_cells(sizes), affine=affine), sizes=sizes)
        if sizes != (value.count,) and sizes != value.cells:
            raise ValueError(f"it makes {list(seen.sizes)} to {list(sizes)}: images become lists of numbers, and nothing else")
        return replace(seen, sizes=sizes)

    # The end.

    def softmax(self, node: Node) -> _Seen:
        self._inputs(node, 1)
        seen = self._cells(node)
        former = self.graph.opset < 13
        return self._ended(node, seen, node.attributes.integer("axis", 1 if former else -1))

    def argmax(self, node: Node) -> _Seen:
        self._inputs(node, 1)
        seen = self._cells(node, ended="Softmax LogSoftmax")
        if node.attributes.integer("select_last_index", 0) != 0:
            raise ValueError("it takes the last of several highest scores, and the first counts")
        node.attributes.integer("keepdims", 1)
        return self._ended(node, seen, node.attributes.integer("axis", 0))

    def _ended(self, node: Node, seen: _Seen, axis: int) -> _Seen:
        if len(seen.sizes) not in (1, 3) or seen.value.count != seen.sizes[0] or axis not in (1, -len(seen.sizes)):
            raise ValueError(f"it is along axis {axis} of {list(seen.sizes)} in each row of a batch, and not over the scores of a row")
        if seen.value.count < 2:
            raise ValueError("it is over one score")
        return replace(seen, end=str(node))


def _cells(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    if len(sizes) == 3:
        return sizes[0], sizes[1], sizes[2]
    return math.prod(sizes), 1, 1


def _dense(weights: Tensor, turned: bool) -> list[list[Number]]:
    """Weights of each output."""
    if len(weights.sizes) != 2 or 0 in weights.sizes:
        raise ValueError(f"its weights `{weights.name}` have the dimensions {list(weights.sizes)}, and not inputs and outputs")
    numbers, columns = weights.floats(), weights.sizes[1]
    if turned:
        return [list(numbers[first : first + columns]) for first in range(0, len(numbers), columns)]
    return [list(numbers[at::columns]) for at in range(columns)]


def _broadcast(tensor: Tensor, sizes: tuple[int, ...]) -> list[float] | None:
    """The numbers of a constant beside cells of these sizes: one, one for each channel, or one for each cell; or nothing, if they are others."""
    if len(tensor.sizes) > len(sizes) + 1 or 0 in tensor.sizes:
        return None
    if tensor.count == 1:
        return tensor.floats()
    aligned = (1,) * (len(sizes) + 1 - len(tensor.sizes)) + tensor.sizes
    if aligned[1:] == sizes or aligned[1:] == (sizes[0], *[1] * (len(sizes) - 1)):
        return tensor.floats() if aligned[0] == 1 else None
    return None


def _window(node: Node, seen: _Seen, size: Sequence[int] | None) -> Window:
    """The window of a convolution, whose size is that of its weights, or of a pool."""
    of = node.attributes
    said = of.integers("kernel_shape", 2)
    if size is None and said is None:
        raise ValueError("the size of its windows is missing")
    rows, columns = size or said or (0, 0)
    if said is not None and said != [rows, columns]:
        raise ValueError(f"its windows are of {said}, and its weights of {[rows, columns]}")
    down, across = of.integers("strides", 2) or (1, 1)
    if any(one != 1 for one in of.integers("dilations", 2) or ()):
        raise ValueError("windows with gaps, by dilations, are not read")
    auto, pads = of.text("auto_pad", "NOTSET"), of.integers("pads", 4)
    if auto == "NOTSET":
        top, left, bottom, right = pads or (0, 0, 0, 0)
    elif auto in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        if any(pads or ()):
            raise ValueError(f"it has pads, and auto_pad={auto}")
        top = left = bottom = right = 0
        if auto != "VALID" and min(rows, columns, down, across) > 0:
            # So many windows that each cell is the first of one, or each step has one.
            high, wide = (max((-(-length // step) - 1) * step + width - length, 0) for length, step, width in zip(seen.sizes[1:], (down, across), (rows, columns)))
            top, left = (high // 2, wide // 2) if auto == "SAME_UPPER" else (high - high // 2, wide - wide // 2)
            bottom, right = high - top, wide - left
    else:
        raise ValueError(f"auto_pad={auto} is not known")
    return Window((rows, columns), (down, across), (top, left, bottom, right))


_OPERATORS: dict[str, Callable[[_Reader, Node], _Made]] = {
    "Add": _Reader.arithmetic,
    "ArgMax": _Reader.argmax,
    "AveragePool": _Reader.pool,
    "BatchNormalization": _Reader.normalisation,
    "Cast": _Reader.cast,
    "Constant": _Reader.constant,
    "Conv": _Reader.conv,
    "Div": _Reader.arithmetic,
    "Dropout": _Reader.same,
    "Flatten": _Reader.flatten,
    "Gemm": _Reader.gemm,
    "GlobalAveragePool": _Reader.whole_pool,
    "GlobalMaxPool": _Reader.whole_pool,
    "Identity": _Reader.same,
    "LogSoftmax": _Reader.softmax,
    "MatMul": _Reader.matmul,
    "MaxPool": _Reader.pool,
    "Mul": _Reader.arithmetic,
    "Relu": _Reader.activation,
    "Reshape": _Reader.reshape,
    "Sigmoid": _Reader.activation,
    "Softmax": _Reader.softmax,
    "Sub": _Reader.arithmetic,
    "Tanh": _Reader.activation,
}


def read(data: bytes, *, name: str, features: Sequence[str] | None, places: int, classes: Sequence[str] | None, outputs: Sequence[str] | None) -> dict[str, Any]:
    """What an ONNX file says."""
    graph = onnx_graph.read(data, list(_OPERATORS))
    reader = _Reader(graph)
    for node in graph.nodes:
        reader.node(node)
    last = reader.made[graph.output]
    if isinstance(last, _Unread):
        raise ValueError(f"the output is what {last.node} gives besides")
    if isinstance(last, Tensor):
        raise ValueError(f"the output `{graph.output}` is a weight, and nothing that is computed")
    count, chain = last.value.count, reader.chain
    if chain.cells is None:
        raise ValueError("it computes nothing of its features")
    try:
        chain.finish(last.value)
    except ValueError as error:
        raise ValueError(f"the output `{graph.output}`: {error}") from None
    if last.end and classes is None:
        if outputs is not None:
            raise ValueError(f"{last.end} is left out: the network has classes, and no outputs")
        classes = [str(at) for at in range(count)]
    names = named(features, math.prod(chain.cells), "p" if chain.cells[1:] != (1, 1) else "x")
    source = f"ONNX, ai.onnx {graph.opset}" + (f", written by {graph.writer}" if graph.writer else "") + f", {name}"
    return model(chain, count, source=source, features=names, places=places, classes=classes, outputs=outputs)
