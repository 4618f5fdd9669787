// Puts labels of inputs in their bank as they come: first those of the run, then those of each netlist cycle.
//
// Input n is kept in bank n mod LabelsIn; let m = n / LabelsIn. Inputs of the run have slots m = 0, 1, ...; input n of netlist cycle c has
// slot first + (m << ring) + (c mod 2^ring). Labels of cycle c are taken when cycle c - 2^ring is read no more: it is read last in
// repetition c - 2^ring + s of the kernel, s being the latest stage that reads inputs, and so no more when s + 2 repetitions more than
// c - 2^ring have begun.
//
// A beat has LabelsIn labels, the first in the lowest bits. Those of the run begin with a beat, and so do those of each netlist cycle; what
// the last beat has beyond them is not looked at. With single_i a beat has one label, the lowest.
//
// Latency:  a label can be read in the cycle after it is taken, or in that cycle by forwarding.   Throughput: one beat per cycle.
// Back-pressure: in_ready_o falls while the labels of the next cycle have no room, and when there are no more to come.

module garble_inputs #(
  parameter  int unsigned LabelsIn = 2, // a power of two
  localparam int unsigned CycleW  = garble_pkg::CycleW,
  localparam int unsigned NumberW = garble_pkg::NumberW,
  localparam int unsigned SlotW   = garble_pkg::SlotW
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  // A run
  input  logic                         start_i,
  input  logic [NumberW-1:0]           of_run_i,   // inputs of the run
  input  logic [NumberW-1:0]           of_cycle_i, // inputs of each netlist cycle
  input  logic [CycleW-1:0]            cycles_i,
  input  logic [garble_pkg::RingW-1:0] ring_i,
  input  logic [garble_pkg::StageW-1:0] stages_i,  // s + 2
  input  logic [CycleW-1:0]            begun_i,    // repetitions of the kernel that have begun

  // Labels
  input  logic                         single_i,   // of the run
  input  logic [LabelsIn*128-1:0]      in_labels_i,
  input  logic                         in_valid_i,
  output logic                         in_ready_o,

  // The banks
  output logic [LabelsIn-1:0]          w_en_o,
  output logic [SlotW-1:0]             w_slot_o,
  output logic [LabelsIn*128-1:0]      w_labels_o,

  // Labels that were taken: of the run, and of how many whole cycles and of the next one
  output logic                         run_done_o,
  output logic [CycleW-1:0]            cycles_o,
  output logic [NumberW-1:0]           number_o
);

  localparam int unsigned LanesW = $clog2(LabelsIn);

  logic               runs_q, run_done_q, last, moves;
  logic [CycleW-1:0]  cycle_q;
  logic [NumberW-1:0] number_q;
  logic               room;
  logic [6:0]         in_ring;
  logic [SlotW-1:0]   of_run_aligned;
  logic [NumberW:0]   of, next; // labels of the run or of a cycle; the first of them that comes with the next beat

  assign of         = {1'b0, run_done_q ? of_cycle_i : of_run_i};
  assign next       = {1'b0, number_q} + (single_i ? (NumberW+1)'(1) : (NumberW+1)'(LabelsIn));
  assign last       = next >= of;
  assign room       = !run_done_q
                    || (cycle_q < cycles_i
                        && (cycle_q < CycleW'(1) << ring_i
                            || cycle_q + CycleW'(stages_i) <= begun_i + (CycleW'(1) << ring_i)));
  assign in_ready_o = runs_q && room;
  assign moves      = in_valid_i && in_ready_o;
  assign in_ring    = cycle_q[6:0] & ~(7'h7f << ring_i);
  assign w_slot_o   = run_done_q ? of_run_aligned + (SlotW'(number_q >> LanesW) << ring_i) + SlotW'(in_ring)
                                 : SlotW'(number_q >> LanesW);

  assign run_done_o = run_done_q;
  assign cycles_o   = cycle_q;
  assign number_o   = number_q;

  // Rings begin at a multiple of their size.
  assign of_run_aligned = (SlotW'(((NumberW+1)'(of_run_i) + (NumberW+1)'(LabelsIn - 1)) >> LanesW) + (SlotW'(1) << ring_i) - 1'b1)
                        & (SlotW'('1) << ring_i);

  for (genvar l = 0; l < LabelsIn; l++) begin : g_lane
    assign w_en_o[l] = moves && (single_i ? (number_q & NumberW'(LabelsIn - 1)) == NumberW'(l)
                                          : {1'b0, number_q} + (NumberW+1)'(l) < of);
    assign w_labels_o[l*128 +: 128] = single_i ? in_labels_i[127:0] : in_labels_i[l*128 +: 128];
  end

  always_ff @(posedge clk_i) begin : p_place
    if (!rst_ni) begin
      runs_q     <= 1'b0;
      run_done_q <= 1'b0;
      cycle_q    <= '0;
      number_q   <= '0;
    end else if (start_i) begin
      runs_q     <= of_run_i != '0 || of_cycle_i != '0;
      run_done_q <= of_run_i == '0;
      cycle_q    <= '0;
      number_q   <= '0;
    end else if (moves) begin
      number_q   <= last ? '0 : next[NumberW-1:0];
      run_done_q <= run_done_q || last;
      cycle_q    <= cycle_q + CycleW'(run_done_q && last);
      if (!run_done_q && last && of_cycle_i == '0) begin
        runs_q <= 1'b0;
      end
    end
  end

endmodule
