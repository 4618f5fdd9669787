// Steps of cut-and-choose, as crates/device defines them (cut): a bank has a row for each circuit, an item of labels sixteen bytes for each row. Circuits
// are garbled and evaluated by kernels/device/gates.cu, all of them at once.
//
// `call` says where what is, `verdict` whether anything takes effect (kernels/device/commands.cu). Threads have a label, in steps of the grid, rows
// innermost, so that labels are read and written in order. Where AES is made: 128 KB of shared memory, dynamic, its tables.
#include "../garble/garble.h"
#include "../sha256/sha256.h"

#define SHA256_START {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// The label where a bit is 1, else zeros.
DEV uint4 label_if(u32 bit, uint4 x) { return label_add(make_uint4(0, 0, 0, 0), x, 0 - (bit & 1)); }
// AES of a block under a key that is used once or twice.
DEV uint4 once(const u32 *table, uint4 key, uint4 block) {
  uint4 blocks[1] = {block};
  aes_encrypt_rekeyed<1>(table, (threadIdx.x & 31) * 4, key, blocks);
  return blocks[0];
}

// What follows from seeds: block k under the seed of a row is its offset, its start point, then labels. call: rows, blocks, seeds, offsets, start
// points, labels.
KERNEL void LAUNCH_BOUNDS(512, 1) cut_stretch(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  const u64 rows = call[0], all = call[1] * rows;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 block = k / rows, row = k % rows;
    uint4 made = once(table, load128(labels_at(bank, call[2]) + row), make_uint4(u32(block), u32(block >> 32), 0, 0));
    if (block == 0) made.x |= 1;
    store128(labels_at(bank, block < 2 ? call[3 + block] : call[5] + 16 * (block - 2) * rows) + row, made);
  }
}

// Numbers of circuits. call: rows, to, the first.
KERNEL void cut_number(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 row = FIRST_OF_GRID; row < call[0]; row += STEP_OF_GRID) store128(labels_at(bank, call[1]) + row, make_uint4(u32(call[2] + row), 0, 0, 0));
}

// Digests of rows: a thread has a row, whose labels come in order, sixteen bytes at a time; of bits a byte at a time. call: rows, to, bytes of a message
// with its head, sources; eight words of the head; of each source where it is, items, and whether these are bits.
KERNEL void LAUNCH_BOUNDS(256, 1) cut_digest(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 rows = call[0], bytes = call[2], sources = call[3];
  for (u64 row = FIRST_OF_GRID; row < rows; row += STEP_OF_GRID) {
    u32 s[8] = SHA256_START, w[16];
    UNROLL
    for (u32 k = 0; k < 16; k++) w[k] = swap_bytes(u32(call[4 + (k >> 1)] >> (32 * (k & 1))));
    sha256_block(s, w);
    UNROLL
    for (u32 k = 0; k < 16; k++) w[k] = 0;
    const u64 *source = call + 12;
    u64 item = 0, filled = 64;
    // Units of the message, then what ends it: a bit, zeros, and how many bits there are in the last two words.
    for (u64 left = sources;;) {
      while (left && item == source[1]) item = 0, source += 3, left--;
      const u32 place = u32(filled & 63);
      if (left && !source[2]) {
        const uint4 x = load128(labels_at(bank, source[0]) + item * rows + row);
        const u32 words[4] = {swap_bytes(x.x), swap_bytes(x.y), swap_bytes(x.z), swap_bytes(x.w)};
        // A label behind bits begins within a word, and may end in the next block.
        const u32 by = 8 * (place & 3), over = place + 16 > 64 ? place + 16 - 64 : 0;
        u32 moved[5] = {0, 0, 0, 0, 0};
        UNROLL
        for (u32 k = 0; k < 4; k++) {
          moved[k] |= words[k] >> by;
          moved[k + 1] |= by ? words[k] << (32 - by) : 0;
        }
        UNROLL
        for (u32 k = 0; k < 16; k++) {
          UNROLL
          for (u32 part = 0; part < 5; part++) w[k] |= (place >> 2) + part == k ? moved[part] : 0;
        }
        filled += 16, item++;
        if (place + 16 >= 64) {
          sha256_block(s, w);
          UNROLL
          for (u32 k = 0; k < 16; k++) {
            u32 rest = 0;
            UNROLL
            for (u32 part = 0; part < 5; part++) rest |= over && (place >> 2) + part == k + 16 ? moved[part] : 0;
            w[k] = rest;
          }
        }
        continue;
      }
      const u32 byte = left ? bit_at(bank + source[0] + item * ((rows + 7) / 8), row) : 0x80;
      UNROLL
      for (u32 k = 0; k < 16; k++) w[k] |= place >> 2 == k ? byte << (24 - 8 * (place & 3)) : 0;
      filled++, item++;
      if (place == 63 || (!left && place >= 56)) {
        sha256_block(s, w);
        UNROLL
        for (u32 k = 0; k < 16; k++) w[k] = 0;
      }
      if (!left) break;
    }
    w[14] = u32(bytes >> 29), w[15] = u32(bytes << 3);
    sha256_block(s, w);
    uint4 *to = labels_at(bank, call[1]);
    store128(to + row, make_uint4(swap_bytes(s[0]), swap_bytes(s[1]), swap_bytes(s[2]), swap_bytes(s[3])));
    store128(to + rows + row, make_uint4(swap_bytes(s[4]), swap_bytes(s[5]), swap_bytes(s[6]), swap_bytes(s[7])));
  }
}

