// Steps of authenticated garbling, as crates/device defines them (ag). Arrays are blocks of sixteen bytes, column after column; their bits lie packed,
// each column in whole bytes. Programs over masks and over labels are in kernels/device/gates.cu.
//
// `call` says where what is, `verdict` whether anything takes effect (kernels/device/commands.cu). A thread has a block, or a byte of bits, in steps of the
// grid. It reads a block of all sources before it writes one: a destination may be in the place of a source.
#include "../garble/garble.h"
#include "../include/polyval.h"

// A bit for each block of columns: where, and bytes from a column to the next.
DEV u32 column_bit(const u8 *bank, const u64 *of, u64 blocks, u64 k) {
  return bit_at(bank + of[0] + k / blocks * of[1], k % blocks);
}
DEV uint4 numbers_at(const u64 *call) { return words_of(make_wide(call[0], call[1])); }

// A bit of blocks replaced. call: blocks of a column, columns, to, from, which bit, whether there are bits, bits.
KERNEL void ag_pin(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 blocks = call[0], all = call[1] * blocks;
  const u32 place = u32(call[4]);
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u32 bit = call[5] ? column_bit(bank, call + 6, blocks, k) : 0;
    uint4 x = load128(labels_at(bank, call[3]) + k);
    x.x = (x.x & ~(1u << place)) | bit << place;
    store128(labels_at(bank, call[2]) + k, x);
  }
}

// Bits as numbers. call: blocks of a column, columns, to, bits.
KERNEL void ag_expand(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 blocks = call[0], all = call[1] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID)
    store128(labels_at(bank, call[2]) + k, make_uint4(column_bit(bank, call + 3, blocks, k), 0, 0, 0));
}

// A bit of sums of blocks. A thread has a byte. call: blocks of a column, columns, to, bytes of a column of bits, which bit, sources, where each is.
KERNEL void ag_bits(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 blocks = call[0], bytes = call[3], all = call[1] * bytes;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 column = k / bytes, first = 8 * (k % bytes);
    u32 out = 0;
    for (u32 bit = 0; bit < 8 && first + bit < blocks; bit++) {
      u32 sum = 0;
      for (u64 s = 0; s < call[5]; s++) sum ^= bank[call[6 + s] + 16 * (column * blocks + first + bit)];
      out |= (sum >> call[4] & 1) << bit;
    }
    bank[call[2] + k] = u8(out);
  }
}

// A bit of each byte, one byte for each gate, packed behind bits that stay. call: gates, which bit, from (apart), to, bytes, how many bits stay.
KERNEL void ag_pack(u8 *bank, const u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 before = call[5], end = before + call[0];
  for (u64 k = before / 8 + FIRST_OF_GRID; k < call[4]; k += STEP_OF_GRID) {
    const u32 stay = 8 * k < before ? u32(before - 8 * k) : 0;
    u32 out = bank[call[3] + k] & ((1u << stay) - 1);
    for (u32 bit = stay; bit < 8 && 8 * k + bit < end; bit++) out |= (u32(apart[call[2] + (8 * k + bit - before)]) >> call[1] & 1) << bit;
    bank[call[3] + k] = u8(out);
  }
}

// Candidates: what both sides know of them.
enum Candidates {
  CANDIDATES,
  CANDIDATE_ROLE,
  CANDIDATE_FIRST,
  CANDIDATE_START,
  CANDIDATE_OFFSET = CANDIDATE_START + 2,
  CANDIDATE_TO = CANDIDATE_OFFSET + 2,
  CANDIDATE_FROM,
};
// b times the offset, and M and K of b.
DEV uint4 ag_sum(uint4 offset, uint4 mac, uint4 key) { return label_add(xor128(mac, key), offset, label_colour(mac)); }

// G. call: as `Candidates`; sources K[a], M[b], K[b].
KERNEL void LAUNCH_BOUNDS(512, 1) ag_offer(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  const uint4 start = numbers_at(call + CANDIDATE_START), offset = numbers_at(call + CANDIDATE_OFFSET);
  for (u64 k = FIRST_OF_GRID; k < call[CANDIDATES]; k += STEP_OF_GRID) {
    const u64 tweak = 2 * (call[CANDIDATE_FIRST] + k) + call[CANDIDATE_ROLE];
    const u64 *from = call + CANDIDATE_FROM;
    const uint4 key = load128(labels_at(bank, from[0]) + k);
    const uint4 c = ag_sum(offset, load128(labels_at(bank, from[1]) + k), load128(labels_at(bank, from[2]) + k));
    uint4 x[2] = {key, xor128(key, offset)};
    label_hash<2>(table, (threadIdx.x & 31) * 4, start, tweak, x);
    store128(labels_at(bank, call[CANDIDATE_TO]) + k, xor128(c, xor128(x[0], x[1])));
  }
}

