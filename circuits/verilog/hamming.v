// Hamming distance: in how many bits do two words differ?

// 32 bits at once.
module Hamm_32_1(input [31:0] x, y, output reg [5:0] distance);
  integer i;
  always @* begin
    distance = 0;
    for (i = 0; i < 32; i = i + 1) distance = distance + (x[i] ^ y[i]);
  end
endmodule

// One bit in every cycle: the distance of all bits so far.
module hamming_serial #(parameter W = 1) (input clk, input x, y, output [W-1:0] distance);
  reg [W-1:0] count = 0;
  assign distance = count + (x ^ y);
  always @(posedge clk) count <= distance;
endmodule

(* cycles = 32 *)
module Hamm_32_32(input clk, input x, y, output [5:0] distance);
  hamming_serial #(6) serial(clk, x, y, distance);
endmodule

(* cycles = 512 *)
module Hamm_512_512(input clk, input x, y, output [9:0] distance);
  hamming_serial #(10) serial(clk, x, y, distance);
endmodule
