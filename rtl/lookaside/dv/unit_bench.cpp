// Bench of lookaside_unit: three nodes with memories of their own on a modelled network, random stalls at every interface. Random commands
// gather from and scatter to all of them, from the host and from lists in memory; every error is made to happen; armed commands are invoked;
// lists wait for each other; packets are lost, or are none; and a scrub comes in the middle. Memories are compared with the commands in the
// clear, and every command has one completion, but for those of lists.
//
//     unit_bench [SEED [COMMANDS]]
//
// With -DWIRE it is a bench of lookaside_node: the network carries sealed packets, which are also changed, repeated and turned around.
// -DLANES says how many words a beat of memory has, 1 or 4: where that is not said, numbers of words are multiples of 4.

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#ifdef WIRE
#include "Vlookaside_node.h"
#include "Vlookaside_node___024root.h"
using Model = Vlookaside_node;
constexpr bool SEALED = true;
#define COUNTS lookaside_node__DOT__u_unit__DOT__u_await__DOT__counts_q
#else
#include "Vlookaside_unit.h"
#include "Vlookaside_unit___024root.h"
using Model = Vlookaside_unit;
constexpr bool SEALED = false;
#define COUNTS lookaside_unit__DOT__u_await__DOT__counts_q
#endif
#include "lookaside_regs.h"
#include "verilated.h"

using Word = unsigned __int128;

static uint64_t seed_of_all;

[[noreturn]] static void fail(const std::string& what) {
  std::printf("FAILED: %s (seed %llu)\n", what.c_str(), static_cast<unsigned long long>(seed_of_all));
  std::exit(1);
}

static void expect(bool right, const std::string& what) {
  if (!right) fail(what);
}

#ifndef LANES
#define LANES 1
#endif
constexpr unsigned BEAT = 16 * LANES; // bytes
using Beat = std::array<Word, LANES>;

template <class Wide>
static void put(Wide& wide, Word value, int lane = 0) {
  for (int k = 0; k < 4; k++) wide[4 * lane + k] = static_cast<uint32_t>(value >> (32 * k));
}

template <class Wide>
static Word get(const Wide& wide, int lane = 0) {
  Word value = 0;
  for (int k = 3; k >= 0; k--) value = value << 32 | wide[4 * lane + k];
  return value;
}

template <class Wide>
static Beat beat(const Wide& wide) {
  Beat of;
  for (int l = 0; l < LANES; l++) of[static_cast<size_t>(l)] = get(wide, l);
  return of;
}

constexpr unsigned NODES = 3;
constexpr uint64_t BASE = 0x7f0000;      // of all memories, not at a page
constexpr uint64_t WORDS = 1 << 16;
constexpr uint64_t BROKEN = WORDS - 512; // words from here on answer with an error
constexpr uint32_t READS = 0x4000, WRITES = 0xa000; // first: what is read; what others may write: node n has 0x1000 words for each of them
constexpr uint32_t LISTS = 0x6000, LISTS_END = 0x9000; // lists of commands
constexpr uint32_t COUNTED = 0x8000;                   // tags of tells from here on are counted

static uint64_t address(uint64_t word) { return BASE + 16 * word; }

struct Completion {
  unsigned status, event, node;
  uint32_t tag;
};

struct Packet {
  unsigned from;
  std::vector<Word> words;
};

class Node {
 public:
  Model top;
  std::vector<Word> memory = std::vector<Word>(WORDS);
  std::deque<std::pair<Word, bool>> commands;
  std::vector<Completion> done;
  std::deque<Packet> net_in;
  std::function<void(unsigned, std::vector<Word>)> send;
  unsigned stalls = 0, number;
  bool net_stops = false; // the network takes nothing
  uint64_t bursts = 0;

  Node(unsigned number, uint64_t seed) : number(number), random(seed) {
    for (Word& word : memory) word = static_cast<Word>(random()) << 64 | random();
    top.clk_i = top.rst_ni = 0;
    top.s_axil_awvalid_i = top.s_axil_wvalid_i = top.s_axil_arvalid_i = 0;
    for (int k = 0; k < 3; k++) clock();
    top.rst_ni = 1;
  }

  // Inputs for this cycle, then what moves in it.
  void drive() {
    top.s_axis_command_tvalid_i = !commands.empty() && (command_offered || goes());
    command_offered = top.s_axis_command_tvalid_i;
    put(top.s_axis_command_tdata_i, commands.empty() ? 0 : commands.front().first);
    top.s_axis_command_tlast_i = !commands.empty() && commands.front().second;
    top.s_axis_net_tvalid_i = !net_in.empty() && (net_offered || goes());
    net_offered = top.s_axis_net_tvalid_i;
    put(top.s_axis_net_tdata_i, net_in.empty() ? 0 : net_in.front().words[net_at]);
#ifndef WIRE
    top.s_axis_net_tdest_i = net_in.empty() ? 0 : static_cast<uint8_t>(net_in.front().from);
#endif
    top.s_axis_net_tlast_i = !net_in.empty() && net_at + 1 == net_in.front().words.size();
    top.m_axis_net_tready_i = goes() && !net_stops;
    top.m_axis_done_tready_i = goes();
    top.m_axi_arready_i = goes();
    top.m_axi_awready_i = goes();
    top.m_axi_wready_i = goes();
    if (!r_offered) r_offered = !reads.empty() && goes();
    top.m_axi_rvalid_i = r_offered;
    for (int l = 0; l < LANES; l++) put(top.m_axi_rdata_i, r_offered ? at(reads.front().first + 16 * static_cast<uint64_t>(l)) : 0, l);
    if (r_offered) {
      top.m_axi_rresp_i = broken(reads.front().first) ? 2 : 0;
      top.m_axi_rlast_i = reads.front().second == 1;
    }
    if (!b_offered) b_offered = !answers.empty() && goes();
    top.m_axi_bvalid_i = b_offered;
    top.m_axi_bresp_i = b_offered && answers.front() ? 2 : 0;
    top.eval();
  }

  void moves() {
    if (top.s_axis_command_tvalid_i && top.s_axis_command_tready_o) commands.pop_front(), command_offered = false;
    if (top.s_axis_net_tvalid_i && top.s_axis_net_tready_o) {
      net_offered = false;
      if (++net_at == net_in.front().words.size()) net_in.pop_front(), net_at = 0;
    }
    stable(net_out, top.m_axis_net_tvalid_o, top.m_axis_net_tready_i, get(top.m_axis_net_tdata_o), top.m_axis_net_tdest_o | top.m_axis_net_tlast_o << 8, "net");
    if (top.m_axis_net_tvalid_o && top.m_axis_net_tready_i) {
      out.push_back(get(top.m_axis_net_tdata_o));
      expect(out.size() == 1 || to == top.m_axis_net_tdest_o, "a packet goes to one node");
      to = top.m_axis_net_tdest_o;
      if (top.m_axis_net_tlast_o) {
        send(to, out);
        out.clear();
      }
    }
    stable(done_out, top.m_axis_done_tvalid_o, top.m_axis_done_tready_i, get(top.m_axis_done_tdata_o), 0, "completion");
    if (top.m_axis_done_tvalid_o && top.m_axis_done_tready_i) {
      const Word word = get(top.m_axis_done_tdata_o);
      done.push_back({static_cast<unsigned>(word & 255), static_cast<unsigned>(word >> 8 & 255), static_cast<unsigned>(word >> 16 & 255),
                      static_cast<uint32_t>(word >> 96)});
    }
    stable(ar, top.m_axi_arvalid_o, top.m_axi_arready_i, top.m_axi_araddr_o, top.m_axi_arlen_o, "AR");
    stable(aw, top.m_axi_awvalid_o, top.m_axi_awready_i, top.m_axi_awaddr_o, top.m_axi_awlen_o, "AW");
    for (int l = 0; l < LANES; l++) stable(w[l], top.m_axi_wvalid_o, top.m_axi_wready_i, get(top.m_axi_wdata_o, l), top.m_axi_wlast_o, "W");
    if (top.m_axi_rvalid_i && top.m_axi_rready_o) {
      r_offered = false;
      reads.front().first += BEAT;
      if (--reads.front().second == 0) reads.pop_front();
    }
    if (top.m_axi_bvalid_i && top.m_axi_bready_o) b_offered = false, answers.pop_front();
    if (top.m_axi_wvalid_o && top.m_axi_wready_i) {
      // Memory takes beats before their address, too.
      w_beats.push_back({beat(top.m_axi_wdata_o), bool(top.m_axi_wlast_o)});
    }
    if (top.m_axi_arvalid_o && top.m_axi_arready_i) reads.push_back(burst(top.m_axi_araddr_o, top.m_axi_arlen_o, top.m_axi_arsize_o, top.m_axi_arburst_o));
    if (top.m_axi_awvalid_o && top.m_axi_awready_i) writes.push_back(burst(top.m_axi_awaddr_o, top.m_axi_awlen_o, top.m_axi_awsize_o, top.m_axi_awburst_o));
    while (!writes.empty() && !w_beats.empty()) {
      auto& [where, left] = writes.front();
      expect(w_beats.front().second == (left == 1), "WLAST is with the last word of its burst");
      if (broken(where)) error = true;
      else std::copy(w_beats.front().first.begin(), w_beats.front().first.end(), &memory.at((where - BASE) / 16));
      w_beats.pop_front();
      where += BEAT;
      if (--left == 0) {
        answers.push_back(error);
        error = false;
        writes.pop_front();
      }
    }
    clock();
  }

