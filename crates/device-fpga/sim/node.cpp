// Nodes of lookaside_node in simulation, each with a memory behind AXI4, joined by a modelled network, behind functions of C.
//
// MODEL is the class that Verilator made, HEADER its header, NAME what the functions begin with, LANES how many words a beat of memory has.

#include HEADER
#include ROOT
#include "model.h"
#include "verilated.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

extern "C" {

// Of the network and the memories.
struct NetworkShape {
  uint32_t nodes;
  uint32_t rate;     // of 256 cycles in which each stream stops
  uint64_t seed;     // of stalls, and of what is changed in packets
  double bits;       // that a port sends, and takes, in a cycle
  uint32_t latency;  // cycles from the end of a packet at its sender to its beginning at the receiver
  uint32_t room;     // words on their way to a node, before nobody begins another packet to it
  uint32_t memory;   // cycles until a memory answers
  uint64_t bytes;    // of each memory
};

struct NodeCompletion {
  uint8_t word[16];
  uint64_t cycle;
};

}  // extern "C"

namespace {

struct Word {
  uint32_t part[4];
};

using Beat = std::array<Word, LANES>;

struct Packet {
  uint64_t at = 0;  // when it begins at its receiver
  std::vector<Word> words;
};

enum Kind : uint32_t { Drop, Duplicate, Reorder, Corrupt };

// What happens to packets between two nodes: after `skip` of them, to `count`.
struct Fault {
  Kind kind;
  uint64_t skip, count;
};

struct Burst {
  uint64_t address, at;
  unsigned left;
};

// A port sends, and takes, so many bits in a cycle.
struct Line {
  double bits, credit = 0;

  void cycle() { credit = std::min(credit + bits, std::max(bits, 128.0)); }
  bool word() const { return credit >= 128; }
  void spend() { credit -= 128; }
};

template <class Wide>
void put(Wide& wide, const Word& word, int first = 0) {
  for (int k = 0; k < 4; k++) wide[first + k] = word.part[k];
}

template <class Wide>
Word get(const Wide& wide, int first = 0) {
  return {{wide[first], wide[first + 1], wide[first + 2], wide[first + 3]}};
}

class Node {
 public:
  Node(VerilatedContext* context, const NetworkShape& shape, uint32_t number)
      : top(new MODEL(context)), memory(shape.bytes), out_line{shape.bits}, in_line{shape.bits},
        stalls{shape.seed + number, shape.rate}, memory_latency(shape.memory) {}

  std::unique_ptr<MODEL> top;
  std::vector<uint8_t> memory;
  std::deque<std::pair<Word, bool>> commands;
  std::deque<NodeCompletion> done;
  std::deque<Packet> in;        // in the order in which they begin
  std::vector<Word> out;        // of a packet that leaves
  uint64_t in_words = 0;        // of `in`
  bool resets = false;

  // Inputs of this cycle. `may_begin` says whether the network takes a packet to a node.
  template <class May>
  void drive(uint64_t cycle, May may_begin) {
    auto& t = *top;
    out_line.cycle();
    in_line.cycle();
    t.clk_i = 0;
    t.rst_ni = !resets;
    offer(command_offered, !commands.empty());
    t.s_axis_command_tvalid_i = command_offered;
    put(t.s_axis_command_tdata_i, command_offered ? commands.front().first : Word{});
    t.s_axis_command_tlast_i = command_offered && commands.front().second;
    offer(net_offered, !in.empty() && in.front().at <= cycle && in_line.word());
    t.s_axis_net_tvalid_i = net_offered;
    put(t.s_axis_net_tdata_i, net_offered ? in.front().words[in_at] : Word{});
    t.s_axis_net_tlast_i = net_offered && in_at + 1 == in.front().words.size();
    t.m_axis_done_tready_i = !stalls.next();
    t.m_axi_arready_i = !stalls.next();
    t.m_axi_awready_i = !stalls.next();
    t.m_axi_wready_i = !stalls.next();
    offer(read_offered, !reads.empty() && reads.front().at <= cycle);
    t.m_axi_rvalid_i = read_offered;
    Beat read{};
    if (read_offered) {
      const uint64_t at = reads.front().address;
      if (has(at)) memcpy(&read, &memory[at], sizeof read);
      t.m_axi_rresp_i = has(at) ? 0 : 2;
      t.m_axi_rlast_i = reads.front().left == 1;
    }
    for (int l = 0; l < LANES; l++) put(t.m_axi_rdata_i, read[l], 4 * l);
    offer(answer_offered, !answers.empty() && answers.front().first <= cycle);
    t.m_axi_bvalid_i = answer_offered;
    t.m_axi_bresp_i = answer_offered && answers.front().second ? 2 : 0;
    t.m_axis_net_tready_i = 0;
    t.eval();
    t.m_axis_net_tready_i = out_line.word() && !stalls.next() && (!out.empty() || (t.m_axis_net_tvalid_o && may_begin(t.m_axis_net_tdest_o)));
    t.eval();
  }

