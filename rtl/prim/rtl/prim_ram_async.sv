// A memory with a port for writing and some for reading, read in the cycle of the address: LUT RAM, one copy for each that reads.
//
// Latency:  none; what is written in a cycle is read from the next one on.   Throughput: a write and Reads reads per cycle.
// The words are undefined until they are written.

module prim_ram_async #(
  parameter  int unsigned Width = 4,
  parameter  int unsigned Depth = 64, // at least 2
  parameter  int unsigned Reads = 1,
  localparam int unsigned AddrW = $clog2(Depth)
) (
  input  logic                   clk_i,

  // Written in every cycle with w_en_i
  input  logic                   w_en_i,
  input  logic [AddrW-1:0]       w_addr_i,
  input  logic [Width-1:0]       w_data_i,

  input  logic [Reads*AddrW-1:0] r_addr_i,
  output logic [Reads*Width-1:0] r_data_o
);

  logic [Width-1:0] words [Depth];

  always_ff @(posedge clk_i) begin : p_memory
    if (w_en_i) begin
      words[w_addr_i] <= w_data_i;
    end
  end

  for (genvar r = 0; r < Reads; r++) begin : g_read
    assign r_data_o[r*Width +: Width] = words[r_addr_i[r*AddrW +: AddrW]];
  end

`ifdef PROVE_PRIM_RAM_ASYNC
`include "prim_ram_async.svh"
`endif

endmodule
