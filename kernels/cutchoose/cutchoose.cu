// A whole circuit, garbled or evaluated many times at once, each time with an offset and a start point of its own: what cut-and-choose makes, and opens.
//
// Layout: labels [wire][circuit], tables [2 p + k][circuit] with T_G (k = 0) and T_E of AND p, `starts` and `offsets` [circuit], gates one uint4 each
// (kernels/garble/garble.h), layer after layer; `layers` has where each begins, and where the last ends. AND p is gate p in each circuit: start points
// differ. No gate of a layer reads what another of it writes.
// Threads: one for each gate of a layer and circuit, circuits innermost; steps of the grid, all of which meet after each layer.
// Shared memory: 128 KB, dynamic, the tables of AES, which are filled once for all layers. The launch is cooperative.
#include "../garble/garble.h"

template <bool GARBLER>
DEV void circuit(u32 *table, uint4 *labels, uint4 *tables, const uint4 *gates, const u32 *layers, const uint4 *starts, const uint4 *offsets, u32 depth,
                 u32 count, u32 wires, u32 ands, u32 circuits) {
  aes_fill(table);
  BLOCK_BARRIER();
  for (u32 layer = 0; layer < depth; layer++) {
    const u32 begin = layers[layer], end = layers[layer + 1] < count ? layers[layer + 1] : count;
    const u64 all = begin < end ? u64(end - begin) * circuits : 0;
    for (u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x; k < all; k += u64(gridDim.x) * blockDim.x) {
      const u32 gate = begin + u32(k / circuits), own = u32(k % circuits);
      const uint4 offset = GARBLER ? load128(offsets + own) : make_uint4(0, 0, 0, 0);
      gate_do<GARBLER>(table, (threadIdx.x & 31) * 4, gates[gate], labels, tables, wires, ands, circuits, own, load128(starts + own), offset, 0, 0);
    }
    GRID_BARRIER();
  }
}

KERNEL void LAUNCH_BOUNDS(768, 1)
    choose_garble(uint4 *labels, uint4 *tables, const uint4 *__restrict__ gates, const u32 *__restrict__ layers, const uint4 *__restrict__ starts,
                  const uint4 *__restrict__ offsets, u32 depth, u32 count, u32 wires, u32 ands, u32 circuits) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  circuit<true>(table, labels, tables, gates, layers, starts, offsets, depth, count, wires, ands, circuits);
}

KERNEL void LAUNCH_BOUNDS(768, 1)
    choose_evaluate(uint4 *labels, uint4 *tables, const uint4 *__restrict__ gates, const u32 *__restrict__ layers, const uint4 *__restrict__ starts,
                    u32 depth, u32 count, u32 wires, u32 ands, u32 circuits) {
  SHARED_DYNAMIC(u32, table, AES_TABLE_WORDS);
  circuit<false>(table, labels, tables, gates, layers, starts, starts, depth, count, wires, ands, circuits);
}
