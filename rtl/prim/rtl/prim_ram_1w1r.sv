// A memory with a port for writing and a port for reading. What is written in a cycle is what is read of the same word in that cycle.
//
// Latency:  read data one cycle after the address, held until the next read.   Throughput: one write and one read per cycle.
// The words are undefined until they are written. The memory itself is plain, so that it becomes block RAM; the forwarding is beside it.

module prim_ram_1w1r #(
  parameter  int unsigned Width = 128,
  parameter  int unsigned Depth = 1024, // at least 2
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input  logic             clk_i,

  // Written in every cycle with w_en_i
  input  logic             w_en_i,
  input  logic [AddrW-1:0] w_addr_i,
  input  logic [Width-1:0] w_data_i,

  // Asked in every cycle with r_en_i
  input  logic             r_en_i,
  input  logic [AddrW-1:0] r_addr_i,
  output logic [Width-1:0] r_data_o
);

  logic [Width-1:0] words [Depth];
  logic [Width-1:0] read_q, forward_q;
  logic             forwards_q;

  assign r_data_o = forwards_q ? forward_q : read_q;

  always_ff @(posedge clk_i) begin : p_memory
    if (w_en_i) begin
      words[w_addr_i] <= w_data_i;
    end
    if (r_en_i) begin
      read_q <= words[r_addr_i];
    end
  end

  always_ff @(posedge clk_i) begin : p_forward
    if (r_en_i) begin
      forwards_q <= w_en_i && w_addr_i == r_addr_i;
      forward_q  <= w_data_i;
    end
  end

`ifdef PROVE_PRIM_RAM_1W1R
`include "prim_ram_1w1r.svh"
`endif

endmodule