  // How often one of some values of 64 bits lies anywhere in the model.
  unsigned found(const std::unordered_set<uint64_t>& halves) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(top.rootp);
    unsigned hits = 0;
    for (size_t at = 0; at + 9 <= sizeof(*top.rootp); at++) {
      uint64_t window;
      std::memcpy(&window, bytes + at, 8);
      for (unsigned bit = 0; bit < 8; bit++)
        hits += static_cast<unsigned>(halves.count(bit ? window >> bit | uint64_t{bytes[at + 8]} << (64 - bit) : window));
    }
    return hits;
  }

  void dropped() { net_out.waits = done_out.waits = false, out.clear(), net_at = 0, net_in.clear(), commands.clear(), net_offered = command_offered = false; }

 private:
  struct Offer {
    bool waits = false;
    Word data = 0;
    unsigned more = 0;
  };
  std::mt19937_64 random;
  Offer net_out, done_out, ar, aw, w[LANES];
  std::deque<std::pair<uint64_t, unsigned>> reads, writes; // address, beats
  std::deque<std::pair<Beat, bool>> w_beats;
  std::deque<bool> answers;
  std::vector<Word> out;
  unsigned to = 0;
  size_t net_at = 0;
  bool command_offered = false, net_offered = false, r_offered = false, b_offered = false, error = false;

  bool goes() { return stalls == 0 || random() % 8 >= stalls; }

  void clock() {
    top.clk_i = 1;
    top.eval();
    top.clk_i = 0;
    top.eval();
  }

  static void stable(Offer& offer, bool valid, bool ready, Word data, unsigned more, const std::string& what) {
    if (offer.waits) expect(valid && data == offer.data && more == offer.more, what + ": what is offered stays until it is taken");
    offer = {valid && !ready, data, more};
  }

  Word at(uint64_t where) const { return memory.at((where - BASE) / 16); }
  static bool broken(uint64_t where) { return (where - BASE) / 16 >= BROKEN; }

  std::pair<uint64_t, unsigned> burst(uint64_t where, unsigned len, unsigned size, unsigned kind) {
    expect(1u << size == BEAT && kind == 1 && where % BEAT == 0, "bursts are of whole beats at rising addresses");
    expect(where >> 12 == (where + BEAT * (len + 1) - 1) >> 12, "no burst leaves its 4 KiB");
    expect(where >= BASE && where + BEAT * (len + 1) <= address(WORDS), "no burst leaves the memory");
    bursts++;
    return {where, len + 1};
  }
};

struct Segment {
  unsigned node;
  uint64_t word; // in that node's memory
  uint32_t words;
  bool tells = false;
  uint32_t tag = 0;
};

class Net {
 public:
  std::vector<std::unique_ptr<Node>> nodes;
  std::array<std::array<bool, NODES>, NODES> cut{}; // from, to: packets are lost
  std::function<void(std::vector<std::vector<Word>>&)> fault; // of a packet from node 0 to 1: what comes of it
  uint64_t cycle = 0, packets = 0;
  std::mt19937_64 random;

  Net(uint64_t seed) : random(seed) {
    for (unsigned n = 0; n < NODES; n++) {
      nodes.push_back(std::make_unique<Node>(n, seed + n));
      nodes[n]->send = [this, n](unsigned to, std::vector<Word> words) {
        expect(to < NODES && to != n, "packets go to other nodes");
        packets++;
        std::vector<std::vector<Word>> come{std::move(words)};
        if (fault && n == 0 && to == 1) fault(come);
        for (auto& packet : come)
          if (!cut[n][to]) flying.push_back({cycle + 20 + random() % 200, n, to, std::move(packet)});
      };
    }
    until([&] { return !nodes[0]->top.scrubs_o; });
    for (unsigned n = 0; n < NODES; n++) {
      write(n, LOOKASIDE_NODE, n);
      write(n, LOOKASIDE_TIMEOUT, 6000);
      write64(n, LOOKASIDE_OWN_BASE, BASE);
      write(n, LOOKASIDE_OWN_WORDS, WORDS);
      for (unsigned other = 0; other < NODES; other++) {
        write64(n, LOOKASIDE_PUT_BASE + 8 * other, address(WRITES + 0x1000 * other));
        write(n, LOOKASIDE_PUT_WORDS + 4 * other, other == n ? 0 : 0x1000);
        write64(n, LOOKASIDE_GET_BASE + 8 * other, address(READS));
        write(n, LOOKASIDE_GET_WORDS + 4 * other, other == n ? 0 : 0x1000);
      }
    }
    for (unsigned n = 0; n < NODES; n++)
      for (unsigned other = 0; other < n; other++) keys(n, other);
  }

