"""The tutorial runs, from its first cell to its last."""

from __future__ import annotations

import os
import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

PACKAGE = pathlib.Path(__file__).parents[1]
NOTEBOOKS = sorted((PACKAGE / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: pathlib.Path) -> None:
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    assert all(not cell.get("outputs") for cell in notebook.cells), "a notebook is kept without its outputs"
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}})
    client.execute(env=os.environ | {"PYTHONPATH": str(PACKAGE)})
    assert any(cell.get("outputs") for cell in notebook.cells)
