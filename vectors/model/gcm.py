"""AES-128-GCM, and the packets of nodes that are sealed with it: for the benches of rtl/gcm.

From: NIST SP 800-38D (2007), sections 6.3 to 7.2. Checked at import against test cases 1 to 4 of McGrew, Viega, "The Galois/Counter Mode of
Operation (GCM)" (2004), appendix B.

    python3 vectors/model/gcm.py --messages SEED COUNT    key, nonce, additional data, text, ciphertext, tag; those of the appendix first
    python3 vectors/model/gcm.py --packets SEED COUNT [BYTES]   direction, node, key, salt, counter, H, text, packet as it is on the wire

Bytes are in hexadecimal, in their order, `-` if there are none. Node 0 is the one that seals and opens the packets; the direction is 0 of
those that leave it. SEED says who sends how much when, BYTES the keys and texts.
"""

import random
import sys

from aes128 import Aes128

R = 0xE1 << 120
VERSION = 1
ME = 0
NODES = 4
MAX_BYTES = 4096


def multiply(x, y):
    """Algorithm 1 of 6.3: blocks are integers, the leftmost bit is the highest and the coefficient of x^0."""
    z = 0
    for i in range(127, -1, -1):
        if (x >> i) & 1:
            z ^= y
        y = (y >> 1) ^ R if y & 1 else y >> 1
    return z


def _blocks(data):
    return [data[i : i + 16].ljust(16, b"\0") for i in range(0, len(data), 16)]


def ghash(h, data):
    y = 0
    for block in _blocks(data):
        y = multiply(y ^ int.from_bytes(block, "big"), h)
    return y.to_bytes(16, "big")


def _xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def encrypt(key, nonce, additional, text):
    """Ciphertext and tag under a nonce of 12 bytes."""
    aes = Aes128(key)
    h = int.from_bytes(aes.encrypt(bytes(16)), "big")
    block = lambda number: aes.encrypt(nonce + number.to_bytes(4, "big"))
    cipher = b"".join(_xor(part, block(2 + i)) for i, part in enumerate(_blocks(text)))[: len(text)]
    lengths = (8 * len(additional)).to_bytes(8, "big") + (8 * len(cipher)).to_bytes(8, "big")
    hashed = ghash(h, b"".join(_blocks(additional) + _blocks(cipher)) + lengths)
    return cipher, _xor(hashed, block(1))


def packet(key, salt, sender, receiver, counter, text):
    """Header, ciphertext filled up to words of 16 bytes with zeros, tag."""
    header = bytes([VERSION, sender, receiver, 0]) + len(text).to_bytes(2, "little") + bytes(2) + counter.to_bytes(8, "little")
    cipher, tag = encrypt(key, salt + counter.to_bytes(8, "big"), header, text)
    return header + b"".join(_blocks(cipher)) + tag


KNOWN = [
    ("00" * 16, "00" * 12, "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"),
    ("00" * 16, "00" * 12, "", "00" * 16, "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"),
    (
        "feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
        "4d5c2af327cd64a62cf35abd2ba6fab4",
    ),
    (
        "feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
        "5bc94fbc3221a5db94fae95ae7121a47",
    ),
]


def _check():
    for case in KNOWN:
        key, nonce, additional, text, cipher, tag = map(bytes.fromhex, case)
        if encrypt(key, nonce, additional, text) != (cipher, tag):
            raise AssertionError(f"AES-GCM under {case[0]} is not what the specification's appendix B says")


_check()


def _say(*fields):
    print(*(field.hex() or "-" if isinstance(field, bytes) else field for field in fields))


def messages(drawn, count):
    """Messages of every few lengths, beside those that are known."""
    for case in KNOWN:
        _say(*map(bytes.fromhex, case))
    for _ in range(count):
        key, nonce = drawn.randbytes(16), drawn.randbytes(12)
        additional, text = drawn.randbytes(drawn.choice([0, 1, 15, 16, 17, 50])), drawn.randbytes(drawn.randrange(0, 200))
        _say(key, nonce, additional, text, *encrypt(key, nonce, additional, text))


def packets(drawn, drawn_bytes, count):
    """Packets out of this node and into it; a node's key changes now and then, and its counter starts again."""
    channels = {}
    for _ in range(count):
        at = (drawn.randrange(2), drawn.randrange(1, NODES))
        if at not in channels or drawn.randrange(40) == 0:
            channels[at] = [drawn_bytes(16), drawn_bytes(4), 0]
        key, salt, counter = channels[at]
        channels[at][2] += 1
        size = drawn.choice([0, 1, 15, 16, 17, 32, 48, 64, 80, drawn.randrange(400), drawn.randrange(400), drawn.randrange(400)])
        if drawn.randrange(100) == 0:
            size = drawn.choice([MAX_BYTES - 1, MAX_BYTES])
        text = drawn_bytes(size)
        ends = (ME, at[1]) if at[0] == 0 else (at[1], ME)
        _say(*at, key, salt, counter, Aes128(key).encrypt(bytes(16)), text, packet(key, salt, *ends, counter, text))


def main():
    words = sys.argv[1:]
    if len(words) not in (3, 4) or words[0] not in ("--messages", "--packets"):
        raise SystemExit(__doc__)
    seed, count = int(words[1]), int(words[2])
    if words[0] == "--messages":
        messages(random.Random(seed), count)
    else:
        packets(random.Random(seed), random.Random(f"{seed} {words[3] if len(words) == 4 else 0}").randbytes, count)


if __name__ == "__main__":
    main()
