// ordered_core in simulation, behind functions of C: the netlist, runs, and all of the state.
//
// MODEL is the class that Verilator made, HEADER its header, NAME what the functions begin with, ROWS its rows.

#include HEADER
#include "model.h"
#include "verilated.h"
#include "verilated_save.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

extern "C" {

// Bytes that a stream reads or writes, of which `at` have moved.
struct Stream {
  uint8_t* data;
  size_t len, at;
};

// A run; the streams are labels for the core, labels of inputs, tables, masks.
struct OrderedRun {
  uint8_t offset[16], hash_start[16];
  uint64_t first;
  uint32_t instance, entries, cycles, of_run, of_cycle, of_later;
  uint64_t end;  // scrub after so many cycles; 0 for never
  Stream source, labels, tables, masks;
};

}  // extern "C"

namespace {

constexpr size_t LABEL = 16, TABLE = 32, MASKS = 32, LINE = 2 * ROWS * LABEL;
constexpr uint64_t PATIENCE = 1 << 18;  // cycles in which nothing moves, before a core is given up

struct Core {
  VerilatedContext context;
  std::unique_ptr<MODEL> core;
  Stalls stalls;

  void low() {
    core->clk_i = 0;
    core->eval();
  }

  void high() {
    core->clk_i = 1;
    core->eval();
  }

  // Until it takes a run.
  void idle() {
    for (low(); core->busy_o; low()) high();
    high();
  }

  // Nothing at the ports.
  void rest() {
    core->start_i = core->scrub_i = core->netlist_en_i = 0;
    core->in_valid_i = core->label_ready_i = core->table_ready_i = core->masks_ready_i = 0;
    memset(&core->in_labels_i, 0, sizeof core->in_labels_i);
    memset(&core->offset_i, 0, sizeof core->offset_i);
    memset(&core->hash_start_i, 0, sizeof core->hash_start_i);
  }

  void scrub() {
    core->scrub_i = 1;
    low();
    high();
    core->scrub_i = 0;
  }

  bool room(const Stream& stream, size_t bytes) { return stream.len - stream.at >= bytes && !stalls.next(); }

  static void take(Stream& stream, const void* from, size_t bytes) {
    memcpy(stream.data + stream.at, from, bytes);
    stream.at += bytes;
  }
};

// All of the state, as Verilator writes it.
class State : public VerilatedSerialize {
 public:
  explicit State(std::vector<uint8_t>& into) : into_(into) {
    m_isOpen = true;
    m_cp = m_bufp;
  }
  ~State() override { close(); }
  void close() override {
    flush();
    m_isOpen = false;
  }
  void flush() override {
    into_.insert(into_.end(), m_bufp, m_cp);
    m_cp = m_bufp;
  }

 private:
  std::vector<uint8_t>& into_;
};

}  // namespace

extern "C" {

void* FUNCTION(new)(uint64_t seed, uint32_t rate) {
  auto* self = new Core;
  self->core = std::make_unique<MODEL>(&self->context);
  self->stalls = {seed, rate};
  self->rest();
  self->core->rst_ni = 0;
  for (int k = 0; k < 4; k++) self->low(), self->high();
  self->core->rst_ni = 1;
  self->idle();
  return self;
}

void FUNCTION(free)(void* at) {
  auto* self = static_cast<Core*>(at);
  self->scrub();
  self->idle();
  // A model that is destroyed asks the context of the thread, which is that of whatever model was made last, and may be gone.
  Verilated::threadContextp(&self->context);
  delete self;
}

void FUNCTION(write)(void* at, const uint64_t* words, size_t count) {
  auto& self = *static_cast<Core*>(at);
  auto& core = *self.core;
  core.netlist_en_i = 1;
  for (size_t k = 0; k < count; k++) {
    core.netlist_line_i = k / ROWS;
    core.netlist_bank_i = k % ROWS;
    core.netlist_word_i = words[k];
    self.low();
    self.high();
  }
  core.netlist_en_i = 0;
}

// Runs, or begins to. Says how many cycles it took, as the core counts them; 0 if it was ended or is silent.
uint64_t FUNCTION(run)(void* at, OrderedRun* run) {
  auto& self = *static_cast<Core*>(at);
  auto& core = *self.core;
  memcpy(&core.offset_i, run->offset, sizeof run->offset);
  memcpy(&core.hash_start_i, run->hash_start, sizeof run->hash_start);
  core.first_i = run->first;
  core.instance_i = run->instance;
  core.entries_i = run->entries;
  core.cycles_i = run->cycles;
  core.of_run_i = run->of_run;
  core.of_cycle_i = run->of_cycle;
  core.of_later_i = run->of_later;
  core.start_i = 1;
  self.low();
  self.high();
  core.start_i = 0;
  bool offered = false, done = false, ended = false;
  for (uint64_t cycle = 1, moved = 0; !done && !ended && cycle - moved < PATIENCE; cycle++) {
    // What is offered stays until it is taken.
    if (!offered && self.room(run->source, 1)) {
      const size_t left = run->source.len - run->source.at, bytes = left < LINE ? left : LINE;
      memset(&core.in_labels_i, 0, sizeof core.in_labels_i);
      memcpy(&core.in_labels_i, run->source.data + run->source.at, bytes);
      run->source.at += bytes;
      offered = true;
    }
    core.in_valid_i = offered;
    core.label_ready_i = self.room(run->labels, LABEL);
    core.table_ready_i = self.room(run->tables, TABLE);
    core.masks_ready_i = self.room(run->masks, MASKS);
    self.low();
    const bool taken = offered && core.in_ready_o, label = core.label_valid_o && core.label_ready_i;
    const bool table = core.table_valid_o && core.table_ready_i, masks = core.masks_valid_o && core.masks_ready_i;
    if (label) Core::take(run->labels, &core.label_o, LABEL);
    if (table) Core::take(run->tables, &core.table_o, TABLE);
    if (masks) Core::take(run->masks, &core.masks_o, MASKS);
    if (taken || label || table || masks) moved = cycle;
    if (taken) offered = false;
    done = core.done_o;
    ended = cycle == run->end;
    core.scrub_i = ended;
    self.high();
  }
  self.rest();
  if (!done && !ended) self.scrub();
  self.idle();
  return done && !ended ? core.cycles_o : 0;
}

// All of the state: how many bytes it has, of which `room` at most are written.
size_t FUNCTION(state)(void* at, uint8_t* into, size_t room) {
  std::vector<uint8_t> bytes;
  {
    State state(bytes);
    state << *static_cast<Core*>(at)->core;
  }
  memcpy(into, bytes.data(), bytes.size() < room ? bytes.size() : room);
  return bytes.size();
}

}  // extern "C"
