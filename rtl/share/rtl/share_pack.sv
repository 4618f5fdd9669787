// Bytes of columns, one after the other without gaps, as blocks of 16.
//
// Latency:  a block comes in the cycle of the byte that fills it.   Throughput: one word per cycle. Never stalls.

module share_pack (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             wipe_i,

  input  logic             in_en_i,
  input  share_pkg::word_t in_data_i,
  input  logic [4:0]       in_bytes_i, // of them, the lowest, 1 to 16
  input  logic             flush_i,    // without in_en_i: what is left, filled up with zeros

  output logic             out_en_o,
  output share_pkg::word_t out_data_o
);

  logic [119:0]     left_q; // zero beyond left_bytes_q
  logic [3:0]       bytes_q;
  logic [5:0]       bytes;
  share_pkg::word_t taken;
  logic [247:0]     whole;

  always_comb begin : p_taken
    for (int unsigned k = 0; k < 16; k++) begin
      taken[8*k +: 8] = in_data_i[8*k +: 8] & {8{in_en_i && 5'(k) < in_bytes_i}};
    end
  end

  assign whole      = 248'(left_q) | (248'(taken) << {bytes_q, 3'b0});
  assign bytes      = 6'(bytes_q) + (in_en_i ? 6'(in_bytes_i) : 6'd0);
  assign out_en_o   = bytes[5:4] != '0 || (flush_i && bytes_q != '0);
  assign out_data_o = whole[127:0];

  always_ff @(posedge clk_i) begin : p_left
    if (!rst_ni || wipe_i || flush_i) begin
      left_q  <= '0;
      bytes_q <= '0;
    end else if (in_en_i) begin
      left_q  <= bytes[5:4] != '0 ? whole[247:128] : whole[119:0];
      bytes_q <= bytes[3:0];
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      OneThing_A: assert (!(in_en_i && flush_i));
      Bytes_A: assert (!in_en_i || (in_bytes_i != '0 && in_bytes_i <= 5'd16));
    end
  end
`endif

endmodule
