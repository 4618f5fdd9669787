// A bin of a store, solved by a block of threads to the same columns as crates/device does one key after the other (psi). Keys are taken in turns: in a turn all
// columns that have a key for themselves, in their order, so that of a key with several the first one counts. What a turn's keys leave is in no other row of that turn,
// and so both taking and setting columns are done by all threads. The few keys that hang together are eliminated one by one, their columns by all threads.
//
// Arrays of columns and keys are in device memory, a bin's in the second level of the cache.
#pragma once
#include "psi.h"

// Most keys that are left over and solved, words of their sparse columns as bits, and most of these columns.
#define PSI_MOST_LEFT 512
#define PSI_BITS 48
#define PSI_NAMES (3 * PSI_MOST_LEFT)
// Words of a sparse column beside its value.
#define PSI_COLUMN_WORDS 6
// Bytes of a block's own memory: of each key that is left its parts (dense ones, and the value), its bits, five numbers; names of columns.
#define PSI_OWN_BYTES(dense) (PSI_MOST_LEFT * (16 * ((dense) + 1) + 4 * PSI_BITS + 4 * 5) + 4 * PSI_NAMES)
// A column of a list whose key it was that was taken.
#define PSI_WINS 0x80000000u

struct psi_bin {
  u32 count, sparse, dense;
  const uint4 *entries, *digests;  // three columns and the number of a key; V and the factor of all keys
  uint4 *columns, *rests;
  u32 *taken, *is_taken, *left, *ends;          // of keys; the last, one more, of turns
  u32 *keys, *numbers, *place, *last, *lists;  // of columns: keys that they have, the XOR of their numbers
  u8 *own;
  u32 *counts;  // shared
  uint4 *sums;  // shared
};

DEV u32 psi_column(uint4 entry, u32 i) { return i == 0 ? entry.x : i == 1 ? entry.y : entry.z; }
DEV uint4 psi_value(const psi_bin &b, uint4 entry) { return load128(b.digests + 2 * u64(entry.w)); }
DEV wide psi_factor(const psi_bin &b, uint4 entry) { return wide_of(load128(b.digests + 2 * u64(entry.w) + 1)); }

// The place of this thread behind `before` among those of the block that take part, in their order; `before` grows by how many do. All threads come here.
DEV u32 psi_place(const psi_bin &b, bool takes, u32 &before) {
  const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, those = WARP_BALLOT(takes);
  if (lane == 0) b.counts[warp] = count_ones(those);
  BLOCK_BARRIER();
  u32 place = before + count_ones(those & ((1u << lane) - 1));
  for (u32 k = 0; k < blockDim.x >> 5; k++) {
    if (k < warp) place += b.counts[k];
    before += b.counts[k];
  }
  BLOCK_BARRIER();
  return place;
}

// The sum of what all threads of the block have.
DEV uint4 psi_total(const psi_bin &b, uint4 v) {
  for (u32 mask = 16; mask; mask >>= 1) {
    v.x ^= WARP_SHUFFLE_XOR(v.x, mask), v.y ^= WARP_SHUFFLE_XOR(v.y, mask);
    v.z ^= WARP_SHUFFLE_XOR(v.z, mask), v.w ^= WARP_SHUFFLE_XOR(v.w, mask);
  }
  if ((threadIdx.x & 31) == 0) b.sums[threadIdx.x >> 5] = v;
  BLOCK_BARRIER();
  uint4 total = make_uint4(0, 0, 0, 0);
  for (u32 k = 0; k < blockDim.x >> 5; k++) total = xor128(total, b.sums[k]);
  BLOCK_BARRIER();
  return total;
}

// Counts the keys of columns, and lists those that have one.
DEV u32 psi_counted(const psi_bin &b) {
  for (u32 c = threadIdx.x; c < b.sparse; c += blockDim.x) b.keys[c] = 0, b.numbers[c] = 0, b.last[c] = 0;
  BLOCK_BARRIER();
  for (u32 k = threadIdx.x; k < b.count; k += blockDim.x) {
    const uint4 entry = load128(b.entries + k);
    b.is_taken[k] = 0;
    UNROLL
    for (u32 i = 0; i < 3; i++) atomic_add(b.keys + psi_column(entry, i), 1), atomic_xor(b.numbers + psi_column(entry, i), k);
  }
  BLOCK_BARRIER();
  u32 listed = 0;
  for (u32 first = 0; first < b.sparse; first += blockDim.x) {
    const u32 c = first + threadIdx.x;
    const bool takes = c < b.sparse && b.keys[c] == 1;
    const u32 to = psi_place(b, takes, listed);
    if (takes) b.lists[to] = c;
  }
  return listed;
}

