// What a GPU can do at most, measured where figures are compared with it: chains of one instruction, eight of them in a thread so that none waits for
// itself. A round is sixteen steps of each chain. All threads write what they come to, so that nothing is left out.
#include "../include/language.h"

static constexpr u32 RATE_CHAINS = 8;
static constexpr u32 RATE_STEPS = 16;
// Rows of a table in shared memory, a word for each lane.
static constexpr u32 RATE_ROWS = 64;

DEV void rate_end(u32 *out, const u32 *x) {
  u32 sum = 0;
  UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) sum += x[k];
  out[FIRST_OF_GRID] = sum;
}

// PRMT. `by` is no constant for the compiler.
KERNEL void rate_prmt(u32 *out, u32 rounds, u32 by) {
  u32 x[RATE_CHAINS];
  UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) x[k] = threadIdx.x * 0x01030507 + k;
  ROLLED for (u32 round = 0; round < rounds; round++)
    UNROLL for (u32 step = 0; step < RATE_STEPS; step++)
      UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) x[k] = byte_perm(x[k], x[(k + 1) % RATE_CHAINS], by);
  rate_end(out, x);
}

// LOP3: majorities, no two of which are one instruction.
KERNEL void rate_lop3(u32 *out, u32 rounds, u32 by) {
  u32 x[RATE_CHAINS];
  UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) x[k] = threadIdx.x * 0x01030507 + k;
  ROLLED for (u32 round = 0; round < rounds; round++)
    UNROLL for (u32 step = 0; step < RATE_STEPS; step++)
      UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) x[k] = lop3<0xe8>(x[k], x[(k + 1) % RATE_CHAINS], by);
  rate_end(out, x);
}

// LDS: each word of a lane says where its next one is, in the same bank.
KERNEL void rate_lds(u32 *out, u32 rounds, u32 by) {
  SHARED(u32, words, 32 * RATE_ROWS);
  for (u32 k = threadIdx.x; k < 32 * RATE_ROWS; k += blockDim.x) words[k] = 4 * ((k / 32 * by + 1) % RATE_ROWS * 32 + k % 32);
  BLOCK_BARRIER();
  u32 x[RATE_CHAINS];
  UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) x[k] = 4 * ((threadIdx.x / 32 + k) % RATE_ROWS * 32 + threadIdx.x % 32);
  const char *const bytes = reinterpret_cast<const char *>(words);
  ROLLED for (u32 round = 0; round < rounds; round++)
    UNROLL for (u32 step = 0; step < RATE_STEPS; step++)
      UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) x[k] = *reinterpret_cast<const u32 *>(bytes + x[k]);
  rate_end(out, x);
}

// Products of bytes by tensor cores: MMA_U8, each of whose 32 lanes has part in 4096 products. The bytes of `by` are all of both matrices.
KERNEL void rate_mma(u32 *out, u32 rounds, u32 by) {
  u32 x[RATE_CHAINS][4];
  const u32 a[4] = {by, by, by, by}, b[2] = {by, by};
  UNROLL for (u32 k = 0; k < RATE_CHAINS; k++)
    UNROLL for (u32 e = 0; e < 4; e++) x[k][e] = threadIdx.x * 0x01030507 + k + e;
  ROLLED for (u32 round = 0; round < rounds; round++)
    UNROLL for (u32 step = 0; step < RATE_STEPS; step++)
      UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) MMA_U8(x[k], a, b);
  u32 sums[RATE_CHAINS];
  UNROLL for (u32 k = 0; k < RATE_CHAINS; k++) sums[k] = x[k][0] + x[k][1] + x[k][2] + x[k][3];
  rate_end(out, sums);
}
