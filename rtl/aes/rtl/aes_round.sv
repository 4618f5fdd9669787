// One round of AES (FIPS 197, 5.1): SubBytes, ShiftRows, MixColumns but in the last round, AddRoundKey.
//
// Latency:  none.

module aes_round #(
  parameter bit Last = 1'b0
) (
  input  aes_pkg::block_t state_i,
  input  aes_pkg::block_t key_i,
  output aes_pkg::block_t state_o
);

  aes_pkg::block_t substituted, shifted;

  aes_sub_word #(.Bytes(16)) u_sub_bytes (
    .in_i  (state_i),
    .out_o (substituted)
  );

  assign shifted = aes_pkg::shift_rows(substituted);
  assign state_o = (Last ? shifted : aes_pkg::mix_columns(shifted)) ^ key_i;

endmodule
