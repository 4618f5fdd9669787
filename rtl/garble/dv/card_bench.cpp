// Bench of the card: runs of random circuits with random stalls on every interface against the garbler in software, bad programs and
// parameters, resets and scrubs in the middle of runs, cycles that do not depend on secrets.
//
//     card_bench [SEED [RUNS]]
//
// The seed is printed; exits with 1 at the first thing that is wrong.

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_set>

#include "Vgarble_card.h"
#include "Vgarble_card___024root.h"
#include "model.h"
#include "verilated.h"

static uint64_t seed_of_all;

[[noreturn]] static void fail(const std::string& what) {
  std::printf("FAILED: %s (seed %llu)\n", what.c_str(), static_cast<unsigned long long>(seed_of_all));
  std::exit(1);
}

static void expect(bool right, const std::string& what) {
  if (!right) fail(what);
}

struct Beat {
  std::vector<uint32_t> data;
  bool last = false;
  unsigned dest = 0;
  uint64_t keep = 0; // tables
};

template <class Wide>
static std::vector<uint32_t> words(const Wide& wide, unsigned count) {
  std::vector<uint32_t> out;
  for (unsigned k = 0; k < count; k++) out.push_back(wide[k]);
  return out;
}

static Label label(const uint32_t* words) {
  return static_cast<Label>(words[0] | uint64_t{words[1]} << 32) | static_cast<Label>(words[2] | uint64_t{words[3]} << 32) << 64;
}

class Card {
 public:
  Vgarble_card top;
  std::vector<Beat> program, tables, labels; // to the card, from it
  std::vector<std::array<Label, LABELS_IN>> inputs;
  size_t program_sent = 0, inputs_sent = 0;
  unsigned stalls = 0; // of 8: how often an interface is not ready, or has nothing
  bool slow_tables = false; // tables are taken in one cycle of 64 at most: as many as rows make would never wait otherwise
  uint64_t cycles = 0;

  explicit Card(uint64_t seed) : random(seed) {
    top.rst_ni = 0;
    for (int k = 0; k < 4; k++) step();
    top.rst_ni = 1;
  }

  void reseed(uint64_t seed) { random.seed(seed); }

  // One clock. Everything but the registers' interface is driven here.
  void step() {
    if (!top.s_axis_program_tvalid_i && program_sent < program.size() && goes()) {
      const Beat& beat = program[program_sent];
      for (int k = 0; k < 4; k++) top.s_axis_program_tdata_i[k] = beat.data[static_cast<size_t>(k)];
      top.s_axis_program_tlast_i = beat.last;
      top.s_axis_program_tvalid_i = 1;
    }
    if (!top.s_axis_labels_tvalid_i && inputs_sent < inputs.size() && goes()) {
      for (unsigned k = 0; k < 4 * LABELS_IN; k++)
        top.s_axis_labels_tdata_i[k] = static_cast<uint32_t>(inputs[inputs_sent][k / 4] >> (32 * (k % 4)));
      top.s_axis_labels_tvalid_i = 1;
    }
    top.m_axis_tables_tready_i = goes() && (!slow_tables || random() % 64 == 0);
    top.m_axis_labels_tready_i = goes();
    top.clk_i = 0;
    top.eval();
    const bool alive = top.rst_ni;
    bool program_moves = top.s_axis_program_tvalid_i && top.s_axis_program_tready_o;
    bool input_moves = top.s_axis_labels_tvalid_i && top.s_axis_labels_tready_o;
    Beat table, leaving;
    table.data = words(top.m_axis_tables_tdata_o, TABLES_OUT * 8);
    for (unsigned r = 0; r < TABLES_OUT; r++) {
      uint32_t keep = keep_of(r);
      expect(!top.m_axis_tables_tvalid_o || keep == 0 || keep == 0xffffffff, "bytes of a table are kept together");
      table.keep |= static_cast<uint64_t>(keep & 1) << r;
    }
    table.last = top.m_axis_tables_tlast_o;
    leaving.data = words(top.m_axis_labels_tdata_o, 4);
    leaving.last = top.m_axis_labels_tlast_o;
    leaving.dest = top.m_axis_labels_tdest_o;
    hold(table_offered, top.m_axis_tables_tvalid_o, table, "tables", alive && !may_drop);
    hold(label_offered, top.m_axis_labels_tvalid_o, leaving, "labels", alive && !may_drop);
    bool table_moves = top.m_axis_tables_tvalid_o && top.m_axis_tables_tready_i && alive;
    bool leaving_moves = top.m_axis_labels_tvalid_o && top.m_axis_labels_tready_i && alive;
    table_offered = {top.m_axis_tables_tvalid_o && !table_moves, table};
    label_offered = {top.m_axis_labels_tvalid_o && !leaving_moves, leaving};
    write_moves = top.s_axil_awvalid_i && top.s_axil_awready_o;
    read_moves = top.s_axil_arvalid_i && top.s_axil_arready_o;
    answered = top.s_axil_bvalid_o && top.s_axil_bready_i;
    write_ok = top.s_axil_bresp_o == 0;
    came = top.s_axil_rvalid_o && top.s_axil_rready_i;
    read_ok = top.s_axil_rresp_o == 0;
    read_data = top.s_axil_rdata_o;
    top.clk_i = 1;
    top.eval();
    cycles++;
    if (program_moves) top.s_axis_program_tvalid_i = 0, program_sent++;
    if (input_moves) top.s_axis_labels_tvalid_i = 0, inputs_sent++;
    if (table_moves) tables.push_back(table);
    if (leaving_moves) labels.push_back(leaving);
    may_drop = false;
  }