  // What moves in this cycle. Says whether a packet has left, which is `out` then, to `to`.
  bool moves(uint64_t cycle, unsigned& to) {
    auto& t = *top;
    bool left = false;
    if (t.s_axis_command_tvalid_i && t.s_axis_command_tready_o) commands.pop_front(), command_offered = false;
    if (t.s_axis_net_tvalid_i && t.s_axis_net_tready_o) {
      net_offered = false;
      in_line.spend();
      in_words--;
      if (++in_at == in.front().words.size()) in.pop_front(), in_at = 0;
    }
    if (t.m_axis_net_tvalid_o && t.m_axis_net_tready_i) {
      out.push_back(get(t.m_axis_net_tdata_o));
      out_line.spend();
      to = t.m_axis_net_tdest_o;
      left = t.m_axis_net_tlast_o;
    }
    if (t.m_axis_done_tvalid_o && t.m_axis_done_tready_i) {
      NodeCompletion completion{{}, cycle};
      const Word word = get(t.m_axis_done_tdata_o);
      memcpy(completion.word, &word, 16);
      done.push_back(completion);
    }
    if (t.m_axi_rvalid_i && t.m_axi_rready_o) {
      read_offered = false;
      reads.front().address += sizeof(Beat);
      if (--reads.front().left == 0) reads.pop_front();
    }
    if (t.m_axi_bvalid_i && t.m_axi_bready_o) answer_offered = false, answers.pop_front();
    if (t.m_axi_arvalid_o && t.m_axi_arready_i) reads.push_back({t.m_axi_araddr_o, cycle + memory_latency, t.m_axi_arlen_o + 1u});
    if (t.m_axi_awvalid_o && t.m_axi_awready_i) writes.push_back({t.m_axi_awaddr_o, 0, t.m_axi_awlen_o + 1u});
    if (t.m_axi_wvalid_o && t.m_axi_wready_i) {
      Beat& beat = beats.emplace_back();
      for (int l = 0; l < LANES; l++) beat[l] = get(t.m_axi_wdata_o, 4 * l);
    }
    while (!writes.empty() && !beats.empty()) {
      Burst& burst = writes.front();
      if (has(burst.address)) memcpy(&memory[burst.address], &beats.front(), sizeof(Beat));
      else write_fails = true;
      beats.pop_front();
      burst.address += sizeof(Beat);
      if (--burst.left == 0) {
        answers.push_back({cycle + memory_latency, write_fails});
        write_fails = false;
        writes.pop_front();
      }
    }
    if (resets || t.scrubs_o) ends();
    t.clk_i = 1;
    t.eval();
    return left;
  }

  void ports_rest() {
    auto& t = *top;
    t.s_axil_awvalid_i = t.s_axil_wvalid_i = t.s_axil_arvalid_i = 0;
    t.s_axil_bready_i = t.s_axil_rready_i = 1;
    t.s_axil_wstrb_i = 15;
  }

  // After a reset a memory owes nothing any more.
  void forget() { reads.clear(), writes.clear(), beats.clear(), answers.clear(), write_fails = read_offered = answer_offered = false; }

 private:
  Line out_line, in_line;
  Stalls stalls;
  uint32_t memory_latency;
  std::deque<Burst> reads, writes;
  std::deque<Beat> beats;
  std::deque<std::pair<uint64_t, bool>> answers;  // when, and whether it is an error
  size_t in_at = 0;
  bool command_offered = false, net_offered = false, read_offered = false, answer_offered = false, write_fails = false;

  // What is offered stays until it is taken.
  void offer(bool& offered, bool can) {
    if (!offered) offered = can && !stalls.next();
  }

