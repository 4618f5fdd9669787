// Bench of gcm_inline: packets of a file (vectors/model/gcm.py --packets) leave and come in at once with random stalls on every interface;
// between those that are right come others that are forged, repeated, early, cut short, too long or of nobody. Each has the completion
// that it should have, and no word of a packet that is not right is ever offered.
//
//     inline_bench FILE OTHER [SEED]
//
// OTHER has packets of the same sizes in the same order under other keys: cycles do not depend on what they say.

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <unordered_set>

#include "Vgcm_inline.h"
#include "Vgcm_inline___024root.h"
#include "bench.h"
#include "verilated.h"

enum Status { Ok, Length, Node, NoKey, Spent, Forged, Order };
static const char* const NAMES[] = {"right", "of a wrong length", "of a wrong node", "without a key", "of a spent key", "forged", "out of order"};
constexpr unsigned NODES = 4, MAX_BYTES = 4096, LIMIT = 32; // as the model was made

struct Packet {
  unsigned out, node;
  Bytes key, salt;
  uint64_t counter;
  Bytes h, text, wire;
};

struct Word {
  Bytes data;
  unsigned node = 0, keep = 0xffff;
  bool last = false;
  bool operator==(const Word& other) const { return data == other.data && node == other.node && keep == other.keep && last == other.last; }
};

struct Completion {
  unsigned status, node, bytes;
  uint64_t counter;
  bool operator==(const Completion& o) const { return status == o.status && node == o.node && bytes == o.bytes && counter == o.counter; }
};

// A stream out of the model: what is offered stays until it is taken, and is what is expected.
template <class Item>
struct Sink {
  std::deque<Item> expected;
  bool waits = false;
  Item offered;
  uint64_t taken = 0;

  void look(bool valid, bool ready, const Item& item, const std::string& what) {
    if (waits) expect(valid && item == offered, what + ": what is offered stays until it is taken");
    waits = valid && !ready;
    offered = item;
    if (!valid) return;
    expect(!expected.empty(), what + ": nothing is offered that should not be");
    expect(item == expected.front(), what + ": it is what it should be");
    if (!ready) return;
    expected.pop_front();
    taken++;
  }
};

class Inline {
 public:
  Vgcm_inline top;
  std::deque<Word> text_in, wire_in;
  Sink<Word> wire_out, text_out;
  Sink<Completion> sealed, opened;
  unsigned stalls = 0;  // of 8
  bool stopped = false; // the wire takes nothing
  uint64_t cycle = 0;
  std::vector<uint16_t> trace; // of each cycle, who was valid and ready

  explicit Inline(uint64_t seed) : random(seed) {
    top.clk_i = top.rst_ni = top.scrub_i = top.key_valid_i = 0;
    top.self_i = 0;
    quiet();
    for (int k = 0; k < 3; k++) step();
    top.rst_ni = 1;
    until([&] { return !top.scrubs_o; });
  }

  void quiet() {
    text_in.clear();
    wire_in.clear();
    text_offered = wire_offered = false;
    wire_out = text_out = {};
    sealed = opened = {};
  }