  // A word, and whether the card took it.
  bool write(uint32_t address, uint32_t value, unsigned strobes = 15) {
    bool address_goes = false, data_goes = false;
    top.s_axil_awaddr_i = address;
    top.s_axil_wdata_i = value;
    top.s_axil_wstrb_i = strobes;
    top.s_axil_bready_i = goes();
    for (bool moved = false, done = false; !done;) {
      address_goes |= goes();
      data_goes |= goes();
      top.s_axil_awvalid_i = !moved && address_goes;
      top.s_axil_wvalid_i = !moved && data_goes;
      step();
      moved |= write_moves;
      if (moved) top.s_axil_awvalid_i = top.s_axil_wvalid_i = 0;
      done = answered;
      top.s_axil_bready_i = goes();
    }
    top.s_axil_wdata_i = 0;
    return write_ok;
  }

  uint32_t read(uint32_t address, bool* known = nullptr) {
    top.s_axil_araddr_i = address;
    for (bool moved = false;;) {
      top.s_axil_arvalid_i = !moved && (top.s_axil_arvalid_i || goes());
      top.s_axil_rready_i = goes();
      step();
      moved |= read_moves;
      if (came) break;
    }
    top.s_axil_arvalid_i = 0;
    if (known) *known = read_ok;
    return read_data;
  }

  uint64_t read64(uint32_t address) { return read(address) | uint64_t{read(address + 4)} << 32; }

  void secret(uint32_t address, Label value) {
    for (unsigned k = 0; k < 4; k++)
      expect(write(address + 4 * k, static_cast<uint32_t>(value >> (32 * k))), "a secret is written");
  }

  void until_idle() {
    const uint64_t limit = cycles + 2000000;
    while (read(GARBLE_STATUS) & GARBLE_STATUS_BUSY) expect(cycles < limit, "the card comes to an end");
  }

  void load(const Program& bundles) {
    program.clear();
    program_sent = 0;
    for (const Bundle& bundle : bundles.bundles)
      for (size_t k = 0; k < bundle.words.size(); k += 4)
        program.push_back({{bundle.words.begin() + static_cast<long>(k), bundle.words.begin() + static_cast<long>(k + 4)}});
    program.back().last = true;
    while (program_sent < program.size()) step();
    for (int k = 0; k < 3; k++) step();
  }

  // Nothing that the host drives holds anything, and what was offered may vanish.
  void quiet() {
    top.s_axis_labels_tvalid_i = top.s_axis_program_tvalid_i = 0;
    for (unsigned k = 0; k < 4; k++) top.s_axis_program_tdata_i[k] = 0;
    for (unsigned k = 0; k < 4 * LABELS_IN; k++) top.s_axis_labels_tdata_i[k] = 0;
    inputs.clear();
    inputs_sent = 0;
    program.clear();
    program_sent = 0;
  }

  void dropped() { may_drop = true; }

  // How many of these labels lie anywhere in the model, in any memory or register, at any bit.
  unsigned found(const std::unordered_set<uint64_t>& halves) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(top.rootp);
    const size_t size = sizeof(*top.rootp);
    unsigned hits = 0;
    for (size_t at = 0; at + 9 <= size; at++) {
      uint64_t window;
      std::memcpy(&window, bytes + at, 8);
      for (unsigned bit = 0; bit < 8; bit++) {
        uint64_t value = bit ? window >> bit | uint64_t{bytes[at + 8]} << (64 - bit) : window;
        hits += static_cast<unsigned>(halves.count(value));
      }
    }
    return hits;
  }

 private:
  struct Offered {
    bool waits = false;
    Beat beat;
  };
  std::mt19937_64 random;
  Offered table_offered, label_offered;
  bool may_drop = false, write_moves = false, read_moves = false, answered = false, write_ok = false, came = false, read_ok = false;
  uint32_t read_data = 0;

  bool goes() { return stalls == 0 || random() % 8 >= stalls; }