  bool has(uint64_t at) const { return at % sizeof(Beat) == 0 && at < memory.size() && memory.size() - at >= sizeof(Beat); }

  // A scrub or a reset drops what the streams offer, and cuts what leaves.
  void ends() {
    commands.clear();
    in.clear();
    out.clear();
    in_at = in_words = 0;
    command_offered = net_offered = false;
  }
};

struct Network {
  NetworkShape shape;
  VerilatedContext context;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::deque<Fault>> faults;      // of each sender and receiver
  std::vector<std::vector<Word>> held;        // packets that the next one of the pair overtakes
  std::vector<uint64_t> last;                 // when the last word of a pair's last packet has arrived
  std::vector<uint64_t> sent;                 // words, of each node
  Stalls random;
  uint64_t cycle = 0;

  explicit Network(const NetworkShape& of) : shape(of), faults(of.nodes * of.nodes), held(of.nodes * of.nodes), last(of.nodes * of.nodes), sent(of.nodes), random{of.seed ^ 0x5eed, 1} {
    for (uint32_t n = 0; n < of.nodes; n++) {
      nodes.push_back(std::make_unique<Node>(&context, of, n));
      nodes[n]->ports_rest();
      nodes[n]->resets = true;
    }
    for (int k = 0; k < 4; k++) step();
    for (auto& node : nodes) node->resets = false;
  }

  void step() {
    const auto may = [this](unsigned to) { return to >= nodes.size() || nodes[to]->in_words < shape.room; };
    for (auto& node : nodes) node->drive(cycle, may);
    for (uint32_t n = 0; n < nodes.size(); n++) {
      unsigned to = 0;
      if (nodes[n]->moves(cycle, to)) send(n, to, std::move(nodes[n]->out)), nodes[n]->out.clear();
    }
    cycle++;
  }

  // Packets of a pair arrive in their order, but for faults.
  void send(uint32_t from, uint32_t to, std::vector<Word> words) {
    sent[from] += words.size();
    if (to >= nodes.size() || words.empty()) return;
    const size_t pair = from * nodes.size() + to;
    auto& list = faults[pair];
    if (list.empty() || list.front().skip > 0) {
      if (!list.empty()) list.front().skip--;
      arrive(pair, to, words);
    } else {
      Fault& fault = list.front();
      switch (fault.kind) {
        case Drop: break;
        case Duplicate: arrive(pair, to, words), arrive(pair, to, words); break;
        case Reorder: held[pair] = std::move(words); break;
        case Corrupt: {
          random.next();
          const uint64_t z = random.state * 0x9e3779b97f4a7c15;
          words[(z >> 40) % words.size()].part[(z >> 33) % 4] ^= 1u << (z >> 59);
          arrive(pair, to, words);
          break;
        }
      }
      const bool reorder = fault.kind == Reorder;
      if (--fault.count == 0) list.pop_front();
      if (reorder) return;
    }
    if (!held[pair].empty()) arrive(pair, to, held[pair]), held[pair].clear();
  }

  void arrive(size_t pair, uint32_t to, const std::vector<Word>& words) {
    last[pair] = std::max(last[pair], cycle + shape.latency);
    Node& node = *nodes[to];
    Packet packet{last[pair], words};
    const auto place = std::upper_bound(node.in.begin() + !node.in.empty(), node.in.end(), packet, [](const Packet& a, const Packet& b) { return a.at < b.at; });
    node.in_words += words.size();
    node.in.insert(place, std::move(packet));
  }
};

}  // namespace

