"""What is wrong is said at the user's own line, with what to write instead."""

from __future__ import annotations

import copy
import decimal
import inspect
import pathlib
import pickle
from typing import Any, Callable

import pytest

import veilworks as vw
from builders import frames, job, people, stays

Small = tuple[vw.Job, vw.Table]


def _line() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize(
    ("use", "said", "instead"),
    [
        (lambda t: bool(t.pay > 3), "the truth of an expression is secret", "vw.where"),
        (lambda t: 0 < t.age < 9, "the truth of an expression is secret", "(0 < x) & (x < 9)"),
        (lambda t: t.pay and t.age, "the truth of column `pay` is secret", "`&`, `|` and `~`"),
        (lambda t: len(t), "the number of rows of table `people` is secret", ".limit_rows(5000)"),
        (lambda t: hash(t.pay), "the hash of column `pay` is secret", "group_by"),
        (lambda t: int(t.pay), "the number of column `pay` is secret", "open it"),
        (lambda t: float(t.pay.mean()), "the number of an aggregate of `pay` is secret", "open it"),
        (lambda t: [1, 2][t.age], "the number of column `age` is secret", "write a number"),
        (lambda t: list(t), "each row of table `people` is secret", "vw.where"),
        (lambda t: "f" in t.sex, "whether a value is in the rows of column `sex` is secret", ".any()"),
    ],
)
def test_control_flow_on_secrets_is_refused(small: Small, use: Callable[[Any], Any], said: str, instead: str) -> None:
    with pytest.raises(vw.SecretError) as caught:
        use(small[1])
    assert isinstance(caught.value, TypeError)
    assert said in str(caught.value)
    assert instead in caught.value.help
    assert caught.value.source is not None and caught.value.source.file == __file__


def test_an_error_of_the_planner_names_the_line_that_asked(small: Small) -> None:
    of, t = small
    old = t[t.age > 40]
    bad = old[
        old.sex > 7
    ]
    line = _line() - 2
    of.open(bad.agg(n=bad.count()), to="press")
    with pytest.raises(vw.PlanError) as caught:
        of.plan_hash
    assert caught.value.source == (__file__, line)
    assert "category" in str(caught.value) and "old.sex > 7" in str(caught.value)
    assert "job.toml" not in str(caught.value)


def test_each_step_has_its_own_line() -> None:
    of = job()
    s, p = stays(of), people(of)
    j = s.join(p, on="patient", suffix="_p")
    t = j.assign(x=j.days + 1).assign(y=lambda t: t.x * 2)
    t = t[t.y > 4].limit_rows(24)
    g = t.group_by("ward").agg(n=t.since.sum()); line = _line()
    of.open(g, to="ministry")
    with pytest.raises(vw.PlanError) as caught:
        of.plan_hash
    assert caught.value.source == (__file__, line)


def test_an_error_of_a_declaration_names_its_line() -> None:
    of = vw.Job("j", owners=["o"], parties=["a", "b", "c"], recipients=["r"])
    of.table("first", owner="o", rows=2, columns={"a": vw.Bool()})
    t = of.table("t", owner="o", rows=2, columns={"a": vw.Integer(9, 3)}); line = _line()
    of.open(t.agg(n=t.count()), to="r")
    with pytest.raises(vw.JobError) as caught:
        of.plan_hash
    assert not isinstance(caught.value, vw.PlanError) and isinstance(caught.value, ValueError)
    assert caught.value.source == (__file__, line)


def test_an_error_of_an_answer_names_its_line(small: Small) -> None:
    of, t = small
    of.open(t.agg(n=t.count()), to="press", name="one")
    of.open(t.agg(n=t.count()), to="press", name="mean pay"); line = _line()
    with pytest.raises(vw.JobError, match="a name has lower-case letters") as caught:
        of.plan_hash
    assert caught.value.source == (__file__, line)


def test_a_recipient_that_is_none(small: Small) -> None:
    of, t = small
    of.open(t.agg(n=t.count()), to="a-stranger")
    with pytest.raises(vw.JobError, match="a-stranger"):
        of.plan_hash


def test_floats_are_exact_or_refused(small: Small) -> None:
    _, t = small
    assert "0.5" in (t.pay > 0.5)._node.parts
    with pytest.raises(vw.JobError, match=r"decimal\.Decimal\('12\.34'\)"):
        t.pay > 12.34
    for number in (float("nan"), float("inf")):
        with pytest.raises(vw.JobError, match="is no number"):
            t.pay > number
    with pytest.raises(vw.JobError, match="binary fraction"):
        vw.Decimal(2, 0, 0.1)
    with pytest.raises(vw.JobError, match="isna"):
        t.pay == None  # noqa: E711


def test_columns_of_other_tables_are_refused(small: Small) -> None:
    of, t = small
    old = t[t.age > 40]
    with pytest.raises(vw.JobError, match="take columns of the table itself"):
        old[t.age > 50]
    with pytest.raises(vw.JobError, match="stand in one expression"):
        old.age + t.age
    with pytest.raises(vw.JobError, match="write .sum"):
        t.agg(n=t.pay)
    with pytest.raises(vw.JobError, match="has no column `salary`; it has pay, sex, age"):
        t["salary"]
    with pytest.raises(AttributeError, match="has no column `salary`"):
        t.salary
    with pytest.raises(vw.JobError, match="of another job"):
        job().open(t, to="ministry")


