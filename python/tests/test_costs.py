"""What jobs cost, tables of several files, and cells at fault as a table."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest

import veilworks as vw
from builders import frames, job, people, stays

ROOT = pathlib.Path(__file__).parents[2]


def asked() -> vw.Job:
    of = job()
    s, p = stays(of), people(of)
    both = s.join(p, on="patient", suffix="_p")
    of.open(both.group_by("ward").agg(n=both.count()), to="ministry")
    return of


def test_costs_are_those_that_explain_prints() -> None:
    of = asked()
    lan, wan, here = of.cost(), of.cost("wan"), of.cost("loopback")
    assert (lan.net, wan.net, here.net) == ("lan", "wan", "loopback")
    assert 0 < lan.seconds < wan.seconds and lan.rounds == wan.rounds > 3
    assert sum(lan.sent.values()) == lan.bytes and set(lan.sent) == {"p0", "p1", "p2", "north", "south", "ministry"}
    assert f"{lan.rounds} rounds in all" in of.explain()
    with pytest.raises(vw.JobError, match="is none of loopback, lan, wan"):
        of.cost("moon")


def test_costs_among_others_leave_the_job_as_it_is() -> None:
    of = asked()
    before, text = of.plan_hash, of.text
    four = of.cost(parties=4)
    strict = of.cost(parties=4, adversary="malicious")
    assert four == strict and four.bytes > of.cost().bytes and len(four.sent) == 7
    three = of.cost(adversary="malicious")
    assert three.bytes > of.cost().bytes and set(three.sent) == set(of.cost().sent)
    assert (of.plan_hash, of.text) == (before, text)
    with pytest.raises(vw.JobError, match="the job names 7 parties"):
        of.cost(parties=7)
    with pytest.raises(vw.JobError):
        of.cost(adversary="rude")
    assert (of.plan_hash, of.text) == (before, text)


def test_a_table_of_several_files(tmp_path: pathlib.Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for at, pay in enumerate(([1, 2], [30], [400, 500])):
        parquet.write_table(pyarrow.table({"pay": pay, "note": ["x"] * len(pay)}), tmp_path / f"pay-{at}.parquet")
    of = vw.Job("pay", owners=["mill"], parties=["a", "b", "c"], recipients=["press"])
    t = of.table("pay", owner="mill", rows=vw.up_to(8), columns={"pay": vw.Integer(0, 1000)})
    of.open(t.agg(total=t.pay.sum(), n=t.count()), to="press")
    for source in (vw.parquet(tmp_path / "pay-*.parquet"), vw.parquet(tmp_path / "*.parquet", columns=["pay"])):
        assert of.run_local({"pay": source}).to_dicts() == [{"total": 933, "n": 5}]
        assert of.check({"pay": source})[0][1] == 5
    assert repr(vw.parquet("a-*.parquet", columns=["x"])) == "parquet('a-*.parquet', columns=['x'])"
    one = of.run_local({"pay": vw.parquet(tmp_path / "pay-2.parquet")}).to_dicts()
    assert one == of.run_local({"pay": vw.parquet(tmp_path / "pay-[2].parquet")}).to_dicts() == [{"total": 900, "n": 2}]
    with pytest.raises(vw.JobError, match="no file is named like"):
        of.run_local({"pay": vw.parquet(tmp_path / "none-*.parquet")})
    with pytest.raises(vw.DataError, match="no column `wage`"):
        of.run_local({"pay": vw.parquet(tmp_path / "pay-*.parquet", columns=["wage"])})
    parquet.write_table(pyarrow.table({"pay": ["7"], "note": ["x"]}), tmp_path / "pay-3.parquet")
    with pytest.raises(vw.DataError, match="it has other columns than the file before it, or of other types"):
        of.run_local({"pay": vw.parquet(tmp_path / "pay-*.parquet")})


def test_cells_at_fault_are_a_table(tmp_path: pathlib.Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    of = asked()
    (tmp_path / "people.csv").write_text("patient,age,ward\n1,200,east\n2,30,attic\n")
    data: dict[str, Any] = {"stays": frames(1)["stays"], "people": tmp_path / "people.csv"}
    with pytest.raises(vw.DataError) as caught:
        of.check(data | {"stays": data["stays"] | {"ward": ["attic"] * len(data["stays"]["ward"])}})
    rows = pyarrow.table(caught.value.problems).to_pylist()
    assert rows[0] == {"file": "table `stays` in memory", "row": 1, "line": None, "column": "ward", "cell": "attic", "what": rows[0]["what"]}
    assert "not one of the declared values" in rows[0]["what"]
    (tmp_path / "people.csv").write_text("patient,age,ward\n1,2,east\n99,30,east\n")
    with pytest.raises(vw.DataError) as caught:
        of.check(data)
    assert isinstance(caught.value.problems, vw.Problems)
    assert [(one["file"], one["row"], one["line"], one["column"], one["cell"]) for one in pyarrow.table(caught.value.problems).to_pylist()] == [
        (str(tmp_path / "people.csv"), 2, 3, "patient", "99")
    ]


def test_guesses_of_files_and_frames_are_the_same(tmp_path: pathlib.Path) -> None:
    cells = {"day": ["2024-05-06", "2025-01-02"] * 3, "n": [17, 1234] * 3, "sex": ["f", "m"] * 3, "p": ["0.5", "0.25"] * 3}
    lines = [",".join(cells), *(",".join(map(str, row)) for row in zip(*cells.values()))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    guessed = vw.infer(tmp_path / "t.csv")
    assert {name: repr(kind) for name, kind in guessed.items()} == {name: repr(kind) for name, kind in vw.infer(cells).items()}
    assert repr(guessed["n"]) == "Integer(min=0, max=1500)  # guess: the range, rounded outwards"
    assert guessed["day"].fields == {"min": "2024-01-01", "max": "2025-12-31"}
    with pytest.raises(vw.DataError, match=r"none\.csv"):
        vw.infer(tmp_path / "none.csv")
    with pytest.raises(vw.JobError, match="column `e`: it has no value to guess from"):
        vw.infer({"e": [None, None]})


def test_the_page_of_names_is_as_the_docstrings_are() -> None:
    said = subprocess.run([sys.executable, str(ROOT / "scripts" / "python-api.py"), "--check"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