// The mark of a label: SHA-256 of seven words of the command, the wire, the circuit and the label.
DEV void mark_of(const u64 *marked, u32 wire, u32 circuit, uint4 x, uint4 &low, uint4 &high) {
  u32 s[8] = SHA256_START, w[16];
  UNROLL
  for (u32 k = 0; k < 7; k++) w[k] = swap_bytes(u32(marked[k >> 1] >> (32 * (k & 1))));
  w[7] = swap_bytes(wire), w[8] = swap_bytes(circuit);
  w[9] = swap_bytes(x.x), w[10] = swap_bytes(x.y), w[11] = swap_bytes(x.z), w[12] = swap_bytes(x.w);
  w[13] = 0x80000000, w[14] = 0, w[15] = 8 * 52;
  sha256_block(s, w);
  low = make_uint4(swap_bytes(s[0]), swap_bytes(s[1]), swap_bytes(s[2]), swap_bytes(s[3]));
  high = make_uint4(swap_bytes(s[4]), swap_bytes(s[5]), swap_bytes(s[6]), swap_bytes(s[7]));
}

// Marks of both labels of wires. call: rows, wires, four numbers of what is hashed, labels for 0, offsets, numbers, to, whether colours order them.
KERNEL void LAUNCH_BOUNDS(256, 2) cut_marks(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 rows = call[0], all = call[1] * rows;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 wire = k / rows, row = k % rows;
    const uint4 zero = load128(labels_at(bank, call[6]) + k), offset = load128(labels_at(bank, call[7]) + row);
    uint4 x = label_add(zero, offset, call[10] ? label_colour(zero) : 0);
    uint4 *to = labels_at(bank, call[9]) + 4 * wire * rows + row;
    ROLLED
    for (u32 second = 0; second < 2; second++) {
      uint4 low, high;
      mark_of(call + 2, u32(wire), load128(labels_at(bank, call[8]) + row).x, x, low, high);
      store128(to + 2 * second * rows, low);
      store128(to + (2 * second + 1) * rows, high);
      x = xor128(x, offset);
    }
  }
}

DEV u32 differs(uint4 a, uint4 b) {
  const uint4 d = xor128(a, b);
  return d.x | d.y | d.z | d.w;
}
// 1 of what is 0, else 0, in a time that does not depend on it.
DEV u32 is_zero(u32 x) { return 1 ^ ((x | (0 - x)) >> 31); }

