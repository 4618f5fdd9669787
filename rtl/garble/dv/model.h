// The garbler in software, from the formulas: AES-128, the hash, half-gates, random circuits and their programs. Knows nothing of the RTL but
// the format of programs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "garble_regs.h"

#if !defined ROWS || !defined LABELS_IN || !defined TABLES_OUT || !defined LABEL_REG
#error "compile with -DROWS=, -DLABELS_IN=, -DTABLES_OUT= and -DLABEL_REG=, as the model was made"
#endif

using Label = unsigned __int128;

inline uint64_t low(Label x) { return static_cast<uint64_t>(x); }
inline uint64_t high(Label x) { return static_cast<uint64_t>(x >> 64); }

// FIPS 197: the S-box from inversion in GF(2^8) and the affine map, byte k of a block in bits 8k to 8k+7.
struct Aes {
  std::array<uint8_t, 256> box;

  static uint8_t times(uint8_t a, uint8_t b) {
    uint8_t product = 0;
    for (; b; b >>= 1, a = static_cast<uint8_t>(a << 1 ^ (a >> 7) * 0x1b)) product ^= static_cast<uint8_t>((b & 1) * a);
    return product;
  }

  Aes() {
    for (int x = 0; x < 256; x++) {
      uint8_t inverse = 0;
      for (int y = 1; y < 256; y++)
        if (times(static_cast<uint8_t>(x), static_cast<uint8_t>(y)) == 1) inverse = static_cast<uint8_t>(y);
      uint8_t out = 0x63;
      for (int k = 0; k < 5; k++) out ^= static_cast<uint8_t>(inverse << k | inverse >> (8 - k));
      box[static_cast<size_t>(x)] = out;
    }
  }

  Label operator()(Label key_block, Label block) const {
    uint8_t key[16], state[16], rcon = 1;
    for (int k = 0; k < 16; k++) {
      key[k] = static_cast<uint8_t>(key_block >> (8 * k));
      state[k] = static_cast<uint8_t>(block >> (8 * k)) ^ key[k];
    }
    for (int round = 1; round <= 10; round++, rcon = times(rcon, 2)) {
      for (int k = 0; k < 4; k++) key[k] ^= box[key[12 + (k + 1) % 4]];
      key[0] ^= rcon;
      for (int k = 4; k < 16; k++) key[k] ^= key[k - 4];
      uint8_t shifted[16];
      for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++) shifted[4 * c + r] = box[state[4 * ((c + r) % 4) + r]];
      for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++) {
          auto at = [&](int k) { return shifted[4 * c + (r + k) % 4]; };
          uint8_t mixed = static_cast<uint8_t>(times(at(0), 2) ^ times(at(1), 3) ^ at(2) ^ at(3));
          state[4 * c + r] = (round == 10 ? shifted[4 * c + r] : mixed) ^ key[4 * c + r];
        }
    }
    Label out = 0;
    for (int k = 15; k >= 0; k--) out = out << 8 | state[k];
    return out;
  }
};

inline const Aes aes;

// H(X, i) = AES_k(sigma(X)) + sigma(X), k = S + (i << 64).
inline Label hash(Label start, uint64_t tweak, Label x) {
  Label sigma = static_cast<Label>(high(x) ^ low(x)) << 64 | high(x);
  return aes(start ^ static_cast<Label>(tweak) << 64, sigma) ^ sigma;
}

struct Table {
  Label garbler, evaluator;
};

// A value that is read: an input of the run, one of this netlist cycle, a gate of this one or of the one before, or 0.
struct Operand {
  enum Of { Zero, Run, Cycle, Gate, Before } of = Zero;
  unsigned number = 0;
};

struct Gate {
  bool is_and;
  bool not_a, not_b, not_c;
  Operand a, b;
  bool kept = false;         // read by the next netlist cycle
  unsigned initial = 0;      // input of the run that it is before the first
  unsigned time = 0, row = 0, number = 0, slot = 0;
};

struct Circuit {
  unsigned rows, of_run, of_cycle, products = 0, kernel = 1;
  std::vector<Gate> gates;
  std::vector<unsigned> leaves;       // gates of which the labels leave, in this order
  std::vector<unsigned> leave_times;

