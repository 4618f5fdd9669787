// Trees of silent transfers, as crates/device defines them (silent). A warp has a tree, whose nodes it keeps in the place of its leaves, level by level:
// there are more trees than warps that a GPU holds, so that no warp waits for another one. A lane has two nodes under one key at a time.
//
// Shared memory: 128 KB, dynamic, the tables of AES. `call` begins as `Trees` says; `verdict` as in kernels/device/commands.cu.
#include "trees.h"

enum Trees {
  TREES,
  TREE_HEIGHT,
  TREE_LEAVES,
  TREE_LEVELS = TREE_LEAVES + LEAVES,  // correlations of levels
  TREE_TOLD,                           // what the sender tells of each level, or of each tree
  TREE_START,                          // the draw of start points: word of the schedule, first counter, head | tail
  TREE_REST = TREE_START + 3,
};

DEV uint4 silent_drawn(const u32 *table, u32 lane4, const u32 *schedules, const u64 *draw, u64 at) {
  return prf_block(table, lane4, schedules + draw[0], draw[1] + at, u32(draw[2]), u32(draw[2] >> 32));
}

// Trees at the sender. call: `Trees`; the draw of roots, as that of start points; the offset.
KERNEL void LAUNCH_BOUNDS(512, 1) silent_grow(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  WITH_AES(table)
  const u32 lane = threadIdx.x & 31, height = u32(call[TREE_HEIGHT]);
  const uint4 offset = silent_number(call + TREE_REST + 3);
  for (u64 tree = FIRST_OF_GRID >> 5; tree < call[TREES]; tree += STEP_OF_GRID >> 5) {
    uint4 *nodes = silent_leaf(bank, call + TREE_LEAVES, tree << height);
    const uint4 *levels = labels_at(bank, call[TREE_LEVELS]) + tree * height;
    uint4 *told = labels_at(bank, call[TREE_TOLD]) + tree * height;
    const uint4 start = silent_drawn(table, 4 * lane, schedules, call + TREE_START, tree);
    const uint4 root = silent_drawn(table, 4 * lane, schedules, call + TREE_REST, tree);
    if (lane < 2) store128(nodes + lane, label_add(root, offset, 0 - lane));
    if (lane == 0) store128(told, xor128(load128(levels), root));
    for (u32 level = 1; level < height; level++) {
      const u32 count = 1u << level, last = level + 1 == height;
      uint4 left = silent_zero();
      WARP_BARRIER();
      ROLLED
      for (u32 i = lane; i < count; i += 64) {
        const u32 other = i + 32 < count ? i + 32 : i;
        const uint4 node[2] = {load128(nodes + i), load128(nodes + other)};
        uint4 child[2] = {node[0], node[1]};
        label_hash<2>(table, 4 * lane, start, 0, child);
        UNROLL
        for (u32 n = 0; n < 2; n++) {
          if (n == 1 && other == i) break;
          const u32 at = n ? other : i;
          uint4 right = xor128(node[n], child[n]);
          left = xor128(left, child[n]);
          // Bit 0 of a leaf is 0.
          child[n].x &= ~last, right.x &= ~last;
          store128(nodes + at, child[n]);
          store128(nodes + count + at, right);
        }
      }
      left = silent_sum(left);
      if (lane == 0) store128(told + level, xor128(load128(levels + level), left));
    }
  }
}

// Trees at the receiver, which lacks the leaf whose bits are the complements of its choices; it is zero until the end. call: `Trees`.
KERNEL void LAUNCH_BOUNDS(512, 1)
    silent_puncture(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  WITH_AES(table)
  const u32 lane = threadIdx.x & 31, height = u32(call[TREE_HEIGHT]);
  for (u64 tree = FIRST_OF_GRID >> 5; tree < call[TREES]; tree += STEP_OF_GRID >> 5) {
    uint4 *nodes = silent_leaf(bank, call + TREE_LEAVES, tree << height);
    const uint4 *levels = labels_at(bank, call[TREE_LEVELS]) + tree * height, *told = labels_at(bank, call[TREE_TOLD]) + tree * height;
    const uint4 start = silent_drawn(table, 4 * lane, schedules, call + TREE_START, tree);
    // What is added to node `at` when it is next read, and the number of the node that is lacking.
    uint4 missing = xor128(load128(levels), load128(told)), sum = silent_zero();
    u32 at = load128(levels).x & 1, path = 1 - at;
    if (lane < 2) store128(nodes + lane, silent_zero());
    for (u32 level = 1; level < height; level++) {
      const u32 count = 1u << level;
      uint4 left = silent_zero(), right = silent_zero();
      WARP_BARRIER();
      ROLLED
      for (u32 i = lane; i < count; i += 64) {
        const u32 other = i + 32 < count ? i + 32 : i;
        const uint4 node[2] = {label_add(load128(nodes + i), missing, silent_same(i, at)), label_add(load128(nodes + other), missing, silent_same(other, at))};
        uint4 child[2] = {node[0], node[1]};
        label_hash<2>(table, 4 * lane, start, 0, child);
        UNROLL
        for (u32 n = 0; n < 2; n++) {
          if (n == 1 && other == i) break;
          const u32 of = n ? other : i, there = ~silent_same(of, path);
          const uint4 a = silent_kept(child[n], there), b = silent_kept(xor128(node[n], child[n]), there);
          left = xor128(left, a), right = xor128(right, b);
          store128(nodes + of, a);
          store128(nodes + count + of, b);
        }
      }
      left = silent_sum(left), right = silent_sum(right);
      const uint4 own = load128(levels + level);
      const u32 bit = own.x & 1;
      missing = xor128(xor128(own, load128(told + level)), left);
      missing = label_add(missing, xor128(left, right), 0 - bit);
      at = path + (bit << level), path += (1 - bit) << level;
      sum = xor128(xor128(left, right), missing);
    }
    sum.x |= 1;
    WARP_BARRIER();
    for (u32 i = lane; i < 1u << height; i += 32) {
      uint4 leaf = label_add(load128(nodes + i), missing, silent_same(i, at));
      leaf.x &= ~1u;
      store128(nodes + i, label_add(leaf, sum, silent_same(i, path)));
    }
  }
}

