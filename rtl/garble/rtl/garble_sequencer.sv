// Fetches the bundles of a program: those of the prologue once, then those of the kernel as often as it repeats, one per cycle.
//
// A netlist cycle is one pass through the kernel, or overlaps several: gates that began s repetitions earlier are of stage s. The
// kernel repeats as often as there are netlist cycles, and as often as there are stages beyond the first.
//
// Latency:  a bundle two cycles after start_i; then one per cycle in which next_i is high.

module garble_sequencer #(
  parameter  int unsigned Width  = 1,
  parameter  int unsigned Depth  = 4096, // bundles
  localparam int unsigned AddrW  = $clog2(Depth),
  localparam int unsigned CycleW = garble_pkg::CycleW
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // The program, written while nothing runs
  input  logic              w_en_i,
  input  logic [AddrW-1:0]  w_addr_i,
  input  logic [Width-1:0]  w_data_i,

  // A run: how much of the program is prologue and kernel, in bundles, and how often the kernel repeats, at least once
  input  logic              start_i,
  input  logic [AddrW:0]    prologue_i,
  input  logic [AddrW:0]    kernel_i, // at least 1
  input  logic [CycleW-1:0] repeats_i,
  input  logic [AddrW:0]    last_i,   // bundles of the last repetition, 1 to kernel_i

  // The bundle, until it is taken
  output logic [Width-1:0]  bundle_o,
  output logic              valid_o,
  output logic              prologue_o, // whether it is of the prologue
  output logic              begins_o,   // whether it is the first of a repetition
  output logic [CycleW-1:0] repetition_o,
  input  logic              next_i
);

  logic              fetches_q, valid_q, fetch, last, wraps;
  logic [AddrW:0]    pc_q, end_of_prologue, end_of_kernel;
  logic [CycleW-1:0] repetition_q;
  logic              prologue, begins;

  assign end_of_prologue = prologue_i;
  assign end_of_kernel   = prologue_i + kernel_i;
  assign fetch           = fetches_q && (next_i || !valid_q);
  assign prologue        = pc_q < end_of_prologue;
  assign begins          = pc_q == end_of_prologue;
  assign wraps           = pc_q + 1'b1 == end_of_kernel;
  assign last            = repetition_q + 1'b1 == repeats_i && pc_q + 1'b1 == end_of_prologue + last_i;
  assign valid_o         = valid_q;

  prim_ram_1w1r #(.Width(Width), .Depth(Depth)) u_program (
    .clk_i    (clk_i),
    .w_en_i   (w_en_i),
    .w_addr_i (w_addr_i),
    .w_data_i (w_data_i),
    .r_en_i   (fetch),
    .r_addr_i (pc_q[AddrW-1:0]),
    .r_data_o (bundle_o)
  );

  always_ff @(posedge clk_i) begin : p_control
    if (!rst_ni) begin
      fetches_q <= 1'b0;
      valid_q   <= 1'b0;
    end else if (start_i) begin
      fetches_q <= 1'b1;
      valid_q   <= 1'b0;
    end else if (fetch) begin
      fetches_q <= !last;
      valid_q   <= 1'b1;
    end else if (next_i) begin
      valid_q   <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin : p_place
    if (start_i) begin
      pc_q         <= '0;
      repetition_q <= '0;
    end else if (fetch) begin
      pc_q         <= wraps ? end_of_prologue : pc_q + 1'b1;
      repetition_q <= repetition_q + CycleW'(wraps);
    end
    if (fetch) begin
      prologue_o   <= prologue;
      begins_o     <= begins;
      repetition_o <= repetition_q;
    end
  end

`ifdef PROVE_GARBLE_SEQUENCER
`include "garble_sequencer.svh"
`endif

endmodule