// Takes the keys of a list: the first column of the list that a key has wins. All keys of columns with a single one are in the list.
DEV void psi_take(const psi_bin &b, u32 *list, u32 listed, u32 &taken) {
  for (u32 p = threadIdx.x; p < listed; p += blockDim.x) b.place[list[p]] = p;
  BLOCK_BARRIER();
  for (u32 first = 0; first < listed; first += blockDim.x) {
    const u32 p = first + threadIdx.x;
    u32 column = 0, key = 0;
    bool wins = p < listed;
    if (wins) {
      column = list[p], key = b.numbers[column];
      const uint4 entry = load128(b.entries + key);
      UNROLL
      for (u32 i = 0; i < 3; i++) {
        const u32 at = psi_column(entry, i);
        if (at != column && b.keys[at] == 1 && b.place[at] < p) wins = false;
      }
    }
    const u32 to = psi_place(b, wins, taken);
    if (!wins) continue;
    list[p] = column | PSI_WINS, b.taken[2 * to] = column, b.taken[2 * to + 1] = key, b.is_taken[key] = 1;
  }
  BLOCK_BARRIER();
}

// Takes keys that have a column for themselves, as long as there are some: how many were taken, and in how many turns.
DEV u32 psi_peel(const psi_bin &b, u32 &turns) {
  u32 listed = psi_counted(b), taken = 0, marks = 0;
  for (turns = 0; listed > 0; turns++) {
    u32 *list = b.lists + (turns & 1) * b.sparse, *next = b.lists + (1 - (turns & 1)) * b.sparse;
    BLOCK_BARRIER();
    psi_take(b, list, listed, taken);
    if (threadIdx.x == 0) b.ends[turns] = taken;
    // Columns lose these keys; the last loss of a column, in the order of the list, says where it is in the next one.
    for (u32 p = threadIdx.x; p < listed; p += blockDim.x) {
      if (!(list[p] & PSI_WINS)) continue;
      const u32 column = list[p] & ~PSI_WINS, key = b.numbers[column];
      const uint4 entry = load128(b.entries + key);
      b.place[column] = key;
      UNROLL
      for (u32 i = 0; i < 3; i++) {
        const u32 at = psi_column(entry, i);
        atomic_add(b.keys + at, 0 - 1u), atomic_xor(b.numbers + at, key), atomic_max(b.last + at, marks + 3 * p + i + 1);
      }
    }
    BLOCK_BARRIER();
    u32 more = 0;
    for (u32 first = 0; first < 3 * listed; first += blockDim.x) {
      const u32 q = first + threadIdx.x, of = q < 3 * listed ? list[q / 3] : 0;
      u32 at = 0;
      bool takes = false;
      if (of & PSI_WINS) {
        at = psi_column(load128(b.entries + b.place[of & ~PSI_WINS]), q % 3);
        takes = b.keys[at] == 1 && b.last[at] == marks + q + 1;
      }
      const u32 to = psi_place(b, takes, more);
      if (takes) next[to] = at;
    }
    marks += 3 * listed, listed = more;
  }
  BLOCK_BARRIER();
  return taken;
}

// Lists the keys that are left, and says how many there are, and whether two are equal.
DEV u32 psi_listed(const psi_bin &b, bool &equal) {
  u32 left = 0;
  for (u32 first = 0; first < b.count; first += blockDim.x) {
    const u32 k = first + threadIdx.x;
    const bool takes = k < b.count && b.is_taken[k] == 0;
    const u32 to = psi_place(b, takes, left);
    if (takes) b.left[to] = k;
  }
  if (threadIdx.x == 0) b.counts[32] = 0;
  BLOCK_BARRIER();
  for (u32 i = threadIdx.x; i < left; i += blockDim.x) {
    const uint4 own = load128(b.entries + b.left[i]);
    for (u32 j = i + 1; j < left; j++) {
      const uint4 other = load128(b.entries + b.left[j]);
      if (own.x != other.x || own.y != other.y || own.z != other.z || !psi_equal(psi_value(b, own), psi_value(b, other))) continue;
      if (psi_equal(words_of(psi_factor(b, own)), words_of(psi_factor(b, other)))) atomic_or(b.counts + 32, 1);
    }
  }
  BLOCK_BARRIER();
  equal = b.counts[32] != 0;
  return left;
}

