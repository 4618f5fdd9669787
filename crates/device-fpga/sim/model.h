// What the simulated cores have in common: names of functions, and stalls.

#pragma once

#include <cstdint>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define FUNCTION(name) JOIN(NAME, name)

namespace {

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
