// Digests and authentication codes of a device's bank, as crates/device defines them (hash, mac). `call` says where what is, and `verdict` whether
// anything takes effect, as in commands.cu.
#include "../include/polyval.h"
#include "../sha256/sha256.h"

// Bytes of a piece.
#define PIECE 1024

// Four bytes of memory from byte `at` on, the first one lowest; of those from `end` on, zeros. `memory` begins at a word; nothing beyond a word in which
// a byte is wanted is read.
DEV u32 word_at(const u8 *memory, u64 at, u64 end) {
  if (at >= end) return 0;
  const u32 *words = reinterpret_cast<const u32 *>(memory + (at & ~3ull));
  const u32 by = 8 * u32(at & 3);
  u32 word = words[0] >> by;
  if (by && (at & ~3ull) + 4 < end) word |= words[1] << (32 - by);
  return end - at >= 4 ? word : word & ((1u << (8 * u32(end - at))) - 1);
}

// SHA-256 of the pieces of a source, the last of which may be shorter; digest k goes to bytes 32 k on. call: whether the source is in `temps` and not in
// the bank, where, its bytes, where in `temps` digests go.
// Threads: one for each piece; a warp takes 32 pieces, in steps of the grid. It reads 64 bytes of each, half a warp a piece, so that reads are in order,
// and turns them over in shared memory. Shared memory: 17 KB for 256 threads, static: rows of 17 words, so that no two lanes meet in a bank.
KERNEL void LAUNCH_BOUNDS(256, 3)
    device_pieces(const u8 *__restrict__ bank, u8 *temps, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  SHARED(u32, turned, 8 * 32 * 17);
  if (verdict[0]) return;
  const u8 *from = call[0] ? temps : bank;
  const u64 start = call[1], bytes = call[2], end = start + bytes, pieces = (bytes + PIECE - 1) / PIECE;
  u32 *digests = reinterpret_cast<u32 *>(temps + call[3]);
  const u32 lane = threadIdx.x & 31;
  u32 *warp = turned + (threadIdx.x >> 5) * (32 * 17);
  for (u64 first = u64(blockIdx.x) * blockDim.x + (threadIdx.x & ~31u); first < pieces; first += STEP_OF_GRID) {
    u32 s[8] = SHA256_INITIAL;
    const u64 own = first + lane;
    const u32 length = own >= pieces ? 0 : own + 1 < pieces ? PIECE : u32(bytes - own * PIECE), blocks = (length + 8) / 64 + 1;
    for (u32 block = 0; block <= PIECE / 64; block++) {
      for (u32 k = 0; k < 32; k += 2) {
        const u32 of = k + (lane >> 4);
        const u64 piece = start + (first + of) * PIECE, stop = piece + PIECE < end ? piece + PIECE : end;
        warp[of * 17 + (lane & 15)] = word_at(from, piece + 64 * block + 4 * (lane & 15), stop);
      }
      WARP_BARRIER();
      u32 w[16];
      UNROLL
      for (u32 k = 0; k < 16; k++) {
        // The bit behind the message is the highest of its byte.
        const u32 word = warp[lane * 17 + k], at = 64 * block + 4 * k, ends = length - at;
        w[k] = swap_bytes(ends < 4 ? word | 0x80u << (8 * ends) : word);
      }
      WARP_BARRIER();
      if (block + 1 == blocks) w[15] = 8 * length;
      if (block < blocks) sha256_block(s, w);
    }
    UNROLL
    for (u32 k = 0; k < 8; k++) warp[lane * 17 + k] = swap_bytes(s[k]);
    WARP_BARRIER();
    for (u32 k = lane; k < 256; k += 32)
      if (first + (k >> 3) < pieces) digests[8 * first + k] = warp[(k >> 3) * 17 + (k & 7)];
    WARP_BARRIER();
  }
}

// SHA-256 of a head and of what stands for sources, by one thread: it is as serial as the hash, and a source is a piece at most. call: to, bytes in all,
// sources, bytes of the head; of each source whether it is in `temps` and not in the bank, where, and its bytes; the head.
KERNEL void device_hash(u8 *bank, const u8 *temps, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  u32 s[8] = SHA256_INITIAL, w[16];
  const u64 bytes = call[1], sources = call[2];
  const u8 *from = reinterpret_cast<const u8 *>(call + 4 + 3 * sources);
  u64 source = 0, start = 0, own = 0, left = call[3], filled = 0;
  UNROLL
  for (u32 k = 0; k < 16; k++) w[k] = 0;
  // Bytes of one source after the other fill the words of a block; one byte 0x80 ends them.
  for (u64 at = 0; at <= bytes; at++) {
    while (left == 0 && source < sources) {
      const u64 *part = call + 4 + 3 * source++;
      from = part[0] ? temps : bank, start = part[1], own = 0, left = part[2];
    }
    const u32 byte = at == bytes ? 0x80 : from[start + own];
    own++, left--;
    const u32 place = u32(filled++ & 63), moved = byte << (24 - 8 * (place & 3));
    UNROLL
    for (u32 k = 0; k < 16; k++) w[k] |= place >> 2 == k ? moved : 0;
    if (place == 63 || (at == bytes && place >= 56)) {
      sha256_block(s, w);
      UNROLL
      for (u32 k = 0; k < 16; k++) w[k] = 0;
    }
  }
  w[14] = u32(bytes >> 29), w[15] = u32(bytes << 3);
  sha256_block(s, w);
  for (u32 k = 0; k < 32; k++) bank[call[0] + k] = u8(s[k >> 2] >> (24 - 8 * (k & 3)));
}

// Adds POLYVAL of sources to a sum: thread t of T has each T-th block, with zeros in front so that all have as many. call: to, sources, key, mask, bytes of
// all sources (the last block), then where each source is, and its bytes.
KERNEL void device_mac(const u8 *__restrict__ bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const wide key = make_wide(call[2], call[3]);
  const u64 sources = call[1], threads = STEP_OF_GRID, thread = FIRST_OF_GRID;
  u64 blocks = 1;
  for (u64 k = 0; k < sources; k++) blocks += (call[8 + 2 * k] + 15) / 16;
  const u64 steps = (blocks + threads - 1) / threads, zeros = steps * threads - blocks;
  const wide stride = polyval_power(key, threads);
  wide hash = make_wide(0, 0);
  u64 source = 0, before = 0;
  for (u64 step = 0; step < steps; step++) {
    const u64 place = step * threads + thread;
    wide block = make_wide(0, 0);
    if (place >= zeros) {
      const u64 at = place - zeros;
      while (source < sources && at - before >= (call[8 + 2 * source] + 15) / 16) before += (call[8 + 2 * source++] + 15) / 16;
      if (source < sources) {
        const u64 from = 16 * (at - before);
        block = wide_of(load_part(bank + call[7 + 2 * source] + from, call[8 + 2 * source] - from));
      } else {
        block = make_wide(call[6], 0);
      }
    }
    hash = polyval_mul(hash, stride);
    hash = make_wide(hash.lo ^ block.lo, hash.hi ^ block.hi);
  }
  // To the power of the blocks from this thread's on.
  polyval_add(sums, polyval_mul(hash, polyval_power(key, threads - thread)));
}
// Puts it where it belongs, under its mask, and forgets it. call: that of `device_mac`.
KERNEL void device_mac_end(u8 *bank, u64 *sums, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0] || FIRST_OF_GRID != 0) return;
  const wide code = make_wide(sums[0] ^ call[4], sums[1] ^ call[5]);
  store_part(bank + call[0], 16, words_of(code));
  sums[0] = 0, sums[1] = 0;
}
