"""What the models share: elements, the pseudorandom function, and where a command stands."""

import hashlib
import json
import sys

from aes128 import Aes128

SEED = b"veilworks golden vectors 1"
# One byte per use of randomness: what it is for, and the number of parties.
FAMILIES = {"AND3": 0x01, "MUL3": 0x02, "INPUT3": 0x03, "SHARE3": 0x04, "RAND3": 0x05, "SUM3": 0x06, "MAC_KEY": 0x07}
FAMILIES |= {"JOINT4": 0x08, "SUM4": 0x09, "CODE4": 0x0A, "INPUT4": 0x0B, "SHARE4": 0x0C, "RAND4": 0x0D}
FAMILIES |= {"DZKP_SHARE": 0x10, "DZKP_PMASK": 0x11, "DZKP_QMASK": 0x12, "DZKP_CHAL": 0x13}
FAMILIES |= {"DZKP_SEED": 0x1C, "DZKP_THETA": 0x1D, "DZKP_ROWS": 0x1E}
FAMILIES |= {"LIFT3": 0x0E, "LIFT4": 0x0F, "TRUNCATE3": 0x1B}
FAMILIES |= {"PERM3": 0x17, "MOVE3": 0x18, "PERM4": 0x19, "MOVE4": 0x1A}
RAGGED = [1, 3, 127, 128, 129, 200]


def draw(label, length):
    """`length` bytes that depend only on the seed and the label: SHA-256 in counter mode."""
    out = b""
    while len(out) < length:
        counter = (len(out) // 32).to_bytes(8, "big")
        out += hashlib.sha256(SEED + b"/" + label.encode() + b"/" + counter).digest()
    return out[:length]


def pieces(source):
    """What stands for a source in a digest: itself up to 1024 bytes, else digests of its pieces of so many bytes, until they are not more."""
    while len(source) > 1024:
        source = b"".join(hashlib.sha256(source[at : at + 1024]).digest() for at in range(0, len(source), 1024))
    return source


# ---------------------------------------------------------------------------------------------- elements


class Ring:
    """Z_2 (bits = 1, where + and - are XOR) or Z_2^bits."""

    def __init__(self, name, bits):
        self.name, self.bits, self.mask = name, bits, (1 << bits) - 1

    def padded(self, rows):
        """Elements a message carries for `rows` rows: bits fill their last byte."""
        return -(-rows // 8) * 8 if self.bits == 1 else rows

    def decode(self, data, count):
        """Element t is bits [t * k, (t + 1) * k) of the string, bit 0 of byte 0 first."""
        whole = int.from_bytes(data, "little")
        return [(whole >> (t * self.bits)) & self.mask for t in range(count)]

    def encode(self, elements):
        whole = sum(e << (t * self.bits) for t, e in enumerate(elements))
        return whole.to_bytes(-(-len(elements) * self.bits // 8), "little")

    def hex(self, elements):
        return self.encode(elements).hex()

    def values(self, label, rows):
        """A clear column; the elements that fill the last byte of bits are zero."""
        drawn = self.decode(draw(label, -(-rows * self.bits // 8)), rows)
        return drawn + [0] * (self.padded(rows) - rows)

    def cut(self, column, rows):
        """Zero in the elements that fill the last byte: rows that do not exist leave no device."""
        return column[:rows] + [0] * (len(column) - rows)

    def add(self, *columns):
        return [sum(row) & self.mask for row in zip(*columns)]

    def sub(self, a, b):
        return [(x - y) & self.mask for x, y in zip(a, b)]

    def mul(self, a, b):
        return [(x * y) & self.mask for x, y in zip(a, b)]

    def scale(self, factor, a):
        return [(factor * x) & self.mask for x in a]


BITS, Z32, Z64, Z128 = Ring("bits", 1), Ring("z32", 32), Ring("z64", 64), Ring("z128", 128)


# ------------------------------------------------------------------------------------------- randomness


def tag(family, sub=0):
    return FAMILIES[family] << 8 | sub


def prf_block(key, use, lane, counter, chunk):
    """AES_key(BE16 tag || BE16 lane || BE64 counter || BE32 chunk)."""
    fields = [(use, 2), (lane, 2), (counter, 8), (chunk, 4)]
    return Aes128(key).encrypt(b"".join(value.to_bytes(size, "big") for value, size in fields))


def prf_stream(key, use, lane, counter, chunk, length):
    blocks = (prf_block(key, use, lane, counter + b, chunk) for b in range(-(-length // 16)))
    return b"".join(blocks)[:length]


class Place:
    """Where a command stands: what its draws of randomness depend on."""

    def __init__(self, ring, lane, chunk, first, chunk_rows, rows, sum_rows=False):
        self.ring, self.lane, self.chunk, self.first = ring, lane, chunk, first
        self.chunk_rows, self.rows, self.sum_rows = chunk_rows, rows, sum_rows
        # Counters that one item takes: as many as a full chunk needs, whatever the rows of the last one.
        self.stride = 1 if sum_rows else -(-chunk_rows * ring.bits // 128)

    def counter(self, item):
        return self.first + item * self.stride

    def stream(self, key, use, item):
        count = 1 if self.sum_rows else self.ring.padded(self.rows)
        length = -(-count * self.ring.bits // 8)
        return self.ring.decode(prf_stream(key, use, self.lane, self.counter(item), self.chunk, length), count)

    def share(self, column):
        """A component that counts: that of a row that does not exist is zero."""
        return column if self.sum_rows else self.ring.cut(column, self.rows)

    def fields(self):
        return {
            "lane": self.lane,
            "chunk": self.chunk,
            "first": self.first,
            "chunk_rows": self.chunk_rows,
            "stride": self.stride,
            "rows": self.rows,
        }


def sharing_fields(ring, u):
    return {"value": ring.hex(ring.add(*u)), "components": [ring.hex(c) for c in u]}


def require(condition, otherwise):
    if not condition:
        raise AssertionError(otherwise)


def write_or_check(folder, files, check, script):
    """Writes the files, or says which of them differ from the model and exits with 1."""
    stale = []
    for name, content in files.items():
        text = json.dumps(content, indent=1) + "\n"
        path = folder / name
        if not check:
            path.write_text(text)
            print(f"wrote {path.name}: {len(text)} bytes")
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        sys.exit(f"differs from the model: {', '.join(stale)}. Run python3 {script} and see git diff.")
    if check:
        print(f"{len(files)} files agree with the model")