  void step() {
    drive(text_in, top.s_axis_text_tvalid_i, top.s_axis_text_tdata_i, top.s_axis_text_tlast_i, [&](const Word& word) {
      top.s_axis_text_tkeep_i = static_cast<uint16_t>(word.keep);
      top.s_axis_text_tdest_i = static_cast<uint8_t>(word.node);
    });
    drive(wire_in, top.s_axis_wire_tvalid_i, top.s_axis_wire_tdata_i, top.s_axis_wire_tlast_i, [](const Word&) {});
    top.m_axis_wire_tready_i = goes() && !stopped;
    top.m_axis_text_tready_i = goes();
    top.sealed_ready_i = goes();
    top.opened_ready_i = goes();
    top.eval();
    trace.push_back(static_cast<uint16_t>(
        top.s_axis_text_tvalid_i | top.s_axis_text_tready_o << 1 | top.s_axis_wire_tvalid_i << 2 | top.s_axis_wire_tready_o << 3 |
        top.m_axis_wire_tvalid_o << 4 | top.m_axis_text_tvalid_o << 5 | top.sealed_valid_o << 6 | top.opened_valid_o << 7 | top.key_ready_o << 8));
    const bool text_moves = top.s_axis_text_tvalid_i && top.s_axis_text_tready_o;
    const bool wire_moves = top.s_axis_wire_tvalid_i && top.s_axis_wire_tready_o;
    if (top.rst_ni && !top.scrub_i) {
      wire_out.look(top.m_axis_wire_tvalid_o, top.m_axis_wire_tready_i,
                    {word(top.m_axis_wire_tdata_o), top.m_axis_wire_tdest_o, 0xffff, bool(top.m_axis_wire_tlast_o)}, "wire");
      text_out.look(top.m_axis_text_tvalid_o, top.m_axis_text_tready_i,
                    {word(top.m_axis_text_tdata_o), top.m_axis_text_tdest_o, top.m_axis_text_tkeep_o, bool(top.m_axis_text_tlast_o)}, "text");
      sealed.look(top.sealed_valid_o, top.sealed_ready_i, completion(top.sealed_o), "packet that leaves");
      opened.look(top.opened_valid_o, top.opened_ready_i, completion(top.opened_o), "packet that comes in");
      if (top.scrubs_o)
        expect(!top.s_axis_text_tready_o && !top.s_axis_wire_tready_o && !top.key_ready_o && !top.m_axis_text_tvalid_o && !top.m_axis_wire_tvalid_o && !top.sealed_valid_o && !top.opened_valid_o,
               "nothing moves in a scrub");
    }
    top.clk_i = 1;
    top.eval();
    top.clk_i = 0;
    top.eval();
    cycle++;
    if (text_moves) text_in.pop_front(), text_offered = false;
    if (wire_moves) wire_in.pop_front(), wire_offered = false;
  }

  template <class Condition>
  void until(Condition condition) {
    for (uint64_t limit = cycle + 1000000; !condition(); step()) expect(cycle < limit, "it ends");
  }

  bool idle(bool out) const {
    return out ? text_in.empty() && wire_out.expected.empty() && sealed.expected.empty()
               : wire_in.empty() && text_out.expected.empty() && opened.expected.empty();
  }

  void key(const Packet& packet) {
    top.key_valid_i = 1;
    top.key_open_i = !packet.out;
    top.key_node_i = static_cast<uint8_t>(packet.node);
    put(top.key_i, packet.key, 0);
    std::memcpy(&top.key_salt_i, packet.salt.data(), 4);
    top.eval();
    while (!top.key_ready_o) {
      step();
      top.eval();
    }
    step();
    top.key_valid_i = 0;
    for (unsigned k = 0; k < 4; k++) top.key_i[k] = 0;
  }

  // Text that is to be sealed, and what becomes of it.
  void seal(unsigned node, const Bytes& text, const Completion& done, const Bytes& wire, bool hole = false) {
    const size_t words = std::max<size_t>(1, (text.size() + 15) / 16);
    for (size_t k = 0; k < words; k++) {
      size_t count = std::min<size_t>(16, text.size() - 16 * k);
      text_in.push_back({slice(text, k), node, hole && k == 0 ? 0x7ffeu : (1u << count) - 1, k + 1 == words});
    }
    for (size_t k = 0; 16 * k < wire.size(); k++) wire_out.expected.push_back({slice(wire, k), node, 0xffff, 16 * (k + 1) == wire.size()});
    sealed.expected.push_back(done);
  }

  // A packet from the wire, and what becomes of it: its text if it is right.
  void open(const Bytes& wire, const Completion& done, unsigned node, const Bytes& text) {
    for (size_t k = 0; 16 * k < wire.size(); k++) wire_in.push_back({slice(wire, k), 0, 0xffff, 16 * (k + 1) >= wire.size()});
    const size_t words = done.status == Ok ? (text.size() + 15) / 16 : 0;
    for (size_t k = 0; k < words; k++)
      text_out.expected.push_back({slice(text, k), node, (1u << std::min<size_t>(16, text.size() - 16 * k)) - 1, k + 1 == words});
    opened.expected.push_back(done);
  }

