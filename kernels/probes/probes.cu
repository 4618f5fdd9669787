// Kernels that try the emulator: one that is right, and faults that it must find. Tests alone launch them.
#include "../include/language.h"

// Sums of all `count` words, in all ways that threads have to speak to each other: in `out[0]`; how many are odd in `out[1]`. `sums` has a word for
// each block.
KERNEL void probe_sum(const u32 *in, u32 *sums, u32 *out, u32 count) {
  SHARED(u32, warps, 32);
  const u32 k = blockIdx.x * blockDim.x + threadIdx.x;
  u32 sum = k < count ? in[k] : 0;
  const u32 odd = WARP_BALLOT(sum & 1);
  if ((threadIdx.x & 31) == 0) {
    u32 ones = 0;
    for (u32 bit = 0; bit < 32; bit++) ones += (odd >> bit) & 1;
    atomic_add(out + 1, ones);
  }
  for (u32 mask = 16; mask; mask >>= 1) sum += WARP_SHUFFLE_XOR(sum, mask);
  const u32 whole = WARP_SHUFFLE(sum, 0);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = whole;
  BLOCK_BARRIER();
  if (threadIdx.x == 0) {
    sum = 0;
    for (u32 warp = 0; warp < blockDim.x / 32; warp++) sum += warps[warp];
    sums[blockIdx.x] = sum;
  }
  GRID_BARRIER();
  if (k == 0) {
    sum = 0;
    for (u32 block = 0; block < gridDim.x; block++) sum += sums[block];
    out[0] = sum;
  }
}

// Each thread reads what its neighbours on both sides wrote. `barrier` says whether the barrier is there.
KERNEL void probe_neighbours(u32 *out, u32 barrier) {
  SHARED(u32, words, 1024);
  words[threadIdx.x] = threadIdx.x;
  if (barrier) BLOCK_BARRIER();
  const u32 next = threadIdx.x + 1 == blockDim.x ? 0 : threadIdx.x + 1;
  const u32 last = threadIdx.x == 0 ? blockDim.x - 1 : threadIdx.x - 1;
  out[blockIdx.x * blockDim.x + threadIdx.x] = words[next] + words[last];
}

// Threads that do not meet: thread 0 returns, goes to another barrier of the block, or to one of its warp.
KERNEL void probe_diverging(u32 how) {
  if (threadIdx.x == 0) {
    if (how == 0) return;
    if (how == 1) BLOCK_BARRIER();
    if (how == 2) WARP_BARRIER();
  }
  BLOCK_BARRIER();
}

// A product of matrices of bytes, added to words: `a` has 16 rows of 32 bytes, `b` 8 columns of 32, `c` 16 rows of 8 words. Each warp computes it, after the
// fragments of a came through shared memory by copies that are waited for, or not; each warp has a c of its own.
KERNEL void probe_matrix(const u8 *a, const u8 *b, u32 *c, u32 waits) {
  SHARED(uint4, rows, 32);
  const u32 lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  if (threadIdx.x < 32) {
    copy_async(rows + lane, reinterpret_cast<const uint4 *>(a) + lane);
    copy_group();
    if (waits) copy_wait<0>();
  }
  BLOCK_BARRIER();
  const u8 *shared = reinterpret_cast<const u8 *>(rows);
  u32 of_a[4] = {0, 0, 0, 0}, of_b[2] = {0, 0}, of_c[4];
  // As the manual of PTX numbers the elements of a fragment: sixteen bytes of a, eight of b, four words of c.
  for (u32 i = 0; i < 16; i++) {
    const u32 row = i < 4 || (i >= 8 && i < 12) ? g : g + 8, k = 4 * t + (i & 3) + (i < 8 ? 0 : 16);
    of_a[i / 4] |= u32(shared[32 * row + k]) << (8 * (i & 3));
  }
  for (u32 i = 0; i < 8; i++) of_b[i / 4] |= u32(b[32 * g + 4 * t + (i & 3) + (i < 4 ? 0 : 16)]) << (8 * (i & 3));
  u32 *own = c + (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 128;
  for (u32 i = 0; i < 4; i++) of_c[i] = own[8 * (i < 2 ? g : g + 8) + 2 * t + (i & 1)];
  MMA_U8(of_c, of_a, of_b);
  MMA_U8(of_c, of_a, of_b);
  for (u32 i = 0; i < 4; i++) own[8 * (i < 2 ? g : g + 8) + 2 * t + (i & 1)] = of_c[i];
}

#if !defined(__CUDACC__)
// Shared memory that is larger the second time that a thread of a block comes for it. No compiler for GPUs takes it.
KERNEL void probe_growing() {
  SHARED(u32, words, threadIdx.x == 0 ? 32 : 64);
  words[threadIdx.x] = threadIdx.x;
}
#endif
