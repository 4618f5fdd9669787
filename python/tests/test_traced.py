"""Functions of columns with contracts: as parties compute them, as they are on plain values, and what is refused."""

from __future__ import annotations

import decimal
import itertools
import random

import pytest

import veilworks as vw
from conftest import frames, job, people, stays


@vw.traced(age=vw.Integer(0, 120), smoker=vw.Bool, pressure=vw.Integer(60, 260))
def risk(age: vw.Column, smoker: vw.Column, pressure: vw.Column) -> vw.Column:
    """Points of a person."""
    made: vw.Column = vw.where(age > 60, 3, vw.where(age > 40, 1, 0)) + vw.where(smoker, 2, 0) + vw.where(pressure > 140, 2, 0)
    return made


def want(age: int, smoker: bool, pressure: int) -> int:
    return (3 if age > 60 else 1 if age > 40 else 0) + (2 if smoker else 0) + (2 if pressure > 140 else 0)


def test_a_function_on_plain_values() -> None:
    assert risk.__doc__ == "Points of a person." and risk.__name__ == "risk"
    assert risk.clear(70, True, 150) == 7
    ages, smokers, pressures = zip(*itertools.product((0, 40, 41, 60, 61, 120), (False, True), (60, 140, 141, 260)))
    got = risk.clear(list(ages), list(smokers), list(pressures))
    assert got == [want(*one) for one in zip(ages, smokers, pressures)]
    assert risk.clear([30, 90], False, 100) == [0, 3]
    assert risk.clear([], False, 100) == []
    with pytest.raises(vw.DataError, match="outside the declared range 0 to 120"):
        risk.clear(121, True, 150)
    with pytest.raises(vw.JobError, match="takes 3 arguments, and not 1"):
        risk.clear(7)
    with pytest.raises(vw.JobError, match="the lists have 1 and 2 values"):
        risk.clear([7], True, [100, 200])


def test_parties_compute_what_it_is_on_plain_values() -> None:
    rng = random.Random(5)
    rows = [(rng.randrange(121), rng.random() < 0.5, rng.randrange(60, 261)) for _ in range(20)]
    of = vw.Job("risk", owners=["o"], parties=["a", "b", "c"], recipients=["r"])
    columns = {"id": vw.Integer(0, 19), "age": vw.Integer(0, 120), "smoker": vw.Bool(may=["filter"], reveal="aggregates"), "pressure": vw.Integer(80, 200)}
    t = of.table("people", owner="o", rows=20, columns=columns | {"smoker": vw.Bool()})
    t = t.assign(pressure=t.pressure.clip(80, 200))
    of.open(t.assign(risk=risk(t.age, t.smoker, t.pressure))[["id", "risk"]], to="r")
    rows = [(age, smoker, min(max(pressure, 80), 200)) for age, smoker, pressure in rows]
    data = {"id": list(range(20))} | {name: list(cells) for name, cells in zip(("age", "smoker", "pressure"), zip(*rows))}
    got = {row["id"]: row["risk"] for row in of.run_local({"people": data}).to_dicts()}
    assert got == dict(enumerate(risk.clear(*(data[name] for name in ("age", "smoker", "pressure")))))


def test_a_call_outside_of_a_contract_is_refused() -> None:
    of = job()
    s, p = stays(of), people(of)
    with pytest.raises(vw.JobError, match=r"argument `age` of risk may be -20 to 90, and its contract is 0 to 120") as caught:
        risk(s.days, s.again, s.patient + 60)
    assert caught.value.source is not None and caught.value.source.file == __file__
    made = risk(s.days.clip(0, 90), s.again, s.patient + 60)
    assert isinstance(made, vw.Column)
    both = s.join(p, on="patient", suffix="_p")
    of.open(both.assign(risk=risk(both.age, both.again, both.patient + 60)).group_by("risk").agg(n=lambda t: t.count()), to="ministry")
    data = frames(8)
    (clear,) = of._plan().clear(of._given(data))
    assert sorted(map(str, of.run_local(data).to_dicts())) == sorted(map(str, vw.Answer(clear).to_dicts()))
    with pytest.raises(vw.JobError, match="or missing, and its contract is"):
        half(s.cost)
    with pytest.raises(vw.JobError, match="takes columns"):
        risk(7, True, 100)
    with pytest.raises(vw.JobError, match=r"argument `smoker` of risk"):
        risk(s.patient, s.patient, 100)
    with pytest.raises(vw.JobError, match="contract is"):
        ward(p.ward)
    assert isinstance(ward(s.ward), vw.Column)


