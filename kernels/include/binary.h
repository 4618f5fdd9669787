// The field GF(2^64) of proofs: polynomials modulo x^64 + x^4 + x^3 + x + 1, bit i of a number the coefficient of x^i. Times depend on no value.
#pragma once
#include "ring.h"

#define FOURTH_BITS 0x1111111111111111ull

// The lowest 64 coefficients of a product: of every fourth coefficient there are at most 16 terms, whose sum stays below the next one that counts.
DEV u64 binary_low(u64 a, u64 b) {
  u64 out = 0;
  UNROLL
  for (u32 i = 0; i < 4; i++) {
    u64 sum = 0;
    UNROLL
    for (u32 j = 0; j < 4; j++) sum ^= (a & (FOURTH_BITS << j)) * (b & (FOURTH_BITS << ((4 + i - j) & 3)));
    out |= sum & (FOURTH_BITS << i);
  }
  return out;
}
DEV u64 reverse_bits(u64 x) {
  x = ((x >> 1) & 0x5555555555555555ull) | ((x & 0x5555555555555555ull) << 1);
  x = ((x >> 2) & 0x3333333333333333ull) | ((x & 0x3333333333333333ull) << 2);
  x = ((x >> 4) & 0x0f0f0f0f0f0f0f0full) | ((x & 0x0f0f0f0f0f0f0f0full) << 4);
  return u64(swap_bytes(u32(x))) << 32 | swap_bytes(u32(x >> 32));
}
// The product of two polynomials, not reduced.
DEV wide binary_product(u64 a, u64 b) {
  return make_wide(binary_low(a, b), reverse_bits(binary_low(reverse_bits(a), reverse_bits(b))) >> 1);
}
DEV u64 binary_reduce(wide x) {
  // x^64 times what is above is of degree below 68, so that a second step has four bits.
  const u64 beyond = x.hi >> 63 ^ x.hi >> 61 ^ x.hi >> 60;
  const u64 folded = x.hi ^ x.hi << 1 ^ x.hi << 3 ^ x.hi << 4;
  return x.lo ^ folded ^ beyond ^ beyond << 1 ^ beyond << 3 ^ beyond << 4;
}
DEV u64 binary_mul(u64 a, u64 b) { return binary_reduce(binary_product(a, b)); }

// The basis polynomials of places 0 to n - 1, at x (Lagrange): n is a power of two, or one less, and `divisor` 1 over the product of all other elements of
// the whole power of two.
DEV void binary_basis(u64 *basis, u32 n, u64 x, u64 divisor) {
  const u32 left_out = (n & (n - 1)) == 0 ? 0 : n;
  u64 before = 1, after = 1;
  ROLLED
  for (u32 i = 0; i < n; i++) {
    const u64 scale = left_out == 0 ? divisor : binary_mul(divisor, i ^ left_out);
    basis[i] = binary_mul(scale, before), before = binary_mul(before, x ^ i);
  }
  ROLLED
  for (u32 i = n; i-- > 0;) basis[i] = binary_mul(basis[i], after), after = binary_mul(after, x ^ i);
}
