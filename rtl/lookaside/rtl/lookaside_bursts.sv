// A run of words as bursts of AXI4 (Arm, "AMBA AXI Protocol Specification", IHI 0022): each of at most MaxBeats beats of Lanes words of
// 16 bytes, within 4096 bytes from a multiple of it on. Together they are the run, in its order, every word once.
//
// Latency:  a run's first burst is offered one cycle after it was taken.   Throughput: one burst per cycle.
// Back-pressure: a run is taken when the last burst of the one before leaves.

module lookaside_bursts #(
  parameter  int unsigned AddressW = 64, // at least 12
  parameter  int unsigned WordsW   = 8,  // at most 8
  parameter  int unsigned MaxBeats = 16, // at most 256
  parameter  int unsigned Lanes    = 1,  // words of a beat, a power of two, at most 8
  localparam int unsigned BeatsW   = 9
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // A run of whole beats: its address is a multiple of 16 Lanes, its words at least 1 and a multiple of Lanes
  input  logic [AddressW-1:0] address_i,
  input  logic [WordsW-1:0]   words_i,
  input  logic                valid_i,
  output logic                ready_o,

  output logic [AddressW-1:0] burst_address_o,
  output logic [BeatsW-1:0]   burst_beats_o,
  output logic                burst_last_o, // of the run
  output logic                burst_valid_o,
  input  logic                burst_ready_i
);

  localparam int unsigned LaneW = $clog2(Lanes);

  logic [AddressW-1:0] address_q;
  logic [WordsW-1:0]   left_q; // beats
  logic [BeatsW-1:0]   in_page, beats;
  logic                takes, moves;

  assign in_page         = BeatsW'(256 / Lanes) - BeatsW'(address_q[11:LaneW+4]);
  assign burst_address_o = address_q;
  assign burst_beats_o   = beats;
  assign burst_last_o    = BeatsW'(left_q) == beats;
  assign burst_valid_o   = left_q != '0;
  assign moves           = burst_valid_o && burst_ready_i;
  assign ready_o         = !burst_valid_o || (moves && burst_last_o);
  assign takes           = valid_i && ready_o;

  always_comb begin : p_beats
    beats = BeatsW'(left_q);
    if (beats > BeatsW'(MaxBeats)) begin
      beats = BeatsW'(MaxBeats);
    end
    if (beats > in_page) begin
      beats = in_page;
    end
  end

  always_ff @(posedge clk_i) begin : p_run
    if (!rst_ni) begin
      address_q <= '0;
      left_q    <= '0;
    end else if (takes) begin
      address_q <= address_i;
      left_q    <= words_i >> LaneW;
    end else if (moves) begin
      address_q <= address_q + ({{(AddressW-BeatsW-4){1'b0}}, beats, 4'b0} << LaneW);
      left_q    <= left_q - WordsW'(beats);
    end
  end

`ifdef PROVE_LOOKASIDE_BURSTS
`include "lookaside_bursts.svh"
`endif

endmodule
