// AES-128 (NIST FIPS 197) in 11 cycles, with its key schedule. Byte k of key, text and cipher text, in the order in which FIPS 197 prints
// them, is bits 8k to 8k + 7.

// The S-box by 32 ANDs. From: J. Boyar, R. Peralta, "A small depth-16 circuit for the AES S-box" (2012) and "A new combinational logic
// minimization technique with applications to cryptology" (2010). There and here x0 and s0 are the most significant bits.
module aes_sbox(input [7:0] in, output [7:0] out);
  wire x0 = in[7], x1 = in[6], x2 = in[5], x3 = in[4], x4 = in[3], x5 = in[2], x6 = in[1], x7 = in[0];
  wire y14 = x3 ^ x5;
  wire y13 = x0 ^ x6;
  wire y9 = x0 ^ x3;
  wire y8 = x0 ^ x5;
  wire t0 = x1 ^ x2;
  wire y1 = t0 ^ x7;
  wire y4 = y1 ^ x3;
  wire y12 = y13 ^ y14;
  wire y2 = y1 ^ x0;
  wire y5 = y1 ^ x6;
  wire y3 = y5 ^ y8;
  wire t1 = x4 ^ y12;
  wire y15 = t1 ^ x5;
  wire y20 = t1 ^ x1;
  wire y6 = y15 ^ x7;
  wire y10 = y15 ^ t0;
  wire y11 = y20 ^ y9;
  wire y7 = x7 ^ y11;
  wire y17 = y10 ^ y11;
  wire y19 = y10 ^ y8;
  wire y16 = t0 ^ y11;
  wire y21 = y13 ^ y16;
  wire y18 = x0 ^ y16;
  wire t2 = y12 & y15;
  wire t3 = y3 & y6;
  wire t4 = t3 ^ t2;
  wire t5 = y4 & x7;
  wire t6 = t5 ^ t2;
  wire t7 = y13 & y16;
  wire t8 = y5 & y1;
  wire t9 = t8 ^ t7;
  wire t10 = y2 & y7;
  wire t11 = t10 ^ t7;
  wire t12 = y9 & y11;
  wire t13 = y14 & y17;
  wire t14 = t13 ^ t12;
  wire t15 = y8 & y10;
  wire t16 = t15 ^ t12;
  wire t17 = t4 ^ y20;
  wire t18 = t6 ^ t16;
  wire t19 = t9 ^ t14;
  wire t20 = t11 ^ t16;
  wire t21 = t17 ^ t14;
  wire t22 = t18 ^ y19;
  wire t23 = t19 ^ y21;
  wire t24 = t20 ^ y18;
  wire t25 = t21 ^ t22;
  wire t26 = t21 & t23;
  wire t27 = t24 ^ t26;
  wire t28 = t25 & t27;
  wire t29 = t28 ^ t22;
  wire t30 = t23 ^ t24;
  wire t31 = t22 ^ t26;
  wire t32 = t31 & t30;
  wire t33 = t32 ^ t24;
  wire t34 = t23 ^ t33;
  wire t35 = t27 ^ t33;
  wire t36 = t24 & t35;
  wire t37 = t36 ^ t34;
  wire t38 = t27 ^ t36;
  wire t39 = t29 & t38;
  wire t40 = t25 ^ t39;
  wire t41 = t40 ^ t37;
  wire t42 = t29 ^ t33;
  wire t43 = t29 ^ t40;
  wire t44 = t33 ^ t37;
  wire t45 = t42 ^ t41;
  wire z0 = t44 & y15;
  wire z1 = t37 & y6;
  wire z2 = t33 & x7;
  wire z3 = t43 & y16;
  wire z4 = t40 & y1;
  wire z5 = t29 & y7;
  wire z6 = t42 & y11;
  wire z7 = t45 & y17;
  wire z8 = t41 & y10;
  wire z9 = t44 & y12;
  wire z10 = t37 & y3;
  wire z11 = t33 & y4;
  wire z12 = t43 & y13;
  wire z13 = t40 & y5;
  wire z14 = t29 & y2;
  wire z15 = t42 & y9;
  wire z16 = t45 & y14;
  wire z17 = t41 & y8;
  wire tc1 = z15 ^ z16;
  wire tc2 = z10 ^ tc1;
  wire tc3 = z9 ^ tc2;
  wire tc4 = z0 ^ z2;
  wire tc5 = z1 ^ z0;
  wire tc6 = z3 ^ z4;
  wire tc7 = z12 ^ tc4;
  wire tc8 = z7 ^ tc6;
  wire tc9 = z8 ^ tc7;
  wire tc10 = tc8 ^ tc9;
  wire tc11 = tc6 ^ tc5;
  wire tc12 = z3 ^ z5;
  wire tc13 = z13 ^ tc1;
  wire tc14 = tc4 ^ tc12;
  wire s3 = tc3 ^ tc11;
  wire tc16 = z6 ^ tc8;
  wire tc17 = z14 ^ tc10;
  wire tc18 = tc13 ^ tc14;
  wire s7 = z12 ^ tc18;
  wire tc20 = z15 ^ tc16;
  wire tc21 = tc2 ^ z11;
  wire s0 = tc3 ^ tc16;
  wire s6 = tc10 ^ tc18;
  wire s4 = tc14 ^ s3;
  wire s1 = s3 ^ tc16;
  wire tc26 = tc17 ^ tc20;
  wire s2 = tc26 ^ z17;
  wire s5 = tc21 ^ tc17;
  assign out = {s0, s1, s2, s3, s4, s5, s6, s7} ^ 8'h63;
