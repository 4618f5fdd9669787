// Steps of a proof that products of bits are right, as crates/device defines them (proof): what goes through the batch, and what follows from it.
// `sums` are numbers of all threads together, zero before and after each step: sums of products of two polynomials, two numbers each, then keys of weights.
// `call` says where what is in the bank. What the host knows of keys, it says there: masks.
#include "../aes/aes.h"
#include "../include/binary.h"

#define PIECES 32
#define FIRST_PAIRS (PIECES * (PIECES + 1) / 2)
// Where keys are in `sums`: behind the sums of all pairs of pieces.
#define KEYS (2 * FIRST_PAIRS)

DEV u64 element(const u8 *bank, u64 at) { return *reinterpret_cast<const u64 *>(bank + at); }
DEV void put_element(u8 *bank, u64 at, u64 v) { *reinterpret_cast<u64 *>(bank + at) = v; }

DEV void add_xor(u64 *to, wide sum) {
  u32 *words = reinterpret_cast<u32 *>(to);
  atomic_xor(words, u32(sum.lo)), atomic_xor(words + 1, u32(sum.lo >> 32));
  atomic_xor(words + 2, u32(sum.hi)), atomic_xor(words + 3, u32(sum.hi >> 32));
}
// A sum as an element; it is zero after it.
DEV u64 taken(u64 *sums, u32 at) {
  const u64 out = binary_reduce(make_wide(sums[2 * at], sums[2 * at + 1]));
  sums[2 * at] = sums[2 * at + 1] = 0;
  return out;
}

// Elements that the host knows. call: to, how many, elements.
KERNEL void proof_put(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 k = FIRST_OF_GRID; k < call[1]; k += STEP_OF_GRID) put_element(bank, call[0] + 8 * k, call[2 + k]);
}

// Gates: where the trace is, bytes of its components, what was received, bytes of an item, rows, products, words of a product, words of a piece.
enum Gates { TRACED, TRACED_PART, RECEIVED, GATE_BYTES, GATE_ROWS, PRODUCTS, PER_PRODUCT, WORDS, AFTER_GATES };
enum Side { OWN_NEXT, OWN_PREVIOUS, PREVIOUS, NEXT };

// Keys of all words of a piece, behind the sums: a thread makes two. call: gates, seed, the first and the last word of the cipher's input.
KERNEL void LAUNCH_BOUNDS(512, 1) proof_weights(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  if (verdict[0]) return;
  aes_fill(table);
  BLOCK_BARRIER();
  const u64 *own = call + AFTER_GATES;
  const u64 low = element(bank, own[0]), high = element(bank, own[0] + 8);
  for (u64 counter = FIRST_OF_GRID; 2 * counter < call[WORDS]; counter += STEP_OF_GRID) {
    uint4 block[1] = {make_uint4(u32(own[1]), swap_bytes(u32(counter >> 32)), swap_bytes(u32(counter)), u32(own[2]))};
    aes_encrypt_rekeyed<1>(table, (threadIdx.x & 31) * 4, words_of(make_wide(low, high)), block);
    const wide keys = wide_of(block[0]);
    sums[KEYS + 2 * counter] = keys.lo;
    if (2 * counter + 1 < call[WORDS]) sums[KEYS + 2 * counter + 1] = keys.hi;
  }
}
// Keys are used no more. call: gates.
KERNEL void proof_clear(u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 k = FIRST_OF_GRID; k < call[WORDS]; k += STEP_OF_GRID) sums[KEYS + k] = 0;
}

