// AES-128 (FIPS 197) of one block at a time: for keys and masks that are needed once in a while.
//
// Latency:  10 cycles from en_i until done_o, which stays high until the next.   Throughput: one block in 10 cycles.

module share_aes (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            wipe_i,

  input  logic            en_i,
  input  aes_pkg::block_t key_i,
  input  aes_pkg::block_t block_i,
  output aes_pkg::block_t block_o,
  output logic            done_o
);

  aes_pkg::block_t state_q, key_q, substituted, shifted, mixed, key_next;
  logic [31:0]     rotated, key_substituted, w0, w1, w2, w3;
  logic [7:0]      rcon_q;
  logic [3:0]      left_q; // rounds

  aes_sub_word #(.Bytes(16)) u_sub_bytes (
    .in_i  (state_q),
    .out_o (substituted)
  );

  aes_sub_word #(.Bytes(4)) u_sub_word (
    .in_i  (rotated),
    .out_o (key_substituted)
  );

  assign rotated  = {key_q[103:96], key_q[127:104]};
  assign w0       = key_q[31:0] ^ key_substituted ^ {24'b0, rcon_q};
  assign w1       = key_q[63:32] ^ w0;
  assign w2       = key_q[95:64] ^ w1;
  assign w3       = key_q[127:96] ^ w2;
  assign key_next = {w3, w2, w1, w0};
  assign shifted  = aes_pkg::shift_rows(substituted);
  assign mixed    = aes_pkg::mix_columns(shifted);
  assign block_o  = state_q;
  assign done_o   = left_q == '0;

  always_ff @(posedge clk_i) begin : p_rounds
    if (!rst_ni || wipe_i) begin
      state_q <= '0;
      key_q   <= '0;
      rcon_q  <= '0;
      left_q  <= '0;
    end else if (en_i) begin
      state_q <= block_i ^ key_i;
      key_q   <= key_i;
      rcon_q  <= 8'h01;
      left_q  <= 4'd10;
    end else if (left_q != '0) begin
      state_q <= (left_q == 4'd1 ? shifted : mixed) ^ key_next;
      key_q   <= key_next;
      rcon_q  <= aes_pkg::xtime(rcon_q);
      left_q  <= left_q - 4'd1;
    end
  end

endmodule
