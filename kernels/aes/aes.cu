// Schedules of keys.
#include "aes.h"

// Round keys of `count` keys: [key][word], 44 words each. A thread has a key. 32 KB of shared memory, static.
KERNEL void LAUNCH_BOUNDS(1024, 1) aes_schedule(const uint4 *__restrict__ keys, u32 *__restrict__ schedules, u32 count) {
  SHARED(u32, sbox, AES_SBOX_WORDS);
  for (u32 k = threadIdx.x; k < AES_SBOX_WORDS; k += blockDim.x) sbox[k] = AES_SBOX[k >> 5];
  BLOCK_BARRIER();
  const u32 *own = sbox + (threadIdx.x & 31);
  for (u64 key = u64(blockIdx.x) * blockDim.x + threadIdx.x; key < count; key += u64(gridDim.x) * blockDim.x) {
    const uint4 first = load128(keys + key);
    u32 a = first.x, b = first.y, c = first.z, d = first.w, constant = 1;
    uint4 *out = reinterpret_cast<uint4 *>(schedules) + 11 * key;
    for (u32 round = 0;; round++) {
      store128(out + round, make_uint4(a, b, c, d));
      if (round == 10) break;
      // SubWord and RotWord: the first byte goes last.
      a ^= own[((d >> 8) & 0xff) << 5] | own[((d >> 16) & 0xff) << 5] << 8 | own[(d >> 24) << 5] << 16 | own[(d & 0xff) << 5] << 24;
      a ^= constant;
      b ^= a, c ^= b, d ^= c;
      constant = (constant << 1) ^ ((constant >> 7) * 0x11b);
    }
  }
}