// Where a word of a piece is: its byte in a column of items, how many bytes there are, and which rows of it exist. None if there is no such word.
struct word_place {
  u64 at, bytes, rows;
};
DEV word_place place_of(const u64 *gates, u64 piece, u64 word) {
  const u64 k = piece * gates[WORDS] + word, product = k / gates[PER_PRODUCT], in_product = k % gates[PER_PRODUCT];
  word_place out;
  out.at = out.bytes = out.rows = 0;
  if (product >= gates[PRODUCTS]) return out;
  const u64 left = gates[GATE_BYTES] - 8 * in_product, rows = gates[GATE_ROWS] - 64 * in_product;
  out.at = product * gates[GATE_BYTES] + 8 * in_product;
  out.bytes = left < 8 ? left : 8;
  out.rows = rows < 64 ? (1ull << rows) - 1 : ~0ull;
  return out;
}
DEV u64 word_at(const u8 *bank, u64 column, const word_place &place) {
  return place.rows == 0 ? 0 : wide_of(load_part(bank + column + place.at, place.bytes)).lo & place.rows;
}
DEV u64 traced(const u8 *bank, const u64 *gates, u32 part, const word_place &place) {
  return word_at(bank, gates[TRACED] + part * gates[TRACED_PART], place);
}
// The bits that a side multiplies: a and c, or b and d.
struct factors {
  u64 first, second;
};
DEV factors factors_of(const u8 *bank, const u64 *gates, u32 side, const word_place &place) {
  const u32 first = side == OWN_NEXT ? 0 : side == OWN_PREVIOUS ? 3 : side == PREVIOUS ? 1 : 2;
  const u32 second = side == OWN_NEXT ? 2 : side == OWN_PREVIOUS ? 1 : side == PREVIOUS ? 3 : 0;
  factors out;
  out.first = traced(bank, gates, first, place), out.second = traced(bank, gates, second, place);
  return out;
}

// Claims of all pieces: a thread has a word. call: gates, side.
KERNEL void proof_claims(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 k = FIRST_OF_GRID; k < PIECES * call[WORDS]; k += STEP_OF_GRID) {
    const u64 piece = k / call[WORDS], word = k % call[WORDS];
    const word_place place = place_of(call, piece, word);
    const u64 addend = call[AFTER_GATES] == PREVIOUS ? word_at(bank, call[RECEIVED], place) ^ traced(bank, call, 5, place)
                                                     : traced(bank, call, 4, place) ^ (traced(bank, call, 0, place) & traced(bank, call, 2, place));
    add_xor(sums + 2 * piece, binary_product(addend, sums[KEYS + word]));
  }
}
// call: to.
KERNEL void proof_claims_end(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 t = FIRST_OF_GRID; t < PIECES; t += STEP_OF_GRID) put_element(bank, call[0] + 8 * t, taken(sums, u32(t)));
}

// The pair that is number `at` of the rows of an upper triangle.
DEV void pair_of(u32 at, u32 places, u32 &i, u32 &j) {
  i = 0;
  while (at >= places - i) at -= places - i, i++;
  j = i + at;
}

// Sums of pairs of pieces: each by a thread of every block, which has a part of the words. call: gates.
KERNEL void proof_first(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u32 t = threadIdx.x; t < FIRST_PAIRS; t += blockDim.x) {
    u32 i, j;
    pair_of(t, PIECES, i, j);
    wide sum = make_wide(0, 0);
    for (u64 word = blockIdx.x; word < call[WORDS]; word += gridDim.x) {
      const word_place one = place_of(call, i, word), other = place_of(call, j, word);
      const factors a = factors_of(bank, call, OWN_NEXT, one), b = factors_of(bank, call, OWN_PREVIOUS, other);
      u64 bits = (a.first & b.first) ^ (a.second & b.second);
      if (i != j) {
        const factors c = factors_of(bank, call, OWN_NEXT, other), d = factors_of(bank, call, OWN_PREVIOUS, one);
        bits ^= (c.first & d.first) ^ (c.second & d.second);
      }
      sum = wide_xor(sum, binary_product(bits, sums[KEYS + word]));
    }
    add_xor(sums + 2 * t, sum);
  }
}

// The elements of bit `bit` of a word, and of bit + 32, as values of all pieces' polynomials: of a or b, then of c or d.
DEV void quarters_of(u64 *out, const u8 *bank, const u64 *gates, u32 side, u64 word, u32 bit, const u64 *basis) {
  for (u32 q = 0; q < 4; q++) out[q] = 0;
  for (u32 piece = 0; piece < PIECES; piece++) {
    const factors of = factors_of(bank, gates, side, place_of(gates, piece, word));
    out[0] ^= basis[piece] & (0 - ((of.first >> bit) & 1)), out[1] ^= basis[piece] & (0 - ((of.first >> (bit + 32)) & 1));
    out[2] ^= basis[piece] & (0 - ((of.second >> bit) & 1)), out[3] ^= basis[piece] & (0 - ((of.second >> (bit + 32)) & 1));
  }
}
// Weights of bit `bit`, and of bit + 32, of a word.
DEV void weights_of(u64 *out, u64 key, u32 bit) { out[0] = binary_mul(key, 1ull << bit), out[1] = binary_mul(key, 1ull << (bit + 32)); }

