// The product of two numbers of 256 bits in 512 cycles: one bit of x in every cycle, the least significant first and zeros after the last;
// the whole y; one bit of the product out.
//
// Carry-save: the part of the sum that is not out yet is kept as two words, and no carry runs.
(* cycles = 512 *)
module Mult_256_512(input clk, input x, (* per = "row" *) input [255:0] y, (* per = "cycle" *) output product);
  reg [255:1] sum = 0;
  reg [254:0] carry = 0;
  wire [255:0] row = y & {256{x}};
  wire [254:0] low = sum ^ carry ^ row[254:0];
  wire [254:0] high = carry ^ ((sum ^ carry) & (row[254:0] ^ carry));
  assign product = low[0];
  always @(posedge clk) begin
    // The highest bit of the row is the only one of its weight.
    sum <= {row[255], low[254:1]};
    carry <= high;
  end
endmodule
