// AES-128 (FIPS 197) with the key schedule beside the rounds: a block and a key of its own per cycle.
//
// Latency:  10 cycles, from registers.   Throughput: one block per cycle. Never stalls: who starts has to have room for the result.

module aes_pipeline (
  input  logic            clk_i,

  input  aes_pkg::block_t key_i,
  input  aes_pkg::block_t block_i,
  output aes_pkg::block_t block_o
);

  localparam int unsigned Rounds = 10;

  logic [128*Rounds-1:0]     key;
  logic [128*(Rounds+1)-1:0] state;

  assign key[127:0]   = key_i;
  assign state[127:0] = block_i ^ key_i;
  assign block_o      = state[128*Rounds +: 128];

  for (genvar r = 1; r <= Rounds; r++) begin : g_round
    aes_pkg::block_t key_d, state_d, state_q;

    aes_key_round #(.Round(r)) u_key (
      .key_i (key[128*(r-1) +: 128]),
      .key_o (key_d)
    );

    aes_round #(.Last(r == Rounds)) u_round (
      .state_i (state[128*(r-1) +: 128]),
      .key_i   (key_d),
      .state_o (state_d)
    );

    always_ff @(posedge clk_i) begin : p_state
      state_q <= state_d;
    end

    assign state[128*r +: 128] = state_q;

    if (r < Rounds) begin : g_key
      aes_pkg::block_t key_q;

      always_ff @(posedge clk_i) begin : p_key
        key_q <= key_d;
      end

      assign key[128*r +: 128] = key_q;
    end
  end

endmodule
