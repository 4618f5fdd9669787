// The emulator with threads of the system, one for each thread of a grid, for sanitizers: they see which of them touch the same memory with no barrier
// between. Orders are what the system makes of them. Threads that do not meet wait for ever.
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "emulator.h"
#include "matrix.h"

thread_local emulator_index threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {
namespace {

constexpr u32 LANES = 32;

struct Barrier {
  pthread_barrier_t all;
  explicit Barrier(u32 threads) { pthread_barrier_init(&all, nullptr, threads); }
  ~Barrier() { pthread_barrier_destroy(&all); }
  void meet() { pthread_barrier_wait(&all); }
};

struct Block {
  std::mutex lock;
  std::map<const void *, std::vector<uint4>> named;
  std::vector<std::unique_ptr<Barrier>> warps;
  std::unique_ptr<Barrier> all;
  std::vector<u32> exchanged;  // a word of each thread
  std::vector<Given> given;    // fragments of each thread, twice: by turns
};

// What is wrong with a launch, from within it.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

thread_local Block *own;
thread_local const Launch *running;
thread_local Barrier *grid;
thread_local u32 turn;
thread_local Copies copies;

std::string run_blocks(const Launch &launch, u32 first, u32 count, const std::function<void()> &body) {
  std::vector<Block> blocks(count);
  Barrier all(count * launch.block);
  std::mutex lock;
  std::string error;
  std::vector<std::thread> threads;
  for (u32 k = 0; k < count; k++) {
    Block &block = blocks[k];
    block.all = std::make_unique<Barrier>(launch.block);
    block.exchanged.resize(launch.block);
    block.given.resize(2 * size_t(launch.block));
    for (u32 lane = 0; lane < launch.block; lane += LANES) block.warps.push_back(std::make_unique<Barrier>(std::min(LANES, launch.block - lane)));
  }
  for (u32 k = 0; k < count * launch.block; k++) {
    threads.emplace_back([&, k] {
      own = &blocks[k / launch.block], running = &launch, grid = &all;
      threadIdx = {k % launch.block}, blockIdx = {first + k / launch.block}, blockDim = {launch.block}, gridDim = {launch.grid};
      try {
        body();
      } catch (const Fault &fault) {
        std::lock_guard<std::mutex> guard(lock);
        error = fault.what();
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  return error;
}

// A word of each lane: written, met, read, met.
template <class Read> u32 exchange(u32 value, const char *site, Read read) {
  u32 *words = own->exchanged.data() + threadIdx.x / LANES * LANES;
  words[threadIdx.x % LANES] = value;
  barrier(WARP, site);
  const u32 out = read(words, std::min(LANES, running->block - threadIdx.x / LANES * LANES));
  barrier(WARP, site);
  return out;
}

}  // namespace

void *shared(const void *id, size_t bytes) {
  std::lock_guard<std::mutex> guard(own->lock);
  std::vector<uint4> &memory = own->named[id];
  const size_t words = (bytes + sizeof(uint4) - 1) / sizeof(uint4);
  if (memory.empty()) memory.assign(words, make_uint4(0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5));
  if (memory.size() < words) throw Fault("shared memory that grows");
  return memory.data();
}

void *shared_dynamic(size_t bytes) {
  if (bytes > running->shared) throw Fault("the launch has too little dynamic shared memory");
  return shared(nullptr, bytes);
}

void barrier(Scope scope, const char *) {
  if (scope == GRID && !running->cooperative) throw Fault("a barrier of the grid needs a cooperative launch");
  (scope == GRID ? grid : scope == BLOCK ? own->all.get() : own->warps[threadIdx.x / LANES].get())->meet();
}

u32 shuffle(u32 value, u32 lane, const char *site) {
  return exchange(value, site, [lane](const u32 *words, u32 lanes) -> u32 {
    if (lane % LANES >= lanes) throw Fault("a shuffle from a lane that is not there");
    return words[lane % LANES];
  });
}

u32 ballot(bool bit, const char *site) {
  return exchange(bit, site, [](const u32 *words, u32 lanes) {
    u32 out = 0;
    for (u32 k = 0; k < lanes; k++) out |= words[k] << k;
    return out;
  });
}

// As of fibers: one barrier is enough.
void multiply(u32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], const char *site) {
  const u32 first = threadIdx.x / LANES * LANES, lane = threadIdx.x % LANES;
  if (running->block - first < LANES) throw Fault("a product of fragments needs all lanes of a warp");
  Given *given = own->given.data() + (turn ^= 1) * running->block + first;
  given[lane] = Given{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  barrier(WARP, site);
  multiply_lane(c, given, lane);
}

void copy(void *to, const void *from) { copies.groups.back().push_back({to, from}); }
void copy_group() { copies.groups.emplace_back(); }
void copy_wait(u32 last) { copies.wait(last); }

std::string launch(const Launch &launch, const std::function<void()> &body) {
  if (launch.grid == 0 || launch.block == 0 || launch.block > 1024) return "a launch needs blocks of 1 to 1024 threads";
  if (launch.cooperative) return run_blocks(launch, 0, launch.grid, body);
  for (u32 block = 0; block < launch.grid; block++) {
    std::string error = run_blocks(launch, block, 1, body);
    if (!error.empty()) return error;
  }
  return {};
}

}  // namespace emulator