#if TABLES_OUT <= 2
  uint32_t keep_of(unsigned r) const { return static_cast<uint32_t>(static_cast<uint64_t>(top.m_axis_tables_tkeep_o) >> (32 * r)); }
#else
  uint32_t keep_of(unsigned r) const { return top.m_axis_tables_tkeep_o[r]; }
#endif

  static void hold(const Offered& before, bool valid, const Beat& now, const char* name, bool checked) {
    if (!before.waits || !checked) return;
    expect(valid && now.data == before.beat.data && now.last == before.beat.last && now.dest == before.beat.dest && now.keep == before.beat.keep,
           std::string("a beat of ") + name + " stays until it is taken");
  }
};

struct Job {
  Circuit circuit;
  Program program;
  unsigned cycles, leave_from;
  Numbers numbers;
  Label offset, start, seed;
  bool make, colours;
  std::vector<Label> inputs;

  Job(std::mt19937_64& random, unsigned of_cycle, unsigned gates, unsigned cycles, bool make, bool colours, bool batch)
      : circuit(random, ROWS, 1 + static_cast<unsigned>(random() % 9), of_cycle, gates),
        program(circuit),
        cycles(cycles),
        leave_from(static_cast<unsigned>(random() % (cycles + 1))),
        numbers{random() & 0xffffffffff, static_cast<unsigned>(random() % 60000), batch},
        offset(wide(random) | 1),
        start(wide(random)),
        seed(wide(random)),
        make(make),
        colours(colours) {
    for (unsigned k = 0; k < circuit.of_run + cycles * of_cycle; k++) inputs.push_back(make ? aes(seed, k) : wide(random));
  }

  static Label wide(std::mt19937_64& random) { return static_cast<Label>(random()) << 64 | random(); }

  void parameters(Card& card) const {
    const std::pair<uint32_t, uint32_t> all[] = {
        {GARBLE_INSTANCE, numbers.instance},
        {GARBLE_FIRST, static_cast<uint32_t>(numbers.first)},
        {GARBLE_FIRST + 4, static_cast<uint32_t>(numbers.first >> 32)},
        {GARBLE_STEP_FIRST, numbers.batch ? 0 : circuit.products},
        {GARBLE_STEP_INSTANCE, numbers.batch},
        {GARBLE_PROLOGUE, program.prologue},
        {GARBLE_KERNEL, circuit.kernel},
        {GARBLE_CYCLES, cycles},
        {GARBLE_REPEATS, cycles},
        {GARBLE_LAST, circuit.kernel},
        {GARBLE_LEAVE_FROM, leave_from},
        {GARBLE_LEAVES, static_cast<uint32_t>(circuit.leaves.size())},
        {GARBLE_LINES, circuit.lines()},
        {GARBLE_LAST_KEEP, circuit.last_keep()},
        {GARBLE_INPUTS_OF_RUN, circuit.of_run},
        {GARBLE_INPUTS_OF_CYCLE, circuit.of_cycle},
        {GARBLE_INPUT_RING, Program::Ring},
        {GARBLE_INPUT_STAGES, 2},
        {GARBLE_MODE, (make ? GARBLE_MODE_MAKE_LABELS : 0) | (colours ? GARBLE_MODE_COLOURS : 0)},
    };
    for (auto [address, value] : all) {
      expect(card.write(address, value), "a parameter is written");
      expect(card.read(address) == value, "a parameter is read as it was written");
    }
  }

  void secrets(Card& card) const {
    card.secret(GARBLE_OFFSET, offset);
    card.secret(GARBLE_HASH_START, start);
    if (make) card.secret(GARBLE_SEED, seed);
  }

  void begin(Card& card) const {
    card.load(program);
    parameters(card);
    secrets(card);
    launch(card);
  }

  void launch(Card& card) const {
    card.tables.clear();
    card.labels.clear();
    card.inputs.clear();
    if (!make) beats(card.inputs);
    card.inputs_sent = 0;
    card.write(GARBLE_CONTROL, GARBLE_CONTROL_START);
  }

  // Labels in beats, those of the run and of each netlist cycle in beats of their own, filled up with what nobody may take for a label.
  void beats(std::vector<std::array<Label, LABELS_IN>>& to) const {
    for (size_t from = 0, count = circuit.of_run; from < inputs.size(); from += count, count = circuit.of_cycle)
      for (size_t k = 0; k < count; k += LABELS_IN) {
        to.emplace_back();
        for (size_t l = 0; l < LABELS_IN; l++) to.back()[l] = k + l < count ? inputs[from + k + l] : ~inputs[from];
      }
  }

