// rep4_join in simulation, behind functions of C: shares and messages, what becomes of them, and whether codes are right.
//
// MODEL is the class that Verilator made, HEADER its header, NAME what the functions begin with.

#include "share.h"

extern "C" {

// Shares come in records: three components, ring, bytes that hold rows, whether it is the last of the column, what that closes.
struct Work {
  Segment shares, messages[2], results;
};

}  // extern "C"

namespace {

constexpr size_t BEAT = 3 * WORD, RECORD = BEAT + 4;

struct Nothing {
  static void rest(MODEL& core) {
    core.scrub_i = core.begin_valid_i = core.in_valid_i = core.message_valid_i = core.code_valid_i = core.out_ready_i = 0;
    memset(&core.keys_i, 0, sizeof core.keys_i);
    memset(&core.in_data_i, 0, sizeof core.in_data_i);
    memset(&core.message_data_i, 0, sizeof core.message_data_i);
    memset(&core.code_i, 0, sizeof core.code_i);
  }
};

using Core = Clocked<Nothing>;

}  // namespace

extern "C" {

void* FUNCTION(new)(uint64_t seed, uint32_t rate) { return new Core(seed, rate); }

void FUNCTION(free)(void* at) { delete static_cast<Core*>(at); }

void FUNCTION(set)(void* at, bool two, uint8_t to, bool checks) {
  auto& core = *static_cast<Core*>(at)->core;
  core.from_two_i = two;
  core.to_i = to;
  core.checks_i = checks;
}

bool FUNCTION(begin)(void* at, const Begins* begins) { return begin(*static_cast<Core*>(at), *begins); }

void FUNCTION(scrub)(void* at) { static_cast<Core*>(at)->scrub(); }

// Adds messages to shares until all are there; says how many cycles that took.
uint64_t FUNCTION(run)(void* at, Work* work) {
  auto& self = *static_cast<Core*>(at);
  auto& core = *self.core;
  Segment& results = work->results;
  Offer shares{work->shares, RECORD, self.stalls};
  Offer messages[2] = {{work->messages[0], WORD, self.stalls}, {work->messages[1], WORD, self.stalls}};
  return self.run([&] {
    core.in_valid_i = shares.now();
    if (shares.offered) {
      const uint8_t* data = shares.data();
      put(core.in_data_i, data, BEAT);
      core.in_ring_i = data[BEAT];
      core.in_bytes_i = data[BEAT + 1];
      core.in_last_i = data[BEAT + 2];
      core.in_closes_i = data[BEAT + 3];
    }
    core.message_valid_i = 0;
    for (unsigned k = 0; k < 2; k++) {
      if (!messages[k].now()) continue;
      core.message_valid_i |= 1u << k;
      memcpy(&core.message_data_i[4 * k], messages[k].data(), WORD);
    }
    core.out_ready_i = !self.stalls.next();
    self.low();
    bool moves = shares.taken(core.in_ready_o);
    for (unsigned k = 0; k < 2; k++) moves |= messages[k].taken(core.message_ready_o >> k & 1);
    if (core.out_valid_o && core.out_ready_i && results.at < results.len) {
      memcpy(results.data + results.at, &core.out_data_o, BEAT);
      results.at += BEAT;
      moves = true;
    }
    return results.at == results.len ? 2 : moves ? 1 : 0;
  });
}

// Whether these are the codes of what came: 0 no, 1 yes, 2 if nothing is said.
uint32_t FUNCTION(verdict)(void* at, const uint8_t* codes, uint64_t* cycles) {
  auto& self = *static_cast<Core*>(at);
  auto& core = *self.core;
  uint32_t said = 2;
  *cycles = self.run([&] {
    core.code_valid_i = core.from_two_i ? 3 : 1;
    put(core.code_i, codes, 2 * WORD);
    self.low();
    if (core.checked_o) said = 1;
    if (core.fails_o) said = 0;
    return said != 2 ? 2 : 0;
  });
  return said;
}

}  // extern "C"
