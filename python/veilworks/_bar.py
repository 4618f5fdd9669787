"""A bar of progress in text."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_Told = list[tuple[str, str, int, int, int]]


class Bar:
    """Says on a terminal, or in a notebook, how far a run is; elsewhere nothing."""

    def __init__(self, wanted: bool | None, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._shown = self._out.isatty() if wanted is None else wanted
        self._last, self._width = 0.0, 0

    def __call__(self, told: _Told) -> None:
        now = time.monotonic()
        if not self._shown or not told or now - self._last < 0.2:
            return
        self._last = now
        done = sum(rows for _, _, rows, _, _ in told)
        every = max(1, sum(of for _, _, _, of, _ in told))
        part = min(1.0, done / every)
        sent = sum(sent for *_, sent in told)
        line = f"[{'#' * int(20 * part):20}] {told[0][1]:9} {sent / 1e6:.1f} MB sent"
        self._write(line)

    def _write(self, line: str) -> None:
        self._out.write("\r" + line.ljust(self._width))
        self._out.flush()
        self._width = len(line)

    def close(self) -> None:
        """Takes the line away."""
        if self._width:
            self._write("")
            self._out.write("\r")
            self._out.flush()