@vw.traced(x=vw.Decimal(3, -1000, 10000))
def half(x: vw.Column) -> vw.Column:
    made: vw.Column = x * decimal.Decimal("0.5")
    return made


@vw.traced(w=vw.Category(["east", "it's", "north", "south", "west"]))
def ward(w: vw.Column) -> vw.Column:
    made: vw.Column = vw.where(w == "east", 1, 2)
    return made


def test_contracts_are_about_owners_words_neither() -> None:
    """What an owner forbids to open is compared all the same: nothing is opened by a contract."""
    of = vw.Job("j", owners=["o"], parties=["a", "b", "c"], recipients=["r"])
    t = of.table("t", owner="o", rows=4, columns={"x": vw.Decimal(2, 0, 99, may=["filter"], reveal="never")})
    assert isinstance(half(t.x), vw.Column)


def test_a_function_is_the_same_twice() -> None:
    with pytest.raises(vw.JobError, match="is not the same function twice"):

        @vw.traced(x=vw.Integer(0, 9))
        def noisy(x: vw.Column) -> vw.Column:
            made: vw.Column = x + random.randrange(10**9)
            return made

    with pytest.raises(vw.JobError, match="makes a int, and not a column"):
        vw.traced(x=vw.Integer(0, 9))(lambda x: 7)
    with pytest.raises(vw.JobError, match="makes a Aggregate"):
        vw.traced(x=vw.Integer(0, 9))(lambda x: x.sum())
    with pytest.raises(vw.SecretError):
        vw.traced(x=vw.Integer(0, 9))(lambda x: x if x > 3 else 3)
    with pytest.raises(vw.JobError, match="argument `y` of <lambda> has no contract"):
        vw.traced(x=vw.Integer(0, 9))(lambda x, y: x)
    with pytest.raises(vw.JobError, match="has no argument `y`"):
        vw.traced(x=vw.Integer(0, 9), y=vw.Bool)(lambda x: x)
    with pytest.raises(vw.JobError, match="is a key"):
        vw.traced(x=vw.Key())(lambda x: x)
    with pytest.raises(vw.JobError, match="is no plain argument"):
        vw.traced(x=vw.Integer(0, 9))(lambda x=3: x)


def test_hints_are_contracts() -> None:
    names: dict[str, object] = {"vw": vw}
    exec("@vw.traced\ndef double(x: vw.Integer(0, 9)) -> vw.Column:\n    return x * 2\n", names)
    double = names["double"]
    assert isinstance(double, vw.Traced) and double.clear([0, 9]) == [0, 18]
    assert double.sql == "(x * 2)"
    assert "x: Integer(min=0, max=9)" in repr(double) and "<td>x</td>" in double._repr_html_()


def test_what_a_function_costs_in_a_row() -> None:
    small = vw.traced(x=vw.Integer(0, 15), y=vw.Integer(0, 15))(lambda x, y: vw.where(x > y, x, y)).stats()
    large = vw.traced(x=vw.Integer(0, 2**40), y=vw.Integer(0, 2**40))(lambda x, y: vw.where(x > y, x, y)).stats()
    none = vw.traced(x=vw.Integer(0, 15))(lambda x: x).stats()
    assert none.ands == none.products == 0
    # A comparison and a choice of 4 bits take at least 4 ANDs each.
    assert 8 <= small.ands < large.ands and small.depth < large.depth
