// The receiver's keys are encoded, as crates/device defines it (psi): every column is drawn, keys are put into their bins, and each bin is solved by a block of
// threads (solve.h). All steps of a seed do nothing once keys are encoded, or are found to be equal.
#include "solve.h"

// A seed, and every column, drawn; and what is counted of bins, zero. A thread has a block. Shared memory: the tables of AES. call: columns, to, seed, number of the
// seed, seeds, the draw, bins, counts (apart), states of bins (apart), what is known of keys (apart).
KERNEL void LAUNCH_BOUNDS(1024, 1)
    psi_draw(u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  if (*psi_words(apart, call[11]) != KEYS_OPEN) return;
  WITH_AES(table)
  for (u64 k = FIRST_OF_GRID; k < call[8]; k += STEP_OF_GRID) psi_words(apart, call[9])[k] = 0, psi_words(apart, call[10])[k] = KEYS_OPEN;
  for (u64 k = FIRST_OF_GRID; k <= call[0]; k += STEP_OF_GRID) {
    const u64 counter = k == call[0] ? call[3] : call[4] + k;
    const uint4 drawn = prf_block(table, (threadIdx.x & 31) * 4, schedules + call[5], call[6] + counter, u32(call[7]), u32(call[7] >> 32));
    store128(k == call[0] ? labels_at(bank, call[2]) : labels_at(bank, call[1]) + k, drawn);
  }
}

// Where parts begin, from how many each has, and once more, as they are filled. One block; a thread has one of them at a time. call: parts, how many each has and
// then where it begins (apart), where each begins, and the end (apart), what is known of keys (apart).
KERNEL void LAUNCH_BOUNDS(1024, 1) psi_starts(u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u32, sums, 32);
  if (verdict[0] || blockIdx.x > 0 || *psi_words(apart, call[3]) != KEYS_OPEN) return;
  u32 *counts = psi_words(apart, call[1]), *starts = psi_words(apart, call[2]);
  const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u32 before = 0;
  for (u64 first = 0; first < call[0]; first += blockDim.x) {
    const u64 k = first + threadIdx.x;
    const u32 own = k < call[0] ? counts[k] : 0;
    u32 sum = own;
    for (u32 by = 1; by < 32; by <<= 1) {
      const u32 other = WARP_SHUFFLE(sum, (lane - by) & 31);
      if (lane >= by) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    BLOCK_BARRIER();
    u32 start = before + sum - own;
    for (u32 w = 0; w < blockDim.x >> 5; w++) {
      if (w < warp) start += sums[w];
      before += sums[w];
    }
    if (k < call[0]) counts[k] = start, starts[k] = start;
    BLOCK_BARRIER();
  }
  if (threadIdx.x == 0) starts[call[0]] = before;
}

// Keys of each bin one behind the other, in any order: their sparse columns, and their numbers. A thread has a key. call: keys, rows (apart), where bins are filled
// (apart), to (apart), what is known of keys (apart).
KERNEL void LAUNCH_BOUNDS(256, 1) psi_binned(u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || *psi_words(apart, call[4]) != KEYS_OPEN) return;
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    const uint4 row = load128(labels_at(apart, call[1]) + k);
    const u32 at = atomic_add(psi_words(apart, call[2]) + row.x, 1);
    store128(labels_at(apart, call[3]) + at, make_uint4(row.y, row.z, row.w, u32(k)));
  }
}

