// rep3_core in simulation, behind functions of C: keys, and commands with their operands and results.
//
// MODEL is the class that Verilator made, HEADER its header, NAME what the functions begin with, WORDS the words of a beat.

#include "share.h"

extern "C" {

struct Work {
  Segment commands, operands, results, messages[3];
};

}  // extern "C"

namespace {

constexpr size_t COMMAND = 28, BEAT = 2 * WORD * WORDS;

struct Nothing {
  static void rest(MODEL& core) {
    core.key_en_i = core.key_previous_i = core.scrub_i = core.command_valid_i = core.in_valid_i = core.out_ready_i = 0;
    memset(&core.key_i, 0, sizeof core.key_i);
    memset(&core.command_i, 0, sizeof core.command_i);
    memset(&core.in_a_i, 0, sizeof core.in_a_i);
    memset(&core.in_b_i, 0, sizeof core.in_b_i);
  }
};

using Core = Clocked<Nothing>;

}  // namespace

extern "C" {

void* FUNCTION(new)(uint64_t seed, uint32_t rate) { return new Core(seed, rate); }

void FUNCTION(free)(void* at) { delete static_cast<Core*>(at); }

void FUNCTION(key)(void* at, uint32_t number, const uint8_t* key) {
  auto& self = *static_cast<Core*>(at);
  auto& core = *self.core;
  put(core.key_i, key, WORD);
  core.key_previous_i = number;
  core.key_en_i = 1;
  self.step();
  self.rest();
  self.step();
}

void FUNCTION(scrub)(void* at) { static_cast<Core*>(at)->scrub(); }

bool FUNCTION(ready)(void* at) { return static_cast<Core*>(at)->core->ready_o; }

// Runs commands until all results are there; says how many cycles that took.
uint64_t FUNCTION(run)(void* at, Work* work) {
  auto& self = *static_cast<Core*>(at);
  auto& core = *self.core;
  Segment& results = work->results;
  Offer commands{work->commands, COMMAND, self.stalls}, operands{work->operands, 2 * BEAT, self.stalls};
  return self.run([&] {
    core.command_valid_i = commands.now();
    core.in_valid_i = operands.now();
    if (commands.offered) put(core.command_i, commands.data(), COMMAND);
    if (operands.offered) {
      put(core.in_a_i, operands.data(), BEAT);
      put(core.in_b_i, operands.data() + BEAT, BEAT);
    }
    core.out_ready_i = !self.stalls.next();
    self.low();
    bool moves = commands.taken(core.command_ready_o);
    moves |= operands.taken(core.in_ready_o);
    if (core.out_valid_o && core.out_ready_i && results.at < results.len) {
      memcpy(results.data + results.at, &core.out_data_o, BEAT);
      results.at += BEAT;
      moves = true;
    }
    return results.at == results.len ? 2 : moves ? 1 : 0;
  });
}

}  // extern "C"
