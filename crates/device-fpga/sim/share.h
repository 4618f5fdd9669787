// What the simulated cores of rtl/share have in common: streams from and to memory, and the model of a core, which is MODEL.

#pragma once

#include HEADER
#include "model.h"
#include "verilated.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

// A stream in memory: `at` bytes of it have moved.
struct Segment {
  uint8_t* data;
  size_t len, at;
};

// Keys of codes, and the tuples of their masks.
struct Begins {
  uint8_t keys[32];
  uint32_t used;
  uint16_t lane;
  uint64_t counter;
  uint32_t chunk;
};

namespace {

constexpr size_t WORD = 16;
constexpr uint64_t PATIENCE = 1 << 12;  // cycles in which nothing moves, before a core is given up

template <class Port>
void put(Port& port, const uint8_t* bytes, size_t len) {
  static_assert(sizeof port % 4 == 0);
  memcpy(&port, bytes, len);
}

// Beats that go to a core. What is offered stays until it is taken.
struct Offer {
  Segment& from;
  size_t beat;
  Stalls& stalls;
  bool offered = false;

  bool now() {
    offered = offered || (from.at < from.len && !stalls.next());
    return offered;
  }

  const uint8_t* data() const { return from.data + from.at; }

  bool taken(bool ready) {
    if (!offered || !ready) return false;
    from.at += beat;
    offered = false;
    return true;
  }
};

// A model, which `rest` leaves with nothing at its inputs.
template <class Rest>
struct Clocked {
  VerilatedContext context;
  std::unique_ptr<MODEL> core;
  Stalls stalls;

  Clocked(uint64_t seed, uint32_t rate) : core(std::make_unique<MODEL>(&context)), stalls{seed, rate} {
    rest();
    core->rst_ni = 0;
    for (int k = 0; k < 4; k++) step();
    core->rst_ni = 1;
    step();
    while (core->scrubs_o) step();
  }

  ~Clocked() {
    scrub();
    // A model that is destroyed asks the context of the thread, which is that of whatever model was made last, and may be gone.
    Verilated::threadContextp(&context);
  }

  void low() {
    core->clk_i = 0;
    core->eval();
  }

  void high() {
    core->clk_i = 1;
    core->eval();
  }

  void step() { low(), high(); }
  void rest() { Rest::rest(*core); }

  void scrub() {
    rest();
    core->scrub_i = 1;
    step();
    core->scrub_i = 0;
    step();
    while (core->scrubs_o) step();
  }

  // Cycles until `moves`, once a cycle between both edges, says that all is done, or nothing has moved for long: 1 something, 2 all.
  template <class Moves>
  uint64_t run(Moves moves) {
    uint64_t cycle = 0;
    for (uint64_t moved = 0; cycle - moved < PATIENCE;) {
      const int what = moves();
      high();
      cycle++;
      if (what != 0) moved = cycle;
      if (what == 2) break;
    }
    rest();
    low();
    return cycle;
  }
};

// Begins codes, on a core that makes some; says whether it has begun.
template <class Core>
bool begin(Core& self, const Begins& begins) {
  auto& core = *self.core;
  bool begun = false;
  self.run([&] {
    put(core.keys_i, begins.keys, sizeof begins.keys);
    core.used_i = begins.used;
    core.lane_i = begins.lane;
    core.counter_i = begins.counter;
    core.chunk_i = begins.chunk;
    core.begin_valid_i = 1;
    self.low();
    begun = core.begin_ready_o;
    return begun ? 2 : 0;
  });
  return begun;
}

}  // namespace
