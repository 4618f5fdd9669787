"""Models that are fitted to rows which no participant sees: each is a table of its terms, which is opened, kept or read by other queries as any."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from ._source import here
from .errors import JobError, Source
from .tables import Fitted, Table
from .types import Bool, Category, ColumnType, Decimal, Integer

Penalty = Union[int, str, decimal.Decimal]
Cuts = Union[int, Sequence[Union[int, str, decimal.Decimal]]]

__all__ = ["DecisionTree", "KMeans", "LinearRegression", "LogisticRegression", "PCA", "PoissonRegression"]


def _exact(number: Penalty, what: str, source: Source | None) -> decimal.Decimal:
    """A number without rounding."""
    try:
        exact = decimal.Decimal(number)
    except (decimal.InvalidOperation, TypeError, ValueError):
        raise JobError(f"{number!r} is no {what}", source=source, help='write a number, a text such as "0.5", or a decimal.Decimal') from None
    if isinstance(number, float) and decimal.Decimal(repr(number)) != exact:
        raise JobError(f"{number!r} is a binary fraction, and not exactly what it looks like", source=source, help=f"write decimal.Decimal({str(number)!r}), which is exact")
    return exact


class _Regression:
    """A regression with an intercept, by Newton's method or by gradient descent."""

    _family = ""

    def __init__(
        self,
        *,
        ridge: Penalty = 0,
        steps: int | None = None,
        method: str = "newton",
        batch: int | None = None,
        epochs: int | None = None,
        rate: Penalty | None = None,
        momentum: Penalty = 0,
        limit: int | None = None,
        places: int = 6,
        min_count: int | None = None,
    ) -> None:
        """`ridge` penalises coefficients: half of it times their squares is added to the loss (of scikit-learn's logistic regression it is 1/C, of its
        ridge regression alpha). `steps` are Newton's, from zeros. `places` are decimal places of the result. A model of fewer rows than `min_count`
        has no rows; without it these are 20 for each term.

        `method="gradient"` descends in `epochs` over batches of up to `batch` rows, all without it, in an order that no participant knows: each batch moves
        coefficients by `rate` times the mean of its gradients, and by `momentum` times the last step. Features are numbers between -1 and 1 for that, their
        declared ranges; their coefficients stay within `limit` (32) of 0. Such a model has no standard errors, and needs no matrix of its terms."""
        source = here()
        self.ridge, self.steps, self.places, self.min_count = _exact(ridge, "penalty", source), steps, places, min_count
        if method not in ("newton", "gradient"):
            raise JobError(f"{method!r} is no method of a regression", source=source, help='write "newton" or "gradient"')
        self.method = method
        self._descent: dict[str, object] = {}
        if method == "newton":
            given = {"batch": batch, "epochs": epochs, "rate": rate, "momentum": momentum or None, "limit": limit}
            for name in (name for name, value in given.items() if value is not None):
                raise JobError(f"`{name}` is of gradient descent", source=source, help='method="gradient"')
            return
        if steps is not None:
            raise JobError("gradient descent has epochs, and no steps", source=source, help=f"epochs={steps}")
        if epochs is None or rate is None:
            lacks = "epochs" if epochs is None else "a rate"
            raise JobError(f"gradient descent needs {lacks}", source=source, help='such as epochs=10, rate="0.5"')
        self._descent["method"] = method
        if batch is not None:
            self._descent["batch"] = batch
        self._descent["epochs"] = epochs
        self._descent["rate"] = format(_exact(rate, "rate", source), "f")
        if momentum:
            self._descent["momentum"] = format(_exact(momentum, "momentum", source), "f")
        if limit is not None:
            self._descent["limit"] = limit

    def fit(self, table: Table, *, x: Iterable[str], y: str) -> Table:
        """The model of column `y` by columns `x` of a table, as a table with a row for each term: its name, which is `intercept` or that of a column, its
        `coefficient` and, unless coefficients are penalised or by gradient descent, its `standard_error`. Rows without a value in one of the columns are left out."""
        source = here()
        names = list(x)
        if isinstance(x, str):
            raise JobError("features are a list of columns", source=source, help=f"x=[{x!r}]")
        if y in names:
            raise JobError(f"the target `{y}` is a feature as well", source=source)
        table = table.select(*names, y)
        fields: dict[str, object] = {"family": self._family, "target": y}
        if self.ridge:
            fields["ridge"] = format(self.ridge, "f")
        if self.steps is not None:
            fields["steps"] = self.steps
        fields.update(self._descent)
        fields["places"] = self.places
        columns = ("term", "coefficient") if self.ridge or self._descent else ("term", "coefficient", "standard_error")
        return Table(table._job, Fitted(table, fields, self.min_count, source), columns)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class KMeans:
    """Clusters of rows by Lloyd's algorithm, from centres that are public. Distances are between features over half of their declared ranges (rounded up to
    a power of two), so that units do not matter."""

    def __init__(self, *, start: Sequence[Sequence[int | str | decimal.Decimal]], steps: int = 10, places: int = 6, min_count: int | None = None) -> None:
        """`start` has the first centres: of each a number for every feature, in the order of `x`. Clusters of fewer rows than `min_count` (20) are left out."""
        self.start = [[value if isinstance(value, int) else str(value) for value in centre] for centre in start]
        self.steps, self.places, self.min_count = steps, places, min_count

    def fit(self, table: Table, *, x: Iterable[str]) -> Table:
        """The clusters of the rows of a table by columns `x`, as a table: the number of a `cluster`, its `rows`, and its centre, a column for each feature.
        Rows without a value in one of the columns are left out."""
        source = here()
        if isinstance(x, str):
            raise JobError("features are a list of columns", source=source, help=f"x=[{x!r}]")
        names = list(x)
        fields: dict[str, object] = {"family": "k-means", "start": self.start, "steps": self.steps, "places": self.places}
        return Table(table._job, Fitted(table.select(*names), fields, self.min_count, source), ("cluster", "rows", *names))

    def __repr__(self) -> str:
        return f"<KMeans of {len(self.start)} clusters>"


