// Steps of a proof that products of bits are right, as crates/device defines them (proof): what goes through the batch, and what follows from it.
// Elements are modulo 2^61 - 1. `sums` are numbers of all threads together, zero before and after each step; `call` says where what is in the bank. What
// the host knows of keys, it says there: masks, and the weights by which values at places are divided.
#include "../include/ring.h"

#define P61 0x1fffffffffffffffull
#define P61_HALF (1ull << 60)
#define PLACES 15

// x, or x - p if that is not negative; of what is below 2 p.
DEV u64 p61_once(u64 x) {
  const u64 less = x - P61;
  return less + ((0 - (less >> 63)) & P61);
}
DEV u64 p61_reduce(u64 x) { return p61_once((x & P61) + (x >> 61)); }
DEV u64 p61_add(u64 a, u64 b) { return p61_once(a + b); }
DEV u64 p61_sub(u64 a, u64 b) { return p61_once(a + P61 - b); }
DEV u64 p61_mul(u64 a, u64 b) {
  const u64 low = a * b, high = multiply_high(a, b);
  return p61_once((low & P61) + (high << 3 | low >> 61));
}
DEV u64 p61_signed(u64 x) {
  const u64 negative = 0 - (x >> 63);
  const u64 low = p61_reduce((x ^ negative) - negative);
  return p61_once((low & ~negative) + ((P61 - low) & negative));
}

DEV u64 element(const u8 *bank, u64 at) { return p61_reduce(*reinterpret_cast<const u64 *>(bank + at)); }
DEV void put_element(u8 *bank, u64 at, u64 v) { *reinterpret_cast<u64 *>(bank + at) = v; }

// The basis polynomials of places 0 to n - 1, at x (Lagrange).
DEV void p61_basis(u64 *basis, u32 n, u64 x, const u64 *weights) {
  u64 before = 1, after = 1;
  for (u32 i = 0; i < n; i++) basis[i] = p61_mul(weights[i], before), before = p61_mul(before, p61_sub(x, i));
  for (u32 i = n; i-- > 0;) basis[i] = p61_mul(basis[i], after), after = p61_mul(after, p61_sub(x, i));
}
DEV u64 p61_dot(const u64 *a, const u64 *b, u32 n) {
  u64 sum = 0;
  for (u32 k = 0; k < n; k++) sum = p61_add(sum, p61_mul(a[k], b[k]));
  return sum;
}

// What the four numbers of a half are multiplied by.
DEV u64 scale_of(bool left, u32 k) { return !left ? 1 : k == 0 ? P61 - 2 : k == 3 ? P61 - P61_HALF : 1; }
// The coefficients of a gate's four numbers in its value after the first level.
DEV void folded(u64 *out, bool left, u64 r, const u64 *weights) {
  p61_basis(out, 4, r, weights);
  for (u32 k = 0; k < 4; k++) out[k] = p61_mul(out[k], scale_of(left, k));
}

// Elements that the host knows. call: to, how many, elements.
KERNEL void proof_put(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 k = FIRST_OF_GRID; k < call[1]; k += STEP_OF_GRID) put_element(bank, call[0] + 8 * k, call[2 + k]);
}

// Gates: where the trace is, bytes of its components, what was received, bytes of an item, rows, products, products of a quarter.
enum Gates { TRACED, TRACED_PART, RECEIVED, GATE_BYTES, GATE_ROWS, PRODUCTS, QUARTER, AFTER_GATES };
enum Side { OWN_NEXT, OWN_PREVIOUS, PREVIOUS, NEXT };

struct gate_half {
  u32 x, y, s;
};

// Three bits of a gate in 32 rows.
DEV gate_half half_of(const u8 *bank, const u64 *gates, u32 side, u64 product, u64 word) {
  const u64 at = product * gates[GATE_BYTES] + 4 * word, left = gates[GATE_BYTES] - 4 * word, bytes = left < 4 ? left : 4;
  const u8 *trace = bank + gates[TRACED] + at;
  const u64 part = gates[TRACED_PART];
  const u32 u = load_part(trace, bytes).x, u1 = load_part(trace + part, bytes).x, w = load_part(trace + 2 * part, bytes).x;
  const u32 w1 = load_part(trace + 3 * part, bytes).x, mask = load_part(trace + 4 * part, bytes).x;
  const u32 mask1 = load_part(trace + 5 * part, bytes).x;
  gate_half out;
  if (side == OWN_NEXT) out.x = u, out.y = w, out.s = (u & w1) ^ (w & u1) ^ mask1 ^ (u1 & w1);
  if (side == OWN_PREVIOUS) out.x = w1, out.y = u1, out.s = mask1 ^ (u1 & w1);
  if (side == PREVIOUS) out.x = u1, out.y = w1, out.s = load_part(bank + gates[RECEIVED] + at, bytes).x ^ mask1;
  if (side == NEXT) out.x = w, out.y = u, out.s = mask ^ (u & w);
  return out;
}
DEV u32 number_of(const gate_half &of, u32 k) { return k == 0 ? of.x & of.y : k == 1 ? of.y : k == 2 ? of.x : ~0u; }

