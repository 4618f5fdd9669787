// Bench of gcm_core: messages of a file (vectors/model/gcm.py --messages) are encrypted and decrypted, with beats back to back and with
// random pauses, under keys that are written between them.
//
//     core_bench FILE [SEED]

#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "Vgcm_core.h"
#include "bench.h"
#include "verilated.h"

enum Kind { Head, Text, Tail };
constexpr unsigned NODES = 4, STAGES = 4, LATENCY = 17;

struct Message {
  Bytes key, nonce, additional, text, cipher, tag;
};

struct Beat {
  Kind kind;
  bool first, open;
  unsigned bytes, left, node;
  uint64_t counter;
  Bytes data, out; // as they come and leave
};

class Core {
 public:
  Vgcm_core top;
  std::deque<std::pair<uint64_t, Beat>> inside; // with the cycle in which each left us
  uint64_t cycle = 0;

  Core() {
    top.clk_i = 0;
    top.rst_ni = 0;
    top.wipe_i = 0;
    top.idle_i = 1;
    top.load_valid_i = 0;
    pause();
    for (int k = 0; k < 3; k++) tick();
    top.rst_ni = 1;
    wipe();
  }

  void pause() {
    for (unsigned k = 0; k < WORDS; k++) top.beat_i[k] = 0;
  }

  void wipe() {
    top.wipe_i = 1;
    for (unsigned k = 0; k < 2 * LATENCY; k++) tick();
    top.wipe_i = 0;
  }

  void tick() {
    top.eval();
    if (top.valid_o) {
      expect(!inside.empty(), "nothing leaves that did not come");
      auto [at, beat] = inside.front();
      inside.pop_front();
      expect(cycle - at == LATENCY, "every beat leaves after the same number of cycles");
      expect(top.kind_o == beat.kind, "beats leave in their order");
      Bytes data;
      get(top.data_o, data);
      beat.out.resize(16);
      if (beat.kind != Head) expect(data == beat.out, beat.kind == Text ? "the text is right" : "the tag is right");
    }
    top.clk_i = 1;
    top.eval();
    top.clk_i = 0;
    top.eval();
    cycle++;
  }

  void load(unsigned node, const Message& message) {
    top.load_valid_i = 1;
    top.load_node_i = node;
    put(top.load_key_i, message.key, 0);
    top.load_salt_i = message.nonce[0] | message.nonce[1] << 8 | message.nonce[2] << 16 | static_cast<uint32_t>(message.nonce[3]) << 24;
    top.eval();
    while (!top.load_ready_o) tick();
    tick();
    top.load_valid_i = 0;
    top.eval();
    expect(!(top.known_o >> node & 1), "a key is not there before its powers are");
    while (top.loads_o) {
      tick();
      top.eval();
    }
    expect(top.known_o >> node & 1, "a key is there when its powers are");
  }

  // Fields from the lowest: data 128, counter 64, left 3, bytes 5, open, first, kind 2, valid.
  void send(const Beat& beat) {
    uint64_t rest = beat.left | uint64_t{beat.bytes} << 3 | uint64_t{beat.open} << 8 | uint64_t{beat.first} << 9 |
                    uint64_t{beat.kind} << 10 | uint64_t{1} << 12;
    put(top.beat_i, beat.data, 0);
    top.beat_i[4] = static_cast<uint32_t>(beat.counter);
    top.beat_i[5] = static_cast<uint32_t>(beat.counter >> 32);
    top.beat_i[6] = static_cast<uint32_t>(rest);
    top.node_i = beat.node;
    inside.emplace_back(cycle, beat);
    tick();
    pause();
  }

 private:
  static constexpr unsigned WORDS = 7;
};

static Bytes part(const Bytes& bytes, size_t at) {
  size_t begin = std::min(16 * at, bytes.size()), end = std::min(16 * at + 16, bytes.size());
  return Bytes(bytes.begin() + static_cast<long>(begin), bytes.begin() + static_cast<long>(end));
}

static std::vector<Beat> beats(const Message& message, unsigned node, bool open) {
  std::vector<Beat> out;
  uint64_t counter = 0;
  for (size_t k = 4; k < 12; k++) counter = counter << 8 | message.nonce[k];
  auto words = [](const Bytes& bytes) { return (bytes.size() + 15) / 16; };
  const size_t heads = words(message.additional), texts = words(message.text);
  size_t left = heads + texts + 1;
  auto add = [&](Kind kind, const Bytes& in, const Bytes& result) {
    if (!in.empty()) left--;
    unsigned more = static_cast<unsigned>(std::min<size_t>(left, STAGES));
    out.push_back({kind, out.empty(), open, static_cast<unsigned>(in.size()), more, node, counter, in, result});
  };
  for (size_t k = 0; k < std::max<size_t>(heads, 1); k++) add(Head, part(message.additional, k), {});
  const Bytes &from = open ? message.cipher : message.text, &to = open ? message.text : message.cipher;
  for (size_t k = 0; k < texts; k++) add(Text, part(from, k), part(to, k));
  Bytes lengths(16);
  for (int k = 0; k < 8; k++) {
    lengths[7 - k] = static_cast<uint8_t>(8 * message.additional.size() >> (8 * k));
    lengths[15 - k] = static_cast<uint8_t>(8 * message.text.size() >> (8 * k));
  }
  add(Tail, lengths, message.tag);
  return out;
}

int main(int argc, char** argv) {
  expect(argc > 1, "core_bench FILE [SEED]");
  seed_of_all = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1;
  std::mt19937_64 random(seed_of_all);
  std::ifstream file(argv[1]);
  std::vector<Message> messages;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string f[6];
    for (auto& field : f) fields >> field;
    messages.push_back({unhex(f[0]), unhex(f[1]), unhex(f[2]), unhex(f[3]), unhex(f[4]), unhex(f[5])});
  }
  expect(messages.size() >= 5, "there are messages");
  auto core = std::make_unique<Core>();
  uint64_t sent = 0;
  for (unsigned pauses : {0u, 1u, 3u, 6u}) { // of 8
    for (size_t k = 0; k < messages.size(); k += NODES) {
      const size_t some = std::min<size_t>(NODES, messages.size() - k);
      for (unsigned node = 0; node < some; node++) core->load(node, messages[k + node]);
      // Each of them both ways, one behind the other.
      for (unsigned n = 0; n < 2 * some; n++)
        for (const Beat& beat : beats(messages[k + n / 2], n / 2, n & 1)) {
          while (random() % 8 < pauses) core->tick();
          core->send(beat);
          sent++;
        }
      if (random() % 2) // or the next keys come while beats are inside
        for (unsigned n = 0; n < LATENCY + 3; n++) core->tick();
    }
  }
  for (unsigned n = 0; n < LATENCY + 3; n++) core->tick();
  expect(core->inside.empty(), "all that came leaves");
  std::printf("gcm_core, seed %llu: %zu messages, %llu beats: right\n", static_cast<unsigned long long>(seed_of_all), messages.size(),
              static_cast<unsigned long long>(sent));
  return 0;
}
