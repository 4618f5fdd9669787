// The compression function of SHA-256 (NIST FIPS 180-4), all 64 rounds at once. Byte k of block, state and digest, in the order in which
// FIPS 180-4 prints them, is bits 8k to 8k + 7.
module SHA_256_1(input [511:0] block, input [255:0] state, output reg [255:0] digest);
  // The constants: fractions of the cube roots of the first 64 primes.
  function [31:0] k(input [5:0] round);
    case (round)
    6'd0: k = 32'h428a2f98; 6'd1: k = 32'h71374491; 6'd2: k = 32'hb5c0fbcf; 6'd3: k = 32'he9b5dba5;
    6'd4: k = 32'h3956c25b; 6'd5: k = 32'h59f111f1; 6'd6: k = 32'h923f82a4; 6'd7: k = 32'hab1c5ed5;
    6'd8: k = 32'hd807aa98; 6'd9: k = 32'h12835b01; 6'd10: k = 32'h243185be; 6'd11: k = 32'h550c7dc3;
    6'd12: k = 32'h72be5d74; 6'd13: k = 32'h80deb1fe; 6'd14: k = 32'h9bdc06a7; 6'd15: k = 32'hc19bf174;
    6'd16: k = 32'he49b69c1; 6'd17: k = 32'hefbe4786; 6'd18: k = 32'h0fc19dc6; 6'd19: k = 32'h240ca1cc;
    6'd20: k = 32'h2de92c6f; 6'd21: k = 32'h4a7484aa; 6'd22: k = 32'h5cb0a9dc; 6'd23: k = 32'h76f988da;
    6'd24: k = 32'h983e5152; 6'd25: k = 32'ha831c66d; 6'd26: k = 32'hb00327c8; 6'd27: k = 32'hbf597fc7;
    6'd28: k = 32'hc6e00bf3; 6'd29: k = 32'hd5a79147; 6'd30: k = 32'h06ca6351; 6'd31: k = 32'h14292967;
    6'd32: k = 32'h27b70a85; 6'd33: k = 32'h2e1b2138; 6'd34: k = 32'h4d2c6dfc; 6'd35: k = 32'h53380d13;
    6'd36: k = 32'h650a7354; 6'd37: k = 32'h766a0abb; 6'd38: k = 32'h81c2c92e; 6'd39: k = 32'h92722c85;
    6'd40: k = 32'ha2bfe8a1; 6'd41: k = 32'ha81a664b; 6'd42: k = 32'hc24b8b70; 6'd43: k = 32'hc76c51a3;
    6'd44: k = 32'hd192e819; 6'd45: k = 32'hd6990624; 6'd46: k = 32'hf40e3585; 6'd47: k = 32'h106aa070;
    6'd48: k = 32'h19a4c116; 6'd49: k = 32'h1e376c08; 6'd50: k = 32'h2748774c; 6'd51: k = 32'h34b0bcb5;
    6'd52: k = 32'h391c0cb3; 6'd53: k = 32'h4ed8aa4a; 6'd54: k = 32'h5b9cca4f; 6'd55: k = 32'h682e6ff3;
    6'd56: k = 32'h748f82ee; 6'd57: k = 32'h78a5636f; 6'd58: k = 32'h84c87814; 6'd59: k = 32'h8cc70208;
    6'd60: k = 32'h90befffa; 6'd61: k = 32'ha4506ceb; 6'd62: k = 32'hbef9a3f7; 6'd63: k = 32'hc67178f2;
    endcase
  endfunction

  // Words are big-endian.
  function [31:0] word(input [31:0] b);
    word = {b[7:0], b[15:8], b[23:16], b[31:24]};
  endfunction

  function [31:0] right(input [31:0] w, input integer by);
    right = (w >> by) | (w << (32 - by));
  endfunction

  integer t;
  reg [31:0] w [0:63];
  reg [31:0] a, b, c, d, e, f, g, h, first, second;
  always @* begin
    for (t = 0; t < 16; t = t + 1) w[t] = word(block[32 * t +: 32]);
    for (t = 16; t < 64; t = t + 1)
      w[t] = (right(w[t - 2], 17) ^ right(w[t - 2], 19) ^ (w[t - 2] >> 10)) + w[t - 7]
        + (right(w[t - 15], 7) ^ right(w[t - 15], 18) ^ (w[t - 15] >> 3)) + w[t - 16];
    {a, b, c, d} = {word(state[31:0]), word(state[63:32]), word(state[95:64]), word(state[127:96])};
    {e, f, g, h} = {word(state[159:128]), word(state[191:160]), word(state[223:192]), word(state[255:224])};
    for (t = 0; t < 64; t = t + 1) begin
      // Choice and majority by one AND for each bit.
      first = h + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + (g ^ (e & (f ^ g))) + k(t) + w[t];
      second = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + (b ^ ((a ^ b) & (b ^ c)));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    end
    digest[31:0] = word(a + word(state[31:0]));
    digest[63:32] = word(b + word(state[63:32]));
    digest[95:64] = word(c + word(state[95:64]));
    digest[127:96] = word(d + word(state[127:96]));
    digest[159:128] = word(e + word(state[159:128]));
    digest[191:160] = word(f + word(state[191:160]));
    digest[223:192] = word(g + word(state[223:192]));
    digest[255:224] = word(h + word(state[255:224]));
  end
endmodule
