// Columns of ring elements, sixteen bytes at a time: 128 bits, four integers of 32 bits, two of 64, or one of 128. Columns lie packed in memory, so that sixteen
// bytes of them may begin anywhere and be fewer at the end.
#pragma once
#include "language.h"

enum Ring { BITS, Z64, Z128, Z32 };

struct wide {
  u64 lo, hi;
};

DEV wide make_wide(u64 lo, u64 hi) {
  wide out;
  out.lo = lo, out.hi = hi;
  return out;
}
DEV wide wide_of(uint4 v) { return make_wide(u64(v.y) << 32 | v.x, u64(v.w) << 32 | v.z); }
DEV uint4 words_of(wide v) { return make_uint4(u32(v.lo), u32(v.lo >> 32), u32(v.hi), u32(v.hi >> 32)); }

DEV wide wide_add(wide a, wide b) {
  const u64 lo = a.lo + b.lo;
  return make_wide(lo, a.hi + b.hi + (lo < a.lo));
}
DEV wide wide_xor(wide a, wide b) { return make_wide(a.lo ^ b.lo, a.hi ^ b.hi); }
DEV wide wide_sub(wide a, wide b) { return make_wide(a.lo - b.lo, a.hi - b.hi - (a.lo < b.lo)); }
DEV wide wide_mul(wide a, wide b) { return make_wide(a.lo * b.lo, multiply_high(a.lo, b.lo) + a.lo * b.hi + a.hi * b.lo); }
DEV wide wide_shift(wide a, u32 by) {
  if (by == 0) return a;
  if (by >= 64) return make_wide(a.hi >> (by - 64), 0);
  return make_wide(a.lo >> by | a.hi << (64 - by), a.hi >> by);
}

DEV uint4 xor128(uint4 a, uint4 b) { return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w); }

template <u32 RING> DEV uint4 ring_add(uint4 a, uint4 b) {
  if (RING == BITS) return xor128(a, b);
  if (RING == Z32) return make_uint4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
  const wide x = wide_of(a), y = wide_of(b);
  return words_of(RING == Z64 ? make_wide(x.lo + y.lo, x.hi + y.hi) : wide_add(x, y));
}
template <u32 RING> DEV uint4 ring_sub(uint4 a, uint4 b) {
  if (RING == BITS) return xor128(a, b);
  if (RING == Z32) return make_uint4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
  const wide x = wide_of(a), y = wide_of(b);
  return words_of(RING == Z64 ? make_wide(x.lo - y.lo, x.hi - y.hi) : wide_sub(x, y));
}
template <u32 RING> DEV uint4 ring_mul(uint4 a, uint4 b) {
  if (RING == BITS) return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w);
  const wide x = wide_of(a), y = wide_of(b);
  return words_of(RING == Z64 ? make_wide(x.lo * y.lo, x.hi * y.hi) : wide_mul(x, y));
}

// The first `bytes` of sixteen; the rest is zero.
DEV uint4 load_part(const u8 *p, u64 bytes) {
  const u64 at = reinterpret_cast<u64>(p);
  if (bytes >= 16 && (at & 15) == 0) return load128(reinterpret_cast<const uint4 *>(p));
  u32 w[4] = {0, 0, 0, 0};
  const u32 some = bytes < 16 ? u32(bytes) : 16;
  if ((at & 3) == 0 && (some & 3) == 0) {
    const u32 *words = reinterpret_cast<const u32 *>(p);
    UNROLL
    for (u32 k = 0; k < 4; k++)
      if (4 * k < some) w[k] = words[k];
  } else {
    UNROLL
    for (u32 k = 0; k < 16; k++)
      if (k < some) w[k >> 2] |= u32(p[k]) << (8 * (k & 3));
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}
DEV void store_part(u8 *p, u64 bytes, uint4 v) {
  const u64 at = reinterpret_cast<u64>(p);
  if (bytes >= 16 && (at & 15) == 0) {
    store128(reinterpret_cast<uint4 *>(p), v);
    return;
  }
  const u32 w[4] = {v.x, v.y, v.z, v.w};
  const u32 some = bytes < 16 ? u32(bytes) : 16;
  if ((at & 3) == 0 && (some & 3) == 0) {
    u32 *words = reinterpret_cast<u32 *>(p);
    UNROLL
    for (u32 k = 0; k < 4; k++)
      if (4 * k < some) words[k] = w[k];
  } else {
    UNROLL
    for (u32 k = 0; k < 16; k++)
      if (k < some) p[k] = u8(w[k >> 2] >> (8 * (k & 3)));
  }
}

// Element `cell` of a column, from 0 on: a bit, or an integer of 64 or of 128 bits.
DEV wide load_element(const u8 *column, u32 ring, u64 cell) {
  if (ring == BITS) return make_wide((column[cell >> 3] >> (cell & 7)) & 1, 0);
  const u64 *words = reinterpret_cast<const u64 *>(column) + (ring == Z64 ? cell : 2 * cell);
  return make_wide(words[0], ring == Z64 ? 0 : words[1]);
}
// The same of integers.
DEV void store_element(u8 *column, u32 ring, u64 cell, wide v) {
  u64 *words = reinterpret_cast<u64 *>(column) + (ring == Z64 ? cell : 2 * cell);
  words[0] = v.lo;
  if (ring == Z128) words[1] = v.hi;
}

// What all rows share, in each place of sixteen bytes.
template <u32 RING> DEV uint4 load_shared(const u8 *p) {
  const wide v = load_element(p, RING, 0);
  if (RING == BITS) return words_of(make_wide(0 - v.lo, 0 - v.lo));
  return words_of(RING == Z64 ? make_wide(v.lo, v.lo) : v);
}

// Adds a value of each lane of a warp to a sum of four numbers, each for 32 bits, so that 2^32 values fit. All lanes come here.
DEV void accumulate(u64 *sum, wide v) {
  const u32 limbs[4] = {u32(v.lo), u32(v.lo >> 32), u32(v.hi), u32(v.hi >> 32)};
  UNROLL
  for (u32 k = 0; k < 4; k++) {
    // Halves of 16 bits do not overflow when 32 of them are added.
    u32 low = limbs[k] & 0xffff, high = limbs[k] >> 16;
    for (u32 mask = 16; mask; mask >>= 1) low += WARP_SHUFFLE_XOR(low, mask), high += WARP_SHUFFLE_XOR(high, mask);
    if ((threadIdx.x & 31) == 0) atomic_add64(sum + k, low + (u64(high) << 16));
  }
}
DEV wide total_of(const u64 *sum) {
  wide total = make_wide(0, 0);
  for (u32 k = 4; k-- > 0;) {
    total = make_wide(total.lo << 32, total.hi << 32 | total.lo >> 32);
    total = wide_add(total, make_wide(sum[k], 0));
  }
  return total;
}
