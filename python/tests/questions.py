"""Jobs of many kinds, and a program that says the plan hash and the text of each: `python questions.py`, under any interpreter and with nothing
installed. Names of functions choose among them."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Callable

import veilworks as vw
from builders import job, people, stays


@vw.traced(days=vw.Integer(0, 90), again=vw.Bool, cost=vw.Decimal(2, -100, "9999.99"))
def points(days: vw.Column, again: vw.Column, cost: vw.Column) -> vw.Column:
    """Points of a stay."""
    made: vw.Column = vw.where(days > 60, 3, vw.where(days > 10, 1, 0)) + vw.where(again, 2, 0) + vw.where(cost > vw.maximum(days, 7) * 3, 2, 0)
    return made


def _in(order: list[int], *steps: Callable[[], None]) -> None:
    for at in order:
        steps[at]()


def _tables(of: vw.Job, order: list[int]) -> tuple[vw.Table, vw.Table]:
    """Both tables, declared in this order."""
    made: dict[int, vw.Table] = {}
    for at in order:
        made[at] = (stays, people)[at](of)
    return made[0], made[1]


def readmissions(order: list[int]) -> vw.Job:
    """Groups, and a join; the second order asks a question that nothing opens as well."""
    of = job(salt="study 7")
    s, p = _tables(of, order)

    def by_ward() -> None:
        t = s[s.days > 10]
        t = t[t.again]
        of.open(t.group_by("ward").agg(n=t.count(), cost=t.cost.mean(2)), to="ministry", name="by_ward", min_count=2)

    def joined() -> None:
        if order[0] == 1:
            # Nothing reads it.
            s.assign(unread=s.days * 3).group_by("unread").agg(n=lambda t: t.count())
        j = s.join(p.drop("ward"), on="patient").limit_rows(24)
        of.open(j.agg(n=j.count(), age=j.age.max()), to="ministry", name="joined")

    _in(order, by_ward, joined)
    return of


def pay_gap(order: list[int]) -> vw.Job:
    """The pay gap of the notebook: two employers, one after the other, and the median and the mean of groups."""
    of = vw.Job("pay gap", owners=["mill", "yard"], parties=["p0", "p1", "p2", "p3"], recipients=["press", "union"], adversary="malicious")
    columns: dict[str, vw.ColumnType] = {
        "pay": vw.Decimal(2, 0, "250000.00"),
        "sex": vw.Category(["f", "m", "ß → é"], null=True),
        "since": vw.Date("1980-01-01", "2025-12-31"),
        "part": vw.Bool(),
    }
    made: dict[int, vw.Table] = {}
    for at in order:
        name = ("mill", "yard")[at]
        made[at] = of.table(name, owner=name, rows=vw.up_to(40), columns=columns)
    all_pay = vw.concat([made[0], made[1]])
    full = all_pay[~all_pay.part & all_pay.sex.notna()]

    def of_sexes() -> None:
        of.open(full.group_by("sex").agg(n=full.count(), mean=full.pay.mean(2), half=full.pay.median()), to="press", name="by_sex", min_count=5)

    def of_years() -> None:
        t = full.assign(year=full.since.year, logged=vw.log(vw.maximum(full.pay, 1), 4))
        of.open(t.group_by("year").agg(logged=t.logged.mean(4), most=t.pay.max().where(t.sex == "f")), to="union", name="by_year", min_count=3)

    _in(order, of_sexes, of_years)
    return of


def regressions(order: list[int]) -> vw.Job:
    """Models that are fitted: by Newton's steps, and by descent."""
    of = job()
    s, p = _tables(of, order)

    def by_descent() -> None:
        of.open(vw.ml.LogisticRegression(places=6, method="gradient", batch=12, epochs=2, rate="0.25", min_count=9).fit(s, x=["days", "cost"], y="again"), to="ministry", name="descent")

    def by_steps() -> None:
        j = s.join(p.drop("ward"), on="patient").limit_rows(24)
        of.open(vw.ml.LinearRegression(places=6, min_count=9).fit(j, x=["age", "days"], y="cost"), to="ministry", name="line")

    _in(order, by_steps, by_descent)
    return of


def functions(order: list[int]) -> vw.Job:
    """A traced function of rows, and a loop of a public number of turns."""
    of = job()
    s, p = _tables(of, order)

    def pointed() -> None:
        t = s[s.cost.notna()]
        t = t.assign(points=points(t.days.clip(0, 90), t.again, t.cost.fillna(0)))
        of.open(t.group_by("points").agg(n=t.count()), to="ministry", name="points")

    def root() -> None:
        x = vw.state(vw.maximum(p.age, 1), vw.Decimal(6, "0.25", 200, null=True))
        with vw.for_range(4, x):
            x.update(((x + p.age / x) / 2).round(6).clip(0.25, 200))
        t = p.assign(root=x)
        of.open(t.agg(most=t.root.max()), to="ministry", name="root")

    _in(order, pointed, root)
    return of


def asked_in_sql(order: list[int]) -> vw.Job:
    """Text of SQL, with a window and a subquery."""
    of = job()
    _tables(of, order)

    def windows() -> None:
        text = "SELECT ward, since, rank() OVER (PARTITION BY ward ORDER BY since) AS place FROM stays WHERE ward <> 'it''s'"
        of.open(of.sql(text, columns=["ward", "since", "place"]), to="ministry", name="places")

    def missing() -> None:
        text = "SELECT count(*) AS n FROM stays WHERE patient NOT IN (SELECT patient FROM people WHERE age > 17)"
        of.open(of.sql(text, columns=["n"]), to="ministry", name="missing")

    _in(order, windows, missing)
    return of


QUESTIONS: list[Callable[[list[int]], vw.Job]] = [readmissions, pay_gap, regressions, functions, asked_in_sql]


def said(*names: str) -> dict[str, list[str]]:
    """Of each job, or of those with these names, in both orders: its plan hash, its text, the text that `save` writes, and the hash of the job that is read again."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "job.toml"
        for question in QUESTIONS:
            if names and question.__name__ not in names:
                continue
            for order in ([0, 1], [1, 0]):
                of = question(order)
                of.save(file)
                found[f"{question.__name__} {order}"] = [of.plan_hash, of.text, file.read_bytes().decode(), vw.Job.read(file).plan_hash]
    return found


if __name__ == "__main__":
    json.dump(said(*sys.argv[1:]), sys.stdout)
