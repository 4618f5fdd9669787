// Products of matrices of shares: sums of products of a form, with the masks of one product. Tensor cores multiply bytes: an element is 4, 8 or 16 of them,
// its limbs, and limbs i and j of two elements count in the product where i + j is less than that. Limb products with one sum of i and j, a diagonal, are
// added up in 32 bits. All but the last four diagonals need more bits than that, and may have no more terms than matmul_steps says; the others wrap.
//
// Three kernels one after the other: sums of components are packed as lanes take them, packed tiles are multiplied, masks are added. The first two are
// launched for each block of the matrices, whose packed sums fit the memory apart from the workspace (`temps`). There are terms, too: of each cross term, each
// column and each row the sum of products, before masks.
//
// Packed, a matrix is fragments: 16 rows by 32 terms of a limb are 512 bytes, sixteen for each lane, as `a` of MMA_U8 is; of the right matrix 32 terms by 16
// columns, two of its `b`. They lie [product of sums][step of 32 terms][sixteen rows or columns][limb][lane]. Beyond the edges there are zeros.
#include "../aes/aes.h"
#include "../include/ring.h"

// Of a command: rows and columns of the product, terms of an element, ring, whether the left matrix is transposed, components, counters of a column of the
// product, whether each element has a block of its own; where terms are, bytes of a column of them; the form [14] and its draws [6][3] as of programs
// (program.cu); then where columns are: of the left matrix and of the right one [column][component], of the product three components and three messages
// [which][column], which is no place if there is none.
enum Matrices { MATMUL_TERMS = 8, MATMUL_PITCH = 9, MATMUL_FORM = 10, MATMUL_DRAWS = 24, MATMUL_COLUMNS = 42 };
// Of a block: its first row, column and term, and how many there are; where packed matrices are; how many parts of its terms are added up apart; bytes of
// terms that are to be zero; where terms are, bytes of a column, bytes of a cross term; how many products of sums and how many runs of them, which are
// added up together; of each product the components of its left and of its right sum, bit by bit; of each run its first product, products and targets, a
// byte for each target: cross term, and 0x80 if it is taken away.
enum Blocks {
  BLOCK_FIRST,  // row, column, term
  BLOCK_COUNT = 3,
  BLOCK_LEFT = 6,
  BLOCK_RIGHT,
  BLOCK_PARTS,
  BLOCK_CLEAR,
  BLOCK_TERMS,
  BLOCK_PITCH,
  BLOCK_CROSS,
  BLOCK_PRODUCTS,
  BLOCK_RUNS,
  BLOCK_SUMS,  // left and right of each product, then of each run four numbers
};
enum Fragments { FRAGMENT = 512, FRAGMENT_ROWS = 16, FRAGMENT_TERMS = 32, TILE_BAND = 8 };

// Sums of components.

// A word of each of four values becomes a word of each of their bytes.
DEV void transpose_bytes(const u32 (&v)[4], u32 (&out)[4]) {
  const u32 a = byte_perm(v[0], v[1], 0x5140), b = byte_perm(v[2], v[3], 0x5140);
  const u32 c = byte_perm(v[0], v[1], 0x7362), d = byte_perm(v[2], v[3], 0x7362);
  out[0] = byte_perm(a, b, 0x5410), out[1] = byte_perm(a, b, 0x7632);
  out[2] = byte_perm(c, d, 0x5410), out[3] = byte_perm(c, d, 0x7632);
}

template <u32 LIMBS> DEV wide matmul_element(const u8 *column, u64 cell) {
  if (LIMBS == 4) return make_wide(reinterpret_cast<const u32 *>(column)[cell], 0);
  return load_element(column, LIMBS == 8 ? Z64 : Z128, cell);
}

