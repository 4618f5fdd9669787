// Labels from a seed: label n is AES_seed(n), n as a number of 128 bits from 0 up: AES-128 in counter mode (NIST SP 800-38A, 6.5), the output
// function of its deterministic generator (NIST SP 800-90A, 10.2.1). The seed is used for nothing else, and by one card only.
//
// The count goes on over runs: no label is made twice from a seed, unless it is written again.
//
// Latency:  the first label 12 cycles after restart_i.   Throughput: one label per cycle.
// Back-pressure: labels that nobody takes wait; no more are started than there is room for.

module garble_labels #(
  parameter int unsigned Depth = 16 // a power of two, more than the rounds of AES
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               wipe_i,

  input  aes_pkg::block_t    seed_i,
  input  logic               restart_i, // the seed is another from the next cycle on
  input  logic               en_i,      // whether labels are made

  output garble_pkg::label_t label_o,
  output logic               valid_o,
  input  logic               ready_i,
  output logic [63:0]        made_o     // labels that were taken since the seed was written
);

  localparam int unsigned Latency = 10;
  localparam int unsigned CountW  = $clog2(Depth) + 1;

  logic [63:0]        number_q, made_q;
  logic [CountW-1:0]  owed_q; // started, and not taken
  logic [Latency-1:0] flight_q;
  logic               fresh, starts, takes, forgets_q;
  aes_pkg::block_t    made;

  assign fresh  = !rst_ni || wipe_i || restart_i;
  assign starts = en_i && owed_q != CountW'(Depth);
  assign takes  = valid_o && ready_i;
  assign made_o = made_q;

  always_ff @(posedge clk_i) begin : p_count
    if (fresh) begin
      number_q <= '0;
      made_q   <= '0;
      owed_q   <= '0;
      flight_q <= '0;
    end else begin
      number_q <= number_q + 64'(starts);
      made_q   <= made_q + 64'(takes);
      owed_q   <= owed_q + CountW'(starts) - CountW'(takes);
      flight_q <= {flight_q[Latency-2:0], starts};
    end
    forgets_q <= restart_i;
  end

  aes_pipeline u_aes (
    .clk_i   (clk_i),
    .key_i   (seed_i),
    .block_i ({64'b0, number_q}),
    .block_o (made)
  );

  /* verilator lint_off PINCONNECTEMPTY */
  garble_queue #(.Depth(Depth)) u_queue (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !restart_i && !forgets_q),
    .wipe_i      (wipe_i),
    .in_data_i   (made),
    .in_valid_i  (flight_q[Latency-1]),
    .in_ready_o  (), // there is room for all that was started
    .out_data_o  (label_o),
    .out_valid_o (valid_o),
    .out_ready_i (ready_i),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

endmodule