  // Beats of tables of a netlist cycle.
  size_t table_beats() const {
    if (circuit.products == 0) return 0;
    return (circuit.lines() - 1) * (ROWS / TABLES_OUT) + (circuit.last_line() + TABLES_OUT - 1) / TABLES_OUT;
  }

  // Halves of everything that must not stay.
  std::unordered_set<uint64_t> halves() const {
    std::unordered_set<uint64_t> all;
    auto add = [&](Label x) {
      all.insert(low(x));
      all.insert(high(x));
    };
    add(offset);
    if (make) add(seed);
    Garbled garbled(circuit, cycles, numbers, offset, start, inputs);
    for (const auto& labels : {inputs, garbled.all})
      for (Label x : labels) {
        add(x);
        add(x ^ offset);
      }
    all.erase(0);
    all.erase(low(~Label{0}));
    return all;
  }

  // What came, against the garbler in software and against the circuit in the clear.
  void compare(Card& card, std::mt19937_64& random) const {
    expect(card.read(GARBLE_ERROR) == 0, "a good run has no error");
    expect(card.read(GARBLE_STATUS) == GARBLE_STATUS_DONE, "a run that has ended is done");
    const Garbled garbled(circuit, cycles, numbers, offset, start, inputs);
    std::vector<Table> tables;
    for (size_t line = 0; line < card.tables.size(); line++) {
      const Beat& beat = card.tables[line];
      expect(beat.last == (line + 1 == card.tables.size()), "the last beat has TLAST, and no other");
      for (unsigned r = 0; r < TABLES_OUT; r++)
        if (beat.keep >> r & 1) tables.push_back({label(&beat.data[8 * r]), label(&beat.data[8 * r + 4])});
    }
    expect(make || card.inputs_sent == card.inputs.size(), "all labels of inputs are taken");
    expect(card.tables.size() == cycles * table_beats() && tables.size() == garbled.tables.size(), "there are all tables");
    for (size_t k = 0; k < tables.size(); k++)
      expect(tables[k].garbler == garbled.tables[k].garbler && tables[k].evaluator == garbled.tables[k].evaluator,
             "table " + std::to_string(k) + " is right");
    std::vector<Label> made, left, all_left(garbled.leaves);
    bool made_ends = false, left_ends = false;
    for (const Beat& beat : card.labels) {
      expect(!(beat.dest ? left_ends : made_ends), "nothing comes after TLAST");
      (beat.dest ? left_ends : made_ends) = beat.last;
      (beat.dest ? left : made).push_back(label(beat.data.data()));
    }
    if (make) {
      expect(made == inputs && made_ends, "labels that were made leave, in their order");
      expect(card.read64(GARBLE_LABELS_MADE) == inputs.size(), "labels that were made are counted");
    } else {
      expect(made.empty(), "labels of the host do not come back");
    }
    std::vector<Label> expected(garbled.leaves.begin() + static_cast<long>(leave_from * circuit.leaves.size()), garbled.leaves.end());
    if (colours) {
      std::vector<Label> packed((expected.size() + 127) / 128, 0);
      for (size_t k = 0; k < expected.size(); k++) packed[k / 128] |= (expected[k] & 1) << (k % 128);
      expected = packed;
    } else {
      std::copy(left.begin(), left.end(), all_left.begin() + static_cast<long>(leave_from * circuit.leaves.size()));
    }
    expect(left == expected && left_ends == !expected.empty(), "labels or colours that leave are right");
    expect(evaluate(random, circuit, cycles, numbers, offset, start, inputs, tables, all_left) == 0, "tables evaluate to what the circuit gives");
  }

  uint64_t least() const { return program.prologue + uint64_t{cycles} * circuit.kernel; }
};

static Job job(std::mt19937_64& random, bool make) {
  const bool batch = random() & 1, colours = random() % 3 == 0;
  const unsigned of_cycle = static_cast<unsigned>(random() % 8), gates = 1 + static_cast<unsigned>(random() % 150);
  return Job(random, of_cycle, gates, 1 + static_cast<unsigned>(random() % 9), make, colours, batch);
}

