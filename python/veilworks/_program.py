"""The program `veil`, which does all that a home does: found, started, and what it says of a failure."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, NoReturn

from . import _veil
from .errors import CheckFailed, DataError, DeviceFailed, JobError, LinkLost, NotApproved, Refused, RunError, Stalled, VeilError, refused_range

_found: tuple[str, str] | None = None


def program() -> str:
    """Where `veil` is: as `$VEIL` says, beside this Python, or on the path. It is of the same release as this package."""
    global _found
    wanted = os.environ.get("VEIL")
    if _found is not None and _found[0] == (wanted or ""):
        return _found[1]
    beside = pathlib.Path(sys.executable).parent / "veil"
    path = wanted or (str(beside) if os.access(beside, os.X_OK) else shutil.which("veil"))
    if path is None:
        raise VeilError("the program `veil` is not there, which keeps homes and meets other participants\n  install it beside this Python or on the PATH, or say where it is: VEIL=/path/to/veil")
    try:
        said = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        raise VeilError(f"{path} does not start: {error.strerror}") from None
    if said != f"veil {_veil.VERSION}":
        raise VeilError(f"{path} is `{said}`, and this package is of release {_veil.VERSION}\n  install the same release of both")
    _found = (wanted or "", path)
    return path


def failed(said: str, command: str) -> NoReturn:
    """Raises what the program said when it failed: its last line, as JSON."""
    lines = said.strip().split("\n")
    try:
        of: dict[str, Any] = json.loads(lines[-1])
        message, help = of["message"], of["help"]
    except (ValueError, KeyError, TypeError):
        raise VeilError(f"`veil {command}` failed: {said.strip() or 'it said nothing'}") from None
    raise typed(of, message + (f"\n  {help}" if help else "")) from None


def typed(of: dict[str, Any], text: str) -> VeilError:
    """The exception for a failure."""
    if of["refused"]:
        return Refused(text, rule=of["rule"])
    if of["unapproved"]:
        return NotApproved(text)
    if of["waits_for"]:
        return Stalled(text, waits_for=of["waits_for"])
    code = of["code"]
    if code == "link":
        return LinkLost(text, peer=of["peer"], step=of["step"])
    if code == "check":
        return CheckFailed(text, suspects=of["suspects"])
    if code == "device":
        return DeviceFailed(text)
    if code == "input" and of.get("line") is None:
        return DataError(text)
    if code == "input" and of.get("range"):
        wrong, (line, column) = of["range"], (of["line"], of["column"])
        said = (wrong["operation"], wrong["what"], [(kind, least, greatest) for kind, least, greatest in wrong["ranges"]], *wrong["in_python"], wrong["remedies"])
        return refused_range(said, of["message"], None, line, column)
    if code in ("input", "usage"):
        return JobError(of["message"], help=of["help"], line=of.get("line"), column=of.get("column"))
    return RunError(text)


def call(*arguments: str | os.PathLike[str], may_fail: bool = False) -> tuple[str, str | None]:
    """Runs the program to its end: what it printed, and what it said if it failed."""
    command = [program(), "--errors", "json", *(os.fspath(one) for one in arguments)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", check=False)
    if ended.returncode == 0:
        return ended.stdout, None
    if not may_fail:
        failed(ended.stderr, str(arguments[0]))
    return ended.stdout, ended.stderr
