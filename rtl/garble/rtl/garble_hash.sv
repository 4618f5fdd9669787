// The hash of both labels of a wire under one tweak, H(X, i) = AES_k(sigma(X)) + sigma(X) with k = S + (i << 64),
// sigma(hi || lo) = (hi + lo) || hi, + being XOR: the re-keyed hash of Guo, Katz, Wang, Weng, Yu, "Better Concrete Security for
// Half-Gates Garbling (in the Multi-Instance Setting)", CRYPTO 2020. One key schedule, in step with the rounds of two AES.
//
// Latency:  the tweak in cycle 0, the zero-label in cycle 1, both hashes in cycle 10, from gates and not from registers.
// Throughput: one wire per cycle. Never stalls: who starts has to have room for the result.

module garble_hash (
  input  logic           clk_i,

  // Same for all gates of a run
  input  garble_pkg::label_t offset_i,
  input  aes_pkg::block_t    start_i, // S

  input  garble_pkg::tweak_t tweak_i, // cycle 0
  input  garble_pkg::label_t label_i, // cycle 1: X of the value 0

  output garble_pkg::label_t hash0_o, // cycle 10: H(X, i)
  output garble_pkg::label_t hash1_o  // cycle 10: H(X + offset, i)
);

  localparam int unsigned Rounds = 10;

  // Key r of a gate is there in cycle r, key 0 in cycle 1; state r, of both labels, in cycle r + 1.
  logic [128*Rounds-1:0]     key;
  logic [128*(Rounds+1)-1:0] state0, state1;
  aes_pkg::block_t           key0_q;
  garble_pkg::label_t        sigma0, sigma1, late0, late1;

  assign key[127:0]    = start_i ^ {tweak_i, 64'b0};
  assign sigma0        = garble_pkg::sigma(label_i);
  assign sigma1        = sigma0 ^ garble_pkg::sigma(offset_i);
  assign state0[127:0] = sigma0 ^ key0_q;
  assign state1[127:0] = sigma1 ^ key0_q;

  always_ff @(posedge clk_i) begin : p_key0
    key0_q <= key[127:0];
  end

  for (genvar r = 1; r <= Rounds; r++) begin : g_round
    aes_pkg::block_t key_d, key_q, state0_d, state1_d;

    aes_key_round #(.Round(r)) u_key (
      .key_i (key[128*(r-1) +: 128]),
      .key_o (key_d)
    );

    aes_round #(.Last(r == Rounds)) u_round0 (
      .state_i (state0[128*(r-1) +: 128]),
      .key_i   (key_q),
      .state_o (state0_d)
    );

    aes_round #(.Last(r == Rounds)) u_round1 (
      .state_i (state1[128*(r-1) +: 128]),
      .key_i   (key_q),
      .state_o (state1_d)
    );

    always_ff @(posedge clk_i) begin : p_key
      key_q <= key_d;
    end

    if (r == Rounds) begin : g_last
      assign state0[128*r +: 128] = state0_d;
      assign state1[128*r +: 128] = state1_d;
    end else begin : g_register
      aes_pkg::block_t state0_q, state1_q;

      always_ff @(posedge clk_i) begin : p_state
        state0_q <= state0_d;
        state1_q <= state1_d;
      end

      assign key[128*r +: 128]    = key_q;
      assign state0[128*r +: 128] = state0_q;
      assign state1[128*r +: 128] = state1_q;
    end
  end

  prim_delay #(.Width(128), .Cycles(Rounds - 1)) u_sigma (
    .clk_i (clk_i),
    .in_i  (sigma0),
    .out_o (late0)
  );

  assign late1   = late0 ^ garble_pkg::sigma(offset_i);
  assign hash0_o = state0[128*Rounds +: 128] ^ late0;
  assign hash1_o = state1[128*Rounds +: 128] ^ late1;

endmodule
