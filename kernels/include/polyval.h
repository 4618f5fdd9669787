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
