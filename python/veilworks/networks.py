"""Networks: read from other libraries once, written down in decimals, and applied to tables."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from . import _veil
from ._models import network_onnx, network_sklearn, sklearn
from ._source import here
from .errors import JobError
from .models import content
from .secret import Bounds, Weights, column, split

_MOST_PLACES = 15


class Network:
    """Layers as they are in a network's file, with all weights, exact, or with bounds of those that an owner brings. What the file has is public to all participants of a
    job that applies it."""

    def __init__(self, text: str) -> None:
        try:
            self._said, self._cells, self._secret = _veil.read_network("model", text)
            of = json.loads(text)
        except ValueError as error:
            raise JobError(f"this is no network: {error}", source=here()) from None
        self.text = text
        self.features: list[str] = [feature["name"] for feature in of["features"]]
        self.classes: list[str] = of.get("classes", [])
        self.outputs: list[str] = of.get("outputs", [])
        self.places: int = of["places"]
        self.source: str = of["source"]
        self._of = of

    @property
    def secret(self) -> int:
        """How many weights and biases an owner brings: the rows of their table; 0 if all are in the file."""
        return self._secret

    @property
    def declared(self) -> dict[str, Any]:
        """The table of weights that an owner brings, as a job declares it: `job.table("weights", owner="lab", **shape.declared)`."""
        if not self._secret:
            raise JobError("all weights of the network are in its file", source=here(), help="shape, weights = network.split() takes them out")
        return {"rows": self._secret, "columns": column(self._of)}

    def split(self, bounds: Bounds | None = None) -> tuple[Network, Weights]:
        """The shape of the network, which is public, and its weights, which an owner brings as a table of one column.

        `bounds` are the greatest absolute values of weights and of biases, a pair for all layers or a list with one for each layer that has weights: they are public, and the narrower
        they are, the nearer numbers come to real ones. Without them those of a layer are the least of 1, 2, 5, 10, 20, … and 0.5, 0.2, 0.1, … that are not below.
        """
        source = here()
        try:
            of, weights = split(self._of, bounds)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise JobError(f"the network is not split: {error}", source=source) from None
        return Network(json.dumps(of, ensure_ascii=False, separators=(",", ":"))), weights

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Network:
        """The network of a file that `save` has written."""
        try:
            return Network(pathlib.Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise JobError(f"{os.fspath(path)} cannot be read: {error}", source=here()) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file that a job names: `[model.digits]`, `file = "digits.json"`."""
        pathlib.Path(path).write_text(self.text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Network {self._said.partition(': ')[2]}>"


def network(
    of: Any,
    *,
    features: Sequence[str] | None = None,
    places: int = 9,
    classes: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> Network:
    """A network of another library: a fitted `MLPClassifier` or `MLPRegressor` of scikit-learn, also after a scaler in a `Pipeline`, or the path of an `.onnx` file.

    `features` are the names of its features in their order, of images channel by channel and row by row; `classes` those of its classes, or `outputs` those of
    the numbers that it gives. Weights are read exactly, with what is folded into them, and rounded once, to `places` decimals. A softmax at the end is left
    out: scores of classes are what it takes.
    """
    source = here()
    if isinstance(places, bool) or not isinstance(places, int) or not 0 <= places <= _MOST_PLACES:
        raise JobError(f"places are a number from 0 to {_MOST_PLACES}", source=source)
    for names in (features, classes, outputs):
        if isinstance(names, str):
            raise JobError("features, classes and outputs are lists of names", source=source)
    try:
        made = _read(of, features, places, classes, outputs)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise JobError(f"the network is not read: {error}", source=source) from None
    return Network(json.dumps(made, ensure_ascii=False, separators=(",", ":")))


def _read(of: Any, features: Sequence[str] | None, places: int, classes: Sequence[str] | None, outputs: Sequence[str] | None) -> dict[str, Any]:
    if sklearn.reads(of):
        return network_sklearn.read(of, features=features, places=places, classes=classes, outputs=outputs)
    if not isinstance(of, (str, os.PathLike)):
        raise ValueError(f"a {type(of).__name__} is no network that is known: give one of scikit-learn, or the path of an `.onnx` file")
    path = pathlib.Path(of)
    data = content(path)
    if path.suffix != ".onnx":
        raise ValueError(f"{path} is no `.onnx` file")
    return network_onnx.read(data, name=path.name, features=features, places=places, classes=classes, outputs=outputs)


class NetworkModel:
    """A network of a job, which `table.apply` applies to rows."""

    def __init__(self, name: str, network: Network) -> None:
        self.name, self.network = name, network

    def gives(self, scores: bool) -> list[str]:
        """The names of the columns that it gives: its outputs, or `class`, and with `scores` also `score_0`, `score_1` and so on."""
        if not self.network.classes:
            if scores:
                raise JobError(f"network `{self.name}` has no classes, and no scores of them", source=here(), help="what it gives are numbers already")
            return self.network.outputs
        cells = self.network._cells
        return ["class", *(f"score_{at}" for at in (range(cells) if cells > 1 else (1,)))] if scores else ["class"]

    def __repr__(self) -> str:
        return f"<NetworkModel {self.name} of {len(self.network.features)} features>"