  // New keys for both directions between two nodes, when they have nothing to do.
  void keys(unsigned a, unsigned b) {
    if (!SEALED) return;
    for (unsigned n : {a, b}) until([&] { return !(read(n, LOOKASIDE_STATUS) & LOOKASIDE_STATUS_BUSY) && !nodes[n]->top.scrubs_o; });
    for (auto [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      std::array<uint32_t, 5> key;
      for (auto& word : key) word = static_cast<uint32_t>(random());
      for (auto [n, other, bit] : {std::tuple{from, to, LOOKASIDE_LOAD_SEAL}, std::tuple{to, from, LOOKASIDE_LOAD_OPEN}}) {
        for (unsigned w = 0; w < 5; w++) write(n, LOOKASIDE_KEY + 4 * w, key[w]);
        write(n, LOOKASIDE_KEY_NODE, other);
        write(n, LOOKASIDE_LOAD, bit);
        until([&, n = n] { return !(read(n, LOOKASIDE_KEYS) & LOOKASIDE_KEYS_WAITS); });
      }
    }
    for (unsigned k = 0; k < 300; k++) step();
    for (unsigned n : {a, b}) nodes[n]->done.clear(); // of packets that were lost
  }

  void step() {
    for (auto& node : nodes) node->drive();
    for (auto& node : nodes) node->moves();
    // Packets of one pair of nodes stay in order.
    for (size_t k = 0; k < flying.size();) {
      bool first = flying[k].at <= cycle;
      for (size_t j = 0; j < k; j++) first = first && !(flying[j].from == flying[k].from && flying[j].to == flying[k].to);
      if (first) {
        nodes[flying[k].to]->net_in.push_back({flying[k].from, flying[k].words});
        flying.erase(flying.begin() + static_cast<long>(k));
      } else {
        k++;
      }
    }
    cycle++;
  }

  template <class Condition>
  void until(Condition condition) {
    for (uint64_t limit = cycle + 400000; !condition(); step()) expect(cycle < limit, "it ends");
  }

  void write(unsigned n, uint32_t at, uint32_t value) {
    auto& top = nodes[n]->top;
    top.s_axil_awaddr_i = static_cast<uint16_t>(at);
    top.s_axil_wdata_i = value;
    top.s_axil_wstrb_i = 15;
    top.s_axil_bready_i = 1;
    top.s_axil_awvalid_i = top.s_axil_wvalid_i = 1;
    do top.eval();
    while (!top.s_axil_awready_o && (step(), true));
    step();
    top.s_axil_awvalid_i = top.s_axil_wvalid_i = 0;
    top.eval();
    expect(top.s_axil_bvalid_o && top.s_axil_bresp_o == 0, "register " + std::to_string(at) + " is written");
    step();
  }

  void write64(unsigned n, uint32_t at, uint64_t value) {
    write(n, at, static_cast<uint32_t>(value));
    write(n, at + 4, static_cast<uint32_t>(value >> 32));
  }

  uint32_t read(unsigned n, uint32_t at) {
    auto& top = nodes[n]->top;
    top.s_axil_araddr_i = static_cast<uint16_t>(at);
    top.s_axil_rready_i = 1;
    top.s_axil_arvalid_i = 1;
    step();
    top.s_axil_arvalid_i = 0;
    top.eval();
    expect(top.s_axil_rvalid_o && top.s_axil_rresp_o == 0, "register " + std::to_string(at) + " is read");
    const uint32_t value = top.s_axil_rdata_o;
    step();
    return value;
  }

  void command(unsigned n, unsigned op, uint32_t tag, uint32_t words, const std::vector<Segment>& from, const std::vector<Segment>& to, int slot = -1) {
    raw(n, encode(op, tag, words, from, to, slot));
  }

  std::vector<Word> encode(unsigned op, uint32_t tag, uint32_t words, const std::vector<Segment>& from, const std::vector<Segment>& to, int slot = -1) {
    std::vector<Word> all;
    all.push_back(static_cast<Word>(tag) << 96 | static_cast<Word>(words) << 64 | static_cast<Word>(slot >= 0) << LOOKASIDE_COMMAND_ARMED_AT |
                  static_cast<Word>(slot >= 0 ? slot : 0) << LOOKASIDE_COMMAND_SLOT_AT | static_cast<Word>(from.size()) << LOOKASIDE_COMMAND_SOURCES_AT |
                  static_cast<Word>(to.size()) << LOOKASIDE_COMMAND_DESTINATIONS_AT | op);
    all.push_back(random());
    for (const auto* list : {&from, &to})
      for (const Segment& s : *list)
        all.push_back(static_cast<Word>(s.tag) << LOOKASIDE_SEGMENT_TAG_AT | static_cast<Word>(s.tells) << LOOKASIDE_SEGMENT_TELLS_AT |
                      static_cast<Word>(s.node) << LOOKASIDE_SEGMENT_NODE_AT | static_cast<Word>(s.words) << LOOKASIDE_SEGMENT_WORDS_AT |
                      (op == LOOKASIDE_OP_INVOKE || op == LOOKASIDE_OP_AWAIT ? s.word : address(s.word)));
    return all;
  }

  // A word that is no command, whatever else it is.
  Word padding() { return (static_cast<Word>(random()) << 64 | random()) << 8; }

  // Writes a list into a node's memory, in some pieces, and gives the command for it.
  void list(unsigned n, uint32_t tag, std::vector<Word> words, int slot = -1) {
    while (words.empty() || words.size() % LANES) words.push_back(padding());
    std::vector<Segment> from;
    const auto all = static_cast<uint32_t>(words.size());
    for (uint32_t at = 0; at < all;) {
      const uint32_t some = from.size() == 3 ? all - at : LANES * (1 + static_cast<uint32_t>(random() % ((all - at) / LANES)));
      if (lists_at[n] + some > LISTS_END) lists_at[n] = LISTS;
      std::copy(&words[at], &words[at] + some, &nodes[n]->memory[lists_at[n]]);
      from.push_back({n, lists_at[n], some});
      lists_at[n] += some + LANES * static_cast<uint32_t>(random() % 3);
      at += some;
    }
    command(n, LOOKASIDE_OP_LIST, tag, all, from, {}, slot);
  }

  void raw(unsigned n, const std::vector<Word>& words) {
    for (size_t k = 0; k < words.size(); k++) nodes[n]->commands.push_back({words[k], k + 1 == words.size()});
  }

  // Waits for one completion at a node, and checks it.
  void one(unsigned n, unsigned status, unsigned event, uint32_t tag, const std::string& what) {
    until([&] { return !nodes[n]->done.empty(); });
    const Completion done = nodes[n]->done.front();
    nodes[n]->done.erase(nodes[n]->done.begin());
    expect(done.status == status && done.event == event && done.tag == tag,
           what + ": status " + std::to_string(done.status) + ", event " + std::to_string(done.event) + ", tag " + std::to_string(done.tag));
  }

 private:
  std::array<uint32_t, NODES> lists_at{LISTS, LISTS, LISTS};
  struct Flying {
    uint64_t at;
    unsigned from, to;
    std::vector<Word> words;
  };
  std::deque<Flying> flying;
};

static std::vector<Segment> cut(std::mt19937_64& random, uint32_t words, unsigned most, const std::function<Segment(uint32_t)>& place) {
  std::vector<Segment> out;
  while (words) {
    uint32_t some = out.size() + 1 == most ? words : LANES * (1 + static_cast<uint32_t>(random() % (words / LANES)));
    out.push_back(place(some));
    words -= some;
  }
  return out;
}

// Puts a command behind those of a list.
static void append(std::vector<Word>& list, std::vector<Word> command, bool after) {
  command[0] |= static_cast<Word>(after) << LOOKASIDE_COMMAND_AFTER_AT;
  list.insert(list.end(), command.begin(), command.end());
}

// Parameters are written when nothing goes on.
static void set(Net& net, unsigned n, uint32_t at, uint32_t value) {
  net.until([&] { return !(net.read(n, LOOKASIDE_STATUS) & LOOKASIDE_STATUS_BUSY); });
  net.write(n, at, value);
}

// Random commands at all nodes at once, from hosts and from lists, of which node 0 starts some at the others.
static void traffic(Net& net, unsigned count) {
  std::map<std::pair<unsigned, uint64_t>, Word> expected; // node, word
  std::map<std::pair<unsigned, uint32_t>, unsigned> tags; // node and tag of completions that have to come: their event
  std::array<std::array<uint32_t, NODES>, NODES> used{};  // words of what node n may write at others
  std::array<uint32_t, NODES> own{};
  auto& random = net.random;
  constexpr uint32_t LIST = 0x20000, START = 0x30000; // tags
  for (unsigned n = 0; n < NODES; n++) set(net, n, LOOKASIDE_TIMEOUT, 60000), set(net, n, LOOKASIDE_INVOKE_FROM, n ? 1 : 0);
  std::array<std::vector<Word>, NODES> lists;
  std::array<int, NODES> slots{}, cuts{};
  std::vector<Segment> starts;
  uint32_t numbers = 0;
  const auto ends = [&](unsigned n) {
    if (lists[n].empty()) return;
    const uint32_t tag = LIST + numbers++;
    const bool armed = n && slots[n] < 2;
    tags[{n, tag}] = armed ? LOOKASIDE_EVENT_INVOKED : LOOKASIDE_EVENT_COMMAND;
    if (armed) starts.push_back({n, static_cast<uint64_t>(slots[n]), 0});
    net.list(n, tag, lists[n], armed ? slots[n]++ : -1);
    lists[n].clear();
  };
  for (unsigned k = 0; k < count; k++) {
    const unsigned n = static_cast<unsigned>(random() % NODES);
    const unsigned ops[] = {LOOKASIDE_OP_MOVE, LOOKASIDE_OP_MOVE, LOOKASIDE_OP_ADD, LOOKASIDE_OP_XOR};
    const unsigned op = ops[random() % 4];
    const uint32_t words = LANES * (1 + static_cast<uint32_t>(random() % (random() % 4 ? 60 / LANES : 300 / LANES)));
    std::vector<Word> column[2];
    std::vector<Segment> from, to;
    for (unsigned o = 0; o < (op == LOOKASIDE_OP_MOVE ? 1u : 2u); o++)
      for (const Segment& s : cut(random, words, 4, [&](uint32_t some) { return Segment{static_cast<unsigned>(random() % NODES), READS + random() % ((0x1000 - some) / LANES) * LANES, some}; })) {
        from.push_back(s);
        for (uint32_t w = 0; w < s.words; w++) column[o].push_back(net.nodes[s.node]->memory[s.word + w]);
      }
    std::vector<Word> result = column[0];
    for (uint32_t w = 0; w < words && op != LOOKASIDE_OP_MOVE; w++) result[w] = op == LOOKASIDE_OP_ADD ? column[0][w] + column[1][w] : column[0][w] ^ column[1][w];
    size_t at = 0;
    for (Segment s : cut(random, words, 4, [&](uint32_t some) {
           const unsigned other = static_cast<unsigned>(random() % NODES);
           uint32_t& next = other == n ? own[n] : used[n][other];
           Segment segment{other, (other == n ? 0x100 : WRITES + 0x1000 * n) + next, some};
           next += some;
           if (other != n && random() % 2) segment.tells = true, segment.tag = static_cast<uint32_t>(random() & 0x7fff);
           return segment;
         })) {
      if (s.tells && !tags.emplace(std::make_pair(s.node, s.tag), LOOKASIDE_EVENT_ARRIVED).second) s.tells = false;
      to.push_back(s);
      for (uint32_t w = 0; w < s.words; w++) expected[{s.node, s.word + w}] = result[at++];
    }
    expect(own[n] < 0x3000 && used[n][0] < 0x1000 && used[n][1] < 0x1000 && used[n][2] < 0x1000, "the commands fit");
    if (random() % 2) {
      while (random() % 3 == 0) lists[n].push_back(net.padding());
      append(lists[n], net.encode(op, 0x10000 + k, words, from, to), random() % 4 == 0);
      if (random() % 6 == 0 && ++cuts[n] < 6) ends(n);
    } else {
      tags[{n, 0x10000 + k}] = LOOKASIDE_EVENT_COMMAND;
      net.command(n, op, 0x10000 + k, words, from, to);
    }
  }
  for (unsigned n = 0; n < NODES; n++) ends(n);
  net.until([&] {
    size_t left = 0;
    for (auto& node : net.nodes) left += node->commands.size();
    return left == 0;
  });
  for (unsigned k = 0; k < 100; k++) net.step();
  for (uint32_t k = 0; k < starts.size(); k++) {
    tags[{0, START + k}] = LOOKASIDE_EVENT_COMMAND;
    net.command(0, LOOKASIDE_OP_INVOKE, START + k, 0, {}, {starts[k]});
  }
  size_t all = tags.size();
  net.until([&] {
    size_t done = 0;
    for (auto& node : net.nodes) done += node->done.size();
    return done >= all;
  });
  for (unsigned k = 0; k < 600; k++) net.step();
  for (unsigned n = 0; n < NODES; n++) {
    for (const Completion& done : net.nodes[n]->done) {
      auto it = tags.find({n, done.tag});
      expect(it != tags.end() && it->second == done.event && done.status == LOOKASIDE_STATUS_OK,
             "a completion is one that should come: tag " + std::to_string(done.tag) + ", status " + std::to_string(done.status));
      tags.erase(it);
    }
    net.nodes[n]->done.clear();
  }
  expect(tags.empty(), "every command has its completion");
  for (unsigned n = 0; n < NODES; n++) set(net, n, LOOKASIDE_TIMEOUT, 6000), set(net, n, LOOKASIDE_INVOKE_FROM, 0);
  for (const auto& [place, word] : expected)
    expect(net.nodes[place.first]->memory[place.second] == word, "memory is what the commands in the clear make: node " + std::to_string(place.first) + ", word " + std::to_string(place.second));
}

// What lists alone do: commands that wait for each other, ends, and waiting for other nodes.
static void lists(Net& net) {
  auto& random = net.random;
  auto& memory = net.nodes[0]->memory;
  uint32_t tag = 0x600;
  const uint32_t block = 4 * LANES;
  const auto source = [&](unsigned k) { return READS + block * k; };
  const auto place = [&](unsigned k) { return 0x1000 + 2 * block * k; };
  const auto copied = [&](unsigned k) { return std::equal(&memory[source(k)], &memory[source(k)] + block, &memory[place(k)]); };
  const auto copy = [&](unsigned k) { return net.encode(LOOKASIDE_OP_MOVE, 0x500 + k, block, {{0, source(k), block}}, {{0, place(k), block}}); };
  const auto forget = [&] {
    for (uint32_t w = place(0); w < place(24); w++) memory[w] = static_cast<Word>(random()) << 64 | random();
  };
  const auto quiet = [&](const std::string& what) {
    for (unsigned k = 0; k < 300; k++) net.step();
    for (auto& node : net.nodes) expect(node->done.empty(), what + ": nothing else is said");
  };

  // Each takes what the one before gave, while others go on.
  for (unsigned round = 0; round < 2; round++) {
    forget();
    std::vector<Word> chain, now(&memory[source(0)], &memory[source(0)] + block);
    append(chain, copy(0), false);
    for (unsigned k = 1; k < 24; k++) {
      const unsigned op = std::array<unsigned, 3>{LOOKASIDE_OP_MOVE, LOOKASIDE_OP_XOR, LOOKASIDE_OP_ADD}[random() % 3];
      std::vector<Segment> from{{0, place(k - 1), block}};
      if (op != LOOKASIDE_OP_MOVE) from.push_back({1, source(k), block});
      for (uint32_t w = 0; w < block && op != LOOKASIDE_OP_MOVE; w++) {
        const Word other = net.nodes[1]->memory[source(k) + w];
        now[w] = op == LOOKASIDE_OP_XOR ? now[w] ^ other : now[w] + other;
      }
      append(chain, net.encode(op, 0x500 + k, block, from, {{0, place(k), block}}), true);
      if (random() % 2) append(chain, net.encode(LOOKASIDE_OP_MOVE, 0x540 + k, 200, {{0, READS, 200}}, {{2, WRITES, 200}}), false);
    }
    net.list(0, tag, chain);
    net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, tag++, "a chain");
    expect(std::equal(now.begin(), now.end(), &memory[place(23)]), "each command of a chain waits for the one before");
    quiet("a chain");
  }

