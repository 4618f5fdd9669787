"""Loops with a public number of turns: what they compute, and what is refused."""

from __future__ import annotations

import decimal
import sys
from decimal import Decimal as D
from typing import Any

import pytest

import veilworks as vw

COSTS = ["2.00", "4.00", "81.00", "0.50", "99.99"]


def _line() -> int:
    return sys._getframe(1).f_lineno


def stays(rows: int = 5) -> tuple[vw.Job, vw.Table]:
    of = vw.Job("j", owners=["north"], parties=["p0", "p1", "p2"], recipients=["reader"])
    return of, of.table(
        "stays",
        owner="north",
        rows=rows,
        columns={"id": vw.Integer(0, 9), "cost": vw.Decimal(2, "0.25", "99.99"), "ward": vw.Category(["east", "west"])},
    )


DATA = {"stays": {"id": ["0", "1", "2", "3", "4"], "cost": COSTS, "ward": ["east", "west", "east", "east", "west"]}}


def rounded(x: D, places: int) -> D:
    return x.quantize(D(1).scaleb(-places), rounding=decimal.ROUND_HALF_UP)


def root(t: vw.Table, turns: int) -> vw.State:
    x = vw.state(vw.maximum(t.cost, 1), vw.Decimal(6, "0.25", 200, null=True))
    with vw.for_range(turns, x):
        x.update(((x + t.cost / x) / 2).round(6).clip(D("0.25"), 200))
    return x


def newton(cost: D, turns: int) -> D:
    x = max(cost, D(1))
    for _ in range(turns):
        x = min(max(rounded((x + cost / x) / 2, 6), D("0.25")), D(200))
    return x


def test_a_loop_computes_what_its_turns_say() -> None:
    of, t = stays()
    of.open(t.assign(root=root(t, 8))[["id", "root"]], to="reader")
    found = {row["id"]: row["root"] for row in of.run_local(DATA).to_dicts()}
    assert found == {at: newton(D(cost), 8) for at, cost in enumerate(COSTS)}
    assert found[0] == D("1.414214")


def test_the_body_runs_once_and_each_turn_is_a_query() -> None:
    of, t = stays()
    ran = 0
    x = vw.state(t.cost, vw.Decimal(2, 0, 100))
    with vw.for_range(5, x):
        ran += 1
        x.update((x / 2).round(2).clip(0, 100).fillna(0))
    of.open(t.assign(v=x)[["id", "v"]], to="reader")
    assert ran == 1
    assert of.text.count("[[query]]\nname = \"turn") == 6
    assert len(set(of.text.split("[[query]]")[2:7])) == 5


def test_several_states_change_in_their_order() -> None:
    of, t = stays()
    a, b = vw.state(0, vw.Integer(0, 10_000)), vw.state(t.id, vw.Integer(0, 10_000))
    with vw.for_range(6, a, b):
        old = a + 0
        a.update(vw.minimum(b, 10_000))
        b.update(vw.minimum(old + a, 10_000))
    of.open(t.assign(a=a, b=b)[["id", "a", "b"]], to="reader")
    for row in of.run_local(DATA).to_dicts():
        x, y = 0, row["id"]
        for _ in range(6):
            x, y = y, x + y
        assert (row["a"], row["b"]) == (x, y)


def test_a_loop_reads_what_another_has_made() -> None:
    of, t = stays()
    x = vw.state(t.id, vw.Integer(0, 1000))
    with vw.for_range(3, x):
        x.update(vw.minimum(x * 2, 1000))
    y = vw.state(x + 1, vw.Integer(0, 2000))
    with vw.for_range(2, y):
        y.update(vw.minimum(y + x, 2000))
    of.open(t[y > 30].order_by("id", descending=True)[["id"]], to="reader", name="ids")
    of.open(t.group_by("ward").agg(most=y.max()), to="reader", name="most")
    result = of.run_local(DATA)
    values = [8 * i + 1 + 2 * 8 * i for i in range(5)]
    assert [row["id"] for row in result["ids"].to_dicts()] == [i for i in (4, 3, 2, 1, 0) if values[i] > 30]
    assert {row["ward"]: row["most"] for row in result["most"].to_dicts()} == {"east": max(values[0], values[2], values[3]), "west": max(values[1], values[4])}


def test_conditions_and_categories_are_states_too() -> None:
    of, t = stays()
    seen, ward = vw.state(t.id > 5, vw.Bool), vw.state(t.ward, vw.Category(["east", "west"]))
    with vw.for_range(2, seen, ward):
        seen.update(seen | (ward == "west"))
        ward.update(vw.where(t.id == 2, "west", ward))
    of.open(t.assign(seen=seen, last=ward)[["id", "seen", "last"]], to="reader")
    for row in of.run_local(DATA).to_dicts():
        assert row["seen"] == (row["id"] in (1, 2, 4))
        assert row["last"] == ("west" if row["id"] in (1, 2, 4) else "east")


def test_what_a_turn_reads_twice_is_planned_quickly() -> None:
    of, t = stays()
    x = vw.state(t.id, vw.Integer(0, 100))
    with vw.for_range(60, x):
        x.update(vw.where(x > 50, x - 50, x + 1).clip(0, 100))
    of.open(t.assign(v=x)[["id", "v"]], to="reader")
    for row in of.run_local(DATA).to_dicts():
        v = row["id"]
        for _ in range(60):
            v = v - 50 if v > 50 else v + 1
        assert row["v"] == v