template <u32 LIMBS> DEV void matmul_pack(u8 *bank, u8 *temps, const u64 *call, const u64 *block) {
  const u64 parts = call[5], steps = (block[BLOCK_COUNT + 2] + FRAGMENT_TERMS - 1) / FRAGMENT_TERMS;
  const u64 tall = (block[BLOCK_COUNT] + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS, broad = (block[BLOCK_COUNT + 1] + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS;
  const u64 of_left = block[BLOCK_PRODUCTS] * steps * tall * 32, all = of_left + block[BLOCK_PRODUCTS] * steps * broad * 32;
  const u64 *left = call + MATMUL_COLUMNS, *right = left + (call[4] ? call[0] : call[2]) * parts;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u32 side = k < of_left ? 0 : 1, lane = u32(k) & 31, g = lane >> 2, t = lane & 3;
    const u64 fragment = (k - (side ? of_left : 0)) >> 5, across = side ? broad : tall;
    const u64 tile = fragment % across, step = fragment / across % steps, product = fragment / across / steps;
    const u32 sum = u32(block[BLOCK_SUMS + 2 * product + side]);
    // A column of the left matrix is one of its terms, unless it is transposed.
    const u64 *columns = side ? right : left;
    const bool by_term = !side && !call[4];
    u32 words[LIMBS][4];
    UNROLL
    for (u32 r = 0; r < 4; r++) {
      const u64 in_block = tile * FRAGMENT_ROWS + g + 8 * (r & 1), row = block[BLOCK_FIRST + side] + in_block;
      wide sums[4];
      bool there[4];
      u64 terms[4];
      UNROLL
      for (u32 j = 0; j < 4; j++) {
        const u64 term = step * FRAGMENT_TERMS + 4 * t + 16 * (r >> 1) + j;
        sums[j] = make_wide(0, 0);
        there[j] = in_block < block[BLOCK_COUNT + side] && term < block[BLOCK_COUNT + 2];
        terms[j] = block[BLOCK_FIRST + 2] + term;
      }
      // Four loads at a time are on their way.
      UNROLL
      for (u32 part = 0; part < 3; part++) {
        if (!(sum >> part & 1)) continue;
        u64 at[4];
        UNROLL for (u32 j = 0; j < 4; j++) at[j] = there[j] ? columns[(by_term ? terms[j] : row) * parts + part] : 0;
        UNROLL for (u32 j = 0; j < 4; j++)
          if (there[j]) sums[j] = wide_add(sums[j], matmul_element<LIMBS>(bank + at[j], by_term ? row : terms[j]));
      }
      u32 values[LIMBS / 4][4];
      UNROLL
      for (u32 j = 0; j < 4; j++) {
        values[0][j] = u32(sums[j].lo);
        if (LIMBS > 4) values[1 % (LIMBS / 4)][j] = u32(sums[j].lo >> 32);
        if (LIMBS > 8) values[2 % (LIMBS / 4)][j] = u32(sums[j].hi), values[3 % (LIMBS / 4)][j] = u32(sums[j].hi >> 32);
      }
      UNROLL
      for (u32 word = 0; word < LIMBS / 4; word++) {
        u32 limbs[4];
        transpose_bytes(values[word], limbs);
        UNROLL
        for (u32 limb = 0; limb < 4; limb++) words[4 * word + limb][r] = limbs[limb];
      }
    }
    u8 *to = temps + block[BLOCK_LEFT + side] + fragment * LIMBS * FRAGMENT + 16 * lane;
    UNROLL
    for (u32 limb = 0; limb < LIMBS; limb++) {
      const u32 *of = words[limb];
      store128(reinterpret_cast<uint4 *>(to + limb * FRAGMENT), make_uint4(of[0], side ? of[2] : of[1], side ? of[1] : of[2], of[3]));
    }
  }
}

KERNEL void LAUNCH_BOUNDS(256, 2)
    device_matmul_pack(u8 *bank, u8 *temps, const u64 *__restrict__ call, const u64 *__restrict__ block, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 clear = block[BLOCK_CLEAR] / 16;
  uint4 *terms = reinterpret_cast<uint4 *>(temps + block[BLOCK_TERMS]);
  for (u64 k = FIRST_OF_GRID; k < clear; k += STEP_OF_GRID) store128(terms + k, make_uint4(0, 0, 0, 0));
  if (call[3] == Z32) matmul_pack<4>(bank, temps, call, block);
  if (call[3] == Z64) matmul_pack<8>(bank, temps, call, block);
  if (call[3] == Z128) matmul_pack<16>(bank, temps, call, block);
}

// Products of tiles. A warp has 16 * MT rows and 16 * NT columns of the product, with all diagonals in registers; warps of a block lie beside one another, up to
// ACROSS of them, and then below. They share the fragments of a step in shared memory, where those of STAGES - 1 steps are on their way meanwhile.

// Steps whose products fit a diagonal that counts with more than 32 bits: the last of these has LIMBS - 4 limb products of a term.
template <u32 LIMBS> DEV u64 matmul_steps() {
  return LIMBS == 4 ? ~0u : u64(~0u) / ((LIMBS > 4 ? LIMBS - 4 : 1) * 255u * 255u) / FRAGMENT_TERMS;
}

// A sum of a diagonal in its place.
DEV wide matmul_place(u32 sum, u32 by) {
  if (by >= 64) return make_wide(0, u64(sum) << (by - 64));
  return make_wide(u64(sum) << by, by > 32 ? sum >> (64 - by) : 0);
}

// Adds to an element of the terms.
template <u32 LIMBS> DEV void matmul_add(u8 *to, wide v) {
  u64 *words = reinterpret_cast<u64 *>(to);
  if (LIMBS == 4) atomic_add(reinterpret_cast<u32 *>(to), u32(v.lo));
  if (LIMBS == 8) atomic_add64(words, v.lo);
  if (LIMBS == 16) {
    const u64 old = atomic_add64(words, v.lo);
    atomic_add64(words + 1, v.hi + (old + v.lo < old));
  }
}

template <u32 LIMBS, u32 MT, u32 NT, u32 ACROSS, u32 STAGES> DEV void matmul_tiles(u8 *temps, const u64 *block, uint4 *shared) {
  constexpr u32 EACH = LIMBS * 32;   // pieces of sixteen bytes of sixteen rows
  constexpr u32 DOWN = 8 / ACROSS;  // of a block of 256 threads
  const u32 warp = threadIdx.x >> 5, warps = blockDim.x >> 5, lane = threadIdx.x & 31;
  const u32 across = warps < ACROSS ? warps : ACROSS, down = warps / across;
  const u32 own_row = warp / across, own_column = warp % across;
  const u32 stage = (down * MT + across * NT) * EACH;
  const u64 steps = (block[BLOCK_COUNT + 2] + FRAGMENT_TERMS - 1) / FRAGMENT_TERMS, splits = block[BLOCK_PARTS];
  const u64 tall = (block[BLOCK_COUNT] + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS, broad = (block[BLOCK_COUNT + 1] + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS;
  const u64 rows = (tall + down * MT - 1) / (down * MT), columns = (broad + across * NT - 1) / (across * NT);
  const uint4 *left = reinterpret_cast<const uint4 *>(temps + block[BLOCK_LEFT]), *right = reinterpret_cast<const uint4 *>(temps + block[BLOCK_RIGHT]);
  for (u64 item = blockIdx.x; item < rows * columns * splits; item += gridDim.x) {
    // Blocks that run at once have tiles of a few rows and of many columns: what they bring is in the cache for all of them.
    const u64 split = item / (rows * columns), tile = item % (rows * columns), band = tile / (TILE_BAND * columns) * TILE_BAND;
    const u64 height = rows - band < TILE_BAND ? rows - band : u64(TILE_BAND), in_band = tile - band * columns;
    const u64 top = (band + in_band % height) * down * MT, side = in_band / height * across * NT;
    const u32 of_left = u32(tall - top < down * MT ? tall - top : down * MT) * EACH;
    const u32 of_right = u32(broad - side < across * NT ? broad - side : across * NT) * EACH;
    const bool idle = own_row >= down || top + own_row * MT >= tall || side + own_column * NT >= broad;
    // A whole tile of a whole block has as many pieces for each thread.
    const bool whole = blockDim.x == 256 && of_left == DOWN * MT * EACH && of_right == ACROSS * NT * EACH;
    // Fragments of a step, counted over the steps of all products.
    const auto bring = [&](u64 at, u32 slot) {
      uint4 *to = shared + slot * stage + threadIdx.x;
      const uint4 *of_rows = left + (at * tall + top) * EACH + threadIdx.x, *of_columns = right + (at * broad + side) * EACH + threadIdx.x;
      if (whole) {
        UNROLL for (u32 k = 0; k < DOWN * MT * EACH; k += 256) copy_async(to + k, of_rows + k);
        UNROLL for (u32 k = 0; k < ACROSS * NT * EACH; k += 256) copy_async(to + DOWN * MT * EACH + k, of_columns + k);
      } else {
        ROLLED for (u32 k = 0; k + threadIdx.x < of_left; k += blockDim.x) copy_async(to + k, of_rows + k);
        to += down * MT * EACH;
        ROLLED for (u32 k = 0; k + threadIdx.x < of_right; k += blockDim.x) copy_async(to + k, of_columns + k);
      }
    };
    for (u64 run = 0; run < block[BLOCK_RUNS]; run++) {
      const u64 *targets = block + BLOCK_SUMS + 2 * block[BLOCK_PRODUCTS] + 4 * run;
      const u64 all = targets[1] * steps, begin = targets[0] * steps, end = begin + all * (split + 1) / splits;
      for (u64 first = begin + all * split / splits; first < end; first += matmul_steps<LIMBS>()) {
        const u64 count = end - first < matmul_steps<LIMBS>() ? end - first : matmul_steps<LIMBS>();
        u32 sums[MT][2 * NT][LIMBS][4];
        UNROLL for (u32 m = 0; m < MT; m++)
          UNROLL for (u32 n = 0; n < 2 * NT; n++)
            UNROLL for (u32 s = 0; s < LIMBS; s++)
              UNROLL for (u32 e = 0; e < 4; e++) sums[m][n][s][e] = 0;
        // Of what was there before, all warps have read all.
        BLOCK_BARRIER();
        UNROLL
        for (u32 k = 0; k < STAGES - 1; k++) {
          if (k < count) bring(first + k, k);
          copy_group();
        }
        u32 slot = 0;
        ROLLED
        for (u64 step = 0; step < count; step++) {
          copy_wait<STAGES - 2>();
          BLOCK_BARRIER();
          const uint4 *a_at = shared + slot * stage + own_row * MT * EACH + lane;
          const uint4 *b_at = shared + slot * stage + (down * MT + own_column * NT) * EACH + lane;
          uint4 b[NT][LIMBS];
          UNROLL for (u32 n = 0; n < NT; n++)
            UNROLL for (u32 j = 0; j < LIMBS; j++) b[n][j] = load128(b_at + n * EACH + j * 32);
          // While these are on their way.
          if (step + STAGES - 1 < count) bring(first + step + STAGES - 1, slot == 0 ? STAGES - 1 : slot - 1);
          copy_group();
          if (!idle) {
            UNROLL
            for (u32 i = 0; i < LIMBS; i++) {
              UNROLL
              for (u32 m = 0; m < MT; m++) {
                const uint4 a = load128(a_at + m * EACH + i * 32);
                const u32 of_a[4] = {a.x, a.y, a.z, a.w};
                UNROLL for (u32 j = 0; j + i < LIMBS; j++)
                  UNROLL for (u32 n = 0; n < NT; n++) {
                    const u32 low[2] = {b[n][j].x, b[n][j].y}, high[2] = {b[n][j].z, b[n][j].w};
                    MMA_U8(sums[m][2 * n][i + j], of_a, low);
                    MMA_U8(sums[m][2 * n + 1][i + j], of_a, high);
                  }
              }
            }
          }
          slot = slot + 1 == STAGES ? 0 : slot + 1;
        }
        if (idle) continue;
        UNROLL for (u32 m = 0; m < MT; m++)
          UNROLL for (u32 n = 0; n < 2 * NT; n++)
            UNROLL for (u32 e = 0; e < 4; e++) {
              const u64 row = (top + own_row * MT + m) * FRAGMENT_ROWS + (lane >> 2) + 8 * (e >> 1);
              const u64 column = (side + own_column * NT) * FRAGMENT_ROWS + 8 * n + 2 * (lane & 3) + (e & 1);
              wide sum = make_wide(0, 0);
              UNROLL for (u32 s = 0; s < LIMBS; s++) sum = wide_add(sum, matmul_place(sums[m][n][s][e], 8 * s));
              if (row < block[BLOCK_COUNT] && column < block[BLOCK_COUNT + 1]) {
                u8 *to = temps + block[BLOCK_TERMS] + (block[BLOCK_FIRST + 1] + column) * block[BLOCK_PITCH] + (block[BLOCK_FIRST] + row) * LIMBS;
                for (u32 k = 0; k < targets[2]; k++) {
                  const u32 target = u32(targets[3] >> (8 * k)) & 0xff;
                  matmul_add<LIMBS>(to + (target & 0x7f) * block[BLOCK_CROSS], target & 0x80 ? wide_sub(make_wide(0, 0), sum) : sum);
                }
              }
            }
      }
    }
  }
}

#define MATMUL_SHARED 6144  // sixteen bytes each: of a step 1536, 2048 or 3072
KERNEL void LAUNCH_BOUNDS(256, 1) device_matmul_z32(u8 *temps, const u64 *__restrict__ block, const u32 *__restrict__ verdict) {
  SHARED_DYNAMIC(uint4, shared, MATMUL_SHARED);
  if (verdict[0]) return;
  matmul_tiles<4, 2, 2, 2, 4>(temps, block, shared);
}
KERNEL void LAUNCH_BOUNDS(256, 1) device_matmul_z64(u8 *temps, const u64 *__restrict__ block, const u32 *__restrict__ verdict) {
  SHARED_DYNAMIC(uint4, shared, MATMUL_SHARED);
  if (verdict[0]) return;
  matmul_tiles<8, 2, 1, 4, 3>(temps, block, shared);
}
KERNEL void LAUNCH_BOUNDS(256, 1) device_matmul_z128(u8 *temps, const u64 *__restrict__ block, const u32 *__restrict__ verdict) {
  SHARED_DYNAMIC(uint4, shared, MATMUL_SHARED);
  if (verdict[0]) return;
  matmul_tiles<16, 1, 1, 2, 2>(temps, block, shared);
}

// Masks, and components that are sums. A thread has sixteen bytes of a column of the product.

DEV uint4 matmul_sum(u32 ring, uint4 a, uint4 b, bool minus) {
  if (ring == Z32) return minus ? ring_sub<Z32>(a, b) : ring_add<Z32>(a, b);
  if (ring == Z64) return minus ? ring_sub<Z64>(a, b) : ring_add<Z64>(a, b);
  return minus ? ring_sub<Z128>(a, b) : ring_add<Z128>(a, b);
}

// Sixteen bytes of a draw for a column: a block of the cipher, or the first bytes of a block for each element.
DEV uint4 matmul_drawn(const u64 *call, u32 draw, u64 column, u64 group, u32 width, const u32 *table, u32 lane4, const u32 *schedules) {
  const u64 *of = call + MATMUL_DRAWS + 3 * draw;
  const u64 elements = 16 / width;
  uint4 all = make_uint4(0, 0, 0, 0);
  for (u32 k = 0; k < (call[7] ? elements : 1); k++) {
    const u64 block = call[7] ? column * call[0] + group * elements + k : column * call[6] + group;
    const uint4 one = prf_block(table, lane4, schedules + of[0], of[1] + block, u32(of[2]), u32(of[2] >> 32));
    if (!call[7] || elements == 1) all = one;
    else if (elements == 2) all = k ? make_uint4(all.x, all.y, one.x, one.y) : one;
    else all = make_uint4(k == 0 ? one.x : all.x, k == 1 ? one.x : all.y, k == 2 ? one.x : all.z, k == 3 ? one.x : all.w);
  }
  return all;
}

KERNEL void LAUNCH_BOUNDS(512, 1) device_matmul_end(u8 *bank, u8 *temps, const u64 *__restrict__ call, const u32 *__restrict__ verdict,
                                                    const u32 *__restrict__ schedules) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  if (verdict[0]) return;
  aes_fill(table);
  BLOCK_BARRIER();
  const u32 ring = u32(call[3]), width = ring == Z32 ? 4 : ring == Z64 ? 8 : 16, lane4 = (threadIdx.x & 31) * 4;
  const u64 columns = call[1], bytes = call[0] * width, groups = (bytes + 15) / 16;
  const u64 left = call[4] ? call[0] : call[2];
  const u64 *product = call + MATMUL_COLUMNS + (left + columns) * call[5], *form = call + MATMUL_FORM;
  for (u64 item = FIRST_OF_GRID; item < columns * groups; item += STEP_OF_GRID) {
    const u64 column = item / groups, group = item % groups, there = bytes - 16 * group;
    uint4 drawn[6];
    for (u32 d = 0; d < u32(form[1]); d++) drawn[d] = matmul_drawn(call, d, column, group, width, table, lane4, schedules);
    uint4 components[3];
    for (u32 p = 0; p < 3; p++) components[p] = make_uint4(0, 0, 0, 0);
    for (u32 c = 0; c < u32(form[2]); c++) {
      const u64 *cross = form + 5 + 3 * c;
      const u32 masks = u32(cross[0] >> 8) & 0xff, to = u32(cross[0] >> 16) & 0xff;
      uint4 sum = load128(reinterpret_cast<const uint4 *>(temps + call[MATMUL_TERMS] + (c * columns + column) * call[MATMUL_PITCH] + 16 * group));
      for (u32 k = 0; k < masks; k++) {
        const u32 mask = u32(cross[2] >> (8 * k)) & 0xff;
        sum = matmul_sum(ring, sum, drawn[mask & 0x7f], mask & 0x80);
      }
      components[to] = matmul_sum(ring, components[to], sum, false);
      const u64 at = product[(3 + c) * columns + column];
      if (at != ~0ull) store_part(bank + at + 16 * group, there, sum);
    }
    for (u32 k = 0; k < u32(form[3]); k++) {
      const u32 kept = u32(form[4] >> (8 * k)) & 0xff;
      components[kept & 15] = matmul_sum(ring, components[kept & 15], drawn[kept >> 4], false);
    }
    for (u32 p = 0; p < 3; p++) {
      const u64 at = product[p * columns + column];
      if (at != ~0ull) store_part(bank + at + 16 * group, there, components[p]);
    }
  }
}