  // One ends badly: none after it begins.
  const auto right = [&](const std::string& what) {
    quiet(what);
    forget();
    std::vector<Word> list;
    for (unsigned k = 0; k < 8; k++) append(list, copy(k), false);
    net.list(0, tag, list);
    net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, tag++, "a list after " + what);
    for (unsigned k = 0; k < 8; k++) expect(copied(k), "words of a list after " + what);
  };
  const std::vector<std::tuple<unsigned, std::string, std::vector<Word>>> bad{
      {LOOKASIDE_STATUS_UNKNOWN, "an unknown operation", net.encode(77, 0x580, block, {{0, READS, block}}, {{0, 0x100, block}})},
      {LOOKASIDE_STATUS_MEMORY, "memory's refusal", net.encode(LOOKASIDE_OP_MOVE, 0x580, block, {{0, BROKEN, block}}, {{0, 0x100, block}})},
      {LOOKASIDE_STATUS_ADDRESS, "an address", net.encode(LOOKASIDE_OP_MOVE, 0x580, block, {{0, WORDS, block}}, {{0, 0x100, block}})},
      {LOOKASIDE_STATUS_ADDRESS, "another node's refusal", net.encode(LOOKASIDE_OP_MOVE, 0x580, block, {{0, READS, block}}, {{1, WRITES + 0x1000, block}})},
      {LOOKASIDE_STATUS_REFUSED, "a list in a list", net.encode(LOOKASIDE_OP_LIST, 0x580, block, {{0, READS, block}}, {})},
      {LOOKASIDE_STATUS_REFUSED, "an armed command in a list", net.encode(LOOKASIDE_OP_MOVE, 0x580, block, {{0, READS, block}}, {{0, 0x100, block}}, 3)},
      {LOOKASIDE_STATUS_REFUSED, "a slot that is not armed", net.encode(LOOKASIDE_OP_INVOKE, 0x580, 0, {}, {{1, 3, 0}})},
      {LOOKASIDE_STATUS_NODE, "an await of itself", net.encode(LOOKASIDE_OP_AWAIT, 0x580, 0, {}, {{0, 0, 1}})},
      {LOOKASIDE_STATUS_LENGTH, "an await of nothing", net.encode(LOOKASIDE_OP_AWAIT, 0x580, 0, {}, {{1, 0, 0}})},
      {LOOKASIDE_STATUS_LENGTH, "an await of too many", net.encode(LOOKASIDE_OP_AWAIT, 0x580, 0, {}, {{1, 0, 0x10000}})},
      {LOOKASIDE_STATUS_LENGTH, "an await with a source", net.encode(LOOKASIDE_OP_AWAIT, 0x580, 0, {{1, 0, 4}}, {{1, 0, 4}})},
  };
  for (const auto& [status, what, command] : bad) {
    forget();
    const unsigned at = static_cast<unsigned>(random() % 12);
    std::vector<Word> list;
    for (unsigned k = 0; k < 12; k++) {
      if (k == at) append(list, command, random() % 2);
      append(list, copy(k), k == at || random() % 3 == 0);
    }
    net.list(0, tag, list);
    net.one(0, status, LOOKASIDE_EVENT_COMMAND, 0x580, what);
    net.one(0, status, LOOKASIDE_EVENT_COMMAND, tag++, "a list with " + what);
    for (unsigned k = 0; k < 12; k++) expect(copied(k) == (k < at), "words of a list with " + what + ": " + std::to_string(k));
    right(what);
  }

  // Words that are no commands; lists that cannot be read.
  for (unsigned kind = 0; kind < 3; kind++) {
    std::vector<Word> list;
    for (unsigned k = 0; k < static_cast<unsigned>(random() % 6); k++) append(list, copy(k), false);
    const Word head = static_cast<Word>(0x580) << 96 | LOOKASIDE_OP_MOVE | static_cast<Word>(1) << LOOKASIDE_COMMAND_DESTINATIONS_AT;
    if (kind == 0) list.push_back(head | static_cast<Word>(14) << LOOKASIDE_COMMAND_SOURCES_AT), list.resize(list.size() + 40);
    if (kind == 1) list.push_back(head | static_cast<Word>(255) << LOOKASIDE_COMMAND_SOURCES_AT), list.resize(list.size() + 300);
    if (kind == 2) {
      while ((list.size() + 13) % LANES) list.push_back(net.padding());
      list.push_back(head | static_cast<Word>(11) << LOOKASIDE_COMMAND_SOURCES_AT), list.resize(list.size() + 12);
    }
    net.list(0, tag, list);
    net.one(0, LOOKASIDE_STATUS_MALFORMED, LOOKASIDE_EVENT_COMMAND, tag++, "words that are no command");
    right("words that are no command");
  }
  const auto wrong = [&](unsigned status, const std::string& what, uint32_t words, const std::vector<Segment>& from, const std::vector<Segment>& to = {}) {
    net.command(0, LOOKASIDE_OP_LIST, tag, words, from, to);
    net.one(0, status, LOOKASIDE_EVENT_COMMAND, tag++, what);
    right(what);
  };
  wrong(LOOKASIDE_STATUS_NODE, "a list at another node", 64, {{1, READS, 64}});
  wrong(LOOKASIDE_STATUS_LENGTH, "a list of other words", 64, {{0, LISTS, 68}});
  wrong(LOOKASIDE_STATUS_LENGTH, "a list of no words", 0, {});
  wrong(LOOKASIDE_STATUS_LENGTH, "a list that gives something", 64, {{0, LISTS, 64}}, {{0, 0x100, 64}});
  wrong(LOOKASIDE_STATUS_ADDRESS, "a list outside of the window", 64, {{0, WORDS, 64}});
  wrong(LOOKASIDE_STATUS_MEMORY, "a list that memory refuses", 64, {{0, BROKEN, 64}});
  // Nodes 1 and 2 may write from WRITES + 0x1000 to WRITES + 0x3000.
  wrong(LOOKASIDE_STATUS_ADDRESS, "a list that another node may write", 64, {{0, WRITES + 0x1800, 64}});
  wrong(LOOKASIDE_STATUS_ADDRESS, "a list whose end another node may write", 64, {{0, WRITES + 0x1000 - 64 + LANES, 64}});
  wrong(LOOKASIDE_STATUS_ADDRESS, "a list whose begin another node may write", 64, {{0, LISTS, 32}, {0, WRITES + 0x3000 - LANES, 32}});
  wrong(LOOKASIDE_STATUS_ADDRESS, "a list in the middle of which another node may write", 0x4000, {{0, WRITES, 0x4000}});
  for (const uint32_t at : {WRITES + 0x1000 - block, WRITES + 0x3000}) {
    forget();
    std::vector<Word> list;
    append(list, copy(0), false);
    while (list.size() < block) list.push_back(net.padding());
    std::copy(list.begin(), list.begin() + block, &memory[at]);
    net.command(0, LOOKASIDE_OP_LIST, tag, block, {{0, at, block}}, {});
    net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, tag++, "a list beside what others may write");
    expect(copied(0), "words of a list beside what others may write");
  }
  { // A command is there in parts when memory refuses the rest: it does not begin.
    forget();
    std::vector<Word> list;
    append(list, copy(0), false);
    append(list, net.encode(LOOKASIDE_OP_ADD, 0x580, block, {{0, source(1), block}, {0, source(2), block}}, {{0, place(1), block}}), false);
    const uint32_t some = static_cast<uint32_t>(list.size() - 1) / LANES * LANES;
    std::copy(list.begin(), list.begin() + some, &memory[LISTS_END]);
    wrong(LOOKASIDE_STATUS_MEMORY, "a list of which memory refuses a part", some + 64, {{0, LISTS_END, some}, {0, BROKEN, 64}});
  }

  // More than fit: what is refused does nothing.
  forget();
  std::map<uint32_t, unsigned> waits;
  for (unsigned k = 0; k < 24; k++) {
    std::vector<Word> list;
    append(list, copy(k), false);
    waits[tag] = k;
    net.list(0, tag++, list);
  }
  unsigned refused = 0;
  while (!waits.empty()) {
    net.until([&] { return !net.nodes[0]->done.empty(); });
    const Completion done = net.nodes[0]->done.front();
    net.nodes[0]->done.erase(net.nodes[0]->done.begin());
    expect(waits.count(done.tag) && (done.status == LOOKASIDE_STATUS_OK || done.status == LOOKASIDE_STATUS_REFUSED), "each list has its completion");
    expect(copied(waits[done.tag]) == (done.status == LOOKASIDE_STATUS_OK), "words of a list that waited");
    refused += done.status == LOOKASIDE_STATUS_REFUSED;
    waits.erase(done.tag);
  }
  expect(refused < 16, "some lists may wait");
  right("more lists than fit");

  // ---- awaits. Node 1 tells of words that it puts, node 0 counts
  const auto tells = [&](unsigned some, uint32_t with = COUNTED) {
    for (unsigned k = 0; k < some; k++) {
      net.command(1, LOOKASIDE_OP_MOVE, 0x700, block, {{1, READS, block}}, {{0, WRITES + 0x1000, block, true, with | static_cast<uint32_t>(random() & 0x7fff)}});
      net.one(1, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, 0x700, "words that are told of");
    }
  };
  const auto await = [&](unsigned status, const std::string& what, const std::vector<Segment>& of, bool listed = false) {
    const auto command = net.encode(LOOKASIDE_OP_AWAIT, tag, 0, {}, of);
    if (!listed) net.raw(0, command);
    else net.list(0, tag, command);
    if (listed && status != LOOKASIDE_STATUS_OK) net.one(0, status, LOOKASIDE_EVENT_COMMAND, tag, what);
    net.one(0, status, LOOKASIDE_EVENT_COMMAND, tag++, what);
    quiet(what);
  };
  tells(1);
  await(LOOKASIDE_STATUS_OK, "an await of what was told", {{1, 0, 1}});
  tells(5);
  await(LOOKASIDE_STATUS_OK, "an await of some", {{1, 0, 2}}, true);
  await(LOOKASIDE_STATUS_OK, "an await of the others, in two parts", {{1, 0, 1}, {1, 0, 2}});
  await(LOOKASIDE_STATUS_GONE, "an await of more", {{1, 0, 1}});
  await(LOOKASIDE_STATUS_GONE, "an await of another node", {{2, 0, 1}}, true);
  tells(3);
  await(LOOKASIDE_STATUS_GONE, "an await of more than were told", {{1, 0, 4}});
  await(LOOKASIDE_STATUS_OK, "an await of what it left", {{1, 0, 3}});
  net.raw(0, net.encode(LOOKASIDE_OP_AWAIT, tag, 0, {}, {{1, 0, 1}}, 2));
  net.one(0, LOOKASIDE_STATUS_REFUSED, LOOKASIDE_EVENT_COMMAND, tag++, "an await is not armed");
  tells(1, 0);
  net.until([&] { return !net.nodes[0]->done.empty(); });
  expect(net.nodes[0]->done.size() == 1 && net.nodes[0]->done[0].event == LOOKASIDE_EVENT_ARRIVED, "of other tags the host is told");
  net.nodes[0]->done.clear();
  await(LOOKASIDE_STATUS_GONE, "an await of what the host was told of", {{1, 0, 1}});

  // A count has an end: what is told beyond it is lost, and no other count changes.
  tells(1);
  net.nodes[0]->top.rootp->COUNTS |= uint64_t{0xfffe} << 16; // that of node 1
  const uint32_t dropped = net.read(0, LOOKASIDE_DROPPED);
  tells(2);
  expect(net.read(0, LOOKASIDE_DROPPED) == dropped + 2, "tells beyond the count");
  await(LOOKASIDE_STATUS_GONE, "an await beside a full count", {{2, 0, 1}});
  await(LOOKASIDE_STATUS_OK, "an await of a full count", {{1, 0, 0xffff}});
  await(LOOKASIDE_STATUS_GONE, "an await of what was lost", {{1, 0, 1}});

  // Lists of two nodes that wait for each other, started by the host of node 0: each adds its own words to what it got, and sends it back.
  set(net, 1, LOOKASIDE_INVOKE_FROM, 1);
  for (unsigned n : {0u, 1u}) set(net, n, LOOKASIDE_TIMEOUT, 60000);
  constexpr unsigned ROUNDS = 6;
  std::array<std::vector<Word>, 2> play;
  std::vector<Word> now(&memory[source(0)], &memory[source(0)] + block);
  append(play[0], net.encode(LOOKASIDE_OP_MOVE, 0x710, block, {{0, source(0), block}}, {{1, WRITES, block, true, COUNTED}}), false);
  for (unsigned k = 1; k <= 2 * ROUNDS; k++) {
    const unsigned n = k % 2;
    append(play[n], net.encode(LOOKASIDE_OP_AWAIT, 0x720 + k, 0, {}, {{1 - n, 0, 1}}), false);
    append(play[n], net.encode(LOOKASIDE_OP_ADD, 0x740 + k, block, {{n, WRITES + 0x1000 * (1 - n), block}, {n, source(k), block}}, {{n, place(k), block}}), true);
    for (uint32_t w = 0; w < block; w++) now[w] += net.nodes[n]->memory[source(k) + w];
    if (k == 2 * ROUNDS) break;
    append(play[n], net.encode(LOOKASIDE_OP_MOVE, 0x760 + k, block, {{n, place(k), block}}, {{1 - n, WRITES + 0x1000 * n, block, true, COUNTED}}), true);
  }
  net.list(1, 0x711, play[1], 0);
  net.until([&] { return net.nodes[1]->commands.empty(); });
  for (unsigned k = 0; k < 100; k++) net.step();
  net.list(0, 0x712, play[0]);
  net.command(0, LOOKASIDE_OP_INVOKE, 0x713, 0, {}, {{1, 0, 0}});
  net.one(1, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_INVOKED, 0x711, "a list that another node started");
  std::array<bool, 2> ended{};
  for (unsigned k = 0; k < 2; k++) {
    net.until([&] { return !net.nodes[0]->done.empty(); });
    const bool last = net.nodes[0]->done[0].tag == 0x713;
    net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, 0x712 + last, "lists that wait for each other");
    ended[last] = true;
  }
  expect(ended[0] && ended[1] && std::equal(now.begin(), now.end(), &memory[place(2 * ROUNDS)]), "what went to and fro");
  quiet("lists that wait for each other");

  // A list that fails at the node that was invoked: the one that started it has its status.
  net.list(1, 0x714, net.encode(LOOKASIDE_OP_MOVE, 0x715, block, {{1, BROKEN, block}}, {{1, 0x100, block}}), 0);
  net.until([&] { return net.nodes[1]->commands.empty(); });
  for (unsigned k = 0; k < 100; k++) net.step();
  net.command(0, LOOKASIDE_OP_INVOKE, tag, 0, {}, {{1, 0, 0}});
  net.one(0, LOOKASIDE_STATUS_MEMORY, LOOKASIDE_EVENT_COMMAND, tag++, "a list that fails at another node");
  net.one(1, LOOKASIDE_STATUS_MEMORY, LOOKASIDE_EVENT_COMMAND, 0x715, "its command");
  net.one(1, LOOKASIDE_STATUS_MEMORY, LOOKASIDE_EVENT_INVOKED, 0x714, "the list itself");
  for (unsigned n : {0u, 1u}) set(net, n, LOOKASIDE_TIMEOUT, 6000);
  set(net, 1, LOOKASIDE_INVOKE_FROM, 0);
}

