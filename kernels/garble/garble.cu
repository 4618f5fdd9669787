// A layer of a garbled circuit, in all rows of a chunk: half-gates as crates/device garbles them.
//
// Layout: labels [wire][row], tables [2 p + k][row] with T_G (k = 0) and T_E of product p, gates one uint4 each (garble.h); `secrets` are the start
// point S and, at the garbler, the offset. AND p in row r is gate (first + p) 2^16 + r. No gate of a layer reads what another writes.
// Threads: one for each gate and row, rows innermost, so that labels and tables are read and written in order; steps of the grid.
// Shared memory: 128 KB, dynamic, the tables of AES, once for each lane. An AND has two keys: their round keys are made in registers.
#include "garble.h"

template <bool GARBLER>
DEV void layer(u32 *table, uint4 *labels, uint4 *tables, const uint4 *gates, const uint4 *secrets, u32 count, u32 wires, u32 ands, u32 rows, u64 first) {
  aes_fill(table);
  BLOCK_BARRIER();
  const uint4 start = load128(secrets), offset = GARBLER ? load128(secrets + 1) : make_uint4(0, 0, 0, 0);
  const u64 all = u64(count) * rows;
  for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < all; k += u64(gridDim.x) * blockDim.x) {
    const u32 gate = u32(k / rows), row = u32(k % rows);
    gate_do<GARBLER>(table, (threadIdx.x & 31) * 4, gates[gate], labels, tables, wires, ands, rows, row, start, offset, first, 16);
  }
}

KERNEL void LAUNCH_BOUNDS(768, 1) garble_layer(uint4 *labels, uint4 *tables, const uint4 *__restrict__ gates, const uint4 *__restrict__ secrets, u32 count,
                                               u32 wires, u32 ands, u32 rows, u64 first) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  layer<true>(table, labels, tables, gates, secrets, count, wires, ands, rows, first);
}

KERNEL void LAUNCH_BOUNDS(768, 1) evaluate_layer(uint4 *labels, uint4 *tables, const uint4 *__restrict__ gates, const uint4 *__restrict__ secrets, u32 count,
                                                 u32 wires, u32 ands, u32 rows, u64 first) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  layer<false>(table, labels, tables, gates, secrets, count, wires, ands, rows, first);
}
