"""Jobs of participants with homes of their own: services on loopback, each in a process, and owners that Python starts."""

from __future__ import annotations

import asyncio
import copy
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import veilworks as vw
from builders import frames, job, people, stays
from homes import PARTIES, made, serving
from veilworks import _program

ROOT = pathlib.Path(__file__).parents[2]
Homes = dict[str, vw.Home]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    every = made(tmp_path_factory.mktemp("homes"))
    with serving(every):
        yield every


def asked(name: str) -> vw.Job:
    """A job whose plan no other test has."""
    of = vw.Job(name, owners=["north", "south"], parties=list(PARTIES), recipients=["ministry"])
    s, p = stays(of), people(of)
    both = s.join(p, on="patient", suffix="_p")
    of.open(both.group_by("ward").agg(n=both.count(), mean=both.cost.mean(), first=both.since.min()), to="ministry", name="by_ward")
    return of


def approved(homes: Homes, of: vw.Job, data: dict[str, Any]) -> None:
    homes["north"].approve(of, {"stays": data["stays"]}, yes=True)
    homes["south"].approve(of, {"people": data["people"]}, yes=True)
    for name in (*PARTIES, "ministry"):
        homes[name].approve(of, yes=True)


def rows(result: vw.Result) -> list[dict[str, Any]]:
    return sorted(result.to_dicts(), key=lambda row: str(row["ward"]))


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def test_a_job_from_its_proposal_to_its_result(homes: Homes) -> None:
    of, data = asked("from proposal to result"), frames(11)
    north = homes["north"].approve(of, {"stays": data["stays"]}, yes=True)
    assert (north.plan, north.term) == (of.plan, "one run")
    kept = homes["north"].path / "data" / of.plan
    assert [oct(file.stat().st_mode & 0o777) for file in kept.glob("*/*")] == ["0o600"]
    homes["south"].approve(of, {"people": data["people"]}, yes=True)
    homes["ministry"].approve(of, yes=True)
    owners = [homes[name].take_part(of) for name in ("north", "south")]
    run = homes["ministry"].submit(of)
    assert run.status == "pending" and not run.over
    for name in PARTIES:
        (proposal,) = homes[name].inbox()
        assert (proposal.plan, proposal.name) == (of.plan, of.name)
        assert "by_ward" in proposal.explain() and "FROM stays" in proposal.text
        proposal.approve(yes=True)
    news = list(run.events(every=0.1))
    assert {event.party for event in news} == set(PARTIES)
    assert [event.state for event in news if event.party == "p1"][-1] == "done"
    result = run.result()
    want = of.run_local(data)
    assert rows(result) == rows(want)
    assert result["by_ward"].columns == want["by_ward"].columns
    assert result.opened == of.opens and result.plan_hash == of.plan_hash
    assert result.receipt is not None and result.receipt["plan"] == of.plan and result.receipt["recipient"] == "ministry"
    assert [owner.result(30).answers for owner in owners] == [[], []]
    assert not kept.exists(), "a table that was written for one run is removed after it"
    assert {status.state for status in homes["south"].jobs() if status.plan == of.plan} == {"done"}


def test_a_run_is_awaited_and_found_again(homes: Homes, tmp_path: pathlib.Path) -> None:
    of, data = asked("awaited"), frames(12)
    of.save(tmp_path / "job.toml")
    read = vw.Job.read(tmp_path / "job.toml")
    approved(homes, read, data)

    async def all_of_it() -> tuple[vw.Result, list[str]]:
        owners = [homes[name].take_part(tmp_path / "job.toml") for name in ("north", "south")]
        run = homes["ministry"].submit(str(tmp_path / "job.toml"))
        states = [event.state async for event in homes["ministry"].events(run, every=0.1)]
        await asyncio.gather(*owners)
        return await run, states

    result, states = asyncio.run(all_of_it())
    assert rows(result) == rows(of.run_local(data)) and states[-1] == "done"
    again = homes["ministry"].run(of.plan[:16])
    assert again.status == "done" and rows(again.result()) == rows(result)
    with pytest.raises(vw.NotApproved, match="was for one run, and is used"):
        homes["ministry"].submit(of)


