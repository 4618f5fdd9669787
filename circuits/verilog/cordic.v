// CORDIC in rotation mode (Volder 1959, "The CORDIC trigonometric computing technique"): the vector (x, y) turned by the angle z, and made
// longer by 1.6467..., in 31 cycles. Numbers have 32 bits in two's complement, 30 of them behind the point; angles are radians, from -1.74 to
// 1.74. From x = 0.6072... (the inverse of that length) and y = 0 it gives cosine and sine.
(* cycles = 31 *)
module CORDIC_32_31(
  input clk, rst,
  input signed [31:0] x_in, y_in, z_in,
  output signed [31:0] x_out, y_out, z_out
);
  reg signed [31:0] x, y, z;
  reg [4:0] step;
  reg [31:0] angle;

  // Arcus tangens of 2^-step.
  always @*
    case (step)
      5'd0: angle = 32'd843314857;
      5'd1: angle = 32'd497837829;
      5'd2: angle = 32'd263043837;
      5'd3: angle = 32'd133525159;
      5'd4: angle = 32'd67021687;
      5'd5: angle = 32'd33543516;
      5'd6: angle = 32'd16775851;
      5'd7: angle = 32'd8388437;
      5'd8: angle = 32'd4194283;
      5'd9: angle = 32'd2097149;
      5'd10: angle = 32'd1048576;
      5'd11: angle = 32'd524288;
      5'd12: angle = 32'd262144;
      5'd13: angle = 32'd131072;
      5'd14: angle = 32'd65536;
      5'd15: angle = 32'd32768;
      5'd16: angle = 32'd16384;
      5'd17: angle = 32'd8192;
      5'd18: angle = 32'd4096;
      5'd19: angle = 32'd2048;
      5'd20: angle = 32'd1024;
      5'd21: angle = 32'd512;
      5'd22: angle = 32'd256;
      5'd23: angle = 32'd128;
      5'd24: angle = 32'd64;
      5'd25: angle = 32'd32;
      5'd26: angle = 32'd16;
      5'd27: angle = 32'd8;
      5'd28: angle = 32'd4;
      5'd29: angle = 32'd2;
      5'd30: angle = 32'd1;
      default: angle = 32'd0;
    endcase

  // Towards z = 0: a word is subtracted as its complement, and 1 more.
  wire left = z[31];
  wire signed [31:0] x_part = x >>> step, y_part = y >>> step;
  wire [32:0] x_sum = {x, 1'b1} + {y_part ^ {32{~left}}, ~left};
  wire [32:0] y_sum = {y, 1'b1} + {x_part ^ {32{left}}, left};
  wire [32:0] z_sum = {z, 1'b1} + {angle ^ {32{~left}}, ~left};
  assign {x_out, y_out, z_out} = {x_sum[32:1], y_sum[32:1], z_sum[32:1]};

  always @(posedge clk or posedge rst)
    if (rst) begin
      {x, y, z} <= {x_in, y_in, z_in};
      step <= 0;
    end else begin
      {x, y, z} <= {x_out, y_out, z_out};
      step <= step + 1;
    end
endmodule
