// SubBytes of some bytes side by side: a block has 16, a word of the key schedule 4.
//
// Latency:  none.

module aes_sub_word #(
  parameter int unsigned Bytes = 4
) (
  input  logic [8*Bytes-1:0] in_i,
  output logic [8*Bytes-1:0] out_o
);

  for (genvar k = 0; k < Bytes; k++) begin : g_byte
    aes_sbox u_sbox (
      .in_i  (in_i[8*k +: 8]),
      .out_o (out_o[8*k +: 8])
    );
  end

endmodule
