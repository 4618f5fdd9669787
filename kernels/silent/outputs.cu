// Outputs of silent transfers, and what is made of them (crates/device/src/silent). `call` and `verdict` as in kernels/device/commands.cu.
#include "trees.h"

// Ten words of four bytes of a stream are the places of a row. Two rows are five blocks.
#define ROWS_OF_STREAM 2
#define BLOCKS_OF_STREAM 5
#define ROW_WEIGHT 10

// Leaves become outputs: ten blocks of the secret are added to each. A thread has two rows, whose twenty places are public: reads from all over the secret, which
// lies in the second level of the cache. Shared memory: the tables of AES. call: rows, leaves, secret, mask of a place, the draw.
KERNEL void LAUNCH_BOUNDS(640, 1) silent_rows(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  WITH_AES(table)
  const u64 *leaves = call + 1, *draw = call + 3 + LEAVES;
  const uint4 *secret = labels_at(bank, call[1 + LEAVES]);
  const u32 mask = u32(call[2 + LEAVES]);
  for (u64 k = FIRST_OF_GRID; k < call[0] / ROWS_OF_STREAM; k += STEP_OF_GRID) {
    uint4 sums[ROWS_OF_STREAM] = {silent_zero(), silent_zero()};
    ROLLED
    for (u32 block = 0; block < BLOCKS_OF_STREAM; block++) {
      const uint4 drawn = prf_block(table, (threadIdx.x & 31) * 4, schedules + draw[0], draw[1] + BLOCKS_OF_STREAM * k + block, u32(draw[2]), u32(draw[2] >> 32));
      const u32 places[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
      UNROLL
      for (u32 word = 0; word < 4; word++) {
        const uint4 term = load128(secret + (places[word] & mask));
        const u32 second = 0 - u32(4 * block + word >= ROW_WEIGHT);
        sums[0] = label_add(sums[0], term, ~second), sums[1] = label_add(sums[1], term, second);
      }
    }
    uint4 *at = silent_leaf(bank, leaves, ROWS_OF_STREAM * k);
    UNROLL
    for (u32 n = 0; n < ROWS_OF_STREAM; n++) store128(at + n, xor128(load128(at + n), sums[n]));
  }
}

// The same over blocks: products of ten coefficients with entries, for one array or for two under the same coefficients. A thread has a row. call: rows, mask of a
// place, the draw, arrays, of each its leaves and its secret.
KERNEL void LAUNCH_BOUNDS(512, 1)
    silent_products(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  WITH_AES(table)
  const u64 arrays = call[5];
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    wide sums[2] = {make_wide(0, 0), make_wide(0, 0)};
    ROLLED
    for (u32 term = 0; term < ROW_WEIGHT; term++) {
      const uint4 drawn = prf_block(table, (threadIdx.x & 31) * 4, schedules + call[2], call[3] + ROW_WEIGHT * k + term, u32(call[4]), u32(call[4] >> 32));
      const u32 place = drawn.x & u32(call[1]);
      const wide factor = wide_of(make_uint4(drawn.x ^ place, drawn.y, drawn.z, drawn.w));
      UNROLL
      for (u32 n = 0; n < 2; n++) {
        if (n >= arrays) break;
        const wide entry = wide_of(load128(labels_at(bank, call[6 + LEAVES + (1 + LEAVES) * n]) + place));
        sums[n] = wide_xor(sums[n], polyval_mul(factor, entry));
      }
    }
    UNROLL
    for (u32 n = 0; n < 2; n++) {
      if (n >= arrays) break;
      uint4 *at = silent_leaf(bank, call + 6 + (1 + LEAVES) * n, k);
      store128(at, xor128(load128(at), words_of(sums[n])));
    }
  }
}

// Entries of 128 correlations: their sum with the powers of x, and their choices. A warp has 32 entries, and a lane one of them: eight correlations of each at a
// time, read in order and turned in shared memory. Shared memory: 36 KB for 256 threads, static: rows of nine blocks. call: entries, correlations, to, whether there are
// choices, to.
#define PACK_COLUMNS 8
#define PACK_ROW 9
KERNEL void LAUNCH_BOUNDS(256, 1) silent_pack(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(uint4, turned, 8 * 32 * PACK_ROW);
  if (verdict[0]) return;
  const u32 lane = threadIdx.x & 31;
  uint4 *own = turned + (threadIdx.x >> 5) * (32 * PACK_ROW);
  const uint4 *from = labels_at(bank, call[1]);
  for (u64 first = FIRST_OF_GRID - lane; first < call[0]; first += STEP_OF_GRID) {
    wide sum = make_wide(0, 0);
    u32 choices[4] = {0, 0, 0, 0};
    UNROLL
    for (u32 of = 0; of < 4; of++) {
      ROLLED
      for (u32 part = 0; part < 32; part += PACK_COLUMNS) {
        const u32 column = 32 * of + part;
        for (u32 k = lane; k < 32 * PACK_COLUMNS; k += 32) {
          const u32 entry = k / PACK_COLUMNS, at = k % PACK_COLUMNS;
          if (first + entry < call[0]) own[entry * PACK_ROW + at] = load128(from + 128 * (first + entry) + column + at);
        }
        WARP_BARRIER();
        for (u32 k = 0; k < PACK_COLUMNS; k++) {
          const wide block = wide_of(own[lane * PACK_ROW + k]);
          choices[of] |= u32(block.lo & 1) << (part + k);
          // Divided by x, as in polyval_mul.
          sum = wide_xor(sum, block);
          const u64 odd = 0 - (sum.lo & 1);
          sum = make_wide(sum.lo >> 1 | sum.hi << 63, sum.hi >> 1);
          sum.hi ^= odd & 0xe100000000000000ull;
        }
        WARP_BARRIER();
      }
    }
    if (first + lane >= call[0]) continue;
    store128(labels_at(bank, call[2]) + first + lane, words_of(sum));
    if (call[3]) store128(labels_at(bank, call[4]) + first + lane, make_uint4(choices[0], choices[1], choices[2], choices[3]));
  }
}

// Transfers of choices at the receiver: labels, and choices that are turned by theirs. A thread has a label, then a byte. call: rows, items, outputs, labels, bytes of
// an item of bits, choices, to.
KERNEL void LAUNCH_BOUNDS(256, 1) silent_choose(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 rows = call[0], all = call[1] * rows, bytes = call[4];
  const uint4 *outputs = labels_at(bank, call[2]);
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) store128(labels_at(bank, call[3]) + k, load128(outputs + k));
  for (u64 k = FIRST_OF_GRID; k < call[1] * bytes; k += STEP_OF_GRID) {
    const u64 item = k / bytes, row = 8 * (k % bytes);
    u32 out = 0;
    for (u32 bit = 0; bit < 8 && row + bit < rows; bit++) out |= ((u32(bank[call[5] + k]) >> bit ^ outputs[item * rows + row + bit].x) & 1) << bit;
    bank[call[6] + k] = u8(out);
  }
}

// The same at the sender. A thread has a label. call: rows, items, outputs, labels, bytes of an item of bits, choices that were turned, offset.
KERNEL void LAUNCH_BOUNDS(256, 1) silent_turn(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 rows = call[0], all = call[1] * rows;
  const uint4 offset = silent_number(call + 6);
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u32 bit = bit_at(bank + call[5] + k / rows * call[4], k % rows);
    store128(labels_at(bank, call[3]) + k, label_add(load128(labels_at(bank, call[2]) + k), offset, 0 - bit));
  }
}
