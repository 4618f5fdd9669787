// Programs over labels, at the garbler and at the evaluator: one launch does all instructions of a program. A thread does an instruction in a row, a warp
// in 32 rows, whose bits of tables lie together; who does what is in program.h. The schemes are those of crates/device (garble). The launch is cooperative if blocks meet.
//
// `code` is as in program.cu; a constant is all ones or nothing. `call`: where what is, and what both sides or the garbler alone know.
#include "../ag/gate.h"
#include "../garble/garble.h"
#include "program.h"

enum LabelCall {
  LABEL_LEVELS,   // where in `code`
  LABEL_DEPTH,    // how many
  LABEL_ROWS,
  LABEL_SLOTS,
  LABEL_SHAREDS,
  LABEL_PAIRS,    // where in `code`
  LABEL_NUMBER,   // of product 0
  LABEL_TABLES,   // labels, or halves
  LABEL_BITS,     // bits of tables
  LABEL_START,    // start point of the hash
  LABEL_OFFSET = LABEL_START + 2,
  LABEL_DICE = LABEL_OFFSET + 2,  // word of the schedule, first counter, head | tail, counters of a product
  LABEL_EACH = LABEL_DICE + 4,    // whether each row is a circuit with a start point and an offset of its own, and where these are
  LABEL_FLAGS = LABEL_EACH + 3,   // with authenticated masks: a byte for each gate, apart; gates of arrays before them; where arrays are
  LABEL_BEFORE,
  LABEL_ARRAYS,
};
// How products are made: tables of two labels or of three halves; with authenticated masks (../ag/gate.h); or not at all, as results are there: masks, of
// which operands are wanted.
enum LabelScheme { HALF_GATES, THREE_HALVES, MASKED, MASKS };

struct labels {
  u8 *bank, *temps;
  const u64 *call;
  const u32 *table;
  u32 lane4;
  u64 row, place;  // its row, and what the row adds to the number of a gate
  bool any;
  uint4 start, offset;
};

DEV uint4 *label_at(const labels &r, u32 operand) {
  const u64 index = operand & 0x3fffffff, rows = r.call[LABEL_ROWS];
  if (operand >> 30 == SHARED_VALUE) return reinterpret_cast<uint4 *>(r.bank + r.call[LABEL_SHAREDS]) + index;
  return reinterpret_cast<uint4 *>(operand >> 30 == SLOT ? r.bank + r.call[LABEL_SLOTS] : r.temps) + index * rows + r.row;
}

DEV u64 every(u32 bit) { return 0 - u64(bit & 1); }
// The low half of a hash, and bit 64.
struct split {
  u64 half;
  u32 bit;
};
template <u32 COUNT> DEV void split_hash(const labels &r, u64 tweak, uint4 (&x)[COUNT], split (&out)[COUNT]) {
  label_hash<COUNT>(r.table, r.lane4, r.start, tweak, x);
  UNROLL
  for (u32 k = 0; k < COUNT; k++) out[k].half = wide_of(x[k]).lo, out[k].bit = x[k].z & 1;
}

// Y of two labels, of the low halves of three hashes, and of two control bits. Halves are `hi` on the left and `lo` on the right.
DEV wide target(wide a, wide b, u64 ha, u64 hb, u64 hx, u32 r, u32 s) {
  const u64 rs = every(r), ss = every(s), both = ha ^ hx, other = hb ^ hx;
  return make_wide(other ^ (rs & (a.hi ^ b.lo)) ^ (ss & (a.lo ^ b.hi ^ b.lo)) ^ (every(1 ^ u32(b.lo)) & a.lo),
                   both ^ (rs & (a.hi ^ a.lo ^ b.hi)) ^ (ss & (a.hi ^ b.lo)) ^ (every(1 ^ u32(a.lo)) & b.hi));
}
DEV wide wide_if(u32 bit, wide a) { return make_wide(a.lo & every(bit), a.hi & every(bit)); }

