// Runs ordered_core. Reads what to do from standard input, words and numbers between blanks:
//
//     netlist N, N words in hexadecimal       written as the netlist
//     run SEED STALLS FIRST INSTANCE CYCLES OF_RUN OF_CYCLE OF_LATER
//     end AFTER                               the next run is scrubbed after so many cycles
//     same AFTER ...                          as run, twice at once with labels of two seeds, both scrubbed: the states have to be equal
//
// Prints of a run its offset, start of the hash, labels, tables and masks as they leave, in hexadecimal, and "count CYCLES_O CYCLES".
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "Vordered_core.h"
#include "Vordered_core___024root.h"
#include "verilated.h"

namespace {

constexpr int kLine = 2 * ROWS * 4;     // 32-bit words of a line of labels
constexpr long kPatience = 20'000'000;  // cycles of a run, before it is said to hang

struct Run {
  unsigned seed, stalls, first, instance, cycles, of_run, of_cycle, of_later;
};

class Bench {
 public:
  Bench() : top_(&context_) {
    top_.rst_ni = 0;
    for (int k = 0; k < 4; k++) step();
    top_.rst_ni = 1;
    wait();
  }

  // A model that is destroyed asks the context of the thread, which is that of whatever model was made last, and may be gone.
  ~Bench() { Verilated::threadContextp(&context_); }

  void write(const std::vector<uint64_t>& words) {
    entries_ = words.size();
    top_.netlist_en_i = 1;
    for (size_t k = 0; k < words.size(); k++) {
      top_.netlist_line_i = k / ROWS;
      top_.netlist_bank_i = k % ROWS;
      top_.netlist_word_i = words[k];
      step();
    }
    top_.netlist_en_i = 0;
  }

  // Stops after `end` cycles, if it is not 0, and scrubs.
  void run(const Run& run, long end, bool prints) {
    std::mt19937 labels(run.seed), stalls(run.stalls);
    for (int k = 0; k < 4; k++) {
      top_.offset_i[k] = labels();
      top_.hash_start_i[k] = labels();
    }
    top_.offset_i[0] |= 1;
    if (prints) {
      print("offset", &top_.offset_i[0], 4);
      print("start", &top_.hash_start_i[0], 4);
    }
    top_.first_i = run.first;
    top_.instance_i = run.instance;
    top_.entries_i = entries_;
    top_.cycles_i = run.cycles;
    top_.of_run_i = run.of_run;
    top_.of_cycle_i = run.of_cycle;
    top_.of_later_i = run.of_later;
    top_.start_i = 1;
    step();
    top_.start_i = 0;
    auto draw = [&] { for (int k = 0; k < kLine; k++) top_.in_labels_i[k] = labels(); };
    // A fraction of cycles; what is offered stays until it is taken.
    auto often = [&](unsigned one_in) { return run.stalls == 0 || stalls() % one_in == 0; };
    bool offered = false;
    draw();
    for (long cycle = 1; cycle < kPatience; cycle++) {
      offered = offered || often(3);
      top_.in_valid_i = offered;
      top_.label_ready_i = often(3);
      top_.table_ready_i = often(2);
      top_.masks_ready_i = often(16);
      settle();
      if (prints && top_.label_valid_o && top_.label_ready_i) print("label", &top_.label_o[0], 4);
      if (prints && top_.table_valid_o && top_.table_ready_i) print("table", &top_.table_o[0], 8);
      if (prints && top_.masks_valid_o && top_.masks_ready_i) print("masks", &top_.masks_o[0], 8);
      const bool taken = top_.in_valid_i && top_.in_ready_o, done = top_.done_o;
      if (end != 0 && cycle == end) top_.scrub_i = 1;
      rise();
      top_.scrub_i = 0;
      if (taken) {
        draw();
        offered = false;
      }
      if (end != 0 && cycle == end) return clear();
      if (done) {
        if (prints) std::printf("count %ld %ld\n", static_cast<long>(top_.cycles_o), cycle);
        return wait();
      }
    }
    std::printf("hangs\n");
    std::exit(1);
  }

  // Whether all that the model holds is the same. The pointer to its own surroundings is not of the hardware.
  bool same(const Bench& other) const {
    const char* own = reinterpret_cast<const char*>(top_.rootp);
    const char* his = reinterpret_cast<const char*>(other.top_.rootp);
    const size_t from = reinterpret_cast<const char*>(&top_.rootp->clk_i) - own;
    const size_t symbols = reinterpret_cast<const char*>(&top_.rootp->vlSymsp) - own;
    size_t differ = 0;
    for (size_t k = from < 64 ? from : 64; k < sizeof(*top_.rootp); k++) {
      if (k >= symbols && k < symbols + sizeof(void*)) continue;
      differ += own[k] != his[k];
    }
    if (differ != 0) std::printf("differ %zu of %zu\n", differ, sizeof(*top_.rootp));
    return differ == 0;
  }

 private:
  void settle() { top_.clk_i = 0; top_.eval(); }
  void rise() { top_.clk_i = 1; top_.eval(); }
  void step() { settle(); rise(); }

  void wait() {
    for (settle(); top_.busy_o; settle()) rise();
    rise();
  }

  // After scrubbing, with nothing secret at the ports any more.
  void clear() {
    for (int k = 0; k < 4; k++) top_.offset_i[k] = top_.hash_start_i[k] = 0;
    for (int k = 0; k < kLine; k++) top_.in_labels_i[k] = 0;
    top_.in_valid_i = top_.label_ready_i = top_.table_ready_i = top_.masks_ready_i = 0;
    wait();
  }

  static void print(const char* name, const uint32_t* words, int count) {
    std::printf("%s ", name);
    while (count-- > 0) std::printf("%08x", words[count]);
    std::printf("\n");
  }

  VerilatedContext context_;
  Vordered_core top_;
  size_t entries_ = 0;
};

Run read_run() {
  Run run;
  std::cin >> run.seed >> run.stalls >> run.first >> run.instance >> run.cycles >> run.of_run >> run.of_cycle >> run.of_later;
  return run;
}

}  // namespace

int main() {
  auto bench = std::make_unique<Bench>();
  std::vector<uint64_t> words;
  long end = 0;
  for (std::string what; std::cin >> what;) {
    if (what == "netlist") {
      size_t count;
      std::cin >> std::dec >> count;
      words.resize(count);
      for (auto& word : words) std::cin >> std::hex >> word;
      std::cin >> std::dec;
      bench->write(words);
    } else if (what == "end") {
      std::cin >> end;
    } else if (what == "run") {
      bench->run(read_run(), end, end == 0);
      end = 0;
    } else if (what == "same") {
      std::cin >> end;
      Run run = read_run();
      auto one = std::make_unique<Bench>(), other = std::make_unique<Bench>();
      one->write(words);
      other->write(words);
      one->run(run, end, false);
      run.seed++;
      other->run(run, end, false);
      std::printf("same %d\n", one->same(*other));
      end = 0;
    }
  }
}
