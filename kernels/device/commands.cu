// Commands of a device on a bank, other than programs. A bank is bytes; `call` says where what is: numbers that the host made, and checked, of a
// command. Columns are packed, items of a region lie one behind the other. After a check that failed, nothing takes effect any more: the first word
// of `verdict` is one more than the number of its command. The second is not zero if what is being compared differs, the third if the command that stopped is no
// check, but a step that cannot be done with what it was given (kernels/psi/encode.cu).
#include "../aes/aes.h"
#include "../include/ring.h"

// Pseudorandom items. A thread has a block. call: to, bytes of an item, items, word of the schedule, first counter, counters of an item, head | tail.
KERNEL void LAUNCH_BOUNDS(1024, 1)
    device_random(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  if (verdict[0]) return;
  aes_fill(table);
  BLOCK_BARRIER();
  const u32 lane4 = (threadIdx.x & 31) * 4;
  const u64 bytes = call[1], blocks = (bytes + 15) / 16, all = call[2] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / blocks, block = k % blocks;
    const uint4 drawn = prf_block(table, lane4, schedules + call[3], call[4] + item * call[5] + block, u32(call[6]), u32(call[6] >> 32));
    store_part(bank + call[0] + item * bytes + 16 * block, bytes - 16 * block, drawn);
  }
}

// A sum of sources, some of them subtracted. A thread has sixteen bytes. call: to, bytes of an item, items, ring, which are subtracted, bits of the last
// byte that are kept, how many sources, sources.
template <u32 RING> DEV void combine(u8 *bank, const u64 *call, u64 item, u64 at, u64 bytes) {
  uint4 sum = make_uint4(0, 0, 0, 0);
  for (u32 k = 0; k < call[6]; k++) {
    const uint4 x = load_part(bank + call[7 + k] + item * bytes + at, bytes - at);
    sum = (call[4] >> k) & 1 ? ring_sub<RING>(sum, x) : ring_add<RING>(sum, x);
  }
  u8 *to = bank + call[0] + item * bytes + at;
  if (call[5] != 0xff && at + 16 >= bytes) {
    u32 w[4] = {sum.x, sum.y, sum.z, sum.w};
    const u32 last = u32(bytes - at - 1);
    UNROLL
    for (u32 k = 0; k < 4; k++)
      if (last >> 2 == k) w[k] &= ~((0xff ^ u32(call[5])) << (8 * (last & 3)));
    sum = make_uint4(w[0], w[1], w[2], w[3]);
  }
  store_part(to, bytes - at, sum);
}
KERNEL void device_combine(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 bytes = call[1], units = (bytes + 15) / 16, all = call[2] * units;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / units, at = 16 * (k % units);
    if (call[3] == BITS) combine<BITS>(bank, call, item, at, bytes);
    if (call[3] == Z64) combine<Z64>(bank, call, item, at, bytes);
    if (call[3] == Z128) combine<Z128>(bank, call, item, at, bytes);
    if (call[3] == Z32) combine<Z32>(bank, call, item, at, bytes);
  }
}

// Bits of integers. A thread has a byte of an item of bits. call: to, bytes of an item of bits, items, rows, source, its ring, whether all rows share it,
// first bit.
KERNEL void device_split(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 bytes = call[1], all = call[2] * bytes;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / bytes, first = k % bytes * 8;
    u32 out = 0;
    for (u32 row = 0; row < 8; row++) {
      if (first + row >= call[3]) break;
      const wide v = load_element(bank + call[4], u32(call[5]), call[6] ? 0 : first + row);
      out |= (u32(wide_shift(v, u32(call[7] + item)).lo) & 1) << row;
    }
    bank[call[0] + k] = u8(out);
  }
}

// Integers of bits or of integers, shifted. A thread has an element. call: to, bytes of an item, items, cells, ring, source, bytes of its items, its ring,
// whether all rows share it, by how much.
KERNEL void device_convert(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 cells = call[3], all = call[2] * cells;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / cells, cell = k % cells;
    const wide v = load_element(bank + call[5] + item * call[6], u32(call[7]), call[8] ? 0 : cell);
    store_element(bank + call[0] + item * call[1], u32(call[4]), cell, wide_shift(v, u32(call[9])));
  }
}

// Products of integers of one ring, element by element. call: to, elements, ring, sources.
KERNEL void device_scale(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u32 ring = u32(call[2]);
  for (u64 k = FIRST_OF_GRID; k < call[1]; k += STEP_OF_GRID)
    store_element(bank + call[0], ring, k, wide_mul(load_element(bank + call[3], ring, k), load_element(bank + call[4], ring, k)));
}