// Each status, and that nothing is left of it: a command that is right follows.
static void errors(Net& net) {
  const auto move = [&](uint32_t tag, const std::vector<Segment>& from, const std::vector<Segment>& to, uint32_t words) {
    net.command(0, LOOKASIDE_OP_MOVE, tag, words, from, to);
  };
  uint32_t tag = 1;
  const auto wrong = [&](unsigned status, const std::string& what) {
    net.one(0, status, LOOKASIDE_EVENT_COMMAND, tag, what);
    tag++;
    move(tag, {{0, READS, 100}}, {{0, 0x100, 28}, {1, WRITES, 72}}, 100);
    net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, tag, "a command after " + what);
    for (uint32_t w = 0; w < 100; w++)
      expect(net.nodes[w < 28 ? 0 : 1]->memory[w < 28 ? 0x100 + w : WRITES + w - 28] == net.nodes[0]->memory[READS + w], "words after " + what);
    tag++;
  };
  net.raw(0, {static_cast<Word>(tag) << 96 | 1 << LOOKASIDE_COMMAND_SOURCES_AT | LOOKASIDE_OP_MOVE, 0});
  wrong(LOOKASIDE_STATUS_MALFORMED, "segments that do not come");
  net.raw(0, {static_cast<Word>(tag) << 96 | LOOKASIDE_OP_MOVE});
  wrong(LOOKASIDE_STATUS_MALFORMED, "a command of one word");
  std::vector<Word> many(40);
  many[0] = static_cast<Word>(tag) << 96 | static_cast<Word>(38) << LOOKASIDE_COMMAND_SOURCES_AT | LOOKASIDE_OP_MOVE;
  net.raw(0, many);
  wrong(LOOKASIDE_STATUS_MALFORMED, "too many segments");
  net.command(0, 77, tag, 4, {{0, READS, 4}}, {{0, 0x100, 4}});
  wrong(LOOKASIDE_STATUS_UNKNOWN, "an unknown operation");
  move(tag, {{0, READS, 8}}, {{0, 0x100, 12}}, 8);
  wrong(LOOKASIDE_STATUS_LENGTH, "destinations of other words");
  move(tag, {{0, READS, 8}, {0, READS, 4}}, {{0, 0x100, 8}}, 8);
  wrong(LOOKASIDE_STATUS_LENGTH, "sources of other words");
  move(tag, {{0, READS, 0xfffffffc}, {0, READS, 12}}, {{0, 0x100, 8}}, 8);
  wrong(LOOKASIDE_STATUS_ADDRESS, "words that add up to too many");
  net.command(0, LOOKASIDE_OP_ADD, tag, 2000, {{0, READS, 4000}}, {{0, 0x100, 2000}});
  wrong(LOOKASIDE_STATUS_LENGTH, "columns that no worker keeps");
  move(tag, {{0, WORDS - 4, 8}}, {{0, 0x100, 8}}, 8);
  wrong(LOOKASIDE_STATUS_ADDRESS, "a segment beyond the window");
  move(tag, {{0, (~uint64_t{0} >> 5) - 3, 4}}, {{0, 0x100, 4}}, 4);
  wrong(LOOKASIDE_STATUS_ADDRESS, "a segment far beyond it");
  move(tag, {{9, READS, 4}}, {{0, 0x100, 4}}, 4);
  wrong(LOOKASIDE_STATUS_NODE, "no such node");
  move(tag, {{1, READS - 4, 8}}, {{0, 0x100, 8}}, 8);
  wrong(LOOKASIDE_STATUS_ADDRESS, "a source outside another node's window");
  for (unsigned n : {0u, 1u}) {
    if (LANES == 1) break;
    move(tag, {{n, READS + 1, 8}}, {{0, 0x100, 8}}, 8);
    wrong(LOOKASIDE_STATUS_ADDRESS, "a source within a beat");
    move(tag, {{0, READS, 8}}, {{n, 0x102, 8}}, 8);
    wrong(LOOKASIDE_STATUS_ADDRESS, "a destination within a beat");
    move(tag, {{n, READS, 6}, {0, READS, 2}}, {{0, 0x100, 8}}, 8);
    wrong(LOOKASIDE_STATUS_LENGTH, "segments of parts of beats");
  }
  net.command(0, LOOKASIDE_OP_ADD, tag, 2, {{0, READS, 4}}, {{0, 0x100, 2}});
  wrong(LANES == 1 ? LOOKASIDE_STATUS_OK : LOOKASIDE_STATUS_LENGTH, "columns that may be no beats");
  move(tag, {{0, READS, 200}}, {{1, WRITES + 0x1000, 200}}, 200);
  wrong(LOOKASIDE_STATUS_ADDRESS, "a destination that is another's window");
  move(tag, {{0, BROKEN, 100}}, {{0, 0x100, 100}}, 100);
  wrong(LOOKASIDE_STATUS_MEMORY, "a read that memory refuses");
  move(tag, {{0, READS, 100}}, {{0, BROKEN - 12, 100}}, 100);
  wrong(LOOKASIDE_STATUS_MEMORY, "a write that memory refuses");
  // While a packet is offered and not taken: it is sent all the same, whole.
  for (unsigned get : {0u, 1u}) {
    net.nodes[0]->net_stops = true;
    if (get) move(tag, {{0, READS, 64}, {1, READS, 64}}, {{0, BROKEN, 64}, {0, 0x100, 64}}, 128);
    else move(tag, {{0, READS, 120}, {0, BROKEN, 8}}, {{1, WRITES, 128}}, 128);
    for (unsigned k = 0; k < 2000; k++) net.step();
    net.nodes[0]->net_stops = false;
    wrong(LOOKASIDE_STATUS_MEMORY, "memory's refusal while a packet waits");
  }
  net.write64(1, LOOKASIDE_GET_BASE, address(BROKEN));
  move(tag, {{1, BROKEN, 100}}, {{0, 0x100, 100}}, 100);
  wrong(LOOKASIDE_STATUS_MEMORY, "a read that another node's memory refuses");
  net.write64(1, LOOKASIDE_GET_BASE, address(READS));
  net.write64(1, LOOKASIDE_PUT_BASE, address(BROKEN));
  move(tag, {{0, READS, 100}}, {{1, BROKEN, 100}}, 100);
  net.one(0, LOOKASIDE_STATUS_MEMORY, LOOKASIDE_EVENT_COMMAND, tag++, "a write that another node's memory refuses");
  net.write64(1, LOOKASIDE_PUT_BASE, address(WRITES));
  std::vector<Word>& memory = net.nodes[0]->memory;
  for (unsigned differs : {0u, 1u, 60u, 99u, 100u}) { // from which word on: all are the same at 100
    for (unsigned w = 0; w < 100; w++) memory[0x3000 + w] = memory[0x3100 + w] = net.random();
    if (differs < 100) memory[0x3100 + differs] ^= static_cast<Word>(1) << net.random() % 128;
    net.command(0, LOOKASIDE_OP_CHECK, tag, 100, {{0, 0x3000, 100}, {0, 0x3100, 100}}, {{0, 0x3200, 100}});
    wrong(differs < 100 ? LOOKASIDE_STATUS_MISMATCH : LOOKASIDE_STATUS_OK, "hashes that differ");
  }
  for (unsigned back : {0u, 1u}) { // requests or answers are lost
    net.cut[back][1 - back] = true;
    move(tag, {{0, READS, 40}, {1, READS, 100}}, {{0, 0x100, 140}}, 140);
    net.one(0, LOOKASIDE_STATUS_GONE, LOOKASIDE_EVENT_COMMAND, tag++, "a node that does not give");
    move(tag, {{0, READS, 200}}, {{1, WRITES, 200}}, 200);
    net.one(0, LOOKASIDE_STATUS_GONE, LOOKASIDE_EVENT_COMMAND, tag++, "a node that does not take");
    net.command(0, LOOKASIDE_OP_INVOKE, tag, 0, {}, {{1, 0, 0}});
    net.one(0, LOOKASIDE_STATUS_GONE, LOOKASIDE_EVENT_COMMAND, tag, "a node that cannot be invoked");
    tag++;
    net.cut[back][1 - back] = false;
    net.keys(0, 1);
    move(tag, {{0, READS, 100}}, {{0, 0x100, 100}}, 100);
    wrong(LOOKASIDE_STATUS_OK, "a node that was gone");
  }
}