def test_an_interrupt_only_stops_the_waiting(homes: Homes) -> None:
    of, data = asked("interrupted"), frames(13)
    approved(homes, of, data)
    program = f"""
        import veilworks as vw
        run = vw.Home({str(homes["ministry"].path)!r}).submit(vw.Job.read({str(homes["ministry"].path / "jobs" / of.plan / "job.toml")!r}))
        try:
            print("waits", flush=True)
            run.result()
        except KeyboardInterrupt:
            print(run.status, flush=True)
    """
    waiting = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
    assert waiting.stdout is not None and waiting.stdout.readline() == "waits\n"
    waiting.send_signal(signal.SIGINT)
    said, _ = waiting.communicate(timeout=60)
    assert said.strip() in ("meeting", "queued", "running") and waiting.returncode == 0
    run = homes["ministry"].run(of)
    assert not run.over
    owners = [homes[name].take_part(of) for name in ("north", "south")]
    assert rows(run.result(60)) == rows(of.run_local(data))
    assert all(owner.result(30) for owner in owners)


def test_nothing_runs_that_was_not_approved(homes: Homes) -> None:
    of = asked("not approved")
    for call in (homes["ministry"].submit, homes["north"].take_part):
        with pytest.raises(vw.NotApproved, match="waits for approval"):
            call(of)
    with pytest.raises(vw.JobError, match="`north` brings no `people` to this job; it brings stays"):
        homes["north"].approve(of, {"people": frames(1)["people"]}, yes=True)
    with pytest.raises(vw.DataError, match="no part in the job"):
        homes["ministry"].approve(job_of_others(), yes=True)


def job_of_others() -> vw.Job:
    of = vw.Job("others", owners=["north"], parties=list(PARTIES), recipients=["south"])
    table = of.table("t", owner="north", rows=2, columns={"a": vw.Bool()})
    of.open(table.agg(n=table.count()), to="south")
    return of


