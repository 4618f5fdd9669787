// Words of shares, the rings whose elements they hold, and the commands of cores.
package share_pkg;

  // 128 bits of a column: rows of bits, two elements modulo 2^64, or one modulo 2^128; the first row in the lowest bits.
  typedef logic [127:0] word_t;

  typedef enum logic [1:0] {
    Bits = 2'd0,
    Z64  = 2'd1,
    Z128 = 2'd2
  } ring_e;

  // On pairs of columns a and b, component by component but for products; results of several pairs are added up
  typedef enum logic [2:0] {
    Add     = 3'd0, // a + b
    Sub     = 3'd1, // a - b
    Scale   = 3'd2, // a b, where b is public: each component of it is the constant
    Product = 3'd3, // of shares, masked
    Random  = 3'd4  // what is drawn
  } op_e;

  // Word by word; of several pairs a word of each comes before the next word of the first.
  typedef struct packed {
    op_e         op;
    ring_e       ring;
    logic        sum;     // over the rows: the result is one element. Not of bits
    logic [15:0] beats;   // of a column, at least 1
    logic [15:0] pairs;   // of columns, at least 1; of Random 1
    logic [11:0] tail;    // bytes of the last beat that hold rows, at least 1
    logic [15:0] tag;     // comes back with the result
    logic [1:0]  closes;  // where codes are made: 1 if it is the last of a message, 3 if of all that a code is of
    logic [15:0] used;    // use, lane, counter of the first block, chunk: what the PRF is told (docs/adr/0009)
    logic [15:0] lane;
    logic [63:0] counter;
    logic [31:0] chunk;
  } command_t;

  // Which party of four a core is (crates/device, Form::fourfold). Of draw k the lowest bits of the use are sub k: the number of the joint message
  // that it masks.
  typedef struct packed {
    logic        swapped; // the opposite cross term goes to component 2, not 0
    logic        five;    // there are five draws, not four
    logic [14:0] subs;    // 3 bits each, that of draw 0 lowest
  } form_t;

  // The key of a draw: the number of the component that it is kept in.
  function automatic logic [1:0] key_of(input logic swapped, input logic [2:0] draw);
    unique case (draw)
      3'd0:       key_of = 2'd2;
      3'd1, 3'd4: key_of = 2'd1;
      3'd2:       key_of = swapped ? 2'd0 : 2'd2;
      3'd3:       key_of = 2'd0;
      default:    key_of = 2'd3;
    endcase
  endfunction

  function automatic logic [2:0] sub_of(input logic [14:0] subs, input logic [2:0] draw);
    unique case (draw)
      3'd0:    sub_of = subs[2:0];
      3'd1:    sub_of = subs[5:3];
      3'd2:    sub_of = subs[8:6];
      3'd3:    sub_of = subs[11:9];
      default: sub_of = subs[14:12];
    endcase
  endfunction

  // What the PRF encrypts: BE16 use, BE16 lane, BE64 counter, BE32 chunk, byte k in bits 8k to 8k+7.
  function automatic word_t prf_input(input logic [15:0] used, input logic [15:0] lane, input logic [63:0] counter,
                                      input logic [31:0] chunk);
    word_t big;
    big = {used, lane, counter, chunk};
    for (int unsigned k = 0; k < 16; k++) begin
      prf_input[8*k +: 8] = big[8*(15-k) +: 8];
    end
  endfunction

  // a + b, or a - b, which is a + ~b + 1, by one adder. Between the halves it has a place that hands on the carry, or makes that of another
  // element. Of bits the sum has nothing to carry.
  function automatic word_t combine(input ring_e ring, input logic less, input word_t a, input word_t b);
    logic        bits, minus, unused_carry;
    word_t       c, d;
    logic [63:0] high, low;
    bits  = ring == share_pkg::Bits;
    minus = less && !bits;
    c     = bits ? '0 : a;
    d     = bits ? a ^ b : b ^ {128{minus}};
    {high, unused_carry, low} = {c[127:64], ring == share_pkg::Z128 || minus, c[63:0]}
        + {d[127:64], ring == share_pkg::Z64 && minus, d[63:0]} + 129'(minus);
    combine = {high, low};
  endfunction

  function automatic word_t plus(input ring_e ring, input word_t a, input word_t b);
    plus = combine(ring, 1'b0, a, b);
  endfunction

  function automatic word_t minus(input ring_e ring, input word_t a, input word_t b);
    minus = combine(ring, 1'b1, a, b);
  endfunction

  // The element that the elements of a word add up to.
  function automatic word_t across(input ring_e ring, input word_t a);
    across = ring == share_pkg::Z64 ? {64'b0, a[63:0] + a[127:64]} : a;
  endfunction

endpackage
