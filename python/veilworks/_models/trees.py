"""Trees as arrays of nodes, as libraries keep them, and as a model's file has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Union

from .floats import decimal, rounded, test

MOST_DEPTH = 32
MOST_LEAVES = 4096
MOST_FEATURES = 1024

Number = Union[float, Fraction]


@dataclass(frozen=True)
class Branch:
    """A split: what is asked (`["<=", "41.5"]`, `["in", ["a"]]`) of which feature, where to go, and where without a value."""

    feature: int
    test: list[Any]
    yes: int
    no: int
    null: bool | None = None


@dataclass(frozen=True)
class Leaf:
    """What a tree gives."""

    values: Sequence[Number]


def named(features: Sequence[str] | None, count: int) -> list[str]:
    """The names of so many features: those that are given, else `f0`, `f1` and so on."""
    if not 0 < count <= MOST_FEATURES:
        raise ValueError(f"a model has 1 to {MOST_FEATURES} features, and not {count}")
    names = [f"f{at}" for at in range(count)] if features is None else list(features)
    if len(names) != count:
        raise ValueError(f"the model has {count} features, and {len(names)} are named")
    return names


def compared(threshold: float, strict: bool, through: tuple[str, ...]) -> list[str]:
    """A split of a number."""
    return test(float(threshold), strict, through)


def tree(node: Callable[[int], Branch | Leaf], features: Sequence[str], places: int, root: int = 0) -> Any:
    """The tree below a node. Nodes are those of a hostile file: one that is reached twice is refused."""
    seen: set[int] = set()
    leaves = 0

    def below(at: int, depth: int) -> Any:
        nonlocal leaves
        if at in seen:
            raise ValueError(f"node {at} of a tree is reached twice")
        seen.add(at)
        of = node(at)
        if isinstance(of, Leaf):
            leaves += 1
            if leaves > MOST_LEAVES:
                raise ValueError(f"a tree has more than {MOST_LEAVES} leaves")
            values = [decimal(rounded(value, places), places) for value in of.values]
            return values[0] if len(values) == 1 else values
        if depth == MOST_DEPTH:
            raise ValueError(f"a tree has more than {MOST_DEPTH} levels of splits; train it with max_depth={MOST_DEPTH}, or less")
        if not 0 <= of.feature < len(features):
            raise ValueError(f"a split is by feature {of.feature}, and there are {len(features)}")
        split: dict[str, Any] = {"if": [features[of.feature], *of.test], "yes": below(of.yes, depth + 1), "no": below(of.no, depth + 1)}
        if of.null is not None:
            split["null"] = "yes" if of.null else "no"
        return split

    return below(root, 0)


def model(
    *,
    source: str,
    features: Sequence[str],
    values: Mapping[str, Sequence[str]],
    places: int,
    trees: Sequence[dict[str, Any]],
    base: Sequence[Number],
    classes: Sequence[str] = (),
) -> dict[str, Any]:
    """What the file of a model has."""
    described = [{"name": name} | ({"values": list(values[name])} if name in values else {}) for name in features]
    of: dict[str, Any] = {"version": 1, "kind": "trees", "source": source, "places": places, "features": described}
    if classes:
        of["classes"] = list(classes)
    of["base"] = [decimal(rounded(one, places), places) for one in base]
    of["trees"] = list(trees)
    return of
