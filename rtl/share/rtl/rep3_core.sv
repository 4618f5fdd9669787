// What a party of three computes itself on replicated shares (u_i, u_i-1): sums, and the messages of products (Araki, Furukawa, Lindell,
// Nof, Ohara, CCS 2016; Wolfe, Patel, Munafo, Varia, Herbordt, FPL 2020), docs/protocol-rep3.md. As many cores side by side as a beat has
// words, which follow one command:
//
//     bits    r_i = u_i w_i-1 + u_i-1 (w_i + w_i-1) + rho_i - rho_i-1
//     rings   r_i = u_i (w_i + w_i-1) + u_i-1 w_i   + rho_i - rho_i-1
//
// with rho_i, rho_i-1 drawn under the party's two keys by AES in counter mode. r_i is the own component of the product, and what is sent; what
// arrives is the other one. Sums over pairs and over rows are added up before they are masked.
//
// Latency:  12 cycles from the last operand to the result's queue.   Throughput: a beat of operands per cycle, that is an AND of 128 Cores bits.
// Back-pressure: nothing starts without room for its result. No path depends on a share but as data.

module rep3_core #(
  parameter  int unsigned Cores     = 1,
  parameter  bit          Rings     = 1'b1, // not of bits alone; at most 32 cores then
  parameter  bit          PaperForm = 1'b0, // shares of bits come and go as (x_i, a_i): a_i = u_i, x_i = u_i + u_i-1. Without Rings
  parameter  int unsigned Flight    = 32,   // results that may wait or be on their way: a power of two, at least 16
  localparam int unsigned BeatW     = 256 * Cores
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Keys of AES: own, kappa_i, is 0, previous, kappa_i-1, is 1. Written while idle, or before commands start for want of them
  input  logic                key_en_i,
  input  logic                key_previous_i,
  input  aes_pkg::block_t     key_i,
  output logic                ready_o,        // both are there
  output logic                idle_o,

  // Wipes keys and all that was computed; ends commands
  input  logic                scrub_i,
  output logic                scrubs_o,

  input  share_pkg::command_t command_i,
  input  logic                command_valid_i,
  output logic                command_ready_o,

  // Operands: of each core {u_i-1, u_i}, core 0 lowest. Not of Random, which takes none
  input  logic [BeatW-1:0]    in_a_i,
  input  logic [BeatW-1:0]    in_b_i,
  input  logic                in_valid_i,
  output logic                in_ready_o,

  // Results, like operands. Of a product the second component is 0: it arrives
  output logic [BeatW-1:0]    out_data_o,
  output logic [11:0]         out_bytes_o, // of one component, that hold rows
  output logic                out_last_o,  // of the column
  output logic                out_product_o,
  output logic [15:0]         out_tag_o,
  output logic                out_valid_o,
  input  logic                out_ready_i
);

  localparam int unsigned WordsW = 128 * Cores;
  localparam int unsigned MaskAt = 11; // cycle in which masks are there
  localparam int unsigned TermAt = 4;  // and products
  localparam int unsigned Levels = Cores > 1 ? $clog2(Cores) : 1;
  localparam int unsigned QueueW = BeatW + 12 + 1 + 1 + 16;

  // ---- scrubbing: zeros go through everything
  logic       scrubs_q, alive;
  logic [6:0] scrub_q;

  assign scrubs_o = scrubs_q;
  assign alive    = rst_ni && !scrubs_q && !scrub_i;

  always_ff @(posedge clk_i) begin : p_scrub
    if (!rst_ni || scrub_i) begin
      scrubs_q <= 1'b1;
      scrub_q  <= '0;
    end else if (scrubs_q) begin
      scrubs_q <= scrub_q != '1;
      scrub_q  <= scrub_q + 1'b1;
    end
  end

  // ---- keys
  logic [11*128-1:0] own_keys, previous_keys;
  logic              own_ready, previous_ready;

  share_keys u_own_keys (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .wipe_i  (!alive),
    .en_i    (key_en_i && !key_previous_i),
    .key_i   (key_i),
    .keys_o  (own_keys),
    .ready_o (own_ready)
  );

  share_keys u_previous_keys (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .wipe_i  (!alive),
    .en_i    (key_en_i && key_previous_i),
    .key_i   (key_i),
    .keys_o  (previous_keys),
    .ready_o (previous_ready)
  );

  assign ready_o = own_ready && previous_ready;

  // ---- what starts
  share_pkg::command_t now;
  logic                start, first, last, ends, sums, taken, unused_phase, unused_masks, unused_fields;

  assign unused_fields = ^{now.beats, now.pairs, now.closes};

  share_issue #(.Step(Cores), .Flight(Flight)) u_issue (
    .clk_i           (clk_i),
    .rst_ni          (alive),
    .ready_i         (ready_o),
    .command_i       (command_i),
    .command_valid_i (command_valid_i),
    .command_ready_o (command_ready_o),
    .in_valid_i      (in_valid_i),
    .in_ready_o      (in_ready_o),
    .taken_i         (taken),
    .start_o         (start),
    .now_o           (now),
    .phase_o         (unused_phase),
    .first_o         (first),
    .last_o          (last),
    .masks_o         (unused_masks),
    .end_o           (ends),
    .idle_o          (idle_o)
  );

  // ---- cycle 0: operands. Rows that do not exist are no part of a sum
  share_pkg::ring_e  ring;
  logic              product;
  logic [WordsW-1:0] keep;
  logic [WordsW-1:0] u0, u1, w0, w1;     // components of all cores
  logic [WordsW-1:0] a0, b0, a1, b1;     // what is multiplied
  logic [WordsW-1:0] linear0, linear1;
  logic [BeatW-1:0]  blocks, masks;      // [core][key]
  logic              masked;

  // Without rings all is of bits, which leaves no adder behind.
  assign ring    = Rings ? now.ring : share_pkg::Bits;
  assign product = now.op == share_pkg::Product;
  assign sums    = Rings && now.sum;

  always_comb begin : p_operands
    for (int unsigned k = 0; k < 16 * Cores; k++) begin
      keep[8*k +: 8] = {8{start && !(sums && ends && 12'(k) >= now.tail)}};
    end
    for (int unsigned c = 0; c < Cores; c++) begin
      u0[128*c +: 128] = in_a_i[256*c +: 128] & keep[128*c +: 128];
      w0[128*c +: 128] = in_b_i[256*c +: 128] & keep[128*c +: 128];
      u1[128*c +: 128] = (in_a_i[256*c+128 +: 128] ^ (PaperForm ? in_a_i[256*c +: 128] : '0)) & keep[128*c +: 128];
      w1[128*c +: 128] = (in_b_i[256*c+128 +: 128] ^ (PaperForm ? in_b_i[256*c +: 128] : '0)) & keep[128*c +: 128];
    end
  end

  for (genvar c = 0; c < Cores; c++) begin : g_core
    share_pkg::word_t uc0, uc1, wc0, wc1, both;
    logic             bits;

    assign uc0  = u0[128*c +: 128];
    assign uc1  = u1[128*c +: 128];
    assign wc0  = w0[128*c +: 128];
    assign wc1  = w1[128*c +: 128];
    assign both = share_pkg::plus(ring, wc0, wc1);
    assign bits = ring == share_pkg::Bits;

    assign a0[128*c +: 128] = uc0;
    assign b0[128*c +: 128] = !product ? wc0 : bits ? wc1 : both;
    assign a1[128*c +: 128] = uc1;
    assign b1[128*c +: 128] = !product ? wc1 : bits ? both : wc0;
    assign linear0[128*c +: 128] = share_pkg::combine(ring, now.op == share_pkg::Sub, uc0, wc0);
    assign linear1[128*c +: 128] = share_pkg::combine(ring, now.op == share_pkg::Sub, uc1, wc1);
  end

  // ---- masks, which are there in cycle 11
  assign masked = start && last && (product || now.op == share_pkg::Random);

  for (genvar c = 0; c < Cores; c++) begin : g_masks
    aes_pkg::block_t block_q;

    always_ff @(posedge clk_i) begin : p_block
      block_q <= masked ? share_pkg::prf_input(now.used, now.lane, now.counter + 64'(c), now.chunk) : '0;
    end

    assign blocks[256*c +: 256] = {block_q, block_q};

    share_prf u_own (
      .clk_i   (clk_i),
      .keys_i  (own_keys),
      .block_i (blocks[256*c +: 128]),
      .block_o (masks[256*c +: 128])
    );

    share_prf u_previous (
      .clk_i   (clk_i),
      .keys_i  (previous_keys),
      .block_i (blocks[256*c+128 +: 128]),
      .block_o (masks[256*c+128 +: 128])
    );
  end

  // ---- cycle 4: what is added up
  logic [WordsW-1:0] multiplied0, multiplied1, added0, added1;
  share_pkg::op_e    op4;
  share_pkg::ring_e  ring4;
  logic              start4, first4, linear4;

  for (genvar c = 0; c < Cores; c++) begin : g_multiply
    share_mul #(.Rings(Rings)) u_mul0 (
      .clk_i     (clk_i),
      .ring_i    (ring),
      .a_i       (a0[128*c +: 128]),
      .b_i       (b0[128*c +: 128]),
      .product_o (multiplied0[128*c +: 128])
    );

    share_mul #(.Rings(Rings)) u_mul1 (
      .clk_i     (clk_i),
      .ring_i    (ring),
      .a_i       (a1[128*c +: 128]),
      .b_i       (b1[128*c +: 128]),
      .product_o (multiplied1[128*c +: 128])
    );
  end

  prim_delay #(.Width(2*WordsW), .Cycles(TermAt)) u_added (
    .clk_i (clk_i),
    .in_i  ({linear1, linear0}),
    .out_o ({added1, added0})
  );

  logic [2:0] op4_bits;
  logic [1:0] ring4_bits;

  assign op4     = share_pkg::op_e'(op4_bits);
  assign ring4   = Rings ? share_pkg::ring_e'(ring4_bits) : share_pkg::Bits;
  assign linear4 = op4 == share_pkg::Add || op4 == share_pkg::Sub;

  prim_delay #(.Width(7), .Cycles(TermAt)) u_control4 (
    .clk_i (clk_i),
    .in_i  ({start, first, now.op, ring}),
    .out_o ({start4, first4, op4_bits, ring4_bits})
  );

  // ---- cycle 5: sums over pairs, and over rows but for those within a beat
  logic [WordsW-1:0] sum0_d, sum1_d, sum0_q, sum1_q;

  always_comb begin : p_terms
    for (int unsigned c = 0; c < Cores; c++) begin
      share_pkg::word_t x0, y0, x1;
      x0 = linear4 ? added0[128*c +: 128] : multiplied0[128*c +: 128];
      x1 = linear4 ? added1[128*c +: 128] : op4 == share_pkg::Scale ? multiplied1[128*c +: 128] : '0;
      y0 = op4 == share_pkg::Product ? multiplied1[128*c +: 128] : '0;
      sum0_d[128*c +: 128] = share_pkg::plus(ring4, first4 ? '0 : sum0_q[128*c +: 128], share_pkg::plus(ring4, x0, y0));
      sum1_d[128*c +: 128] = share_pkg::plus(ring4, first4 ? '0 : sum1_q[128*c +: 128], x1);
    end
  end

  always_ff @(posedge clk_i) begin : p_sums
    if (!alive) begin
      sum0_q <= '0;
      sum1_q <= '0;
    end else if (start4) begin
      sum0_q <= sum0_d;
      sum1_q <= sum1_d;
    end
  end

  // ---- the same of a whole beat
  logic [BeatW-1:0]  beat11;
  logic [255:0]      whole, whole11;
  share_pkg::ring_e  ring5;
  logic [1:0]        ring5_bits;

  assign ring5 = share_pkg::ring_e'(ring5_bits);

  prim_delay #(.Width(2), .Cycles(1)) u_ring5 (
    .clk_i (clk_i),
    .in_i  (ring4_bits),
    .out_o (ring5_bits)
  );

  if (Rings) begin : g_whole
    share_whole #(.Words(Cores)) u_whole0 (
      .clk_i   (clk_i),
      .ring_i  (ring5),
      .words_i (sum0_q),
      .whole_o (whole[127:0])
    );

    share_whole #(.Words(Cores)) u_whole1 (
      .clk_i   (clk_i),
      .ring_i  (ring5),
      .words_i (sum1_q),
      .whole_o (whole[255:128])
    );

    prim_delay #(.Width(256), .Cycles(MaskAt-TermAt-1-Levels)) u_whole (
      .clk_i (clk_i),
      .in_i  (whole),
      .out_o (whole11)
    );
  end else begin : g_no_sums
    logic unused_ring5;

    assign unused_ring5 = ^ring5;
    assign whole        = '0;
    assign whole11      = whole;
  end

  prim_delay #(.Width(BeatW), .Cycles(MaskAt-TermAt-1)) u_beat (
    .clk_i (clk_i),
    .in_i  ({sum1_q, sum0_q}),
    .out_o (beat11)
  );

  // ---- cycle 11: masks
  logic                valid11, sum11, ends11, sum_ends11, product11;
  share_pkg::op_e      op11;
  share_pkg::ring_e    ring11;
  logic [2:0]          op11_bits;
  logic [1:0]          ring11_bits;
  logic [11:0]         tail11;
  logic [15:0]         tag11;
  logic [BeatW-1:0]    result, result_q;
  logic [11:0]         bytes;
  logic [29:0]         control_q;
  logic                valid_q;

  assign op11   = share_pkg::op_e'(op11_bits);
  assign ring11 = Rings ? share_pkg::ring_e'(ring11_bits) : share_pkg::Bits;

  prim_delay #(.Width(36), .Cycles(MaskAt)) u_control11 (
    .clk_i (clk_i),
    .in_i  ({start && last && alive, sums, ends, now.op, ring, now.tail, now.tag}),
    .out_o ({valid11, sum11, ends11, op11_bits, ring11_bits, tail11, tag11})
  );

  assign product11  = op11 == share_pkg::Product;
  assign sum_ends11 = sum11 && ends11;
  assign bytes      = sum11 ? (ring11 == share_pkg::Z64 ? 12'd8 : 12'd16) : ends11 ? tail11 : 12'(16 * Cores);

  always_comb begin : p_result
    for (int unsigned c = 0; c < Cores; c++) begin
      share_pkg::word_t r0, r1, own, previous;
      own      = masks[256*c +: 128];
      previous = masks[256*c+128 +: 128];
      r0       = beat11[128*c +: 128];
      r1       = beat11[WordsW+128*c +: 128];
      if (sum_ends11) begin
        {r1, r0} = c == 0 ? whole11 : '0;
        // One element of a block is drawn, its lowest.
        if (c != 0) {previous, own} = '0;
        else if (ring11 == share_pkg::Z64) {previous[127:64], own[127:64]} = '0;
      end
      if (op11 == share_pkg::Random) begin
        {r1, r0} = {previous, own};
      end
      if (PaperForm && !product11) begin
        r1 = r1 ^ r0;
      end
      r0 = share_pkg::plus(ring11, r0, share_pkg::minus(ring11, own & {128{product11}}, previous & {128{product11}}));
      result[256*c +: 256] = valid11 ? {r1, r0} : '0;
    end
  end

  always_ff @(posedge clk_i) begin : p_result_q
    valid_q   <= valid11 && alive;
    result_q  <= result;
    control_q <= {bytes, ends11, product11, tag11};
  end

  assign taken = out_valid_o && out_ready_i;

  logic                    queue_ready;
  logic [$clog2(Flight):0] unused_count;

  garble_queue #(.Width(QueueW), .Depth(Flight)) u_queue (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (!alive),
    .in_data_i   ({control_q, result_q}),
    .in_valid_i  (valid_q),
    .in_ready_o  (queue_ready),
    .out_data_o  ({out_bytes_o, out_last_o, out_product_o, out_tag_o, out_data_o}),
    .out_valid_o (out_valid_o),
    .out_ready_i (out_ready_i),
    .count_o     (unused_count)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (alive) begin
      Room_A: assert (!valid_q || queue_ready);
      KeysStay_A: assert (!key_en_i || idle_o || !ready_o);
      if (start) begin
        OnlyBits_A: assert (Rings || now.ring == share_pkg::Bits);
        Tail_A: assert (now.tail <= 12'(16 * Cores));
      end
    end
  end
  if (PaperForm && Rings) begin : g_paper
    initial PaperForm_A: assert (0);
  end
  if (Rings && Levels > MaskAt - TermAt - 2) begin : g_most
    initial MostCores_A: assert (0);
  end
`endif

endmodule
