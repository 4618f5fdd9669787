// Tags in ascending order, and what of them is found, as crates/device defines it (psi). Tags are hashes: ranges of their first bits have as many as there are tags for
// a range, so that a tag's place is that of its range and the number of lower ones in it.
#include "psi.h"

DEV u32 psi_range(uint4 tag, u64 bits) { return swap_bytes(tag.x) >> (32 - u32(bits)); }

// How many tags each range has. A thread has a tag. call: tags, where they are (apart), bits of a range's number, counts (apart).
KERNEL void LAUNCH_BOUNDS(256, 1) psi_ranges(u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) atomic_add(psi_words(apart, call[3]) + psi_range(load128(labels_at(apart, call[1]) + k), call[2]), 1);
}

// Tags of each range one behind the other, in any order. A thread has a tag. call: tags, where they are (apart), bits of a range's number, where ranges are filled (apart),
// to (apart).
KERNEL void LAUNCH_BOUNDS(256, 1) psi_ranged(u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    const uint4 tag = load128(labels_at(apart, call[1]) + k);
    const u32 at = atomic_add(psi_words(apart, call[3]) + psi_range(tag, call[2]), 1);
    store128(labels_at(apart, call[4]) + at, tag);
  }
}

// Tags in ascending order, or that two are equal. A thread has a tag, and looks at those of its range; ranges are long only if many tags are equal, which a thread finds
// out soon. call: tags, where they are (apart), bits of a range's number, where ranges begin (apart), to, what is known of keys (apart).
KERNEL void LAUNCH_BOUNDS(256, 1) psi_ascend(u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const uint4 *tags = labels_at(apart, call[1]);
  const u32 *starts = psi_words(apart, call[3]);
  u32 *known = psi_words(apart, call[5]);
  for (u64 k = FIRST_OF_GRID; k < call[0]; k += STEP_OF_GRID) {
    const uint4 tag = load128(tags + k);
    const u32 range = psi_range(tag, call[2]), first = starts[range], end = starts[range + 1];
    u32 before = 0;
    bool equal = false;
    for (u32 other = first; other < end && !equal; other++) {
      const uint4 x = load128(tags + other);
      before += psi_before(x, tag);
      equal = other != k && psi_equal(x, tag);
    }
    if (equal)
      atomic_or(known, KEYS_EQUAL);
    else
      store128(labels_at(bank, call[4]) + first + before, tag);
  }
}

// Whether each tag is greater than the one before it: else what is compared differs. A thread has a tag. call: tags, where they are.
KERNEL void LAUNCH_BOUNDS(256, 1) psi_check(const u8 *bank, const u64 *__restrict__ call, u32 *verdict) {
  if (verdict[0]) return;
  const uint4 *tags = labels_at(bank, call[1]);
  for (u64 k = FIRST_OF_GRID; k + 1 < call[0]; k += STEP_OF_GRID)
    if (!psi_before(load128(tags + k), load128(tags + k + 1))) atomic_or(verdict + 1, 1);
}

// A bit for each tag: whether it is among ascending ones, if they are. A thread has a tag and halves where it may be; a warp has four bytes of bits. call: own, where they
// are (apart), theirs, where they are, to.
KERNEL void LAUNCH_BOUNDS(256, 1) psi_find(u8 *bank, const u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const uint4 *theirs = labels_at(bank, call[3]);
  const u32 lane = threadIdx.x & 31;
  for (u64 first = FIRST_OF_GRID - lane; first < call[0]; first += STEP_OF_GRID) {
    const u64 k = first + lane;
    bool found = false;
    if (k < call[0] && verdict[1] == 0) {
      const uint4 tag = load128(labels_at(apart, call[1]) + k);
      u64 low = 0, high = call[2];
      while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (psi_before(load128(theirs + middle), tag))
          low = middle + 1;
        else
          high = middle;
      }
      found = low < call[2] && psi_equal(load128(theirs + low), tag);
    }
    const u32 bits = WARP_BALLOT(found);
    if (lane % 8 == 0 && k < call[0]) bank[call[4] + k / 8] = u8(bits >> lane);
  }
}
