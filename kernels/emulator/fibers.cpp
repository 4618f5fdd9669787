// The emulator with fibers: deterministic. All threads that can run do so, one after the other, each until it waits; then whoever has met goes on.
// Shared memory begins as 0xa5. Threads that wait for each other in vain are an error.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "emulator.h"
#include "matrix.h"

thread_local emulator_index threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {
namespace {

constexpr size_t STACK = 64 << 10;
constexpr u32 LANES = 32;

// Words, so that any element is aligned.
struct Memory {
  std::unique_ptr<uint4[]> words;
  size_t size = 0;
  void *at_least(size_t wanted) {
    if (!words) {
      size = wanted;
      const size_t bytes = (wanted + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4);
      words.reset(new uint4[bytes / sizeof(uint4)]);
      memset(static_cast<void *>(words.get()), 0xa5, bytes);
    }
    return wanted <= size ? words.get() : nullptr;
  }
};

struct Block {
  std::map<const void *, Memory> named;
  Memory dynamic;
  std::vector<u32> exchanged;  // a word of each thread
  std::vector<Given> given;    // fragments of each thread, twice: by turns
};

// Begins as a context; later it is left and entered by jumps, which ask nothing of the kernel of the system.
struct Fiber {
  ucontext_t context;
  jmp_buf jump;
  bool begun = false;
  std::unique_ptr<char[]> stack;
  u32 thread, block;
  Block *memory;
  bool ended = false;
  const char *site = nullptr;  // where it waits, if it does
  Scope scope = WARP;
  u32 turn = 0;
  Copies copies;
};

struct Run {
  const Launch &launch;
  const std::function<void()> &body;
  std::vector<Block> blocks;
  std::vector<Fiber> fibers;
  std::string error;
};

thread_local jmp_buf scheduler;
thread_local Fiber *current;
thread_local Run *running;

void pause() {
  if (_setjmp(current->jump) == 0) _longjmp(scheduler, 1);
}

// Runs a fiber until it waits.
void resume(Fiber &fiber) {
  if (_setjmp(scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.jump, 1);
  fiber.begun = true;
  setcontext(&fiber.context);
}

[[noreturn]] void fail(std::string why) {
  if (running->error.empty()) running->error = std::move(why);
  for (;;) pause();
}

void enter() {
  running->body();
  current->ended = true;
  pause();
}

// Whether two threads are at the same place of the source.
bool same(const char *a, const char *b) { return a == b || strcmp(a, b) == 0; }

std::string name(const Fiber &fiber) {
  return "thread " + std::to_string(fiber.thread) + " of block " + std::to_string(fiber.block) +
         (fiber.ended ? " has returned" : std::string(" waits at ") + fiber.site);
}

// Lets fibers from `first` to `end` go on, if they have met.
bool meet(Run &run, size_t first, size_t end, Scope scope) {
  const Fiber &one = run.fibers[first];
  for (size_t k = first; k < end; k++) {
    const Fiber &fiber = run.fibers[k];
    if (fiber.ended || fiber.scope != scope || !same(fiber.site, one.site)) return false;
  }
  for (size_t k = first; k < end; k++) run.fibers[k].site = nullptr;
  return true;
}

// Whoever has met goes on. Says whether anybody does.
bool release(Run &run) {
  const size_t block = run.launch.block, all = run.fibers.size();
  if (meet(run, 0, all, GRID)) return true;
  bool any = false;
  for (size_t first = 0; first < all; first += block) {
    if (meet(run, first, first + block, BLOCK)) {
      any = true;
      continue;
    }
    for (size_t lane = 0; lane < block; lane += LANES)
      any |= meet(run, first + lane, first + std::min<size_t>(lane + LANES, block), WARP);
  }
  return any;
}

std::string stuck(const Run &run) {
  const Fiber *waits = nullptr, *other = nullptr;
  for (const Fiber &fiber : run.fibers)
    if (!fiber.ended && !waits) waits = &fiber;
  for (const Fiber &fiber : run.fibers)
    if (!other && (fiber.ended || fiber.scope != waits->scope || strcmp(fiber.site, waits->site) != 0)) other = &fiber;
  return "deadlock: " + name(*waits) + (other ? ", " + name(*other) : "");
}

// A fiber that begins with `enter`. Apart from loops, since `getcontext` returns as `setjmp` does.
void prepare(Fiber &fiber) {
  fiber.stack.reset(new char[STACK]);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = STACK;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, enter, 0);
}

std::string run_blocks(const Launch &launch, u32 first, u32 count, const std::function<void()> &body) {
  Run run{launch, body, std::vector<Block>(count), std::vector<Fiber>(size_t(count) * launch.block), {}};
  running = &run;
  std::vector<u32> order(run.fibers.size());
  for (u32 k = 0; k < order.size(); k++) {
    order[k] = launch.order == REVERSE ? u32(order.size()) - 1 - k : k;
    Fiber &fiber = run.fibers[k];
    fiber.thread = k % launch.block;
    fiber.block = first + k / launch.block;
    fiber.memory = &run.blocks[k / launch.block];
    fiber.memory->exchanged.resize(launch.block);
    fiber.memory->given.resize(2 * size_t(launch.block));
    prepare(fiber);
  }
  std::mt19937 random(launch.seed + first);
  for (;;) {
    if (launch.order == RANDOM) std::shuffle(order.begin(), order.end(), random);
    bool alive = false;
    for (u32 k : order) {
      Fiber &fiber = run.fibers[k];
      if (!fiber.ended && !fiber.site) {
        current = &fiber;
        threadIdx = {fiber.thread};
        blockIdx = {fiber.block};
        resume(fiber);
        if (!run.error.empty()) return run.error;
      }
      alive |= !fiber.ended;
    }
    if (!alive) return {};
    if (!release(run)) return stuck(run);
  }
}

// A word of each lane: written, met, read, met.
template <class Read> u32 exchange(u32 value, const char *site, Read read) {
  u32 *words = current->memory->exchanged.data() + current->thread / LANES * LANES;
  words[current->thread % LANES] = value;
  barrier(WARP, site);
  const u32 out = read(words, std::min(LANES, running->launch.block - current->thread / LANES * LANES));
  barrier(WARP, site);
  return out;
}

}  // namespace

void *shared(const void *id, size_t bytes) {
  void *memory = current->memory->named[id].at_least(bytes);
  if (!memory) fail("shared memory that grows");
  return memory;
}

void *shared_dynamic(size_t bytes) {
  if (bytes > running->launch.shared) fail("the launch has too little dynamic shared memory");
  void *memory = current->memory->dynamic.at_least(bytes);
  if (!memory) fail("shared memory that grows");
  return memory;
}

void barrier(Scope scope, const char *site) {
  if (scope == GRID && !running->launch.cooperative) fail("a barrier of the grid needs a cooperative launch");
  current->scope = scope;
  current->site = site;
  pause();
}

u32 shuffle(u32 value, u32 lane, const char *site) {
  return exchange(value, site, [lane](const u32 *words, u32 lanes) -> u32 {
    if (lane % LANES >= lanes) fail("a shuffle from a lane that is not there");
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

// With what each lane gives in one of two places by turns, so that none writes what another one still reads, and one barrier is enough.
void multiply(u32 (&c)[4], const u32 (&a)[4], const u32 (&b)[2], const char *site) {
  const u32 first = current->thread / LANES * LANES, lane = current->thread % LANES;
  if (running->launch.block - first < LANES) fail("a product of fragments needs all lanes of a warp");
  Given *given = current->memory->given.data() + (current->turn ^= 1) * running->launch.block + first;
  given[lane] = Given{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  barrier(WARP, site);
  multiply_lane(c, given, lane);
}

void copy(void *to, const void *from) { current->copies.groups.back().push_back({to, from}); }
void copy_group() { current->copies.groups.emplace_back(); }
void copy_wait(u32 last) { current->copies.wait(last); }

std::string launch(const Launch &launch, const std::function<void()> &body) {
  if (launch.grid == 0 || launch.block == 0 || launch.block > 1024) return "a launch needs blocks of 1 to 1024 threads";
  blockDim = {launch.block};
  gridDim = {launch.grid};
  if (launch.cooperative) return run_blocks(launch, 0, launch.grid, body);
  for (u32 k = 0; k < launch.grid; k++) {
    const u32 block = launch.order == REVERSE ? launch.grid - 1 - k : k;
    std::string error = run_blocks(launch, block, 1, body);
    if (!error.empty()) return error;
  }
  return {};
}

}  // namespace emulator
