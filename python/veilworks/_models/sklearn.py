"""Fitted trees and forests of scikit-learn, from the arrays of a live object. No pickle is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .floats import DOUBLE, SINGLE
from .trees import Branch, Leaf, compared, model, named, tree

_TREES = {"DecisionTreeRegressor", "ExtraTreeRegressor", "DecisionTreeClassifier", "ExtraTreeClassifier"}
_FORESTS = {"RandomForestRegressor", "ExtraTreesRegressor", "RandomForestClassifier", "ExtraTreesClassifier"}
_BOOSTED = {"GradientBoostingRegressor", "GradientBoostingClassifier"}
_BINNED = {"HistGradientBoostingRegressor", "HistGradientBoostingClassifier"}
_IDENTITY = {"squared_error", "absolute_error", "quantile", "huber"}


def reads(of: Any) -> bool:
    """Whether it is a model of scikit-learn."""
    return type(of).__module__.split(".")[0] == "sklearn"


def read(of: Any, *, features: Sequence[str] | None, places: int, classes: Sequence[str] | None) -> dict[str, Any]:
    """What a fitted model says."""
    kind = type(of).__name__
    if kind not in _TREES | _FORESTS | _BOOSTED | _BINNED:
        raise ValueError(f"a {kind} is not read; of scikit-learn there are {', '.join(sorted(_TREES | _FORESTS | _BOOSTED | _BINNED))}")
    count = getattr(of, "n_features_in_", None)
    if count is None:
        raise ValueError(f"the {kind} is not fitted")
    names = [str(name) for name in named(features if features is not None else getattr(of, "feature_names_in_", None), count)]
    labels = [str(label) for label in of.classes_] if hasattr(of, "classes_") and kind.endswith("Classifier") else []
    if classes is not None:
        if len(classes) != len(labels):
            raise ValueError(f"the model has {len(labels)} classes, and {len(classes)} are named")
        labels = list(classes)
    import sklearn

    made: dict[str, Any] = {"source": f"scikit-learn {sklearn.__version__}, {kind}", "features": names, "values": {}, "places": places}
    if kind in _BINNED:
        return _binned(of, labels, names, made)
    if kind in _BOOSTED:
        return _boosted(of, labels, names, made)
    many = list(of.estimators_) if kind in _FORESTS else [of]
    if getattr(of, "n_outputs_", 1) != 1:
        raise ValueError("a model of several targets is not read")
    nulls = _nulls(many[0])
    trees = [{"root": tree(_node(one.tree_, len(many), bool(labels), nulls), names, places)} for one in many]
    return model(trees=trees, base=[0.0] * max(len(labels), 1), classes=labels, **made)


def _nulls(of: Any) -> bool:
    """Whether its splits say where rows without a value go."""
    tags = getattr(of, "__sklearn_tags__", None)
    return bool(tags is not None and tags().input_tags.allow_nan and hasattr(of.tree_, "missing_go_to_left"))


def _node(of: Any, share: int, labelled: bool, nulls: bool, rate: float | None = None) -> Any:
    """The nodes of a `tree_`, whose leaves count as the `share`-th part, or times a rate."""

    def node(at: int) -> Branch | Leaf:
        left, right = int(of.children_left[at]), int(of.children_right[at])
        if left == -1:
            values = [float(value) for value in of.value[at][0]]
            if labelled:
                # Parts of the rows of a leaf; former versions have their numbers.
                total = sum(map(Fraction, values))
                return Leaf([Fraction(value) / total / share for value in values])
            return Leaf([Fraction(value) * (Fraction(1, share) if rate is None else Fraction(rate)) for value in values])
        null = bool(of.missing_go_to_left[at]) if nulls else None
        return Branch(int(of.feature[at]), compared(float(of.threshold[at]), False, SINGLE), left, right, null)

    return node


def _scored(labels: list[str], base: list[float], roots: list[list[Any]]) -> dict[str, Any]:
    """Rounds of trees, one for each score; of two classes the second alone has one."""
    if not labels:
        return {"base": base, "classes": [], "trees": [{"root": one} for (one,) in roots]}
    if len(base) == 1:
        return {"base": [0.0, base[0]], "classes": labels, "trees": [{"class": labels[1], "root": one} for (one,) in roots]}
    return {"base": base, "classes": labels, "trees": [{"class": label, "root": one} for round in roots for label, one in zip(labels, round)]}


def _boosted(of: Any, labels: list[str], names: list[str], made: dict[str, Any]) -> dict[str, Any]:
    first = type(of.init_).__name__
    if first not in ("DummyRegressor", "DummyClassifier", "str") and of.init_ != "zero":
        raise ValueError(f"a model that begins with a {first} is not read; leave init out")
    if of.loss == "exponential":
        raise ValueError("the loss exponential is not read")
    import numpy

    base = [float(value) for value in of._raw_predict_init(numpy.zeros((1, len(names)), dtype=numpy.float32)).ravel()]
    roots = [[tree(_node(one.tree_, 1, False, False, of.learning_rate), names, made["places"]) for one in round] for round in of.estimators_]
    return model(**made, **_scored(labels, base, roots))


def _binned(of: Any, labels: list[str], names: list[str], made: dict[str, Any]) -> dict[str, Any]:
    if not labels and of.loss not in _IDENTITY:
        raise ValueError(f"the loss {of.loss} is not read: its prediction is no sum of leaves")
    if of.is_categorical_ is not None and of.is_categorical_.any():
        raise ValueError("categorical features of this model are not read: encode them as columns of 0 and 1, or use XGBoost")

    def root(predictor: Any) -> Any:
        nodes = predictor.nodes

        def node(at: int) -> Branch | Leaf:
            one = nodes[at]
            if one["is_leaf"]:
                return Leaf([float(one["value"])])
            return Branch(int(one["feature_idx"]), compared(float(one["num_threshold"]), False, DOUBLE), int(one["left"]), int(one["right"]), bool(one["missing_go_to_left"]))

        return tree(node, names, made["places"])

    base = [float(value) for value in of._baseline_prediction.ravel()]
    return model(**made, **_scored(labels, base, [[root(one) for one in round] for round in of._predictors]))
