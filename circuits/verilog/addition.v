// Addition modulo 2^8.

// At once.
module Add_8_1(input [7:0] x, y, output [7:0] sum);
  assign sum = x + y;
endmodule

// One bit in every cycle, the least significant first.
(* cycles = 8 *)
module Add_8_8(input clk, input x, y, (* per = "cycle" *) output sum);
  reg carry = 0;
  wire next;
  assign {next, sum} = x + y + carry;
  always @(posedge clk) carry <= next;
endmodule
