// A row of the product of two matrices of 1600 x 1600 bits, over GF(2): in every cycle a column of the second matrix comes in, and a bit of
// the row goes out. A job with a row of the first matrix in each of its rows computes the whole product.
(* cycles = 1600 *)
module MatMul_1600_1600(
  (* per = "row" *) input [1599:0] row, input [1599:0] column, (* per = "cycle" *) output product
);
  assign product = ^(row & column);
endmodule