// Compares the marks of labels with those of their wires. With `ones`, counts labels that have the second; else says in `verdict` if one has neither.
// call: rows, wires, four numbers of what is hashed, labels, marks, numbers.
KERNEL void LAUNCH_BOUNDS(256, 2) cut_votes(const u8 *__restrict__ bank, u32 *ones, const u64 *__restrict__ call, u32 *verdict, u32 count) {
  if (verdict[0]) return;
  const u64 rows = call[0], all = call[1] * rows;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 wire = k / rows, row = k % rows;
    const uint4 *of = labels_at(bank, call[7]) + 4 * wire * rows + row;
    uint4 low, high;
    mark_of(call + 2, u32(wire), load128(labels_at(bank, call[8]) + row).x, load128(labels_at(bank, call[6]) + k), low, high);
    const u32 first = is_zero(differs(low, load128(of)) | differs(high, load128(of + rows)));
    const u32 second = is_zero(differs(low, load128(of + 2 * rows)) | differs(high, load128(of + 3 * rows)));
    if (count)
      atomic_add(ones + wire, second);
    else
      atomic_or(verdict + 1, 1 ^ (first | second));
  }
}
// What most say, of each wire; forgets how many. call: rows, wires, to.
KERNEL void cut_majority(u8 *bank, u32 *ones, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  for (u64 wire = FIRST_OF_GRID; wire < call[1]; wire += STEP_OF_GRID) {
    bank[call[2] + wire] = u8((call[0] - 2 * u64(ones[wire])) >> 63);
    ones[wire] = 0;
  }
}

// What is there, and a matrix times other items. A thread has a label, or a byte, of an item; it makes the bits of its row of the matrix, 128 at a time.
// call: bytes of an item, rows of the matrix, columns, to, what is there, the others, whether the key is in the bank, where, or the key.
KERNEL void LAUNCH_BOUNDS(512, 1) cut_matrix(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  const u64 bytes = call[0], units = bytes % 16 ? bytes : bytes / 16, all = call[1] * units;
  const uint4 key = call[6] ? load_part(bank + call[7], 16) : words_of(make_wide(call[7], call[8]));
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 row = k / units, unit = k % units;
    uint4 sum = bytes % 16 ? make_uint4(bank[call[4] + k], 0, 0, 0) : load128(labels_at(bank, call[4]) + k);
    for (u64 first = 0; first < call[2]; first += 128) {
      const uint4 made = once(table, key, make_uint4(u32(row), u32(row >> 32), u32(first >> 7), 0));
      wide bits = wide_of(made);
      for (u64 column = first; column < call[2] && column < first + 128; column++) {
        const u64 at = column * units + unit;
        sum = label_add(sum, bytes % 16 ? make_uint4(bank[call[5] + at], 0, 0, 0) : load128(labels_at(bank, call[5]) + at), 0 - u32(bits.lo & 1));
        bits = wide_shift(bits, 1);
      }
    }
    if (bytes % 16)
      bank[call[3] + k] = u8(sum.x);
    else
      store128(labels_at(bank, call[3]) + k, sum);
  }
}

// Active labels. call: rows, items, to, labels for 0, offsets, bits that all rows share.
KERNEL void cut_active(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 rows = call[0], all = call[1] * rows;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const uint4 offset = label_if(bank[call[5] + k / rows], load128(labels_at(bank, call[4]) + k % rows));
    store128(labels_at(bank, call[2]) + k, xor128(load128(labels_at(bank, call[3]) + k), offset));
  }
}

// Bits that all rows share, one after the other in rows. A thread has a byte. call: rows, items, to, bits, how many.
KERNEL void cut_spread(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u64 rows = call[0], bytes = (rows + 7) / 8, all = call[1] * bytes;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    u32 out = 0;
    for (u32 bit = 0; bit < 8; bit++) {
      const u64 row = 8 * (k % bytes) + bit, from = k / bytes * rows + row;
      if (row < rows && from < call[4]) out |= (bank[call[3] + from] & 1u) << bit;
    }
    bank[call[2] + k] = u8(out);
  }
}

// Both labels of wires, each under its key. call: rows, wires, to, labels for 0, offsets, numbers, keys for 0, keys for 1.
KERNEL void LAUNCH_BOUNDS(512, 1) cut_mask(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  const u64 rows = call[0], all = 2 * call[1] * rows;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / rows, row = k % rows, wire = item >> 1, second = item & 1;
    const uint4 x = label_add(load128(labels_at(bank, call[3]) + wire * rows + row), load128(labels_at(bank, call[4]) + row), 0 - u32(second));
    const uint4 key = load128(labels_at(bank, call[6 + second]) + wire), number = load128(labels_at(bank, call[5]) + row);
    store128(labels_at(bank, call[2]) + k, xor128(x, once(table, key, number)));
  }
}

