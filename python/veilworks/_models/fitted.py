"""Trees that were fitted to secret rows and opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .trees import Branch, Leaf, model, named, tree


def read(rows: Sequence[Mapping[str, Any]], *, features: Sequence[str] | None, places: int, classes: Sequence[str] | None, values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The model of the nodes that a query with a tree has opened."""
    nodes = {int(row["node"]): row for row in rows}
    if len(nodes) != len(rows):
        raise ValueError("two nodes of the tree have one number")
    if 1 not in nodes:
        raise ValueError("the tree has no root: fewer rows counted than a node has at least")
    columns = list(nodes[1])
    shares = [name for name in columns if name.startswith("share_")]
    by = next((name for name in ("share", "mean") if name in columns), None)
    if by is None and not shares:
        raise ValueError("nodes of a tree have the columns `share`, `share_0` and so on, or `mean`")
    labels = [str(label) for label in classes or ()]
    if by is None and len(labels) != len(shares):
        raise ValueError(f"the tree has {len(shares)} classes, and {len(labels)} are named; say classes=[...], in the order of their texts")
    if by == "mean" and labels or by == "share" and len(labels) not in (0, 2):
        raise ValueError("a tree of a number has no classes" if by == "mean" else "the tree is of a condition: name two classes, of false and of true, or none")
    found = sorted({str(row["feature"]) for row in rows if row["feature"] is not None})
    names = named(found if features is None else features, len(found) if features is None else len(features))
    unknown = sorted({*found, *values} - {*names})
    if unknown:
        raise ValueError(f"the tree asks for `{unknown[0]}`, and the features are {', '.join(names)}")

    def leaf(row: Mapping[str, Any]) -> Leaf:
        given = [Fraction(row[name]) for name in ([by] if by else shares)]
        return Leaf([1 - given[0], given[0]] if by == "share" and labels else given)

    def node(at: int) -> Branch | Leaf:
        if at not in nodes:
            raise ValueError(f"node {at // 2} is split, and its child {at} is not there: open all nodes of the tree")
        row = nodes[at]
        if row["feature"] is None:
            return leaf(row)
        name, cut = str(row["feature"]), str(row["cut"])
        if name in values:
            asked = ["in", [cut]]
        else:
            try:
                # A condition is 0 where it is false.
                threshold = "0" if cut == "false" else cut
                Fraction(threshold)
            except ValueError:
                raise ValueError(f"`{cut}` is no number: say values={{{name!r}: [...]}}, with all texts of the category") from None
            asked = ["<=", threshold]
        return Branch(names.index(name), asked, 2 * at, 2 * at + 1)

    root = tree(node, names, places, 1)
    count = len(labels) if labels else 1
    texts = {name: [str(one) for one in all] for name, all in values.items()}
    return model(source="a tree fitted by veilworks", features=names, values=texts, places=places, trees=[{"root": root}], base=[Fraction(0)] * count, classes=labels)
