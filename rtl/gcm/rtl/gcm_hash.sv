// GHASH (NIST SP 800-38D, 6.4) of one message after the other, one block per cycle: the sum of X_i H^(n-i) over its blocks X_0 to X_(n-1).
//
// A product takes Stages cycles, so that the sum cannot be closed in each. Blocks i, i + Stages, i + 2 Stages, ... have a sum of their own,
// by Horner's rule with H^Stages; the last Stages blocks, which are the last of each sum, are multiplied by H^Stages down to H^1 instead,
// and what comes out of them is added up. Every block is multiplied once, and messages follow each other without a gap.
//
// Latency:  gcm_pkg::Stages cycles.   Throughput: one block per cycle. Never stalls; there may be cycles without a block.

module gcm_hash (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic                      first_i, // a message begins with this block, or with the next if there is none
  input  logic                      valid_i,
  input  logic [gcm_pkg::LeftW-1:0] left_i,  // blocks after this one, Stages if there are more
  input  gcm_pkg::poly_t            block_i,
  input  gcm_pkg::poly_t            power_i, // H^(left + 1), H^Stages if there are more

  // Of the block of Stages cycles ago
  output gcm_pkg::poly_t            product_o,
  output gcm_pkg::poly_t            sum_o    // with it, of a message's last block the hash
);

  localparam int unsigned Stages = gcm_pkg::Stages;
  localparam int unsigned LaneW  = $clog2(Stages);

  typedef struct packed {
    logic             valid;
    logic             ends;  // one of the last
    logic             opens; // the first of these
    logic [LaneW-1:0] lane;
  } tag_t;

  tag_t                   in, out;
  logic                   ends;
  logic [LaneW-1:0]       lane;
  gcm_pkg::poly_t         operand, product, sum_q;
  logic [128*Stages-1:0]  lanes_q;
  logic [LaneW-1:0]       lane_q;
  logic                   round_q; // a block went through every lane
  logic                   ended_q; // one of the last was there
  logic                   goes_on;

  assign ends    = left_i < gcm_pkg::LeftW'(Stages);
  assign lane    = first_i ? '0 : lane_q;
  assign goes_on = !first_i && round_q;
  assign in      = {valid_i, ends, ends && (first_i || !ended_q), lane};

  // The sum of this lane is there, or comes out of the multiplier in this cycle.
  always_comb begin : p_operand
    operand = block_i;
    if (goes_on) begin
      operand = block_i ^ (out.valid && out.lane == lane ? product : lanes_q[128*32'(lane) +: 128]);
    end
  end

  gcm_multiply u_multiply (
    .clk_i     (clk_i),
    .a_i       (operand),
    .b_i       (power_i),
    .product_o (product)
  );

  prim_delay #(.Width($bits(out)), .Cycles(Stages)) u_tag (
    .clk_i (clk_i),
    .in_i  (rst_ni ? in : '0),
    .out_o (out)
  );

  assign product_o = product;
  assign sum_o     = out.opens ? product : sum_q ^ product;

  always_ff @(posedge clk_i) begin : p_place
    if (!rst_ni) begin
      lane_q  <= '0;
      round_q <= 1'b0;
      ended_q <= 1'b0;
    end else if (valid_i || first_i) begin
      lane_q  <= lane + LaneW'(valid_i);
      round_q <= goes_on || (valid_i && lane == LaneW'(Stages - 1));
      ended_q <= valid_i && ends;
    end
  end

  always_ff @(posedge clk_i) begin : p_sums
    if (!rst_ni) begin
      lanes_q <= '0;
      sum_q   <= '0;
    end else if (out.valid) begin
      lanes_q[128*32'(out.lane) +: 128] <= product;
      if (out.ends) begin
        sum_q <= sum_o;
      end
    end
  end

endmodule
