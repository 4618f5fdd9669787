// Gates with authenticated masks (crates/device/src/ag): blocks of arrays, of which product p, behind others, has that of row r in place (others + p) R + r, and
// a byte apart for each gate: z at the garbler, at the evaluator bits of both operands and of the result.
#pragma once
#include "../garble/garble.h"

struct masked_gate {
  const u32 *table;
  u32 lane4;
  uint4 start, offset;
  u64 number, at, flag, step;  // its number, its places in arrays and among flags, and tables of a product from one another
  u8 *bank, *flags;
  const u64 *arrays;     // where they are: at the garbler M, K of both operands and of the sum, labels; at the evaluator M of these, z, labels
  uint4 *tables;
};

DEV uint4 masked_block(const masked_gate &g, u32 array) { return load128(labels_at(g.bank, g.arrays[array]) + g.at); }
// A part times the offset, and the key.
DEV uint4 masked_own(const masked_gate &g, u32 of) {
  return label_add(masked_block(g, 2 * of + 1), g.offset, label_colour(masked_block(g, 2 * of)));
}

// The label of the result for 0, whose bit 1 is 0, and the tables.
DEV uint4 masked_garble(const masked_gate &g, uint4 a, uint4 b) {
  uint4 out = masked_own(g, 2);
  ROLLED
  for (u32 half = 0; half < 2; half++) {
    const uint4 own = half ? b : a;
    uint4 x[2] = {own, xor128(own, g.offset)};
    label_hash<2>(g.table, g.lane4, g.start, 2 * g.number + half, x);
    out = xor128(out, x[0]);
    const uint4 row = xor128(xor128(x[0], x[1]), masked_own(g, 1 - half));
    store128(g.tables + half * g.step, half ? xor128(row, a) : row);
  }
  g.flags[g.flag] = u8(out.x >> 1 & 1);
  out.x &= ~2u;
  store128(labels_at(g.bank, g.arrays[6]) + g.at, out);
  return out;
}

// The active label of the result.
DEV uint4 masked_evaluate(const masked_gate &g, uint4 a, uint4 b) {
  uint4 out = masked_block(g, 2);
  out.x ^= bit_at(g.bank + g.arrays[3], g.at) << 1;
  ROLLED
  for (u32 half = 0; half < 2; half++) {
    const uint4 own = half ? b : a;
    uint4 x[1] = {own};
    label_hash<1>(g.table, g.lane4, g.start, 2 * g.number + half, x);
    uint4 row = xor128(load128(g.tables + half * g.step), masked_block(g, 1 - half));
    if (half) row = xor128(row, a);
    out = label_add(xor128(out, x[0]), row, 0 - (own.x >> 1 & 1));
  }
  g.flags[g.flag] = u8((a.x >> 1 & 1) | (b.x & 2) | (out.x & 2) << 1);
  store128(labels_at(g.bank, g.arrays[4]) + g.at, out);
  return out;
}
