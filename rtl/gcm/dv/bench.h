// What the benches of AES-GCM share: bytes, hexadecimal, words of 16 bytes in the ports of a model, and how a bench ends.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using Bytes = std::vector<uint8_t>;

inline uint64_t seed_of_all = 0;

[[noreturn]] inline void fail(const std::string& what) {
  std::printf("FAILED: %s (seed %llu)\n", what.c_str(), static_cast<unsigned long long>(seed_of_all));
  std::exit(1);
}

inline void expect(bool right, const std::string& what) {
  if (!right) fail(what);
}

inline Bytes unhex(const std::string& text) {
  Bytes out;
  if (text == "-") return out;
  for (size_t k = 0; k + 1 < text.size(); k += 2) out.push_back(static_cast<uint8_t>(std::stoul(text.substr(k, 2), nullptr, 16)));
  return out;
}

// Word `at` of some bytes, those that it lacks 0.
template <class Wide>
void put(Wide& wide, const Bytes& bytes, size_t at) {
  for (size_t k = 0; k < 4; k++) {
    uint32_t word = 0;
    for (size_t b = 0; b < 4; b++) {
      size_t index = 16 * at + 4 * k + b;
      if (index < bytes.size()) word |= static_cast<uint32_t>(bytes[index]) << (8 * b);
    }
    wide[k] = word;
  }
}

// The first bytes of a word, behind others.
template <class Wide>
void get(const Wide& wide, Bytes& bytes, size_t count = 16) {
  for (size_t k = 0; k < count; k++) bytes.push_back(static_cast<uint8_t>(wide[k / 4] >> (8 * (k % 4))));
}
