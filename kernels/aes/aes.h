// AES-128 for kernels.
//
// Tables lie in shared memory once for each lane of a warp, so that a lane reads its own bank whatever the byte is: no time depends on a key or a
// label. The address of an entry is made by one permutation of bytes: byte << 8 | (table & 1) << 7 | lane << 2, tables 2 and 3 64 KB further.
// State and keys are words of four bytes, first byte lowest.
#pragma once
#include "../include/language.h"

TABLE u8 AES_SBOX[256] = {
    0x63, 0x7c, 0x77, 0x7b, 0xf2, 0x6b, 0x6f, 0xc5, 0x30, 0x01, 0x67, 0x2b, 0xfe, 0xd7, 0xab, 0x76,
    0xca, 0x82, 0xc9, 0x7d, 0xfa, 0x59, 0x47, 0xf0, 0xad, 0xd4, 0xa2, 0xaf, 0x9c, 0xa4, 0x72, 0xc0,
    0xb7, 0xfd, 0x93, 0x26, 0x36, 0x3f, 0xf7, 0xcc, 0x34, 0xa5, 0xe5, 0xf1, 0x71, 0xd8, 0x31, 0x15,
    0x04, 0xc7, 0x23, 0xc3, 0x18, 0x96, 0x05, 0x9a, 0x07, 0x12, 0x80, 0xe2, 0xeb, 0x27, 0xb2, 0x75,
    0x09, 0x83, 0x2c, 0x1a, 0x1b, 0x6e, 0x5a, 0xa0, 0x52, 0x3b, 0xd6, 0xb3, 0x29, 0xe3, 0x2f, 0x84,
    0x53, 0xd1, 0x00, 0xed, 0x20, 0xfc, 0xb1, 0x5b, 0x6a, 0xcb, 0xbe, 0x39, 0x4a, 0x4c, 0x58, 0xcf,
    0xd0, 0xef, 0xaa, 0xfb, 0x43, 0x4d, 0x33, 0x85, 0x45, 0xf9, 0x02, 0x7f, 0x50, 0x3c, 0x9f, 0xa8,
    0x51, 0xa3, 0x40, 0x8f, 0x92, 0x9d, 0x38, 0xf5, 0xbc, 0xb6, 0xda, 0x21, 0x10, 0xff, 0xf3, 0xd2,
    0xcd, 0x0c, 0x13, 0xec, 0x5f, 0x97, 0x44, 0x17, 0xc4, 0xa7, 0x7e, 0x3d, 0x64, 0x5d, 0x19, 0x73,
    0x60, 0x81, 0x4f, 0xdc, 0x22, 0x2a, 0x90, 0x88, 0x46, 0xee, 0xb8, 0x14, 0xde, 0x5e, 0x0b, 0xdb,
    0xe0, 0x32, 0x3a, 0x0a, 0x49, 0x06, 0x24, 0x5c, 0xc2, 0xd3, 0xac, 0x62, 0x91, 0x95, 0xe4, 0x79,
    0xe7, 0xc8, 0x37, 0x6d, 0x8d, 0xd5, 0x4e, 0xa9, 0x6c, 0x56, 0xf4, 0xea, 0x65, 0x7a, 0xae, 0x08,
    0xba, 0x78, 0x25, 0x2e, 0x1c, 0xa6, 0xb4, 0xc6, 0xe8, 0xdd, 0x74, 0x1f, 0x4b, 0xbd, 0x8b, 0x8a,
    0x70, 0x3e, 0xb5, 0x66, 0x48, 0x03, 0xf6, 0x0e, 0x61, 0x35, 0x57, 0xb9, 0x86, 0xc1, 0x1d, 0x9e,
    0xe1, 0xf8, 0x98, 0x11, 0x69, 0xd9, 0x8e, 0x94, 0x9b, 0x1e, 0x87, 0xe9, 0xce, 0x55, 0x28, 0xdf,
    0x8c, 0xa1, 0x89, 0x0d, 0xbf, 0xe6, 0x42, 0x68, 0x41, 0x99, 0x2d, 0x0f, 0xb0, 0x54, 0xbb, 0x16,
};

#define AES_TABLE_WORDS 32768
#define AES_SBOX_WORDS 8192

// Byte k becomes byte k + n.
DEV u32 rotate_bytes(u32 v, u32 n) { return rotate_right(v, 32 - 8 * n); }

// What a byte of row 0 adds to a column: SubBytes and MixColumns.
DEV u32 aes_column(u32 byte) {
  const u32 s = AES_SBOX[byte];
  const u32 twice = (s << 1) ^ ((s >> 7) * 0x11b);
  return twice | s << 8 | s << 16 | (twice ^ s) << 24;
}

// Four lanes have the same word: sixteen bytes at a time.
DEV void aes_fill(u32 *table) {
  for (u32 k = threadIdx.x; k < AES_TABLE_WORDS / 4; k += blockDim.x) {
    const u32 v = rotate_bytes(aes_column((k >> 4) & 0xff), ((k >> 3) & 1) | (k >> 12) << 1);
    store128(reinterpret_cast<uint4 *>(table) + k, make_uint4(v, v, v, v));
  }
}

