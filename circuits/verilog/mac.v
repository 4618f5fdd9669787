// Multiply and accumulate: total + x * y of fractions from -1 to 1, which are N bits in two's complement with N - 1 of them behind the point.
// The product is exact, and rounded to the nearest fraction (up, if there are two) as it is added; the total is modulo 2.

module mac #(parameter N = 8) (input clk, input signed [N-1:0] x, y, output [N-1:0] total);
  reg [N-1:0] kept = 0;
  localparam [2*N-2:0] HALF = 1 << (N - 2);
  wire signed [2*N-2:0] exact = $signed({kept, {(N-1){1'b0}}}) + x * y + $signed(HALF);
  assign total = exact[2*N-2:N-1];
  always @(posedge clk) kept <= total;
endmodule

(* cycles = 1 *)
module MAC_8_1(input clk, input signed [7:0] x, y, output [7:0] total);
  mac #(8) unit(clk, x, y, total);
endmodule

(* cycles = 1 *)
module MAC_16_1(input clk, input signed [15:0] x, y, output [15:0] total);
  mac #(16) unit(clk, x, y, total);
endmodule

(* cycles = 1 *)
module MAC_32_1(input clk, input signed [31:0] x, y, output [31:0] total);
  mac #(32) unit(clk, x, y, total);
endmodule