static void registers(Card& card) {
  bool known = true;
  expect(card.read(GARBLE_IDENT) == GARBLE_IDENT_VALUE && card.read(GARBLE_VERSION) == GARBLE_VERSION_VALUE, "the card says what it is");
  expect(card.read(GARBLE_ROWS) == ROWS, "the card says its rows");
  expect(card.read(GARBLE_LABELS_IN) == LABELS_IN && card.read(GARBLE_TABLES_OUT) == TABLES_OUT, "the card says its beats");
  expect(card.read(GARBLE_XOR_LATENCY) == 1 + LABEL_REG && card.read(GARBLE_AND_LATENCY) == 10 + LABEL_REG, "the card says its latencies");
  expect(card.read(GARBLE_BUNDLE_BITS) == ROWS * GARBLE_GATE_BITS + GARBLE_LEAVE_BITS + 2 * GARBLE_NUMBER_BITS, "the card says its bundles");
  expect(card.read(0x1fc, &known) == 0 && !known, "an address that nothing has is answered with an error");
  expect(!card.write(GARBLE_IDENT, 1) && !card.write(0x1fc, 1), "what cannot be written is answered with an error");
  expect(!card.write(GARBLE_CYCLES, 5, 3) && card.read(GARBLE_CYCLES) == 0, "half a word is not written");
  for (uint32_t address : {GARBLE_OFFSET, GARBLE_HASH_START, GARBLE_SEED})
    for (uint32_t word = 0; word < 4; word++) {
      card.write(address + 4 * word, 0xffffffff);
      expect(card.read(address + 4 * word, &known) == 0 && !known, "a secret is not read");
    }
}