// Steps of lifts. A thread has a block of an item. call: step, bytes of an item, items, ring, bits, bytes of an item of bits, counters of an item, how
// many draws, destinations [5]; of each draw its word of the schedule, first counter and head | tail [4][3]; its component [4] and, of the first two, the
// other component of their terms [2].
enum Lifting { SHARE, TURN, TERMS };
DEV void lift_grow(wide x[3], u64 part, wide by) {
  UNROLL
  for (u32 p = 0; p < 3; p++)
    if (part == p) x[p] = wide_add(x[p], by);
}
DEV void lift_element(u8 *bank, const u64 *call, u64 item, u64 cell, const wide m[4]) {
  const u32 ring = u32(call[3]);
  const u64 at = item * call[1];
  const wide nothing = make_wide(0, 0);
  if (call[0] != TERMS) {
    const wide bit = load_element(bank + call[4] + item * call[5], BITS, cell);
    if (call[0] == SHARE) {
      store_element(bank + call[8] + at, ring, cell, m[0]);
      store_element(bank + call[9] + at, ring, cell, wide_sub(bit, m[0]));
      return;
    }
    const wide x = load_element(bank + call[8] + at, ring, cell);
    const wide sign = wide_sub(make_wide(1, 0), wide_add(bit, bit));
    store_element(bank + call[8] + at, ring, cell, wide_add(wide_mul(x, sign), m[0]));
    store_element(bank + call[9] + at, ring, cell, wide_sub(wide_sub(bit, m[0]), m[1]));
    return;
  }
  // Sources are read again for each term, until the results are stored: they take no registers meanwhile.
  wide result[3];
  UNROLL
  for (u32 p = 0; p < 3; p++) result[p] = load_element(bank + call[10 + p] + at, ring, cell);
  UNROLL
  for (u32 d = 2; d < 4; d++)
    if (d < call[7]) lift_grow(result, call[25 + d], m[d]);
  UNROLL
  for (u32 d = 0; d < 2; d++) {
    lift_grow(result, call[25 + d], m[d]);
    const wide a = load_element(bank + call[10 + call[25 + d]] + at, ring, cell), b = load_element(bank + call[10 + call[29 + d]] + at, ring, cell);
    const wide product = wide_mul(a, b);
    const wide message = wide_sub(wide_sub(nothing, wide_add(product, product)), m[d]);
    store_element(bank + call[8 + d] + at, ring, cell, message);
    lift_grow(result, call[29 + d], message);
  }
  UNROLL
  for (u32 p = 0; p < 3; p++) store_element(bank + call[10 + p] + at, ring, cell, result[p]);
}
KERNEL void LAUNCH_BOUNDS(1024, 1)
    device_lift(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  if (verdict[0]) return;
  aes_fill(table);
  BLOCK_BARRIER();
  const u32 lane4 = (threadIdx.x & 31) * 4;
  const u64 bytes = call[1], blocks = (bytes + 15) / 16, all = call[2] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / blocks, block = k % blocks;
    wide m[4];
    UNROLL
    for (u32 d = 0; d < 4; d++) {
      m[d] = make_wide(0, 0);
      if (d >= call[7]) continue;
      const u64 *draw = call + 13 + 3 * d;
      m[d] = wide_of(prf_block(table, lane4, schedules + draw[0], draw[1] + item * call[6] + block, u32(draw[2]), u32(draw[2] >> 32)));
    }
    const u64 cells = call[3] == Z128 ? 1 : 2;
    ROLLED
    for (u64 cell = cells * block; cell < cells * (block + 1); cell++) {
      if (cells == 2 && 8 * cell >= bytes) break;
      lift_element(bank, call, item, cell, m);
      UNROLL
      for (u32 d = 0; d < 4; d++) m[d].lo = m[d].hi;
    }
  }
}

