// What steps of intersections share (crates/device/src/psi): digests of 32 bytes are two blocks, columns of a store one each. Rows of keys, and what is found, follow
// from digests of a party's own keys; neither time nor places in memory follow from the offset or the VOLE.
#pragma once
#include "../garble/garble.h"
#include "../include/polyval.h"
#include "../sha256/sha256.h"

// A store: bins, sparse columns of each, dense ones, which lie behind them.
enum { OKVS_BINS, OKVS_SPARSE, OKVS_DENSE, OKVS };
// What is known of keys: nothing yet, that they are encoded, or that two are equal.
enum { KEYS_OPEN, KEYS_SOLVED, KEYS_EQUAL };
// What there is not.
#define PSI_NONE 0xffffffffffffffffull

DEV uint4 psi_number(const u64 *call) { return words_of(make_wide(call[0], call[1])); }
DEV u32 *psi_words(u8 *apart, u64 at) { return reinterpret_cast<u32 *>(apart + at); }

// SHA-256 of a head, a block and a digest: 52 bytes, in one block of the hash.
DEV void psi_digest(u32 s[8], u32 head, uint4 block, uint4 first, uint4 second) {
  const u32 initial[8] = SHA256_INITIAL;
  u32 w[16] = {head,    block.x, block.y,  block.z,  block.w,  first.x, first.y, first.z,
               first.w, second.x, second.y, second.z, second.w, 0x80,    0,       0};
  UNROLL
  for (u32 k = 0; k < 16; k++) w[k] = swap_bytes(w[k]);
  w[15] = 8 * 52;
  UNROLL
  for (u32 k = 0; k < 8; k++) s[k] = initial[k];
  sha256_block(s, w);
  UNROLL
  for (u32 k = 0; k < 8; k++) s[k] = swap_bytes(s[k]);
}

// The dense part of a row: the factor times the first column, its square times the second one, and so on.
DEV wide psi_dense(wide factor, const uint4 *columns, u32 count) {
  wide sum = make_wide(0, 0);
  ROLLED
  for (u32 k = count; k-- > 0;) sum = polyval_mul(factor, wide_xor(sum, wide_of(load128(columns + k))));
  return sum;
}

// Whether a block is before another one, as strings of bytes.
DEV bool psi_before(uint4 a, uint4 b) {
  const u64 first = u64(swap_bytes(a.x)) << 32 | swap_bytes(a.y), other = u64(swap_bytes(b.x)) << 32 | swap_bytes(b.y);
  const u64 low = u64(swap_bytes(a.z)) << 32 | swap_bytes(a.w), other_low = u64(swap_bytes(b.z)) << 32 | swap_bytes(b.w);
  return first < other || (first == other && low < other_low);
}
DEV bool psi_equal(uint4 a, uint4 b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }
