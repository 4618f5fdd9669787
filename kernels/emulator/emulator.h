// A grid of CUDA threads on the CPU: what kernels see of it, and how they are launched. Grids and blocks have one dimension. Threads run in an order
// that the launch states.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

typedef unsigned int u32;

struct alignas(16) uint4 {
  u32 x, y, z, w;
};
static inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return uint4{x, y, z, w}; }

struct emulator_index {
  u32 x;
};
extern thread_local emulator_index threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

enum Scope { WARP, BLOCK, GRID };
enum Order { FORWARD, REVERSE, RANDOM };

struct Launch {
  u32 grid, block;
  u32 shared;       // bytes of dynamic shared memory
  u32 cooperative;  // all blocks at once, as a barrier of the grid needs
  u32 order, seed;
};

// For kernels. `site` says where in the source; threads that meet must be at the same one.
void *shared(const void *id, size_t bytes);
void *shared_dynamic(size_t bytes);
void barrier(Scope scope, const char *site);
u32 shuffle(u32 value, u32 lane, const char *site);
u32 ballot(bool bit, const char *site);
// The product of fragments of all lanes of a warp: matrix.h.
void multiply(u32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], const char *site);
// Sixteen bytes that a thread copies while it goes on.
void copy(void *to, const void *from);
void copy_group();
void copy_wait(u32 last);

// Runs `body` once for each thread; empty, or what went wrong.
std::string launch(const Launch &launch, const std::function<void()> &body);

}  // namespace emulator
