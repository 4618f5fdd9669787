// What one row has to do in a cycle: its gate of the bundle, in this repetition of the kernel.
//
// A gate of stage s belongs to netlist cycle k - s in repetition k, and does nothing where there is no such cycle. Its product has the
// number of the first product of that cycle plus its own; the table of product `number` of a cycle goes to row `number` mod Rows, line
// `number` / Rows of that cycle.
//
// Latency:  none.

module garble_decode #(
  parameter  int unsigned Rows   = 2, // a power of two
  localparam int unsigned RowsW  = $clog2(Rows),
  localparam int unsigned CycleW = garble_pkg::CycleW,
  localparam int unsigned SlotW  = garble_pkg::SlotW
) (
  /* verilator lint_off UNUSEDSIGNAL */ // the operands' banks and the inversions go to the rows as they are
  input  garble_pkg::gate_t    gate_i,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic                 prologue_i,
  input  logic [CycleW-1:0]    repetition_i,
  input  logic [CycleW-1:0]    cycles_i, // netlist cycles of the run

  // Of the netlist cycle that is named: its first product, and its first line of tables
  output logic [garble_pkg::StageW-1:0] stage_o,
  input  garble_pkg::product_t first_i,
  input  logic [31:0]          line_i,

  output logic                 xor_o,
  output logic                 and_o,
  output logic [SlotW-1:0]     slot_a_o,
  output logic [SlotW-1:0]     slot_b_o,
  output logic [SlotW-1:0]     slot_c_o,
  output garble_pkg::product_t product_o,
  output logic [31:0]          line_o
);

  logic              active;
  logic [CycleW-1:0] cycle;

  assign cycle     = repetition_i - CycleW'(gate_i.stage);
  assign active    = gate_i.valid
                   && (prologue_i || (CycleW'(gate_i.stage) <= repetition_i && cycle < cycles_i));
  assign stage_o   = gate_i.stage;
  assign xor_o     = active && (!gate_i.is_and || prologue_i);
  assign and_o     = active && gate_i.is_and;
  assign slot_a_o  = garble_pkg::slot_of(gate_i.a.place, repetition_i[6:0]);
  assign slot_b_o  = garble_pkg::slot_of(gate_i.b.place, repetition_i[6:0]);
  assign slot_c_o  = garble_pkg::slot_of(gate_i.c, repetition_i[6:0]);
  assign product_o = first_i + 47'(gate_i.number);
  assign line_o    = line_i + (32'(gate_i.number) >> RowsW);

endmodule
