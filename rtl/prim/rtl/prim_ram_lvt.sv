// A memory that many ports write and read at once: each port that writes has a bank, with a copy for each port that reads; a table of
// live values tells which bank was written last (LaForest, Steffan, "Efficient Multi-Ported Memories for FPGAs", FPGA 2010). The table
// is a memory too and no vector of flip-flops, which would need more of the FPGA than all else for thousands of words. What is written
// in a cycle is what is read of the same word in that cycle.
//
// Latency:  read data one cycle after the address.   Throughput: Writes writes and Reads reads per cycle.
// No two ports may write the same word in one cycle. Words are undefined until they are written or cleared.

module prim_ram_lvt #(
  parameter  int unsigned Width  = 128,
  parameter  int unsigned Depth  = 1024, // at least 2
  parameter  int unsigned Writes = 2,
  parameter  int unsigned Reads  = 2,
  localparam int unsigned AddrW  = $clog2(Depth),
  localparam int unsigned BankW  = Writes > 1 ? $clog2(Writes) : 1
) (
  input  logic                    clk_i,

  // Makes a word 0; nothing is written in that cycle
  input  logic                    clear_i,
  input  logic [AddrW-1:0]        clear_addr_i,

  input  logic [Writes-1:0]       w_en_i,
  input  logic [Writes*AddrW-1:0] w_addr_i,
  input  logic [Writes*Width-1:0] w_data_i,

  // Read in every cycle
  input  logic [Reads*AddrW-1:0]  r_addr_i,
  output logic [Reads*Width-1:0]  r_data_o
);

  logic [Writes*BankW-1:0]       own;   // the numbers of the banks
  logic [Reads*BankW-1:0]        last, bank_d, bank_q;
  logic [Reads*Writes*Width-1:0] words; // [read][bank]

  for (genvar w = 0; w < Writes; w++) begin : g_own
    assign own[w*BankW +: BankW] = BankW'(w);
  end

  prim_ram_xor #(.Width(BankW), .Depth(Depth), .Writes(Writes), .Reads(Reads)) u_table (
    .clk_i        (clk_i),
    .clear_i      (clear_i),
    .clear_addr_i (clear_addr_i),
    .w_en_i       (w_en_i),
    .w_addr_i     (w_addr_i),
    .w_data_i     (own),
    .r_addr_i     (r_addr_i),
    .r_data_o     (last)
  );

  for (genvar r = 0; r < Reads; r++) begin : g_read
    for (genvar w = 0; w < Writes; w++) begin : g_bank
      prim_ram_1w1r #(.Width(Width), .Depth(Depth)) u_bank (
        .clk_i    (clk_i),
        .w_en_i   (clear_i || w_en_i[w]),
        .w_addr_i (clear_i ? clear_addr_i : w_addr_i[w*AddrW +: AddrW]),
        .w_data_i (clear_i ? Width'(0) : w_data_i[w*Width +: Width]),
        .r_en_i   (1'b1),
        .r_addr_i (r_addr_i[r*AddrW +: AddrW]),
        .r_data_o (words[(r*Writes+w)*Width +: Width])
      );
    end
  end

  always_comb begin : p_bank
    bank_d = last;
    for (int unsigned r = 0; r < Reads; r++) begin
      for (int unsigned w = 0; w < Writes; w++) begin
        if (!clear_i && w_en_i[w] && w_addr_i[w*AddrW +: AddrW] == r_addr_i[r*AddrW +: AddrW]) begin
          bank_d[r*BankW +: BankW] = BankW'(w);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_last
    bank_q <= bank_d;
  end

  always_comb begin : p_pick
    r_data_o = '0;
    for (int unsigned r = 0; r < Reads; r++) begin
      for (int unsigned w = 0; w < Writes; w++) begin
        if (bank_q[r*BankW +: BankW] == BankW'(w)) begin
          r_data_o[r*Width +: Width] = words[(r*Writes+w)*Width +: Width];
        end
      end
    end
  end

`ifdef PROVE_PRIM_RAM_LVT
`include "prim_ram_lvt.svh"
`endif

endmodule
