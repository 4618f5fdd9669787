// Drives a core whose interfaces are streams. Reads what to do from standard input, words between blanks, values in hexadecimal:
//
//     set PORT VALUE               from now on
//     push STREAM VALUE ...        a beat, with one value for each port of the stream
//     run SEED STALLS              until nothing is left to do; every stream has nothing, or is not ready, in STALLS of 8 cycles
//     for CYCLES SEED STALLS       for so many cycles
//     end CYCLES SEED STALLS       for so many cycles, without a word; then scrubs
//     other                        what is set and pushed from now on is for a second core
//     same CYCLES SEED STALLS      both for so many cycles, then scrubbed: the states have to be equal
//
// Prints beats as they leave, "STREAM VALUE ...", and of each run flags, "NAME 1", "cycles N" and "span STREAM CYCLES BEATS", from
// the first beat to the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "verilated.h"

// Written by cores.py once the model was made: what of its state is of the simulator.
#if __has_include("temporaries.h")
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#include "temporaries.h"
#endif
#ifndef TEMPORARIES
#define TEMPORARIES
#endif

// A port of any width, as bytes, the lowest first.
struct Port {
  unsigned char* at;
  size_t bytes;
  unsigned bit = 0;  // of a flag

  template <class Of>
  Port(Of& of) : at(reinterpret_cast<unsigned char*>(&of)), bytes(sizeof(of)) {}  // NOLINT: a port is what it names

  Port(void* at, size_t bytes, unsigned bit = 0) : at(static_cast<unsigned char*>(at)), bytes(bytes), bit(bit) {}

  void set(const std::string& hex) const {
    std::memset(at, 0, bytes);
    for (size_t k = 0; k < hex.size(); k++) {
      const char digit = hex[hex.size() - 1 - k];
      const unsigned value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
      if (k / 2 < bytes) at[k / 2] |= static_cast<unsigned char>(value << (4 * (k % 2)));
    }
  }

  std::string get() const {
    std::string hex;
    char two[3];
    for (size_t k = bytes; k-- > 0;) {
      std::snprintf(two, sizeof(two), "%02x", at[k]);
      hex += two;
    }
    return hex;
  }

  bool high() const { return at[0] >> bit & 1; }
  void raise(bool high) const { at[0] = static_cast<unsigned char>((at[0] & ~(1u << bit)) | static_cast<unsigned>(high) << bit); }
};

struct Stream {
  std::string name;
  Port valid, ready;
  std::vector<Port> data;
  std::deque<std::vector<std::string>> beats;
  bool eager = false;  // never waits
  bool offered = false;
  std::vector<std::string> waits;
  long first = 0, last = 0, count = 0;
};

template <class Top>
class Bench {
 public:
  Bench() : top(&context_) {}
  // A model that is destroyed asks the context of the thread, which is that of whatever model was made last, and may be gone.
  ~Bench() { Verilated::threadContextp(&context_); }

  VerilatedContext context_;
  Top top;
  std::vector<Stream> in, out;
  std::map<std::string, Port> ports, flags;

  void reset() {
    top.rst_ni = 0;
    for (int k = 0; k < 4; k++) step();
    top.rst_ni = 1;
    while (top.scrubs_o) step();
  }

  // Ends after so many cycles, if that is not 0.
  void run(unsigned seed, unsigned stalls, long after, bool prints) {
    std::mt19937 random(seed);
    auto goes = [&] { return stalls == 0 || random() % 8 >= stalls; };
    for (auto* streams : {&in, &out})
      for (Stream& stream : *streams) stream.first = stream.last = stream.count = 0;
    long cycle = 0;
    for (int quiet = 0; quiet < 64 && (after == 0 || cycle < after); cycle++) {
      if (cycle > 2'000'000) fail("it hangs");
      bool works = !top.idle_o;
      for (Stream& stream : in) {
        if (!stream.offered && !stream.beats.empty() && goes()) {
          for (size_t k = 0; k < stream.data.size(); k++) stream.data[k].set(stream.beats.front()[k]);
          stream.beats.pop_front();
          stream.offered = true;
        }
        stream.valid.raise(stream.offered);
        works = works || stream.offered || !stream.beats.empty();
      }
      for (Stream& stream : out) stream.ready.raise(goes() || stream.eager);
      settle();
      for (Stream& stream : in) {
        if (!stream.offered || !stream.ready.high()) continue;
        stream.offered = false;
        note(stream, cycle);
      }
      for (Stream& stream : out) {
        std::vector<std::string> values;
        for (const Port& port : stream.data) values.push_back(port.get());
        if (!stream.waits.empty() && (!stream.valid.high() || values != stream.waits)) fail(stream.name + " changes before it is taken");
        stream.waits.clear();
        if (!stream.valid.high()) continue;
        works = true;
        if (!stream.ready.high()) {
          stream.waits = values;
          continue;
        }
        note(stream, cycle);
        if (!prints) continue;
        std::printf("%s", stream.name.c_str());
        for (const std::string& value : values) std::printf(" %s", value.c_str());
        std::printf("\n");
      }
      rise();
      // A stream that is not offered shows nothing.
      for (Stream& stream : in)
        if (!stream.offered) clear(stream);
      quiet = works ? 0 : quiet + 1;
    }
    if (prints) {
      for (auto& [name, port] : flags) std::printf("%s %d\n", name.c_str(), port.high());
      std::printf("cycles %ld\n", cycle);
      for (auto* streams : {&in, &out})
        for (Stream& stream : *streams)
          if (stream.count) std::printf("span %s %ld %ld\n", stream.name.c_str(), stream.last - stream.first + 1, stream.count);
    }
  }