// S. call: as `Candidates`; sources M[a], K[a], M[b], K[b], M[r], K[r], G of the other party.
KERNEL void LAUNCH_BOUNDS(512, 1) ag_take(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  const uint4 start = numbers_at(call + CANDIDATE_START), offset = numbers_at(call + CANDIDATE_OFFSET);
  for (u64 k = FIRST_OF_GRID; k < call[CANDIDATES]; k += STEP_OF_GRID) {
    const u64 number = 2 * (call[CANDIDATE_FIRST] + k), role = call[CANDIDATE_ROLE];
    const u64 *from = call + CANDIDATE_FROM;
    const uint4 mac = load128(labels_at(bank, from[0]) + k), key = load128(labels_at(bank, from[1]) + k);
    const uint4 c = ag_sum(offset, load128(labels_at(bank, from[2]) + k), load128(labels_at(bank, from[3]) + k));
    uint4 sum = ag_sum(offset, load128(labels_at(bank, from[4]) + k), load128(labels_at(bank, from[5]) + k));
    sum = label_add(sum, xor128(c, load128(labels_at(bank, from[6]) + k)), label_colour(mac));
    // Both hashes go through one piece of code: it stays in the cache of instructions.
    ROLLED
    for (u32 theirs = 0; theirs < 2; theirs++) {
      uint4 x[1] = {theirs ? mac : key};
      label_hash<1>(table, (threadIdx.x & 31) * 4, start, number + (role ^ theirs), x);
      sum = xor128(sum, x[0]);
    }
    store128(labels_at(bank, call[CANDIDATE_TO]) + k, sum);
  }
}

// Blocks that bits of both parties add something to. call: blocks of a column, columns, bits, bits, S, what is added to it, M or K of r, what is added to it.
KERNEL void ag_settle(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 blocks = call[0], all = call[1] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u32 d = column_bit(bank, call + 2, blocks, k) ^ column_bit(bank, call + 4, blocks, k);
    for (u32 to = 0; to < 2; to++) {
      uint4 *at = labels_at(bank, call[6 + 3 * to]) + k;
      store128(at, label_add(load128(at), numbers_at(call + 7 + 3 * to), 0 - d));
    }
  }
}

// The shift of a layer: LE128 of AES under half a digest, modulo the blocks of a column. One thread. call: blocks, layer, digest, to (apart).
KERNEL void LAUNCH_BOUNDS(512, 1) ag_shift(const u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  if (FIRST_OF_GRID != 0) return;
  uint4 x[1] = {make_uint4(u32(call[1]), 0, 0, 0)};
  aes_encrypt_rekeyed<1>(table, 0, load_part(bank + call[2], 16), x);
  const wide number = wide_of(x[0]);
  // Bit by bit, from the highest one on: what is left is below twice the number of blocks, of which there are fewer than 2^60.
  u64 left = 0;
  for (u32 bit = 128; bit-- > 0;) {
    left = left << 1 | ((bit < 64 ? number.lo : number.hi) >> (bit & 63) & 1);
    if (left >= call[0]) left -= call[0];
  }
  *reinterpret_cast<u64 *>(apart + call[3]) = left;
}

// Columns rotated. call: blocks of a column, columns, to, whether sources lie apart, from, the shift (apart).
KERNEL void ag_rotate(u8 *bank, const u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 blocks = call[0], all = call[1] * blocks, shift = *reinterpret_cast<const u64 *>(apart + call[5]);
  const u8 *of = call[3] ? apart : bank;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 column = k / blocks, from = k % blocks + shift;
    const u64 at = column * blocks + (from < blocks ? from : from - blocks);
    store128(labels_at(bank, call[2]) + k, load128(labels_at(of, call[4]) + at));
  }
}

// A layer added. call: blocks of a column, columns, bits, bits, M[a], K[a], M[c], K[c] of the layer, the same of the sums.
KERNEL void ag_absorb(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 blocks = call[0], all = call[1] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u32 d = 0 - (column_bit(bank, call + 2, blocks, k) ^ column_bit(bank, call + 4, blocks, k));
    uint4 sums[4];
    UNROLL
    for (u32 p = 0; p < 2; p++) {
      const uint4 a = load128(labels_at(bank, call[6 + p]) + k), c = load128(labels_at(bank, call[8 + p]) + k);
      sums[p] = xor128(load128(labels_at(bank, call[10 + p]) + k), a);
      sums[2 + p] = label_add(xor128(load128(labels_at(bank, call[12 + p]) + k), c), a, d);
    }
    UNROLL
    for (u32 p = 0; p < 4; p++) store128(labels_at(bank, call[10 + p]) + k, sums[p]);
  }
}