// Sums of pairs of quarters. A thread has a position of each quarter. call: gates, challenge, divisor of 32 places.
KERNEL void proof_second(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u64, basis, PIECES);
  if (verdict[0]) return;
  const u64 *own = call + AFTER_GATES;
  if (threadIdx.x == 0) {
    u64 made[PIECES];
    binary_basis(made, PIECES, element(bank, own[0]), own[1]);
    for (u32 k = 0; k < PIECES; k++) basis[k] = made[k];
  }
  BLOCK_BARRIER();
  for (u64 k = FIRST_OF_GRID; k < 32 * call[WORDS]; k += STEP_OF_GRID) {
    const u64 word = k % call[WORDS];
    const u32 bit = u32(k / call[WORDS]);
    u64 a[4], b[4], weights[2];
    quarters_of(a, bank, call, OWN_NEXT, word, bit, basis), quarters_of(b, bank, call, OWN_PREVIOUS, word, bit, basis);
    weights_of(weights, sums[KEYS + word], bit);
    for (u32 q = 0; q < 4; q++) a[q] = binary_mul(a[q], weights[q & 1]);
    u32 at = 0;
    for (u32 i = 0; i < 4; i++) {
      add_xor(sums + 2 * at++, binary_product(a[i], b[i]));
      for (u32 j = i + 1; j < 4; j++) add_xor(sums + 2 * at++, wide_xor(binary_product(a[i], b[j]), binary_product(a[j], b[i])));
    }
  }
}

// Values after the first two levels: a thread has one. call: gates, side, to, both challenges, divisors of 32 and of 4 places.
KERNEL void proof_expand(u8 *bank, const u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u64, basis, PIECES + 4);
  if (verdict[0]) return;
  const u64 *own = call + AFTER_GATES;
  const u32 side = u32(own[0]);
  if (threadIdx.x == 0) {
    u64 made[PIECES];
    binary_basis(made, PIECES, element(bank, own[2]), own[4]);
    for (u32 k = 0; k < PIECES; k++) basis[k] = made[k];
    binary_basis(made, 4, element(bank, own[3]), own[5]);
    for (u32 k = 0; k < 4; k++) basis[PIECES + k] = made[k];
  }
  BLOCK_BARRIER();
  for (u64 k = FIRST_OF_GRID; k < 32 * call[WORDS]; k += STEP_OF_GRID) {
    const u64 word = k % call[WORDS];
    const u32 bit = u32(k / call[WORDS]);
    u64 quarters[4], weights[2] = {1, 1};
    quarters_of(quarters, bank, call, side, word, bit, basis);
    if (side == OWN_NEXT || side == PREVIOUS) weights_of(weights, sums[KEYS + word], bit);
    wide sum = make_wide(0, 0);
    for (u32 q = 0; q < 4; q++) sum = wide_xor(sum, binary_product(quarters[q], binary_mul(weights[q & 1], basis[PIECES + q])));
    put_element(bank, own[1] + 8 * k, binary_reduce(sum));
  }
}

// Every position's polynomial at a challenge, at the beginning of the vector: what a thread reads, no other writes. call: vector, length, places,
// challenge, divisor.
KERNEL void proof_fold(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u64, basis, 8);
  if (verdict[0]) return;
  if (threadIdx.x == 0) {
    u64 own[8];
    binary_basis(own, u32(call[2]), element(bank, call[3]), call[4]);
    for (u32 k = 0; k < call[2]; k++) basis[k] = own[k];
  }
  BLOCK_BARRIER();
  const u64 n = (call[1] + call[2] - 1) / call[2];
  for (u64 j = FIRST_OF_GRID; j < n; j += STEP_OF_GRID) {
    wide sum = make_wide(0, 0);
    for (u64 i = 0; i < call[2] && i * n + j < call[1]; i++) sum = wide_xor(sum, binary_product(basis[i], element(bank, call[0] + 8 * (i * n + j))));
    put_element(bank, call[0] + 8 * j, binary_reduce(sum));
  }
}