// Every parameter that stands against a run, one at a time, and the bit that says so.
static void refused(Card& card, std::mt19937_64& random) {
  const Job good(random, 3, 40, 4, true, false, false);
  card.write(GARBLE_CONTROL, GARBLE_CONTROL_RESET);
  card.dropped();
  card.until_idle();
  card.write(GARBLE_INTERRUPT, 3);
  card.write(GARBLE_INTERRUPT_ENABLE, 2);
  good.parameters(card);
  auto try_it = [&](unsigned bit, const char* what) {
    card.tables.clear();
    card.labels.clear();
    card.write(GARBLE_CONTROL, GARBLE_CONTROL_START);
    card.until_idle();
    const unsigned error = card.read(GARBLE_ERROR);
    expect(error == bit, std::string("an error says: ") + what + ", but it is " + std::to_string(error));
    expect(card.top.irq_o, "an error interrupts");
    expect(card.tables.empty() && card.labels.empty() && !(card.read(GARBLE_STATUS) & GARBLE_STATUS_DONE), "a refused run is none");
    card.write(GARBLE_ERROR, bit);
    card.write(GARBLE_INTERRUPT, 3);
    expect(card.read(GARBLE_ERROR) == 0 && !card.top.irq_o, "an error is cleared");
  };
  try_it(GARBLE_ERROR_PROGRAM | GARBLE_ERROR_SECRETS, "nothing has come");
  card.load(good.program);
  expect(card.read(GARBLE_PROGRAM_LENGTH) == good.program.bundles.size(), "a program is as long as it is");
  try_it(GARBLE_ERROR_SECRETS, "no secrets");
  good.secrets(card);
  struct {
    uint32_t address, value, bit;
    const char* what;
  } wrong[] = {
      {GARBLE_KERNEL, 0, GARBLE_ERROR_PROGRAM, "no kernel"},
      {GARBLE_KERNEL, 0x10000 | good.circuit.kernel, GARBLE_ERROR_PROGRAM, "more kernel than program"},
      {GARBLE_PROLOGUE, good.program.prologue + 1, GARBLE_ERROR_PROGRAM, "more prologue than program"},
      {GARBLE_LAST, 0, GARBLE_ERROR_PROGRAM, "no last repetition"},
      {GARBLE_LAST, good.circuit.kernel + 1, GARBLE_ERROR_PROGRAM, "a last repetition longer than the kernel"},
      {GARBLE_CYCLES, 0, GARBLE_ERROR_CYCLES, "no cycles"},
      {GARBLE_REPEATS, 3, GARBLE_ERROR_CYCLES, "fewer repetitions than cycles"},
      {GARBLE_REPEATS, 4 + 127, GARBLE_ERROR_CYCLES, "too many stages"},
      {GARBLE_LEAVE_FROM, 5, GARBLE_ERROR_CYCLES, "nothing to leave from"},
      {GARBLE_INPUTS_OF_RUN, 0x3fff, GARBLE_ERROR_INPUTS, "more inputs than the bank has"},
      {GARBLE_INPUTS_OF_CYCLE, 0x3fff, GARBLE_ERROR_INPUTS, "more rings than the bank has"},
      {GARBLE_FIRST + 4, 0x7fff, 0, ""},
      {GARBLE_LINES, 0, GARBLE_ERROR_LINES, "a row kept of no line"},
      {GARBLE_LAST_KEEP, 0, GARBLE_ERROR_LINES, "no row kept"},
      {GARBLE_LAST_KEEP, 1u << ROWS, GARBLE_ERROR_LINES, "a row that is none"},
  };
  for (const auto& one : wrong) {
    if (one.bit == 0) continue;
    const uint32_t before = card.read(one.address);
    card.write(one.address, one.value);
    try_it(one.bit, one.what);
    card.write(one.address, before);
  }
  card.write(GARBLE_FIRST, 0xffffffff);
  card.write(GARBLE_FIRST + 4, 0x7fff);
  try_it(GARBLE_ERROR_NUMBERS, "products beyond 47 bits");
  good.parameters(card);
  card.write(GARBLE_INSTANCE, 0xffff);
  card.write(GARBLE_STEP_INSTANCE, 1);
  try_it(GARBLE_ERROR_NUMBERS, "instances beyond 16 bits");
  good.parameters(card);
  card.write(GARBLE_OFFSET, static_cast<uint32_t>(good.offset) & ~1u);
  try_it(GARBLE_ERROR_SECRETS, "an offset without its lowest bit");
  good.secrets(card);

  // Programs: too long, ended within a bundle, of another core.
  auto spoil = [&](const Program& program, unsigned bit, const char* what, bool cut) {
    card.program.clear();
    card.program_sent = 0;
    for (const Bundle& bundle : program.bundles)
      for (size_t k = 0; k < bundle.words.size(); k += 4)
        card.program.push_back({{bundle.words.begin() + static_cast<long>(k), bundle.words.begin() + static_cast<long>(k + 4)}});
    if (cut) card.program.pop_back();
    card.program.back().last = true;
    while (card.program_sent < card.program.size()) card.step();
    for (int k = 0; k < 3; k++) card.step();
    expect(card.read(GARBLE_ERROR) == bit && card.read(GARBLE_PROGRAM_LENGTH) == 0, std::string("a program is refused: ") + what);
    card.write(GARBLE_ERROR, bit);
    try_it(GARBLE_ERROR_PROGRAM, "a program was refused");
  };
  Program program = good.program;
  spoil(program, GARBLE_ERROR_STREAM, "it ends within a bundle", true);
  const uint32_t most = card.read(GARBLE_BUNDLES);
  while (program.bundles.size() <= most) program.bundles.push_back(program.bundles[0]);
  spoil(program, GARBLE_ERROR_STREAM, "it is too long", false);
  const unsigned gate = 2 * GARBLE_NUMBER_BITS + GARBLE_LEAVE_BITS, last = gate + (ROWS - 1) * GARBLE_GATE_BITS;
  struct {
    unsigned at, bits;
    uint64_t value;
    const char* what;
  } foreign[] = {
      {gate + GARBLE_GATE_C_AT, GARBLE_SLOT_BITS, 1u << (GARBLE_SLOT_BITS - 1), "a result has a slot that is none"},
      {last + GARBLE_GATE_A_AT, GARBLE_SLOT_BITS, 1u << (GARBLE_SLOT_BITS - 1), "an operand has a slot that is none"},
      {last + GARBLE_GATE_B_AT + GARBLE_OPERAND_ROW_AT, GARBLE_ROW_BITS, ROWS, "an operand has a row that is none"},
      {last + GARBLE_GATE_A_AT + GARBLE_OPERAND_ROW_AT, GARBLE_ROW_BITS + 2, 2 << GARBLE_ROW_BITS | LABELS_IN, "an input has a row that is none"},
      {last + GARBLE_GATE_A_AT + GARBLE_OPERAND_PLACE_AT, GARBLE_OPERAND_BITS,
       2 << GARBLE_OPERAND_BANK_AT | card.read(GARBLE_INPUT_LABELS) / LABELS_IN, "an input has a slot that is none"},
      {gate + GARBLE_GATE_STAGE_AT, GARBLE_STAGE_BITS, 127, "a stage is too late"},
  };
  for (const auto& one : foreign) {
    if (one.bits == GARBLE_ROW_BITS && ROWS == 16) continue;
    if (one.bits == GARBLE_ROW_BITS + 2 && LABELS_IN == 16) continue;
    Program other = good.program;
    Bundle bundle(ROWS);
    bundle.put((one.at >= last ? last : gate) + GARBLE_GATE_VALID_AT, 1, 1);
    bundle.put(one.at, one.value, one.bits);
    other.bundles.push_back(bundle);
    spoil(other, GARBLE_ERROR_GATE, one.what, false);
  }
  Program numbered = good.program;
  Bundle bundle(ROWS);
  bundle.put(gate + GARBLE_GATE_VALID_AT, 1, 1);
  bundle.put(gate + GARBLE_GATE_IS_AND_AT, 1, 1);
  bundle.put(gate + GARBLE_GATE_NUMBER_AT, 0x3fff, GARBLE_NUMBER_BITS);
  numbered.bundles.push_back(bundle);
  card.load(numbered);
  try_it(GARBLE_ERROR_LINES, "a product beyond the lines");

  // Busy: nothing is written, nothing starts twice.
  good.begin(card);
  expect(!card.write(GARBLE_CYCLES, 1) && !card.write(GARBLE_SEED, 1), "a busy card does not take parameters and secrets");
  expect(card.write(GARBLE_CONTROL, GARBLE_CONTROL_START), "a busy card takes what makes it do something");
  expect(card.read(GARBLE_ERROR) == GARBLE_ERROR_BUSY, "a busy card says so");
  card.write(GARBLE_ERROR, GARBLE_ERROR_BUSY);
  card.until_idle();
  good.compare(card, random);
}

