// The next round key of AES-128 (FIPS 197, 5.2): w_4 = w_0 + SubWord(RotWord(w_3)) + rc, w_i+4 = w_i + w_i+3.
//
// Latency:  none.

module aes_key_round #(
  parameter int unsigned Round = 1 // of the key that comes out, 1 to 10
) (
  input  aes_pkg::block_t key_i,
  output aes_pkg::block_t key_o
);

  logic [31:0] rotated, substituted, w0, w1, w2, w3;

  // RotWord: byte 0 of the word comes from byte 1.
  assign rotated = {key_i[103:96], key_i[127:104]};

  aes_sub_word #(.Bytes(4)) u_sub_word (
    .in_i  (rotated),
    .out_o (substituted)
  );

  assign w0    = key_i[31:0] ^ substituted ^ {24'b0, aes_pkg::rcon(Round)};
  assign w1    = key_i[63:32] ^ w0;
  assign w2    = key_i[95:64] ^ w1;
  assign w3    = key_i[127:96] ^ w2;
  assign key_o = {w3, w2, w1, w0};

endmodule
