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

  // A fourth of a product of polynomials.
  function automatic logic [158:0] quarter(input share_pkg::word_t a, input logic [31:0] b);
    quarter = '0;
    for (int unsigned k = 0; k < 32; k++) begin
      quarter = quarter ^ ((159'(a) << k) & {159{b[k]}});
    end
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
  logic [Sums*159-1:0]  quarters_q;

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

  // ---- three cycles of multiplication
  always_ff @(posedge clk_i) begin : p_multiply
    a_q      <= a;
    b_q      <= b;
    place1_q <= place;
    place2_q <= place1_q;
    en1_q    <= alive && starts;
    en2_q    <= alive && en1_q;
    for (int unsigned k = 0; k < Sums; k++) begin
      quarters_q[159*k +: 159] <= quarter(a_q, b_q[32*k +: 32]);
    end
  end

  assign product = reduced(255'(quarters_q[158:0]) ^ (255'(quarters_q[317:159]) << 32) ^ (255'(quarters_q[476:318]) << 64)
                           ^ (255'(quarters_q[635:477]) << 96));

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
