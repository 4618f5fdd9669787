// A queue of words in a memory, first in, first out.
//
// Latency:  a word that is taken in an empty queue is offered in the next cycle.   Throughput: one word in and one out per cycle.
// Back-pressure: in_ready_o falls when Depth words wait, whatever the other end does in that cycle: neither end waits for the other
// in one cycle. A word that is offered stays until it is taken.

module prim_fifo #(
  parameter  int unsigned Width  = 8,
  parameter  int unsigned Depth  = 4, // a power of two, at least 2
  localparam int unsigned AddrW  = $clog2(Depth),
  localparam int unsigned CountW = AddrW + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [Width-1:0]  in_data_i,
  input  logic              in_valid_i,
  output logic              in_ready_o,

  output logic [Width-1:0]  out_data_o,
  output logic              out_valid_o,
  input  logic              out_ready_i,

  // Words that wait, 0 to Depth
  output logic [CountW-1:0] count_o
);

  logic [Width-1:0] words [Depth];
  logic [CountW-1:0] head_q, tail_q; // one bit more than an address: full and empty differ by it
  logic              in_moves, out_moves;

  assign count_o     = tail_q - head_q;
  assign in_ready_o  = count_o != CountW'(Depth);
  assign out_valid_o = count_o != '0;
  assign out_data_o  = words[head_q[AddrW-1:0]];
  assign in_moves    = in_valid_i && in_ready_o;
  assign out_moves   = out_valid_o && out_ready_i;

  always_ff @(posedge clk_i) begin : p_ends
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
    end else begin
      head_q <= head_q + CountW'(out_moves);
      tail_q <= tail_q + CountW'(in_moves);
    end
  end

  always_ff @(posedge clk_i) begin : p_words
    if (in_moves) begin
      words[tail_q[AddrW-1:0]] <= in_data_i;
    end
  end

`ifndef SYNTHESIS
  prim_stable #(.Width(Width)) u_stable (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .data_i  (out_data_o),
    .valid_i (out_valid_o),
    .ready_i (out_ready_i)
  );

  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      Bounded_A: assert (count_o <= CountW'(Depth));
      NotFullAndEmpty_A: assert (in_ready_o || out_valid_o);
    end
  end
`endif

`ifdef PROVE_PRIM_FIFO
`include "prim_fifo.svh"
`endif

endmodule
