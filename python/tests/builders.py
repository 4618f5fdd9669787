"""Jobs, tables and random rows that all tests share. They need nothing but the package, so that any interpreter has them."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any, Callable

import veilworks as vw

WARDS = ["east", "it's", "north", "west"]
ROWS = 24


def job(**more: Any) -> vw.Job:
    return vw.Job("tests", owners=["north", "south"], parties=["p0", "p1", "p2"], recipients=["ministry"], **more)


def stays(of: vw.Job) -> vw.Table:
    return of.table(
        "stays",
        owner="north",
        rows=vw.up_to(ROWS),
        columns={
            "patient": vw.Integer(0, 30),
            "since": vw.Date("2020-01-01", "2025-12-31"),
            "ward": vw.Category(WARDS),
            "cost": vw.Decimal(2, -100, "9999.99", null=True),
            "days": vw.Integer(-20, 90),
            "again": vw.Bool(),
        },
    )


def people(of: vw.Job) -> vw.Table:
    return of.table(
        "people",
        owner="south",
        rows=vw.up_to(ROWS),
        columns={"patient": vw.Integer(0, 30), "age": vw.Integer(0, 120), "ward": vw.Category(WARDS, null=True)},
        unique=["patient"],
    )


def frames(seed: int) -> dict[str, dict[str, list[Any]]]:
    rng = random.Random(seed)
    print("seed", seed)
    rows = rng.randrange(ROWS // 2, ROWS + 1)
    first = datetime.date(2020, 1, 1)
    many: Callable[[Callable[[], Any]], list[Any]] = lambda one: [one() for _ in range(rows)]  # noqa: E731
    return {
        "stays": {
            "patient": many(lambda: rng.randrange(31)),
            "since": many(lambda: first + datetime.timedelta(rng.randrange(2000))),
            "ward": many(lambda: rng.choice(WARDS)),
            "cost": many(lambda: None if rng.random() < 0.2 else decimal.Decimal(rng.randrange(-10000, 999999)) / 100),
            "days": many(lambda: rng.randrange(-20, 91)),
            "again": many(lambda: rng.random() < 0.5),
        },
        "people": {
            "patient": rng.sample(range(31), rows),
            "age": many(lambda: rng.randrange(121)),
            "ward": many(lambda: None if rng.random() < 0.2 else rng.choice(WARDS)),
        },
    }
