// SHA-256 over a batch.
#include "sha256.h"

// One block into each of `count` states. `states`: [word][row], numbers; `blocks`: [word][row], bytes as they are in the message. A thread has a row
// in each step of the grid.
KERNEL void LAUNCH_BOUNDS(256, 2) sha256_compress(u32 *__restrict__ states, const u32 *__restrict__ blocks, u32 count) {
  for (u64 row = u64(blockIdx.x) * blockDim.x + threadIdx.x; row < count; row += u64(gridDim.x) * blockDim.x) {
    u32 s[8], w[16];
    UNROLL
    for (u32 k = 0; k < 8; k++) s[k] = states[k * u64(count) + row];
    UNROLL
    for (u32 k = 0; k < 16; k++) w[k] = swap_bytes(blocks[k * u64(count) + row]);
    sha256_block(s, w);
    UNROLL
    for (u32 k = 0; k < 8; k++) states[k * u64(count) + row] = s[k];
  }
}
