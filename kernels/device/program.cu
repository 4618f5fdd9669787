// Programs over shares, on a bank: one launch does all instructions of a program, whatever it is. A thread does an instruction in sixteen bytes of its
// columns: 128 rows of bits, two of 64 bits, one of 128; who does what is in program.h. Sums over rows are ended by a second launch. Masks of products are
// made where they are used. The launch is cooperative if blocks meet.
//
// `code` is as program.h says. `call`: where what is, and the form of products: the host made it of a command.
#include "../aes/aes.h"
#include "../include/ring.h"
#include "program.h"

// Words of `call`; crates/device-cuda/src/device/program.rs has the same.
enum Call {
  LEVELS,         // where in `code`
  DEPTH,          // how many
  ITEM_BYTES,
  SHARED_BYTES,
  SLOTS,          // of component 0
  SLOTS_PART,     // bytes from a component to the next
  SHAREDS,
  SHAREDS_PART,
  SUMS,
  SUMS_PART,
  PARTS,
  CONSTANTS,      // components that constants act on
  STRIDE,         // counters of an item
  PAIRS,          // where in `code`
  ENDS,           // where in `code` sums are listed
  SUM_COUNT,
  TRACE,          // of component 0, or all ones
  TRACE_PART,
  WRITES,         // components that a product writes
  DRAWS,
  CROSSES,
  KEEPS,          // how many
  KEPT,           // a byte each: draw, component
  CROSS,          // of each: terms, masks and component; a byte for each term; a byte for each mask
  MESSAGES = CROSS + 9,  // each, or all ones where a component of the slots is it
  SUM_MESSAGES = MESSAGES + 3,
  DRAWN = SUM_MESSAGES + 3,  // of each draw: word of the schedule, first counter, head | tail
  SUM_DRAWN = DRAWN + 18,
};

#define MOST_CROSSES 3
#define MOST_DRAWS 6

struct running {
  u8 *bank, *temps;
  u64 *sums;
  const u64 *call;
  u64 at, bytes;  // of a column: where, and how many from there on
};

template <u32 RING> DEV uint4 get(const running &r, u32 operand, u32 part) {
  const u32 where = operand >> 30;
  const u64 index = operand & 0x3fffffff;
  const u64 *call = r.call;
  if (where == SLOT) return load_part(r.bank + call[SLOTS] + part * call[SLOTS_PART] + index * call[ITEM_BYTES] + r.at, r.bytes);
  if (where == SHARED_VALUE) return load_shared<RING>(r.bank + call[SHAREDS] + part * call[SHAREDS_PART] + index * call[SHARED_BYTES]);
  const u64 pitch = (call[ITEM_BYTES] + 15) / 16 * 16;
  return load128(reinterpret_cast<const uint4 *>(r.temps + (index * call[PARTS] + part) * pitch + r.at));
}

template <u32 RING> DEV void put(const running &r, u32 operand, u32 part, uint4 v) {
  const u64 index = operand & 0x3fffffff;
  const u64 *call = r.call;
  if (operand >> 30 == SLOT) {
    store_part(r.bank + call[SLOTS] + part * call[SLOTS_PART] + index * call[ITEM_BYTES] + r.at, r.bytes, v);
  } else {
    const u64 pitch = (call[ITEM_BYTES] + 15) / 16 * 16;
    store128(reinterpret_cast<uint4 *>(r.temps + (index * call[PARTS] + part) * pitch + r.at), v);
  }
}

// A cross term of a form, before it is masked, over pairs of operands.
template <u32 RING> DEV uint4 crossed(const running &r, u32 cross, const u32 *pairs, u32 count) {
  const u64 of = r.call[CROSS + 3 * cross], terms = r.call[CROSS + 3 * cross + 1];
  uint4 sum = make_uint4(0, 0, 0, 0);
  for (u32 k = 0; k < count; k++)
    for (u32 term = 0; term < (of & 0xff); term++) {
      const u32 both = u32(terms >> (8 * term)) & 0xff;
      sum = ring_add<RING>(sum, ring_mul<RING>(get<RING>(r, pairs[2 * k], both >> 4), get<RING>(r, pairs[2 * k + 1], both & 15)));
    }
  return sum;
}

// Masks a cross term, which is then a message.
template <u32 RING> DEV uint4 masked(const u64 *call, u32 cross, uint4 term, const uint4 *drawn) {
  const u32 count = u32(call[CROSS + 3 * cross] >> 8) & 0xff;
  const u64 masks = call[CROSS + 3 * cross + 2];
  for (u32 k = 0; k < count; k++) {
    const u32 mask = u32(masks >> (8 * k)) & 0xff;
    term = mask & 0x80 ? ring_sub<RING>(term, drawn[mask & 15]) : ring_add<RING>(term, drawn[mask & 15]);
  }
  return term;
}

