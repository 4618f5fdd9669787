"""Fields of characteristic 2, and polynomials over them, for the model of proofs: plain Python integers, bit i the coefficient of x^i."""

# x^k and the lower terms. That they are irreducible is checked when a field is made.
MODULI = {2: 0b111, 8: 0x11B, 16: 0x1002B, 64: 1 << 64 | 0x1B}


def carry_less(a, b):
    """The product of two polynomials over GF(2)."""
    steps = (0, b, b << 1, b << 1 ^ b)
    result = place = 0
    while a:
        result ^= steps[a & 3] << place
        a, place = a >> 2, place + 2
    return result


def remainder(a, b):
    while a.bit_length() >= b.bit_length():
        a ^= b << (a.bit_length() - b.bit_length())
    return a


class Field:
    """GF(2^bits). Elements are integers below `size`; addition is XOR. "Place k" is the element whose integer is k."""

    def __init__(self, bits):
        self.bits, self.size, self.modulus = bits, 1 << bits, MODULI[bits]
        self.mask, self.tail = self.size - 1, self.modulus ^ self.size
        self.kept, self.powers = {}, None
        if not self.irreducible():
            raise ValueError(f"the modulus of GF(2^{bits}) has a factor")
        if bits <= 16:
            self.tabulate()

    def irreducible(self):
        """Rabin: x^(2^k) = x, and x^(2^(k/2)) - x is prime to the modulus, as k is a power of 2."""
        x = a = 2
        for step in range(self.bits):
            if step == self.bits // 2:
                a, b = self.modulus, x ^ 2
                while b:
                    a, b = b, remainder(a, b)
            x = self.reduce(carry_less(x, x))
        return x == 2 and a == 1

    def tabulate(self):
        """Powers of a generator, and logarithms to it."""
        for generator in range(2, self.size):
            powers = [1]
            while (x := self.reduce(carry_less(powers[-1], generator))) != 1:
                powers.append(x)
            if len(powers) == self.size - 1:
                break
        self.logarithms = {x: n for n, x in enumerate(powers)}
        self.powers = powers + powers

    def reduce(self, product):
        while product > self.mask:
            product = product & self.mask ^ carry_less(product >> self.bits, self.tail)
        return product

    def mul(self, a, b):
        if self.powers is None:
            return self.reduce(carry_less(a, b))
        return self.powers[self.logarithms[a] + self.logarithms[b]] if a and b else 0

    def dot(self, left, right):
        """The sum of products, reduced once."""
        result = 0
        for a, b in zip(left, right):
            result ^= carry_less(a, b) if self.powers is None else self.mul(a, b)
        return self.reduce(result)

    def product(self, elements):
        result = 1
        for x in elements:
            result = self.mul(result, x)
        return result

    def inverse(self, a):
        """a^(2^k - 2)."""
        return self.product(self.squares(a))

    def squares(self, a):
        for _ in range(self.bits - 1):
            a = self.mul(a, a)
            yield a

    def coefficients(self, points, x):
        """By what the values at the points are multiplied to give the value at x of the polynomial through them."""
        of = (points, x) if isinstance(points, range) else None
        if of in self.kept:
            return self.kept[of]
        result = []
        for i in points:
            others = [j for j in points if j != i]
            below = self.inverse(self.product(i ^ j for j in others))
            result.append(self.mul(self.product(x ^ j for j in others), below))
        if of and (self.bits <= 8 or x < 64):
            self.kept[of] = result
        return result

    def evaluate(self, values, x):
        """At x, the polynomial of smallest degree that has these values at the places 0, 1, 2, ..."""
        return self.dot(self.coefficients(range(len(values)), x), values)