// The entry of table TABLE_OF for byte BYTE of a column.
template <u32 TABLE_OF, u32 BYTE> DEV u32 aes_look(const u32 *table, u32 lane4, u32 column) {
  const u32 at = byte_perm(column, lane4, 0x5504 | BYTE << 4);
  const char *start = reinterpret_cast<const char *>(table) + (TABLE_OF >> 1) * 65536 + (TABLE_OF & 1) * 128;
  return *reinterpret_cast<const u32 *>(start + at);
}

// A column of a round, of bytes of four columns.
DEV u32 aes_mixed(const u32 *table, u32 lane4, u32 a, u32 b, u32 c, u32 d, u32 key) {
  const u32 three = lop3<0x96>(aes_look<0, 0>(table, lane4, a), aes_look<1, 1>(table, lane4, b), aes_look<2, 2>(table, lane4, c));
  return lop3<0x96>(three, aes_look<3, 3>(table, lane4, d), key);
}

// The same of the last round, without MixColumns: table k + 3 has the S-box's value, times one, in byte k.
DEV u32 aes_last(const u32 *table, u32 lane4, u32 a, u32 b, u32 c, u32 d, u32 key) {
  const u32 low = byte_perm(aes_look<3, 0>(table, lane4, a), aes_look<0, 1>(table, lane4, b), 0x0050);
  const u32 high = byte_perm(aes_look<1, 2>(table, lane4, c), aes_look<2, 3>(table, lane4, d), 0x7200);
  return byte_perm(low, high, 0x7610) ^ key;
}

DEV uint4 aes_encrypt(const u32 *table, u32 lane4, const u32 *__restrict__ keys, uint4 block) {
  u32 a = block.x ^ keys[0], b = block.y ^ keys[1], c = block.z ^ keys[2], d = block.w ^ keys[3];
  UNROLL
  for (u32 k = 4; k < 40; k += 4) {
    const u32 e = aes_mixed(table, lane4, a, b, c, d, keys[k]);
    const u32 f = aes_mixed(table, lane4, b, c, d, a, keys[k + 1]);
    const u32 g = aes_mixed(table, lane4, c, d, a, b, keys[k + 2]);
    const u32 h = aes_mixed(table, lane4, d, a, b, c, keys[k + 3]);
    a = e, b = f, c = g, d = h;
  }
  return make_uint4(aes_last(table, lane4, a, b, c, d, keys[40]), aes_last(table, lane4, b, c, d, a, keys[41]),
                    aes_last(table, lane4, c, d, a, b, keys[42]), aes_last(table, lane4, d, a, b, c, keys[43]));
}

// The word that the next round key is made of: SubWord and RotWord. The first byte goes last.
DEV u32 aes_next(const u32 *table, u32 lane4, u32 d) {
  const u32 low = byte_perm(aes_look<3, 1>(table, lane4, d), aes_look<0, 2>(table, lane4, d), 0x0050);
  const u32 high = byte_perm(aes_look<1, 3>(table, lane4, d), aes_look<2, 0>(table, lane4, d), 0x7200);
  return byte_perm(low, high, 0x7610);
}

// COUNT blocks under one key, whose round keys are made as they are needed, in registers.
template <u32 COUNT> DEV void aes_encrypt_rekeyed(const u32 *table, u32 lane4, uint4 key, uint4 (&blocks)[COUNT]) {
  u32 constant = 1;
  UNROLL
  for (u32 n = 0; n < COUNT; n++) {
    blocks[n] = make_uint4(blocks[n].x ^ key.x, blocks[n].y ^ key.y, blocks[n].z ^ key.z, blocks[n].w ^ key.w);
  }
  UNROLL
  for (u32 round = 1; round <= 10; round++) {
    key.x = lop3<0x96>(key.x, aes_next(table, lane4, key.w), constant);
    key.y ^= key.x, key.z ^= key.y, key.w ^= key.z;
    constant = (constant << 1) ^ ((constant >> 7) * 0x11b);
    UNROLL
    for (u32 n = 0; n < COUNT; n++) {
      const u32 a = blocks[n].x, b = blocks[n].y, c = blocks[n].z, d = blocks[n].w;
      blocks[n] = round == 10 ? make_uint4(aes_last(table, lane4, a, b, c, d, key.x), aes_last(table, lane4, b, c, d, a, key.y),
                                           aes_last(table, lane4, c, d, a, b, key.z), aes_last(table, lane4, d, a, b, c, key.w))
                              : make_uint4(aes_mixed(table, lane4, a, b, c, d, key.x), aes_mixed(table, lane4, b, c, d, a, key.y),
                                           aes_mixed(table, lane4, c, d, a, b, key.z), aes_mixed(table, lane4, d, a, b, c, key.w));
    }
  }
}

// A block of the pseudorandom function of crates/prss: BE16(tag), BE16(lane), BE64(counter), BE32(chunk). `head` and `tail` are the first and the last
// four bytes.
DEV uint4 prf_block(const u32 *table, u32 lane4, const u32 *__restrict__ schedule, u64 counter, u32 head, u32 tail) {
  return aes_encrypt(table, lane4, schedule, make_uint4(head, swap_bytes(u32(counter >> 32)), swap_bytes(u32(counter)), tail));
}
