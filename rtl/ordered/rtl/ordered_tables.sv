// Takes tables as rows make them, and gives them one after the other in the order of their numbers.
//
// Tables are numbered over all cycles and runs. Table n is word n mod 2^TableW of a memory that all rows write, with bit TableW of n
// flipped beside it: so the reader sees that it is there. Nobody may start a product whose table is 2^TableW or more after the one
// that leaves next (next_o): whoever starts it looks.
//
// Latency:  a table leaves two cycles after it came.   Throughput: Rows tables per cycle in, one out.
// Back-pressure: a table stays until it is taken; next_o stays too.

module ordered_tables #(
  parameter  int unsigned Rows   = 2,
  parameter  int unsigned TableW = 9, // logarithm of the tables kept
  localparam int unsigned NumberW = TableW + 1
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic [Rows-1:0]           in_en_i,
  input  logic [Rows*NumberW-1:0]   in_number_i,
  input  logic [Rows*256-1:0]       in_table_i,

  output garble_pkg::table_t        out_table_o,
  output logic                      out_valid_o,
  input  logic                      out_ready_i,
  output logic [31:0]               next_o, // of all runs: the one that leaves next

  input  logic                      scrub_i,
  input  logic [TableW-1:0]         scrub_at_i
);

  logic [Rows*TableW-1:0] at;
  logic [Rows*257-1:0]    words;
  logic [256:0]           word;
  logic [31:0]            next_d, next_q;
  logic                   read_q;

  assign out_valid_o = read_q && word[256] == !next_q[TableW];
  assign out_table_o = word[255:0];
  assign next_d      = next_q + 32'(out_valid_o && out_ready_i);
  assign next_o      = next_q;

  for (genvar r = 0; r < Rows; r++) begin : g_row
    assign at[r*TableW +: TableW] = in_number_i[r*NumberW +: TableW];
    assign words[r*257 +: 257]    = {!in_number_i[r*NumberW+TableW], in_table_i[r*256 +: 256]};
  end

  prim_ram_lvt #(.Width(257), .Depth(1 << TableW), .Writes(Rows), .Reads(1)) u_tables (
    .clk_i        (clk_i),
    .clear_i      (scrub_i),
    .clear_addr_i (scrub_at_i),
    .w_en_i       (in_en_i),
    .w_addr_i     (at),
    .w_data_i     (words),
    .r_addr_i     (next_d[TableW-1:0]),
    .r_data_o     (word)
  );

  always_ff @(posedge clk_i) begin : p_next
    if (!rst_ni || scrub_i) begin
      next_q <= '0;
      read_q <= 1'b0;
    end else begin
      next_q <= next_d;
      read_q <= 1'b1;
    end
  end

`ifndef SYNTHESIS
  prim_stable #(.Width(256)) u_stable (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni && !scrub_i),
    .data_i  (out_table_o),
    .valid_i (out_valid_o),
    .ready_i (out_ready_i)
  );
`endif

endmodule
