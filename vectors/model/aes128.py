"""AES-128 encryption, one block at a time: slow, short, and checked against the standard at import.

From: FIPS 197, Advanced Encryption Standard (2001), sections 5.1 (cipher) and 5.2 (key expansion).
"""


def _double(a):
    """Multiplies by x in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1."""
    return (a << 1) ^ (0x11B if a & 0x80 else 0)


def _multiply(a, b):
    product = 0
    while b:
        if b & 1:
            product ^= a
        a, b = _double(a), b >> 1
    return product


def _substitute(a):
    """The S-box by its definition: the inverse, then the affine map."""
    inverse = next((b for b in range(256) if _multiply(a, b) == 1), 0)
    rotated = inverse
    for _ in range(4):
        rotated = ((rotated << 1) | (rotated >> 7)) & 0xFF
        inverse ^= rotated
    return inverse ^ 0x63


SBOX = [_substitute(a) for a in range(256)]
DOUBLE = [_double(a) for a in range(256)]
# Byte 4c + r of the state is row r of column c; row r moves r columns to the left.
SHIFT_ROWS = [4 * ((c + r) % 4) + r for c in range(4) for r in range(4)]


class Aes128:
    """A key, expanded."""

    def __init__(self, key):
        if len(key) != 16:
            raise ValueError(f"AES-128 takes a key of 16 bytes, not {len(key)}")
        words = [list(key[4 * i : 4 * i + 4]) for i in range(4)]
        constant = 1
        for i in range(4, 44):
            word = words[i - 1]
            if i % 4 == 0:
                word = [SBOX[b] for b in word[1:] + word[:1]]
                word[0] ^= constant
                constant = _double(constant)
            words.append([a ^ b for a, b in zip(words[i - 4], word)])
        flat = [byte for word in words for byte in word]
        self._round_keys = [flat[16 * r : 16 * r + 16] for r in range(11)]

    def encrypt(self, block):
        """The ciphertext of 16 bytes."""
        state = [a ^ k for a, k in zip(block, self._round_keys[0])]
        for number in range(1, 11):
            state = [SBOX[state[i]] for i in SHIFT_ROWS]
            if number < 10:
                state = [byte for c in range(0, 16, 4) for byte in _mix(state[c : c + 4])]
            state = [a ^ k for a, k in zip(state, self._round_keys[number])]
        return bytes(state)


def _mix(column):
    """Multiplies a column by 3x^3 + x^2 + x + 2 modulo x^4 + 1."""
    total = column[0] ^ column[1] ^ column[2] ^ column[3]
    return [a ^ total ^ DOUBLE[a ^ b] for a, b in zip(column, column[1:] + column[:1])]


def _check():
    """FIPS 197, appendices B and C.1."""
    known = [
        ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"),
        ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
    ]
    for key, plain, cipher in known:
        got = Aes128(bytes.fromhex(key)).encrypt(bytes.fromhex(plain)).hex()
        if got != cipher:
            raise AssertionError(f"AES-128 of {plain} under {key} is {got}, FIPS 197 says {cipher}")


_check()
