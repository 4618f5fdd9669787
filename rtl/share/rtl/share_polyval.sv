// POLYVAL (Gueron, Langley, Lindell, RFC 8452, section 3) of blocks as they come: the hash of docs/protocol-rep4.md.
//
// Block k goes to sum k mod 4, which is multiplied by h^4 between its blocks; at the end each sum is multiplied by the power of h that its
// last block still needs, and they are added. So the multiplication has three cycles.
//
// Latency:  the hash, at valid_o, 7 cycles after finish_i.   Throughput: one block per cycle, also just before finish_i.
// Blocks come while ready_o; a key takes 14 cycles. Never stalls.

module share_polyval (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             wipe_i,

  // h; begins a hash. Not while blocks or a hash are on their way
  input  logic             key_en_i,
  input  share_pkg::word_t key_i,
  output logic             ready_o,

  input  logic             block_en_i,
  input  share_pkg::word_t block_i,
  input  logic             finish_i, // not together with a block; what comes after it is the next hash, under the same key

  output logic             valid_o,  // for one cycle
  output share_pkg::word_t hash_o
);

  localparam int unsigned Sums = 4;

  // low + x^128 high, divided by x^128 modulo x^128 + x^127 + x^126 + x^121 + 1: multiples of it, that make the lower half vanish, are
  // added, 64 bits at a time.
  function automatic share_pkg::word_t reduced(input logic [254:0] product);
    logic [255:0] rest;
    rest = {1'b0, product};
    for (int unsigned k = 0; k < 2; k++) begin
      rest = rest ^ ((256'(rest[64*k +: 64]) << 64*k) ^ (256'(rest[64*k +: 64]) << (64*k+121)) ^ (256'(rest[64*k +: 64]) << (64*k+126))
          ^ (256'(rest[64*k +: 64]) << (64*k+127)) ^ (256'(rest[64*k +: 64]) << (64*k+128)));
    end
    reduced = rest[255:128];
  endfunction

  // Products of polynomials: of 16 terms three products of bits at a time, as a look-up table of six inputs takes them; of twice as many by
  // three of these (Karatsuba, Ofman, 1962).
  function automatic logic [30:0] product_16(input logic [15:0] a, input logic [15:0] b);
    logic three;
    for (int n = 0; n < 31; n++) begin
      product_16[n] = 1'b0;
      for (int k = n > 15 ? n - 15 : 0; k <= n && k < 16; k += 3) begin
        three = 1'b0;
        for (int j = k; j < k + 3 && j <= n && j < 16; j++) begin
          three = three ^ (a[j] & b[n-j]);
        end
        product_16[n] = product_16[n] ^ three;
      end
    end
  endfunction

  function automatic logic [62:0] product_32(input logic [31:0] a, input logic [31:0] b);
    logic [30:0] low, high, both;
    low        = product_16(a[15:0], b[15:0]);
    high       = product_16(a[31:16], b[31:16]);
    both       = product_16(a[15:0] ^ a[31:16], b[15:0] ^ b[31:16]);
    product_32 = {high, 1'b0, low} ^ {16'b0, both ^ low ^ high, 16'b0};
  endfunction

  function automatic logic [126:0] product_64(input logic [62:0] low, input logic [62:0] high, input logic [62:0] both);
    product_64 = {high, 1'b0, low} ^ {32'b0, both ^ low ^ high, 32'b0};
  endfunction

  typedef enum logic [1:0] {Powers, Blocks, Last} state_e;

  state_e               state_q;
  logic                 alive;
  logic [3:0]           step_q;   // of what is done but for blocks
  logic [1:0]           number_q; // of the next block, modulo 4
  logic [Sums-1:0]      there_q;  // sums that have a block
  logic [Sums*128-1:0]  power_q;  // h, h^2, h^3, h^4, the first one lowest
  logic [Sums*128-1:0]  sum_q;    // of blocks, before they are multiplied
  logic [Sums*128-1:0]  next_q;   // and after that
  share_pkg::word_t     a, b, a_q, b_q, product, hash_q;
  logic                 starts;
  logic [1:0]           place, place1_q, place2_q;
  logic                 en1_q, en2_q;
  logic [9*63-1:0]      parts_q;
  logic [126:0]         low, high, both;

  assign alive   = rst_ni && !wipe_i;
  assign ready_o = state_q == Blocks;

  // ---- what is multiplied
  logic [1:0] age;

  // The sum that is multiplied last has the last block, and so the first power.
  assign age = number_q - 2'd1 - step_q[1:0];

  always_comb begin : p_starts
    starts = 1'b0;
    place  = number_q;
    a      = '0;
    b      = power_q[3*128 +: 128];
    unique case (state_q)
      Powers: begin
        starts = step_q == 4'd1 || step_q == 4'd5 || step_q == 4'd9;
        place  = step_q[3:2] + 2'd1; // powers 2, 3, 4
        a      = power_q[128*step_q[3:2] +: 128];
        b      = power_q[127:0];
      end
      Blocks: begin
        starts = block_en_i;
        a      = (there_q[number_q] ? next_q[128*number_q +: 128] : '0) ^ block_i;
      end
      default: begin
        starts = step_q < 4'd4;
        place  = step_q[1:0];
        a      = there_q[step_q[1:0]] ? sum_q[128*step_q[1:0] +: 128] : '0;
        b      = power_q[128*age +: 128];
      end
    endcase
    if (!alive) begin
      a = '0;
      b = '0;
    end
  end

  // ---- three cycles of multiplication: of two digits of 32 bits, and their sum, each; of the lower half, the upper one, and theirs
  function automatic logic [95:0] digits(input logic [63:0] half);
    digits = {half[31:0] ^ half[63:32], half};
  endfunction

  logic [287:0] a_digits, b_digits;

  assign a_digits = {digits(a_q[63:0] ^ a_q[127:64]), digits(a_q[127:64]), digits(a_q[63:0])};
  assign b_digits = {digits(b_q[63:0] ^ b_q[127:64]), digits(b_q[127:64]), digits(b_q[63:0])};

  always_ff @(posedge clk_i) begin : p_multiply
    a_q      <= a;
    b_q      <= b;
    place1_q <= place;
    place2_q <= place1_q;
    en1_q    <= alive && starts;
    en2_q    <= alive && en1_q;
    for (int unsigned k = 0; k < 9; k++) begin
      parts_q[63*k +: 63] <= product_32(a_digits[32*k +: 32], b_digits[32*k +: 32]);
    end
  end

  assign low     = product_64(parts_q[0 +: 63], parts_q[63 +: 63], parts_q[126 +: 63]);
  assign high    = product_64(parts_q[189 +: 63], parts_q[252 +: 63], parts_q[315 +: 63]);
  assign both    = product_64(parts_q[378 +: 63], parts_q[441 +: 63], parts_q[504 +: 63]);
  assign product = reduced({high, 1'b0, low} ^ {64'b0, both ^ low ^ high, 64'b0});

  // ---- state
  always_ff @(posedge clk_i) begin : p_state
    if (!alive) begin
      state_q  <= Powers;
      step_q   <= 4'd15; // no key
      number_q <= '0;
      there_q  <= '0;
    end else if (key_en_i) begin
      state_q  <= Powers;
      step_q   <= '0;
      number_q <= '0;
      there_q  <= '0;
    end else begin
      unique case (state_q)
        Powers: begin
          step_q <= step_q == 4'd15 ? 4'd15 : step_q + 4'd1;
          if (step_q == 4'd12) begin
            state_q <= Blocks;
          end
        end
        Blocks: begin
          step_q <= '0;
          if (block_en_i) begin
            number_q          <= number_q + 2'd1;
            there_q[number_q] <= 1'b1;
          end
          if (finish_i) begin
            state_q <= Last;
          end
        end
        default: begin
          step_q <= step_q + 4'd1;
          if (step_q == 4'd6) begin
            state_q  <= Blocks;
            number_q <= '0;
            there_q  <= '0;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin : p_sums
    if (!alive) begin
      power_q <= '0;
      sum_q   <= '0;
      next_q  <= '0;
      hash_q  <= '0;
    end else begin
      if (key_en_i) begin
        power_q[127:0] <= key_i;
      end else if (state_q == Powers && en2_q) begin
        power_q[128*place2_q +: 128] <= product;
      end
      if (state_q == Blocks && block_en_i) begin
        sum_q[128*number_q +: 128] <= a;
      end
      if (state_q != Powers && en2_q) begin
        next_q[128*place2_q +: 128] <= product;
      end
      if (state_q == Last) begin
        // Products of the sums come in steps 2 to 5.
        hash_q <= step_q < 4'd2 ? '0 : step_q < 4'd6 ? hash_q ^ product : hash_q;
      end
    end
  end

  assign valid_o = state_q == Last && step_q == 4'd6;
  assign hash_o  = hash_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (alive) begin
      OneThing_A: assert (!(block_en_i && finish_i));
      InTime_A: assert (!(block_en_i || finish_i) || ready_o);
      KeyAlone_A: assert (!key_en_i || (state_q != Last && !block_en_i));
    end
  end
`endif

endmodule
