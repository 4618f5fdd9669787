// A product of fragments that the lanes of a warp have, as a tensor core computes it: mma.m16n8k32 of bytes without a sign, sums modulo 2^32. Where an element of
// a matrix is follows from how the fragments of PTX are laid out ("Matrix Fragments for mma.m16n8k32"):
//
//   a, 16 by 32   element (row, k): lane 4 * (row % 8) + k % 16 / 4, register row / 8 + 2 * (k / 16), byte k % 4
//   b, 32 by 8    element (k, column): lane 4 * column + k % 16 / 4, register k / 16, byte k % 4
//   c, 16 by 8    element (row, column): lane 4 * (row % 8) + column / 2, register 2 * (row / 8) + column % 2
#pragma once
#include <vector>

#include "emulator.h"

namespace emulator {

// What a lane gives: its registers of a, then those of b.
struct Given {
  u32 a[4], b[2];
};

static inline void multiply_lane(u32 (&c)[4], const Given *given, u32 lane) {
  for (u32 reg = 0; reg < 4; reg++) {
    const u32 row = lane / 4 + 8 * (reg / 2), column = lane % 4 * 2 + reg % 2;
    u32 sum = c[reg];
    for (u32 k = 0; k < 32; k += 4) {
      const u32 a = given[4 * (row % 8) + k % 16 / 4].a[row / 8 + 2 * (k / 16)];
      const u32 b = given[4 * column + k % 16 / 4].b[k / 16];
      for (u32 byte = 0; byte < 4; byte++) sum += (a >> (8 * byte) & 0xff) * (b >> (8 * byte) & 0xff);
    }
    c[reg] = sum;
  }
}

// Copies that a thread began: of each group what goes where. A group that is waited for is copied then, and no sooner, so that a wait that is left out is seen.
struct Copies {
  struct One {
    void *to;
    const void *from;
  };
  std::vector<std::vector<One>> groups{1};
  void wait(u32 last) {
    while (groups.size() > size_t(last) + 1) {
      for (const One &one : groups.front()) *static_cast<uint4 *>(one.to) = *static_cast<const uint4 *>(one.from);
      groups.erase(groups.begin());
    }
  }
};

}  // namespace emulator
