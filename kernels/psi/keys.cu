// What is computed of every key of an intersection, as crates/device defines it (psi). A thread has a key, or a column. `call` says where what is, in the bank
// and apart, `verdict` whether anything takes effect (kernels/device/commands.cu).
#include "psi.h"

// Digests. call: keys, where they are, to, head, salt.
KERNEL void LAUNCH_BOUNDS(256, 3) psi_hash(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    const uint4 *key = labels_at(bank, call[1]) + 2 * k;
    uint4 *to = labels_at(bank, call[2]) + 2 * k;
    u32 s[8];
    psi_digest(s, u32(call[3]), psi_number(call + 4), load128(key), load128(key + 1));
    store128(to, make_uint4(s[0], s[1], s[2], s[3]));
    store128(to + 1, make_uint4(s[4], s[5], s[6], s[7]));
  }
}

// Rows: bin and sparse columns of a key, four words, and how many keys each bin has, if anything counts them. A thread has two keys, under one seed.
// Shared memory: the tables of AES. call: keys, digests, the store, seed, to (apart), counts (apart) or none, what is known of keys (apart) or nothing.
DEV u32 psi_below(u32 word, u64 n) { return u32((word * n) >> 32); }
KERNEL void LAUNCH_BOUNDS(512, 1) psi_rows(u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  const u64 *okvs = call + 2, *rest = okvs + OKVS;
  if (rest[3] != PSI_NONE && *psi_words(apart, rest[3]) != KEYS_OPEN) return;
  WITH_AES(table)
  const uint4 seed = load128(labels_at(bank, rest[0]));
  const u64 sparse = okvs[OKVS_SPARSE];
  for (u64 k = 2 * FIRST_OF_GRID; k < call[0]; k += 2 * STEP_OF_GRID) {
    const u64 other = k + 1 < call[0] ? k + 1 : k;
    uint4 x[2] = {load128(labels_at(bank, call[1]) + 2 * k + 1), load128(labels_at(bank, call[1]) + 2 * other + 1)};
    label_hash<2>(table, (threadIdx.x & 31) * 4, seed, 0, x);
    UNROLL
    for (u32 n = 0; n < 2; n++) {
      if (n == 1 && other == k) break;
      const u32 bin = psi_below(x[n].x, okvs[OKVS_BINS]), a = psi_below(x[n].y, sparse);
      u32 b = psi_below(x[n].z, sparse - 1), c = psi_below(x[n].w, sparse - 2);
      b += b >= a;
      c += c >= (a < b ? a : b);
      c += c >= (a < b ? b : a);
      store128(reinterpret_cast<uint4 *>(apart + rest[1]) + (n ? other : k), make_uint4(bin, a, b, c));
      if (rest[2] != PSI_NONE) atomic_add(psi_words(apart, rest[2]) + bin, 1);
    }
  }
}

// The sum of blocks, by one warp. call: blocks, where they are, to (apart).
KERNEL void psi_sum(const u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || blockIdx.x > 0 || threadIdx.x >= 32) return;
  uint4 sum = make_uint4(0, 0, 0, 0);
  for (u64 k = threadIdx.x; k < call[0]; k += 32) sum = xor128(sum, load128(labels_at(bank, call[1]) + k));
  for (u32 mask = 16; mask; mask >>= 1) {
    sum.x ^= WARP_SHUFFLE_XOR(sum.x, mask), sum.y ^= WARP_SHUFFLE_XOR(sum.y, mask);
    sum.z ^= WARP_SHUFFLE_XOR(sum.z, mask), sum.w ^= WARP_SHUFFLE_XOR(sum.w, mask);
  }
  if (threadIdx.x == 0) store128(reinterpret_cast<uint4 *>(apart + call[2]), sum);
}

// Columns and the offset times those that were sent. call: columns, own, sent, to (apart), offset.
KERNEL void LAUNCH_BOUNDS(256, 1) psi_shift(const u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const wide offset = make_wide(call[4], call[5]);
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    const wide product = polyval_mul(wide_of(load128(labels_at(bank, call[2]) + k)), offset);
    store128(reinterpret_cast<uint4 *>(apart + call[3]) + k, xor128(load128(labels_at(bank, call[1]) + k), words_of(product)));
  }
}

// Tags: products of rows with a table, of values with the offset, and w, hashed. Reads of the table are from all over it. call: keys, digests, the store, whether the
// table lies apart, where, rows (apart), w (apart), to (apart), head, whether there is an offset, offset.
KERNEL void LAUNCH_BOUNDS(256, 2) psi_tags(const u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 *okvs = call + 2, *rest = okvs + OKVS;
  const uint4 *table = labels_at(rest[0] ? apart : bank, rest[1]);
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    const uint4 row = load128(labels_at(apart, rest[2]) + k), *digest = labels_at(bank, call[1]) + 2 * k;
    const uint4 value = load128(digest), factor = load128(digest + 1);
    const uint4 *bin = table + row.x * (okvs[OKVS_SPARSE] + okvs[OKVS_DENSE]);
    wide sum = psi_dense(wide_of(factor), bin + okvs[OKVS_SPARSE], u32(okvs[OKVS_DENSE]));
    if (rest[6]) sum = wide_xor(sum, polyval_mul(wide_of(value), make_wide(rest[7], rest[8])));
    uint4 all = xor128(words_of(sum), load128(labels_at(apart, rest[3])));
    all = xor128(xor128(all, load128(bin + row.y)), xor128(load128(bin + row.z), load128(bin + row.w)));
    u32 s[8];
    psi_digest(s, u32(rest[5]), all, value, factor);
    store128(labels_at(apart, rest[4]) + k, make_uint4(s[0], s[1], s[2], s[3]));
  }
}
