// Puts labels of inputs in their bank as they come: first those of the run, then those of each netlist cycle.
//
// Inputs of the run have slots 0, 1, ...; input n of netlist cycle c has slot first + (n << ring) + (c mod 2^ring). Labels of cycle c
// are taken when cycle c - 2^ring is read no more: it is read last in repetition c - 2^ring + s of the kernel, s being the latest stage
// that reads inputs, and so no more when s + 2 repetitions more than c - 2^ring have begun.
//
// Latency:  a label can be read in the cycle after it is taken, or in that cycle by forwarding.   Throughput: one label per cycle.
// Back-pressure: in_ready_o falls while the labels of the next cycle have no room, and when there are no more to come.

module garble_inputs #(
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
  input  garble_pkg::label_t           in_label_i,
  input  logic                         in_valid_i,
  output logic                         in_ready_o,

  // The bank
  output logic                         w_en_o,
  output logic [SlotW-1:0]             w_slot_o,
  output garble_pkg::label_t           w_label_o,

  // Labels that were taken: of the run, and of how many whole cycles and of the next one
  output logic                         run_done_o,
  output logic [CycleW-1:0]            cycles_o,
  output logic [NumberW-1:0]           number_o
);

  logic               runs_q, run_done_q, last;
  logic [CycleW-1:0]  cycle_q;
  logic [NumberW-1:0] number_q;
  logic               room;
  logic [6:0]         in_ring;
  logic [SlotW-1:0]   of_run_aligned;

  assign last       = number_q + 1'b1 == (run_done_q ? of_cycle_i : of_run_i);
  assign room       = !run_done_q
                    || (cycle_q < cycles_i
                        && (cycle_q < CycleW'(1) << ring_i
                            || cycle_q + CycleW'(stages_i) <= begun_i + (CycleW'(1) << ring_i)));
  assign in_ready_o = runs_q && room;
  assign w_en_o     = in_valid_i && in_ready_o;
  assign w_label_o  = in_label_i;
  assign in_ring    = cycle_q[6:0] & ~(7'h7f << ring_i);
  assign w_slot_o   = run_done_q ? of_run_aligned + (SlotW'(number_q) << ring_i) + SlotW'(in_ring)
                                 : SlotW'(number_q);

  assign run_done_o = run_done_q;
  assign cycles_o   = cycle_q;
  assign number_o   = number_q;

  // Rings begin at a multiple of their size.
  assign of_run_aligned = (SlotW'(of_run_i) + (SlotW'(1) << ring_i) - 1'b1) & (SlotW'('1) << ring_i);

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
    end else if (w_en_o) begin
      number_q   <= last ? '0 : number_q + 1'b1;
      run_done_q <= run_done_q || last;
      cycle_q    <= cycle_q + CycleW'(run_done_q && last);
      if (!run_done_q && last && of_cycle_i == '0) begin
        runs_q <= 1'b0;
      end
    end
  end

endmodule
