// The check of silent transfers (crates/device/src/silent): folds of leaves, what hides them, and what the receiver lacks. Sums of threads are two fields of
// `sums`: what an end has at last, and what the receiver tells.
#include "trees.h"

// Adds POLYVAL of blocks to a sum: thread t of T has each T-th block, with zeros in front so that all have as many. call: challenge, which sum, blocks, where
// they are, as leaves.
KERNEL void LAUNCH_BOUNDS(256, 1) silent_fold(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const wide key = wide_of(load_part(bank + call[0], 16));
  const u64 blocks = call[2], threads = STEP_OF_GRID, thread = FIRST_OF_GRID;
  const u64 steps = (blocks + threads - 1) / threads, zeros = steps * threads - blocks;
  const wide stride = polyval_power(key, threads);
  wide hash = make_wide(0, 0);
  for (u64 step = 0; step < steps; step++) {
    const u64 place = step * threads + thread;
    hash = polyval_mul(hash, stride);
    if (place >= zeros) hash = wide_xor(hash, wide_of(load128(silent_leaf(bank, call + 3, place - zeros))));
  }
  // To the power of the blocks from this thread's on.
  polyval_add(sums + 2 * call[1], polyval_mul(hash, polyval_power(key, threads - thread)));
}

// What hides the check, a correlation for each bit, and at the receiver their choices, and of each tree the power of the challenge of the leaf that is
// lacking. A thread has a tree or a correlation. call: challenge, trees, their height, whether it is the receiver, correlations of levels, behind which are
// those that hide.
KERNEL void LAUNCH_BOUNDS(256, 1) silent_hide(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 trees = call[1], height = call[2], receives = 0 - call[3];
  const wide challenge = wide_of(load_part(bank + call[0], 16)), one = POLYVAL_ONE;
  const uint4 *levels = labels_at(bank, call[4]);
  wide own = make_wide(0, 0), told = make_wide(0, 0);
  for (u64 k = FIRST_OF_GRID; k < trees + 128; k += STEP_OF_GRID) {
    if (k >= trees) {
      const u64 bit = k - trees;
      const wide block = wide_of(load128(levels + trees * height + bit));
      const wide place = bit < 64 ? make_wide(1ull << bit, 0) : make_wide(0, 1ull << (bit - 64));
      const u64 choice = (0 - (block.lo & 1)) & receives;
      own = wide_xor(own, polyval_mul(block, place));
      told = wide_xor(told, make_wide(place.lo & choice, place.hi & choice));
    } else if (receives) {
      wide term = challenge, power = challenge;
      for (u64 level = 0; level < height; level++) {
        // A choice is the complement of a bit of the leaf's number, and so a bit of the number of leaves behind it.
        const u64 behind = 0 - u64(levels[k * height + level].x & 1);
        const wide factor = make_wide(one.lo ^ ((one.lo ^ power.lo) & behind), one.hi ^ ((one.hi ^ power.hi) & behind));
        term = polyval_mul(term, factor), power = polyval_mul(power, power);
      }
      told = wide_xor(told, polyval_mul(term, polyval_power(power, trees - 1 - k)));
    }
  }
  polyval_add(sums, own);
  polyval_add(sums + 2, told);
}

// Puts both sums where they belong, and forgets them. One thread. call: where the first goes, how many blocks are added to it, where they are [2]; whether a block
// of the second is told, where it goes, or comes from; a factor of what comes.
enum { CHECK_TO, CHECK_ADDED, CHECK_BLOCK, CHECK_ASKS = CHECK_BLOCK + 2, CHECK_TOLD, CHECK_OFFSET };
KERNEL void silent_check(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  wide own = make_wide(sums[0], sums[1]), told = make_wide(sums[2], sums[3]);
  if (call[CHECK_ADDED] > 0) own = wide_xor(own, wide_of(load128(labels_at(bank, call[CHECK_BLOCK]))));
  if (call[CHECK_ADDED] > 1) told = wide_xor(told, wide_of(load128(labels_at(bank, call[CHECK_BLOCK + 1]))));
  if (call[CHECK_ASKS]) {
    store128(labels_at(bank, call[CHECK_TOLD]), words_of(told));
  } else {
    const wide theirs = wide_of(load128(labels_at(bank, call[CHECK_TOLD])));
    own = wide_xor(own, polyval_mul(theirs, make_wide(call[CHECK_OFFSET], call[CHECK_OFFSET + 1])));
  }
  store128(labels_at(bank, call[CHECK_TO]), words_of(own));
  for (u32 k = 0; k < 4; k++) sums[k] = 0;
}
