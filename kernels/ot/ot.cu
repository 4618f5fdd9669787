// Oblivious transfers from trees of keys, as crates/device/src/ot defines them: strings of `blocks` blocks of sixteen bytes, of which the last is apart;
// strings of 128 columns, [column][block]. Tree i stands for columns k i to k i + k - 1.
//
// Shared memory: 128 KB, dynamic, the tables of AES, for ot_expand and ot_keys; none else. Steps of the grid, but in ot_fold by warps.
#include "../garble/garble.h"
#include "../include/polyval.h"

// The first `bytes` of a block; none, if they are less than none.
DEV uint4 ot_cut(uint4 v, u64 from, u64 bytes) {
  const u64 left = from < bytes ? bytes - from : 0;
  u32 w[4] = {v.x, v.y, v.z, v.w};
  UNROLL
  for (u32 k = 0; k < 4; k++) {
    const u64 own = left > 4 * k ? left - 4 * k : 0;
    w[k] &= own >= 4 ? ~0u : (1u << (8 * u32(own))) - 1;
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// Sums of the strings of leaves from `leaf` on: of all of them in `sums` [tree][block], of those whose bit p is 1 in column k i + p. Columns are zero
// from byte `length` up to the last block. Keys: [tree][leaf]. A thread has two blocks of a tree, under each key in turn: round keys are made once for
// both, in registers.
KERNEL void LAUNCH_BOUNDS(512, 1) ot_expand(const uint4 *__restrict__ keys, uint4 *__restrict__ columns, uint4 *__restrict__ sums, u32 bits, u32 leaf,
                                            u32 blocks, u64 length, u64 first, u32 head, u32 tail) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  aes_fill(table);
  BLOCK_BARRIER();
  const u32 lane4 = (threadIdx.x & 31) * 4, leaves = 1u << bits, pairs = blocks / 2 + blocks % 2;
  const u64 all = u64(128 / bits) * pairs;
  for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < all; k += u64(gridDim.x) * blockDim.x) {
    const u32 tree = u32(k / pairs), at = u32(k % pairs) * 2;
    uint4 whole[2], parts[8][2];
    UNROLL
    for (u32 n = 0; n < 2; n++) {
      whole[n] = make_uint4(0, 0, 0, 0);
      UNROLL
      for (u32 p = 0; p < 8; p++) parts[p][n] = make_uint4(0, 0, 0, 0);
    }
    ROLLED
    for (u32 x = leaf; x < leaves; x++) {
      uint4 drawn[2];
      UNROLL
      for (u32 n = 0; n < 2; n++) {
        const u64 counter = first + at + n;
        drawn[n] = make_uint4(head, swap_bytes(u32(counter >> 32)), swap_bytes(u32(counter)), tail);
      }
      aes_encrypt_rekeyed<2>(table, lane4, load128(keys + (tree << bits) + x), drawn);
      UNROLL
      for (u32 n = 0; n < 2; n++) {
        whole[n] = xor128(whole[n], drawn[n]);
        UNROLL
        for (u32 p = 0; p < 8; p++) parts[p][n] = label_add(parts[p][n], drawn[n], 0 - ((x >> p) & 1));
      }
    }
    UNROLL
    for (u32 n = 0; n < 2; n++) {
      if (at + n >= blocks) break;
      store128(sums + u64(tree) * blocks + at + n, whole[n]);
      UNROLL
      for (u32 p = 0; p < 8; p++) {
        if (p >= bits) break;
        const uint4 out = at + n + 1 == blocks ? parts[p][n] : ot_cut(parts[p][n], 16 * u64(at + n), length);
        store128(columns + u64(tree * bits + p) * blocks + at + n, out);
      }
    }
  }
}

// At the receiver: the corrections, in the place of the sums, and the last block of the choices, which is that of tree 0. `choices`: a string, zero
// from the end of what is chosen on. A thread has a block of all trees.
KERNEL void LAUNCH_BOUNDS(256, 1) ot_correct(uint4 *sums, uint4 *choices, u32 trees, u32 blocks) {
  for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < blocks; k += u64(gridDim.x) * blockDim.x) {
    const uint4 x = k + 1 == blocks ? load128(sums + k) : load128(choices + k);
    store128(choices + k, x);
    for (u32 tree = 0; tree < trees; tree++) store128(sums + u64(tree) * blocks + k, xor128(load128(sums + u64(tree) * blocks + k), x));
  }
}

// At the sender: columns, and the corrections of their trees where the offset is 1, up to byte `length` and in the last block. A thread has a block of
// a column.
KERNEL void LAUNCH_BOUNDS(256, 1) ot_apply(uint4 *columns, const uint4 *__restrict__ corrections, const uint4 *__restrict__ offset, u32 bits, u32 blocks,
                                           u64 length) {
  const u32 *words = reinterpret_cast<const u32 *>(offset);
  const u64 all = 128 * u64(blocks);
  for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < all; k += u64(gridDim.x) * blockDim.x) {
    const u32 column = u32(k / blocks), block = u32(k % blocks);
    uint4 d = load128(corrections + u64(column / bits) * blocks + block);
    if (block + 1 != blocks) d = ot_cut(d, 16 * u64(block), length);
    store128(columns + k, label_add(load128(columns + k), d, 0 - ((words[column >> 5] >> (column & 31)) & 1)));
  }
}

