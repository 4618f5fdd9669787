// Garbles one AND per cycle: half-gates (Zahur, Rosulek, Evans, "Two Halves Make a Whole", EUROCRYPT 2015). With p, q the colours of
// the zero-labels A, B, D the offset, g the number of the gate, + being XOR:
//
//     T_G = H(A, 2g) + H(A + D, 2g) + q D
//     T_E = H(B, 2g + 1) + H(B + D, 2g + 1) + A
//     C   = H(A, 2g) + p T_G + H(B, 2g + 1) + q (T_E + A)
//
// Latency:  the number in cycle 0, labels in cycle 1, the table and C in cycle 10, from gates and not from registers.
// Throughput: one gate per cycle. Never stalls: who starts has to have room for the result. No path depends on a label but as data.

module garble_engine (
  input  logic               clk_i,

  // Same for all gates of a run
  input  garble_pkg::label_t offset_i, // D
  input  aes_pkg::block_t    start_i,  // S of the hash

  input  logic [62:0]        gate_i, // cycle 0: g
  input  garble_pkg::label_t a_i,    // cycle 1: A
  input  garble_pkg::label_t b_i,    // cycle 1: B

  output garble_pkg::table_t table_o, // cycle 10
  output garble_pkg::label_t c_o      // cycle 10
);

  garble_pkg::label_t hash_a0, hash_a1, hash_b0, hash_b1, half_a, half_b, late_a;
  logic               late_q;

  garble_hash u_hash_a (
    .clk_i    (clk_i),
    .offset_i (offset_i),
    .start_i  (start_i),
    .tweak_i  ({gate_i, 1'b0}),
    .label_i  (a_i),
    .hash0_o  (hash_a0),
    .hash1_o  (hash_a1)
  );

  garble_hash u_hash_b (
    .clk_i    (clk_i),
    .offset_i (offset_i),
    .start_i  (start_i),
    .tweak_i  ({gate_i, 1'b1}),
    .label_i  (b_i),
    .hash0_o  (hash_b0),
    .hash1_o  (hash_b1)
  );

  prim_delay #(.Width(129), .Cycles(9)) u_late (
    .clk_i (clk_i),
    .in_i  ({b_i[0], a_i}),
    .out_o ({late_q, late_a})
  );

  assign half_a  = hash_a0 ^ hash_a1 ^ (offset_i & {128{late_q}});
  assign half_b  = hash_b0 ^ hash_b1;
  assign table_o = {half_b ^ late_a, half_a};
  assign c_o     = hash_a0 ^ (half_a & {128{late_a[0]}}) ^ hash_b0 ^ (half_b & {128{late_q}});

endmodule
