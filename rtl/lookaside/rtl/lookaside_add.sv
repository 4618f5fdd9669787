// Two columns of words, of which the first is kept and the second goes by it: their sum modulo 2^128 or bit by bit, or whether they are the
// same. What comes out is a column: the sum, or the second.
//
// Latency:  none, from the second column to the sum.   Throughput: one beat of Lanes words per cycle in; one out per cycle while the second
// comes in.

module lookaside_add #(
  parameter  int unsigned Lanes   = 1,    // words of a beat, a power of two
  parameter  int unsigned Longest = 1024, // words of a column; a power of two, at least 2 Lanes
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned PlaceW  = $clog2(Longest / Lanes)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 wipe_i, // Longest / Lanes cycles at least

  input  logic                 start_i,
  input  logic [7:0]           op_i,
  input  logic [31:0]          words_i, // a multiple of Lanes, Lanes to Longest

  input  logic [BeatW-1:0]     in_data_i,
  input  logic                 in_valid_i,
  output logic                 in_ready_o,
  output logic [BeatW-1:0]     out_data_o,
  output logic                 out_valid_o,
  input  logic                 out_ready_i,
  output logic                 mismatch_o // with the last word: they should be the same, and are not
);

  localparam int unsigned LaneW = $clog2(Lanes);

  logic                 second_q, adds_q, in_moves, last, xor_q, check_q, differs, differs_q;
  logic [PlaceW:0]      beats_q;
  logic [PlaceW-1:0]    at_q, at_d;
  logic [BeatW-1:0]     kept, sum;

  assign in_ready_o  = adds_q && (!second_q || out_ready_i);
  assign in_moves    = in_valid_i && in_ready_o;
  assign out_valid_o = adds_q && second_q && in_valid_i;
  assign out_data_o  = check_q ? in_data_i : xor_q ? in_data_i ^ kept : sum;
  assign differs     = differs_q || in_data_i != kept;
  assign mismatch_o  = check_q && second_q && last && differs;
  assign last        = (PlaceW+1)'(at_q) + 1'b1 == beats_q;
  assign at_d        = in_moves ? (last ? '0 : at_q + 1'b1) : at_q;

  for (genvar l = 0; l < Lanes; l++) begin : g_sum
    assign sum[128*l +: 128] = in_data_i[128*l +: 128] + kept[128*l +: 128];
  end

  // The beat of the next sums is read in this cycle.
  prim_ram_1w1r #(.Width(BeatW), .Depth(Longest / Lanes)) u_kept (
    .clk_i    (clk_i),
    .w_en_i   ((in_moves && !second_q) || wipe_i),
    .w_addr_i (at_q),
    .w_data_i (wipe_i ? '0 : in_data_i),
    .r_en_i   (1'b1),
    .r_addr_i (at_d),
    .r_data_o (kept)
  );

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      second_q <= 1'b0;
      adds_q   <= 1'b0;
      xor_q    <= 1'b0;
      check_q  <= 1'b0;
      beats_q  <= '0;
      at_q     <= '0;
    end else if (wipe_i) begin
      second_q <= 1'b0;
      adds_q   <= 1'b0;
      at_q     <= at_q + 1'b1;
    end else if (start_i) begin
      second_q <= 1'b0;
      adds_q   <= 1'b1;
      xor_q    <= op_i == lookaside_pkg::OpXor;
      check_q  <= op_i == lookaside_pkg::OpCheck;
      beats_q  <= (PlaceW+1)'(words_i >> LaneW);
      at_q     <= '0;
    end else begin
      at_q <= at_d;
      if (in_moves && last) begin
        second_q <= 1'b1;
        adds_q   <= !second_q;
      end
    end
  end

  // Every word is looked at, wherever the first difference is.
  always_ff @(posedge clk_i) begin : p_differs
    if (!rst_ni || wipe_i || start_i) begin
      differs_q <= 1'b0;
    end else if (in_moves && second_q) begin
      differs_q <= differs;
    end
  end

  logic unused;
  assign unused = ^words_i;

endmodule
