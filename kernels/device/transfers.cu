// What steps of oblivious transfers do in a bank, around kernels/ot: strings of whole blocks lie apart, in `apart`, while they are worked on.
#include "../include/ring.h"

// Strings of a bank, zero from their end on as far as they are wanted. A thread has a block. call: from, bytes from a string to the next, bytes of a
// string, strings, to, bytes from a string to the next there, bytes that are wanted, bytes of an item, bits of its last byte that are kept.
KERNEL void device_gather(const u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 bytes = call[2], blocks = (call[6] + 15) / 16, all = call[3] * blocks, item = call[7];
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 string = k / blocks, at = 16 * (k % blocks);
    const u8 *from = bank + call[0] + string * call[1] + at;
    u32 w[4] = {0, 0, 0, 0};
    UNROLL
    for (u32 byte = 0; byte < 16; byte++) {
      if (at + byte >= bytes) break;
      const u32 kept = (at + byte) % item == item - 1 ? u32(call[8]) : 0xff;
      w[byte >> 2] |= (from[byte] & kept) << (8 * (byte & 3));
    }
    store128(reinterpret_cast<uint4 *>(apart + call[4] + string * call[5] + at), make_uint4(w[0], w[1], w[2], w[3]));
  }
}

// The other way. call: to, bytes from a string to the next, bytes of a string, strings, from, bytes from a string to the next there.
KERNEL void device_spread(u8 *bank, const u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 bytes = call[2], blocks = (bytes + 15) / 16, all = call[3] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 string = k / blocks, at = 16 * (k % blocks);
    store_part(bank + call[0] + string * call[1] + at, bytes - at, load_part(apart + call[4] + string * call[5] + at, bytes - at));
  }
}

// Whether folds are those of the receiver, with that of its choices where the offset is 1. A thread has a column. call: own, the receiver's, offset.
KERNEL void device_compare_folds(const u8 *bank, const u64 *__restrict__ call, u32 *verdict) {
  if (verdict[0]) return;
  const u8 *own = bank + call[0], *theirs = bank + call[1];
  const wide choices = wide_of(load_part(theirs + 16 * 128, 16));
  for (u64 c = FIRST_OF_GRID; c < 128; c += STEP_OF_GRID) {
    const u64 bit = 0 - ((call[2 + c / 64] >> (c & 63)) & 1);
    const wide d = wide_of(xor128(load_part(own + 16 * c, 16), load_part(theirs + 16 * c, 16)));
    const u64 left = (d.lo ^ (choices.lo & bit)) | (d.hi ^ (choices.hi & bit));
    atomic_or(verdict + 1, u32(left) | u32(left >> 32));
  }
}

// Labels, and others where a bit is 1. A thread has a label. call: to, labels of an item, items, labels, others, bits, bytes of an item of bits.
KERNEL void device_choose(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 cells = call[1], all = call[2] * cells;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 bit = 0 - load_element(bank + call[5] + k / cells * call[6], BITS, k % cells).lo;
    const wide a = load_element(bank + call[3], Z128, k), b = load_element(bank + call[4], Z128, k);
    store_element(bank + call[0], Z128, k, make_wide(a.lo ^ (bit & b.lo), a.hi ^ (bit & b.hi)));
  }
}
