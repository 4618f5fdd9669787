// Drives lookaside_local or lookaside_join, which is TOP. Reads what to do from standard input, words between blanks, values in hexadecimal:
//
//     set PORT VALUE                     from now on
//     key NUMBER VALUE                   of a component
//     command COMMAND DRAW STAGE         the next one; then its beats
//     beat VALUE
//     run OUT SEED STALLS                until OUT beats have come; each stream stops in STALLS of 8 cycles
//     cut CYCLES SEED STALLS             for so many cycles only; then a scrub, after which nothing may be left of what follows
//     secret VALUE                       64 bits that a scrub has to wipe
//
// Prints "out VALUE MISMATCH" of each beat, "cycles N" of each run, "found BEFORE AFTER" of each scrub.

#include <unordered_set>

#ifdef JOIN
#include "Vlookaside_join.h"
#include "Vlookaside_join___024root.h"
using Top = Vlookaside_join;
#else
#include "Vlookaside_local.h"
#include "Vlookaside_local___024root.h"
using Top = Vlookaside_local;
#endif
#include "../../share/dv/bench.h"

namespace {

constexpr unsigned SCRUB = 1024 + 192;  // cycles of the unit's, with the usual longest column

struct Stage {
  VerilatedContext context;
  Top top{&context};
  std::deque<std::string> beats;
  std::unordered_set<uint64_t> secrets;
  std::map<std::string, Port> ports;

  Stage() {
    ports = {{"pairs", top.pairs_i}};
#ifndef JOIN
    ports.insert({"form", top.form_i});
#endif
    top.rst_ni = 0;
    for (int k = 0; k < 4; k++) step();
    top.rst_ni = 1;
    scrub();
  }

  void step() {
    top.clk_i = 0, top.eval();
    top.clk_i = 1, top.eval();
  }

  void clear(Port port) { port.set("0"); }

  void scrub() {
    top.in_valid_i = top.out_ready_i = top.start_i = 0;
    clear(top.in_data_i);
    top.scrub_i = top.wipe_i = 1;
    step();
    top.scrub_i = 0;
    for (unsigned k = 0; k < SCRUB; k++) step();
    top.wipe_i = 0;
    step();
  }

  unsigned found() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(top.rootp);
    unsigned hits = 0;
    for (size_t at = 0; at + 9 <= sizeof(*top.rootp); at++) {
      uint64_t window;
      std::memcpy(&window, bytes + at, 8);
      for (unsigned bit = 0; bit < 8; bit++) hits += static_cast<unsigned>(secrets.count(bit ? window >> bit | uint64_t{bytes[at + 8]} << (64 - bit) : window));
    }
    return hits;
  }

  // Until so many beats have come, or for so many cycles.
  void run(long outs, long cycles, unsigned seed, unsigned stalls) {
    std::mt19937 random(seed);
    auto goes = [&] { return stalls == 0 || random() % 8 >= stalls; };
    bool offered = false, waits = false;
    std::string waiting;
    long cycle = 0, came = 0;
    for (long quiet = 0; came < outs && cycle < cycles; cycle++, quiet++) {
      if (quiet > 20000) {
        std::printf("failed: it hangs\n");
        std::exit(1);
      }
      if (!offered && !beats.empty() && goes()) {
        Port(top.in_data_i).set(beats.front());
        offered = true;
      }
      top.in_valid_i = offered;
      top.out_ready_i = goes();
      top.clk_i = 0, top.eval();
      const std::string value = Port(top.out_data_o).get();
      if (waits && (!top.out_valid_o || value != waiting)) {
        std::printf("failed: what is offered changes\n");
        std::exit(1);
      }
      waits = top.out_valid_o && !top.out_ready_i;
      waiting = value;
      if (offered && top.in_ready_o) {
        beats.pop_front();
        offered = false;
        quiet = 0;
      }
      if (top.out_valid_o && top.out_ready_i) {
        came++;
        quiet = 0;
#ifdef JOIN
        const int mismatch = top.mismatch_o;
#else
        const int mismatch = 0;
#endif
        std::printf("out %s %d\n", value.c_str(), mismatch);
      }
      top.clk_i = 1, top.eval();
      if (!offered) clear(top.in_data_i);
    }
    top.in_valid_i = top.out_ready_i = 0;
    if (cycle < cycles && !beats.empty()) {
      std::printf("failed: it takes too little\n");
      std::exit(1);
    }
    std::printf("cycles %ld\n", cycle);
  }
};

}  // namespace

int main() {
  Stage stage;
  for (std::string what, a, b, c; std::cin >> what;) {
    unsigned seed = 0, stalls = 0;
    long some = 0;
    if (what == "set") {
      std::cin >> a >> b;
      stage.ports.at(a).set(b);
    } else if (what == "key") {
      std::cin >> a >> b;
#ifndef JOIN
      Port(stage.top.key_number_i).set(a), Port(stage.top.key_i).set(b);
      stage.top.key_en_i = 1;
      stage.step();
      stage.top.key_en_i = 0;
      stage.clear(stage.top.key_i);
#endif
    } else if (what == "command") {
      std::cin >> a >> b >> c;
      Port(stage.top.command_i).set(a), Port(stage.top.draw_i).set(b), Port(stage.top.stage_i).set(c);
      stage.top.start_i = 1;
      stage.step();
      stage.top.start_i = 0;
    } else if (what == "beat") {
      std::cin >> a;
      stage.beats.push_back(a);
    } else if (what == "secret") {
      std::cin >> a;
      stage.secrets.insert(std::stoull(a, nullptr, 16));
    } else if (what == "run") {
      std::cin >> some >> seed >> stalls;
      stage.run(some, 1l << 40, seed, stalls);
    } else if (what == "cut") {
      std::cin >> some >> seed >> stalls;
      stage.run(1l << 40, some, seed, stalls);
      const unsigned before = stage.found();
      stage.beats.clear();
      for (auto& [name, port] : stage.ports) port.set("0");
      stage.scrub();
      std::printf("found %u %u\n", before, stage.found());
      stage.secrets.clear();
    } else {
      std::printf("failed: what is %s?\n", what.c_str());
      return 1;
    }
  }
  return 0;
}