class PCA:
    """Principal components of features that are standardised first, by their own means and deviations, which stay secret."""

    def __init__(self, components: int, *, squarings: int = 10, places: int = 6, min_count: int | None = None) -> None:
        """How many components; each comes of the power 2^`squarings` of the correlations' matrix. With fewer rows than `min_count` there are none; without it
        these are 20 for each feature."""
        self.components, self.squarings, self.places, self.min_count = components, squarings, places, min_count

    def fit(self, table: Table, *, x: Iterable[str]) -> Table:
        """The components of columns `x` of a table, as a table: the number of a `component`, the `share` of the variance that it explains, and its loadings, a
        column for each feature. Rows without a value in one of the columns are left out."""
        source = here()
        if isinstance(x, str):
            raise JobError("features are a list of columns", source=source, help=f"x=[{x!r}]")
        names = list(x)
        fields: dict[str, object] = {"family": "pca", "components": self.components, "steps": self.squarings, "places": self.places}
        return Table(table._job, Fitted(table.select(*names), fields, self.min_count, source), ("component", "share", *names))

    def __repr__(self) -> str:
        return f"<PCA of {self.components} components>"


def _values(target: ColumnType | None) -> tuple[str, ...] | None:
    """The names of what a node says of a target; none of one whose type the tables do not say."""
    if isinstance(target, Bool):
        return ("share",)
    if isinstance(target, Category):
        return tuple(f"share_{at}" for at in range(len(target.fields["values"])))
    return ("mean",) if isinstance(target, (Integer, Decimal)) else None


class DecisionTree:
    """A decision tree by histograms: splits are the best of public candidates, by Gini's impurity, or by the variance of a target that is a number."""

    def __init__(self, *, depth: int = 3, cuts: Mapping[str, Cuts] | None = None, places: int = 6, min_count: int | None = None) -> None:
        """`depth` is of how many levels of splits the tree is at most, 1 to 6. `cuts` says with which numbers a column is compared: a list, or how many, evenly spread
        over its range (15). No node has fewer rows than `min_count` (20). `places` are decimal places of shares and means."""
        source = here()
        self.depth, self.places, self.min_count = depth, places, min_count
        self.cuts: dict[str, object] = {}
        for name, of in (cuts or {}).items():
            if isinstance(of, (bool, float, str)) or not isinstance(of, (int, Sequence)):
                raise JobError(f"cuts of `{name}` are a list of numbers, or how many, and not {of!r}", source=source)
            if isinstance(of, Sequence) and any(isinstance(one, float) for one in of):
                raise JobError(f"a cut of `{name}` is a binary fraction", source=source, help='write decimals as texts, such as "12.5", or as decimal.Decimal')
            self.cuts[name] = of if isinstance(of, int) else [one if isinstance(one, int) else str(one) for one in of]

    def fit(self, table: Table, *, x: Iterable[str], y: str) -> Table:
        """The tree of column `y` by columns `x` of a table, as a table with a row for each node: its number, which is 1 of the root, of the rows for which the condition
        of node n holds 2n, and of its others 2n + 1; the `feature` and its `cut`, none of a leaf; its `rows`; and the `share` of these for which y is true, the shares
        `share_0`, `share_1` and so on of its texts in their order, or the `mean`. Rows without a value in one of the columns are left out."""
        source = here()
        if isinstance(x, str):
            raise JobError("features are a list of columns", source=source, help=f"x=[{x!r}]")
        names = list(x)
        if y in names:
            raise JobError(f"the target `{y}` is a feature as well", source=source)
        for name in self.cuts:
            if name not in names:
                raise JobError(f"there are cuts of `{name}`, which is no feature", source=source)
        rows = table.select(*names, y)
        fields: dict[str, object] = {"family": "tree", "target": y, "depth": self.depth}
        if self.cuts:
            fields["cuts"] = self.cuts
        fields["places"] = self.places
        values = _values(rows._declared(y))
        columns = ("node", "feature", "cut", "rows", *values) if values else None
        return Table(rows._job, Fitted(rows, fields, self.min_count, source), columns)

    def __repr__(self) -> str:
        return f"<DecisionTree of {self.depth} levels>"


class LinearRegression(_Regression):
    """Least squares, with a penalty if there is one."""

    _family = "linear"


class LogisticRegression(_Regression):
    """The logarithm of the odds that a condition is true."""

    _family = "logistic"


class PoissonRegression(_Regression):
    """The logarithm of the mean of a count."""

    _family = "poisson"