endmodule

// Columns times 3x^3 + x^2 + x + 2, or times the inverse of it.
module aes_columns #(parameter INVERSE = 0) (input [127:0] in, output reg [127:0] out);
  // Times x in GF(2^8).
  function [7:0] twice(input [7:0] b);
    twice = {b[6:0], 1'b0} ^ (8'h1b & {8{b[7]}});
  endfunction

  integer c, r;
  reg [7:0] b [0:3];
  reg [7:0] even, odd;
  always @*
    for (c = 0; c < 4; c = c + 1) begin
      for (r = 0; r < 4; r = r + 1) b[r] = in[32 * c + 8 * r +: 8];
      if (INVERSE) begin
        // The inverse is the polynomial times 4x^2 + 5.
        even = twice(twice(b[0] ^ b[2]));
        odd = twice(twice(b[1] ^ b[3]));
        b[0] = b[0] ^ even;
        b[2] = b[2] ^ even;
        b[1] = b[1] ^ odd;
        b[3] = b[3] ^ odd;
      end
      for (r = 0; r < 4; r = r + 1)
        out[32 * c + 8 * r +: 8] = twice(b[r] ^ b[(r + 1) % 4]) ^ b[(r + 1) % 4] ^ b[(r + 2) % 4] ^ b[(r + 3) % 4];
    end
endmodule

// In each of the first 10 cycles a round key is added and a round done up to MixColumns. The last round has no MixColumns: the inverse, which
// takes no AND, undoes it before the last round key is added.
(* cycles = 11 *)
module AES_128_11(input clk, rst, input [127:0] key, text, output [127:0] cipher);
  reg [127:0] state, round_key;
  reg [7:0] constant;

  wire [127:0] added = state ^ round_key;
  wire [127:0] substituted, shifted, mixed, plain;
  wire [31:0] word;
  wire [127:0] next_key;
  genvar i;
  generate
    for (i = 0; i < 16; i = i + 1) begin : bytes
      aes_sbox box(added[8 * i +: 8], substituted[8 * i +: 8]);
      // Row r moves by r columns.
      assign shifted[8 * i +: 8] = substituted[8 * ((5 * i) % 16) +: 8];
    end
    for (i = 0; i < 4; i = i + 1) begin : words
      aes_sbox box(round_key[96 + 8 * ((i + 1) % 4) +: 8], word[8 * i +: 8]);
    end
  endgenerate
  aes_columns mix(shifted, mixed);
  aes_columns #(1) unmix(state, plain);
  assign next_key[31:0] = round_key[31:0] ^ word ^ {24'b0, constant};
  assign next_key[63:32] = round_key[63:32] ^ next_key[31:0];
  assign next_key[95:64] = round_key[95:64] ^ next_key[63:32];
  assign next_key[127:96] = round_key[127:96] ^ next_key[95:64];
  assign cipher = plain ^ round_key;

  always @(posedge clk or posedge rst)
    if (rst) begin
      state <= text;
      round_key <= key;
      constant <= 1;
    end else begin
      state <= mixed;
      round_key <= next_key;
      constant <= {constant[6:0], 1'b0} ^ (8'h1b & {8{constant[7]}});
    end
endmodule
