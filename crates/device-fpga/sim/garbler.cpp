// A garbler core in simulation, behind functions of C: registers, streams, and time that passes while they move.
//
// MODEL is the class that Verilator made, HEADER its header, NAME what the functions begin with, ROWS its rows.

#include HEADER
#include "verilated.h"

#include <cstdint>
#include <cstring>
#include <memory>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FUNCTION(name) JOIN(NAME, name)

namespace {

constexpr size_t LABEL = 16;
constexpr size_t LINE = 32 * ROWS;

// Numbers for stalls, from a seed (Steele, Lea, Flood 2014). Nothing that is computed depends on them.
struct Stalls {
  uint64_t state;
  uint32_t rate;  // of 256 cycles, on each stream

  bool next() {
    if (rate == 0) return false;
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return ((z ^ (z >> 31)) & 255) < rate;
  }
};

}  // namespace

extern "C" {

// Everything that a run is told, as the ports of the core are named.
struct Run {
  uint8_t offset[16];
  uint8_t hash_start[16];
  uint64_t first;
  uint32_t instance, step_instance, step_first;
  uint32_t prologue, kernel, cycles, repeats, last, leave_from;
  uint32_t lines, last_keep, of_run, of_cycle, input_ring, input_stages;
};

// Bytes that move: labels into the core, lines of tables and labels out of it.
struct Streams {
  const uint8_t* labels;
  size_t labels_len, labels_at;
  uint8_t* tables;  // tables of 32 bytes, without the gaps of last lines
  size_t tables_len, tables_at;
  uint8_t* leaves;
  size_t leaves_len, leaves_at;
};

}  // extern "C"

namespace {

struct Card {
  VerilatedContext context;
  std::unique_ptr<MODEL> core;
  Stalls stalls;
  bool offered = false;  // whether a label was offered that has not been taken

  void low() {
    core->clk_i = 0;
    core->eval();
  }

  void high() {
    core->clk_i = 1;
    core->eval();
  }

  void cycle() {
    low();
    high();
  }

  void rest() {
    core->start_i = core->scrub_i = core->program_en_i = 0;
    core->in_valid_i = core->out_ready_i = core->leave_ready_i = 0;
  }

  // Until it is done with what it does.
  void settle() {
    for (;;) {
      low();
      const bool busy = core->busy_o;
      high();
      if (!busy) return;
    }
  }
};

}  // namespace

extern "C" {

void* FUNCTION(new)(uint64_t seed, uint32_t rate) {
  auto* card = new Card;
  card->core = std::make_unique<MODEL>(&card->context);
  card->stalls = {seed, rate};
  card->rest();
  card->core->rst_ni = 0;
  for (int k = 0; k < 4; k++) card->cycle();
  card->core->rst_ni = 1;
  card->settle();
  return card;
}

void FUNCTION(free)(void* at) { delete static_cast<Card*>(at); }

// Writes bundles of `words` words of 32 bits each.
void FUNCTION(program)(void* at, const uint32_t* bundles, size_t count, size_t words) {
  auto& card = *static_cast<Card*>(at);
  auto& core = *card.core;
  core.program_en_i = 1;
  for (size_t bundle = 0; bundle < count; bundle++) {
    core.program_addr_i = bundle;
    for (size_t word = 0; word < words; word++) core.program_bundle_i[word] = bundles[bundle * words + word];
    card.cycle();
  }
  core.program_en_i = 0;
}

void FUNCTION(start)(void* at, const Run* run) {
  auto& card = *static_cast<Card*>(at);
  auto& core = *card.core;
  memcpy(&core.offset_i[0], run->offset, LABEL);
  memcpy(&core.hash_start_i[0], run->hash_start, LABEL);
  core.instance_i = run->instance;
  core.first_i = run->first;
  core.step_instance_i = run->step_instance;
  core.step_first_i = run->step_first;
  core.prologue_i = run->prologue;
  core.kernel_i = run->kernel;
  core.cycles_i = run->cycles;
  core.repeats_i = run->repeats;
  core.last_i = run->last;
  core.leave_from_i = run->leave_from;
  core.lines_i = run->lines;
  core.last_keep_i = run->last_keep;
  core.of_run_i = run->of_run;
  core.of_cycle_i = run->of_cycle;
  core.input_ring_i = run->input_ring;
  core.input_stages_i = run->input_stages;
  core.start_i = 1;
  card.cycle();
  core.start_i = 0;
  card.offered = false;
}

// Lets time pass until the run is done, or for `most` cycles. Says how many cycles passed; `done` whether it is done.
uint64_t FUNCTION(step)(void* at, Streams* streams, uint64_t most, bool* done) {
  auto& card = *static_cast<Card*>(at);
  auto& core = *card.core;
  *done = false;
  uint64_t cycles = 0;
  while (cycles < most && !*done) {
    const bool more = streams->labels_at + LABEL <= streams->labels_len;
    const bool offers = more && (card.offered || !card.stalls.next());
    core.in_valid_i = card.offered = offers;
    if (offers) memcpy(&core.in_label_i[0], streams->labels + streams->labels_at, LABEL);
    core.out_ready_i = streams->tables_at + LINE <= streams->tables_len && !card.stalls.next();
    core.leave_ready_i = streams->leaves_at + LABEL <= streams->leaves_len && !card.stalls.next();
    card.low();
    if (offers && core.in_ready_o) {
      streams->labels_at += LABEL;
      card.offered = false;
    }
    if (core.out_valid_o && core.out_ready_i) {
      for (int row = 0; row < ROWS; row++) {
        if (!(core.out_keep_o >> row & 1)) continue;
        memcpy(streams->tables + streams->tables_at, &core.out_tables_o[8 * row], 32);
        streams->tables_at += 32;
      }
    }
    if (core.leave_valid_o && core.leave_ready_i) {
      memcpy(streams->leaves + streams->leaves_at, &core.leave_label_o[0], LABEL);
      streams->leaves_at += LABEL;
    }
    *done = core.done_o;
    card.high();
    cycles++;
  }
  card.rest();
  return cycles;
}

// Wipes all labels and tables.
void FUNCTION(scrub)(void* at) {
  auto& card = *static_cast<Card*>(at);
  card.core->scrub_i = 1;
  card.cycle();
  card.core->scrub_i = 0;
  memset(&card.core->offset_i[0], 0, LABEL);
  memset(&card.core->hash_start_i[0], 0, LABEL);
  card.settle();
}

}  // extern "C"
