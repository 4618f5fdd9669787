// SHA-256 of many messages of one length.
//
// Layout: message m is words 4 to 4 apart, `words` of them from word m · words on, as bytes; digest m is 32 bytes from byte 32 m on.
// Threads: one for each message; a warp takes 32 messages, in steps of the grid. It reads 64 bytes of each, half a warp a message, so that reads are in
// order, and turns them over in shared memory. Shared memory: 17 KB for 256 threads, static: rows of 17 words, so that no two lanes meet in a bank.
#include "../sha256/sha256.h"

KERNEL void LAUNCH_BOUNDS(256, 2) sha256_messages(const u32 *__restrict__ messages, u32 *__restrict__ digests, u32 words, u32 count) {
  SHARED(u32, turned, 8 * 32 * 17);
  const u32 lane = threadIdx.x & 31;
  u32 *warp = turned + (threadIdx.x >> 5) * (32 * 17);
  const u64 blocks = (u64(words) + 2) / 16 + 1;
  for (u64 first = u64(blockIdx.x) * blockDim.x + (threadIdx.x & ~31u); first < count; first += u64(gridDim.x) * blockDim.x) {
    u32 s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (u64 block = 0; block < blocks; block++) {
      const u64 word = 16 * block + (lane & 15);
      for (u32 k = 0; k < 32; k += 2) {
        const u32 of = k + (lane >> 4);
        u32 read = word == words ? 0x80 : 0;
        if (word < words && first + of < count) read = messages[(first + of) * words + word];
        warp[of * 17 + (lane & 15)] = read;
      }
      WARP_BARRIER();
      u32 w[16];
      UNROLL
      for (u32 k = 0; k < 16; k++) w[k] = swap_bytes(warp[lane * 17 + k]);
      WARP_BARRIER();
      if (block + 1 == blocks) w[14] = words >> 27, w[15] = words << 5;
      sha256_block(s, w);
    }
    UNROLL
    for (u32 k = 0; k < 8; k++) warp[lane * 17 + k] = swap_bytes(s[k]);
    WARP_BARRIER();
    for (u32 k = lane; k < 256; k += 32)
      if (first + (k >> 3) < count) digests[8 * first + k] = warp[(k >> 3) * 17 + (k & 7)];
    WARP_BARRIER();
  }
}
