// The netlist cycles of a run, and the scrubbing between runs. A netlist cycle takes, time 0 being its first cycle in which entries start,
//
//     max(last + 2, outlast + 12) + 3
//
// cycles, last being when the last entry starts and outlast when the last output does; a run takes 4 more than all its netlist cycles.
// This is what Oishi, Kadomoto, Irie, Sakai, "FPGA-based Garbling Accelerator with Parallel Pipeline Processing", print in table 3.
//
// Back-pressure: a netlist cycle does not end while the masks of the last one, or labels of its inputs, have not left.

module ordered_control #(
  parameter  int unsigned ScrubW = 13, // logarithm of the largest memory, at least 5: the engines are shallower
  localparam int unsigned CycleW = ordered_pkg::CycleW,
  localparam int unsigned RunW   = ordered_pkg::RunW,
  localparam int unsigned TagW   = ordered_pkg::TagW
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              scrub_i,

  input  logic              start_i,
  input  logic [CycleW-1:0] cycles_i,
  output logic              busy_o,
  output logic              done_o,   // for one cycle
  output logic [47:0]       cycles_o, // that the run took, until its last netlist cycle ended

  // What goes on
  input  logic              held_i,       // entries wait to start
  input  logic              masks_wait_i, // outputs started in the last 11 cycles
  input  logic              busy_i,       // rows
  input  logic              masks_room_i,
  input  logic              masks_left_i,
  input  logic              tables_left_i,
  input  logic [CycleW-1:0] label_cycle_i, // of the label that leaves next

  output logic              begin_o,   // a run
  output logic              restart_o, // a netlist cycle: fetch its first entries
  output logic              fill_o,    // take entries
  output logic              issue_o,   // start entries
  output logic              close_o,   // the netlist cycle is over
  output logic [CycleW-1:0] cycle_o,
  output logic [TagW-1:0]   tag_o,

  output logic              scrub_o,
  output logic [ScrubW-1:0] scrub_at_o
);

  typedef enum logic [2:0] {
    Scrub,
    Idle,
    Prepare,
    Read,
    Load,
    Fill,
    Run,
    Drain
  } state_e;

  state_e            state_d, state_q;
  logic [CycleW-1:0] cycle_q;
  logic [RunW-1:0]   run_q;
  logic [ScrubW-1:0] scrub_q;
  logic [47:0]       count_q;
  logic              quiet_q; // no entry started in the last cycle, and none waits
  logic              ends, drained, last_run;

  assign ends     = state_q == Run && !held_i && quiet_q && !masks_wait_i && masks_room_i && label_cycle_i >= cycle_q;
  assign drained  = state_q == Drain && !busy_i && masks_left_i && tables_left_i && label_cycle_i == cycles_i;
  assign last_run = run_q == '1;

  always_comb begin : p_state
    state_d = state_q;
    unique case (state_q)
      Scrub:   state_d = scrub_q == '1 ? Idle : Scrub;
      Idle:    state_d = start_i ? Prepare : Idle;
      Prepare: state_d = Read;
      Read:    state_d = Load;
      Load:    state_d = Fill;
      Fill:    state_d = cycle_q == cycles_i ? Drain : Run;
      Run:     state_d = ends ? Load : Run;
      Drain:   state_d = !drained ? Drain : last_run ? Scrub : Idle;
      default: state_d = Scrub;
    endcase
    if (scrub_i) begin
      state_d = Scrub;
    end
  end

  always_ff @(posedge clk_i) begin : p_control
    if (!rst_ni) begin
      state_q <= Scrub;
      scrub_q <= '0;
      run_q   <= RunW'(1);
    end else begin
      state_q <= state_d;
      scrub_q <= state_q == Scrub && !scrub_i ? scrub_q + 1'b1 : '0;
      if (state_q == Scrub) begin
        run_q <= RunW'(1);
      end else if (drained) begin
        run_q <= run_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_count
    quiet_q <= state_q == Run && !held_i;
    if (begin_o) begin
      cycle_q <= '0;
      count_q <= '0;
    end else begin
      cycle_q <= cycle_q + CycleW'(ends);
      count_q <= count_q + 48'(state_q != Scrub && state_q != Idle && state_q != Drain);
    end
  end

  assign busy_o     = state_q != Idle;
  assign done_o     = drained;
  assign cycles_o   = count_q;
  assign begin_o    = state_q == Idle && start_i;
  assign restart_o  = state_q == Read || ends;
  assign fill_o     = (state_q == Fill || state_q == Run) && cycle_q != cycles_i;
  assign issue_o    = state_q == Run;
  assign close_o    = ends;
  assign cycle_o    = cycle_q;
  assign tag_o      = {run_q, cycle_q[0]};
  assign scrub_o    = state_q == Scrub;
  assign scrub_at_o = scrub_q;

endmodule
