"""Reads protocol buffers: fields by their numbers, and nothing that is not there."""

from __future__ import annotations

import struct
from typing import Union

Value = Union[int, bytes]
Fields = dict[int, list[Value]]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("a message ends in a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, at
    raise ValueError("a number of a message is too long")


def fields(data: Value) -> Fields:
    """The fields of a message, each with all its values: numbers, of 4 and 8 bytes too, and bytes."""
    if isinstance(data, int):
        raise ValueError("a number stands where a message should")
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError("a message has a field without a number")
        value: Value
        if wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 2, 5):
            size = 8 if wire == 1 else 4
            if wire == 2:
                size, at = _varint(data, at)
            if size > len(data) - at:
                raise ValueError("a field is longer than its message")
            value = bytes(data[at : at + size])
            at += size
        else:
            raise ValueError(f"a field has the unknown form {wire}")
        found.setdefault(number, []).append(value)
    return found


def text(of: Fields, number: int) -> str:
    """A text, empty if it is not there."""
    value = of.get(number, [b""])[-1]
    if isinstance(value, int):
        raise ValueError("a number stands where a text should")
    return value.decode("utf-8")


def number(of: Fields, which: int, otherwise: int = 0) -> int:
    """A whole number, signed in 64 bits."""
    return signed(of.get(which, [otherwise])[-1])


def signed(value: Value) -> int:
    """A number as it is signed in 64 bits."""
    if not isinstance(value, int):
        raise ValueError("bytes stand where a number should")
    return value - (1 << 64) if value >= 1 << 63 else value


def numbers(of: Fields, which: int) -> list[int]:
    """Whole numbers, one by one or packed."""
    all: list[int] = []
    for value in of.get(which, []):
        if isinstance(value, int):
            all.append(signed(value))
            continue
        at = 0
        while at < len(value):
            one, at = _varint(value, at)
            all.append(signed(one))
    return all


def floats(of: Fields, which: int, kind: str = "f") -> list[float]:
    """Floats of four bytes, or of eight (`d`), one by one or packed."""
    size = 4 if kind == "f" else 8
    all: list[float] = []
    for value in of.get(which, []):
        if isinstance(value, int) or len(value) % size:
            raise ValueError("something else stands where floats should")
        all.extend(struct.unpack(f"<{len(value) // size}{kind}", value))
    return all
