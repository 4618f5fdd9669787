// Half-gates, and the hash of labels (crates/device/src/garble). A label is sixteen bytes, lowest first: four words.
#pragma once
#include "../aes/aes.h"
#include "../include/ring.h"

// Labels of a bank, and a bit of packed bits.
DEV uint4 *labels_at(u8 *bank, u64 at) { return reinterpret_cast<uint4 *>(bank + at); }
DEV const uint4 *labels_at(const u8 *bank, u64 at) { return reinterpret_cast<const uint4 *>(bank + at); }
DEV u32 bit_at(const u8 *bits, u64 row) { return (bits[row >> 3] >> (row & 7)) & 1; }

// The beginning of a kernel that makes AES, in which all threads of a block are together.
#define WITH_AES(table)                  \
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS); \
  if (verdict[0]) return;                \
  aes_fill(table);                       \
  BLOCK_BARRIER();

DEV uint4 label_sigma(uint4 x) { return make_uint4(x.z, x.w, x.z ^ x.x, x.w ^ x.y); }
DEV u32 label_colour(uint4 x) { return 0 - (x.x & 1); }
// a, and b where the mask is ones.
DEV uint4 label_add(uint4 a, uint4 b, u32 mask) {
  return make_uint4(lop3<0x78>(a.x, b.x, mask), lop3<0x78>(a.y, b.y, mask), lop3<0x78>(a.z, b.z, mask), lop3<0x78>(a.w, b.w, mask));
}

// The hash of COUNT labels under one tweak, in their places.
template <u32 COUNT> DEV void label_hash(const u32 *table, u32 lane4, uint4 start, u64 tweak, uint4 (&x)[COUNT]) {
  uint4 blocks[COUNT];
  UNROLL
  for (u32 n = 0; n < COUNT; n++) blocks[n] = x[n] = label_sigma(x[n]);
  aes_encrypt_rekeyed<COUNT>(table, lane4, make_uint4(start.x, start.y, start.z ^ u32(tweak), start.w ^ u32(tweak >> 32)), blocks);
  UNROLL
  for (u32 n = 0; n < COUNT; n++) x[n] = xor128(x[n], blocks[n]);
}

// The zero-label of an AND, and its table. Both halves go through one piece of code: it stays in the cache of instructions.
DEV uint4 half_garble(const u32 *table, u32 lane4, uint4 start, uint4 offset, u64 gate, uint4 a, uint4 b, uint4 *garbler, uint4 *evaluator) {
  uint4 out = make_uint4(0, 0, 0, 0);
  const u32 p = label_colour(a), q = label_colour(b);
  ROLLED
  for (u32 half = 0; half < 2; half++) {
    const uint4 own = half ? b : a;
    uint4 x[2] = {own, xor128(own, offset)};
    label_hash<2>(table, lane4, start, 2 * gate + half, x);
    const uint4 both = xor128(x[0], x[1]);
    // T_G is whole with q of the offset; T_E with a, which the result does not have.
    const uint4 row = half ? both : label_add(both, offset, q);
    out = label_add(xor128(out, x[0]), row, half ? q : p);
    store128(half ? evaluator : garbler, half ? xor128(row, a) : row);
  }
  return out;
}

// The active label of an AND.
DEV uint4 half_evaluate(const u32 *table, u32 lane4, uint4 start, u64 gate, uint4 a, uint4 b, const uint4 *garbler, const uint4 *evaluator) {
  uint4 out = make_uint4(0, 0, 0, 0);
  const u32 p = label_colour(a), q = label_colour(b);
  ROLLED
  for (u32 half = 0; half < 2; half++) {
    uint4 x[1] = {half ? b : a};
    label_hash<1>(table, lane4, start, 2 * gate + half, x);
    const uint4 row = half ? xor128(load128(evaluator), a) : load128(garbler);
    out = label_add(xor128(out, x[0]), row, half ? q : p);
  }
  return out;
}
