// Takes tables as rows make them, and gives them in the order of their numbers.
//
// A line is a table of each row: line l of a netlist cycle has products l Rows to l Rows + Rows - 1, row r the r-th. The last line of
// a cycle may be shorter. Lines are numbered over all cycles and runs. Row r writes line l to word l mod 2^LinesW of its memory, with
// bit LinesW of l flipped as an epoch: so the reader sees that a line is there. A row that has no table in a short line writes its epoch
// when that line leaves, or as soon after it as nothing else is written, unless a table of the next epoch comes before: otherwise what it
// wrote two epochs ago would count as there.
// Nobody may start a product whose line is 2^LinesW or more after the one that leaves next (line_o): whoever starts it looks.
//
// Latency:  a line leaves two cycles after its last table came.   Throughput: one line per cycle.
// Back-pressure: a line stays until it is taken; line_o stays too.

module garble_tables #(
  parameter  int unsigned Rows   = 2,
  parameter  int unsigned LinesW = 10 // logarithm of the lines kept
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Tables that come, each at its row
  input  logic [Rows-1:0]       in_en_i,
  input  logic [Rows*32-1:0]    in_line_i,
  input  logic [Rows*256-1:0]   in_table_i,

  // Lines that leave. What of the last line of a cycle is not kept has its bit of out_keep_o low.
  input  logic [31:0]           lines_i, // of a netlist cycle, at least 1 if anything comes
  input  logic [Rows-1:0]       last_keep_i,
  output logic [Rows*256-1:0]   out_tables_o,
  output logic [Rows-1:0]       out_keep_o,
  output logic                  out_valid_o,
  input  logic                  out_ready_i,
  output logic [31:0]           line_o, // of all runs: the one that leaves next

  // A run begins: the next line is the first of a cycle. While none goes on, what the others say of it means nothing
  input  logic                  start_i,
  input  logic                  runs_i,
  input  logic                  scrub_i,
  input  logic [LinesW-1:0]     scrub_line_i
);

  logic [31:0]         line_q, line_d, in_cycle_q;
  logic [Rows-1:0]     there, keep;
  logic                last, moves, read_q;
  logic [Rows-1:0]     pass, again, passed_q; // rows that have still to write their epoch in the last short line
  logic [LinesW:0]     pass_line, pass_line_q;

  assign last        = in_cycle_q + 32'd1 == lines_i;
  assign keep        = last ? last_keep_i : '1;
  assign out_keep_o  = keep;
  assign out_valid_o = runs_i && read_q && (there | ~keep) == '1 && !(last && passed_q != '0);
  assign moves       = out_valid_o && out_ready_i;
  assign line_d      = line_q + 32'(moves);
  assign line_o      = line_q;
  assign pass        = moves && last ? ~keep : passed_q;
  assign pass_line   = moves && last ? line_q[LinesW:0] : pass_line_q;

  always_ff @(posedge clk_i) begin : p_pass
    passed_q    <= !rst_ni || scrub_i ? '0 : pass & in_en_i & ~again;
    pass_line_q <= pass_line;
  end

  for (genvar r = 0; r < Rows; r++) begin : g_row
    logic [LinesW:0] line;
    logic [256:0]    word;

    assign line = in_en_i[r] ? in_line_i[r*32 +: LinesW+1] : pass_line;

    prim_ram_1w1r #(.Width(257), .Depth(1 << LinesW)) u_tables (
      .clk_i    (clk_i),
      .w_en_i   (in_en_i[r] || pass[r] || scrub_i),
      .w_addr_i (scrub_i ? scrub_line_i : line[LinesW-1:0]),
      .w_data_i (scrub_i ? 257'b0 : {!line[LinesW], in_table_i[r*256 +: 256] & {256{in_en_i[r]}}}),
      .r_en_i   (1'b1),
      .r_addr_i (line_d[LinesW-1:0]),
      .r_data_o (word)
    );

    assign again[r]                   = line[LinesW-1:0] == pass_line[LinesW-1:0];
    assign there[r]                   = word[256] == !line_q[LinesW];
    assign out_tables_o[r*256 +: 256] = word[255:0];
  end

  always_ff @(posedge clk_i) begin : p_line
    if (!rst_ni || scrub_i) begin
      line_q     <= '0;
      in_cycle_q <= '0;
      read_q     <= 1'b0;
    end else begin
      line_q     <= line_d;
      in_cycle_q <= start_i || (moves && last) ? '0 : in_cycle_q + 32'(moves);
      read_q     <= 1'b1;
    end
  end

`ifndef SYNTHESIS
  prim_stable #(.Width(Rows*257)) u_stable (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni && !scrub_i && !start_i),
    .data_i  ({out_keep_o, out_tables_o}),
    .valid_i (out_valid_o),
    .ready_i (out_ready_i)
  );

  logic [Rows-1:0] beyond; // tables of lines for which there is no room

  for (genvar r = 0; r < Rows; r++) begin : g_beyond
    assign beyond[r] = in_line_i[r*32 +: 32] - line_q >= 32'd1 << LinesW;
  end

  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !scrub_i) begin
      Window_A: assert ((in_en_i & beyond) == '0);
    end
  end
`endif

endmodule
