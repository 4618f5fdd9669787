"""Homes of all participants of a job, which know each other; parties serve on loopback."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import socket
from collections.abc import Iterator

import veilworks as vw

PARTIES = ("p0", "p1", "p2")
OTHERS = {"north": "owner", "south": "owner", "ministry": "recipient"}


def _free(count: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def made(folder: pathlib.Path) -> dict[str, vw.Home]:
    """The homes, none of which serves yet."""
    homes = {name: vw.Home.create(folder / name, name, "party", listen=at, address=at) for name, at in zip(PARTIES, _free(len(PARTIES)))}
    homes |= {name: vw.Home.create(folder / name, name, role) for name, role in OTHERS.items()}
    with serving(homes):
        for one, other in itertools.combinations(homes.values(), 2):
            if one.role == "party":
                assert other.join(one.invite(other.name, other.role)) is None
    return homes


@contextlib.contextmanager
def serving(homes: dict[str, vw.Home], parties: tuple[str, ...] = PARTIES) -> Iterator[None]:
    """The services of these parties."""
    with contextlib.ExitStack() as stack:
        for name in parties:
            stack.enter_context(homes[name].serve(wait=60))
        yield
