"""One participant's home: its consent, its runs, and its service, as the program `veil` keeps them."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from html import escape
from typing import Any, NamedTuple, Union

from . import _veil
from ._program import call, failed, program
from ._source import here
from .data import Data, batches
from .errors import JobError, NotApproved, Refused, VeilError
from .job import Job
from .run import Event, Process, Run, Status, statuses

JobLike = Union[Job, "Proposal", str, "os.PathLike[str]"]
_DIGITS = re.compile(r"[0-9a-fA-F]{8,64}\Z")


class Member(NamedTuple):
    """Another participant whose key this home has pinned; `address` is where a party is reached."""

    name: str
    role: str
    fingerprint: str
    address: str | None


class Approval(NamedTuple):
    """What was approved: all digits of the plan's hash, for how many runs and until when, in words, and where the job is filed."""

    plan: str
    term: str
    folder: str


class _Known(NamedTuple):
    """A job that a command is about: its argument, its plan if it can be planned here, and that plan's hash."""

    argument: str
    planned: _veil.Job | None
    plan: str | None
    # Whether its file is there for the command alone.
    passing: bool = False


class Proposal:
    """A job that a member has proposed to this party, and that waits for a person."""

    def __init__(self, home: Home, status: Status) -> None:
        self._home, self.plan, self.name, self.why = home, status.plan, status.job, status.why

    @property
    def folder(self) -> pathlib.Path:
        """Where the job is filed."""
        return self._home.path / "jobs" / self.plan

    @property
    def text(self) -> str:
        """The text of the job file, as the member has sent it."""
        return (self.folder / "job.toml").read_text(encoding="utf-8")

    def explain(self) -> str:
        """What is computed, and what is opened to whom."""
        return self._home.explain(self)

    def approve(self, **how: Any) -> Approval:
        """`home.approve` of this job."""
        return self._home.approve(self, **how)

    def refuse(self) -> None:
        """`home.refuse` of this job."""
        self._home.refuse(self)

    def __repr__(self) -> str:
        return f"<Proposal {self.plan[:16]}: {self.name}; {self.why}>"

    def _repr_html_(self) -> str:
        return f"<p>Proposal <b>{escape(self.name)}</b>, plan {escape(self.plan)}</p><pre>{escape(self.explain())}</pre>"