// Labels [item][row] of columns: bit j of column c is bit c of label j. An item has whole bytes of a column. A warp has 128 bits of all columns: 16
// squares of 32 bits by 32, each turned in five steps.
KERNEL void LAUNCH_BOUNDS(256, 1) ot_labels(const uint4 *__restrict__ columns, uint4 *__restrict__ labels, u32 blocks, u32 items, u32 rows) {
  const u32 lane = threadIdx.x & 31;
  const u64 item_bits = (u64(rows) + 7) / 8 * 8, bits = item_bits * items;
  for (u64 block = (u64(blockIdx.x) * blockDim.x + threadIdx.x) >> 5; block + 1 < blocks; block += (u64(gridDim.x) * blockDim.x) >> 5) {
    u32 square[4][4];
    UNROLL
    for (u32 of = 0; of < 4; of++) {
      const uint4 v = load128(columns + u64(32 * of + lane) * blocks + block);
      square[0][of] = v.x, square[1][of] = v.y, square[2][of] = v.z, square[3][of] = v.w;
    }
    UNROLL
    for (u32 word = 0; word < 4; word++) {
      UNROLL
      for (u32 of = 0; of < 4; of++) {
        u32 v = square[word][of];
        // Halves of the square change places, then halves of these.
        UNROLL
        for (u32 by = 16; by; by >>= 1) {
          const u32 mask = by == 16 ? 0x0000ffff : by == 8 ? 0x00ff00ff : by == 4 ? 0x0f0f0f0f : by == 2 ? 0x33333333 : 0x55555555;
          const u32 other = WARP_SHUFFLE_XOR(v, by);
          v = (lane & by) ? (v & ~mask) | ((other >> by) & mask) : (v & mask) | ((other & mask) << by);
        }
        square[word][of] = v;
      }
      const u64 bit = 128 * block + 32 * word + lane, item = bit / item_bits, row = bit % item_bits;
      if (bit < bits && row < rows)
        store128(labels + item * rows + row, make_uint4(square[word][0], square[word][1], square[word][2], square[word][3]));
    }
  }
}

// Folds of `count` columns: POLYVAL of all blocks but the last under the challenge, and the last. A warp has a column, each lane each 32nd block, with
// zeros in front so that all have as many.
KERNEL void LAUNCH_BOUNDS(256, 1)
    ot_fold(const uint4 *__restrict__ columns, const uint4 *__restrict__ challenge, uint4 *__restrict__ folds, u32 blocks, u32 count) {
  const u32 lane = threadIdx.x & 31;
  // The challenge to the powers 1 to 32: of the stride, and of what is left after a lane's last block.
  wide stride = wide_of(load128(challenge)), own = stride, square = stride;
  for (u32 power = 1; power < 32; power++) {
    stride = polyval_mul(stride, square);
    const u64 take = 0 - u64(power == 31 - lane);
    own = make_wide((own.lo & ~take) | (stride.lo & take), (own.hi & ~take) | (stride.hi & take));
  }
  const u32 whole = blocks - 1, steps = (whole + 31) / 32, zeros = 32 * steps - whole;
  for (u64 column = (u64(blockIdx.x) * blockDim.x + threadIdx.x) >> 5; column < count; column += (u64(gridDim.x) * blockDim.x) >> 5) {
    wide hash = make_wide(0, 0);
    for (u32 step = 0; step < steps; step++) {
      hash = polyval_mul(hash, stride);
      const u32 place = 32 * step + lane;
      if (place < zeros) continue;
      const wide block = wide_of(load128(columns + column * blocks + (place - zeros)));
      hash = make_wide(hash.lo ^ block.lo, hash.hi ^ block.hi);
    }
    uint4 sum = words_of(polyval_mul(hash, own));
    for (u32 mask = 16; mask; mask >>= 1) {
      sum.x ^= WARP_SHUFFLE_XOR(sum.x, mask), sum.y ^= WARP_SHUFFLE_XOR(sum.y, mask);
      sum.z ^= WARP_SHUFFLE_XOR(sum.z, mask), sum.w ^= WARP_SHUFFLE_XOR(sum.w, mask);
    }
    if (lane == 0) store128(folds + column, xor128(sum, load128(columns + column * blocks + whole)));
  }
}

// Keys of transfers [item][row]: hashes of labels, and of labels with the offset, which are a second such list. Row r of item p has the tweak
// (first + p) 2^16 + r. `secrets`: the start point, and the offset; the receiver has zero there, and reads the first list. A thread has a label.
KERNEL void LAUNCH_BOUNDS(768, 1) ot_keys(const uint4 *__restrict__ labels, uint4 *__restrict__ keys, const uint4 *__restrict__ secrets, u32 items,
                                          u32 rows, u64 first) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  aes_fill(table);
  BLOCK_BARRIER();
  const u64 all = u64(items) * rows;
  const uint4 start = load128(secrets), offset = load128(secrets + 1);
  for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < all; k += u64(gridDim.x) * blockDim.x) {
    const uint4 label = load128(labels + k);
    uint4 x[2] = {label, xor128(label, offset)};
    label_hash<2>(table, (threadIdx.x & 31) * 4, start, ((first + k / rows) << 16) | (k % rows), x);
    store128(keys + k, x[0]);
    store128(keys + all + k, x[1]);
  }
}
