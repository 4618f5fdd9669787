// A queue of secrets: it can be wiped.
//
// Latency, throughput and back-pressure are those of prim_fifo. While wipe_i is high, nothing is offered and taken, and zeros go through all
// words: for that, it has to be high for Depth + 1 cycles at least. The queue is empty one cycle after.

module garble_queue #(
  parameter  int unsigned Width  = 128,
  parameter  int unsigned Depth  = 16, // a power of two, at least 2
  localparam int unsigned CountW = $clog2(Depth) + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              wipe_i,

  input  logic [Width-1:0]  in_data_i,
  input  logic              in_valid_i,
  output logic              in_ready_o,

  output logic [Width-1:0]  out_data_o,
  output logic              out_valid_o,
  input  logic              out_ready_i,

  output logic [CountW-1:0] count_o
);

  logic wiped_q, closed, in_ready, out_valid;

  assign closed      = wipe_i || wiped_q;
  assign in_ready_o  = in_ready && !closed;
  assign out_valid_o = out_valid && !closed;

  prim_fifo #(.Width(Width), .Depth(Depth)) u_fifo (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !(wiped_q && !wipe_i)),
    .in_data_i   (closed ? '0 : in_data_i),
    .in_valid_i  (closed || in_valid_i),
    .in_ready_o  (in_ready),
    .out_data_o  (out_data_o),
    .out_valid_o (out_valid),
    .out_ready_i (closed || out_ready_i),
    .count_o     (count_o)
  );

  always_ff @(posedge clk_i) begin : p_wiped
    wiped_q <= rst_ni && wipe_i;
  end

`ifdef PROVE_GARBLE_QUEUE
`include "garble_queue.svh"
`endif

endmodule
