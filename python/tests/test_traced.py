"""Functions of columns with contracts: as parties compute them, as they are on plain values, and what is refused."""

from __future__ import annotations

import decimal
import itertools
import random
from typing import Any

import pytest

import veilworks as vw
from builders import frames, job, people, stays


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
    assert none == vw.CircuitStats(0, 0, 0, 0, 0.0)
    # A comparison and a choice of 4 bits take at least 4 ANDs each.
    assert 8 <= small.ands < large.ands and small.depth < large.depth


def test_bytes_are_those_of_the_protocol() -> None:
    function = vw.traced(x=vw.Integer(0, 15), y=vw.Integer(0, 15))(lambda x, y: vw.where(x > y, x, y))
    three = function.circuit().stats()
    assert three == function.stats() and three.gates > three.ands
    # Each of three parties sends a bit for each AND, each of four twice as many or more.
    assert three.bytes == 3 * three.ands / 8
    four = function.circuit(parties=4, adversary="semi-honest").stats()
    malicious = function.circuit(parties=4, adversary="malicious").stats()
    assert four.ands == malicious.ands == three.ands
    assert four.bytes == 6 * four.ands / 8
    assert four.bytes < malicious.bytes < 2 * four.bytes
    assert repr(function.circuit(parties=4)) == "<circuit of <lambda> among 4 parties>"


def test_a_hint_of_the_result_is_a_contract() -> None:
    names: dict[str, Any] = {"vw": vw}
    exec(
        "@vw.traced\n"
        "def risk(age: vw.Integer(0, 120), smoker: vw.Bool) -> vw.Decimal(3, 0, 1):\n"
        "    score = vw.where(age > 60, 3, vw.where(age > 40, 1, 0)) + vw.where(smoker, 2, 0)\n"
        "    return vw.sigmoid(score - 4, 3)\n",
        names,
    )
    risk = names["risk"]
    assert risk.clear(70, True) == decimal.Decimal("0.731")
    assert repr(risk.returns) == repr(vw.Decimal(3, 0, 1)) and " -> Decimal(scale=3" in repr(risk)

    @vw.traced(x=vw.Integer(0, 9))
    def even(x: Any) -> vw.Bool:
        made: Any = x % 2 == 0
        return made  # type: ignore[no-any-return]

    assert even.clear([1, 2]) == [False, True] and isinstance(even.returns, vw.Bool)


def test_a_result_beyond_its_contract_is_refused_with_its_line() -> None:
    def refused(body: Any, returns: Any) -> vw.JobError:
        body.__annotations__ = {"return": returns}
        with pytest.raises(vw.JobError) as caught:
            vw.traced(x=vw.Integer(0, 9))(body)
        return caught.value

    def double(x: Any) -> Any:
        y = x + 1
        return y * 2

    error = refused(double, vw.Integer(0, 19))
    assert error.source == (__file__, double.__code__.co_firstlineno + 2)
    assert str(error).split("\n")[0] == "the result of double may be 2 to 20, and its contract is 0 to 19"
    assert error.help == "clip it, or widen the contract; write .fillna(…) where a value may be missing, or null=True into the contract"
    error = refused(lambda x: vw.sqrt(x), vw.Decimal(3, 0, 3))
    assert "may be 0.000000 to 3.000000, and its contract is 0.000 to 3.000" in str(error)
    assert error.help.startswith("round it, .round(3), clip it, or widen the contract")
    assert "or missing, and its contract is" in str(refused(lambda x: (9 / x).round(2), vw.Decimal(2, 0, 9)))
    assert "the result of <lambda> may be bool, and its contract is 0 to 1" in str(refused(lambda x: x > 3, vw.Integer(0, 1)))
    assert "is a key, and nothing computes one" in str(refused(lambda x: x, vw.Key(80)))
    assert "the hint of the result of <lambda> is not read: name 'nowhere' is not defined" in str(refused(lambda x: x, "nowhere.Integer(0, 9)"))

    # Any other hint is no contract.
    def other(x: Any) -> vw.Column:
        made: vw.Column = x + 1
        return made

    assert vw.traced(x=vw.Integer(0, 9))(other).returns is None