  // How often one of some values of 64 bits lies anywhere in the model.
  unsigned found(const std::unordered_set<uint64_t>& halves) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(top.rootp);
    const size_t size = sizeof(*top.rootp);
    unsigned hits = 0;
    for (size_t at = 0; at + 9 <= size; at++) {
      uint64_t window;
      std::memcpy(&window, bytes + at, 8);
      for (unsigned bit = 0; bit < 8; bit++)
        hits += static_cast<unsigned>(halves.count(bit ? window >> bit | uint64_t{bytes[at + 8]} << (64 - bit) : window));
    }
    return hits;
  }

 private:
  std::mt19937_64 random;
  bool text_offered = false, wire_offered = false;

  bool goes() { return stalls == 0 || random() % 8 >= stalls; }

  template <class Valid, class Data, class Last, class More>
  void drive(const std::deque<Word>& from, Valid& valid, Data& data, Last& last, More more) {
    bool& offered = &from == &text_in ? text_offered : wire_offered;
    const bool may = goes();
    offered = !from.empty() && (offered || may);
    valid = offered;
    put(data, offered ? from.front().data : Bytes(16), 0);
    last = offered && from.front().last;
    if (offered) more(from.front());
  }

  static Bytes slice(const Bytes& bytes, size_t at) {
    Bytes out(16);
    for (size_t k = 0; k < 16 && 16 * at + k < bytes.size(); k++) out[k] = bytes[16 * at + k];
    return out;
  }

  template <class Wide>
  static Bytes word(const Wide& wide) {
    Bytes out;
    get(wide, out);
    return out;
  }

  template <class Wide>
  static Completion completion(const Wide& wide) {
    return {wide[2] >> 24 & 7, wide[2] >> 16 & 255, wide[2] & 65535, wide[0] | uint64_t{wide[1]} << 32};
  }
};

static std::vector<Packet> load(const char* path) {
  std::ifstream file(path);
  std::vector<Packet> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string f[8];
    for (auto& field : f) fields >> field;
    out.push_back({f[0] == "0", static_cast<unsigned>(std::stoul(f[1])), unhex(f[2]), unhex(f[3]), std::stoull(f[4]), unhex(f[5]), unhex(f[6]), unhex(f[7])});
  }
  expect(!out.empty(), "there are packets");
  return out;
}

// What a node that opens packets knows of another.
struct Channel {
  bool known = false;
  uint64_t expected = 0;
  std::map<Bytes, uint64_t> sealed; // all packets under its key, with their counters
};

static uint64_t number(const Bytes& bytes, size_t at, size_t count) {
  uint64_t out = 0;
  for (size_t k = count; k-- > 0;) out = out << 8 | bytes[at + k];
  return out;
}

// What a packet is, by the description of packets alone.
static Completion judge(std::map<unsigned, Channel>& channels, const Bytes& wire) {
  const unsigned from = wire[1], bytes = static_cast<unsigned>(number(wire, 4, 2));
  Completion done{Ok, from, bytes, number(wire, 8, 8)};
  const size_t words = (bytes + 15) / 16;
  auto status = [&]() -> unsigned {
    if (wire[0] != 1 || wire[2] != 0 || wire[3] || wire[6] || wire[7] || from == 0 || from >= NODES) return Node;
    Channel& channel = channels[from];
    if (!channel.known) return NoKey;
    if (bytes > MAX_BYTES || wire.size() != 16 * (words + 2)) return Length;
    for (size_t k = 16 + bytes; k < 16 + 16 * words; k++)
      if (wire[k]) return Length;
    auto it = channel.sealed.find(wire);
    if (it == channel.sealed.end()) return Forged;
    if (it->second != channel.expected) return Order;
    channel.expected++;
    return Ok;
  };
  done.status = status();
  return done;
}

struct Counts {
  uint64_t out[7] = {}, in[7] = {};
};