// A scrub or a reset at any time of a run leaves nothing, and the next run is right.
static void wiped(Card& card, std::mt19937_64& random, bool make, bool by_pin) {
  const Job lost = Job(random, 4, 80, 8, make, false, false);
  lost.begin(card);
  const uint64_t ahead = random() % (2 * lost.least());
  for (uint64_t k = 0; k < ahead; k++) card.step();
  const auto halves = lost.halves();
  const unsigned before = card.found(halves);
  expect(before > 0, "secrets are found where they are");
  if (by_pin) {
    card.quiet();
    card.top.rst_ni = 0;
    card.top.s_axil_awvalid_i = card.top.s_axil_wvalid_i = card.top.s_axil_arvalid_i = 0;
    card.step();
    for (int k = 0; k < 2; k++) {
      card.step();
      expect(!card.top.m_axis_tables_tvalid_o && !card.top.m_axis_labels_tvalid_o && !card.top.s_axil_bvalid_o && !card.top.s_axil_rvalid_o,
             "nothing is valid in reset");
      expect(!card.top.s_axis_labels_tready_o && !card.top.s_axis_program_tready_o, "nothing is taken in reset");
    }
    card.top.rst_ni = 1;
  } else {
    card.quiet();
    card.top.s_axil_bready_i = 1;
    card.top.s_axil_awaddr_i = GARBLE_CONTROL;
    card.top.s_axil_wdata_i = random() & 1 ? GARBLE_CONTROL_SCRUB : GARBLE_CONTROL_RESET;
    card.top.s_axil_wstrb_i = 15;
    card.top.s_axil_awvalid_i = card.top.s_axil_wvalid_i = 1;
    card.dropped();
    card.step();
    card.top.s_axil_awvalid_i = card.top.s_axil_wvalid_i = card.top.s_axil_wdata_i = 0;
    card.dropped();
    card.step();
    card.dropped();
    card.step();
  }
  card.until_idle();
  const unsigned after = card.found(halves);
  expect(after == 0, "no label, offset or seed is left: " + std::to_string(after) + " of " + std::to_string(before));
  expect(!(card.read(GARBLE_STATUS) & GARBLE_STATUS_DONE), "a run that was ended is not done");
  card.write(GARBLE_ERROR, 0xffffffff);
  card.write(GARBLE_CONTROL, GARBLE_CONTROL_START);
  card.until_idle();
  expect(card.read(GARBLE_ERROR) & GARBLE_ERROR_SECRETS, "after a scrub nothing runs without new secrets");
  card.write(GARBLE_ERROR, 0xffffffff);
  const Job next = job(random, make);
  next.begin(card);
  card.until_idle();
  next.compare(card, random);
}

// The same circuit with other secrets and labels takes as many cycles, waits as long, and so does every output.
static void same_cycles(Card& card, std::mt19937_64& random, unsigned stalls) {
  Job one = Job(random, 4, 70, 7, random() & 1, false, false);
  uint64_t cycles[2], waits[2], moments[2];
  for (int k = 0; k < 2; k++) {
    one.offset = Job::wide(random) | 1;
    one.start = Job::wide(random);
    one.seed = Job::wide(random);
    for (size_t n = 0; n < one.inputs.size(); n++) one.inputs[n] = one.make ? aes(one.seed, n) : Job::wide(random);
    card.stalls = 0;
    card.write(GARBLE_CONTROL, GARBLE_CONTROL_SCRUB);
    card.until_idle();
    one.begin(card);
    const uint64_t begin = card.cycles;
    card.stalls = stalls;
    card.reseed(17);
    while (!(card.read(GARBLE_STATUS) & GARBLE_STATUS_DONE)) expect(card.cycles < begin + 1000000, "a run comes to an end");
    moments[k] = card.cycles - begin;
    one.compare(card, random);
    cycles[k] = card.read64(GARBLE_RUN_CYCLES);
    waits[k] = card.read64(GARBLE_WAIT_INPUTS) + card.read64(GARBLE_WAIT_TABLES) + card.read64(GARBLE_WAIT_LEAVES);
  }
  expect(cycles[0] == cycles[1] && waits[0] == waits[1] && moments[0] == moments[1], "cycles do not depend on secrets");
}