// Sums of pairs of two vectors: each by a thread of every block, which has a part of the positions. call: vectors, length, places.
KERNEL void proof_pairs(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 length = call[2], places = call[3], n = (length + places - 1) / places;
  for (u32 t = threadIdx.x; t < places * (places + 1) / 2; t += blockDim.x) {
    u32 i, j;
    pair_of(t, u32(places), i, j);
    const u64 one = i * n, other = j * n;
    wide sum = make_wide(0, 0);
    for (u64 k = blockIdx.x; k < n; k += gridDim.x) {
      if (other + k >= length) continue;
      sum = wide_xor(sum, binary_product(element(bank, call[0] + 8 * (one + k)), element(bank, call[1] + 8 * (other + k))));
      if (i != j) sum = wide_xor(sum, binary_product(element(bank, call[0] + 8 * (other + k)), element(bank, call[1] + 8 * (one + k))));
    }
    add_xor(sums + 2 * t, sum);
  }
}

// The values of the last level: what is left, zeros, and a mask.
DEV void last_piece(u64 *piece, const u8 *bank, u64 vector, u64 length, u32 places, u64 mask) {
  for (u32 k = 0; k < places; k++) piece[k] = k < length ? element(bank, vector + 8 * k) : 0;
  piece[places - 1] = mask;
}

// Sums of pairs of the last level, by one thread. call: vectors, length, places, masks of the last place.
KERNEL void proof_last(const u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  u64 a[8], b[8];
  const u32 places = u32(call[3]);
  last_piece(a, bank, call[0], call[2], places, call[4]), last_piece(b, bank, call[1], call[2], places, call[5]);
  u32 at = 0;
  for (u32 i = 0; i < places; i++) {
    for (u32 j = i; j < places; j++, at++) {
      wide sum = binary_product(a[i], b[j]);
      if (i != j) sum = wide_xor(sum, binary_product(a[j], b[i]));
      sums[2 * at] = sum.lo, sums[2 * at + 1] = sum.hi;
    }
  }
}

// The share of a level, by the threads of one block: each has a value. call: to, places, the first place, how many values, divisor, masks.
KERNEL void proof_share(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u64, pairs, FIRST_PAIRS);
  if (verdict[0] || blockIdx.x != 0) return;
  const u32 places = u32(call[1]), all = places * (places + 1) / 2;
  for (u32 k = threadIdx.x; k < all; k += blockDim.x) pairs[k] = taken(sums, k);
  BLOCK_BARRIER();
  for (u64 k = threadIdx.x; k < call[3]; k += blockDim.x) {
    u64 basis[PIECES];
    binary_basis(basis, places, call[2] + k, call[4]);
    wide sum = make_wide(0, 0);
    u32 at = 0;
    for (u32 i = 0; i < places; i++) {
      wide row = make_wide(0, 0);
      for (u32 j = i; j < places; j++) row = wide_xor(row, binary_product(basis[j], pairs[at++]));
      sum = wide_xor(sum, binary_product(basis[i], binary_reduce(row)));
    }
    put_element(bank, call[0] + 8 * k, binary_reduce(sum) ^ call[5 + k]);
  }
}

DEV u64 binary_dot(const u64 *a, const u64 *b, u32 n) {
  wide sum = make_wide(0, 0);
  for (u32 k = 0; k < n; k++) sum = wide_xor(sum, binary_product(a[k], b[k]));
  return binary_reduce(sum);
}

// call: to, vector, length, places, challenge, mask, divisor.
KERNEL void proof_end(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  u64 piece[8], basis[8];
  const u32 places = u32(call[3]);
  last_piece(piece, bank, call[1], call[2], places, call[5]);
  binary_basis(basis, places, element(bank, call[4]), call[6]);
  put_element(bank, call[0], binary_dot(basis, piece, places));
}

// call: to, claims, how many, share, its values, challenge, how many of them are added to the claim, divisor.
KERNEL void proof_verify(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  u64 values[2 * PIECES], basis[2 * PIECES];
  const u32 claims = u32(call[2]), all = claims + u32(call[4]);
  for (u32 k = 0; k < all; k++) values[k] = k < claims ? element(bank, call[1] + 8 * k) : element(bank, call[3] + 8 * (k - claims));
  for (u32 k = 0; k < call[6]; k++) values[0] ^= values[1 + k];
  binary_basis(basis, all, element(bank, call[5]), call[7]);
  put_element(bank, call[0], binary_dot(basis, values, all));
}

// What both verifiers found, in the same time whatever it is. call: both.
KERNEL void proof_compare(const u8 *bank, const u64 *__restrict__ call, u32 *verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  const u64 product = binary_mul(element(bank, call[0]), element(bank, call[1]));
  const u64 wrong = product ^ element(bank, call[0] + 8) ^ element(bank, call[1] + 8);
  verdict[1] = u32(wrong) | u32(wrong >> 32);
}