// Sums of signs over gates: 256 of them, each by a thread of every block, which has a part of the gates. call: gates.
KERNEL void proof_counts(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 words = (call[GATE_BYTES] + 3) / 4, all = call[QUARTER] * words;
  for (u32 t = threadIdx.x; t < 256; t += blockDim.x) {
    u64 sum = 0;
    for (u64 k = blockIdx.x; k < all; k += gridDim.x) {
      const u64 word = k % words, i = (t >> 6) * call[QUARTER] + k / words, j = ((t >> 4) & 3) * call[QUARTER] + k / words;
      if (i >= call[PRODUCTS] || j >= call[PRODUCTS]) continue;
      const gate_half left = half_of(bank, call, OWN_NEXT, i, word), right = half_of(bank, call, OWN_PREVIOUS, j, word);
      const u64 rows = call[GATE_ROWS] - 32 * word;
      const u32 there = rows < 32 ? (1u << rows) - 1 : ~0u;
      const u32 product = number_of(left, (t >> 2) & 3) & number_of(right, t & 3) & there;
      sum += count_ones(product) - 2 * u64(count_ones(product & (left.s ^ right.s)));
    }
    atomic_add64(sums + t, sum);
  }
}
// call: to.
KERNEL void proof_counts_end(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 t = FIRST_OF_GRID; t < 256; t += STEP_OF_GRID) {
    put_element(bank, call[0] + 8 * t, p61_signed(sums[t]));
    sums[t] = 0;
  }
}

// Values after the first two levels. A thread has one. call: gates, side, to, challenges, weights of four places.
KERNEL void proof_expand(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u64, table, 16);
  if (verdict[0]) return;
  const u64 *own = call + AFTER_GATES;
  const u32 side = u32(own[0]);
  if (threadIdx.x == 0) {
    u64 inner[4], outer[4];
    folded(inner, side == OWN_NEXT || side == PREVIOUS, element(bank, own[2]), own + 4);
    p61_basis(outer, 4, element(bank, own[3]), own + 4);
    for (u32 k = 0; k < 16; k++) table[k] = p61_mul(inner[k & 3], outer[k >> 2]);
  }
  BLOCK_BARRIER();
  const u64 width = 8 * call[GATE_BYTES], all = call[QUARTER] * width;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 at = k / width, row = k % width;
    u64 sum = 0;
    for (u32 quarter = 0; quarter < 4 && row < call[GATE_ROWS]; quarter++) {
      const u64 product = quarter * call[QUARTER] + at;
      if (product >= call[PRODUCTS]) break;
      const gate_half of = half_of(bank, call, side, product, row / 32);
      const u64 x = (of.x >> (row & 31)) & 1, y = (of.y >> (row & 31)) & 1, s = (of.s >> (row & 31)) & 1;
      const u64 *numbers = table + 4 * quarter;
      u64 value = p61_add(numbers[3], numbers[0] & (0 - (x & y)));
      value = p61_add(value, numbers[1] & (0 - y));
      value = p61_add(value, numbers[2] & (0 - x));
      value ^= (value ^ p61_sub(0, value)) & (0 - s);
      sum = p61_add(sum, value);
    }
    put_element(bank, own[1] + 8 * k, sum);
  }
}

// Every piece's polynomial at a challenge, at the beginning of the vector: what a thread reads, no other writes. call: vector, length, places,
// challenge, weights.
KERNEL void proof_fold(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u64, basis, 8);
  if (verdict[0]) return;
  if (threadIdx.x == 0) {
    u64 own[8];
    p61_basis(own, u32(call[2]), element(bank, call[3]), call + 4);
    for (u32 k = 0; k < call[2]; k++) basis[k] = own[k];
  }
  BLOCK_BARRIER();
  const u64 n = (call[1] + call[2] - 1) / call[2];
  for (u64 j = FIRST_OF_GRID; j < n; j += STEP_OF_GRID) {
    u64 sum = 0;
    for (u64 i = 0; i < call[2] && i * n + j < call[1]; i++) sum = p61_add(sum, p61_mul(basis[i], element(bank, call[0] + 8 * (i * n + j))));
    put_element(bank, call[0] + 8 * j, sum);
  }
}

// Inner products of the pieces of two vectors: each by a thread of every block, which has a part of the places. A sum is of two numbers of 32 bits.
// call: vectors, length, places.
KERNEL void proof_gram(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 length = call[2], places = call[3], n = (length + places - 1) / places;
  for (u32 t = threadIdx.x; t < places * places; t += blockDim.x) {
    const u64 a = t / places * n, b = t % places * n;
    u64 sum = 0;
    for (u64 j = blockIdx.x; j < n; j += gridDim.x)
      if (a + j < length && b + j < length)
        sum = p61_add(sum, p61_mul(element(bank, call[0] + 8 * (a + j)), element(bank, call[1] + 8 * (b + j))));
    atomic_add64(sums + 2 * t, sum & 0xffffffff);
    atomic_add64(sums + 2 * t + 1, sum >> 32);
  }
}

