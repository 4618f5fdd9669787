// Products of matrices of shares: sums of products of a form, with the masks of one product. A block has a tile of 32 rows and a column for each of its warps,
// and brings the terms of sixteen columns of the left matrix, and of sixteen rows of the right one, into shared memory at a time.
//
// call: rows and columns of the product, terms of an element, ring, whether the left matrix is transposed, components, counters of a column of the product,
// whether each element has a block of its own; the form [14] and its draws [6][3] as of programs (program.cu); then where columns are: of the left matrix and of
// the right one [column][component], of the product three components and three messages [which][column], which is no place if there is none.
#include "../aes/aes.h"
#include "../include/ring.h"

enum Matrices { MATMUL_FORM = 8, MATMUL_DRAWS = 22, MATMUL_COLUMNS = 40, MATMUL_PARTS = 3, MATMUL_TERMS = 16, MATMUL_ROWS = 32, MATMUL_WARPS = 8 };

DEV void matmul_tile(u8 *bank, const u64 *call, u64 row, u64 column, const wide terms[3], const u32 *table, u32 lane4, const u32 *schedules) {
  const u32 ring = u32(call[3]);
  const u64 rows = call[0], columns = call[1], element = ring == Z64 ? 8 : 16;
  const u64 left = call[4] ? rows : call[2];
  const u64 *product = call + MATMUL_COLUMNS + (left + columns) * call[5];
  const u64 *form = call + MATMUL_FORM;
  const u64 block = call[7] ? column * rows + row : column * call[6] + row * element / 16;
  const bool upper = !call[7] && ring == Z64 && (row & 1);
  wide drawn[6];
  UNROLL
  for (u32 d = 0; d < 6; d++) {
    drawn[d] = make_wide(0, 0);
    if (d >= form[1]) continue;
    const u64 *draw = call + MATMUL_DRAWS + 3 * d;
    const wide both = wide_of(prf_block(table, lane4, schedules + draw[0], draw[1] + block, u32(draw[2]), u32(draw[2] >> 32)));
    drawn[d] = upper ? make_wide(both.hi, 0) : both;
  }
  wide components[3];
  for (u32 p = 0; p < 3; p++) components[p] = make_wide(0, 0);
  for (u32 c = 0; c < u32(form[2]); c++) {
    const u64 *cross = form + 5 + 3 * c;
    const u32 masks = u32(cross[0] >> 8) & 0xff, to = u32(cross[0] >> 16) & 0xff;
    wide sum = terms[c];
    for (u32 k = 0; k < masks; k++) {
      const u32 mask = u32(cross[2] >> (8 * k)) & 0xff;
      sum = mask & 0x80 ? wide_sub(sum, drawn[mask & 0x7f]) : wide_add(sum, drawn[mask]);
    }
    components[to] = wide_add(components[to], sum);
    const u64 at = product[(3 + c) * columns + column];
    if (at != ~0ull) store_element(bank + at, ring, row, sum);
  }
  for (u32 k = 0; k < u32(form[3]); k++) {
    const u32 kept = u32(form[4] >> (8 * k)) & 0xff;
    components[kept & 15] = wide_add(components[kept & 15], drawn[kept >> 4]);
  }
  for (u32 p = 0; p < 3; p++) {
    const u64 at = product[p * columns + column];
    if (at != ~0ull) store_element(bank + at, ring, row, components[p]);
  }
}

KERNEL void LAUNCH_BOUNDS(256, 1)
    device_matmul(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict, const u32 *__restrict__ schedules) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  SHARED(wide, left, MATMUL_PARTS * MATMUL_TERMS * MATMUL_ROWS);
  SHARED(wide, right, MATMUL_PARTS * MATMUL_TERMS * MATMUL_WARPS);
  if (verdict[0]) return;
  aes_fill(table);
  const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5, ring = u32(call[3]);
  const u64 rows = call[0], columns = call[1], inner = call[2], parts = call[5];
  const u64 *of_left = call + MATMUL_COLUMNS, *of_right = of_left + (call[4] ? rows : inner) * parts;
  const u64 *form = call + MATMUL_FORM;
  const u64 across = (rows + MATMUL_ROWS - 1) / MATMUL_ROWS, tiles = across * ((columns + warps - 1) / warps);
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const u64 first_row = tile % across * MATMUL_ROWS, first_column = tile / across * warps;
    wide terms[3];
    for (u32 c = 0; c < 3; c++) terms[c] = make_wide(0, 0);
    for (u64 first = 0; first < inner; first += MATMUL_TERMS) {
      // Of the tile before, all threads have read what is there.
      BLOCK_BARRIER();
      for (u32 t = threadIdx.x; t < parts * MATMUL_TERMS * MATMUL_ROWS; t += blockDim.x) {
        const u64 part = t / (MATMUL_TERMS * MATMUL_ROWS), row = first_row + t % MATMUL_ROWS, term = first + t / MATMUL_ROWS % MATMUL_TERMS;
        const bool there = row < rows && term < inner;
        const u64 column = call[4] ? row : term, cell = call[4] ? term : row;
        left[t] = there ? load_element(bank + of_left[column * parts + part], ring, cell) : make_wide(0, 0);
      }
      for (u32 t = threadIdx.x; t < parts * MATMUL_TERMS * warps; t += blockDim.x) {
        const u64 part = t / (MATMUL_TERMS * warps), column = first_column + t % warps, term = first + t / warps % MATMUL_TERMS;
        const bool there = column < columns && term < inner;
        right[t] = there ? load_element(bank + of_right[column * parts + part], ring, term) : make_wide(0, 0);
      }
      BLOCK_BARRIER();
      for (u32 c = 0; c < u32(form[2]); c++) {
        const u64 *cross = form + 5 + 3 * c;
        for (u32 k = 0; k < (u32(cross[0]) & 0xff); k++) {
          const u32 pair = u32(cross[1] >> (8 * k)) & 0xff;
          const wide *a = left + (pair >> 4) * MATMUL_TERMS * MATMUL_ROWS + lane, *b = right + (pair & 15) * MATMUL_TERMS * warps + warp;
          for (u32 at = 0; at < MATMUL_TERMS; at++) terms[c] = wide_add(terms[c], wide_mul(a[at * MATMUL_ROWS], b[at * warps]));
        }
      }
    }
    const u64 row = first_row + lane, column = first_column + warp;
    // A product without terms has masks all the same, and the tables of the cipher are there.
    BLOCK_BARRIER();
    if (row < rows && column < columns) matmul_tile(bank, call, row, column, terms, table, lane * 4, schedules);
  }
}
