"""Runs leave other threads alone, say how far they are, and end when they are told to."""

from __future__ import annotations

import io
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import veilworks as vw
from veilworks._bar import Bar

ROOT = pathlib.Path(__file__).parents[2]

LONG = """
    import veilworks as vw
    job = vw.Job("long", owners=["o"], parties=["a", "b", "c", "d"], recipients=["r"])
    t = job.table("t", owner="o", rows=100000, columns={"k": vw.Integer(0, 2**30), "x": vw.Integer(0, 2**30)})
    job.open(t.order_by("k", "x").limit(5), to="r")
    data = {"t": {"k": list(range(100000)), "x": list(range(100000))}}
"""


def test_an_interrupt_ends_a_run() -> None:
    program = textwrap.dedent(LONG) + textwrap.dedent("""
        import sys
        job.plan_hash
        print("runs", flush=True)
        try:
            job.run_local(data)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
    assert run.stdout is not None and run.stdout.readline() == "runs\n"
    time.sleep(1.5)
    began = time.monotonic()
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=60)
    assert (said, run.returncode) == ("interrupted\n", 0)
    assert time.monotonic() - began < 30


def test_other_threads_go_on() -> None:
    names: dict[str, object] = {}
    exec(textwrap.dedent(LONG).replace("100000", "3000"), names)
    of, data = names["job"], names["data"]
    assert isinstance(of, vw.Job) and isinstance(data, dict)
    ticks, over = [0], threading.Event()

    def tick() -> None:
        while not over.wait(0.01):
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    rows = of.run_local(data).to_dicts()
    took = time.monotonic() - began
    over.set()
    thread.join()
    assert rows == [{"k": at, "x": at} for at in range(5)]
    assert ticks[0] > took * 20, (ticks[0], took)


def test_the_bar_says_how_far_a_run_is() -> None:
    out = io.StringIO()
    bar = Bar(True, out)
    bar([("a", "rows", 5, 10, 2_000_000)])
    assert out.getvalue() == "\r[##########          ] rows      2.0 MB sent"
    bar.close()
    assert out.getvalue().endswith("\r")
    quiet = io.StringIO()
    Bar(None, quiet)([("a", "rows", 5, 10, 0)])
    assert quiet.getvalue() == ""


def test_a_notebook_shows_jobs_tables_and_answers() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    source = textwrap.dedent(LONG).replace("100000", "8")
    cells = [source + "\njob", "t", "job.run_local(data, progress=False)", "if t.k > 3: pass"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(book, timeout=120, allow_errors=True, kernel_name="python3")
    client.execute(env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
    shown = [cell.outputs[0] for cell in book.cells]
    assert "the computing parties" in shown[0].data["text/html"] or "up to 5 rows" in shown[0].data["text/html"]
    assert "its rows are secret" in shown[1].data["text/html"]
    assert "<th>k</th><th>x</th>" in shown[2].data["text/html"]
    assert shown[3].ename == "SecretError" and "if t.k > 3: pass" in shown[3].evalue