// The piece of the last level: what is left, zeros, and a mask.
DEV void last_piece(u64 *piece, const u8 *bank, u64 vector, u64 length, u32 places, u64 mask) {
  for (u32 k = 0; k < places; k++) piece[k] = k < length ? element(bank, vector + 8 * k) : 0;
  piece[places - 1] = mask;
}

// The share of a level, by one thread. call: what it follows from (0: counts, 1: counts and a challenge, 2: sums of `proof_gram`, 3: last pieces), to,
// places, sources, length, masks of the last pieces, weights of eight places, masks.
KERNEL void proof_share(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  const u32 places = u32(call[2]);
  const u64 *weights = call + 8;
  u64 gram[64];
  if (call[0] == 0) {
    for (u32 at = 0; at < 16; at++) {
      u64 sum = 0;
      for (u32 quarter = 0; quarter < 4; quarter++) sum = p61_add(sum, element(bank, call[3] + 8 * (quarter * 80 + at)));
      gram[at] = p61_mul(scale_of(true, at >> 2), sum);
    }
  } else if (call[0] == 1) {
    u64 left[4], right[4];
    const u64 r = element(bank, call[4]);
    folded(left, true, r, weights), folded(right, false, r, weights);
    for (u32 pair = 0; pair < 16; pair++) {
      gram[pair] = 0;
      for (u32 kl = 0; kl < 16; kl++) {
        const u64 both = p61_mul(left[kl >> 2], right[kl & 3]);
        gram[pair] = p61_add(gram[pair], p61_mul(both, element(bank, call[3] + 8 * (16 * pair + kl))));
      }
    }
  } else if (call[0] == 2) {
    for (u32 t = 0; t < places * places; t++) {
      // 2^32 times what is above.
      const u64 high = p61_mul(p61_reduce(sums[2 * t + 1]), 1ull << 32);
      gram[t] = p61_add(p61_reduce(sums[2 * t]), high);
      sums[2 * t] = sums[2 * t + 1] = 0;
    }
  } else {
    u64 a[8], b[8];
    last_piece(a, bank, call[3], call[5], places, call[6]), last_piece(b, bank, call[4], call[5], places, call[7]);
    for (u32 t = 0; t < places * places; t++) gram[t] = p61_mul(a[t / places], b[t % places]);
  }
  for (u32 x = 0; x < 2 * places - 1; x++) {
    u64 value = 0;
    if (x < places) {
      value = gram[x * places + x];
    } else {
      u64 basis[8];
      p61_basis(basis, places, x, weights);
      for (u32 i = 0; i < places; i++) value = p61_add(value, p61_mul(basis[i], p61_dot(gram + i * places, basis, places)));
    }
    put_element(bank, call[1] + 8 * x, p61_sub(value, call[16 + x]));
  }
}

// call: to, vector, length, places, challenge, mask, weights.
KERNEL void proof_end(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  u64 piece[8], basis[8];
  const u32 places = u32(call[3]);
  last_piece(piece, bank, call[1], call[2], places, call[5]);
  p61_basis(basis, places, element(bank, call[4]), call + 6);
  put_element(bank, call[0], p61_dot(basis, piece, places));
}

// call: claim, share, its values, challenge, how many of them are added, to both, weights.
KERNEL void proof_verify(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  u64 share[PLACES], basis[PLACES], sum = 0;
  const u32 values = u32(call[2]);
  for (u32 k = 0; k < values; k++) share[k] = element(bank, call[1] + 8 * k);
  for (u32 k = 0; k < call[4]; k++) sum = p61_add(sum, share[k]);
  p61_basis(basis, values, element(bank, call[3]), call + 7);
  const u64 claim = element(bank, call[0]);
  put_element(bank, call[5], p61_sub(claim, sum));
  put_element(bank, call[6], p61_dot(basis, share, values));
}

// What both verifiers found, in the same time whatever it is. call: both, how many.
KERNEL void proof_compare(const u8 *bank, const u64 *__restrict__ call, u32 *verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  const u64 differences = call[2] - 2;
  u64 wrong = 0;
  for (u64 k = 0; k < differences; k++) wrong |= p61_add(element(bank, call[0] + 8 * k), element(bank, call[1] + 8 * k));
  const u64 mine = call[0] + 8 * differences, theirs = call[1] + 8 * differences;
  const u64 product = p61_mul(element(bank, mine), element(bank, theirs));
  wrong |= p61_sub(product, p61_add(element(bank, mine + 8), element(bank, theirs + 8)));
  verdict[1] = u32(wrong) | u32(wrong >> 32);
}