  // A random one, and when and where each of its gates is started.
  Circuit(std::mt19937_64& random, unsigned rows, unsigned of_run, unsigned of_cycle, unsigned gates_of_cycle)
      : rows(rows), of_run(of_run), of_cycle(of_cycle) {
    auto below = [&](size_t n) { return static_cast<unsigned>(random() % n); };
    for (unsigned k = 0; k < gates_of_cycle; k++) {
      auto operand = [&]() -> Operand {
        unsigned kind = below(8);
        if (kind == 0) return {Operand::Run, below(of_run)};
        if (kind == 1 && of_cycle) return {Operand::Cycle, below(of_cycle)};
        if (kind == 2) return {Operand::Before, below(gates_of_cycle)};
        if (kind == 3 && below(4) == 0) return {Operand::Zero, 0};
        if (k == 0) return {Operand::Run, below(of_run)};
        return {Operand::Gate, k - 1 - std::min(k - 1, below(12))};
      };
      gates.push_back({below(3) == 0, below(2) == 1, below(2) == 1, below(2) == 1, operand(), operand()});
    }
    for (Gate& gate : gates) {
      gate.initial = below(of_run);
      for (const Operand& x : {gate.a, gate.b})
        if (x.of == Operand::Before) gates[x.number].kept = true;
    }
    place(random);
  }

  void place(std::mt19937_64& random) {
    std::vector<unsigned> load;
    std::vector<std::vector<unsigned>> at; // gates by time
    for (unsigned k = 0; k < gates.size(); k++) {
      unsigned time = 0;
      for (const Operand& x : {gates[k].a, gates[k].b})
        if (x.of == Operand::Gate) time = std::max(time, there(gates[x.number]));
      while (time < load.size() && load[time] == rows) time++;
      load.resize(std::max<size_t>(load.size(), time + 1));
      at.resize(load.size());
      load[time]++;
      at[time].push_back(k);
      gates[k].time = time;
      kernel = std::max(kernel, there(gates[k]));
    }
    std::vector<unsigned> free_xor(rows, 0), free_and(rows, 0);
    for (auto& now : at) {
      std::vector<bool> taken(rows, false);
      for (unsigned k : now)
        if (gates[k].is_and) {
          gates[k].number = products;
          gates[k].row = products++ % rows;
          taken[gates[k].row] = true;
        }
      for (unsigned k : now)
        if (!gates[k].is_and) {
          while (taken[gates[k].row]) gates[k].row++;
          taken[gates[k].row] = true;
        }
    }
    // Rings of two first, so that they begin at even slots.
    for (bool kept : {true, false})
      for (Gate& gate : gates)
        if (gate.kept == kept) {
          unsigned& next = (gate.is_and ? free_and : free_xor)[gate.row];
          gate.slot = next;
          next += kept ? 2 : 1;
        }
    unsigned time = 0;
    for (unsigned k = 0; k < gates.size(); k += 1 + static_cast<unsigned>(random() % 3)) {
      leaves.push_back(k);
      time = std::max(time, there(gates[k]));
      leave_times.push_back(time++);
    }
    kernel = std::max(kernel, time);
  }

  static unsigned there(const Gate& gate) { return gate.time + (gate.is_and ? 10 : 1) + LABEL_REG; }
  unsigned lines() const { return (products + rows - 1) / rows; }
  unsigned last_line() const { return products == 0 ? 0 : (products - 1) % rows + 1; }
  unsigned last_keep() const { return (1u << last_line()) - 1; }
};

// Bits of a bundle, set by their places.
struct Bundle {
  std::vector<uint32_t> words;
  explicit Bundle(unsigned rows) : words((2 * GARBLE_NUMBER_BITS + GARBLE_LEAVE_BITS + rows * GARBLE_GATE_BITS + 127) / 128 * 4, 0) {}
  void put(unsigned at, uint64_t value, unsigned bits) {
    for (unsigned k = 0; k < bits; k++)
      if (value >> k & 1) words[(at + k) / 32] |= 1u << (at + k) % 32;
  }
};

struct Program {
  std::vector<Bundle> bundles;
  unsigned prologue = 0;
  static constexpr unsigned Ring = 2; // logarithm of the netlist cycles of which inputs are kept