// Leaves become their hashes from another start point, at the sender, which tells the sum with its entry of the noise. call: `Trees`, whose levels are
// those entries here.
KERNEL void LAUNCH_BOUNDS(512, 1) silent_give(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  WITH_AES(table)
  const u32 lane = threadIdx.x & 31, height = u32(call[TREE_HEIGHT]), leaves = 1u << height;
  for (u64 tree = FIRST_OF_GRID >> 5; tree < call[TREES]; tree += STEP_OF_GRID >> 5) {
    uint4 *nodes = silent_leaf(bank, call + TREE_LEAVES, tree << height), sum = silent_zero();
    const uint4 start = silent_drawn(table, 4 * lane, schedules, call + TREE_START, tree);
    ROLLED
    for (u32 i = lane; i < leaves; i += 64) {
      const u32 other = i + 32 < leaves ? i + 32 : i;
      uint4 leaf[2] = {load128(nodes + i), load128(nodes + other)};
      label_hash<2>(table, 4 * lane, start, 0, leaf);
      store128(nodes + i, leaf[0]);
      sum = xor128(sum, leaf[0]);
      if (other == i) break;
      store128(nodes + other, leaf[1]);
      sum = xor128(sum, leaf[1]);
    }
    sum = silent_sum(sum);
    if (lane == 0) store128(labels_at(bank, call[TREE_TOLD]) + tree, xor128(sum, load128(labels_at(bank, call[TREE_LEVELS]) + tree)));
  }
}

// The same at the receiver, whose lacking leaf follows from what it is told; and its noise. call: `Trees`; entries of the noise, A and C; where the noise
// goes, as leaves.
KERNEL void LAUNCH_BOUNDS(512, 1) silent_fill(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  WITH_AES(table)
  const u32 lane = threadIdx.x & 31, height = u32(call[TREE_HEIGHT]), leaves = 1u << height;
  for (u64 tree = FIRST_OF_GRID >> 5; tree < call[TREES]; tree += STEP_OF_GRID >> 5) {
    uint4 *nodes = silent_leaf(bank, call + TREE_LEAVES, tree << height);
    uint4 *noise = silent_leaf(bank, call + TREE_REST + 2, tree << height);
    const uint4 *levels = labels_at(bank, call[TREE_LEVELS]) + tree * height;
    const uint4 start = silent_drawn(table, 4 * lane, schedules, call + TREE_START, tree);
    u32 path = 0;
    for (u32 level = 0; level < height; level++) path |= (1 - (levels[level].x & 1)) << level;
    uint4 sum = silent_zero();
    ROLLED
    for (u32 i = lane; i < leaves; i += 64) {
      const u32 other = i + 32 < leaves ? i + 32 : i;
      uint4 leaf[2] = {load128(nodes + i), load128(nodes + other)};
      label_hash<2>(table, 4 * lane, start, 0, leaf);
      UNROLL
      for (u32 n = 0; n < 2; n++) {
        if (n == 1 && other == i) break;
        const u32 of = n ? other : i;
        leaf[n] = silent_kept(leaf[n], ~silent_same(of, path));
        store128(nodes + of, leaf[n]);
        sum = xor128(sum, leaf[n]);
      }
    }
    const uint4 own = load128(labels_at(bank, call[TREE_REST]) + tree), entry = load128(labels_at(bank, call[TREE_REST + 1]) + tree);
    const uint4 last = xor128(xor128(silent_sum(sum), own), load128(labels_at(bank, call[TREE_TOLD]) + tree));
    for (u32 i = lane; i < leaves; i += 32) {
      const u32 lacks = silent_same(i, path);
      // The lane's own: it wrote zero where a leaf is lacking.
      store128(nodes + i, label_add(load128(nodes + i), last, lacks));
      store128(noise + i, silent_kept(entry, lacks));
    }
  }
}
