"""Graphs of ONNX files: nodes in an order in which each reads what is made already, tensors that say what they have, and attributes, of which each is read."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from . import protobuf
from .networks import MOST_WEIGHTS
from .protobuf import Fields

_OPSETS = range(7, 23)
_MOST_NODES = 1024
_MOST_DIMENSIONS = 8
# Types of elements: of each its word for `struct`, and the field that has them if `raw_data` has not.
_FLOATS = {1: ("f", 4), 11: ("d", 10), 10: ("e", 5)}
_INTEGERS = {6: ("i", 5), 7: ("q", 7), 9: ("?", 5)}
REAL = frozenset(_FLOATS)
# Types that columns of a query may stand for: integers and truth values, too.
GIVEN = REAL | frozenset({2, 3, 4, 5, 6, 7, 9, 12, 13})
_TYPES = {1: "a float", 2: "an integer", 3: "a text", 4: "a tensor", 5: "a graph", 6: "floats", 7: "integers", 8: "texts", 9: "tensors", 10: "graphs"}


def _sizes(of: Fields, which: int) -> list[int]:
    """A few whole numbers."""
    if sum(10 if isinstance(one, int) else len(one) for one in of.get(which, [])) > 10 * _MOST_DIMENSIONS:
        raise ValueError(f"there are more than {_MOST_DIMENSIONS} dimensions")
    return protobuf.numbers(of, which)


class Tensor:
    """A tensor, which has its data in itself, and just as many elements as it says. Its numbers are read when they are asked for."""

    def __init__(self, of: Fields, name: str) -> None:
        self.name, self._of = name, of
        self.kind = protobuf.number(of, 2)
        if protobuf.number(of, 14) != 0 or 13 in of:
            raise ValueError(f"the tensor `{name}` has its data in another file")
        if 3 in of:
            raise ValueError(f"the tensor `{name}` is a segment of another")
        try:
            self.sizes = tuple(_sizes(of, 1))
        except ValueError as error:
            raise ValueError(f"the tensor `{name}`: {error}") from None
        if len(self.sizes) > _MOST_DIMENSIONS or any(size < 0 for size in self.sizes):
            raise ValueError(f"the tensor `{name}` has the dimensions {list(self.sizes)}")
        self.count = math.prod(self.sizes)
        if self.count > MOST_WEIGHTS:
            raise ValueError(f"the tensor `{name}` has {self.count} elements, and a network has at most {MOST_WEIGHTS} weights")

    def _bytes(self, word: str, field: int) -> bytes | None:
        """The data as they lie in `raw_data`, of just the right length; or nothing, if they are in a field of their type."""
        raw = self._of.get(9)
        if raw is None:
            return None
        if field in self._of and self._of[field] != [b""]:
            raise ValueError(f"the tensor `{self.name}` has its data twice")
        data = raw[-1]
        if isinstance(data, int) or len(data) != self.count * struct.calcsize(f"<{word}"):
            raise ValueError(self._other())
        return data

    def _other(self) -> str:
        return f"the tensor `{self.name}` has not as many elements as its dimensions {list(self.sizes)} say"

    def _numbers(self, field: int) -> list[int]:
        if sum(1 if isinstance(one, int) else len(one) for one in self._of.get(field, [])) > 10 * self.count:
            raise ValueError(self._other())
        return protobuf.numbers(self._of, field)

    def floats(self) -> list[float]:
        """Its floats, which are finite."""
        if self.kind not in _FLOATS:
            raise ValueError(f"the tensor `{self.name}` has elements of type {self.kind}, and not floats of 16, 32 or 64 bits")
        word, field = _FLOATS[self.kind]
        raw = self._bytes(word, field)
        if raw is not None:
            found = list(struct.unpack(f"<{self.count}{word}", raw))
        elif self.kind == 10:
            halves = self._numbers(field)
            if any(not 0 <= one < 1 << 16 for one in halves):
                raise ValueError(f"the tensor `{self.name}` has floats of more than 16 bits")
            found = list(struct.unpack(f"<{len(halves)}e", struct.pack(f"<{len(halves)}H", *halves)))
        else:
            if sum(8 if isinstance(one, int) else len(one) for one in self._of.get(field, [])) > 8 * self.count:
                raise ValueError(self._other())
            found = protobuf.floats(self._of, field, word)
        if len(found) != self.count:
            raise ValueError(self._other())
        if not all(map(math.isfinite, found)):
            raise ValueError(f"the tensor `{self.name}` has a number that is not finite")
        return found

    def integers(self) -> list[int]:
        """Its whole numbers."""
        if self.kind not in _INTEGERS:
            raise ValueError(f"the tensor `{self.name}` has elements of type {self.kind}, and not integers of 32 or 64 bits")
        word, field = _INTEGERS[self.kind]
        raw = self._bytes(word, field)
        found = [int(one) for one in struct.unpack(f"<{self.count}{word}", raw)] if raw is not None else self._numbers(field)
        if len(found) != self.count:
            raise ValueError(self._other())
        return found


class Attributes:
    """The attributes of a node."""

    def __init__(self, node: Fields) -> None:
        self._of: dict[str, Fields] = {}
        self._read: set[str] = set()
        for raw in node.get(5, []):
            one = protobuf.fields(raw)
            name = protobuf.text(one, 1)
            if name in self._of or 21 in one:
                raise ValueError(f"the attribute {name} is there twice, or is another's")
            self._of[name] = one

    def _take(self, name: str, kind: int, field: int) -> Fields | None:
        self._read.add(name)
        of = self._of.get(name)
        if of is None:
            return None
        found = protobuf.number(of, 20)
        # Former files do not say the type: then it is that of the field.
        if found != kind and (found != 0 or field not in of):
            raise ValueError(f"the attribute {name} is {_TYPES.get(found, 'of another type')}, and not {_TYPES[kind]}")
        return of

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return name in self._of

    def integer(self, name: str, otherwise: int) -> int:
        """A whole number."""
        of = self._take(name, 2, 3)
        return otherwise if of is None else protobuf.number(of, 3)

    def integers(self, name: str, count: int | None = None) -> list[int] | None:
        """Whole numbers, so many of them."""
        of = self._take(name, 7, 8)
        if of is None:
            return None
        found = _sizes(of, 8)
        if count is not None and len(found) != count:
            raise ValueError(f"the attribute {name} has {len(found)} numbers, and not {count}: images have rows and columns")
        return found

    def float(self, name: str, otherwise: float) -> float:
        """A number, which is finite."""
        of = self._take(name, 1, 2)
        found = otherwise if of is None else (protobuf.floats(of, 2) or [0.0])[-1]
        if not math.isfinite(found):
            raise ValueError(f"the attribute {name} is not finite")
        return found

    def text(self, name: str, otherwise: str) -> str:
        """A text."""
        of = self._take(name, 3, 4)
        return otherwise if of is None else protobuf.text(of, 4)

    def tensor(self, name: str, of_node: str) -> Tensor | None:
        """A tensor."""
        of = self._take(name, 4, 5)
        return None if of is None else Tensor(protobuf.fields(of.get(5, [b""])[-1]), of_node)

    def ignore(self, *names: str) -> None:
        """What makes no difference."""
        self._read.update(names)

    def rest(self) -> None:
        """All are read, or the node is not."""
        unknown = sorted(set(self._of) - self._read)
        if unknown:
            raise ValueError(f"the attribute {unknown[0]} is not known")


@dataclass
class Node:
    """An operator, what it reads (an empty name is nothing), what it makes, and its attributes."""

    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: Attributes

    def __str__(self) -> str:
        return f"{self.operator} `{self.outputs[0]}`"


@dataclass
class Graph:
    """Nodes that the output needs, constants, and who wrote the file."""

    nodes: list[Node]
    constants: dict[str, Tensor]
    opset: int
    writer: str
    input: str
    kind: int
    # Without that of the batch, which is None if it is any number.
    sizes: tuple[int, ...]
    batch: int | None
    output: str
    uses: dict[str, int]


def _texts(of: Fields, which: int) -> list[str]:
    found = of.get(which, [])
    if any(isinstance(one, int) for one in found):
        raise ValueError("a number stands where a name should")
    return [one.decode("utf-8") for one in found if isinstance(one, bytes)]


def _message(of: Fields, which: int) -> Fields:
    return protobuf.fields(of.get(which, [b""])[-1])


def _opset(whole: Fields) -> int:
    found = [protobuf.number(one, 2) for one in map(protobuf.fields, whole.get(8, [])) if protobuf.text(one, 1) in ("", "ai.onnx")]
    if len(found) != 1 or found[0] not in _OPSETS:
        said = ", ".join(map(str, found)) or "none"
        raise ValueError(f"a file of ai.onnx {_OPSETS.start} to {_OPSETS.stop - 1} is read, and this one has version {said}")
    return found[0]


def _input(of: Fields) -> tuple[str, int, tuple[int, ...], int | None]:
    """The name of an input, the type of its elements, its dimensions, and that of the batch."""
    name, tensor = protobuf.text(of, 1), _message(_message(of, 2), 1)
    kind = protobuf.number(tensor, 1)
    if kind not in GIVEN:
        raise ValueError(f"the input `{name}` has elements of type {kind}, and not numbers")
    all = _message(tensor, 2).get(1, [])
    if not 2 <= len(all) <= _MOST_DIMENSIONS:
        raise ValueError(f"the input `{name}` has {len(all)} dimensions, and not a batch and those of a row")
    # A dimension that has a name, or nothing at all, is any number.
    sizes = [protobuf.number(one, 1) if 1 in one else None for one in map(protobuf.fields, all)]
    rest = [size for size in sizes[1:] if size is not None]
    if len(rest) < len(sizes) - 1 or any(size < 1 for size in rest):
        raise ValueError(f"the input `{name}` has the dimensions {sizes}, and not known ones after the batch")
    batch = sizes[0]
    if batch is not None and batch < 1:
        # Former writers say so of any number.
        batch = None
    return name, kind, tuple(rest), batch


def _node(of: Fields, operators: Sequence[str]) -> Node:
    operator, domain = protobuf.text(of, 4), protobuf.text(of, 7)
    if operator not in operators or domain not in ("", "ai.onnx") or 8 in of:
        whole = f"{domain}.{operator}" if domain not in ("", "ai.onnx") else operator
        raise ValueError(f"the operator {whole} is not read: there are {', '.join(operators)}")
    inputs, outputs = _texts(of, 1), _texts(of, 2)
    if not outputs or not outputs[0]:
        raise ValueError(f"a node {operator} makes nothing")
    try:
        return Node(operator, inputs, outputs, Attributes(of))
    except ValueError as error:
        raise ValueError(f"{operator} `{outputs[0]}`: {error}") from None


def read(data: bytes, operators: Sequence[str]) -> Graph:
    """The graph of a file, if all its operators are among these."""
    try:
        whole = protobuf.fields(data)
        (graph,) = map(protobuf.fields, whole.get(7, []))
        nodes = list(map(protobuf.fields, graph.get(1, [])))
        tensors = list(map(protobuf.fields, graph.get(5, [])))
        inputs = list(map(protobuf.fields, graph.get(11, [])))
        outputs = list(map(protobuf.fields, graph.get(12, [])))
        writer = f"{protobuf.text(whole, 2)} {protobuf.text(whole, 3)}".strip()
    except ValueError as error:
        raise ValueError(f"it is no ONNX file: {error}") from None
    opset = _opset(whole)
    if 25 in whole or 20 in whole:
        raise ValueError("a file with functions of its own, or with steps of training, is not read")
    if 15 in graph:
        raise ValueError("a graph with sparse tensors is not read")
    if len(nodes) > _MOST_NODES:
        raise ValueError(f"a graph of {len(nodes)} nodes is not read: there are at most {_MOST_NODES}")
    constants: dict[str, Tensor] = {}
    for one in tensors:
        name = protobuf.text(one, 8)
        if name in constants or not name:
            raise ValueError(f"two tensors have the name `{name}`, or one has none")
        constants[name] = Tensor(one, name)
    given = [one for one in inputs if protobuf.text(one, 1) not in constants]
    if len(given) != 1 or len(outputs) != 1:
        raise ValueError(f"a network has one input and one output, and this graph has {len(given)} and {len(outputs)}")
    name, kind, sizes, batch = _input(given[0])
    output = protobuf.text(outputs[0], 1)
    order = [_node(one, operators) for one in nodes]
    made = {name, *constants}
    for node in order:
        for one_name in node.inputs:
            if one_name and one_name not in made:
                raise ValueError(f"{node} reads `{one_name}`, which is not made before")
        for one_name in node.outputs:
            if one_name and one_name in made:
                raise ValueError(f"{node} makes `{one_name}`, which is there already")
            made.add(one_name)
    if output not in made or output == name:
        raise ValueError(f"the output `{output}` is made by no node")
    if output in constants:
        raise ValueError(f"the output `{output}` is a weight, and nothing that is computed")
    # What the output needs, from the last node on.
    uses: dict[str, int] = {output: 1}
    live = []
    for node in reversed(order):
        if any(one_name in uses for one_name in node.outputs if one_name):
            live.append(node)
            for one_name in node.inputs:
                uses[one_name] = uses.get(one_name, 0) + 1
    return Graph(live[::-1], constants, opset, writer, name, kind, sizes, batch, output, uses)