// The five bits of a table in the rows of a warp, each in its item.
DEV void put_bits(const labels &r, u64 index, u32 bits) {
  const u64 bytes = (r.call[LABEL_ROWS] + 7) / 8;
  for (u32 k = 0; k < 5; k++) {
    const u32 word = WARP_BALLOT(r.any && ((bits >> k) & 1));
    const u64 at = (r.row & ~31ull) / 8;
    u8 *to = r.bank + r.call[LABEL_BITS] + (5 * index + k) * bytes + at;
    if ((threadIdx.x & 31) == 0 && r.any)
      for (u32 byte = 0; byte < 4 && at + byte < bytes; byte++) to[byte] = u8(word >> (8 * byte));
  }
}

// What a table of three-halves needs of colours j and k.
struct three {
  wide a, b, offset;
  split ha[2], hb[2], hx[2];
  u32 one_a, one_b, rho, sigma;
};
DEV wide three_target(const three &t, u32 j, u32 k) {
  u32 r = t.rho, s = t.sigma;
  if (j && k) r ^= t.one_a, s ^= t.one_b;
  if (j && !k) r ^= t.one_b, s ^= t.one_a ^ t.one_b;
  if (!j && k) r ^= t.one_a ^ t.one_b, s ^= t.one_a;
  const wide a = wide_xor(t.a, wide_if(j, t.offset)), b = wide_xor(t.b, wide_if(k, t.offset));
  const wide y = target(a, b, t.ha[j].half, t.hb[k].half, t.hx[j ^ k].half, r, s);
  return wide_xor(y, wide_if((1 ^ j ^ t.one_a) & (1 ^ k ^ t.one_b), t.offset));
}

DEV uint4 three_garble(const labels &r, const u32 *schedules, u64 index, uint4 x, uint4 y, u32 &bits) {
  const u64 *call = r.call, *dice = call + LABEL_DICE;
  const u64 tweak = 3 * (((call[LABEL_NUMBER] + index) << 16) + r.place);
  const uint4 block = prf_block(r.table, r.lane4, schedules + dice[0], dice[1] + index * dice[3] + r.row / 64, u32(dice[2]), u32(dice[2] >> 32));
  const wide drawn = wide_of(block);
  const u32 dies = u32(wide_shift(drawn, 2 * u32(r.row & 63)).lo);
  three t;
  t.offset = wide_of(r.offset);
  t.rho = dies & 1, t.sigma = (dies >> 1) & 1;
  t.one_a = 1 ^ (x.x & 1), t.one_b = 1 ^ (y.x & 1);
  const uint4 a = label_add(x, r.offset, label_colour(x)), b = label_add(y, r.offset, label_colour(y)), both = xor128(a, b);
  uint4 own[2] = {a, xor128(a, r.offset)};
  split_hash<2>(r, tweak, own, t.ha);
  own[0] = b, own[1] = xor128(b, r.offset);
  split_hash<2>(r, tweak + 1, own, t.hb);
  own[0] = both, own[1] = xor128(both, r.offset);
  split_hash<2>(r, tweak + 2, own, t.hx);
  t.a = wide_of(a), t.b = wide_of(b);
  const wide out = three_target(t, 0, 0), right = wide_xor(three_target(t, 0, 1), out), last = wide_xor(three_target(t, 1, 1), out);
  bits = (t.rho ^ t.ha[0].bit ^ t.hx[0].bit) | (t.sigma ^ t.hb[0].bit ^ t.hx[0].bit) << 1 | (t.one_a ^ t.ha[0].bit ^ t.ha[1].bit) << 2 |
                   (t.one_b ^ t.hb[0].bit ^ t.hb[1].bit) << 3 | (t.one_a ^ t.one_b ^ t.hx[0].bit ^ t.hx[1].bit) << 4;
  u64 *halves = reinterpret_cast<u64 *>(r.bank + call[LABEL_TABLES]) + 3 * index * call[LABEL_ROWS] + r.row;
  halves[0] = last.hi, halves[call[LABEL_ROWS]] = last.lo, halves[2 * call[LABEL_ROWS]] = right.hi;
  return words_of(out);
}

