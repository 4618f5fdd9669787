// Products modulo x^128 + x^7 + x^2 + x + 1, by Horner's rule over digits of b, a stage for each, from the highest down.
//
// Latency:  gcm_pkg::Stages cycles, from registers.   Throughput: one product per cycle. Never stalls.

module gcm_multiply (
  input  logic           clk_i,

  input  gcm_pkg::poly_t a_i,
  input  gcm_pkg::poly_t b_i,
  output gcm_pkg::poly_t product_o
);

  localparam int unsigned Stages = gcm_pkg::Stages;
  localparam int unsigned Digit  = 128 / Stages;

  // What comes into each stage, and the sum also out of the last. Of b, the digit comes first.
  logic [128*(Stages+1)-1:0] sum;
  logic [128*Stages-1:0]     a;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [128*Stages-1:0]     b; // what the last stage has behind its digit
  /* verilator lint_on UNUSEDSIGNAL */

  assign sum[127:0] = '0;
  assign a[127:0]   = a_i;
  assign b[127:0]   = b_i;
  assign product_o  = sum[128*Stages +: 128];

  for (genvar s = 0; s < Stages; s++) begin : g_stage
    logic [127:0]       sum_q, a_here;
    logic [Digit-1:0]   digit;
    logic [127+Digit:0] wide;
    logic [127:0]       over;

    assign a_here = a[128*s +: 128];
    assign digit  = b[128*s+128-Digit +: Digit];

    // sum x^Digit + a digit
    always_comb begin : p_wide
      wide = {sum[128*s +: 128], {Digit{1'b0}}};
      for (int unsigned k = 0; k < Digit; k++) begin
        wide = wide ^ (digit[k] ? (128+Digit)'(a_here) << k : '0);
      end
    end

    // x^128 = x^7 + x^2 + x + 1
    assign over = 128'(wide[127+Digit:128]);

    always_ff @(posedge clk_i) begin : p_stage
      sum_q <= wide[127:0] ^ over ^ (over << 1) ^ (over << 2) ^ (over << 7);
    end

    assign sum[128*(s+1) +: 128] = sum_q;

    if (s < Stages - 1) begin : g_operands
      logic [127:0] a_q, b_q;

      always_ff @(posedge clk_i) begin : p_operands
        a_q <= a_here;
        b_q <= b[128*s +: 128] << Digit;
      end

      assign a[128*(s+1) +: 128] = a_q;
      assign b[128*(s+1) +: 128] = b_q;
    end
  end

endmodule
