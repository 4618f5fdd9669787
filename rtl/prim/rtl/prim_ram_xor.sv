// A small memory that many ports write and read at once: a word is the XOR of its words in a bank of each port that writes. Who writes
// puts into its bank what makes the XOR right, which it learns by reading the other banks (LaForest, Liu, Rapati, Steffan,
// "Multi-Ported Memories for FPGAs via XOR", FPGA 2012).
//
// Latency:  none; what is written in a cycle is read from the next one on.   Throughput: Writes writes and Reads reads per cycle.
// No two ports may write the same word in one cycle. Words are undefined until they are written or cleared.

module prim_ram_xor #(
  parameter  int unsigned Width  = 2,
  parameter  int unsigned Depth  = 64, // at least 2
  parameter  int unsigned Writes = 2,
  parameter  int unsigned Reads  = 2,
  localparam int unsigned AddrW  = $clog2(Depth)
) (
  input  logic                    clk_i,

  // Makes a word 0; nothing is written in that cycle
  input  logic                    clear_i,
  input  logic [AddrW-1:0]        clear_addr_i,

  input  logic [Writes-1:0]       w_en_i,
  input  logic [Writes*AddrW-1:0] w_addr_i,
  input  logic [Writes*Width-1:0] w_data_i,

  input  logic [Reads*AddrW-1:0]  r_addr_i,
  output logic [Reads*Width-1:0]  r_data_o
);

  localparam int unsigned All = Writes + Reads; // ports of a bank that read: those that write elsewhere, and the readers

  logic [Writes*All*Width-1:0] parts;   // [bank][port]
  logic [Writes*Width-1:0]     written; // [bank]

  for (genvar w = 0; w < Writes; w++) begin : g_bank
    prim_ram_async #(.Width(Width), .Depth(Depth), .Reads(All)) u_bank (
      .clk_i    (clk_i),
      .w_en_i   (clear_i || w_en_i[w]),
      .w_addr_i (clear_i ? clear_addr_i : w_addr_i[w*AddrW +: AddrW]),
      .w_data_i (clear_i ? Width'(0) : written[w*Width +: Width]),
      .r_addr_i ({r_addr_i, w_addr_i}),
      .r_data_o (parts[w*All*Width +: All*Width])
    );
  end

  always_comb begin : p_written
    written = w_data_i;
    for (int unsigned v = 0; v < Writes; v++) begin
      for (int unsigned w = 0; w < Writes; w++) begin
        if (v != w) begin
          written[w*Width +: Width] = written[w*Width +: Width] ^ parts[(v*All+w)*Width +: Width];
        end
      end
    end
  end

  always_comb begin : p_read
    r_data_o = '0;
    for (int unsigned v = 0; v < Writes; v++) begin
      r_data_o = r_data_o ^ parts[(v*All+Writes)*Width +: Reads*Width];
    end
  end

`ifndef SYNTHESIS
  logic two_write; // the same word

  always_comb begin : p_two_write
    two_write = 1'b0;
    for (int unsigned w = 0; w < Writes; w++) begin
      for (int unsigned v = 0; v < w; v++) begin
        if (w_en_i[v] && w_en_i[w] && w_addr_i[v*AddrW +: AddrW] == w_addr_i[w*AddrW +: AddrW]) begin
          two_write = 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_assert
    OneWriter_A: assert (clear_i || !two_write);
  end
`endif

`ifdef PROVE_PRIM_RAM_XOR
`include "prim_ram_xor.svh"
`endif

endmodule