// Node 0 starts what the hosts of the others have allowed, and nothing else.
static void invoked(Net& net) {
  net.command(0, LOOKASIDE_OP_INVOKE, 500, 0, {}, {{1, 0, 0}, {2, 1, 0}});
  net.one(0, LOOKASIDE_STATUS_REFUSED, LOOKASIDE_EVENT_COMMAND, 500, "nothing is armed");
  net.command(1, LOOKASIDE_OP_MOVE, 71, 152, {{1, READS, 152}}, {{2, WRITES + 0x1000, 100}, {0, WRITES + 0x1000, 52, true, 9}}, 0);
  net.command(2, LOOKASIDE_OP_ADD, 72, 92, {{0, READS, 92}, {2, READS + 8, 92}}, {{1, WRITES + 0x2000, 92}}, 1);
  net.command(2, LOOKASIDE_OP_ADD, 73, 92, {{0, READS, 92}, {2, READS + 8, 92}}, {{1, WRITES + 0x2000, 92}}, 1);
  net.one(2, LOOKASIDE_STATUS_REFUSED, LOOKASIDE_EVENT_COMMAND, 73, "a slot is armed once");
  net.command(2, LOOKASIDE_OP_MOVE, 74, 4, {{2, READS, 4}}, {{2, 0x100, 4}}, 9);
  net.one(2, LOOKASIDE_STATUS_REFUSED, LOOKASIDE_EVENT_COMMAND, 74, "there is no such slot");
  for (unsigned k = 0; k < 500; k++) net.step();
  expect(net.nodes[1]->done.empty(), "an armed command does nothing until it is invoked");
  net.command(0, LOOKASIDE_OP_INVOKE, 501, 0, {}, {{1, 0, 0}, {2, 1, 0}});
  net.one(0, LOOKASIDE_STATUS_REFUSED, LOOKASIDE_EVENT_COMMAND, 501, "nodes that may not invoke");
  for (unsigned n : {1u, 2u}) {
    net.until([&] { return !(net.read(n, LOOKASIDE_STATUS) & LOOKASIDE_STATUS_BUSY); });
    net.write(n, LOOKASIDE_INVOKE_FROM, 1);
  }
  net.command(0, LOOKASIDE_OP_INVOKE, 502, 0, {}, {{1, 0, 0}, {2, 1, 0}});
  net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_ARRIVED, 9, "words of a command that another started");
  net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, 502, "an invocation");
  net.one(1, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_INVOKED, 71, "an invoked command");
  net.one(2, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_INVOKED, 72, "another");
  for (uint32_t w = 0; w < 92; w++)
    expect(net.nodes[1]->memory[WRITES + 0x2000 + w] == net.nodes[0]->memory[READS + w] + net.nodes[2]->memory[READS + 8 + w], "the sum is at the third node");
  for (uint32_t w = 0; w < 52; w++) expect(net.nodes[0]->memory[WRITES + 0x1000 + w] == net.nodes[1]->memory[READS + 100 + w], "words are at the first");
  net.command(0, LOOKASIDE_OP_INVOKE, 503, 0, {}, {{1, 0, 0}});
  net.one(0, LOOKASIDE_STATUS_REFUSED, LOOKASIDE_EVENT_COMMAND, 503, "a slot is invoked once");
  net.command(0, LOOKASIDE_OP_INVOKE, 504, 0, {}, {{0, 0, 0}});
  net.one(0, LOOKASIDE_STATUS_NODE, LOOKASIDE_EVENT_COMMAND, 504, "a node does not invoke itself");
}