// Sums of keys that are left, in a block's own memory.
struct psi_left {
  uint4 *parts;  // dense ones, then the value, of each
  u32 *bits;     // sparse columns, of each
  u32 *sorted, *order, *pivots, *equations, *dense;  // keys in ascending order; sums with a pivot; sums without
  u32 *names;    // columns, in ascending order
  u32 words, names_count, each;
};
DEV psi_left psi_memory(const psi_bin &b) {
  psi_left l;
  l.each = b.dense + 1;
  l.parts = reinterpret_cast<uint4 *>(b.own);
  l.bits = reinterpret_cast<u32 *>(l.parts + PSI_MOST_LEFT * l.each);
  l.sorted = l.bits + PSI_MOST_LEFT * PSI_BITS;
  l.order = l.sorted + PSI_MOST_LEFT, l.pivots = l.order + PSI_MOST_LEFT, l.equations = l.pivots + PSI_MOST_LEFT;
  l.dense = l.equations + PSI_MOST_LEFT, l.names = l.dense + PSI_MOST_LEFT;
  l.words = 0, l.names_count = 0;
  return l;
}
DEV bool psi_has(const psi_left &l, u32 row, u32 bit) { return (l.bits[row * PSI_BITS + (bit >> 5)] >> (bit & 31)) & 1; }

// Keys that are left as sums: a thread has a key, or a column.
DEV void psi_begin(const psi_bin &b, psi_left &l, u32 left) {
  for (u32 i = threadIdx.x; i < left; i += blockDim.x) {
    const u32 key = b.entries[b.left[i]].w;
    u32 before = 0;
    for (u32 j = 0; j < left; j++) before += b.entries[b.left[j]].w < key;
    l.sorted[before] = b.left[i];
  }
  for (u32 c = threadIdx.x; c < b.sparse; c += blockDim.x) b.place[c] = 0;
  BLOCK_BARRIER();
  for (u32 i = threadIdx.x; i < 3 * left; i += blockDim.x) atomic_or(b.place + psi_column(load128(b.entries + b.left[i / 3]), i % 3), 1);
  BLOCK_BARRIER();
  for (u32 first = 0; first < b.sparse; first += blockDim.x) {
    const u32 c = first + threadIdx.x;
    const bool takes = c < b.sparse && b.place[c] != 0;
    const u32 to = psi_place(b, takes, l.names_count);
    if (takes) l.names[to] = c, b.place[c] = to;
  }
  l.words = (l.names_count + 31) / 32;
  BLOCK_BARRIER();
  for (u32 row = threadIdx.x; row < left; row += blockDim.x) {
    const uint4 entry = load128(b.entries + l.sorted[row]);
    u32 *bits = l.bits + row * PSI_BITS;
    uint4 *parts = l.parts + row * l.each;
    for (u32 k = 0; k < l.words; k++) bits[k] = 0;
    UNROLL
    for (u32 i = 0; i < 3; i++) bits[b.place[psi_column(entry, i)] >> 5] |= 1u << (b.place[psi_column(entry, i)] & 31);
    const wide factor = psi_factor(b, entry);
    wide power = factor;
    for (u32 k = 0; k < b.dense; k++) store128(parts + k, words_of(power)), power = polyval_mul(power, factor);
    store128(parts + b.dense, psi_value(b, entry));
  }
  BLOCK_BARRIER();
}

// Eliminates sparse columns, key by key: each sum has its lowest column as pivot, or is an equation of dense ones.
DEV void psi_eliminate(const psi_left &l, u32 left, u32 &sums, u32 &equations) {
  sums = 0, equations = 0;
  for (u32 row = 0; row < left; row++) {
    for (u32 j = 0; j < sums; j++) {
      const u32 other = l.order[j];
      // All threads see the same: nothing is written until they have met.
      if (!psi_has(l, row, l.pivots[j])) continue;
      BLOCK_BARRIER();
      for (u32 k = threadIdx.x; k < l.words + l.each; k += blockDim.x) {
        if (k < l.words)
          l.bits[row * PSI_BITS + k] ^= l.bits[other * PSI_BITS + k];
        else
          store128(l.parts + row * l.each + k - l.words, xor128(load128(l.parts + row * l.each + k - l.words), load128(l.parts + other * l.each + k - l.words)));
      }
      BLOCK_BARRIER();
    }
    u32 pivot = 0;
    while (pivot < l.names_count && !psi_has(l, row, pivot)) pivot++;
    if (pivot < l.names_count) {
      if (threadIdx.x == 0) l.order[sums] = row, l.pivots[sums] = pivot;
      sums++;
    } else {
      if (threadIdx.x == 0) l.equations[equations] = row;
      equations++;
    }
    BLOCK_BARRIER();
  }
}

// The element whose product with this one is 1: the power 2^128 - 2.
DEV wide psi_inverse(wide a) {
  wide product = POLYVAL_ONE, square = a;
  ROLLED
  for (u32 k = 1; k < 128; k++) square = polyval_mul(square, square), product = polyval_mul(product, square);
  return product;
}

// A sum less what its dense part is of the bin's columns, but for one.
DEV wide psi_less(const psi_bin &b, const psi_left &l, u32 row, u32 from, u32 step, u32 but) {
  wide sum = make_wide(0, 0);
  for (u32 k = from; k < b.dense; k += step)
    if (k != but) sum = wide_xor(sum, polyval_mul(wide_of(load128(l.parts + row * l.each + k)), wide_of(load128(b.columns + b.sparse + k))));
  return sum;
}