// Steps of truncations. A thread has a block of an item. call: step, bytes of an item, items, ring, source, bytes of its items, counters of an item, how many
// draws, destinations [3]; of each draw its word of the schedule, first counter and head | tail [4][3]; bits that go.
enum Truncation { HIDE, TAKE, ANSWER, SETTLE };
DEV wide truncation_up(u32 ring, u32 by, wide v) {
  const u32 up = (ring == Z128 ? 128 : 64) - by;
  return wide_mul(v, up < 64 ? make_wide(u64(1) << up, 0) : make_wide(0, u64(1) << (up - 64)));
}
DEV void truncate_element(u8 *bank, const u64 *call, u64 item, u64 cell, const wide m[4]) {
  const u32 ring = u32(call[3]), by = u32(call[23]);
  const u64 at = item * call[1];
  const bool whole = ring == Z128;
  const u8 *from = bank + call[4] + item * call[5];
  const wide nothing = make_wide(0, 0);
  if (call[0] == HIDE) {
    const wide r = load_element(bank + call[10] + at, ring, cell);
    const u64 top = (whole ? r.hi : r.lo) >> 63;
    store_element(bank + call[8] + at, ring, cell, wide_add(load_element(from, ring, cell), r));
    store_element(bank + call[9] + at, ring, cell, wide_add(make_wide(m[0].lo & top & 1, 0), m[1]));
    store_element(bank + call[10] + at, ring, cell, wide_sub(nothing, wide_shift(r, by)));
    return;
  }
  if (call[0] == TAKE) {
    wide c = wide_add(load_element(bank + call[8] + at, ring, cell), load_element(from, ring, cell));
    if (!whole) c.hi = 0;
    const u64 bit = (m[1].lo & 1) ^ 1 ^ ((whole ? c.hi : c.lo) >> 63);
    const wide turned = bit ? wide_sub(nothing, m[2]) : m[2];
    const wide rest = wide_sub(wide_sub(wide_shift(c, by), truncation_up(ring, by, wide_add(turned, m[3]))), m[0]);
    u64 *highest = whole ? &c.hi : &c.lo;
    *highest = (*highest & ~(u64(1) << 63)) | bit << 63;
    store_element(bank + call[8] + at, ring, cell, c);
    store_element(bank + call[9] + at, ring, cell, m[0]);
    store_element(bank + call[10] + at, ring, cell, rest);
    return;
  }
  if (call[0] == SETTLE) {
    const wide own = load_element(bank + call[8] + at, ring, cell);
    store_element(bank + call[8] + at, ring, cell, wide_add(own, truncation_up(ring, by, load_element(from, ring, cell))));
    return;
  }
  const u64 bit = load_element(from, BITS, cell).lo & 1;
  const wide x = load_element(bank + call[8] + at, ring, cell), r = load_element(bank + call[9] + at, ring, cell);
  const u64 top = (whole ? r.hi : r.lo) >> 63;
  const wide told = wide_add(wide_add(bit ? wide_sub(nothing, x) : x, make_wide(bit & top, 0)), m[0]);
  store_element(bank + call[8] + at, ring, cell, told);
  store_element(bank + call[9] + at, ring, cell, wide_sub(truncation_up(ring, by, told), wide_shift(r, by)));
}
KERNEL void LAUNCH_BOUNDS(1024, 1)
    device_truncate(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  if (verdict[0]) return;
  aes_fill(table);
  BLOCK_BARRIER();
  const u32 lane4 = (threadIdx.x & 31) * 4;
  const u64 bytes = call[1], blocks = (bytes + 15) / 16, all = call[2] * blocks;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / blocks, block = k % blocks;
    wide m[4];
    UNROLL
    for (u32 d = 0; d < 4; d++) {
      m[d] = make_wide(0, 0);
      if (d >= call[7]) continue;
      const u64 *draw = call + 11 + 3 * d;
      m[d] = wide_of(prf_block(table, lane4, schedules + draw[0], draw[1] + item * call[6] + block, u32(draw[2]), u32(draw[2] >> 32)));
    }
    const u64 cells = call[3] == Z128 ? 1 : 2;
    ROLLED
    for (u64 cell = cells * block; cell < cells * (block + 1); cell++) {
      if (cells == 2 && 8 * cell >= bytes) break;
      truncate_element(bank, call, item, cell, m);
      UNROLL
      for (u32 d = 0; d < 4; d++) m[d].lo = m[d].hi;
    }
  }
}

// Adds a (c + d) + b c over elements to a sum. call: a, b, c, d, elements, ring of a and b, ring of c and d.
KERNEL void device_dot(const u8 *bank, u64 *sum, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u32 small = u32(call[5]), ring = u32(call[6]);
  wide own = make_wide(0, 0);
  for (u64 k = FIRST_OF_GRID; k < call[4]; k += STEP_OF_GRID) {
    const wide a = load_element(bank + call[0], small, k), b = load_element(bank + call[1], small, k);
    const wide c = load_element(bank + call[2], ring, k), d = load_element(bank + call[3], ring, k);
    own = wide_add(own, wide_add(wide_mul(a, wide_add(c, d)), wide_mul(b, c)));
  }
  accumulate(sum, own);
}
// Puts it where it belongs, beside what is there, and forgets it. call: to, ring.
KERNEL void device_dot_end(u8 *bank, u64 *sum, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  const u32 ring = u32(call[1]);
  store_element(bank + call[0], ring, 0, wide_add(load_element(bank + call[0], ring, 0), total_of(sum)));
  for (u32 k = 0; k < 4; k++) sum[k] = 0;
}

// Whether bytes differ: all of them are read, whatever they are. call: sources, bytes.
KERNEL void device_compare(const u8 *bank, const u64 *__restrict__ call, u32 *verdict) {
  if (verdict[0]) return;
  u32 found = 0;
  for (u64 at = 16 * FIRST_OF_GRID; at < call[2]; at += 16 * STEP_OF_GRID) {
    const uint4 d = xor128(load_part(bank + call[0] + at, call[2] - at), load_part(bank + call[1] + at, call[2] - at));
    found |= d.x | d.y | d.z | d.w;
  }
  atomic_or(verdict + 1, found);
}
KERNEL void device_decide(u32 *verdict, u32 command) {
  if (FIRST_OF_GRID != 0) return;
  if (verdict[0] == 0 && verdict[1] != 0) verdict[0] = command + 1;
  verdict[1] = 0;
}