class Service:
    """The service of a party that was started by `home.serve()`: it ends with the block that it is started for, or by `stop()`."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, log: pathlib.Path) -> None:
        self._process, self.address, self.log = process, address, log

    def stop(self) -> None:
        """Lets running jobs end, for as long as the home says, and ends the service."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Home:
    """A participant's home: a folder with its key, its members, its consent and its log. What is done here, the command `veil --home` does."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        found = path if path is not None else os.environ.get("VEIL_HOME") or "~/.veil"
        self.path = pathlib.Path(found).expanduser().absolute()
        said, _ = call("identity", "show", "--json", "--home", self.path)
        of = json.loads(said)
        self.name: str = of["name"]
        self.role: str = of["role"]
        self.key: str = of["key"]
        self.address: str | None = of["address"]

    # Membership.

    @staticmethod
    def create(path: str | os.PathLike[str], name: str, role: str, *, listen: str | None = None, address: str | None = None) -> Home:
        """Makes a home, as `veil init` does: `role` is `"party"`, `"owner"` or `"recipient"`; a party listens at `listen`, and others reach it at `address`."""
        more = [*(["--listen", listen] if listen else []), *(["--address", address] if address else [])]
        call("init", name, "--role", role, "--home", path, *more)
        return Home(path)

    def invite(self, name: str, role: str, *, expires: str = "7d") -> str:
        """A string by which another participant joins, once: send it over a channel that you trust."""
        return call("invite", name, "--role", role, "--expires", expires, "--home", self.path)[0].strip()

    def join(self, string: str) -> str | None:
        """Takes the string that another participant sent. Where that one could not be reached, gives the string that it has to take in turn."""
        return call("join", string, "--home", self.path)[0].strip() or None

    @property
    def members(self) -> list[Member]:
        """The other participants that this one knows."""
        every = json.loads(call("members", "--json", "--home", self.path)[0])["members"]
        return [Member(one["name"], one["role"], one["fingerprint"], one.get("address")) for one in every if not one.get("revoked")]

    # Which job is meant.

    @contextlib.contextmanager
    def _job(self, job: JobLike) -> Iterator[_Known]:
        if isinstance(job, Proposal):
            yield self._filed(job.plan)
        elif isinstance(job, Job):
            if job._path is not None:
                yield _Known(str(job._path), job._plan(), job.plan)
                return
            with tempfile.TemporaryDirectory(prefix="veil-") as folder:
                file = pathlib.Path(folder) / "job.toml"
                job._write(file)
                yield _Known(str(file), job._plan(), job.plan, True)
        elif isinstance(job, str) and _DIGITS.match(job) and not os.path.exists(job):
            yield self._filed(job.lower())
        else:
            file = pathlib.Path(job).absolute()
            planned = self._planned(file)
            yield _Known(str(file), planned, planned.plan if planned else None)

    def _filed(self, digits: str) -> _Known:
        folders = [folder for folder in (self.path / "jobs").glob(f"{digits}*") if (folder / "job.toml").is_file()]
        if len(folders) != 1:
            raise JobError(f"{len(folders)} jobs with a plan {digits}… are filed in {self.path}", source=here(), help="say all digits of the plan hash, or the path of the job file")
        return _Known(folders[0].name, self._planned(folders[0] / "job.toml"), folders[0].name)

    @staticmethod
    def _planned(file: pathlib.Path) -> _veil.Job | None:
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise JobError(f"{file} cannot be read: {error.strerror}", source=here()) from None
        try:
            return _veil.Job.parse(text, file.parent)
        except _veil.Failure as failure:
            # A job with shares is the command's to plan; what is no job, it says itself.
            if failure.args[0] == "usage":
                return None
            raise JobError(failure.args[1], source=here(), help=failure.args[2]) from None

    def _own(self, known: _Known) -> list[tuple[str, str | None]]:
        every = known.planned.data if known.planned else []
        return [(what, str(path) if path else None) for owner, what, path in every if owner == self.name]

    def _options(self, known: _Known, data: Mapping[str, str]) -> list[str]:
        """Where this participant's data are: as it is said here, or as a job says it that is written by this program."""
        at = {what: path for what, path in self._own(known) if path is not None and known.passing} | dict(data)
        return [part for what, path in at.items() for part in ("--data", f"{self.name}:{what}={path}")]

    # Consent.

    def approve(
        self,
        job: JobLike,
        data: Mapping[str, Data] | None = None,
        *,
        yes: bool = False,
        runs: int | None = None,
        until: str | None = None,
        align_key: str | os.PathLike[str] | None = None,
    ) -> Approval:
        """Shows what a job computes and opens, asks, and remembers the answer for exactly this plan, as `veil approve` does.

        `job` is a `vw.Job`, the path of a job file, or the beginning of the plan hash of a proposal. `data` has this participant's own tables: paths, or
        tables in memory, which are written to a file in the home, for this user alone, and removed after the run or with `revoke`. `yes=True` approves
        without asking, for scripts. The approval is for one run, unless `runs` or `until` (`"2027-12-31"`) says more.

        Raises `NotApproved` where the answer is no, and `Refused` where a rule of the policy stands against it.
        """
        with self._job(job) as known:
            paths, made = self._bound(known, data or {})
            try:
                approval = self._approve(known, self._options(known, paths), (yes, runs, until, align_key))
            except BaseException:
                if made is not None:
                    shutil.rmtree(made, ignore_errors=True)
                    with contextlib.suppress(OSError):
                        made.parent.rmdir()
                raise
        self._keep_only(approval.plan, made)
        return approval

    def _bound(self, known: _Known, data: Mapping[str, Data]) -> tuple[dict[str, str], pathlib.Path | None]:
        """Files of tables; those in memory are written to a new folder."""
        own = {what for what, _ in self._own(known)}
        for what in data:
            if known.planned is not None and what not in own:
                raise JobError(f"`{self.name}` brings no `{what}` to this job; it brings {', '.join(sorted(own)) or 'nothing'}", source=here())
        paths: dict[str, str] = {}
        made = None
        for what, table in data.items():
            found = batches(what, table)
            if isinstance(found, str):
                paths[what] = os.path.abspath(found)
                continue
            if made is None:
                made = self.path / "data" / (known.plan or "jobs") / secrets.token_hex(8)
                made.mkdir(parents=True, mode=0o700)
            file = made / (re.sub(r"[^A-Za-z0-9_-]", "_", what) + f"-{len(paths)}.arrow")
            found.write(file)
            paths[what] = str(file)
        return paths, made

    def _approve(self, known: _Known, options: list[str], how: tuple[bool, int | None, str | None, str | os.PathLike[str] | None]) -> Approval:
        yes, runs, until, align_key = how
        command = [program(), "--errors", "json", "approve", known.argument, "--home", str(self.path), "--json", *options]
        command += ["--yes"] if yes else []
        command += ["--runs", str(runs)] if runs is not None else []
        command += ["--until", until] if until is not None else []
        command += ["--align-key", os.fspath(align_key)] if align_key is not None else []
        with tempfile.TemporaryFile() as err, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True, encoding="utf-8") as process:
            assert process.stdin is not None and process.stdout is not None

            def end() -> None:
                process.wait()
                err.seek(0)
                failed(err.read().decode("utf-8", "replace"), "approve")

            line = process.stdout.readline()
            if not line:
                end()
            shown = json.loads(line)
            if known.plan is not None and shown["plan"] != known.plan:
                process.stdin.close()
                process.wait()
                raise JobError("the job file was changed since it was read", source=here(), help="read it again: vw.Job.read(path)")
            if not yes:
                try:
                    agreed = _ask(self.name, shown)
                except BaseException:
                    process.stdin.close()
                    process.wait()
                    raise
                process.stdin.write("yes\n" if agreed else "no\n")
            process.stdin.close()
            line = process.stdout.readline()
            if not line:
                end()
            approved = json.loads(line)
            process.wait()
        return Approval(shown["plan"], approved["approved"], approved["folder"])

    def _keep_only(self, plan: str, made: pathlib.Path | None) -> None:
        """Removes tables of former approvals of a plan, or all."""
        folder = self.path / "data" / plan
        for other in folder.iterdir() if folder.is_dir() else ():
            if other != made:
                shutil.rmtree(other, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.rmdir()

    def _used(self, plan: str) -> None:
        """A run is over: tables that were written for it alone are removed."""
        if (self.path / "data" / plan).is_dir():
            said, _ = call("policy", "check", self.path / "jobs" / plan / "job.toml", "--home", self.path, "--json", may_fail=True)
            if not said or not json.loads(said)["decision"].startswith("approved"):
                self._keep_only(plan, None)

    def revoke(self, job: JobLike) -> None:
        """Takes an approval back, and removes tables that were written for it."""
        with self._job(job) as known:
            call("approve", known.argument, "--home", self.path, "--revoke")
            if known.plan is not None:
                self._keep_only(known.plan, None)

    def refuse(self, job: JobLike) -> None:
        """Says no to a job: it does not run here until it is approved, whatever the rules of the policy allow, and members read that it is refused."""
        with self._job(job) as known:
            call("approve", known.argument, "--home", self.path, "--refuse")
            if known.plan is not None:
                self._keep_only(known.plan, None)

    def explain(self, job: JobLike) -> str:
        """What `veil explain` prints of a job: what is opened to whom, and what it costs."""
        with self._job(job) as known:
            file = known.argument if not _DIGITS.match(known.argument) else str(self.path / "jobs" / known.argument / "job.toml")
            return call("explain", file)[0]

    def inbox(self) -> list[Proposal]:
        """The jobs that members have proposed to this party, and that a person has to approve or refuse."""
        found, _ = statuses(self.path)
        return [Proposal(self, status) for status in found if status.party == self.name and status.state == "pending"]

    def jobs(self) -> list[Status]:
        """How all jobs are in which this participant has a part: at a party as its service says, else as all parties say that are there."""
        return statuses(self.path)[0]

    # Runs.

    def submit(self, job: JobLike, *, wait: float = 10) -> Run:
        """Proposes a job to its parties, which have so many seconds to answer, and takes part in it: an owner or a recipient in a process of its own, a party by
        its service.

        Raises `NotApproved` if this participant has not approved it itself, `Refused` if a party refuses it, `LinkLost` if one is not there.
        """
        with self._job(job) as known:
            file = known.argument if not _DIGITS.match(known.argument) else str(self.path / "jobs" / known.argument / "job.toml")
            self._may(file)
            said, failure = call("submit", file, "--home", self.path, "--json", "--wait", str(max(1, round(wait))), may_fail=True)
            for reply in json.loads(said) if said.strip() else ():
                if reply["reply"] == "refused":
                    raise Refused(f"`{reply['party']}` refuses the job: {reply['why']}", by=reply["party"])
            if failure is not None:
                failed(failure, "submit")
            return self._part(known, file)

    def take_part(self, job: JobLike) -> Run:
        """Takes part in a job that another participant proposes, or has proposed: as an owner or a recipient. A party takes part by its service."""
        with self._job(job) as known:
            file = known.argument if not _DIGITS.match(known.argument) else str(self.path / "jobs" / known.argument / "job.toml")
            self._may(file)
            return self._part(known, file)

    def _may(self, file: str) -> None:
        decided = json.loads(call("policy", "check", file, "--home", self.path, "--json")[0])
        if decided["allowed"]:
            return
        if decided["decision"].startswith("refused"):
            raise Refused(f"the job may not run here: {decided['decision']}", rule=decided["rule"])
        raise NotApproved(f"the job may not run here: {decided['decision']}\n  home.approve(job) shows the job and asks")

    def _part(self, known: _Known, file: str) -> Run:
        plan = known.plan or str(json.loads(call("policy", "check", file, "--home", self.path, "--json")[0])["plan"])
        if self.role == "party":
            return Run(self, plan, known.planned, None)
        folder = self._next(plan)
        if known.passing:
            # The process may read it, and models beside it, when this one is gone.
            kept = self.path / "runs" / plan
            for one in pathlib.Path(file).parent.iterdir():
                (kept / one.name).write_bytes(one.read_bytes())
            file = str(kept / "job.toml")
        process = Process.start(folder, "party", file, "--home", self.path, "--out", folder / "results", "--json")
        return Run(self, plan, known.planned, process)

    def _next(self, plan: str) -> pathlib.Path:
        runs = self.path / "runs" / plan
        runs.mkdir(parents=True, exist_ok=True, mode=0o700)
        return runs / f"{len(self._runs(plan)) + 1:06}"

    def _runs(self, plan: str) -> list[pathlib.Path]:
        folder = self.path / "runs" / plan
        return sorted(one for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []

    def run(self, job: JobLike) -> Run:
        """The last run of a job that this participant takes part in, also one that another process of Python has started."""
        with self._job(job) as known:
            if known.plan is None:
                raise JobError("the plan of this job is not known here", source=here(), help="say the beginning of its plan hash")
            if self.role == "party":
                return Run(self, known.plan, known.planned, None)
            runs = self._runs(known.plan)
            if not runs:
                raise JobError(f"no run of the plan {known.plan[:16]}… was started from {self.path}", source=here(), help="home.submit(job), or home.take_part(job)")
            return Run(self, known.plan, known.planned, Process(runs[-1]))

    def events(self, run: Run, *, every: float = 0.5) -> AsyncIterator[Event]:
        """News of a run, as it comes, until the run is over: `async for event in home.events(run)`."""
        return run._events(every)

    def serve(self, *, wait: float | None = None, yes: bool = False) -> Service:
        """Starts the service of a party, as `veil serve` does, for as long as this process or the block lives: `with home.serve(): …`. `yes=True`
        approves every job that a member proposes, for tests and lessons. `wait` is for how many seconds participants have to turn up."""
        if self.role != "party":
            raise JobError(f"`{self.name}` is no computing party, and has no service", source=here(), help="home.take_part(job) takes part in a job")
        log = self.path / "service.log"
        command = [program(), "serve", "--home", str(self.path), *(["--yes"] if yes else []), *(["--wait", str(max(1, round(wait)))] if wait is not None else [])]
        with open(log, "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        while True:
            said = log.read_text(encoding="utf-8", errors="replace")
            if found := re.search(r"^listening on (\S+)$", said, re.MULTILINE):
                service = Service(process, found[1], log)
                _services.append(service)
                return service
            if process.poll() is not None:
                raise VeilError(f"the service did not start: {said.strip()}")
            time.sleep(0.05)

    # What people see.

    def __repr__(self) -> str:
        return f"<Home of {self.role} {self.name}: {self.path}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(one.name)}</td><td>{escape(one.role)}</td><td>{escape(one.address or '')}</td></tr>" for one in self.members)
        return f"<table><caption>Home of {escape(self.role)} {escape(self.name)}</caption><tr><th>member</th><th>role</th><th>address</th></tr>{rows}</table>"

    def __reduce__(self) -> Any:
        raise TypeError("a home is neither pickled nor copied: vw.Home(path) opens it")


_services: list[Service] = []


@atexit.register
def _stop_services() -> None:
    for service in _services:
        service.stop()


def _ask(name: str, shown: Mapping[str, Any]) -> bool:
    """Shows a job to the person at this terminal or notebook, and asks."""
    if not sys.stdin.isatty() and type(builtins.input).__name__ == "builtin_function_or_method":
        raise NotApproved("there is no person to ask: standard input is no terminal, and nothing was approved\n  yes=True approves without asking")
    print(shown["explained"])
    for line in (*([f"`{shown['asked_by']}` asks for it"] if shown["asked_by"] else []), *shown["reads"], f"now: {shown['decision']}", f"an approval now is good for {shown['term']}"):
        print(line)
    sys.stdout.flush()
    try:
        return input(f"may this run as `{name}`? y or n: ").strip().lower() in ("y", "yes")
    except (EOFError, NotImplementedError):
        raise NotApproved("there is no person to ask, and nothing was approved\n  yes=True approves without asking") from None
