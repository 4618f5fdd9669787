"""Functions of columns: those of NumPy and of models, to so many decimals, within an error that `job.explain()` states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._source import here
from .columns import Expression, _Word
from .errors import JobError


def _of(name: str, x: Any, decimals: int | None) -> Any:
    if not isinstance(x, Expression):
        raise JobError(f"{name} takes a column, and not a {type(x).__name__}", source=here(), help="of a public number, write what it is: vw.where(c, 2, 1)")
    made = x._make(_Word(f"{name}("), x, _Word(")"))
    return made if decimals is None else made.round(decimals)


def exp(x: Any, decimals: int | None = None) -> Any:
    """e to the power of x: to six decimals, or so many. The range of x is what the result has to fit for: `vw.exp(x.clip(-8, 8))`."""
    return _of("exp", x, decimals)


def exp2(x: Any, decimals: int | None = None) -> Any:
    """2 to the power of x."""
    return _of("exp2", x, decimals)


def log(x: Any, decimals: int | None = None) -> Any:
    """The natural logarithm of a column whose range is above 0: `vw.log(vw.maximum(x, 1))`, or of one whose zeros are to be null: `vw.log(x.nullif(0))`."""
    return _of("ln", x, decimals)


def log2(x: Any, decimals: int | None = None) -> Any:
    """The logarithm to base 2."""
    return _of("log2", x, decimals)


def log10(x: Any, decimals: int | None = None) -> Any:
    """The logarithm to base 10."""
    return _of("log10", x, decimals)


def sqrt(x: Any, decimals: int | None = None) -> Any:
    """The square root of a column whose range begins at 0 or above."""
    return _of("sqrt", x, decimals)


def sigmoid(x: Any, decimals: int | None = None) -> Any:
    """1 / (1 + exp(-x)): what a logistic regression makes of its score."""
    return _of("sigmoid", x, decimals)


def tanh(x: Any, decimals: int | None = None) -> Any:
    """The hyperbolic tangent."""
    return _of("tanh", x, decimals)


def erf(x: Any, decimals: int | None = None) -> Any:
    """The error function."""
    return _of("erf", x, decimals)


def softplus(x: Any, decimals: int | None = None) -> Any:
    """ln(1 + exp(x))."""
    return _of("softplus", x, decimals)


def _extreme(name: str, x: Any, others: tuple[Any, ...]) -> Any:
    first = next((one for one in (x, *others) if isinstance(one, Expression)), None)
    if first is None or not others:
        raise JobError(f"{name} takes a column, and another one or a public number", source=here())
    parts: list[Any] = [_Word(f"{name}("), x]
    for other in others:
        parts += [_Word(", "), other]
    return first._make(*parts, _Word(")"))


def maximum(x: Any, *others: Any) -> Any:
    """The largest of several, row by row; null only where all of them are."""
    return _extreme("greatest", x, others)


def minimum(x: Any, *others: Any) -> Any:
    """The smallest of several, row by row; null only where all of them are."""
    return _extreme("least", x, others)


# Functions of NumPy that columns take, by their names there.
UFUNCS: dict[str, Callable[..., Any]] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": log2,
    "log10": log10,
    "sqrt": sqrt,
    "tanh": tanh,
    "maximum": maximum,
    "minimum": minimum,
    "fmax": maximum,
    "fmin": minimum,
    "absolute": abs,
    "negative": lambda x: -x,
    "square": lambda x: x * x,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "remainder": lambda a, b: a % b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "logical_and": lambda a, b: a & b,
    "logical_or": lambda a, b: a | b,
    "logical_not": lambda a: ~a,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "invert": lambda a: ~a,
}