DEV uint4 three_evaluate(const labels &r, u64 index, uint4 x, uint4 y) {
  const u64 *call = r.call;
  const u64 tweak = 3 * (((call[LABEL_NUMBER] + index) << 16) + r.place), rows = call[LABEL_ROWS], bytes = (rows + 7) / 8;
  split h[3];
  for (u32 k = 0; k < 3; k++) {
    uint4 own[1] = {k == 0 ? x : k == 1 ? y : xor128(x, y)};
    split one[1];
    split_hash<1>(r, tweak + k, own, one);
    h[k] = one[0];
  }
  u32 z = 0;
  for (u32 k = 0; k < 5; k++) z |= u32(load_element(r.bank + call[LABEL_BITS] + (5 * index + k) * bytes, BITS, r.row).lo) << k;
  const u64 *halves = reinterpret_cast<const u64 *>(r.bank + call[LABEL_TABLES]) + 3 * index * rows + r.row;
  const u32 j = x.x & 1, k = y.x & 1, both = j ^ k;
  const u32 rs = z ^ (j & (z >> 2)) ^ (both & (z >> 4)) ^ h[0].bit ^ h[2].bit;
  const u32 ss = (z >> 1) ^ (k & (z >> 3)) ^ (both & (z >> 4)) ^ h[1].bit ^ h[2].bit;
  const wide y_of = target(wide_of(x), wide_of(y), h[0].half, h[1].half, h[2].half, rs & 1, ss & 1);
  const u64 shared = every(both) & halves[2 * rows];
  return words_of(wide_xor(y_of, make_wide((every(k) & halves[rows]) ^ shared, (every(j) & halves[0]) ^ shared)));
}

// The gate with authenticated masks of a product.
DEV masked_gate gate_of(const labels &r, u64 product) {
  const u64 *call = r.call, rows = call[LABEL_ROWS];
  masked_gate g;
  g.table = r.table, g.lane4 = r.lane4, g.start = r.start, g.offset = r.offset;
  g.number = ((call[LABEL_NUMBER] + product) << 16) + r.row, g.flag = product * rows + r.row, g.at = call[LABEL_BEFORE] + g.flag, g.step = rows;
  g.bank = r.bank, g.flags = r.temps + call[LABEL_FLAGS], g.arrays = call + LABEL_ARRAYS;
  g.tables = labels_at(r.bank, call[LABEL_TABLES]) + 2 * product * rows + r.row;
  return g;
}
// The result of a product that is there already: its operands are put down.
DEV uint4 masks_product(const labels &r, u64 product, uint4 a, uint4 b) {
  const u64 *arrays = r.call + LABEL_ARRAYS, at = r.call[LABEL_BEFORE] + product * r.call[LABEL_ROWS] + r.row;
  store128(labels_at(r.bank, arrays[1]) + at, a);
  store128(labels_at(r.bank, arrays[2]) + at, b);
  return load128(labels_at(r.bank, arrays[0]) + at);
}

