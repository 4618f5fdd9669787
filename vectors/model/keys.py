"""The key schedule of a session: HKDF-SHA256 over typed, length-prefixed labels.

From: Krawczyk, Eronen, HMAC-based Extract-and-Expand Key Derivation Function (HKDF), RFC 5869 (2010), sections 2.2
and 2.3; checked against its appendix A.1 at import.
"""

import hashlib
import hmac

PARTY, OWNER, RECIPIENT = range(3)
KEY, CONFIRMATION = range(2)


def extract(salt, ikm):
    return hmac.new(salt, ikm, hashlib.sha256).digest()


def expand(prk, info, length):
    out, block, number = b"", b"", 0
    while len(out) < length:
        number += 1
        block = hmac.new(prk, block + info + bytes([number]), hashlib.sha256).digest()
        out += block
    return out[:length]


def combine(exporter, agreed):
    """The input of a pair's schedule: LE64 length of the exporter || exporter || agreed secret."""
    return len(exporter).to_bytes(8, "little") + exporter + agreed


def peer(kind, index):
    """A participant's name: kind, then LE16 index."""
    return bytes([kind]) + index.to_bytes(2, "little")


def info(protocol, purpose, pair, epoch, run, of):
    """LE32 length || protocol || LE32 length || purpose || both names in order || LE16 epoch || LE64 run || output.

    The output, KEY or CONFIRMATION, keeps the one from being the beginning of the other.
    """
    out = b""
    for text in (protocol, purpose):
        out += len(text).to_bytes(4, "little") + text.encode()
    return out + b"".join(sorted(pair)) + epoch.to_bytes(2, "little") + run.to_bytes(8, "little") + bytes([of])


def vectors(draw):
    """A few derivations; `draw(label, length)` gives fixed bytes."""
    party = [peer(PARTY, i) for i in range(3)]
    cases = [
        (b"", "rep3", "pair", [party[0], party[1]], 0, 0),
        (b"", "rep3", "pair", [party[2], party[0]], 0, 0),
        (draw("keys/exporter", 32), "rep3", "pair", [party[1], party[2]], 0, 1),
        (draw("keys/exporter", 32), "rep3", "confirm", [party[1], party[2]], 3, 2**40),
        (b"x", "input", "seed", [peer(OWNER, 258), party[0]], 0, 0),
        (b"x", "output", "", [peer(RECIPIENT, 0), party[2]], 65535, 2**64 - 1),
    ]
    out = []
    for number, (exporter, protocol, purpose, pair, epoch, run) in enumerate(cases):
        session, agreed = (draw(f"keys/{name}/{number}", 32) for name in ("session", "agreed"))
        key, confirmation = (info(protocol, purpose, pair, epoch, run, of) for of in (KEY, CONFIRMATION))
        prk = extract(session, combine(exporter, agreed))
        out.append(
            {
                "session": session.hex(),
                "exporter": exporter.hex(),
                "agreed": agreed.hex(),
                "protocol": protocol,
                "purpose": purpose,
                "pair": [name.hex() for name in pair],
                "epoch": epoch,
                "run": str(run),
                "key_info": key.hex(),
                "key": expand(prk, key, 16).hex(),
                "confirm_info": confirmation.hex(),
                "confirm": expand(prk, confirmation, 32).hex(),
            }
        )
    return {"derivations": out}


def _check():
    """RFC 5869, appendix A.1."""
    prk = extract(bytes(range(13)), b"\x0b" * 22)
    okm = expand(prk, bytes(range(0xF0, 0xFA)), 42).hex()
    if okm != "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865":
        raise AssertionError(f"HKDF-SHA256 gives {okm}, which is not what RFC 5869 says")


_check()