def test_a_traced_function_may_have_a_loop() -> None:
    @vw.traced(x=vw.Integer(0, 9), n=vw.Integer(0, 5))
    def power(x: Any, n: Any) -> Any:
        made = vw.state(1, vw.Integer(0, 10**6))
        left = vw.state(n, vw.Integer(-5, 5))
        with vw.for_range(5, made, left):
            made.update(vw.where(left > 0, made * x, made).clip(0, 10**6))
            left.update((left - 1).clip(-5, 5))
        return made + 0

    assert power.clear([2, 3, 9, 5], [5, 2, 5, 0]) == [32, 9, 59049, 1]
    assert "loop of 5 turns (state1 = 1, then " in power.sql


def test_a_turn_that_leaves_its_range_is_refused_with_its_line() -> None:
    _, t = stays()
    x, line = vw.state(t.cost, vw.Decimal(2, 0, 100)), 0
    with pytest.raises(vw.JobError) as caught:
        with vw.for_range(4, x):
            x.update(
                x + 1
            ); line = _line() - 2
    error = caught.value
    assert error.source == (__file__, line)
    assert str(error).split("\n")[0] == "what a turn makes of a state may be 1.00 to 101.00, and its type is 0.00 to 100.00"
    assert error.help == "clip what the turn makes, (…).clip(…), or widen the type; write .fillna(…) where a value may be missing, or null=True into the type"


def test_a_first_value_out_of_its_range_is_refused_with_its_line() -> None:
    _, t = stays()
    x = vw.state(t.cost, vw.Decimal(2, 0, 50)); line = _line()
    with pytest.raises(vw.JobError, match="the first value of a state may be 0.25 to 99.99, and its type is 0.00 to 50.00") as caught:
        with vw.for_range(4, x):
            x.update((x + 1).clip(0, 50))
    assert caught.value.source == (__file__, line)


def test_what_may_be_missing_is_refused_unless_the_type_says_so() -> None:
    _, t = stays()
    x = vw.state(t.cost, vw.Decimal(2, 0, 100))
    with pytest.raises(vw.JobError, match="0.00 to 100.00, or missing, and its type is 0.00 to 100.00"):
        with vw.for_range(4, x):
            x.update((t.cost / x).round(2).clip(0, 100))


def test_an_operation_of_a_turn_that_does_not_fit_is_refused_with_its_line() -> None:
    _, t = stays()
    x, line = vw.state(t.cost, vw.Decimal(2, 0, 100)), 0
    with pytest.raises(vw.PlanError) as caught:
        with vw.for_range(4, x):
            x.update(
                vw.log(x).clip(0, 100)
            ); line = _line() - 1
    assert caught.value.source == (__file__, line)
    assert caught.value.operation == "ln" and caught.value.range == (vw.Range(D("0.00"), D("100.00")),)


def test_turns_have_so_many_operations_at_most() -> None:
    _, t = stays()
    x = vw.state(t.id, vw.Integer(0, 100)); line = _line() + 2
    with pytest.raises(vw.JobError) as caught:
        with vw.for_range(2000, x):
            x.update((x + 1).clip(0, 100))
    assert caught.value.source == (__file__, line)
    assert "operations in its 2000 turns, and 10000 are the most" in str(caught.value)
    assert caught.value.help.startswith("write fewer turns; what does not depend on a state goes before the loop")


def test_uses_that_make_no_sense_are_refused() -> None:
    of, t = stays()
    x = vw.state(t.id, vw.Integer(0, 100))
    for turns in (0, -1, True, 2.5):
        with pytest.raises(vw.JobError, match="a public number of turns from 1 on"):
            vw.for_range(turns, x)  # type: ignore[arg-type]
    with pytest.raises(vw.JobError, match="a loop changes states"):
        vw.for_range(3)
    with pytest.raises(vw.JobError, match="a state stands twice in one loop"):
        vw.for_range(3, x, x)
    with pytest.raises(vw.JobError, match="a state is changed within its loop"):
        x.update(1)
    with pytest.raises(vw.JobError, match="no turn of the loop changes a state"):
        with vw.for_range(3, x):
            pass
    y = vw.state(1, vw.Integer(0, 100))
    with pytest.raises(vw.JobError, match="this reads no column"):
        with vw.for_range(3, y):
            y.update(5)
    z = vw.state(t.id, vw.Integer(0, 100))
    with pytest.raises(vw.JobError, match="a loop stands in no loop"):
        with vw.for_range(3, z):
            with vw.for_range(2, z):
                z.update(z)
    z = vw.state(t.id, vw.Integer(0, 100))
    with pytest.raises(vw.JobError, match="a table is made within a loop"):
        with vw.for_range(3, z):
            t.assign(v=z)
    z = vw.state(t.id, vw.Integer(0, 100))
    with pytest.raises(vw.JobError, match="a state is a value of each row"):
        with vw.for_range(3, z):
            z.update(t.id.sum())
    with pytest.raises(vw.JobError, match="a state is a number, a date, a category or a condition"):
        vw.state(t.id, vw.Key(80))
    z = vw.state(t.id, vw.Integer(0, 100))
    with pytest.raises(vw.SecretError):
        with vw.for_range(3, z):
            if z > 3:
                z.update(0)
    # What an error ended is no loop: the state is what it was.
    of.open(t.assign(v=z)[["id", "v"]], to="reader")
    assert [row["v"] for row in of.run_local(DATA).to_dicts()] == [0, 1, 2, 3, 4]
