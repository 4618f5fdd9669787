// A garbling card in simulation, behind functions of C: registers, streams, and time that passes while they move.
//
// MODEL is the class that Verilator made, HEADER its header, NAME what the functions begin with, LABELS_IN labels
// and TABLES_OUT tables in a beat.

#include HEADER
#include "model.h"
#include "verilated.h"

#include <cstdint>
#include <cstring>
#include <memory>

extern "C" {

// Memory that a stream reads or writes, of which `at` bytes have moved. Without memory nothing moves.
struct Segment {
  uint8_t* data;
  size_t len, at;
  bool last;   // to the card: the packet ends with the segment; from it: the packet has ended
  bool ended;  // no more moves in this segment
};

struct Ports {
  Segment program, labels, tables, made, leaves;
};

}  // extern "C"

namespace {

constexpr size_t BEAT = 16;
constexpr size_t LABELS = BEAT * LABELS_IN;
constexpr size_t TABLE = 32;
constexpr size_t TABLES = TABLE * TABLES_OUT;

bool has(const Segment& segment, size_t bytes) {
  return segment.data && !segment.ended && segment.len - segment.at >= bytes;
}

struct Card {
  VerilatedContext context;
  std::unique_ptr<MODEL> card;
  Stalls stalls;
  bool program_offered = false, labels_offered = false;  // offered, and not taken

  void low() {
    card->clk_i = 0;
    card->eval();
  }

  void high() {
    card->clk_i = 1;
    card->eval();
  }

  void rest() {
    card->s_axil_awvalid_i = card->s_axil_wvalid_i = card->s_axil_bready_i = 0;
    card->s_axil_arvalid_i = card->s_axil_rready_i = 0;
    card->s_axis_program_tvalid_i = card->s_axis_labels_tvalid_i = 0;
    card->m_axis_tables_tready_i = card->m_axis_labels_tready_i = 0;
  }

  // A segment is over when nothing more of it can move.
  static bool over(Segment& segment, size_t beat) {
    if (segment.data && segment.len - segment.at < beat) segment.ended = true;
    return segment.data && segment.ended;
  }
};

}  // namespace

extern "C" {

void* FUNCTION(new)(uint64_t seed, uint32_t rate) {
  auto* at = new Card;
  at->card = std::make_unique<MODEL>(&at->context);
  at->stalls = {seed, rate};
  at->rest();
  at->card->rst_ni = 0;
  for (int k = 0; k < 4; k++) at->low(), at->high();
  at->card->rst_ni = 1;
  return at;
}

void FUNCTION(free)(void* at) {
  auto* card = static_cast<Card*>(at);
  // A model that is destroyed asks the context of the thread, which is that of whatever model was made last, and may be gone.
  Verilated::threadContextp(&card->context);
  delete card;
}

void FUNCTION(write)(void* at, uint32_t address, uint32_t value) {
  auto& self = *static_cast<Card*>(at);
  auto& card = *self.card;
  self.rest();
  card.s_axil_awaddr_i = address;
  card.s_axil_wdata_i = value;
  card.s_axil_wstrb_i = 0xf;
  card.s_axil_awvalid_i = card.s_axil_wvalid_i = card.s_axil_bready_i = 1;
  for (bool done = false; !done;) {
    self.low();
    const bool address_taken = card.s_axil_awready_o, data_taken = card.s_axil_wready_o;
    done = card.s_axil_bvalid_o;
    self.high();
    if (address_taken) card.s_axil_awvalid_i = 0;
    if (data_taken) card.s_axil_wvalid_i = 0;
  }
  card.s_axil_wdata_i = 0;
  self.rest();
}

uint32_t FUNCTION(read)(void* at, uint32_t address) {
  auto& self = *static_cast<Card*>(at);
  auto& card = *self.card;
  self.rest();
  card.s_axil_araddr_i = address;
  card.s_axil_arvalid_i = card.s_axil_rready_i = 1;
  uint32_t value = 0;
  for (bool done = false; !done;) {
    self.low();
    const bool taken = card.s_axil_arready_o;
    done = card.s_axil_rvalid_o;
    value = card.s_axil_rdata_o;
    self.high();
    if (taken) card.s_axil_arvalid_i = 0;
  }
  self.rest();
  return value;
}

// Lets time pass until a segment is over, the interrupt is high, or `most` cycles have passed. Says whether the interrupt is high.
bool FUNCTION(step)(void* at, Ports* ports, uint64_t most) {
  auto& self = *static_cast<Card*>(at);
  auto& card = *self.card;
  bool high = false;
  for (uint64_t cycle = 0; cycle < most && !high; cycle++) {
    const bool program = has(ports->program, BEAT) && (self.program_offered || !self.stalls.next());
    const bool labels = has(ports->labels, LABELS) && (self.labels_offered || !self.stalls.next());
    card.s_axis_program_tvalid_i = self.program_offered = program;
    card.s_axis_labels_tvalid_i = self.labels_offered = labels;
    if (program) {
      memcpy(&card.s_axis_program_tdata_i[0], ports->program.data + ports->program.at, BEAT);
      card.s_axis_program_tlast_i = ports->program.last && ports->program.at + BEAT == ports->program.len;
    }
    if (labels) memcpy(&card.s_axis_labels_tdata_i[0], ports->labels.data + ports->labels.at, LABELS);
    card.m_axis_tables_tready_i = has(ports->tables, TABLES) && !self.stalls.next();
    card.m_axis_labels_tready_i = 0;
    self.low();
    Segment& to = card.m_axis_labels_tdest_o ? ports->leaves : ports->made;
    if (has(to, BEAT) && !self.stalls.next()) {
      card.m_axis_labels_tready_i = 1;
      card.eval();
    }
    if (program && card.s_axis_program_tready_o) {
      ports->program.at += BEAT;
      self.program_offered = false;
    }
    if (labels && card.s_axis_labels_tready_o) {
      ports->labels.at += LABELS;
      self.labels_offered = false;
    }
    if (card.m_axis_tables_tvalid_o && card.m_axis_tables_tready_i) {
      const auto* keep = reinterpret_cast<const uint32_t*>(&card.m_axis_tables_tkeep_o);
      const auto* data = reinterpret_cast<const uint8_t*>(&card.m_axis_tables_tdata_o);
      for (int k = 0; k < TABLES_OUT; k++) {
        if (keep[k] == 0) continue;
        memcpy(ports->tables.data + ports->tables.at, data + TABLE * k, TABLE);
        ports->tables.at += TABLE;
      }
      if (card.m_axis_tables_tlast_o) ports->tables.last = ports->tables.ended = true;
    }
    if (card.m_axis_labels_tvalid_o && card.m_axis_labels_tready_i) {
      memcpy(to.data + to.at, &card.m_axis_labels_tdata_o[0], BEAT);
      to.at += BEAT;
      if (card.m_axis_labels_tlast_o) to.last = to.ended = true;
    }
    high = card.irq_o;
    self.high();
    bool over = Card::over(ports->program, BEAT);
    over |= Card::over(ports->labels, LABELS);
    over |= Card::over(ports->tables, TABLES);
    over |= Card::over(ports->made, BEAT);
    over |= Card::over(ports->leaves, BEAT);
    if (over) break;
  }
  // What was offered and not taken is offered again: nothing that is on its way is taken back.
  return high;
}

}  // extern "C"
