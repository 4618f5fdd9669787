"""Every version of Python writes the same jobs, byte for byte, and they have the same plan hashes."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from questions import QUESTIONS, said

TESTS = pathlib.Path(__file__).parent
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@functools.lru_cache
def found(version: str) -> str | None:
    """An interpreter of this version: on the path, or one that pyenv keeps. What is on the path may be a shim that starts nothing."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    kept = sorted(root.glob(f"versions/{version}.*/bin/python"))
    for path in [shutil.which(f"python{version}"), *map(str, kept)]:
        if path is None:
            continue
        shown = subprocess.run([path, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        if shown.returncode == 0 and shown.stdout.strip() == version:
            return path
    return None


def told(interpreter: str, seed: str, tests: pathlib.Path, *names: str) -> dict[str, list[str]]:
    """What `questions.py` says under it, without packages of third parties."""
    environment = {"PYTHONPATH": str(TESTS.parent), "PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([interpreter, "-S", str(tests / "questions.py"), *names], env=environment, capture_output=True, text=True, encoding="utf-8")
    assert ran.returncode == 0, f"{interpreter}: {ran.stderr}"
    of: dict[str, list[str]] = json.loads(ran.stdout)
    return of


@functools.lru_cache
def here() -> dict[str, list[str]]:
    return said()


def test_orders_and_files_do_not_matter() -> None:
    assert len(here()) == 2 * len(QUESTIONS) and len({of[0] for of in here().values()}) == len(QUESTIONS)
    for question in QUESTIONS:
        one, other = (here()[f"{question.__name__} {order}"] for order in ([0, 1], [1, 0]))
        assert one == other
        plan, text, saved, read = one
        assert saved == text and read == plan


@pytest.mark.parametrize("seed", ["0", "1", "4294967295"])
def test_the_seed_of_hashes_does_not_matter(seed: str) -> None:
    assert told(sys.executable, seed, TESTS) == here()


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != HERE])
def test_another_version_says_the_same(version: str) -> None:
    interpreter = found(version)
    if interpreter is None:
        pytest.skip(f"no interpreter of Python {version} is on the path or under pyenv")
    for seed in ("random", "7"):
        assert told(interpreter, seed, TESTS) == here()


def test_a_difference_and_a_failure_are_found(tmp_path: pathlib.Path) -> None:
    for name in ("builders.py", "questions.py"):
        shutil.copy(TESTS / name, tmp_path / name)
    asked = tmp_path / "questions.py"
    text = asked.read_text(encoding="utf-8")
    # The order of a set of texts is that of their hashes, which the seed changes.
    asked.write_text(text.replace('x=["age", "days"]', 'x=list({"age", "days", "patient"})'), encoding="utf-8")
    assert len({json.dumps(told(sys.executable, str(seed), tmp_path, "regressions")) for seed in range(8)}) > 1
    asked.write_text("import veilworks_none\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="No module named 'veilworks_none'"):
        told(sys.executable, "0", tmp_path)