int main(int argc, char** argv) {
  seed_of_all = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
  const unsigned runs = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 30;
  std::mt19937_64 random(seed_of_all);
  Label key = 0, plain = 0, cipher = 0; // FIPS 197, C.1
  const unsigned char expected[] = {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a};
  for (int k = 15; k >= 0; k--) {
    key = key << 8 | static_cast<Label>(k);
    plain = plain << 8 | static_cast<Label>(17 * k);
    cipher = cipher << 8 | expected[k];
  }
  expect(aes(key, plain) == cipher, "the software's AES is right");

  auto card = std::make_unique<Card>(random());
  card->until_idle();
  registers(*card);
  uint64_t all_cycles = 0, all_waits[3] = {0, 0, 0}, all_products = 0;
  for (unsigned run = 0; run < runs; run++) {
    card->stalls = run % 3 == 0 ? 0 : run % 7 == 1 ? 7 : 1 + static_cast<unsigned>(random() % 6);
    card->slow_tables = run % 7 == 3;
    // Of every fifth run most inputs are never read: their labels come all the same.
    Job next = run % 5 ? job(random, run % 2 == 1) : Job(random, 7, 1 + run % 3, 9, run % 2 == 1, false, false);
    card->write(GARBLE_INTERRUPT_ENABLE, 1);
    card->write(GARBLE_INTERRUPT, 3);
    expect(!card->top.irq_o, "nothing interrupts that is cleared");
    next.begin(*card);
    card->until_idle();
    expect(card->top.irq_o, "the end of a run interrupts");
    next.compare(*card, random);
    const uint64_t cycles = card->read64(GARBLE_RUN_CYCLES);
    expect(cycles >= next.least(), "a run takes the cycles of its program");
    all_cycles += cycles;
    all_products += next.numbers.batch ? 0 : next.cycles * next.circuit.products;
    for (unsigned k = 0; k < 3; k++) all_waits[k] += card->read64(GARBLE_WAIT_INPUTS + 8 * k);
    if (next.make && run % 4 == 1) { // again from the same seed: the labels go on where they were
      for (size_t k = 0; k < next.inputs.size(); k++) next.inputs[k] = aes(next.seed, static_cast<Label>(next.inputs.size() + k));
      next.launch(*card);
      card->until_idle();
      expect(card->read64(GARBLE_LABELS_MADE) == 2 * next.inputs.size(), "labels are counted over runs");
      card->labels.resize(card->labels.size());
      std::vector<Label> made;
      for (const Beat& beat : card->labels)
        if (!beat.dest) made.push_back(label(beat.data.data()));
      expect(made == next.inputs, "no label is made twice from a seed");
    }
  }
  if (runs >= 30) expect(all_waits[0] && all_waits[1] && all_waits[2], "every wait was seen: " + std::to_string(all_waits[0]) + ", " + std::to_string(all_waits[1]) + ", " + std::to_string(all_waits[2]));
  card->slow_tables = false;
  card->stalls = 2;
  refused(*card, random);
  for (unsigned k = 0; k < std::max(4u, runs / 4); k++) {
    card->stalls = static_cast<unsigned>(random() % 5);
    wiped(*card, random, k & 1, k & 2);
  }
  for (unsigned stalls : {0u, 3u}) same_cycles(*card, random, stalls);
  std::printf("rows %d, %d labels in, %d tables out, %d registers, seed %llu: %u runs of %llu cycles, of which %llu waited for inputs, %llu for tables, %llu for leaves: right\n", ROWS, LABELS_IN,
              TABLES_OUT, LABEL_REG,
              static_cast<unsigned long long>(seed_of_all), runs, static_cast<unsigned long long>(all_cycles),
              static_cast<unsigned long long>(all_waits[0]), static_cast<unsigned long long>(all_waits[1]),
              static_cast<unsigned long long>(all_waits[2]));
  return 0;
}