  explicit Program(const Circuit& circuit) {
    const unsigned rows = circuit.rows;
    std::vector<std::vector<unsigned>> first(rows); // registers by row
    for (unsigned k = 0; k < circuit.gates.size(); k++)
      if (circuit.gates[k].kept) first[circuit.gates[k].row].push_back(k);
    for (bool more = true; more;) {
      more = false;
      Bundle bundle(rows);
      unsigned need = 0;
      for (unsigned r = 0; r < rows; r++) {
        if (first[r].empty()) continue;
        const Gate& gate = circuit.gates[first[r].back()];
        first[r].pop_back();
        more = true;
        need = std::max(need, gate.initial + 1);
        Gate write{gate.is_and, false, false, false, {Operand::Run, gate.initial}, {}};
        put_gate(bundle, circuit, r, write, 1, gate.slot + 1, 0);
      }
      if (!more) break;
      bundle.put(GARBLE_NUMBER_BITS, need, GARBLE_NUMBER_BITS);
      bundles.push_back(bundle);
    }
    // What was written last can be read a cycle later.
    if (!bundles.empty()) bundles.resize(bundles.size() + LABEL_REG, Bundle(rows));
    prologue = static_cast<unsigned>(bundles.size());
    for (unsigned t = 0; t < circuit.kernel; t++) {
      Bundle bundle(rows);
      unsigned of_run = 0, of_cycle = 0;
      auto need = [&](const Operand& x) {
        if (x.of == Operand::Run) of_run = std::max(of_run, x.number + 1);
        if (x.of == Operand::Cycle) of_cycle = std::max(of_cycle, x.number + 1);
      };
      for (const Gate& gate : circuit.gates)
        if (gate.time == t) {
          need(gate.a);
          need(gate.b);
          put_gate(bundle, circuit, gate.row, gate, gate.kept, gate.slot, gate.number);
        }
      for (unsigned k = 0; k < circuit.leaves.size(); k++)
        if (circuit.leave_times[k] == t) {
          const unsigned at = 2 * GARBLE_NUMBER_BITS;
          bundle.put(at + GARBLE_LEAVE_VALID_AT, 1, 1);
          put_operand(bundle, at + GARBLE_LEAVE_FROM_AT, circuit, {Operand::Gate, circuit.leaves[k]});
        }
      bundle.put(0, of_cycle, GARBLE_NUMBER_BITS);
      bundle.put(GARBLE_NUMBER_BITS, of_run, GARBLE_NUMBER_BITS);
      bundles.push_back(bundle);
    }
  }

 private:
  static unsigned place(unsigned ring, unsigned slot) { return ring << GARBLE_PLACE_RING_AT | slot; }

  static void put_operand(Bundle& bundle, unsigned at, const Circuit& circuit, const Operand& x) {
    unsigned bank = 3, row = 0, where = 0;
    const Gate* gate = x.of >= Operand::Gate ? &circuit.gates[x.number] : nullptr;
    switch (x.of) {
      case Operand::Zero: break;
      case Operand::Run: bank = 2, row = x.number % LABELS_IN, where = place(0, x.number / LABELS_IN); break;
      case Operand::Cycle: {
        unsigned first = ((circuit.of_run + LABELS_IN - 1) / LABELS_IN + (1u << Ring) - 1) >> Ring << Ring;
        bank = 2, row = x.number % LABELS_IN, where = place(Ring, first + (x.number / LABELS_IN << Ring));
        break;
      }
      case Operand::Gate:
      case Operand::Before:
        bank = gate->is_and, row = gate->row;
        where = place(gate->kept, gate->slot + (x.of == Operand::Before));
    }
    bundle.put(at + GARBLE_OPERAND_BANK_AT, bank, 2);
    bundle.put(at + GARBLE_OPERAND_ROW_AT, row, GARBLE_ROW_BITS);
    bundle.put(at + GARBLE_OPERAND_PLACE_AT, where, GARBLE_PLACE_BITS);
  }

  static void put_gate(Bundle& bundle, const Circuit& circuit, unsigned row, const Gate& gate, unsigned ring, unsigned slot, unsigned number) {
    const unsigned at = 2 * GARBLE_NUMBER_BITS + GARBLE_LEAVE_BITS + row * GARBLE_GATE_BITS;
    bundle.put(at + GARBLE_GATE_VALID_AT, 1, 1);
    bundle.put(at + GARBLE_GATE_IS_AND_AT, gate.is_and, 1);
    bundle.put(at + GARBLE_GATE_NOT_A_AT, gate.not_a, 1);
    bundle.put(at + GARBLE_GATE_NOT_B_AT, gate.not_b, 1);
    bundle.put(at + GARBLE_GATE_NOT_C_AT, gate.not_c, 1);
    put_operand(bundle, at + GARBLE_GATE_A_AT, circuit, gate.a);
    put_operand(bundle, at + GARBLE_GATE_B_AT, circuit, gate.b);
    bundle.put(at + GARBLE_GATE_C_AT, place(ring, slot), GARBLE_PLACE_BITS);
    bundle.put(at + GARBLE_GATE_NUMBER_AT, number, GARBLE_NUMBER_BITS);
  }
};

// Numbers of gates, and the secrets of a run.
struct Numbers {
  uint64_t first;
  unsigned instance;
  bool batch; // repetitions are rows of a batch
  uint64_t of(const Circuit& circuit, unsigned cycle, unsigned product) const {
    uint64_t p = first + product + (batch ? 0 : uint64_t{cycle} * circuit.products);
    return p << 16 | (instance + (batch ? cycle : 0));
  }
};

