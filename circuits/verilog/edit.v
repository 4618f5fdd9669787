// A cell of the table of edit distances (Levenshtein 1966; Wagner, Fischer 1974, "The string-to-string correction problem"): the distance of
// two texts that end in the letters x and y, from those of the texts without x, without y, and without both.
//
// Neighbours in the table differ by at most one, so a cell needs only how much `left` and `up` are above `both`: -1, 0 or 1.
module Edit_8_1(input [7:0] x, y, input [15:0] both, left, up, output [15:0] distance);
  wire same = x == y;
  // left - both and up - both, modulo 4.
  wire [1:0] l = left[1:0] - both[1:0], u = up[1:0] - both[1:0];
  // One less than `both`, if a neighbour is: then the distance is `both`; otherwise it is one more, unless the letters agree.
  assign distance = both + !(same | l[1] | u[1]);
endmodule
