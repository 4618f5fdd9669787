"""Ensembles of trees from ONNX files: the operators `TreeEnsembleRegressor` and `TreeEnsembleClassifier` of `ai.onnx.ml`, and nothing else."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from . import protobuf
from .floats import SINGLE
from .protobuf import Fields
from .trees import Branch, Leaf, Number, compared, model, named, tree

_DOMAIN = "ai.onnx.ml"
_OPSETS = range(1, 5)
_ENSEMBLES = ("TreeEnsembleRegressor", "TreeEnsembleClassifier")
# What stands around an ensemble and changes no value.
_AROUND = {"Cast", "Identity", "ZipMap", "Reshape", "Flatten"}
_FLOAT, _DOUBLE = 1, 11


@dataclass
class _Node:
    feature: int
    mode: str
    value: float
    yes: int
    no: int
    null: bool
    weights: dict[int, Number] = field(default_factory=dict)


def _tensor(of: Fields) -> list[float]:
    """A list of floats of a tensor, which has its data in itself."""
    if protobuf.number(of, 14) != 0 or 13 in of:
        raise ValueError("a tensor has its data in another file")
    kind = protobuf.number(of, 2)
    if kind not in (_FLOAT, _DOUBLE):
        raise ValueError(f"a tensor has elements of type {kind}, and not floats")
    word = "f" if kind == _FLOAT else "d"
    found = protobuf.floats(of, 9, word) if 9 in of else protobuf.floats(of, 4 if kind == _FLOAT else 10, word)
    sizes = protobuf.numbers(of, 1)
    if len(sizes) != 1 or sizes[0] != len(found):
        raise ValueError("a tensor has not as many elements as it says")
    return found


class _Attributes:
    """The attributes of an ensemble, of which each is read."""

    def __init__(self, node: Fields) -> None:
        self.of: dict[str, Fields] = {}
        for raw in node.get(5, []):
            one = protobuf.fields(raw)
            name = protobuf.text(one, 1)
            if name in self.of or 21 in one:
                raise ValueError(f"the attribute {name} is there twice, or is another's")
            self.of[name] = one
        self.read: set[str] = set()

    def _take(self, name: str) -> Fields:
        self.read.add(name)
        return self.of.get(name, {})

    def numbers(self, name: str) -> list[int]:
        return protobuf.numbers(self._take(name), 8)

    def floats(self, name: str) -> list[float]:
        tensor = self._take(f"{name}_as_tensor")
        if 5 in tensor:
            return _tensor(protobuf.fields(tensor[5][-1]))
        return protobuf.floats(self._take(name), 7)

    def texts(self, name: str) -> list[str]:
        found = self._take(name).get(9, [])
        return [one.decode("utf-8") for one in found if isinstance(one, bytes)]

    def text(self, name: str, otherwise: str) -> str:
        return protobuf.text(self._take(name), 4) or otherwise

    def number(self, name: str) -> int:
        return protobuf.number(self._take(name), 3)

    def rest(self) -> None:
        unknown = sorted(set(self.of) - self.read)
        if unknown:
            raise ValueError(f"the ensemble has the unknown attribute {unknown[0]}")


def _ensemble(data: bytes) -> tuple[str, _Attributes, str]:
    """The one operator that computes, its attributes, and who wrote the file."""
    try:
        whole = protobuf.fields(data)
        opsets = {protobuf.text(one, 1): protobuf.number(one, 2) for one in map(protobuf.fields, whole.get(8, []))}
        (graph,) = map(protobuf.fields, whole.get(7, []))
        nodes = list(map(protobuf.fields, graph.get(1, [])))
        writer = f"{protobuf.text(whole, 2)} {protobuf.text(whole, 3)}".strip()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no ONNX file: {error}") from None
    for tensor in map(protobuf.fields, graph.get(5, [])):
        if protobuf.number(tensor, 14) != 0 or 13 in tensor:
            raise ValueError("a tensor has its data in another file")
    if graph.get(15):
        raise ValueError("a graph with sparse tensors is not read")
    found = []
    for node in nodes:
        operator, domain = protobuf.text(node, 4), protobuf.text(node, 7)
        if operator in _ENSEMBLES and domain == _DOMAIN:
            found.append((operator, node))
        elif operator not in _AROUND or domain not in ("", "ai.onnx", _DOMAIN):
            raise ValueError(f"the operator {operator} is not read: a file has one {' or '.join(_ENSEMBLES)}")
    if len(found) != 1:
        raise ValueError(f"a file has one {' or '.join(_ENSEMBLES)}, and this one has {len(found)}")
    version = opsets.get(_DOMAIN)
    if version not in _OPSETS:
        raise ValueError(f"version {version} of {_DOMAIN} is not read; there are {_OPSETS.start} to {_OPSETS.stop - 1}")
    operator, node = found[0]
    return operator, _Attributes(node), writer


def read(data: bytes, *, features: Sequence[str] | None, places: int, classes: Sequence[str] | None) -> dict[str, Any]:
    """What an ONNX file says."""
    operator, given, writer = _ensemble(data)
    nodes, trees = _nodes(given)
    classifies = operator == "TreeEnsembleClassifier"
    prefix, share = ("class", 1) if classifies else ("target", len(trees))
    if not classifies:
        # Sums, or means of all trees.
        aggregate = given.text("aggregate_function", "SUM")
        if aggregate not in ("SUM", "AVERAGE"):
            raise ValueError(f"the aggregate {aggregate} is not read: trees are added up, or averaged")
        share = share if aggregate == "AVERAGE" else 1
        if given.number("n_targets") not in (0, 1):
            raise ValueError("a model of several targets is not read")
    after = given.text("post_transform", "NONE")
    if after not in (("NONE", "LOGISTIC", "SOFTMAX") if classifies else ("NONE",)):
        raise ValueError(f"the transform {after} is not read")
    base: list[Number] = list(given.floats("base_values"))
    labels = given.texts("classlabels_strings") + [str(one) for one in given.numbers("classlabels_int64s")] if classifies else []
    which = _weights(given, prefix, nodes, share)
    given.rest()
    if classes is not None:
        if len(classes) != len(labels):
            raise ValueError(f"the model has {len(labels)} classes, and {len(classes)} are named")
        labels = list(classes)
    count = max((node.feature for node in nodes.values() if node.mode != "LEAF"), default=0) + 1
    # A file does not say how many there are: the last may be in no split.
    names = named(features, max(count, len(features or ())))
    tracks = any(node.null for node in nodes.values())
    scores = max(len(labels), 1)
    signs: list[tuple[int, Number]] | None = None
    if len(labels) == 2 and len(which) <= 1:
        scores = 1
        # One score is of the second class: a probability if no leaf is negative, of which the first has the rest; else the logarithm of odds.
        positive = all(weight >= 0 for node in nodes.values() for weight in node.weights.values())
        probability = positive and after == "NONE"
        one = base[0] if base else 0
        base = [1 - Fraction(one) if probability else 0, one]
        signs = [(0, -1 if probability else 0), (0, 1)]
        for node in nodes.values():
            node.weights = {0: weight for weight in node.weights.values()}
    elif any(at >= scores or at < 0 for at in which):
        raise ValueError(f"a leaf adds to score {max(which)}, and there are {scores}")
    base = base or [0] * scores
    if len(base) != (2 if signs else scores):
        raise ValueError(f"there are {len(base)} base values for {scores} scores")

    def at(number: int, id: int) -> Branch | Leaf:
        node = nodes.get((number, id))
        if node is None:
            raise ValueError(f"tree {number} has no node {id}")
        if node.mode == "LEAF":
            if signs:
                return Leaf([Fraction(node.weights.get(of, 0)) * sign for of, sign in signs])
            return Leaf([node.weights.get(score, 0) for score in range(scores)])
        strict = node.mode in ("BRANCH_LT", "BRANCH_GTE")
        null = node.null if tracks else None
        yes, no = node.yes, node.no
        if node.mode in ("BRANCH_GT", "BRANCH_GTE"):
            # Not at most, and not less than.
            yes, no, null = no, yes, None if null is None else not null
        return Branch(node.feature, compared(node.value, strict, SINGLE), yes, no, null)

    roots = [tree(functools.partial(at, number), names, places, root) for number, root in trees]
    source = f"ONNX {operator}" + (f", written by {writer}" if writer else "")
    return model(source=source, features=names, values={}, places=places, trees=[{"root": root} for root in roots], base=base, classes=labels)


def _nodes(given: _Attributes) -> tuple[dict[tuple[int, int], _Node], list[tuple[int, int]]]:
    """The nodes by tree and number, and the root of each tree."""
    trees, ids = given.numbers("nodes_treeids"), given.numbers("nodes_nodeids")
    features, modes = given.numbers("nodes_featureids"), given.texts("nodes_modes")
    values = given.floats("nodes_values")
    yes, no = given.numbers("nodes_truenodeids"), given.numbers("nodes_falsenodeids")
    nulls = given.numbers("nodes_missing_value_tracks_true") or [0] * len(ids)
    given.floats("nodes_hitrates")
    if not ids or len({len(of) for of in (trees, ids, features, modes, values, yes, no, nulls)}) != 1:
        raise ValueError("the nodes of the ensemble have attributes of different lengths")
    nodes: dict[tuple[int, int], _Node] = {}
    roots: dict[int, int] = {}
    for at, (number, id) in enumerate(zip(trees, ids)):
        if (number, id) in nodes:
            raise ValueError(f"tree {number} has two nodes {id}")
        if modes[at] not in ("LEAF", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"):
            raise ValueError(f"a node of the mode {modes[at]} is not read")
        nodes[number, id] = _Node(features[at], modes[at], values[at], yes[at], no[at], nulls[at] == 1)
        # The first node of a tree is its root.
        roots.setdefault(number, id)
    return nodes, sorted(roots.items())


def _weights(given: _Attributes, prefix: str, nodes: dict[tuple[int, int], _Node], share: int) -> set[int]:
    """Puts what leaves give to them, and says which scores there are."""
    trees, ids = given.numbers(f"{prefix}_treeids"), given.numbers(f"{prefix}_nodeids")
    scores, weights = given.numbers(f"{prefix}_ids"), given.floats(f"{prefix}_weights")
    if len({len(of) for of in (trees, ids, scores, weights)}) != 1:
        raise ValueError("the leaves of the ensemble have attributes of different lengths")
    for number, id, score, weight in zip(trees, ids, scores, weights):
        node = nodes.get((number, id))
        if node is None or node.mode != "LEAF":
            raise ValueError(f"tree {number} has no leaf {id}")
        if score in node.weights:
            raise ValueError(f"leaf {id} of tree {number} adds to score {score} twice")
        if weight != weight or weight in (float("inf"), float("-inf")):
            raise ValueError("a leaf is no finite number")
        node.weights[score] = Fraction(weight) / share
    return set(scores)