template <u32 SCHEME, bool GARBLER>
DEV void run_labels(u8 *bank, u8 *temps, const u64 *call, const u32 *schedules, const u32 *code, const u32 *table) {
  labels r;
  r.bank = bank, r.temps = temps, r.call = call, r.table = table, r.lane4 = (threadIdx.x & 31) * 4;
  r.start = words_of(make_wide(call[LABEL_START], call[LABEL_START + 1]));
  r.offset = words_of(make_wide(call[LABEL_OFFSET], call[LABEL_OFFSET + 1]));
  const u64 rows = call[LABEL_ROWS];
  share s = share_of(code + call[LABEL_LEVELS], call[LABEL_DEPTH], rows);
  for (u64 group = 0; group < s.groups; group++) {
    share_group(s, group);
    for (u64 k = s.first; k < s.last; k += s.step) {
      // All threads of a warp do the same, as they put bits together; one that has no row does nothing else.
      r.row = share_column(s, group, k);
      r.any = r.row < rows;
      r.place = call[LABEL_EACH] ? 0 : r.row;
      if (call[LABEL_EACH] && r.any) {
        r.start = load128(reinterpret_cast<const uint4 *>(bank + call[LABEL_EACH + 1]) + r.row);
        if (GARBLER) r.offset = load128(reinterpret_cast<const uint4 *>(bank + call[LABEL_EACH + 2]) + r.row);
      }
      const u32 *instruction = code + 8 * share_instruction(s, k);
      const u32 op = instruction[0], a = instruction[2], b = instruction[3];
      u32 bits = 0;
      if (r.any) {
        uint4 out;
        if (op == PRODUCT) {
          const u32 *pair = code + call[LABEL_PAIRS] + 2 * u64(b);
          const uint4 x = load128(label_at(r, pair[0])), y = load128(label_at(r, pair[1]));
          uint4 *tables = reinterpret_cast<uint4 *>(bank + call[LABEL_TABLES]) + 2 * u64(a) * rows + r.row;
          const u64 gate = ((call[LABEL_NUMBER] + a) << 16) + r.place;
          if (SCHEME == MASKS)
            out = masks_product(r, a, x, y);
          else if (SCHEME == MASKED)
            out = GARBLER ? masked_garble(gate_of(r, a), x, y) : masked_evaluate(gate_of(r, a), x, y);
          else if (SCHEME == THREE_HALVES)
            out = GARBLER ? three_garble(r, schedules, a, x, y, bits) : three_evaluate(r, a, x, y);
          else
            out = GARBLER ? half_garble(table, r.lane4, r.start, r.offset, gate, x, y, tables, tables + rows)
                          : half_evaluate(table, r.lane4, r.start, gate, x, y, tables, tables + rows);
        } else {
          const uint4 constant = load128(reinterpret_cast<const uint4 *>(instruction + 4));
          // Labels with authenticated masks are those of the public value 0, which a constant leaves as it is.
          const uint4 one = SCHEME == MASKED ? make_uint4(0, 0, 0, 0) : ring_mul<BITS>(constant, r.offset);
          out = op == CONSTANT ? one : load128(label_at(r, a));
          if (op == ADD || op == SUB) out = xor128(out, load128(label_at(r, b)));
          if (op == TIMES) out = ring_mul<BITS>(out, constant);
          if (op == PLUS) out = xor128(out, one);
        }
        store128(label_at(r, instruction[1]), out);
      }
      if (GARBLER && SCHEME == THREE_HALVES && op == PRODUCT) put_bits(r, a, bits);
    }
    share_meet(s, group);
  }
}

#define LABELS(name, scheme, garbler)                                                                                             \
  KERNEL void LAUNCH_BOUNDS(512, 1) name(u8 *bank, u8 *temps, const u64 *__restrict__ call, const u32 *__restrict__ verdict,      \
                                         const u32 *__restrict__ schedules, const u32 *__restrict__ code) {                       \
    SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);                                                                                  \
    if (verdict[0]) return;                                                                                                       \
    aes_fill(table);                                                                                                              \
    BLOCK_BARRIER();                                                                                                              \
    run_labels<scheme, garbler>(bank, temps, call, schedules, code, table);                                                       \
  }
LABELS(labels_garble_half, HALF_GATES, true)
LABELS(labels_garble_three, THREE_HALVES, true)
LABELS(labels_garble_masked, MASKED, true)
LABELS(labels_evaluate_half, HALF_GATES, false)
LABELS(labels_evaluate_three, THREE_HALVES, false)
LABELS(labels_evaluate_masked, MASKED, false)

// Nothing is hashed: there are no tables of AES.
KERNEL void LAUNCH_BOUNDS(512, 1) labels_masks(u8 *bank, u8 *temps, const u64 *__restrict__ call, const u32 *__restrict__ verdict,
                                               const u32 *__restrict__ schedules, const u32 *__restrict__ code) {
  if (verdict[0]) return;
  run_labels<MASKS, false>(bank, temps, call, schedules, code, nullptr);
}
