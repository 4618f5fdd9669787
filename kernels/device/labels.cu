// Labels and bits. An item of labels has sixteen bytes for each row; one that all rows share has sixteen.
#include "../include/ring.h"

// Active labels. A thread has a label. call: to, labels of an item, items, labels, bits, bytes of an item of bits, offset.
KERNEL void device_encode(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 cells = call[1], all = call[2] * cells;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 bit = 0 - load_element(bank + call[4] + k / cells * call[5], BITS, k % cells).lo;
    const wide label = load_element(bank + call[3], Z128, k);
    store_element(bank + call[0], Z128, k, make_wide(label.lo ^ (bit & call[6]), label.hi ^ (bit & call[7])));
  }
}

// Colours. A thread has a byte of bits. call: to, bytes of an item of bits, items, labels, labels of an item.
KERNEL void device_colour(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 bytes = call[1], all = call[2] * bytes;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / bytes, first = 8 * (k % bytes);
    u32 out = 0;
    for (u32 row = 0; row < 8 && first + row < call[4]; row++)
      out |= (bank[call[3] + 16 * (item * call[4] + first + row)] & 1u) << row;
    bank[call[0] + k] = u8(out);
  }
}