extern "C" {

void* FUNCTION(new)(const NetworkShape* shape) { return new Network(*shape); }

void FUNCTION(free)(void* at) {
  auto* self = static_cast<Network*>(at);
  for (auto& node : self->nodes) {
    std::fill(node->memory.begin(), node->memory.end(), uint8_t{0});
    node->resets = true;
  }
  for (int k = 0; k < 4; k++) self->step();
  for (auto& node : self->nodes) node->resets = false;
  const auto scrubs = [&] { return std::any_of(self->nodes.begin(), self->nodes.end(), [](const auto& node) { return node->top->scrubs_o; }); };
  for (int k = 0; k < 4096 && (k < 4 || scrubs()); k++) self->step();
  // A model that is destroyed asks the context of the thread, which is that of whatever model was made last, and may be gone.
  Verilated::threadContextp(&self->context);
  delete self;
}

// By AXI4-Lite: what the card answers, 0 if it is right.
uint32_t FUNCTION(write)(void* at, uint32_t node, uint32_t where, uint32_t value) {
  auto& self = *static_cast<Network*>(at);
  auto& top = *self.nodes[node]->top;
  top.s_axil_awaddr_i = where;
  top.s_axil_wdata_i = value;
  top.s_axil_awvalid_i = top.s_axil_wvalid_i = 1;
  bool aw = false, w = false;
  while (!aw || !w) {
    top.eval();
    const bool awr = top.s_axil_awvalid_i && top.s_axil_awready_o, wr = top.s_axil_wvalid_i && top.s_axil_wready_o;
    self.step();
    aw |= awr, w |= wr;
    top.s_axil_awvalid_i = !aw;
    top.s_axil_wvalid_i = !w;
  }
  for (top.eval(); !top.s_axil_bvalid_o; top.eval()) self.step();
  const uint32_t answer = top.s_axil_bresp_o;
  top.s_axil_wdata_i = 0;
  self.step();
  return answer;
}

uint32_t FUNCTION(read)(void* at, uint32_t node, uint32_t where, uint32_t* value) {
  auto& self = *static_cast<Network*>(at);
  auto& top = *self.nodes[node]->top;
  top.s_axil_araddr_i = where;
  top.s_axil_arvalid_i = 1;
  for (bool taken = false; !taken;) {
    top.eval();
    taken = top.s_axil_arready_o;
    self.step();
  }
  top.s_axil_arvalid_i = 0;
  for (top.eval(); !top.s_axil_rvalid_o; top.eval()) self.step();
  *value = top.s_axil_rdata_o;
  const uint32_t answer = top.s_axil_rresp_o;
  self.step();
  return answer;
}

// A packet of command words.
void FUNCTION(command)(void* at, uint32_t node, const uint8_t* words, size_t count) {
  auto& queue = static_cast<Network*>(at)->nodes[node]->commands;
  for (size_t k = 0; k < count; k++) {
    Word word;
    memcpy(&word, words + 16 * k, 16);
    queue.push_back({word, k + 1 == count});
  }
}

// The oldest completion, if there is one.
bool FUNCTION(completion)(void* at, uint32_t node, NodeCompletion* into) {
  auto& done = static_cast<Network*>(at)->nodes[node]->done;
  if (done.empty()) return false;
  *into = done.front();
  done.pop_front();
  return true;
}

// Goes on for so many cycles, or until there is a completion of one of the nodes (bit n is node n). Says how many cycles have been in all.
uint64_t FUNCTION(step)(void* at, uint64_t most, uint32_t until) {
  auto& self = *static_cast<Network*>(at);
  const auto there = [&] {
    for (size_t n = 0; n < self.nodes.size(); n++)
      if ((until >> n & 1) && !self.nodes[n]->done.empty()) return true;
    return false;
  };
  for (uint64_t k = 0; k < most && !there(); k++) self.step();
  return self.cycle;
}

uint8_t* FUNCTION(memory)(void* at, uint32_t node) { return static_cast<Network*>(at)->nodes[node]->memory.data(); }

// Words that a node has sent.
uint64_t FUNCTION(sent)(void* at, uint32_t node) { return static_cast<Network*>(at)->sent[node]; }

void FUNCTION(fault)(void* at, uint32_t from, uint32_t to, uint32_t kind, uint64_t skip, uint64_t count) {
  auto& self = *static_cast<Network*>(at);
  auto& list = self.faults[from * self.nodes.size() + to];
  list.clear();
  if (count > 0) list.push_back({static_cast<Kind>(kind), skip, count});
}

// A node is switched off and on.
void FUNCTION(reset)(void* at, uint32_t node) {
  auto& self = *static_cast<Network*>(at);
  self.nodes[node]->resets = true;
  for (int k = 0; k < 4; k++) self.step();
  self.nodes[node]->forget();
  self.nodes[node]->resets = false;
}

// All of the state of a node: how many bytes it has, of which `room` at most are written.
size_t FUNCTION(state)(void* at, uint32_t node, uint8_t* into, size_t room) {
  const auto& root = *static_cast<Network*>(at)->nodes[node]->top->rootp;
  memcpy(into, &root, std::min(sizeof root, room));
  return sizeof root;
}

}  // extern "C"