// What another node may send that is in no protocol: nothing comes of it but a count, and it writes nowhere but in its window.
static void junk(Net& net, unsigned count) {
  auto& random = net.random;
  const auto before = net.nodes[0]->memory;
  const uint32_t dropped = net.read(0, LOOKASIDE_DROPPED);
  for (unsigned k = 0; k < count; k++) {
    Packet packet{1, {}};
    Word header = static_cast<Word>(random()) << 64 | random();
    if (random() % 4) header = (header & ~static_cast<Word>(0xfff)) | static_cast<Word>(1 + random() % 6) | static_cast<Word>(random() % 70) << LOOKASIDE_HEADER_WORDS_AT;
    if (random() % 2) header = (header << 64 >> 64) | static_cast<Word>(address(WRITES - 100 + random() % 0x3000)) << 64;
    packet.words.push_back(header);
    for (unsigned w = static_cast<unsigned>(random() % 80); w > 0; w--) packet.words.push_back(random());
    net.nodes[0]->net_in.push_back(packet);
    if (k % 16 == 15) net.until([&] { return net.nodes[0]->net_in.empty(); });
  }
  net.until([&] { return net.nodes[0]->net_in.empty(); });
  for (unsigned k = 0; k < 3000; k++) net.step();
  for (auto& node : net.nodes) node->done.clear(); // words that it told of
  expect(count < 20 || net.read(0, LOOKASIDE_DROPPED) > dropped, "packets that are none are counted");
  for (uint64_t w = 0; w < WORDS; w++)
    expect(net.nodes[0]->memory[w] == before[w] || (w >= WRITES + 0x1000 && w < WRITES + 0x2000), "another node writes in its window alone");
}

