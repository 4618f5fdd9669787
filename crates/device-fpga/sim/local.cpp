// rep4_local in simulation, behind functions of C: keys, commands with their operands, results and messages, and codes.
//
// MODEL is the class that Verilator made, HEADER its header, NAME what the functions begin with.

#include "share.h"

extern "C" {

struct Work {
  Segment commands, operands, results, messages[3];
};

}  // extern "C"

namespace {

constexpr size_t COMMAND = 28, BEAT = 3 * WORD;

struct Nothing {
  static void rest(MODEL& core) {
    core.key_en_i = core.key_number_i = core.scrub_i = core.command_valid_i = core.in_valid_i = 0;
    core.out_ready_i = core.message_ready_i = core.code_ready_i = core.begin_valid_i = 0;
    memset(&core.key_i, 0, sizeof core.key_i);
    memset(&core.keys_i, 0, sizeof core.keys_i);
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
  put(self.core->key_i, key, WORD);
  self.core->key_number_i = number;
  self.core->key_en_i = 1;
  self.step();
  self.rest();
  self.step();
}

void FUNCTION(set)(void* at, uint32_t form, uint8_t sends, bool checks) {
  auto& core = *static_cast<Core*>(at)->core;
  core.form_i = form;
  core.sends_i = sends;
  core.checks_i = checks;
}

bool FUNCTION(begin)(void* at, const Begins* begins) { return begin(*static_cast<Core*>(at), *begins); }

void FUNCTION(scrub)(void* at) { static_cast<Core*>(at)->scrub(); }

bool FUNCTION(ready)(void* at) { return static_cast<Core*>(at)->core->ready_o; }

// Runs commands until all results and messages are there; says how many cycles that took.
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
    core.message_ready_i = 0;
    for (unsigned k = 0; k < 3; k++) core.message_ready_i |= static_cast<unsigned>(!self.stalls.next()) << k;
    self.low();
    bool moves = commands.taken(core.command_ready_o);
    moves |= operands.taken(core.in_ready_o);
    bool all = true;
    auto take = [&](Segment& into, bool comes, const void* data, size_t len) {
      if (comes && into.at < into.len) {
        memcpy(into.data + into.at, data, len);
        into.at += len;
        moves = true;
      }
      all = all && into.at == into.len;
    };
    take(results, core.out_valid_o && core.out_ready_i, &core.out_data_o, BEAT);
    for (unsigned k = 0; k < 3; k++)
      take(work->messages[k], (core.message_valid_o & core.message_ready_i) >> k & 1, &core.message_data_o[4 * k], WORD);
    return all ? 2 : moves ? 1 : 0;
  });
}

// Takes so many codes; says how many cycles that took, 0 if they do not come.
uint64_t FUNCTION(codes)(void* at, uint32_t count, uint8_t* codes) {
  auto& self = *static_cast<Core*>(at);
  auto& core = *self.core;
  const unsigned all = (1u << count) - 1;
  unsigned came = 0;
  const uint64_t cycles = self.run([&] {
    core.code_ready_i = 0;
    for (unsigned k = 0; k < count; k++) core.code_ready_i |= static_cast<unsigned>(!self.stalls.next()) << k;
    self.low();
    const unsigned taken = core.code_valid_o & core.code_ready_i & ~came;
    for (unsigned k = 0; k < count; k++)
      if (taken >> k & 1) memcpy(codes + WORD * k, &core.code_o[4 * k], WORD);
    came |= taken;
    return came == all ? 2 : taken != 0 ? 1 : 0;
  });
  return came == all ? cycles : 0;
}

}  // extern "C"
