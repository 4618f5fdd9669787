// Expands a key of AES-128 (FIPS 197, 5.2) once and keeps its round keys.
//
// Latency:  11 cycles from en_i until ready_o. Wiped by wipe_i.

module share_keys (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              wipe_i,

  input  logic              en_i,
  input  aes_pkg::block_t   key_i,
  output logic [11*128-1:0] keys_o, // round 0 lowest
  output logic              ready_o
);

  logic [11*128-1:0] keys_q;
  logic [3:0]        left_q; // rounds that are still to be expanded
  logic              ready_q;
  logic [7:0]        rcon_q;
  logic [31:0]       rotated, substituted, w0, w1, w2, w3;
  aes_pkg::block_t   last;

  // The newest is the highest; when all are there, they lie in order.
  assign last    = keys_q[10*128 +: 128];
  assign rotated = {last[103:96], last[127:104]};

  aes_sub_word #(.Bytes(4)) u_sub_word (
    .in_i  (rotated),
    .out_o (substituted)
  );

  assign w0      = last[31:0] ^ substituted ^ {24'b0, rcon_q};
  assign w1      = last[63:32] ^ w0;
  assign w2      = last[95:64] ^ w1;
  assign w3      = last[127:96] ^ w2;
  assign keys_o  = keys_q;
  assign ready_o = ready_q;

  always_ff @(posedge clk_i) begin : p_control
    if (!rst_ni || wipe_i) begin
      left_q  <= '0;
      ready_q <= 1'b0;
    end else if (en_i) begin
      left_q  <= 4'd10;
      ready_q <= 1'b0;
    end else if (left_q != '0) begin
      left_q  <= left_q - 4'd1;
      ready_q <= left_q == 4'd1;
    end
  end

  always_ff @(posedge clk_i) begin : p_keys
    if (!rst_ni || wipe_i) begin
      keys_q <= '0;
      rcon_q <= '0;
    end else if (en_i) begin
      keys_q <= {key_i, keys_q[11*128-1:128]};
      rcon_q <= 8'h01;
    end else if (left_q != '0) begin
      keys_q <= {w3, w2, w1, w0, keys_q[11*128-1:128]};
      rcon_q <= aes_pkg::xtime(rcon_q);
    end
  end

endmodule