// Something that is no packet that should come now.
static Bytes other(std::mt19937_64& random, const Packet& next, const std::vector<Bytes>& before, const std::vector<Packet>& packets, size_t at) {
  Bytes wire = next.wire;
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  switch (below(10)) {
    case 0: // a bit of the header
      wire[below(16)] ^= static_cast<uint8_t>(1 << below(8));
      return wire;
    case 1: // of the tag
      wire[wire.size() - 1 - below(16)] ^= static_cast<uint8_t>(1 << below(8));
      return wire;
    case 2: // of anything
      wire[below(wire.size())] ^= static_cast<uint8_t>(1 << below(8));
      return wire;
    case 3: // one that was there
      return before.empty() ? wire : before[below(before.size())];
    case 4: // one that comes later
      for (size_t k = at + 1 + below(8); k < packets.size(); k++)
        if (!packets[k].out) return packets[k].wire;
      return before.empty() ? wire : before[0];
    case 5: // cut short
      wire.resize(16 * (1 + below(wire.size() / 16 - 1)));
      return wire;
    case 6: // and with more
      for (size_t k = 16 * (1 + below(3)); k > 0; k--) wire.push_back(static_cast<uint8_t>(random()));
      return wire;
    case 7: // that says it is longer than any
      wire[5] = 0x10;
      wire[4] = 1;
      wire.resize(16 * (2 + below(400)));
      return wire;
    case 8: { // one of our own
      for (size_t k = at; k-- > 0;)
        if (packets[k].out) return packets[k].wire;
      return Bytes(16);
    }
    default: { // anything
      Bytes any(16 * (1 + below(5)));
      for (auto& byte : any) byte = static_cast<uint8_t>(random());
      if (below(2)) any[0] = 1, any[2] = any[3] = any[6] = any[7] = 0, any[1] = static_cast<uint8_t>(below(NODES)), any[5] = 0;
      return any;
    }
  }
}

static std::vector<uint16_t> traffic(const std::vector<Packet>& packets, uint64_t seed, unsigned stalls, Counts& counts) {
  std::mt19937_64 random(seed);
  auto path = std::make_unique<Inline>(seed ^ 1);
  path->stalls = stalls;
  std::map<unsigned, Channel> channels;
  std::vector<uint64_t> sent(NODES, 0);
  std::vector<bool> keyed(NODES, false);
  std::vector<Bytes> before;
  for (size_t at = 0; at < packets.size(); at++) {
    const Packet& packet = packets[at];
    const unsigned node = packet.node;
    if (packet.counter == 0) {
      if (packet.out && !keyed[node]) {
        path->seal(node, packet.text, {NoKey, node, static_cast<unsigned>(packet.text.size()), 0}, {});
        counts.out[NoKey]++;
      }
      if (!packet.out && channels.find(node) == channels.end()) {
        const Completion done = judge(channels, packet.wire);
        path->open(packet.wire, done, 0, {});
        counts.in[done.status]++;
      }
      path->until([&] { return path->idle(packet.out); });
      path->key(packet);
      if (packet.out) {
        sent[node] = 0;
        keyed[node] = true;
      } else {
        Channel& channel = channels[node] = Channel{true, 0, {}};
        for (size_t k = at; k < packets.size() && (k == at || packets[k].out || packets[k].node != node || packets[k].counter); k++)
          if (!packets[k].out && packets[k].node == node) channel.sealed[packets[k].wire] = packets[k].counter;
      }
    }
    if (packet.out) {
      const unsigned bytes = static_cast<unsigned>(packet.text.size());
      if (random() % 8 == 0 && bytes > 16) path->seal(node, packet.text, {Length, node, 0, 0}, {}, true), counts.out[Length]++;
      if (random() % 16 == 0) path->seal(node, Bytes(MAX_BYTES + 1 + random() % 40, 7), {Length, node, MAX_BYTES, 0}, {}), counts.out[Length]++;
      if (random() % 16 == 0) path->seal(0, packet.text, {Node, 0, bytes, 0}, {}), counts.out[Node]++;
      const bool spent = sent[node] == LIMIT;
      path->seal(node, packet.text, {spent ? unsigned(Spent) : unsigned(Ok), node, bytes, spent ? 0 : sent[node]}, spent ? Bytes() : packet.wire);
      counts.out[spent ? Spent : Ok]++;
      if (!spent) sent[node]++;
    } else {
      for (unsigned k = static_cast<unsigned>(random() % 4); k < 2; k++) {
        const Bytes wire = other(random, packet, before, packets, at);
        const Completion done = judge(channels, wire);
        if (done.status == Ok) { // it was the next after all
          for (const Packet& p : packets)
            if (p.wire == wire) path->open(wire, done, p.node, p.text);
          before.push_back(wire);
        } else {
          path->open(wire, done, 0, {});
        }
        counts.in[done.status]++;
      }
      const Completion done = judge(channels, packet.wire);
      path->open(packet.wire, done, node, packet.text);
      counts.in[done.status]++;
      before.push_back(packet.wire);
    }
    if (random() % 4 == 0)
      for (unsigned k = static_cast<unsigned>(random() % 60); k > 0; k--) path->step();
  }
  path->until([&] { return path->idle(true) && path->idle(false); });
  for (unsigned k = 0; k < 100; k++) path->step();
  return path->trace;
}

