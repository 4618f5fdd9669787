// The field of POLYVAL, GF(2^128).
#pragma once
#include "ring.h"

// a b x^-128 modulo x^128 + x^127 + x^126 + x^121 + 1 (RFC 8452), in time that depends on neither: b by its bits, from the lowest power on.
DEV wide polyval_mul(wide a, wide b) {
  wide out = make_wide(0, 0);
  for (u32 k = 0; k < 128; k++) {
    const u64 take = 0 - (((k < 64 ? b.lo : b.hi) >> (k & 63)) & 1);
    out = make_wide(out.lo ^ (a.lo & take), out.hi ^ (a.hi & take));
    // Divided by x: what is odd becomes even by the modulus, whose x^128 is then x^127.
    const u64 odd = 0 - (out.lo & 1);
    out = make_wide(out.lo >> 1 | out.hi << 63, out.hi >> 1);
    out.hi ^= odd & 0xe100000000000000ull;
  }
  return out;
}

// 1 of the field, as its product has it: x^128.
#define POLYVAL_ONE make_wide(1, 0xc200000000000000ull)
// x^256: a product with it is one with x^128.
#define POLYVAL_SQUARE make_wide(0x4563df92ea7081b5ull, 0x1e563df92ea7081bull)
// The key to the power n, which is not secret.
DEV wide polyval_power(wide key, u64 n) {
  wide out = POLYVAL_ONE;
  for (; n; n >>= 1) {
    if (n & 1) out = polyval_mul(out, key);
    key = polyval_mul(key, key);
  }
  return out;
}

// Adds what all threads have to a sum. All lanes of a warp come here.
DEV void polyval_add(u64 *sums, wide v) {
  u32 *sum = reinterpret_cast<u32 *>(sums);
  const uint4 words = words_of(v);
  u32 own[4] = {words.x, words.y, words.z, words.w};
  UNROLL
  for (u32 k = 0; k < 4; k++) {
    for (u32 mask = 16; mask; mask >>= 1) own[k] ^= WARP_SHUFFLE_XOR(own[k], mask);
    if ((threadIdx.x & 31) == 0) atomic_xor(sum + k, own[k]);
  }
}
