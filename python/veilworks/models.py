"""Models of decision trees: read from other libraries once, written down in decimals, and applied to columns."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _veil
from ._models import fitted, onnx, sklearn, xgboost
from ._source import here
from .columns import Column, Expression, _Word
from .errors import JobError
from .result import Answer, Result

if TYPE_CHECKING:
    from .tables import Table

_MOST_PLACES = 30
_MOST_BYTES = 64 << 20


class Forest:
    """Trees as they are in a model's file: features, thresholds and leaves, exact. They are public to all participants of a job that applies them."""

    def __init__(self, text: str) -> None:
        try:
            self._said = _veil.read_model("model", text)
            of = json.loads(text)
            if of["kind"] != "trees":
                raise ValueError("it is a network, and no model of trees")
        except ValueError as error:
            raise JobError(f"this is no model: {error}", source=here()) from None
        self.text = text
        self.features: list[str] = [feature["name"] for feature in of["features"]]
        self.classes: list[str] = of.get("classes", [])
        self.places: int = of["places"]
        self.source: str = of["source"]

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Forest:
        """The model of a file that `save` has written."""
        try:
            return Forest(pathlib.Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise JobError(f"{os.fspath(path)} cannot be read: {error}", source=here()) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file that a job names: `[model.risk]`, `file = "risk.json"`."""
        pathlib.Path(path).write_text(self.text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Forest {self._said.partition(': ')[2]}>"


def forest(
    of: Any,
    *,
    features: Sequence[str] | None = None,
    places: int = 6,
    classes: Sequence[str] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
) -> Forest:
    """A model of another library: a fitted one of scikit-learn or XGBoost, or the path of an `.onnx` file, or of the JSON that XGBoost saves; or the opened nodes of a
    tree of `ml.DecisionTree`.

    `features` are the names of its features in their order, `classes` those of its classes, `values` the texts of categories in the order of their codes. Thresholds
    are read exactly, with what the library's floats round; what leaves add to a score is rounded once, to `places` decimals. Of an opened tree `features` are those
    that it asks for unless more are said, `classes` those of its shares in the order of their texts, and `values` has all texts of each category.
    """
    source = here()
    if isinstance(places, bool) or not isinstance(places, int) or not 0 <= places <= _MOST_PLACES:
        raise JobError(f"places are a number from 0 to {_MOST_PLACES}", source=source)
    texts = {name: [str(value) for value in all] for name, all in (values or {}).items()}
    try:
        made = _read(of, features, places, classes, texts)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise JobError(f"the model is not read: {error}", source=source) from None
    return Forest(json.dumps(made, ensure_ascii=False, separators=(",", ":")))


def _read(of: Any, features: Sequence[str] | None, places: int, classes: Sequence[str] | None, values: dict[str, list[str]]) -> dict[str, Any]:
    if isinstance(of, (Answer, Result)):
        return fitted.read(of.to_dicts(), features=features, places=places, classes=classes, values=values)
    if sklearn.reads(of):
        if values:
            raise ValueError("categories are those of models of XGBoost")
        return sklearn.read(of, features=features, places=places, classes=classes)
    if type(of).__module__.split(".")[0] == "xgboost":
        booster = of.get_booster() if hasattr(of, "get_booster") else of
        if classes is None and hasattr(of, "classes_"):
            classes = [str(one) for one in of.classes_]
        return xgboost.read(bytes(booster.save_raw("json")), features=features, values=values, places=places, classes=classes)
    if not isinstance(of, (str, os.PathLike)):
        raise ValueError(f"a {type(of).__name__} is no model that is known: give one of scikit-learn or XGBoost, or the path of a file")
    path = pathlib.Path(of)
    data = content(path)
    if path.suffix == ".onnx":
        if values:
            raise ValueError("categories are those of models of XGBoost")
        return onnx.read(data, features=features, places=places, classes=classes)
    if path.suffix == ".json":
        return xgboost.read(data, features=features, values=values, places=places, classes=classes)
    raise ValueError(f"{path} is neither `.onnx` nor the `.json` of XGBoost")


def content(path: pathlib.Path) -> bytes:
    """What is in a file of a model, which is no pickle and not too long."""
    if path.suffix in (".pkl", ".pickle", ".joblib"):
        raise ValueError("a pickle is a program, and is not loaded: give the fitted object itself, where you trust it")
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise ValueError(f"{path} has more than {_MOST_BYTES >> 20} MiB")
    return data


class Model:
    """A model of a job. Called with columns, it gives a column: its value, or its class."""

    def __init__(self, name: str, forest: Forest) -> None:
        self.name, self.forest = name, forest

    def __call__(self, *columns: Any, **named: Any) -> Column:
        """What the model gives for these features, in their order or by their names."""
        return self._applied("predict", [], columns, named)

    def score(self, of: str, *columns: Any, **named: Any) -> Column:
        """The score of a class."""
        if of not in self.forest.classes:
            known = ", ".join(self.forest.classes) or "none"
            raise JobError(f"`{of}` is no class of model `{self.name}`", source=here(), help=f"its classes: {known}")
        return self._applied("predict_score", [of], columns, named)

    def _applied(self, call: str, more: list[str], columns: tuple[Any, ...], named: dict[str, Any]) -> Column:
        features = self.forest.features
        unknown = [name for name in named if name not in features]
        if unknown or len(columns) + len(named) != len(features) or any(name in features[: len(columns)] for name in named):
            some = ", ".join(features[:12]) + (", …" if len(features) > 12 else "")
            raise JobError(f"model `{self.name}` takes its {len(features)} features, each once", source=here(), help=f"they are {some}")
        given = [*columns, *(named[name] for name in features[len(columns) :])]
        first = next((one for one in given if isinstance(one, Column)), None)
        if first is None:
            raise JobError(f"model `{self.name}` is applied to columns, and none is given", source=here())
        parts: list[Any] = [_Word(f"{call}("), self.name]
        for one in [*more, *given]:
            parts += [_Word(", "), one]
        made: Column = first._make(*parts, _Word(")"))
        return made

    def of(self, table: Table, score: str | None = None) -> Column:
        """What it gives for the columns of a table that have the names of its features."""
        columns = [table[name] for name in self.forest.features]
        return self(*columns) if score is None else self.score(score, *columns)

    def __repr__(self) -> str:
        return f"<Model {self.name} of {', '.join(self.forest.features)}>"


class TableFunction:
    """A function of a job by its values, as `job.function` declares it. Called with a column, it gives a column."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, x: Any) -> Column:
        """The value for each row's argument; null where it is null."""
        if not isinstance(x, Expression):
            raise JobError(f"function `{self.name}` takes a column, and not a {type(x).__name__}", source=here())
        made: Column = x._make(_Word(f"{self.name}("), x, _Word(")"))
        return made

    def __repr__(self) -> str:
        return f"<TableFunction {self.name}>"