// Somebody on the wire changes, repeats, cuts or turns around packets: the node that opens them says which, and nobody takes them.
static void tampered(Net& net) {
  enum { Flip, Repeat, Cut, Turn };
  for (unsigned kind : {Flip, Repeat, Cut, Turn, Flip}) {
    unsigned number = 0;
    std::vector<Word> held;
    net.fault = [&, kind](std::vector<std::vector<Word>>& packet) {
      if (number++ == 1) {
        const size_t word = net.random() % packet[0].size();
        if (kind == Flip) packet[0][word == 0 ? 1 : word] ^= static_cast<Word>(1) << net.random() % 128;
        if (kind == Repeat) packet.push_back(packet[0]);
        if (kind == Cut) packet[0].pop_back();
        if (kind == Turn) held = packet[0], packet.clear();
      } else if (number == 3 && kind == Turn) {
        packet.push_back(held);
      }
    };
    net.command(0, LOOKASIDE_OP_MOVE, 800 + kind, 256, {{0, READS + 100 * kind, 256}}, {{1, WRITES, 256}});
    net.one(0, kind == Repeat ? LOOKASIDE_STATUS_OK : LOOKASIDE_STATUS_GONE, LOOKASIDE_EVENT_COMMAND, 800 + kind, "a command whose packets somebody changes");
    net.fault = nullptr;
    // 5 forged, 6 out of order, 1 of a wrong length: docs/inline.md
    net.one(1, LOOKASIDE_STATUS_PACKET, LOOKASIDE_EVENT_PACKET, 0x100 | (kind == Flip ? 5 : kind == Cut ? 1 : 6), "a packet that is not right");
    if (kind == Repeat) {
      for (uint32_t w = 0; w < 256; w++) expect(net.nodes[1]->memory[WRITES + w] == net.nodes[0]->memory[READS + 100 * kind + w], "words with a packet repeated");
    } else {
      net.keys(0, 1);
    }
    net.command(0, LOOKASIDE_OP_MOVE, 820, 256, {{0, READS, 256}}, {{1, WRITES, 256}});
    net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, 820, "a command after it");
    for (uint32_t w = 0; w < 256; w++) expect(net.nodes[1]->memory[WRITES + w] == net.nodes[0]->memory[READS + w], "words after it");
  }
}

static void scrubbed(Net& net) {
  net.command(1, LOOKASIDE_OP_MOVE, 899, 4, {{1, READS, 4}}, {{0, WRITES + 0x1000, 4, true, COUNTED}});
  net.one(1, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, 899, "a tell before a scrub");
  std::vector<Word> list;
  for (unsigned k = 0; k < 16; k++) {
    const auto command = net.encode(k % 2 ? LOOKASIDE_OP_ADD : LOOKASIDE_OP_MOVE, 900 + k, 200, k % 2 ? std::vector<Segment>{{0, READS, 200}, {1, READS, 200}} : std::vector<Segment>{{0, READS, 200}}, {{2, WRITES, 200}});
    if (k < 8) append(list, command, k % 3 == 2);
    else net.raw(0, command);
  }
  net.list(0, 898, list);
  for (uint64_t k = 300 + net.random() % 1200; k > 0; k--) net.step();
  auto& top = net.nodes[0]->top;
  std::unordered_set<uint64_t> secret; // what is fetched, and its sums
  for (unsigned w = 0; w < 200; w++)
    for (Word word : {net.nodes[0]->memory[READS + w], net.nodes[1]->memory[READS + w], net.nodes[0]->memory[READS + w] + net.nodes[1]->memory[READS + w]})
      secret.insert({static_cast<uint64_t>(word), static_cast<uint64_t>(word >> 64)});
  expect(net.nodes[0]->found(secret) > 0, "words are found where they are");
  top.s_axil_awaddr_i = LOOKASIDE_CONTROL;
  top.s_axil_wdata_i = LOOKASIDE_CONTROL_SCRUB;
  top.s_axil_wstrb_i = 15;
  top.s_axil_awvalid_i = top.s_axil_wvalid_i = top.s_axil_bready_i = 1;
  net.step();
  top.s_axil_awvalid_i = top.s_axil_wvalid_i = 0;
  top.eval();
  expect(top.scrubs_o, "a scrub begins");
  net.nodes[0]->dropped();
  net.until([&] {
    net.nodes[0]->dropped();
    return !top.scrubs_o;
  });
  for (int l = 0; l < LANES; l++) put(top.m_axi_rdata_i, 0, l); // what the bench holds there itself
  put(top.s_axis_net_tdata_i, 0);
  top.eval();
  const unsigned left = net.nodes[0]->found(secret);
  expect(left == 0, "no word is left after a scrub: " + std::to_string(left));
  for (unsigned k = 0; k < 8000; k++) net.step(); // what was under way at other nodes ends
  for (unsigned n : {1u, 2u}) net.keys(0, n);
  for (auto& node : net.nodes) node->done.clear();
  net.command(0, LOOKASIDE_OP_ADD, 950, 200, {{0, READS, 200}, {1, READS, 200}}, {{2, WRITES, 200}});
  net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, 950, "a command after a scrub");
  for (uint32_t w = 0; w < 200; w++)
    expect(net.nodes[2]->memory[WRITES + w] == net.nodes[0]->memory[READS + w] + net.nodes[1]->memory[READS + w], "words after a scrub");
  list.resize(9); // a move, and an addition
  net.list(0, 951, list);
  net.one(0, LOOKASIDE_STATUS_OK, LOOKASIDE_EVENT_COMMAND, 951, "a list after a scrub");
  net.raw(0, net.encode(LOOKASIDE_OP_AWAIT, 952, 0, {}, {{1, 0, 1}}));
  net.one(0, LOOKASIDE_STATUS_GONE, LOOKASIDE_EVENT_COMMAND, 952, "a tell that a scrub has forgotten");
}

int main(int argc, char** argv) {
  seed_of_all = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
  const unsigned count = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 60;
  uint64_t cycles = 0, packets = 0, bursts = 0;
  for (unsigned stalls : {0u, 2u, 5u}) {
    Net net(seed_of_all + stalls);
    for (auto& node : net.nodes) node->stalls = stalls;
    expect(net.read(0, LOOKASIDE_IDENT) == LOOKASIDE_IDENT_VALUE && net.read(0, LOOKASIDE_LANES) == LANES, "it says what it is");
    traffic(net, count);
    lists(net);
    errors(net);
    invoked(net);
    if (SEALED) tampered(net);
    else junk(net, count);
    for (unsigned k = 0; k < 3; k++) scrubbed(net);
    cycles += net.cycle;
    packets += net.packets;
    for (auto& node : net.nodes) bursts += node->bursts;
  }
  std::printf("%s, beats of %d, seed %llu: three nodes, %llu cycles, %llu packets, %llu bursts: right\n", SEALED ? "lookaside_node" : "lookaside_unit", LANES, static_cast<unsigned long long>(seed_of_all),
              static_cast<unsigned long long>(cycles), static_cast<unsigned long long>(packets), static_cast<unsigned long long>(bursts));
  return 0;
}
