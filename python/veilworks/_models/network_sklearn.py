"""Fitted multi-layer perceptrons of scikit-learn, from the arrays of a live object. No pickle is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .networks import Affine, Chain, Value, model, named

_NETWORKS = ("MLPClassifier", "MLPRegressor")
_SCALERS = ("StandardScaler", "MinMaxScaler")
_ACTIVATIONS = {"identity": None, "relu": "relu", "tanh": "tanh", "logistic": "sigmoid"}


def _finite(of: Any, count: int, what: str) -> list[float]:
    found = [float(one) for one in of]
    if len(found) != count or not all(map(math.isfinite, found)):
        raise ValueError(f"{what} has {len(found)} numbers for {count}, or one that is not finite")
    return found


def _scaler(of: Any, count: int) -> Affine:
    """What a scaler does to each feature."""
    kind = type(of).__name__
    if getattr(of, "n_features_in_", None) != count:
        raise ValueError(f"the {kind} is not fitted, or has other features than the network")
    if kind == "StandardScaler":
        means = [Fraction(one) for one in _finite(of.mean_, count, "its mean_")] if of.with_mean else [Fraction(0)] * count
        deviations = _finite(of.scale_, count, "its scale_") if of.with_std else [1.0] * count
        if 0 in deviations:
            raise ValueError(f"the {kind} divides by 0")
        scales = [1 / Fraction(one) for one in deviations]
        return Affine(tuple(scales), tuple(-mean * scale for mean, scale in zip(means, scales)), kind)
    if of.clip:
        raise ValueError(f"a {kind} that clips is not read")
    scales, summands = ([Fraction(one) for one in _finite(array, count, f"its {name}")] for array, name in ((of.scale_, "scale_"), (of.min_, "min_")))
    return Affine(tuple(scales), tuple(summands), kind)


def _steps(of: Any) -> tuple[list[Any], Any]:
    """Scalers, and the network after them."""
    steps = [of]
    if type(of).__name__ == "Pipeline":
        steps = [step for _, step in of.steps if step is not None and step != "passthrough"]
    for step in steps:
        if type(step).__module__.split(".")[0] != "sklearn" or type(step).__name__ not in _NETWORKS + _SCALERS:
            raise ValueError(f"a {type(step).__name__} is not read; of scikit-learn there are {', '.join(_NETWORKS)}, and these after {' or '.join(_SCALERS)} in a Pipeline")
    if not steps or type(steps[-1]).__name__ not in _NETWORKS or any(type(step).__name__ in _NETWORKS for step in steps[:-1]):
        raise ValueError("a Pipeline ends in its one network")
    return steps[:-1], steps[-1]


def read(of: Any, *, features: Sequence[str] | None, places: int, classes: Sequence[str] | None, outputs: Sequence[str] | None) -> dict[str, Any]:
    """What a fitted network says."""
    scalers, network = _steps(of)
    kind = type(network).__name__
    if not hasattr(network, "coefs_"):
        raise ValueError(f"the {kind} is not fitted")
    count = int(network.n_features_in_)
    first = scalers[0] if scalers else network
    names = named(features if features is not None else getattr(first, "feature_names_in_", None), count, "x")
    chain = Chain()
    value = Value(-1, (count, 1, 1))
    for scaler in scalers:
        value = chain.scaled(value, _scaler(scaler, count))
    if network.activation not in _ACTIVATIONS:
        raise ValueError(f"the activation {network.activation} is not read")
    word = _ACTIVATIONS[network.activation]
    last = len(network.coefs_) - 1
    for at, (weights, bias) in enumerate(zip(network.coefs_, network.intercepts_)):
        width = len(bias)
        rows = [_finite(row, value.count, f"output {to} of layer {at}") for to, row in enumerate(weights.T.tolist())]
        value = chain.linear(value, rows, _finite(bias.tolist(), width, f"the bias of layer {at}"))
        if at < last and word is not None:
            value = chain.activation(value, word)
    labels: list[str] | None = None
    if kind == "MLPClassifier":
        labels = [str(one) for one in network.classes_]
        if network.out_activation_ not in ("softmax", "logistic") or (network.out_activation_ == "logistic" and value.count != 1):
            raise ValueError("a network of several labels in a row is not read")
        if outputs is not None:
            raise ValueError("a MLPClassifier has classes, and no outputs")
        labels = labels if classes is None else list(classes)
    elif network.out_activation_ != "identity":
        raise ValueError(f"what the network gives is the {network.out_activation_} of its sums, which is not read")
    elif classes is not None:
        raise ValueError("a MLPRegressor has outputs, and no classes")
    chain.finish(value)
    import sklearn

    called = " after ".join([kind, *(type(one).__name__ for one in reversed(scalers))])
    return model(chain, value.count, source=f"scikit-learn {sklearn.__version__}, {called}", features=names, places=places, classes=labels, outputs=outputs)
