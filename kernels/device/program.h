// Programs as words: instructions of eight words, pairs of operands, and products by their places; crates/device-cuda makes them
// (src/device/program.rs). An instruction: what it is, where the result goes, two operands, and sixteen bytes of a constant. Of a product the operands
// are its place in the message and its first pair; a word with how many pairs, and one with its sum of threads, follow. An operand is an index, and in
// its two highest bits where: a slot, a temp of this program, a value that all rows share.
//
// Instructions come level by level: none needs what another of its level writes, or writes what another reads. `levels` has where each begins, and where
// the last ends. If there are fewer columns than threads, all threads do a level together and meet after it; else each goes through all instructions with
// a column of its own, and waits for nobody. Either way a warp does one instruction at a time, in 32 columns that lie side by side.
#pragma once
#include "../include/language.h"

enum Where { SLOT, TEMP, SHARED_VALUE };
enum Instruction { ADD, SUB, TIMES, PLUS, COPY, CONSTANT, PRODUCT, PRODUCT_SUM, SUM };

// The part of a program that a thread does: steps of a group, as many as its warp does; groups are what all threads meet after.
struct share {
  const u32 *levels;
  u64 columns, padded, groups, begin, first, last, step;
  bool alone;
};
DEV share share_of(const u32 *levels, u64 depth, u64 columns) {
  share s;
  s.levels = levels, s.columns = columns, s.padded = (columns + 31) & ~31ull;
  s.alone = columns >= STEP_OF_GRID;
  s.groups = s.alone ? (columns + STEP_OF_GRID - 1) / STEP_OF_GRID : depth;
  s.begin = 0, s.first = s.alone ? 0 : FIRST_OF_GRID, s.last = levels[depth], s.step = s.alone ? 1 : STEP_OF_GRID;
  return s;
}
DEV void share_group(share &s, u64 group) {
  if (s.alone) return;
  s.begin = s.levels[group];
  s.last = (s.levels[group + 1] - s.begin) * s.padded;
}
// Behind a group of steps: all threads that share levels meet. Nothing is behind the last one; and a single block meets by itself, so that its launch
// need not be cooperative.
DEV void share_meet(const share &s, u64 group) {
  if (s.alone || group + 1 == s.groups) return;
  if (gridDim.x == 1)
    BLOCK_BARRIER();
  else
    GRID_BARRIER();
}
// Of a step: the instruction, and the column, which may be one that there is not.
DEV u64 share_instruction(const share &s, u64 k) { return s.alone ? k : s.begin + (k >> 32 ? k / s.padded : u32(k) / u32(s.padded)); }
DEV u64 share_column(const share &s, u64 group, u64 k) {
  return s.alone ? group * STEP_OF_GRID + FIRST_OF_GRID : k >> 32 ? k % s.padded : u32(k) % u32(s.padded);
}
