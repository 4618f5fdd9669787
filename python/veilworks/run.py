"""A run of a job, seen from one of its participants."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Generator, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _veil
from ._program import call, failed, program
from .errors import JobError, Refused, RunError, Stalled, VeilError
from .result import Answer, Result

if TYPE_CHECKING:
    from .home import Home

# Between two looks at a process of this machine, and between two questions to the parties: seconds.
_LOOK, _ASK = 0.1, 1.0
# How long a participant that is told to stop has to tell the others: seconds.
_STOP = 30.0


class Status(NamedTuple):
    """How a job is at a party, as the party says it: bytes are of payload, and `since` is a moment in UTC."""

    party: str
    plan: str
    job: str
    state: str
    since: str
    why: str | None
    phase: str | None
    rows: int
    of: int
    sent: int
    received: int
    waits_for: tuple[str, ...]

    @property
    def over(self) -> bool:
        """Whether no participant waits for it any more."""
        return self.state in ("done", "failed", "refused")


class Event(NamedTuple):
    """News of a run: how it is at a party now, and how many rows a second it has done since the news before."""

    party: str
    state: str
    phase: str | None
    rows: int
    of: int
    rate: float
    sent: int
    received: int
    waits_for: tuple[str, ...]
    why: str | None


def statuses(home: pathlib.Path) -> tuple[list[Status], dict[str, str]]:
    """How all jobs are, as the parties say that are there; and why the others say nothing."""
    said, failure = call("jobs", "--home", home, "--json", may_fail=True)
    if not said.strip():
        failed(failure or "", "jobs")
    found, silent = [], {}
    for at in json.loads(said):
        if at.get("why"):
            silent[at["party"]] = at["why"]
        for one in at["jobs"]:
            held = tuple(one.get("held", {}))
            waits = (*(name for name in one.get("waits_for", ()) if name not in held), *held)
            found.append(
                Status(
                    at["party"], one["plan"], one["job"], one["state"], one["since"], one.get("why"), one.get("phase"), one["rows"], one["of"], one["sent"], one["received"], waits
                )
            )
    return found, silent


class Process:
    """A participant in a process of its own, which goes on when Python ends: what it says is in files of a folder, and it holds a lock while it lives."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._child: subprocess.Popen[bytes] | None = None

    @staticmethod
    def start(folder: pathlib.Path, *arguments: str | os.PathLike[str]) -> Process:
        """Starts it. Ctrl-C in this process does not reach it."""
        process = Process(folder)
        folder.mkdir(parents=True, mode=0o700)
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
                command = [program(), "--errors", "json", *(os.fspath(one) for one in arguments)]
                process._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=(lock,), start_new_session=True)
        finally:
            os.close(lock)
        (folder / "pid").write_text(str(process._child.pid), encoding="ascii")
        return process

    def lives(self) -> bool:
        """Whether it goes on."""
        if self._child is not None:
            return self._child.poll() is None
        try:
            with open(self.folder / "lock", "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def stop(self) -> None:
        """Has it tell the others and end."""
        if not self.lives():
            return
        os.kill(self._child.pid if self._child else int((self.folder / "pid").read_text(encoding="ascii")), signal.SIGTERM)
        until = time.monotonic() + _STOP
        while self.lives() and time.monotonic() < until:
            time.sleep(_LOOK)

    def said(self) -> tuple[str, str]:
        """What it printed, and what it said."""
        out, err = (((self.folder / name).read_text(encoding="utf-8", errors="replace")) for name in ("stdout", "stderr"))
        return out, err


class Run:
    """A run of a job. `result()` waits for its end, and so does `await run`; Ctrl-C, or a cancelled task, only stops the waiting."""

    def __init__(self, home: Home, plan: str, planned: _veil.Job | None, process: Process | None) -> None:
        self._home, self.plan, self._planned, self._process = home, plan, planned, process
        self._ended: Result | VeilError | None = None
        self._asked = 0.0

    # How it is.

    @property
    def parties(self) -> list[Status]:
        """How it is at each party that is there."""
        return [status for status in statuses(self._home.path)[0] if status.plan == self.plan]

    @property
    def status(self) -> str:
        """How it is, in a word: `"pending"` where a person of a party has to approve it, `"meeting"`, `"queued"`, `"running"`, `"done"`, `"failed"`, `"refused"`."""
        if self._process is not None and not self._process.lives():
            out, _ = self._process.said()
            return "done" if out.strip() else "failed"
        states = [status.state for status in self.parties]
        for word in ("refused", "failed", "interrupted", "pending", "running", "queued", "meeting"):
            if word in states:
                return word
        return "done" if states else "unknown"

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._look() is not None

    def _look(self) -> Result | VeilError | None:
        """How it ended, if it did. Parties are asked once in a while."""
        if self._ended is None:
            self._ended = self._of_process() if self._process is not None else self._of_parties()
        return self._ended

    def _due(self) -> bool:
        if time.monotonic() - self._asked < _ASK:
            return False
        self._asked = time.monotonic()
        return True

    def _refused(self, status: Status) -> Refused:
        return Refused(f"`{status.party}` refuses the job: {status.why}", by=status.party)

    def _of_process(self) -> Result | VeilError | None:
        assert self._process is not None
        if self._process.lives():
            if self._due():
                for status in self.parties:
                    if status.state == "refused":
                        # The others would wait for it until their time is over.
                        self._process.stop()
                        return self._refused(status)
            return None
        out, err = self._process.said()
        if not out.strip():
            try:
                failed(err, "party")
            except VeilError as error:
                return error
        outcome = json.loads(out)
        answers = []
        for one in outcome["answers"]:
            statistics = one.get("statistics")
            answers.append((one["recipient"], one.get("folder"), json.dumps(statistics["json"]) if statistics else None))
        result = self._result(answers)
        self._home._used(self.plan)
        return result

    def _of_parties(self) -> Result | VeilError | None:
        if not self._due():
            return None
        found = self.parties
        for status in found:
            if status.state == "refused":
                return self._refused(status)
            if status.state == "failed":
                return RunError(f"the job did not run at `{status.party}`: {status.why}")
        mine = [status for status in found if status.party == self._home.name] or found
        if not mine or any(status.state != "done" for status in mine):
            return None
        folder = self._home.path / "jobs" / self.plan / "results"
        files = sorted(folder.glob("**/*.json")) if folder.is_dir() else []
        return self._result([(self._home.name, str(file.parent), file.read_text(encoding="utf-8")) for file in files if file.name != "receipt.json"])

    def _result(self, found: list[tuple[str, str | None, str | None]]) -> Result:
        """What was opened to this participant: of each recipient that it is a folder and JSON."""
        answers: list[Answer] = []
        statistics: Any = None
        receipt: dict[str, Any] | None = None
        for recipient, folder, text in found:
            if folder is not None and (file := pathlib.Path(folder) / "receipt.json").is_file():
                receipt = json.loads(file.read_text(encoding="utf-8"))
            if text is None:
                continue
            written = json.loads(text)
            if self._planned is not None and isinstance(written, dict) and ("queries" in written or "query" in written):
                try:
                    answers += [Answer(one) for one in self._planned.answers(recipient, text)]
                except _veil.Failure as failure:
                    raise RunError(failure.args[1]) from None
            else:
                statistics = written
        opened = self._planned.opens if self._planned is not None else []
        return Result(answers, opened, self.plan[:16], receipt=receipt, statistics=statistics)

    # Its end.

    def result(self, timeout: float | None = None) -> Result:
        """Waits for the end, and gives what was opened to this participant; nothing is, if it only brings data or computes.

        `timeout` is in seconds. When it is over, `Stalled` says for whom the parties wait, and the run goes on.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (ended := self._look()) is None:
            if until is not None and time.monotonic() > until:
                raise self._stalled(timeout or 0)
            time.sleep(_LOOK)
        return self._give(ended)

    def _stalled(self, timeout: float) -> Stalled:
        found, silent = statuses(self._home.path)
        waits = {name: None for status in found if status.plan == self.plan for name in status.waits_for}
        waits |= {status.party: None for status in found if status.plan == self.plan and status.state == "pending"}
        waits |= dict.fromkeys(silent)
        whom = f": it waits for {', '.join(waits)}" if waits else ""
        return Stalled(f"the run is not over after {timeout:g} s{whom}", waits_for=waits)

    def _give(self, ended: Result | VeilError) -> Result:
        if isinstance(ended, VeilError):
            raise ended
        return ended

    def __await__(self) -> Generator[Any, None, Result]:
        return self._wait().__await__()

    async def _wait(self) -> Result:
        while (ended := await asyncio.to_thread(self._look)) is None:
            await asyncio.sleep(_LOOK)
        return self._give(ended)

    def stop(self) -> None:
        """Ends this participant's part of the run; the others are told. What runs at services of parties is theirs."""
        if self._process is None:
            raise JobError("this participant's part is done by its service", help="home.revoke(job) keeps it from running again")
        self._process.stop()

    # News of it.

    def _news(self, seen: dict[str, tuple[Status, float]]) -> list[Event]:
        now = time.monotonic()
        news = []
        for status in self.parties:
            before = seen.get(status.party)
            if before is not None and before[0] == status:
                continue
            rate = (status.rows - before[0].rows) / max(now - before[1], 1e-3) if before and status.rows > before[0].rows else 0.0
            seen[status.party] = (status, now)
            news.append(Event(status.party, status.state, status.phase, status.rows, status.of, rate, status.sent, status.received, status.waits_for, status.why))
        return news

    def events(self, every: float = 0.5) -> Iterator[Event]:
        """News of the parties, as it comes, until the run is over; they are asked every so many seconds."""
        seen: dict[str, tuple[Status, float]] = {}
        while True:
            over = self.over
            yield from self._news(seen)
            if over:
                return
            time.sleep(every)

    async def _events(self, every: float) -> AsyncIterator[Event]:
        seen: dict[str, tuple[Status, float]] = {}
        while True:
            over = await asyncio.to_thread(lambda: self.over)
            for event in await asyncio.to_thread(self._news, seen):
                yield event
            if over:
                return
            await asyncio.sleep(every)

    # What people see.

    def __repr__(self) -> str:
        return f"<Run {self.plan[:16]}: {self.status}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(one.party)}</td><td>{escape(one.state)}</td><td>{one.rows} of {one.of}</td><td>{escape(', '.join(one.waits_for))}</td><td>{escape(one.why or '')}</td></tr>"
            for one in self.parties
        )
        head = "<tr><th>party</th><th>state</th><th>rows</th><th>waits for</th><th>why</th></tr>"
        return f"<table><caption>run of plan {escape(self.plan[:16])}: {escape(self.status)}</caption>{head}{rows}</table>"

    def __reduce__(self) -> Any:
        raise TypeError("a run is neither pickled nor copied; home.run(job) finds it again")
