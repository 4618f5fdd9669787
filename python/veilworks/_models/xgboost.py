"""Models of XGBoost, from the JSON that `save_model("model.json")` writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from .floats import SINGLE, single
from .trees import Branch, Leaf, compared, model, named, tree

# Objectives whose prediction is the sum of the leaves and the base score.
_PLAIN = {"reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "reg:linear", "rank:ndcg", "rank:map", "rank:pairwise", "survival:cox"}
_LOGISTIC = {"binary:logistic", "reg:logistic"}
_MULTI = {"multi:softprob", "multi:softmax"}


def _list(of: Any, what: str) -> list[Any]:
    if not isinstance(of, list):
        raise ValueError(f"{what} is no list")
    return of


def _dict(of: Any, what: str) -> dict[str, Any]:
    if not isinstance(of, dict):
        raise ValueError(f"{what} is missing")
    return of


def _base(text: Any, outputs: int) -> list[float]:
    numbers = json.loads(text) if isinstance(text, str) and text.startswith("[") else [float(text)]
    numbers = [float(one) for one in numbers]
    if len(numbers) == 1:
        numbers *= outputs
    if len(numbers) != outputs or not all(map(math.isfinite, numbers)):
        raise ValueError(f"base_score {text!r} is not a number for each of {outputs} outputs")
    return numbers


def read(text: str | bytes, *, features: Sequence[str] | None, values: Mapping[str, Sequence[str]], places: int, classes: Sequence[str] | None) -> dict[str, Any]:
    """What the JSON of a booster says."""
    try:
        whole = _dict(json.loads(text), "the model")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None
    learner = _dict(whole.get("learner"), "learner")
    booster = _dict(learner.get("gradient_booster"), "gradient_booster")
    if booster.get("name") != "gbtree":
        raise ValueError(f"a booster of trees, gbtree, is read, and not {booster.get('name')!r}")
    forest = _dict(booster.get("model"), "model")
    parameters = _dict(learner.get("learner_model_param"), "learner_model_param")
    objective = str(_dict(learner.get("objective"), "objective").get("name"))
    count = int(parameters.get("num_feature", 0))
    names = named(features or learner.get("feature_names") or None, count)
    if int(parameters.get("num_target", 1) or 1) > 1:
        raise ValueError("a model of several targets is not read")
    best = _dict(learner.get("attributes", {}), "attributes").get("best_iteration")
    trees = _list(forest.get("trees"), "trees")
    many = max(int(parameters.get("num_class", 0)), 1)
    base = _base(parameters.get("base_score", "0.5"), many)
    if best is not None and (int(best) + 1) * many < len(trees):
        raise ValueError(f"training went on after the best iteration, {best}: slice the booster, booster[: {int(best) + 1}]")
    to: list[int] = _list(forest.get("tree_info"), "tree_info")
    if len(to) != len(trees):
        raise ValueError("tree_info is not of all trees")
    if objective in _MULTI:
        classes = list(classes) if classes is not None else [str(at) for at in range(many)]
        if len(classes) != many:
            raise ValueError(f"the model has {many} classes, and {len(classes)} are named")
        found = [{"class": classes[_at(to[at], many)], "root": _tree(one, names, values, places)} for at, one in enumerate(trees)]
    elif objective in _LOGISTIC or objective == "binary:logitraw":
        if objective in _LOGISTIC:
            if not 0 < base[0] < 1:
                raise ValueError(f"base_score {base[0]} is no probability")
            base = [math.log(base[0] / (1 - base[0]))]
        classes = list(classes) if classes is not None else ["0", "1"]
        if len(classes) != 2:
            raise ValueError(f"the model has two classes, and {len(classes)} are named")
        # The first class has score 0, the second its logarithm of odds.
        base = [0.0, base[0]]
        found = [{"class": classes[1], "root": _tree(one, names, values, places)} for one in trees]
    elif objective in _PLAIN:
        if classes is not None:
            raise ValueError(f"a model of {objective} has no classes")
        classes = ()
        found = [{"root": _tree(one, names, values, places)} for one in trees]
    else:
        raise ValueError(f"the objective {objective} is not read: its prediction is no sum of leaves")
    version = ".".join(map(str, whole.get("version", [])))
    source = f"XGBoost {version}, {objective}".replace("  ", " ")
    return model(source=source, features=names, values=values, places=places, trees=found, base=base, classes=classes)


def _at(of: Any, many: int) -> int:
    if not isinstance(of, int) or not 0 <= of < many:
        raise ValueError(f"a tree adds to class {of}, and there are {many}")
    return of


def _tree(of: Any, names: Sequence[str], values: Mapping[str, Sequence[str]], places: int) -> Any:
    of = _dict(of, "a tree")
    if int(_dict(of.get("tree_param"), "tree_param").get("size_leaf_vector", 1) or 1) > 1:
        raise ValueError("a tree with several numbers in a leaf is not read")
    arrays = {name: _list(of.get(name), name) for name in ("left_children", "right_children", "split_indices", "split_conditions", "default_left")}
    size = len(arrays["left_children"])
    if size == 0 or any(len(array) != size for array in arrays.values()):
        raise ValueError("a tree has arrays of different lengths")
    kinds = of.get("split_type") or [0] * size
    sets = _sets(of, size)

    def node(at: int) -> Branch | Leaf:
        if not isinstance(at, int) or not 0 <= at < size:
            raise ValueError(f"a tree has no node {at}")
        left, right = arrays["left_children"][at], arrays["right_children"][at]
        if left == -1 and right == -1:
            return Leaf([single(float(arrays["split_conditions"][at]))])
        feature = int(arrays["split_indices"][at])
        default = bool(arrays["default_left"][at])
        name = names[feature] if 0 <= feature < len(names) else ""
        if kinds[at] == 1:
            known = values.get(name)
            if known is None:
                raise ValueError(f"`{name}` is a category: say its values in the order of their codes, values={{{name!r}: [...]}}")
            codes = sets.get(at, [])
            if not all(0 <= code < len(known) for code in codes):
                raise ValueError(f"a split by `{name}` has a code beyond its {len(known)} values")
            # Those in the set go right.
            chosen = sorted({known[code] for code in codes})
            if not chosen or len(chosen) == len(known):
                raise ValueError(f"a split by `{name}` is by all of its values, or by none")
            return Branch(feature, ["in", chosen], right, left, not default)
        if name in values:
            raise ValueError(f"`{name}` is compared as a number, and has values")
        return Branch(feature, compared(single(float(arrays["split_conditions"][at])), True, SINGLE), left, right, default)

    return tree(node, names, places)


def _sets(of: dict[str, Any], size: int) -> dict[int, list[int]]:
    nodes, segments, sizes = (_list(of.get(name, []), name) for name in ("categories_nodes", "categories_segments", "categories_sizes"))
    codes = _list(of.get("categories", []), "categories")
    if not len(nodes) == len(segments) == len(sizes):
        raise ValueError("the categories of a tree are of different lengths")
    found: dict[int, list[int]] = {}
    for at, first, count in zip(nodes, segments, sizes):
        if not 0 <= first <= first + count <= len(codes):
            raise ValueError("the categories of a tree are beyond their end")
        found[at] = [int(code) for code in codes[first : first + count]]
    return found