// The labels that bits choose. call: rows, wires, to, labels masked, keys, bits that all rows share, numbers.
KERNEL void LAUNCH_BOUNDS(512, 1) cut_unmask(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  const u64 rows = call[0], all = call[1] * rows;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 wire = k / rows, row = k % rows;
    const uint4 *both = labels_at(bank, call[3]) + 2 * wire * rows + row;
    const uint4 zero = load128(both), one = load128(both + rows);
    const uint4 chosen = xor128(zero, label_if(bank[call[5] + wire], xor128(zero, one)));
    const uint4 key = load128(labels_at(bank, call[4]) + wire), number = load128(labels_at(bank, call[6]) + row);
    store128(labels_at(bank, call[2]) + k, xor128(chosen, once(table, key, number)));
  }
}

// An order of circuits, by one block: how far each goes is made by all of its threads, the first one exchanges. call: circuits, to, a digest. `apart` has
// eight bytes for each circuit.
KERNEL void LAUNCH_BOUNDS(512, 1) cut_shuffle(u8 *bank, u8 *apart, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  WITH_AES(table)
  const u64 circuits = call[0];
  u64 *far = reinterpret_cast<u64 *>(apart);
  u32 *order = reinterpret_cast<u32 *>(bank + call[1]);
  const uint4 key = load_part(bank + call[2], 16);
  for (u64 k = threadIdx.x; k < circuits; k += blockDim.x) {
    order[k] = u32(k);
    far[k] = multiply_high(wide_of(once(table, key, make_uint4(u32(k), 0, 0, 0))).lo, circuits - k);
  }
  BLOCK_BARRIER();
  if (threadIdx.x != 0) return;
  for (u64 k = 0; k < circuits; k++) {
    const u32 held = order[k];
    order[k] = order[k + far[k]];
    order[k + far[k]] = held;
  }
}

// What is kept of all circuits, of those that an order has in a half. A thread has a label, or a byte of bits. call: rows, items, to, from, order, half,
// whether these are bits.
KERNEL void cut_pick(u8 *bank, const u64 *__restrict__ call, const u32 *__restrict__ verdict) {
  if (verdict[0]) return;
  const u32 *order = reinterpret_cast<const u32 *>(bank + call[4]) + call[5] * call[0];
  const u64 rows = call[0], items = call[1], bytes = (rows + 7) / 8, cells = call[6] ? bytes : rows, all = items * cells;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u64 item = k / cells, cell = k % cells;
    if (call[6]) {
      u32 out = 0;
      for (u32 bit = 0; bit < 8 && 8 * cell + bit < rows; bit++) {
        const u64 circuit = order[8 * cell + bit] % (2 * rows), from = circuit / rows * items + item;
        out |= bit_at(bank + call[3] + from * bytes, circuit % rows) << bit;
      }
      bank[call[2] + k] = u8(out);
    } else {
      const u64 circuit = order[cell] % (2 * rows), from = circuit / rows * items + item;
      store128(labels_at(bank, call[2]) + k, load128(labels_at(bank, call[3]) + from * rows + circuit % rows));
    }
  }
}

// Whether the rows of each item of bits are the same. A thread has a byte. call: rows, items, from.
KERNEL void cut_same(const u8 *__restrict__ bank, const u64 *__restrict__ call, u32 *verdict) {
  if (verdict[0]) return;
  const u64 rows = call[0], bytes = (rows + 7) / 8, all = call[1] * bytes;
  u32 found = 0;
  for (u64 k = FIRST_OF_GRID; k < all; k += STEP_OF_GRID) {
    const u8 *item = bank + call[2] + k / bytes * bytes;
    const u64 first = 8 * (k % bytes);
    const u32 kept = rows - first >= 8 ? 0xff : (1u << (rows - first)) - 1;
    found |= (item[k % bytes] ^ (0 - (item[0] & 1u))) & kept;
  }
  atomic_or(verdict + 1, found);
}
