// A long queue of words in a memory that becomes block RAM, first in, first out; it can be wiped.
//
// Latency:  a word that is taken in an empty queue is offered in the next cycle.   Throughput: one word in and one out per cycle.
// Back-pressure: as of prim_fifo.
// While wipe_i is high, nothing is offered and taken, and zeros go through all words: Depth cycles at least. The queue is empty after it.

module prim_buffer #(
  parameter  int unsigned Width  = 128,
  parameter  int unsigned Depth  = 512, // a power of two, at least 2
  localparam int unsigned AddrW  = $clog2(Depth),
  localparam int unsigned CountW = AddrW + 1
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

  // Words that wait, 0 to Depth
  output logic [CountW-1:0] count_o
);

  logic [CountW-1:0] head_d, head_q, tail_d, tail_q; // one bit more than an address: full and empty differ by it
  logic              in_moves, out_moves, forwards_q;
  logic [Width-1:0]  words [Depth];
  logic [Width-1:0]  read_q, forward_q;

  assign count_o     = tail_q - head_q;
  assign in_ready_o  = count_o != CountW'(Depth) && !wipe_i;
  assign out_valid_o = count_o != '0 && !wipe_i;
  assign in_moves    = in_valid_i && in_ready_o;
  assign out_moves   = out_valid_o && out_ready_i;
  assign tail_d      = tail_q + CountW'(in_moves || wipe_i);
  assign head_d      = wipe_i ? tail_d : head_q + CountW'(out_moves);

  // The word that is first in the next cycle is read in this one, also if it comes in this one. The memory is plain, as of prim_ram_1w1r.
  assign out_data_o = forwards_q ? forward_q : read_q;

  always_ff @(posedge clk_i) begin : p_memory
    if (in_moves || wipe_i) begin
      words[tail_q[AddrW-1:0]] <= wipe_i ? '0 : in_data_i;
    end
    read_q <= words[head_d[AddrW-1:0]];
  end

  always_ff @(posedge clk_i) begin : p_forward
    forwards_q <= (in_moves || wipe_i) && tail_q[AddrW-1:0] == head_d[AddrW-1:0];
    forward_q  <= wipe_i ? '0 : in_data_i;
  end

  always_ff @(posedge clk_i) begin : p_ends
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
    end else begin
      head_q <= head_d;
      tail_q <= tail_d;
    end
  end

`ifndef SYNTHESIS
  logic             past_q = 1'b0; // whether the last cycle was out of reset, and its values are known
  logic             offered_q;
  logic [Width-1:0] out_data_q;

  always_ff @(posedge clk_i) begin : p_past
    past_q     <= rst_ni;
    offered_q  <= out_valid_o && !out_ready_i;
    out_data_q <= out_data_o;
  end

  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && past_q) begin
      Bounded_A: assert (count_o <= CountW'(Depth));
      if (offered_q && !wipe_i) begin
        OutStable_A: assert (out_valid_o && out_data_o == out_data_q);
      end
    end
  end
`endif

`ifdef PROVE_PRIM_BUFFER
`include "prim_buffer.svh"
`endif

endmodule
