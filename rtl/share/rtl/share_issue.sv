// Takes commands of a core one after the other, and says for each cycle what of them starts: a beat, a pair of it, a part of that.
//
// A beat of operands takes Fold cycles, in which it waits at its stream; its last one takes it. What starts is never stopped: who asks
// for a result has to have room for it, which Flight results have. Counters of draws go on by Step from beat to beat.
//
// Latency:  a command's first beat starts at the earliest two cycles after the command came.
// Throughput: one beat in Fold cycles, also from command to command.
// Back-pressure: nothing starts while operands are missing, or would make a result for which there is no room.

module share_issue #(
  parameter  int unsigned Step   = 1,
  parameter  int unsigned Fold   = 1,
  parameter  int unsigned Flight = 32,
  localparam int unsigned PhaseW = Fold > 1 ? $clog2(Fold) : 1,
  localparam int unsigned RoomW  = $clog2(Flight) + 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                ready_i, // keys are there

  input  share_pkg::command_t command_i,
  input  logic                command_valid_i,
  output logic                command_ready_o,

  input  logic                in_valid_i,
  output logic                in_ready_o,

  // Who takes results took one
  input  logic                taken_i,

  output logic                start_o,
  output share_pkg::command_t now_o,      // the command, with the counter of this beat
  output logic [PhaseW-1:0]   phase_o,
  output logic                first_o,    // a sum begins
  output logic                last_o,     // and ends: there will be a result
  output logic                masks_o,    // in all its parts, of a pair that is the last of its result
  output logic                end_o,      // this is of the last beat of a column
  output logic                idle_o      // no command, and no result on its way
);

  localparam int unsigned CommandW = $bits(command_i);

  share_pkg::command_t now_q, next;
  logic                next_valid, next_takes, busy_q, emits, pair_last, beat_last, phase_last, steps, finishes, draws;
  logic [CommandW-1:0] next_bits;
  logic [63:0]         counter_q;
  logic [15:0]         beat_q, pair_q;
  logic [PhaseW-1:0]   phase_q;
  logic [RoomW-1:0]    flight_q;
  logic [2:0]          unused_count;

  prim_fifo #(.Width(CommandW), .Depth(4)) u_commands (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_data_i   (command_i),
    .in_valid_i  (command_valid_i),
    .in_ready_o  (command_ready_o),
    .out_data_o  (next_bits),
    .out_valid_o (next_valid),
    .out_ready_i (next_takes),
    .count_o     (unused_count)
  );

  assign next       = next_bits;
  assign next_takes = ready_i && (!busy_q || finishes);
  assign pair_last  = pair_q + 16'd1 == now_q.pairs;
  assign beat_last  = beat_q + 16'd1 == now_q.beats;
  assign phase_last = phase_q == PhaseW'(Fold - 1);
  assign steps      = start_o && phase_last;
  assign finishes   = steps && pair_last && beat_last;
  assign masks_o    = pair_last && (beat_last || !now_q.sum);
  assign emits      = phase_last && masks_o;
  assign draws      = now_q.op == share_pkg::Random;
  // A result needs room when its first part starts, since parts follow each other.
  assign start_o    = busy_q && (draws || in_valid_i) && flight_q != RoomW'(Flight);
  assign in_ready_o = busy_q && !draws && phase_last && flight_q != RoomW'(Flight);
  assign phase_o    = phase_q;
  assign first_o    = phase_q == '0 && pair_q == '0 && (beat_q == '0 || !now_q.sum);
  assign last_o     = emits;
  assign end_o      = beat_last;
  assign idle_o     = !busy_q && !next_valid && flight_q == '0;

  always_comb begin : p_now
    now_o         = now_q;
    now_o.counter = counter_q;
  end

  always_ff @(posedge clk_i) begin : p_control
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      flight_q <= '0;
    end else begin
      busy_q   <= (next_valid && next_takes) || (busy_q && !finishes);
      flight_q <= flight_q + RoomW'(start_o && emits) - RoomW'(taken_i);
    end
  end

  always_ff @(posedge clk_i) begin : p_place
    if (next_valid && next_takes) begin
      now_q     <= next;
      counter_q <= next.counter;
      beat_q    <= '0;
      pair_q    <= '0;
      phase_q   <= '0;
    end else if (start_o) begin
      phase_q <= phase_last ? '0 : phase_q + 1'b1;
      if (phase_last) begin
        pair_q <= pair_last ? '0 : pair_q + 16'd1;
      end
      if (phase_last && pair_last) begin
        beat_q    <= beat_q + 16'd1;
        counter_q <= counter_q + (now_q.sum ? 64'd0 : 64'(Step));
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      Bounded_A: assert (flight_q <= RoomW'(Flight));
      if (busy_q) begin
        Sizes_A: assert (now_q.beats != '0 && now_q.pairs != '0 && now_q.tail != '0);
        RandomHasNoPairs_A: assert (now_q.pairs == 16'd1 || now_q.op != share_pkg::Random);
        BitsHaveNoSums_A: assert (!now_q.sum || now_q.ring != share_pkg::Bits);
        RandomHasNoSum_A: assert (!now_q.sum || now_q.op != share_pkg::Random);
      end
    end
  end
`endif

endmodule