def test_a_person_is_shown_the_job_and_asked(homes: Homes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    of, north = asked("asked"), homes["north"]
    with pytest.raises(vw.NotApproved, match="no person to ask"):
        north.approve(of)
    questions: list[str] = []

    def answer(word: str) -> None:
        def said(question: str = "") -> str:
            questions.append(question)
            return word

        monkeypatch.setattr("builtins.input", said)

    answer("n")
    with pytest.raises(vw.NotApproved, match="nothing was changed"):
        north.approve(of, {"stays": frames(1)["stays"]})
    assert questions == ["may this run as `north`? y or n: "]
    assert not (north.path / "data" / of.plan).exists()
    shown = capsys.readouterr().out
    assert "by_ward" in shown and "reads: `north`'s `stays` from" in shown and "good for one run" in shown
    (tmp_path / "stays.csv").write_text("patient\n1\n")
    answer("Y")
    approval = north.approve(of, {"stays": tmp_path / "stays.csv"}, runs=3, until="2099-12-31")
    assert approval.term == "3 runs until 2099-12-31T23:59:59Z"
    assert '"how":"answered"' in (north.path / "log.jsonl").read_text()
    north.revoke(of)
    with pytest.raises(vw.NotApproved):
        north.take_part(of)

    def away(question: str = "") -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", away)
    with pytest.raises(vw.NotApproved, match="yes=True"):
        north.approve(of)


def test_a_person_refuses(homes: Homes) -> None:
    of, data = asked("refused by a person"), frames(14)
    homes["ministry"].approve(of, yes=True)
    run = homes["ministry"].submit(of)
    (proposal,) = homes["p1"].inbox()
    proposal.refuse()
    with pytest.raises(vw.Refused, match="`p1` refuses the job: this party's operator refuses it") as caught:
        run.result(60)
    assert (caught.value.by, caught.value.rule) == ("p1", None)
    assert run.status == "failed" and not run._process.lives()  # type: ignore[union-attr]
    with pytest.raises(vw.Refused) as caught:
        homes["ministry"].submit(of)
    assert caught.value.by == "p1"
    # Neither a rule nor `yes` of a service stands above it; an approval does.
    (homes["p1"].path / "policy.toml").write_text('version = 1\n[[rule]]\nname = "all"\ndecision = "allow"\n')
    try:
        with pytest.raises(vw.Refused):
            homes["ministry"].submit(of)
    finally:
        (homes["p1"].path / "policy.toml").unlink()
    approved(homes, of, data)
    owners = [homes[name].take_part(of) for name in ("north", "south")]
    assert rows(homes["ministry"].submit(of).result(60)) == rows(of.run_local(data))
    assert all(owner.result(30) for owner in owners)
    homes["north"].refuse(asked("never"))
    with pytest.raises(vw.Refused, match="by a person here"):
        homes["north"].take_part(asked("never"))


def test_a_rule_refuses(homes: Homes) -> None:
    of = asked("refused by a rule")
    policy = homes["north"].path / "policy.toml"
    policy.write_text('version = 1\n[[rule]]\nname = "no costs"\ndecision = "refuse"\ncolumns = ["stays.cost"]\n')
    try:
        for call in (lambda: homes["north"].approve(of, yes=True), lambda: homes["north"].take_part(of)):
            with pytest.raises(vw.Refused, match="no costs") as caught:
                call()
            assert caught.value.rule == "no costs"
    finally:
        policy.unlink()


def test_who_is_away_is_named(homes: Homes) -> None:
    of, data = asked("away"), frames(15)
    approved(homes, of, data)
    owner, run = homes["north"].take_part(of), homes["ministry"].submit(of)
    with pytest.raises(vw.Stalled) as caught:
        run.result(timeout=8)
    assert caught.value.waits_for == ["south"]
    assert run.status == "meeting"
    run.stop()
    owner.stop()
    with pytest.raises(vw.RunError, match="stopped by a signal"):
        run.result()


def test_a_party_that_does_not_serve(tmp_path: pathlib.Path) -> None:
    every = made(tmp_path)
    of, data = asked("no service"), frames(16)
    approved(every, of, data)
    with serving(every, ("p0", "p1")):
        with pytest.raises(vw.LinkLost, match="p2") as caught:
            every["ministry"].submit(of, wait=1)
        assert caught.value.peer == "p2"
        assert {status.party for status in every["ministry"].jobs()} == {"p0", "p1"}
        with serving(every, ("p2",)):
            owners = [every[name].take_part(of) for name in ("north", "south")]
            assert rows(every["ministry"].submit(of).result(60)) == rows(of.run_local(data))
            assert all(owner.result(30) for owner in owners)


def test_a_table_that_does_not_fit_ends_the_run(homes: Homes) -> None:
    of, data = asked("bad table"), frames(17)
    bad = data | {"stays": data["stays"] | {"since": ["2026-01-01"] * len(data["stays"]["since"])}}
    approved(homes, of, bad)
    run = homes["north"].take_part(of)
    with pytest.raises(vw.DataError, match="row 1, column `since`: `2026-01-01` is outside the declared range"):
        run.result(60)
    homes["north"].revoke(of)


def test_a_party_is_told_by_its_service_what_came_of_a_job(homes: Homes) -> None:
    of = vw.Job("for a party", owners=["north"], parties=list(PARTIES), recipients=[])
    table = of.table("stays", owner="north", rows=vw.up_to(24), columns={"days": vw.Integer(-20, 90)})
    of.open(table.agg(total=table.days.sum()), to="p1")
    data = {"stays": {"days": [1, 2, 40]}}
    homes["north"].approve(of, data, yes=True)
    for name in PARTIES:
        homes[name].approve(of, yes=True)
    owner, run = homes["north"].take_part(of), homes["p1"].submit(of)
    homes["p1"].run(of)
    assert run.result(60).to_dicts() == [{"total": 43}]
    assert run.result().receipt["recipient"] == "p1"  # type: ignore[index]
    assert owner.result(30).answers == []
    with pytest.raises(vw.JobError, match="by its service"):
        run.stop()


def test_what_parties_keep_is_loaded_by_a_later_job(homes: Homes) -> None:
    columns = {"days": vw.Integer(-20, 90), "ward": vw.Category(["east", "west"])}
    first = vw.Job("keeps", owners=["north"], parties=list(PARTIES), recipients=[], salt="kept")
    stays = first.table("stays", owner="north", rows=vw.up_to(8), columns=columns)
    first.keep(stays[stays.days > 0][["days", "ward"]], "long stays", name="long_stays")
    data = {"stays": {"days": [5, -3, 40, 7], "ward": ["east", "west", "west", "east"]}}
    assert 'keep = "long stays"' in first.text and first.plan_hash in first.explain()
    with pytest.raises(vw.JobError, match="keeps or loads shares"):
        first.run_local(data)
    homes["north"].approve(first, data, yes=True)
    for name in PARTIES:
        homes[name].approve(first, yes=True)
    assert homes["north"].submit(first).result(60).answers == []
    later = vw.Job("loads", owners=[], parties=list(PARTIES), recipients=["ministry"], salt="kept")
    kept = later.table("long_stays", stored="long stays", rows=vw.up_to(8), columns=columns)
    later.open(kept.group_by("ward").agg(days=kept.days.sum(), n=kept.count()), to="ministry")
    for name in (*PARTIES, "ministry"):
        homes[name].approve(later, yes=True)
    assert rows(homes["ministry"].submit(later).result(60)) == [{"ward": "east", "days": 12, "n": 2}, {"ward": "west", "days": 40, "n": 1}]
    with pytest.raises(vw.JobError, match="is an owner's, or stored"):
        later.table("both", owner="north", stored="long stays", rows=8, columns=columns)


def test_a_file_that_changed_is_not_approved(homes: Homes, tmp_path: pathlib.Path) -> None:
    of = asked("changed")
    of.save(tmp_path / "job.toml")
    read = vw.Job.read(tmp_path / "job.toml")
    asked("changed since").save(tmp_path / "job.toml")
    with pytest.raises(vw.JobError, match="changed since it was read"):
        homes["north"].approve(read, yes=True)
    assert not (homes["north"].path / "jobs" / of.plan).exists()
    with pytest.raises(vw.JobError, match="cannot be read"):
        homes["north"].approve(tmp_path / "none.toml", yes=True)
    with pytest.raises(vw.JobError, match="0 jobs with a plan 01234567"):
        homes["north"].approve("01234567", yes=True)
    with pytest.raises(vw.JobError, match="no computing party"):
        homes["north"].serve()
    with pytest.raises(vw.JobError, match="no run of the plan"):
        homes["north"].run(read)


def test_the_program_is_there_and_of_this_release(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "veil"
    other.write_text("#!/bin/sh\necho veil 0.0.0\n")
    other.chmod(0o755)
    monkeypatch.setenv("VEIL", str(other))
    with pytest.raises(vw.VeilError, match=r"is `veil 0\.0\.0`, and this package is of release"):
        vw.Home(tmp_path)
    monkeypatch.setenv("VEIL", str(tmp_path / "none"))
    with pytest.raises(vw.VeilError, match="does not start"):
        vw.Home(tmp_path)
    monkeypatch.delenv("VEIL")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(vw.VeilError, match="is not there"):
        vw.Home(tmp_path)


def test_a_home_that_is_none(tmp_path: pathlib.Path) -> None:
    with pytest.raises(vw.VeilError, match="veil init"):
        vw.Home(tmp_path / "none")


NOTHING: dict[str, Any] = {"message": "m", "help": "", "suspects": [], "waits_for": [], "peer": None, "step": None, "rule": None, "refused": False, "unapproved": False}


@pytest.mark.parametrize(
    ("of", "kind", "has"),
    [
        ({"code": "input", "refused": True, "rule": "r"}, vw.Refused, {"rule": "r"}),
        ({"code": "input", "unapproved": True}, vw.NotApproved, {}),
        ({"code": "link", "waits_for": ["p1", "south"]}, vw.Stalled, {"waits_for": ["p1", "south"]}),
        ({"code": "link", "peer": "p2", "step": "round 3"}, vw.LinkLost, {"peer": "p2", "step": "round 3"}),
        ({"code": "check", "suspects": ["p0", "p1"]}, vw.CheckFailed, {"suspects": ["p0", "p1"]}),
        ({"code": "device"}, vw.DeviceFailed, {}),
        ({"code": "input", "line": 3, "column": 7}, vw.JobError, {"line": 3, "column": 7}),
        ({"code": "input"}, vw.DataError, {}),
        ({"code": "other"}, vw.RunError, {}),
    ],
)
def test_each_failure_has_its_exception(of: dict[str, Any], kind: type[vw.VeilError], has: dict[str, Any]) -> None:
    error = _program.typed(NOTHING | of, "m")
    assert type(error) is kind and {name: getattr(error, name) for name in has} == has


def test_no_home_and_no_run_is_copied(homes: Homes) -> None:
    for thing in (homes["north"], vw.Run(homes["north"], "0" * 64, None, None)):
        for call in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="neither pickled nor copied"):
                call(thing)
    assert repr(homes["north"]) == f"<Home of owner north: {homes['north'].path}>"
    assert "<td>p1</td><td>party</td>" in homes["north"]._repr_html_()