  void scrub() {
    for (Stream& stream : in) {
      stream.beats.clear();
      stream.offered = false;
      clear(stream);
    }
    for (Stream& stream : out) stream.ready.raise(false), stream.waits.clear();
    for (auto& [name, port] : ports) port.set("0");
    top.scrub_i = 1;
    step();
    top.scrub_i = 0;
    step();
    while (top.scrubs_o) step();
    step();
  }

  // Whether all that the model holds is the same. Neither the pointer to its own surroundings nor temporaries are of the hardware.
  bool same(const Bench& other) const {
    const char* own = reinterpret_cast<const char*>(top.rootp);
    const char* his = reinterpret_cast<const char*>(other.top.rootp);
    const size_t from = static_cast<size_t>(reinterpret_cast<const char*>(&top.rootp->clk_i) - own);
    const size_t symbols = static_cast<size_t>(reinterpret_cast<const char*>(&top.rootp->vlSymsp) - own);
    std::vector<bool> counts(sizeof(*top.rootp), true);
    const std::vector<std::pair<size_t, size_t>> temporaries = {TEMPORARIES};
    for (auto [at, size] : temporaries) std::fill_n(counts.begin() + static_cast<long>(at), size, false);
    std::fill_n(counts.begin() + static_cast<long>(symbols), sizeof(void*), false);
    size_t differ = 0;
    for (size_t k = from < 64 ? from : 64; k < sizeof(*top.rootp); k++) {
      differ += counts[k] && own[k] != his[k];
    }
    if (differ != 0) std::printf("differ %zu of %zu\n", differ, sizeof(*top.rootp));
    return differ == 0;
  }

  Stream& input(const std::string& name) {
    for (Stream& stream : in)
      if (stream.name == name) return stream;
    fail("no stream " + name);
  }

 private:
  void settle() { top.clk_i = 0; top.eval(); }
  void rise() { top.clk_i = 1; top.eval(); }
  void step() { settle(); rise(); }

  static void clear(Stream& stream) {
    stream.valid.raise(false);
    for (const Port& port : stream.data) port.set("0");
  }

  static void note(Stream& stream, long cycle) {
    if (stream.count++ == 0) stream.first = cycle;
    stream.last = cycle;
  }

  [[noreturn]] static void fail(const std::string& what) {
    std::printf("failed: %s\n", what.c_str());
    std::exit(1);
  }
};

// `ports` names streams and ports of a bench.
template <class Top, class Ports>
int drive(Ports ports) {
  auto fresh = [&] {
    auto bench = std::make_unique<Bench<Top>>();
    ports(*bench);
    bench->reset();
    return bench;
  };
  auto one = fresh(), two = std::unique_ptr<Bench<Top>>();
  Bench<Top>* now = one.get();
  for (std::string what; std::cin >> what;) {
    std::string name, value;
    unsigned seed, stalls;
    long after;
    if (what == "set") {
      std::cin >> name >> value;
      now->ports.at(name).set(value);
    } else if (what == "push") {
      std::cin >> name;
      Stream& stream = now->input(name);
      std::vector<std::string> beat(stream.data.size());
      for (std::string& one_of : beat) std::cin >> one_of;
      stream.beats.push_back(beat);
    } else if (what == "run") {
      std::cin >> seed >> stalls;
      now->run(seed, stalls, 0, true);
      std::fflush(stdout);
    } else if (what == "for") {
      std::cin >> after >> seed >> stalls;
      now->run(seed, stalls, after, true);
    } else if (what == "end") {
      std::cin >> after >> seed >> stalls;
      now->run(seed, stalls, after, false);
      now->scrub();
    } else if (what == "other") {
      two = fresh();
      now = two.get();
    } else if (what == "same") {
      std::cin >> after >> seed >> stalls;
      for (Bench<Top>* bench : {one.get(), two.get()}) {
        bench->run(seed, stalls, after, false);
        bench->scrub();
      }
      std::printf("same %d\n", one->same(*two));
      now = one.get();
    } else {
      std::printf("failed: what is %s?\n", what.c_str());
      return 1;
    }
  }
  return 0;
}
