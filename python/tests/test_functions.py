"""Functions of a job by their values, against the same tables in Python."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

import pytest

import veilworks as vw

TAX: list[D] = [D("0.14") * (age > 40) + D("0.1") * (age > 70) for age in range(91)]
WEIGHTS: dict[str, Any] = {"west": D("0.8"), "east": D("1.2"), "north": 3}
ROWS: dict[str, list[Any]] = {"ward": ["east", "west", "west", None, "east"], "age": [0, 90, 41, 70, 71], "pay": [D("1.5"), D("-2.0"), D("0.3"), D("12.7"), D("99.9")]}


def _job() -> tuple[vw.Job, Any]:
    job = vw.Job("tariffs", owners=["north"], parties=["p0", "p1", "p2"], recipients=["r"])
    rows = job.table("rows", owner="north", rows=5, columns={"ward": vw.Category(["east", "west"], null=True), "age": vw.Integer(0, 90), "pay": vw.Decimal(1, -100, 100)})
    return job, rows


def test_parties_give_what_the_tables_have() -> None:
    job, rows = _job()
    tax = job.function("tax", TAX, decimals=2)
    weight = job.function("weight", WEIGHTS, decimals=1)
    fee = job.function("fee", [at * at for at in range(101)], first=D("-0.5"), step=D("0.1"))
    assert repr(tax) == "<TableFunction tax>"
    made = rows.assign(tax=tax(rows.age), weight=weight(rows.ward), fee=fee(rows.pay.clip(D("-0.5"), D("9.5"))))
    job.open(made[["age", "tax", "weight", "fee"]].order_by("age"), to="r", name="answer")
    assert '[function.fee]\nfirst = "-0.5"\nstep = "0.1"\nscale = 0\n' in job.text
    assert "`tax` of 0 to 90: 0.00 to 0.24" in str(job.explain())
    result = job.run_local({"rows": ROWS})["answer"]
    found = [tuple(row[name] for name in ("age", "tax", "weight", "fee")) for row in result]
    places = [int((min(max(pay, D("-0.5")), D("9.5")) + D("0.5")) * 10) for pay in ROWS["pay"]]
    weights = [None if ward is None else D(WEIGHTS[ward]) for ward in ROWS["ward"]]
    assert found == sorted(zip(ROWS["age"], [TAX[age] for age in ROWS["age"]], weights, [at * at for at in places]), key=lambda row: row[0])


def test_what_is_no_function_is_refused() -> None:
    job, rows = _job()
    with pytest.raises(vw.JobError, match="`Tax` is no name of a function"):
        job.function("Tax", [1])
    with pytest.raises(vw.JobError, match="function `tax` is of texts, which have no first and no step"):
        job.function("tax", {"east": 1}, first=1)
    with pytest.raises(vw.JobError, match="'many' is no number"):
        job.function("tax", ["many"])
    with pytest.raises(vw.JobError, match="0.1 is a binary fraction"):
        job.function("tax", [0.1])
    tax = job.function("tax", [1, 2, 3])
    with pytest.raises(vw.JobError, match="the job has a function `tax` already"):
        job.function("tax", [1])
    with pytest.raises(vw.JobError, match="function `tax` takes a column, and not a int"):
        tax(3)
    job.open(rows.assign(tax=tax(rows.age))[["tax"]], to="r", name="answer")
    with pytest.raises(vw.JobError, match=r"`tax\(x\)` has values for 0 to 2; x is 0 to 90"):
        job.explain()


@pytest.mark.parametrize(
    ("name", "values", "wrong"),
    [
        ("tax", [], "function `tax`: a function has 1 to 4096 values"),
        ("tax", [1] * 4097, "function `tax`: a function has 1 to 4096 values"),
        ("round", [1], "function `round`: SQL has a function or a word of this name; choose another one"),
        ("tax", [D("0.5")], "is not an integer"),
    ],
)
def test_rust_refuses_what_python_does_not_look_at(name: str, values: list[Any], wrong: str) -> None:
    job, rows = _job()
    job.function(name, values)
    job.open(rows[["age"]], to="r", name="answer")
    with pytest.raises(vw.JobError, match=wrong):
        job.explain()