// Sets dense columns so that equations hold; whether they can.
DEV bool psi_set_dense(const psi_bin &b, const psi_left &l, u32 equations) {
  for (u32 i = 0; i < equations; i++) {
    uint4 *own = l.parts + l.equations[i] * l.each;
    for (u32 j = 0; j < i; j++) {
      const uint4 *other = l.parts + l.equations[j] * l.each;
      const wide factor = wide_of(load128(own + l.dense[j]));
      BLOCK_BARRIER();
      for (u32 k = threadIdx.x; k < l.each; k += blockDim.x) store128(own + k, xor128(load128(own + k), words_of(polyval_mul(factor, wide_of(load128(other + k))))));
      BLOCK_BARRIER();
    }
    u32 pivot = 0;
    while (pivot < b.dense && psi_equal(load128(own + pivot), make_uint4(0, 0, 0, 0))) pivot++;
    if (pivot == b.dense) return false;
    const wide factor = psi_inverse(wide_of(load128(own + pivot)));
    BLOCK_BARRIER();
    for (u32 k = threadIdx.x; k < l.each; k += blockDim.x) store128(own + k, words_of(polyval_mul(factor, wide_of(load128(own + k)))));
    if (threadIdx.x == 0) l.dense[i] = pivot;
    BLOCK_BARRIER();
  }
  for (u32 i = equations; i-- > 0;) {
    const u32 row = l.equations[i], pivot = l.dense[i];
    const uint4 total = psi_total(b, words_of(psi_less(b, l, row, threadIdx.x, blockDim.x, pivot)));
    if (threadIdx.x == 0) store128(b.columns + b.sparse + pivot, xor128(total, load128(l.parts + row * l.each + b.dense)));
    BLOCK_BARRIER();
  }
  return true;
}

// Sets dense columns, and those of the keys that are left; whether there is a solution.
DEV bool psi_left_over(const psi_bin &b, u32 left) {
  psi_left l = psi_memory(b);
  u32 sums, equations;
  psi_begin(b, l, left);
  psi_eliminate(l, left, sums, equations);
  if (!psi_set_dense(b, l, equations)) return false;
  for (u32 j = threadIdx.x; j < sums; j += blockDim.x) {
    uint4 *value = l.parts + l.order[j] * l.each + b.dense;
    store128(value, xor128(load128(value), words_of(psi_less(b, l, l.order[j], 0, 1, b.dense))));
  }
  BLOCK_BARRIER();
  for (u32 j = sums; j-- > 0;) {
    const u32 row = l.order[j], pivot = l.pivots[j];
    uint4 sum = make_uint4(0, 0, 0, 0);
    for (u32 bit = threadIdx.x; bit < l.names_count; bit += blockDim.x)
      if (bit != pivot && psi_has(l, row, bit)) sum = xor128(sum, load128(b.columns + l.names[bit]));
    sum = psi_total(b, sum);
    if (threadIdx.x == 0) store128(b.columns + l.names[pivot], xor128(sum, load128(l.parts + row * l.each + b.dense)));
    BLOCK_BARRIER();
  }
  return true;
}

// Solves a bin whose columns were drawn. All threads of a block come here, and are told the same: KEYS_SOLVED, KEYS_EQUAL, or KEYS_OPEN if there is no solution.
DEV u32 psi_solved(const psi_bin &b) {
  u32 turns;
  const u32 taken = psi_peel(b, turns);
  if (taken < b.count) {
    bool equal;
    const u32 left = psi_listed(b, equal);
    if (equal) return KEYS_EQUAL;
    if (left > PSI_MOST_LEFT || !psi_left_over(b, left)) return KEYS_OPEN;
  }
  for (u32 t = threadIdx.x; t < taken; t += blockDim.x) {
    const u32 key = b.taken[2 * t + 1];
    const uint4 entry = load128(b.entries + key);
    store128(b.rests + key, xor128(psi_value(b, entry), words_of(psi_dense(psi_factor(b, entry), b.columns + b.sparse, b.dense))));
  }
  BLOCK_BARRIER();
  for (u32 turn = turns; turn-- > 0;) {
    for (u32 t = (turn ? b.ends[turn - 1] : 0) + threadIdx.x; t < b.ends[turn]; t += blockDim.x) {
      const u32 column = b.taken[2 * t], key = b.taken[2 * t + 1];
      const uint4 entry = load128(b.entries + key);
      uint4 value = load128(b.rests + key);
      UNROLL
      for (u32 i = 0; i < 3; i++)
        if (psi_column(entry, i) != column) value = xor128(value, load128(b.columns + psi_column(entry, i)));
      store128(b.columns + column, value);
    }
    BLOCK_BARRIER();
  }
  return KEYS_SOLVED;
}