// A component of a product: what goes to it of messages and of draws.
template <u32 RING> DEV uint4 component(const u64 *call, u32 part, const uint4 *messages, const uint4 *drawn) {
  uint4 sum = make_uint4(0, 0, 0, 0);
  for (u32 k = 0; k < call[CROSSES]; k++)
    if (u32(call[CROSS + 3 * k] >> 16) == part) sum = ring_add<RING>(sum, messages[k]);
  for (u32 k = 0; k < call[KEEPS]; k++) {
    const u32 kept = u32(call[KEPT] >> (8 * k)) & 0xff;
    if ((kept & 15) == part) sum = ring_add<RING>(sum, drawn[kept >> 4]);
  }
  return sum;
}

// Block `block` of item `index` of draws.
DEV void draw_all(const u64 *call, u32 first, u64 counter, const u32 *table, u32 lane4, const u32 *schedules, uint4 *drawn) {
  for (u32 k = 0; k < call[DRAWS]; k++) {
    const u64 *draw = call + first + 3 * k;
    drawn[k] = prf_block(table, lane4, schedules + draw[0], draw[1] + counter, u32(draw[2]), u32(draw[2] >> 32));
  }
}

// A value of each thread, as elements of sixteen bytes, added to a sum.
template <u32 RING> DEV void add_up(const running &r, u32 sum, uint4 v) {
  wide own = wide_of(v);
  if (RING == Z64) own = make_wide(own.lo + (r.bytes >= 16 ? own.hi : 0), 0);
  accumulate(r.sums + 4 * u64(sum), own);
}

template <u32 RING>
DEV void run(u8 *bank, u8 *temps, u64 *sums, const u64 *call, const u32 *schedules, const u32 *code, const u32 *table) {
  const u32 lane4 = (threadIdx.x & 31) * 4;
  running r;
  r.bank = bank, r.temps = temps, r.sums = sums, r.call = call;
  const uint4 nothing = make_uint4(0, 0, 0, 0);
  share s = share_of(code + call[LEVELS], call[DEPTH], (call[ITEM_BYTES] + 15) / 16);
  for (u64 group = 0; group < s.groups; group++) {
    share_group(s, group);
    for (u64 k = s.first; k < s.last; k += s.step) {
      // All threads of a warp do the same, as they add up together; one that has no bytes adds nothing, and reads nothing of the others.
      const u64 at = 16 * share_column(s, group, k);
      const bool any = at < call[ITEM_BYTES];
      r.at = any ? at : 0;
      r.bytes = call[ITEM_BYTES] - r.at;
      const u32 *instruction = code + 8 * share_instruction(s, k);
      const u32 op = instruction[0], out = instruction[1], a = instruction[2], b = instruction[3];
      if (op == SUM) {
        for (u32 part = 0; part < call[PARTS]; part++) add_up<RING>(r, b + part, any ? get<RING>(r, a, part) : nothing);
      } else if (op == PRODUCT_SUM) {
        for (u32 k = 0; k < call[CROSSES]; k++)
          add_up<RING>(r, instruction[5] + k, any ? crossed<RING>(r, k, code + call[PAIRS] + 2 * u64(b), instruction[4]) : nothing);
      } else if (!any) {
        continue;
      } else if (op == PRODUCT) {
        const u32 *pairs = code + call[PAIRS] + 2 * u64(b);
        uint4 drawn[MOST_DRAWS], messages[MOST_CROSSES];
        draw_all(call, DRAWN, a * call[STRIDE] + r.at / 16, table, lane4, schedules, drawn);
        if (call[TRACE] != ~0ull) {
          u8 *to = bank + call[TRACE] + a * call[ITEM_BYTES] + r.at;
          for (u32 k = 0; k < 4; k++) store_part(to + k * call[TRACE_PART], r.bytes, get<RING>(r, pairs[k >> 1], k & 1));
          for (u32 k = 0; k < 2; k++) store_part(to + (4 + k) * call[TRACE_PART], r.bytes, drawn[k]);
        }
        for (u32 k = 0; k < call[CROSSES]; k++) {
          messages[k] = masked<RING>(call, k, crossed<RING>(r, k, pairs, instruction[4]), drawn);
          if (call[MESSAGES + k] != ~0ull) store_part(bank + call[MESSAGES + k] + a * call[ITEM_BYTES] + r.at, r.bytes, messages[k]);
        }
        for (u32 part = 0; part < call[PARTS]; part++)
          if ((call[WRITES] >> part) & 1) put<RING>(r, out, part, component<RING>(call, part, messages, drawn));
      } else {
        const uint4 constant = load128(reinterpret_cast<const uint4 *>(instruction + 4));
        for (u32 part = 0; part < call[PARTS]; part++) {
          const uint4 acts = (call[CONSTANTS] >> part) & 1 ? constant : make_uint4(0, 0, 0, 0);
          uint4 v = op == CONSTANT ? acts : get<RING>(r, a, part);
          if (op == ADD) v = ring_add<RING>(v, get<RING>(r, b, part));
          if (op == SUB) v = ring_sub<RING>(v, get<RING>(r, b, part));
          if (op == TIMES) v = ring_mul<RING>(v, constant);
          if (op == PLUS) v = ring_add<RING>(v, acts);
          put<RING>(r, out, part, v);
        }
      }
    }
    share_meet(s, group);
  }
}

