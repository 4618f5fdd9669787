"""Ranges that are refused: what an error says in Python, with the line that asked."""

from __future__ import annotations

import datetime
import decimal
import sys
from typing import Any

import pytest

import veilworks as vw

D = decimal.Decimal


def _line() -> int:
    return sys._getframe(1).f_lineno


def stays() -> tuple[vw.Job, vw.Table]:
    of = vw.Job("j", owners=["north"], parties=["p0", "p1", "p2"], recipients=["reader"])
    table = of.table(
        "stays",
        owner="north",
        rows=1000,
        columns={
            "ward": vw.Category(["east", "west"]),
            "cost": vw.Decimal(2, 0, "9999.99"),
            "gain": vw.Decimal(2, -500, "9999.99"),
            "rate": vw.Decimal(16, 0, 1),
            "days": vw.Integer(-9, 9_000_000),
            "size": vw.Integer(0, 2**61),
            "since": vw.Date("2020-01-01", "2025-12-31"),
        },
    )
    return of, table


def refused(of: vw.Job) -> vw.PlanError:
    with pytest.raises(vw.PlanError) as caught:
        of.plan_hash
    return caught.value


def test_a_logarithm_of_what_may_be_zero() -> None:
    of, t = stays()
    t = t.assign(
        x=vw.log(t.cost)
    )
    line = _line() - 2
    of.open(t[["x"]], to="reader")
    error = refused(of)
    assert str(error) == (
        "`ln(x)` has no value for 0 and below; x is 0.00 to 9999.99\n"
        f"  {__file__}, line {line}:\n"
        "    x=vw.log(t.cost)\n"
        '  write x.nullif(0), or vw.maximum(x, decimal.Decimal("0.01")) in the place of x, or declare narrower ranges'
    )
    assert error.source == (__file__, line)
    assert error.operation == "ln"
    assert error.range == (vw.Range(D("0.00"), D("9999.99")),)
    assert error.remedies == ("x.nullif(0)", 'vw.maximum(x, decimal.Decimal("0.01"))', "declare narrower ranges")


EACH: list[tuple[Any, str, tuple[vw.Range, ...], str, str]] = [
    (
        lambda t: vw.sqrt(t.gain),
        "sqrt",
        (vw.Range(D("-500.00"), D("9999.99")),),
        "`sqrt(x)` has no value for numbers below 0; x is -500.00 to 9999.99",
        "write vw.maximum(x, 0) in the place of x, or declare narrower ranges",
    ),
    (
        lambda t: vw.exp(t.gain),
        "exp",
        (vw.Range(D("-500.00"), D("9999.99")),),
        "`exp(x)` may take more than the 128 bits that there are; x is -500.00 to 9999.99",
        "write vw.minimum(x, 27) in the place of x, or declare narrower ranges",
    ),
    (
        lambda t: t.rate * (t.rate * D("0.001")),
        "*",
        (vw.Range(D("0E-16"), D(1)), vw.Range(D("0E-19"), D("0.001"))),
        "`x * y` has 35 decimal places, and 30 are the most; x is 0.0000000000000000 to 1.0000000000000000, y is 0.0000000000000000000 to 0.0010000000000000000",
        "write x.round(11) in the place of x, or write y.round(14) in the place of y, or declare narrower ranges",
    ),
    (
        lambda t: t.size * t.size * t.size,
        "*",
        (vw.Range(0, 2**122), vw.Range(0, 2**61)),
        f"`x * y` may take 185 bits, and there are 128; x is 0 to {2**122}, y is 0 to {2**61}",
        "write vw.minimum(x, 73000000000000000000) in the place of x, or write vw.minimum(y, 31) in the place of y, or declare narrower ranges",
    ),
    (
        lambda t: t.since + t.days,
        "+",
        (vw.Range(datetime.date(2020, 1, 1), datetime.date(2025, 12, 31)), vw.Range(-9, 9_000_000)),
        "`x + y days` may be before 0001-01-01 or after 9999-12-31; x is 2020-01-01 to 2025-12-31, y is -9 to 9000000",
        "write vw.minimum(y, 2900000) in the place of y, or declare narrower ranges",
    ),
    (
        lambda t: t.size * t.size < t.rate,
        "<",
        (vw.Range(0, 2**122), vw.Range(D(0), D(1))),
        f"`x < y` may take 177 bits, and there are 128; x is 0 to {2**122}, y is 0.0000000000000000 to 1.0000000000000000",
        "write vw.minimum(x, 17000000000000000000000) in the place of x, or write y.round(1) in the place of y, or declare narrower ranges",
    ),
]


@pytest.mark.parametrize(("made", "operation", "ranges", "said", "instead"), EACH, ids=[one[1] + str(at) for at, one in enumerate(EACH)])
def test_each_says_what_and_where(made: Any, operation: str, ranges: tuple[vw.Range, ...], said: str, instead: str) -> None:
    of, t = stays()
    t = t.assign(v=made)
    of.open(t[["v"]], to="reader")
    error = refused(of)
    assert error.source is not None and error.source.file == __file__
    assert str(error).split("\n")[0] == said
    assert error.help == instead
    assert (error.operation, error.range) == (operation, ranges)


def test_what_is_said_to_be_written_instead_is_planned() -> None:
    of, t = stays()
    of.open(t.assign(v=vw.log(t.cost))[["v"]], to="reader")
    changes = refused(of).remedies[:-1]
    assert len(changes) == 2
    for change in changes:
        of, t = stays()
        x = eval(change, {"vw": vw, "decimal": decimal, "x": t.cost})
        of.open(t.assign(v=vw.log(x))[["v"]], to="reader")
        assert len(of.plan) == 64


def test_a_sum_over_rows_names_the_line_of_the_aggregate() -> None:
    of, t = stays()
    t = t.assign(s=t.size * t.size)
    g = t.group_by("ward").agg(
        n=t.count(),
        v=t.s.sum(),
    )
    line = _line() - 2
    of.open(g, to="reader")
    error = refused(of)
    assert error.operation == "sum" and error.source == (__file__, line)
    assert error.range == (vw.Range(0, 2**122),)
    assert str(error).split("\n")[0] == f"`sum(x) over 1000 rows` may take 133 bits, and there are 128; x is 0 to {2**122}"
    assert error.help == "write vw.minimum(x, 170000000000000000000000000000000000) in the place of x, or bound the rows by .limit_rows(31), or declare narrower ranges"


def test_sql_of_the_program_is_answered_in_sql() -> None:
    of, t = stays()
    q = vw.sql("SELECT cost, gain,\n  cost / gain AS v\nFROM stays", tables=[t], to="reader", columns=["cost", "gain", "v"]); line = _line()
    assert q is not None
    error = refused(of)
    assert error.source == (__file__, line)
    assert error.remedies == ("nullif(y, 0)", "greatest(y, 0.01)", "least(y, -0.01)", "declare narrower ranges")
    assert str(error).split("\n")[:4] == [
        "query `answer`, line 2, column 3: `x / y` has no value where y is 0; x is 0.00 to 9999.99, y is -500.00 to 9999.99",
        "    cost / gain AS v",
        "    ^",
        "  write nullif(y, 0), or greatest(y, 0.01), or least(y, -0.01) in the place of y, or declare narrower ranges",
    ]