// Products used. call: blocks of a column, columns, bits of epsilon, bits, of delta, bits; M and K of a, of b, of c, of the mask; to, to; what a public 1 adds to
// M, and to K.
KERNEL void ag_spend(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 blocks = call[0], all = call[1] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u32 epsilon = 0 - (column_bit(bank, call + 2, blocks, k) ^ column_bit(bank, call + 4, blocks, k));
    const u32 delta = 0 - (column_bit(bank, call + 6, blocks, k) ^ column_bit(bank, call + 8, blocks, k));
    uint4 sums[2];
    UNROLL
    for (u32 p = 0; p < 2; p++) {
      const u64 *from = call + 10 + p;
      uint4 sum = xor128(load128(labels_at(bank, from[4]) + k), load128(labels_at(bank, from[6]) + k));
      sum = label_add(sum, load128(labels_at(bank, from[2]) + k), epsilon);
      sum = label_add(sum, load128(labels_at(bank, from[0]) + k), delta);
      sums[p] = label_add(sum, numbers_at(call + 20 + 2 * p), epsilon & delta);
    }
    UNROLL
    for (u32 p = 0; p < 2; p++) store128(labels_at(bank, call[18 + p]) + k, sums[p]);
  }
}

// What both parties compare of gates. call: blocks, of which are gates, to, whether at the evaluator, its offset, then where bits and arrays are: bits of both
// operands, of the result at the evaluator; MACs, and keys at the evaluator, of both operands and of the sum with the result's mask.
KERNEL void ag_gates(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const bool evaluator = call[3] != 0;
  const u64 *bits = call + 6, *arrays = bits + (evaluator ? 3 : 2);
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    uint4 out = make_uint4(0, 0, 0, 0);
    if (k < call[1]) {
      const u32 alpha = 0 - bit_at(bank + bits[0], k), beta = 0 - bit_at(bank + bits[1], k);
      u32 part = 0;
      for (u32 kind = 0; kind < (evaluator ? 2 : 1); kind++) {
        const u64 *of = arrays + 3 * kind;
        part = label_colour(out);
        out = label_add(load128(labels_at(bank, of[2]) + k), load128(labels_at(bank, of[1]) + k), alpha);
        out = label_add(out, load128(labels_at(bank, of[0]) + k), beta);
      }
      if (evaluator) out = label_add(out, numbers_at(call + 4), part ^ (alpha & beta) ^ (0 - bit_at(bank + bits[2], k)));
    }
    store128(labels_at(bank, call[2]) + k, out);
  }
}

// Adds POLYVAL of sums of arrays to a sum: thread t of T has each T-th block, with zeros in front so that all have as many. call: to, challenge, blocks of a
// column, columns, arrays, whether there are bits, bits, offset, where each array is.
KERNEL void ag_fold(const u8 *__restrict__ bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const wide key = wide_of(load_part(bank + call[1], 16));
  const u64 column = call[2], blocks = column * call[3], threads = STEP_OF_GRID, thread = FIRST_OF_GRID;
  const u64 steps = (blocks + threads - 1) / threads, zeros = steps * threads - blocks;
  const wide stride = polyval_power(key, threads);
  wide hash = make_wide(0, 0);
  for (u64 step = 0; step < steps; step++) {
    const u64 place = step * threads + thread;
    uint4 block = make_uint4(0, 0, 0, 0);
    if (place >= zeros) {
      const u64 k = place - zeros;
      for (u64 s = 0; s < call[4]; s++) block = xor128(block, load128(labels_at(bank, call[10 + s]) + k));
      if (call[5]) block = label_add(block, numbers_at(call + 8), 0 - column_bit(bank, call + 6, column, k));
    }
    hash = wide_xor(polyval_mul(hash, stride), wide_of(block));
  }
  // To the power of the blocks from this thread's on.
  polyval_add(sums, polyval_mul(hash, polyval_power(key, threads - thread)));
}
// Puts it where it belongs, and forgets it. call: that of `ag_fold`.
KERNEL void ag_fold_end(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  store_part(bank + call[0], 16, words_of(make_wide(sums[0], sums[1])));
  sums[0] = 0, sums[1] = 0;
}

// What a fold of MACs must be: that of keys, and that of parts times the offset. One thread. call: to, fold of keys, fold of parts, offset.
KERNEL void ag_expect(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  const wide parts = wide_of(load_part(bank + call[2], 16)), offset = make_wide(call[3], call[4]);
  // The product of polynomials itself: x^256 takes back what both of POLYVAL divide by.
  const wide product = polyval_mul(polyval_mul(parts, offset), POLYVAL_SQUARE);
  store_part(bank + call[0], 16, words_of(wide_xor(wide_of(load_part(bank + call[1], 16)), product)));
}
