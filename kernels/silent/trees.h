// What steps of silent transfers share (crates/device/src/silent): leaves are two runs of trees, each without gaps, and so are arrays of blocks. Time and
// places in memory follow from no choice: where a node is changed whose number is secret, all are looked at.
#pragma once
#include "../garble/garble.h"
#include "../include/polyval.h"

// Two runs of leaves: where the first is, how many blocks it has, where the second is.
enum { LEAVES_FIRST, LEAVES_BLOCKS, LEAVES_SECOND, LEAVES };

DEV uint4 *silent_leaf(u8 *bank, const u64 *leaves, u64 k) {
  const u64 some = leaves[LEAVES_BLOCKS];
  return k < some ? labels_at(bank, leaves[LEAVES_FIRST]) + k : labels_at(bank, leaves[LEAVES_SECOND]) + (k - some);
}
DEV uint4 silent_number(const u64 *call) { return words_of(make_wide(call[0], call[1])); }
DEV uint4 silent_zero() { return make_uint4(0, 0, 0, 0); }
// Ones if both numbers are the same.
DEV u32 silent_same(u32 a, u32 b) { return (((a ^ b) | (0 - (a ^ b))) >> 31) - 1; }
DEV uint4 silent_kept(uint4 x, u32 mask) { return make_uint4(x.x & mask, x.y & mask, x.z & mask, x.w & mask); }
// The sum of what the lanes of a warp have, which all come here, in each of them.
DEV uint4 silent_sum(uint4 v) {
  for (u32 mask = 16; mask; mask >>= 1) {
    v.x ^= WARP_SHUFFLE_XOR(v.x, mask), v.y ^= WARP_SHUFFLE_XOR(v.y, mask);
    v.z ^= WARP_SHUFFLE_XOR(v.z, mask), v.w ^= WARP_SHUFFLE_XOR(v.w, mask);
  }
  return v;
}