def test_groups_are_by_columns_that_have_names(small: Small) -> None:
    of, t = small
    for keys in (("sex",), (t.sex,), (["sex"],)):
        assert t.group_by(*keys).agg(n=t.count()).columns == ["sex", "n"]
    with pytest.raises(vw.JobError, match=r"name a computed column first: \.assign"):
        t.group_by(t.age > 30)


def test_numbers_of_numpy_are_constants(small: Small) -> None:
    numpy = pytest.importorskip("numpy")
    _, t = small
    assert "0.5" in (numpy.float64(0.5) * t.pay)._node.parts
    assert "7" in (numpy.int64(7) + t.age)._node.parts
    assert "TRUE" in (t.age.isna() == numpy.bool_(True))._node.parts


def test_names_that_clash(small: Small) -> None:
    of, t = small
    of.open(t.agg(n=t.count()), to="press", name="one")
    with pytest.raises(vw.JobError, match="two answers"):
        of.open(t.agg(n=t.count()), to="press", name="one")
    with pytest.raises(vw.JobError, match="a table `people` already"):
        of.table("people", owner="mill", rows=1, columns={"a": vw.Bool()})
    s = stays(job())
    with pytest.raises(vw.JobError, match="both tables have a column"):
        s.join(people(s._job), on="patient")


GOOD: dict[str, list[Any]] = {"pay": ["1.50", 2, decimal.Decimal("3.25")], "sex": ["f", "m", "f"], "age": [30, 40, 50]}


def _opened(small: Small) -> vw.Job:
    of, t = small
    of.open(t.group_by("sex").agg(pay=t.pay.sum(), age=t.age.max()), to="press")
    return of


def test_good_data_are_good(small: Small) -> None:
    of = _opened(small)
    assert [(name, rows) for name, rows, _ in of.check({"people": GOOD})] == [("people", 3)]


@pytest.mark.parametrize(
    ("column", "cells", "row", "said"),
    [
        ("pay", ["1.505", 2, 3], 1, "more than 2 digits"),
        ("pay", [1, 12.34, 3], 2, "is a binary fraction"),
        ("pay", [1, 2, float("inf")], 3, ""),
        ("pay", [1, 100, 3], 2, "outside the declared range"),
        ("age", [30, None, 50], 2, "is empty"),
        ("age", [30, float("nan"), 50], 2, "is empty"),
        ("age", ["x", 1, 2], 1, "is not a number"),
        ("sex", ["f", "g", "m"], 2, "not one of the declared values"),
    ],
)
def test_cells_that_do_not_fit(small: Small, column: str, cells: list[Any], row: int, said: str) -> None:
    of = _opened(small)
    for call in (of.check, of.run_local):
        with pytest.raises(vw.DataError) as caught:
            call({"people": GOOD | {column: cells}})
        assert [(problem.row, problem.column) for problem in caught.value.problems] == [(row, column)]
        assert said in caught.value.problems[0].what
        assert "table `people` in memory: row" in str(caught.value)


def test_frames_that_do_not_fit(small: Small) -> None:
    of = _opened(small)
    with pytest.raises(vw.DataError, match="no column `age`; the header names `pay`, `sex`"):
        of.check({"people": {name: GOOD[name] for name in ("pay", "sex")}})
    with pytest.raises(vw.JobError, match="not equally long"):
        of.check({"people": GOOD | {"age": [1]}})
    with pytest.raises(vw.DataError, match="has 6 rows"):
        of.check({"people": {name: cells * 2 for name, cells in GOOD.items()}})
    with pytest.raises(vw.JobError, match="has no table `stays`"):
        of.check({"stays": GOOD})
    with pytest.raises(vw.JobError, match="is no table for `people`"):
        of.check({"people": 7})
    with pytest.raises(vw.DataError, match="no file is given"):
        of.check({})


def test_floats_as_they_are_written(small: Small) -> None:
    of = _opened(small)
    result = of.run_local({"people": vw.as_written(GOOD | {"pay": [12.34, 0.1, 0.2]})})
    assert {row["sex"]: row["pay"] for row in result.to_dicts()} == {"f": decimal.Decimal("12.54"), "m": decimal.Decimal("0.10")}


def test_nothing_is_pickled_or_copied(small: Small) -> None:
    of = _opened(small)
    result = of.run_local({"people": GOOD})
    for thing in (of, small[1], small[1].pay, small[1].pay.sum(), result, result["answer"], of._plan(), result["answer"]._of):
        for call in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="neither pickled nor copied"):
                call(thing)


def test_no_repr_has_data(small: Small) -> None:
    of, t = small
    _opened(small).run_local({"people": GOOD})
    things: list[Any] = [of, t, t[t.pay > 1]]
    for thing in things:
        assert "3.25" not in repr(thing) + thing._repr_html_()
    assert "3.25" not in repr(t.pay) + repr(t.group_by("sex"))
    assert "0.00" in repr(vw.Decimal(2, "0.00", 1))


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(vw.JobError, match="cannot be read"):
        vw.Job.read(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("version = 1\nkind = 7\n")
    with pytest.raises(vw.JobError) as caught:
        vw.Job.read(tmp_path / "bad.toml")
    assert caught.value.line == 2


def test_a_changed_table_ends_nothing_else() -> None:
    of = job()
    s = stays(of)
    of.open(s.agg(n=s.count()), to="ministry")
    data = {"stays": frames(1)["stays"]}
    first = of.run_local(data).to_dicts()
    assert first == of.run_local(data).to_dicts() == [{"n": len(data["stays"]["days"])}]
