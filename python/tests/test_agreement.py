"""One question has one hash, however it is asked, and the command reads what Python writes."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
from builders import frames, job, stays
from questions import readmissions

import veilworks as vw


def test_the_order_of_statements_and_dead_code_do_not_matter() -> None:
    one, other = readmissions([0, 1]), readmissions([1, 0])
    assert one.plan_hash == other.plan_hash
    assert one.text == other.text
    assert "unread" not in other.text


def test_another_question_has_another_hash() -> None:
    hashes = set()
    for least in range(3):
        of = job()
        s = stays(of)
        of.open(s[s.days > least].agg(n=lambda t: t.count()), to="ministry")
        hashes.add(of.plan_hash)
    assert len(hashes) == 3


def test_a_saved_job_is_the_job(tmp_path: pathlib.Path) -> None:
    of = readmissions([0, 1])
    file = tmp_path / "job.toml"
    of.save(file)
    read = vw.Job.read(file)
    assert (read.plan_hash, read.opens, read.explain(), read.name) == (of.plan_hash, of.opens, of.explain(), of.name)
    data = frames(3)
    assert repr(read.run_local(data)) == repr(of.run_local(data))
    with pytest.raises(vw.JobError, match="stays as it is"):
        read.table("more", owner="north", rows=1, columns={"a": vw.Bool()})


def test_what_is_quoted_comes_back(tmp_path: pathlib.Path) -> None:
    values = ["it's", 'say "so"', "back\\slash", '"""', "ß → é", "; DROP TABLE t; --"]
    of = vw.Job('a "name"', owners=["o"], parties=["a", "b", "c"], recipients=["r"])
    t = of.table("order", owner="o", rows=6, columns={"select": vw.Category(values), "n": vw.Integer(0, 9)})
    for at, value in enumerate(values):
        of.open((lambda u: u.agg(n=u.n.sum()))(t[t["select"] == value]), to="r", name=f"of_{at}")
    of.save(tmp_path / "job.toml")
    result = vw.Job.read(tmp_path / "job.toml").run_local({"order": {"select": values, "n": list(range(6))}})
    assert [result[f"of_{at}"].to_dicts() for at in range(6)] == [[{"n": at}] for at in range(6)]


def test_the_command_reads_what_python_writes(tmp_path: pathlib.Path) -> None:
    veil = os.environ.get("VEIL")
    if not veil:
        pytest.skip("VEIL names no command")
    of = readmissions([1, 0])
    of.save(tmp_path / "job.toml")
    for more in ([], ["--plan"]):
        command = [veil, "explain", "job.toml", "--home", str(tmp_path / "none"), *more]
        said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert said.stdout == of.explain(plan=bool(more))
    assert of.plan_hash in of.explain()
