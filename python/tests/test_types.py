"""The package and these tests are well typed, and the stub says what the compiled part has."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TESTS = [str(file) for file in (ROOT / "python" / "tests").glob("*.py")]


@pytest.mark.parametrize(
    "command",
    [
        ["mypy", "--config-file", "pyproject.toml", "python/veilworks"],
        ["mypy", "--config-file", "pyproject.toml", "--explicit-package-bases", *TESTS],
        ["mypy.stubtest", "--concise", "veilworks._veil"],
        ["pyright", "--pythonpath", sys.executable, "-p", "pyproject.toml"],
    ],
    ids=["package", "tests", "stub", "pyright"],
)
def test_types(command: list[str]) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), "MYPYPATH": f"{ROOT}/python:{ROOT}/python/tests", "HOME": str(pathlib.Path.home())}
    said = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