// Solves bins. A block has a bin at a time, in steps of those blocks that have memory of their own for keys that are left over. Shared memory: 1 KB, static. call:
// the store, digests, columns, states of bins (apart), what is known of keys (apart), where bins begin (apart), entries (apart), numbers of keys (apart), of
// columns (apart), memory of blocks (apart), how many have it, keys.
KERNEL void LAUNCH_BOUNDS(512, 1) psi_solve(u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u32, counts, 36);
  SHARED(uint4, sums, 32);
  const u64 *rest = call + OKVS;
  const u64 blocks = rest[9] < gridDim.x ? rest[9] : gridDim.x;
  if (verdict[0] || blockIdx.x >= blocks || *psi_words(apart, rest[3]) != KEYS_OPEN) return;
  const u64 sparse = call[OKVS_SPARSE], width = sparse + call[OKVS_DENSE];
  for (u64 of = blockIdx.x; of < call[OKVS_BINS]; of += blocks) {
    const u32 *starts = psi_words(apart, rest[4]);
    const u64 first = starts[of], keys = rest[10];
    psi_bin bin;
    bin.count = starts[of + 1] - starts[of], bin.sparse = u32(sparse), bin.dense = u32(call[OKVS_DENSE]);
    bin.entries = labels_at(apart, rest[5]) + first;
    bin.digests = labels_at(bank, rest[0]);
    bin.columns = labels_at(bank, rest[1]) + of * width;
    bin.rests = labels_at(apart, rest[6]) + first;
    u32 *words = psi_words(apart, rest[6] + 16 * keys);
    bin.taken = words + 2 * first, bin.is_taken = words + 2 * keys + first, bin.left = words + 3 * keys + first;
    bin.ends = words + 4 * keys + first;
    words = psi_words(apart, rest[7]) + of * PSI_COLUMN_WORDS * sparse;
    bin.keys = words, bin.numbers = words + sparse, bin.place = words + 2 * sparse, bin.last = words + 3 * sparse;
    bin.lists = words + 4 * sparse;
    bin.own = apart + rest[8] + blockIdx.x * PSI_OWN_BYTES(call[OKVS_DENSE]);
    bin.counts = counts, bin.sums = sums;
    const u32 state = psi_solved(bin);
    if (threadIdx.x == 0) psi_words(apart, rest[2])[of] = state;
    BLOCK_BARRIER();
  }
}

// What is known of keys by what is known of bins: that of the first one that is not solved. One warp. call: bins, states of bins (apart), of keys (apart).
KERNEL void psi_settle(u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || blockIdx.x > 0 || threadIdx.x >= 32) return;
  u32 *known = psi_words(apart, call[2]);
  if (*known != KEYS_OPEN) return;
  for (u64 first = 0; first < call[0]; first += 32) {
    const u64 k = first + threadIdx.x;
    const u32 state = k < call[0] ? psi_words(apart, call[1])[k] : u32(KEYS_SOLVED);
    const u32 others = WARP_BALLOT(state != KEYS_SOLVED), equal = WARP_BALLOT(state == KEYS_EQUAL);
    if (!others) continue;
    // The lowest of them.
    if (threadIdx.x == 0 && (others & (0 - others) & equal)) *known = KEYS_EQUAL;
    return;
  }
  if (threadIdx.x == 0) *known = KEYS_SOLVED;
}

// The end of a step: blocks masked by others, if it could be done, else zeros. A thread has a block. call: what is known of keys (apart), what should be, blocks, to, by or none,
// a seed that would be zero, or none.
KERNEL void LAUNCH_BOUNDS(256, 1) psi_end(u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const bool done = *psi_words(apart, call[0]) == call[1];
  if (done && call[4] == PSI_NONE) return;
  uint4 *to = labels_at(bank, call[3]);
  const uint4 zero = make_uint4(0, 0, 0, 0);
  for (u64 k = FIRST_OF_GRID; k < call[2]; k += STEP_OF_GRID) store128(to + k, done ? xor128(load128(to + k), load128(labels_at(bank, call[4]) + k)) : zero);
  if (!done && FIRST_OF_GRID == 0 && call[5] != PSI_NONE) store128(labels_at(bank, call[5]), zero);
}

// Stops the batch if the step could not be done: the third word of the verdict says why. One thread. call: what is known of keys (apart), what should be, the number of the
// command.
KERNEL void psi_stop(u8 *apart, const u64 *__restrict__ call, u32 *verdict) {
  if (FIRST_OF_GRID != 0 || verdict[0]) return;
  const u32 known = *psi_words(apart, call[0]);
  if (known == call[1]) return;
  verdict[2] = known == KEYS_EQUAL ? 1 : 2;
  verdict[0] = u32(call[2]) + 1;
}