#define PROGRAM(name, ring)                                                                                                       \
  KERNEL void LAUNCH_BOUNDS(512, 1)                                                                                               \
      name(u8 *bank, u8 *temps, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict,                         \
           const u32 *__restrict__ schedules, const u32 *__restrict__ code) {                                                     \
    SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);                                                                                  \
    if (verdict[0]) return;                                                                                                       \
    if (call[DRAWS]) aes_fill(table);                                                                                             \
    BLOCK_BARRIER();                                                                                                              \
    run<ring>(bank, temps, sums, call, schedules, code, table);                                                                   \
  }
PROGRAM(program_bits, BITS)
PROGRAM(program_z64, Z64)
PROGRAM(program_z128, Z128)

// Ends sums over rows: a thread has one of them. Those of threads become zero again.
template <u32 RING>
DEV void end_sums(u8 *bank, u64 *sums, const u64 *call, const u32 *schedules, const u32 *code, const u32 *table) {
  const u32 lane4 = (threadIdx.x & 31) * 4;
  const u64 bytes = call[SHARED_BYTES];
  for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < call[SUM_COUNT]; k += u64(gridDim.x) * blockDim.x) {
    const u32 *of = code + call[ENDS] + 4 * k;
    const u32 out = of[1], index = of[2];
    u64 *own = sums + 4 * u64(of[3]);
    u8 *to = bank + call[SUMS] + out * bytes;
    if (of[0] == SUM) {
      for (u32 part = 0; part < call[PARTS]; part++) store_part(to + part * call[SUMS_PART], bytes, words_of(total_of(own + 4 * part)));
      for (u32 word = 0; word < 4 * call[PARTS]; word++) own[word] = 0;
      continue;
    }
    uint4 drawn[MOST_DRAWS], messages[MOST_CROSSES];
    draw_all(call, SUM_DRAWN, index, table, lane4, schedules, drawn);
    for (u32 cross = 0; cross < call[CROSSES]; cross++) {
      messages[cross] = masked<RING>(call, cross, words_of(total_of(own + 4 * cross)), drawn);
      store_part(bank + call[SUM_MESSAGES + cross] + index * bytes, bytes, messages[cross]);
    }
    for (u32 part = 0; part < call[PARTS]; part++)
      if ((call[WRITES] >> part) & 1) store_part(to + part * call[SUMS_PART], bytes, component<RING>(call, part, messages, drawn));
    for (u32 word = 0; word < 4 * MOST_CROSSES; word++) own[word] = 0;
  }
}

#define PROGRAM_SUMS(name, ring)                                                                                                  \
  KERNEL void LAUNCH_BOUNDS(512, 1) name(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict,      \
                                         const u32 *__restrict__ schedules, const u32 *__restrict__ code) {                       \
    SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);                                                                                  \
    if (verdict[0]) return;                                                                                                       \
    if (call[DRAWS]) aes_fill(table);                                                                                             \
    BLOCK_BARRIER();                                                                                                              \
    end_sums<ring>(bank, sums, call, schedules, code, table);                                                                     \
  }
PROGRAM_SUMS(program_sums_z64, Z64)
PROGRAM_SUMS(program_sums_z128, Z128)

// Adds received products to their results. A thread has sixteen bytes of one of rows, or one of sums. `products`: of four words, first those of rows:
// where it goes, and its place in the message, are the second and the third. call: products of rows, all, bytes of an item, bytes of a sum, slots of
// the component, message, sums of the component, message of sums, ring.
template <u32 RING> DEV void add_received(u8 *to, const u8 *from, u64 bytes) {
  store_part(to, bytes, ring_add<RING>(load_part(from, bytes), load_part(to, bytes)));
}
KERNEL void program_add_received(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ products) {
  if (verdict[0]) return;
  const u64 units = (call[2] + 15) / 16, rows = call[0] * units, all = rows + (call[1] - call[0]);
  for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < all; k += u64(gridDim.x) * blockDim.x) {
    const bool row = k < rows;
    const u32 *product = products + 4 * (row ? k / units : call[0] + (k - rows));
    const u64 item = row ? call[2] : call[3], at = row ? 16 * (k % units) : 0;
    u8 *to = bank + call[row ? 4 : 6] + product[1] * item + at;
    const u8 *from = bank + call[row ? 5 : 7] + product[2] * item + at;
    if (call[8] == BITS) add_received<BITS>(to, from, item - at);
    if (call[8] == Z64) add_received<Z64>(to, from, item - at);
    if (call[8] == Z128) add_received<Z128>(to, from, item - at);
  }
}