// Packets that follow each other have a word on the wire in every cycle, both ways; and how long one alone takes.
static void rate(const std::vector<Packet>& packets) {
  for (unsigned out : {1u, 0u}) {
    auto path = std::make_unique<Inline>(1);
    std::vector<Packet> chosen;
    uint64_t words = 0;
    for (const Packet& packet : packets) { // as many of a node's key as fit into the queues, of the first one that has more than two
      if (packet.out != out || (!chosen.empty() && packet.node != chosen[0].node)) continue;
      if (chosen.size() == 30 || packet.counter != chosen.size() || words + packet.wire.size() / 16 > 500) {
        if (chosen.size() > 2) break;
        chosen.clear();
        words = 0;
        if (packet.counter != 0) continue;
      }
      chosen.push_back(packet);
      words += packet.wire.size() / 16;
    }
    expect(chosen.size() > 2, "there are some packets under one key");
    path->key(chosen[0]);
    for (unsigned k = 0; k < 100; k++) path->step();
    auto send = [&](const Packet& packet) {
      const Completion done{Ok, packet.node, static_cast<unsigned>(packet.text.size()), packet.counter};
      if (out) path->seal(packet.node, packet.text, done, packet.wire);
      else path->open(packet.wire, done, packet.node, packet.text);
    };
    path->stopped = out;
    for (const Packet& packet : chosen) send(packet);
    if (out) // the queues are full of it, then the wire takes it
      for (unsigned k = 0; k < 1000; k++) path->step();
    path->stopped = false;
    const uint64_t begin = path->cycle;
    path->until([&] { return out ? path->wire_out.expected.empty() : path->wire_in.empty(); });
    expect(path->cycle - begin == words, "a word of the wire per cycle: " + std::to_string(path->cycle - begin) + " for " + std::to_string(words));
    path->until([&] { return path->idle(out); });
    std::printf("%s: %zu packets, %llu words of the wire in as many cycles\n", out ? "sealed" : "opened", chosen.size(),
                static_cast<unsigned long long>(words));
  }
}

// From the last word of a packet that comes to the first that leaves.
static void latency(const std::vector<Packet>& packets) {
  for (unsigned out : {1u, 0u})
    for (const Packet& packet : packets) {
      if (packet.out != out || packet.counter || packet.text.empty()) continue;
      auto path = std::make_unique<Inline>(1);
      path->key(packet);
      for (unsigned k = 0; k < 100; k++) path->step();
      const Completion done{Ok, packet.node, static_cast<unsigned>(packet.text.size()), 0};
      if (out) path->seal(packet.node, packet.text, done, packet.wire);
      else path->open(packet.wire, done, packet.node, packet.text);
      path->until([&] { return out ? path->text_in.empty() : path->wire_in.empty(); });
      const uint64_t begin = path->cycle;
      path->until([&] { return (out ? path->wire_out.taken : path->text_out.taken) > 0; });
      const uint64_t cycles = path->cycle - begin, said = out ? 19 : 18;
      expect(cycles == said, "the first word leaves " + std::to_string(said) + " cycles after the last came, not " + std::to_string(cycles));
      break;
    }
}

