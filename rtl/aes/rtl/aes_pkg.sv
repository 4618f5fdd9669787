// AES-128 on blocks of 128 bits. Byte k of a block, in the order of FIPS 197, is bits 8k to 8k+7; byte 4c+r is row r of column c.
package aes_pkg;

  typedef logic [127:0] block_t;

  // Round constants rc[1] to rc[10] (FIPS 197, table 5).
  function automatic logic [7:0] rcon(input int unsigned round);
    rcon = round <= 8 ? 8'h01 << (round - 1) : round == 9 ? 8'h1b : 8'h36;
  endfunction

  // Times x modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4.2).
  function automatic logic [7:0] xtime(input logic [7:0] a);
    xtime = {a[6:0], 1'b0} ^ (a[7] ? 8'h1b : 8'h00);
  endfunction

  // ShiftRows (FIPS 197, 5.1.2): row r of column c comes from column c + r.
  function automatic block_t shift_rows(input block_t s);
    for (int unsigned c = 0; c < 4; c++) begin
      for (int unsigned r = 0; r < 4; r++) begin
        shift_rows[8*(4*c+r) +: 8] = s[8*(4*((c+r)%4)+r) +: 8];
      end
    end
  endfunction

  // MixColumns (FIPS 197, 5.1.3): b_r = 2 a_r + 3 a_{r+1} + a_{r+2} + a_{r+3} = a_r + (a_0 + ... + a_3) + 2 (a_r + a_{r+1}).
  function automatic block_t mix_columns(input block_t s);
    for (int unsigned c = 0; c < 4; c++) begin
      for (int unsigned r = 0; r < 4; r++) begin
        mix_columns[8*(4*c+r) +: 8] = s[8*(4*c+r) +: 8]
            ^ s[8*(4*c+0) +: 8] ^ s[8*(4*c+1) +: 8] ^ s[8*(4*c+2) +: 8] ^ s[8*(4*c+3) +: 8]
            ^ xtime(s[8*(4*c+r) +: 8] ^ s[8*(4*c+(r+1)%4) +: 8]);
      end
    end
  endfunction

endpackage
