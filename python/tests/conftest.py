"""What tests take as fixtures."""

from __future__ import annotations

import pytest

import veilworks as vw


@pytest.fixture
def small() -> tuple[vw.Job, vw.Table]:
    of = vw.Job("small", owners=["mill"], parties=["a", "b", "c"], recipients=["press"])
    table = of.table("people", owner="mill", rows=vw.up_to(4), columns={"pay": vw.Decimal(2, 0, "99.99"), "sex": vw.Category(["f", "m"]), "age": vw.Integer(0, 120)})
    return of, table