static std::unordered_set<uint64_t> halves(const std::vector<Packet>& packets) {
  std::unordered_set<uint64_t> all;
  auto add = [&](const Bytes& bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) all.insert(number(bytes, at, 8));
  };
  for (const Packet& packet : packets) {
    Bytes reflected = packet.h; // as the powers lie
    for (auto& byte : reflected) {
      uint8_t turned = 0;
      for (unsigned bit = 0; bit < 8; bit++) turned = static_cast<uint8_t>(turned | (byte >> bit & 1) << (7 - bit));
      byte = turned;
    }
    add(packet.key);
    add(packet.h);
    add(reflected);
    add(packet.text);
  }
  all.erase(0);
  return all;
}

// A scrub, or a reset, at any moment leaves no key and no text, and no key may be used after it.
static void wiped(const std::vector<Packet>& packets, uint64_t seed, bool by_pin) {
  std::mt19937_64 random(seed);
  auto path = std::make_unique<Inline>(seed);
  path->stalls = static_cast<unsigned>(random() % 5);
  std::set<std::pair<unsigned, unsigned>> keyed;
  std::vector<Packet> used;
  for (const Packet& packet : packets) {
    if (used.size() == 20 || (packet.counter == 0 && keyed.count({packet.out, packet.node}))) break;
    if (packet.counter == 0) {
      keyed.insert({packet.out, packet.node});
      path->key(packet);
    }
    used.push_back(packet);
  }
  for (const Packet& packet : used) {
    const Completion done{Ok, packet.node, static_cast<unsigned>(packet.text.size()), packet.counter};
    if (packet.out) path->seal(packet.node, packet.text, done, packet.wire);
    else path->open(packet.wire, done, packet.node, packet.text);
  }
  for (uint64_t k = random() % 300; k > 0; k--) path->step();
  const auto secret = halves(used);
  expect(path->found(secret) > 0, "secrets are found where they are");
  path->quiet();
  (by_pin ? path->top.rst_ni : path->top.scrub_i) = !by_pin;
  path->step();
  path->top.rst_ni = 1;
  path->top.scrub_i = 0;
  path->quiet();
  path->top.eval();
  expect(path->top.scrubs_o, "a reset is followed by a scrub");
  path->until([&] { return !path->top.scrubs_o; });
  path->step();
  const unsigned left = path->found(secret);
  expect(left == 0, "no key and no text is left: " + std::to_string(left));
  for (const Packet& packet : used) {
    Completion done{NoKey, packet.node, static_cast<unsigned>(packet.text.size()), packet.out ? 0 : packet.counter};
    if (packet.out) path->seal(packet.node, packet.text, done, {});
    else path->open(packet.wire, done, packet.node, packet.text);
  }
  path->until([&] { return path->idle(true) && path->idle(false); });
}

int main(int argc, char** argv) {
  expect(argc > 2, "inline_bench FILE OTHER [SEED]");
  seed_of_all = argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 1;
  const auto packets = load(argv[1]), others = load(argv[2]);
  Counts counts;
  uint64_t cycles = 0;
  for (unsigned stalls : {0u, 2u, 5u}) {
    Counts same;
    const auto one = traffic(packets, seed_of_all + stalls, stalls, counts), other = traffic(others, seed_of_all + stalls, stalls, same);
    expect(one == other, "cycles do not depend on keys and texts");
    cycles += one.size();
  }
  rate(packets);
  latency(packets);
  for (unsigned k = 0; k < 8; k++) wiped(packets, seed_of_all + k, k & 1);
  std::printf("gcm_inline, seed %llu: %zu packets in %llu cycles", static_cast<unsigned long long>(seed_of_all), packets.size(),
              static_cast<unsigned long long>(cycles));
  for (unsigned k = 0; k < 7; k++) {
    if (counts.out[k]) std::printf(", %llu out %s", static_cast<unsigned long long>(counts.out[k]), NAMES[k]);
    if (counts.in[k]) std::printf(", %llu in %s", static_cast<unsigned long long>(counts.in[k]), NAMES[k]);
    if (packets.size() >= 300) expect(counts.out[k] || k == Forged || k == Order, std::string("some that leave are ") + NAMES[k]);
    if (packets.size() >= 300) expect(counts.in[k] || k == Spent, std::string("some that come in are ") + NAMES[k]);
  }
  std::printf(": right\n");
  return 0;
}
