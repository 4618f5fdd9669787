// Multiplies words, element by element, modulo 2^64 or 2^128; of bits it is AND.
//
// A product modulo 2^128 takes ten products of 32 bits, as numbers of four digits; two modulo 2^64 take six of the same ten.
//
// Latency:  4 cycles, from registers.   Throughput: one word per cycle. Never stalls.

module share_mul #(
  parameter bit Rings = 1'b1 // without, there are only bits
) (
  input  logic             clk_i,

  input  share_pkg::ring_e ring_i,
  input  share_pkg::word_t a_i,
  input  share_pkg::word_t b_i,
  output share_pkg::word_t product_o
);

  if (!Rings) begin : g_bits
    logic unused_ring;

    assign unused_ring = ^ring_i;

    prim_delay #(.Width(128), .Cycles(4)) u_delay (
      .clk_i (clk_i),
      .in_i  (a_i & b_i),
      .out_o (product_o)
    );
  end else begin : g_rings
    share_pkg::ring_e ring1_q, ring2_q, ring3_q;
    share_pkg::word_t a_q, b_q, and2_q, and3_q, product_q;
    logic [63:0]      p00_q, p01_q, p10_q, p02_q, p11_q, p20_q; // p_ij = digit i of a times digit j of b
    logic [31:0]      p03_q, p12_q, p21_q, p30_q;
    logic             two; // elements in a word
    logic [31:0]      a0, b0; // or the digits 2, to be multiplied with digits 2 and 3
    logic [127:0]     low_q;
    logic [63:0]      high_q;

    assign two = ring1_q == share_pkg::Z64;
    assign a0  = two ? a_q[95:64] : a_q[31:0];
    assign b0  = two ? b_q[95:64] : b_q[31:0];

    always_ff @(posedge clk_i) begin : p_products
      ring1_q <= ring_i;
      ring2_q <= ring1_q;
      ring3_q <= ring2_q;
      a_q     <= a_i;
      b_q     <= b_i;
      and2_q  <= ring1_q == share_pkg::Bits ? a_q & b_q : '0;
      and3_q  <= and2_q;
      p00_q   <= 64'(a_q[31:0]) * 64'(b_q[31:0]);
      p01_q   <= 64'(a_q[31:0]) * 64'(b_q[63:32]);
      p10_q   <= 64'(a_q[63:32]) * 64'(b_q[31:0]);
      p02_q   <= 64'(a0) * 64'(b_q[95:64]);
      p11_q   <= two ? '0 : 64'(a_q[63:32]) * 64'(b_q[63:32]);
      p20_q   <= two ? '0 : 64'(a_q[95:64]) * 64'(b_q[31:0]);
      p03_q   <= a0 * b_q[127:96];
      p12_q   <= two ? '0 : a_q[63:32] * b_q[95:64];
      p21_q   <= two ? '0 : a_q[95:64] * b_q[63:32];
      p30_q   <= a_q[127:96] * b0;
    end

    // Digits 0 and 1 carry into the others unless these are another element.
    always_ff @(posedge clk_i) begin : p_sums
      low_q     <= 128'(p00_q) + (128'(p01_q) << 32) + (128'(p10_q) << 32);
      high_q    <= p02_q + p11_q + p20_q + ({32'b0, p03_q + p12_q + p21_q + p30_q} << 32);
      product_q <= ring3_q == share_pkg::Bits ? and3_q
          : {high_q + (ring3_q == share_pkg::Z64 ? 64'b0 : low_q[127:64]), low_q[63:0]};
    end

    assign product_o = product_q;
  end

endmodule
