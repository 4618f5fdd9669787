// AES-128 (FIPS 197) under a key that was expanded before: the masks of a core.
//
// Latency:  10 cycles, from registers.   Throughput: one block per cycle. Never stalls.

module share_prf (
  input  logic              clk_i,

  input  logic [11*128-1:0] keys_i, // those of share_keys; stable while blocks are on their way
  input  aes_pkg::block_t   block_i,
  output aes_pkg::block_t   block_o
);

  localparam int unsigned Rounds = 10;

  logic [128*(Rounds+1)-1:0] state;

  assign state[127:0] = block_i ^ keys_i[127:0];
  assign block_o      = state[128*Rounds +: 128];

  for (genvar r = 1; r <= Rounds; r++) begin : g_round
    aes_pkg::block_t state_d, state_q;

    aes_round #(.Last(r == Rounds)) u_round (
      .state_i (state[128*(r-1) +: 128]),
      .key_i   (keys_i[128*r +: 128]),
      .state_o (state_d)
    );

    always_ff @(posedge clk_i) begin : p_state
      state_q <= state_d;
    end

    assign state[128*r +: 128] = state_q;
  end

endmodule
