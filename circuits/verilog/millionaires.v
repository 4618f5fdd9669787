// Who is richer? One bit of each fortune in every cycle, the least significant first.

// 8 bits in 8 cycles: whether x >= y.
(* cycles = 8 *)
module Mill_8_8(input clk, input x, y, output at_least);
  // Whether x >= y in the bits so far: x - y has not borrowed.
  reg not_less = 1;
  assign at_least = not_less ^ ((x ^ not_less) & ~(y ^ not_less));
  always @(posedge clk) not_less <= at_least;
endmodule
