"""Multi-layer perceptrons of scikit-learn against their own predictions: no further from them than the rounding of weights, and doubles, allow."""

from __future__ import annotations

import math
import pathlib
import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from nets import Meant, class_of, meant
from nets import reader as reader

import veilworks as vw

datasets: Any = import_module("sklearn.datasets")
neural_network: Any = import_module("sklearn.neural_network")
pipeline: Any = import_module("sklearn.pipeline")
preprocessing: Any = import_module("sklearn.preprocessing")


def _fitted(kind: str, rows: Any, target: Any, *, hidden: Any = (12, 7), **more: Any) -> Any:
    return getattr(neural_network, kind)(hidden_layer_sizes=hidden, max_iter=60, random_state=1, **more).fit(rows, target)


def _scored(network: vw.Network, rows: Any) -> list[Meant]:
    return [meant(network, row.tolist(), float) for row in rows]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_digits_of_scikit_learn(activation: str) -> None:
    rows, target = datasets.load_digits(return_X_y=True)
    fitted = _fitted("MLPClassifier", rows, target, activation=activation)
    network = vw.network(fitted, features=[f"p{at}" for at in range(64)])
    assert network.classes == [str(at) for at in range(10)] and network.source.endswith("MLPClassifier")
    found = _scored(network, rows[:300])
    probable = fitted.predict_proba(rows[:300])
    clear = 0
    for one, wanted, label in zip(found, probable, fitted.predict(rows[:300])):
        # Of a softmax, logarithms differ as the scores do; each is off by its bound at most.
        differs = one.cells - one.cells[0] - (np.log(wanted) - np.log(wanted[0]))
        assert (np.abs(differs) <= one.bound + one.bound[0] + 1e-9 * (1 + np.abs(one.cells))).all()
        first, second = np.sort(one.cells)[:-3:-1]
        if first - second > 2 * one.bound.max():
            clear += 1
            assert class_of(network, one.cells) == str(label)
    assert clear > 290


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_classes_of_scikit_learn() -> None:
    data = datasets.load_breast_cancer(as_frame=True)
    labels = np.array(["benign", "malignant"])[1 - data.target]
    fitted = pipeline.make_pipeline(preprocessing.StandardScaler(), neural_network.MLPClassifier(hidden_layer_sizes=(8,), max_iter=40, random_state=1)).fit(data.data, labels)
    network = vw.network(fitted, places=12)
    assert network.classes == ["benign", "malignant"] and network.features == list(data.data.columns)
    assert network.source.endswith("MLPClassifier after StandardScaler")
    found = _scored(network, data.data.to_numpy())
    probable = fitted.predict_proba(data.data)[:, 1]
    for one, wanted, label in zip(found, probable, fitted.predict(data.data)):
        assert one.cells.shape == (1,)
        assert abs(1 / (1 + math.exp(-one.cells[0])) - wanted) <= one.bound[0] / 4 + 1e-9
        if abs(one.cells[0]) > one.bound[0]:
            assert class_of(network, one.cells) == label
    assert vw.network(fitted, classes=["no", "yes"]).classes == ["no", "yes"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scalers", [[], ["StandardScaler"], ["MinMaxScaler"], ["MinMaxScaler", "StandardScaler"]])
def test_diabetes_of_scikit_learn(scalers: list[str]) -> None:
    rows, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    steps: list[Any] = [getattr(preprocessing, name)() for name in scalers]
    fitted = pipeline.make_pipeline(*steps, "passthrough", neural_network.MLPRegressor(hidden_layer_sizes=(9, 5), max_iter=80, random_state=1)).fit(rows, target)
    network = vw.network(fitted, outputs=["progress"], places=12)
    assert network.outputs == ["progress"] and network.features == [f"x{at}" for at in range(10)]
    for one, wanted in zip(_scored(network, rows), fitted.predict(rows)):
        assert abs(one.cells[0] - wanted) <= one.bound[0] + 1e-9 * (1 + abs(wanted))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_several_targets_and_scalers_by_halves() -> None:
    rows, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    both = np.stack([target, -target / 3], axis=1)
    for more in ({"with_mean": False}, {"with_std": False}):
        fitted = pipeline.make_pipeline(preprocessing.StandardScaler(**more), neural_network.MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=20, random_state=1)).fit(rows, both)
        network = vw.network(fitted, places=12)
        assert network.outputs == ["output_0", "output_1"]
        for one, wanted in zip(_scored(network, rows[:50]), fitted.predict(rows[:50])):
            assert (np.abs(one.cells - wanted) <= one.bound + 1e-9 * (1 + np.abs(wanted))).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_of_scikit_learn_that_are_not_read() -> None:
    rows, target = datasets.load_diabetes(return_X_y=True, scaled=False)
    regressor = _fitted("MLPRegressor", rows, target, hidden=(3,))
    labels = np.stack([target > 100, target > 150, target > 200], axis=1).astype(int)
    broken = _fitted("MLPRegressor", rows, target, hidden=(3,))
    broken.coefs_[0][0, 0] = math.nan
    flat = preprocessing.StandardScaler().fit(rows)
    flat.scale_[2] = 0.0
    scaler, clipped = preprocessing.StandardScaler(), preprocessing.MinMaxScaler(clip=True)
    for fitted, why in [
        (import_module("sklearn.linear_model").LinearRegression().fit(rows, target), "a LinearRegression is not read; of scikit-learn there are MLPClassifier, MLPRegressor, and these after StandardScaler or MinMaxScaler in a Pipeline"),
        (pipeline.make_pipeline(preprocessing.PolynomialFeatures(), regressor), "a PolynomialFeatures is not read"),
        (pipeline.make_pipeline(regressor, scaler), "ends in its one network"),
        (pipeline.make_pipeline(regressor, regressor), "ends in its one network"),
        (pipeline.make_pipeline("passthrough"), "ends in its one network"),
        (scaler, "ends in its one network"),
        (neural_network.MLPRegressor(), "the MLPRegressor is not fitted"),
        (pipeline.make_pipeline(scaler, regressor), "the StandardScaler is not fitted, or has other features"),
        (pipeline.make_pipeline(clipped.fit(rows), regressor), "a MinMaxScaler that clips is not read"),
        (pipeline.make_pipeline(flat, regressor), "the StandardScaler divides by 0"),
        (_fitted("MLPClassifier", rows, labels, hidden=(3,)), "several labels"),
        (broken, "not finite"),
    ]:
        with pytest.raises(vw.JobError, match=why):
            vw.network(fitted)
    classifier = _fitted("MLPClassifier", rows, target > 150, hidden=(3,))
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (regressor, {"features": ["a"]}, "the network has 10 features, and 1 are named"),
        (regressor, {"features": "abcdefghij"}, "are lists of names"),
        (regressor, {"classes": ["a", "b"]}, "a MLPRegressor has outputs, and no classes"),
        (regressor, {"outputs": ["a", "b"]}, "the network has 1 outputs, and 2 are named"),
        (classifier, {"outputs": ["a"]}, "a MLPClassifier has classes, and no outputs"),
        (classifier, {"classes": ["a", "b", "c"]}, "has 2 classes, and 3 are named"),
        (regressor, {"places": 16}, "places are a number from 0 to 15"),
        (regressor, {"places": True}, "places are a number from 0 to 15"),
    ]
    for fitted, more, why in wrong:
        with pytest.raises(vw.JobError, match=why) as caught:
            vw.network(fitted, **more)
        assert caught.value.source is not None and caught.value.source.file.endswith("test_networks_sklearn.py")


def test_nothing_is_unpickled(tmp_path: pathlib.Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pathlib.Path.touch, (tmp_path / "exploded",))

    file = tmp_path / "network.joblib"
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(vw.JobError, match="is not loaded"):
        vw.network(file)
    with pytest.raises(vw.JobError, match="a Bomb is no network that is known"):
        vw.network(Bomb())
    assert not (tmp_path / "exploded").exists()
