"""The group ristretto255: slow, short, not constant-time, and checked against the standard at import.

From: de Valence, Grigg, Hamburg, Lovecruft, Tankersley, Valsorda, The ristretto255 and decaf448 Groups, RFC 9496 (2023), section 4.
"""

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def _abs(x):
    """Of x and -x the one whose lowest bit is 0."""
    return P - x if x & 1 else x


def _sqrt_ratio(u, v):
    """(whether u/v is a square, the non-negative root of u/v or of sqrt(-1) u/v)."""
    root = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * root * root % P
    u %= P
    right, flipped = check == u, check == -u % P
    if flipped or check == -u * I % P:
        root = root * I % P
    return right or flipped, _abs(root)


I = _abs(pow(2, (P - 1) // 4, P))
SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235
INVSQRT_A_MINUS_D = _sqrt_ratio(1, -1 - D)[1]
ONE_MINUS_D_SQ = (1 - D * D) % P
D_MINUS_ONE_SQ = (D - 1) ** 2 % P


class Point:
    """A point of the curve in extended coordinates (X : Y : Z : T), as a representative of an element."""

    def __init__(self, x, y, z=1, t=None):
        self.x, self.y, self.z = x % P, y % P, z % P
        self.t = x * y % P if t is None else t % P

    def __add__(self, q):
        # Hisil, Wong, Carter, Dawson, Twisted Edwards Curves Revisited (2008), section 3.1, a = -1.
        a, b = (self.y - self.x) * (q.y - q.x), (self.y + self.x) * (q.y + q.x)
        c, d = 2 * self.t * q.t * D, 2 * self.z * q.z
        e, f, g, h = b - a, d - c, d + c, b + a
        return Point(e * f, g * h, f * g, e * h)

    def __neg__(self):
        return Point(-self.x, self.y, self.z, -self.t)

    def __sub__(self, q):
        return self + -q

    def __rmul__(self, scalar):
        total = Point(0, 1)
        for bit in bin(scalar % ORDER)[2:]:
            total = total + total
            if bit == "1":
                total = total + self
        return total

    def encode(self):
        u1, u2 = (self.z + self.y) * (self.z - self.y), self.x * self.y
        inverse = _sqrt_ratio(1, u1 * u2 * u2 % P)[1]
        d1, d2 = u1 * inverse, u2 * inverse
        z = d1 * d2 * self.t % P
        x, y, d = self.x, self.y, d2
        if self.t * z % P & 1:
            x, y, d = self.y * I, self.x * I, d1 * INVSQRT_A_MINUS_D
        if x * z % P & 1:
            y = -y
        return _abs(d * (self.z - y) % P).to_bytes(32, "little")


def decode(data):
    """The element, or None if these bytes are the encoding of none."""
    s = int.from_bytes(data, "little")
    if s >= P or s & 1:
        return None
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    square, inverse = _sqrt_ratio(1, v * u2 * u2 % P)
    x = _abs(2 * s * inverse * u2 % P)
    y = u1 * inverse * inverse * u2 * v % P
    return None if not square or x * y % P & 1 or y == 0 else Point(x, y)


def _map(data):
    r = I * pow((int.from_bytes(data, "little") & (2**255 - 1)) % P, 2, P) % P
    u, v = (r + 1) * ONE_MINUS_D_SQ % P, (-1 - r * D) * (r + D) % P
    square, s = _sqrt_ratio(u, v)
    c = -1
    if not square:
        s, c = -_abs(s * (int.from_bytes(data, "little") & (2**255 - 1)) % P), r
    n = (c * (r - 1) * D_MINUS_ONE_SQ - v) % P
    w0, w1, w2, w3 = 2 * s * v, n * SQRT_AD_MINUS_ONE, 1 - s * s, 1 + s * s
    return Point(w0 * w3, w2 * w1, w1 * w3, w0 * w2)


def from_uniform(data):
    """The one-way map of 64 bytes to an element."""
    return _map(data[:32]) + _map(data[32:])


BASE = Point(
    15112221349535400772501151409588531511454012693041857206046113283949847762202,
    46316835694926478169428394003475163141307993866256225615783033603165251855960,
)


def _check():
    """RFC 9496, appendices A.1, A.2 and A.3: multiples of the generator, encodings that are none, and the map."""
    known = {
        0: "0000000000000000000000000000000000000000000000000000000000000000",
        1: "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
        2: "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
    }
    for factor, encoded in known.items():
        if (factor * BASE).encode().hex() != encoded:
            raise AssertionError(f"{factor} B is not what RFC 9496 says")
        if encoded != known[0] and decode(bytes.fromhex(encoded)).encode().hex() != encoded:
            raise AssertionError(f"{factor} B does not survive its encoding")
    bad = [(P + 1).to_bytes(32, "little"), b"\xff" * 32, b"\x01" + bytes(31)]
    bad.append(bytes.fromhex("26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371"))
    if any(decode(data) for data in bad):
        raise AssertionError("an encoding of nothing is decoded")
    hashed = bytes.fromhex(
        "5d1be09e3d0c82fc538112490e35701979d99e06ca3e2b5b54bffe8b4dc772c1"
        "4d98b696a1bbfb5ca32c436cc61c16563790306c79eaca7705668b47dffe5bb6"
    )
    if from_uniform(hashed).encode().hex() != "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46":
        raise AssertionError("the map is not that of RFC 9496")


_check()