struct Garbled {
  std::vector<Table> tables;
  std::vector<Label> leaves;
  std::vector<Label> all; // zero-labels of all gates

  Garbled(const Circuit& circuit, unsigned cycles, const Numbers& numbers, Label offset, Label start, const std::vector<Label>& inputs) {
    std::vector<Label> before(circuit.gates.size()), now(circuit.gates.size());
    for (unsigned k = 0; k < circuit.gates.size(); k++) before[k] = inputs[circuit.gates[k].initial];
    for (unsigned cycle = 0; cycle < cycles; cycle++) {
      std::vector<Table> tables_now(circuit.products);
      auto label = [&](const Operand& x) -> Label {
        switch (x.of) {
          case Operand::Run: return inputs[x.number];
          case Operand::Cycle: return inputs[circuit.of_run + cycle * circuit.of_cycle + x.number];
          case Operand::Gate: return now[x.number];
          case Operand::Before: return before[x.number];
          default: return 0;
        }
      };
      for (unsigned k = 0; k < circuit.gates.size(); k++) {
        const Gate& gate = circuit.gates[k];
        Label a = label(gate.a) ^ (gate.not_a ? offset : 0), b = label(gate.b) ^ (gate.not_b ? offset : 0);
        Label c = a ^ b;
        if (gate.is_and) {
          const uint64_t g = numbers.of(circuit, cycle, gate.number);
          Label ha = hash(start, 2 * g, a), hb = hash(start, 2 * g + 1, b);
          Label tg = ha ^ hash(start, 2 * g, a ^ offset) ^ (b & 1 ? offset : 0);
          Label te = hb ^ hash(start, 2 * g + 1, b ^ offset) ^ a;
          c = ha ^ (a & 1 ? tg : 0) ^ hb ^ (b & 1 ? te ^ a : 0);
          tables_now[gate.number] = {tg, te};
        }
        now[k] = c ^ (gate.not_c ? offset : 0);
      }
      tables.insert(tables.end(), tables_now.begin(), tables_now.end());
      for (unsigned k : circuit.leaves) leaves.push_back(now[k]);
      all.insert(all.end(), now.begin(), now.end());
      before = now;
    }
  }
};

// Evaluates tables on random inputs, and says how many labels that leave do not decode to what the circuit gives in the clear.
inline unsigned evaluate(std::mt19937_64& random, const Circuit& circuit, unsigned cycles, const Numbers& numbers, Label offset, Label start,
                         const std::vector<Label>& inputs, const std::vector<Table>& tables, const std::vector<Label>& leaves) {
  struct Wire {
    Label label;
    bool value;
  };
  std::vector<bool> bits(inputs.size());
  for (size_t k = 0; k < bits.size(); k++) bits[k] = random() & 1;
  auto input = [&](size_t k) { return Wire{inputs[k] ^ (bits[k] ? offset : 0), bits[k]}; };
  std::vector<Wire> before, now(circuit.gates.size());
  for (const Gate& gate : circuit.gates) before.push_back(input(gate.initial));
  unsigned wrong = 0, next = 0;
  for (unsigned cycle = 0; cycle < cycles; cycle++) {
    auto wire = [&](const Operand& x) -> Wire {
      switch (x.of) {
        case Operand::Run: return input(x.number);
        case Operand::Cycle: return input(circuit.of_run + cycle * circuit.of_cycle + x.number);
        case Operand::Gate: return now[x.number];
        case Operand::Before: return before[x.number];
        default: return {0, false};
      }
    };
    for (unsigned k = 0; k < circuit.gates.size(); k++) {
      const Gate& gate = circuit.gates[k];
      Wire a = wire(gate.a), b = wire(gate.b);
      bool x = a.value != gate.not_a, y = b.value != gate.not_b;
      Label c = a.label ^ b.label;
      if (gate.is_and) {
        const uint64_t g = numbers.of(circuit, cycle, gate.number);
        const Table& table = tables[cycle * circuit.products + gate.number];
        c = hash(start, 2 * g, a.label) ^ (a.label & 1 ? table.garbler : 0) ^ hash(start, 2 * g + 1, b.label) ^
            (b.label & 1 ? table.evaluator ^ a.label : 0);
      }
      now[k] = {c, (gate.is_and ? x && y : x != y) != gate.not_c};
    }
    for (unsigned k : circuit.leaves) {
      Label zero = leaves[next++];
      wrong += now[k].label != (zero ^ (now[k].value ? offset : 0));
    }
    before = now;
  }
  return wrong;
}
