// Types of the garbler.
package garble_pkg;

  // A label of 128 bits; bit 0 is its colour. The offset is a label whose bit 0 is 1.
  typedef logic [127:0] label_t;

  // The tweak of a hash: 2g of the first operand of gate g, 2g + 1 of the second.
  typedef logic [63:0] tweak_t;

  // Number of a product in a run: over all netlist cycles.
  typedef logic [46:0] product_t;

  // Two halves of a table, as they are sent: T_G, then T_E.
  typedef struct packed {
    label_t evaluator; // T_E, the upper half
    label_t garbler;   // T_G
  } table_t;

  // Widths of the fields of a program: the most that any core has.
  parameter int unsigned SlotW    = 13; // of a bank
  parameter int unsigned RowW     = 4;
  parameter int unsigned RingW    = 3;  // logarithm of a ring's slots
  parameter int unsigned StageW   = 7;
  parameter int unsigned NumberW  = 14; // products, inputs of a netlist cycle
  parameter int unsigned CycleW   = 32; // netlist cycles

  // Where a label is read.
  parameter logic [1:0] BankXor   = 2'd0; // what a row's XORs write
  parameter logic [1:0] BankAnd   = 2'd1; // what a row's ANDs write
  parameter logic [1:0] BankInput = 2'd2;
  parameter logic [1:0] BankZero  = 2'd3; // the label 0, which is that of the constant 0

  // A slot; or one of a ring of 2^ring slots, which the values of successive netlist cycles take in turn: its low bits are then counted
  // up by the repetitions of the kernel.
  typedef struct packed {
    logic [RingW-1:0] ring;
    logic [SlotW-1:0] slot;
  } place_t;

  typedef struct packed {
    logic [1:0]      bank;
    logic [RowW-1:0] row;
    place_t          place;
  } operand_t;

  // What one row starts in one cycle.
  typedef struct packed {
    logic               valid;
    logic               is_and;
    logic               not_a; // of the operands of an AND
    logic               not_b;
    logic               not_c;
    operand_t           a;
    operand_t           b;
    place_t             c;
    logic [StageW-1:0]  stage;  // how many repetitions of the kernel its netlist cycle began earlier
    logic [NumberW-1:0] number; // of a product in its netlist cycle
  } gate_t;

  // A label that leaves.
  typedef struct packed {
    logic              valid;
    operand_t          from;
    logic [StageW-1:0] stage;
  } leave_t;

  // Bits of these, for those who put them side by side.
  parameter int unsigned PlaceW   = RingW + SlotW;
  parameter int unsigned OperandW = 2 + RowW + PlaceW;
  parameter int unsigned GateW    = 5 + 2 * OperandW + PlaceW + StageW + NumberW;
  parameter int unsigned LeaveW   = 1 + OperandW + StageW;

  // sigma(hi || lo) = (hi + lo) || hi, linear, and a + sigma(a) is one too.
  function automatic label_t sigma(input label_t x);
    sigma = {x[127:64] ^ x[63:0], x[127:64]};
  endfunction

  // The slot of a place in a repetition of the kernel.
  function automatic logic [SlotW-1:0] slot_of(input place_t place, input logic [6:0] repetition);
    logic [6:0] low, mask;
    mask    = ~(7'h7f << place.ring);
    low     = ((place.slot[6:0] + repetition) & mask) | (place.slot[6:0] & ~mask);
    slot_of = {place.slot[SlotW-1:7], low};
  endfunction

endpackage
