// The first stage of what a party of four computes itself on replicated shares (u_0, u_1, u_2), the components that the next three parties
// lack: sums, and the cross terms of products, masked (Dalskov, Escudero, Keller, "Fantastic Four", USENIX Security 2021; Patel and others,
// HPEC 2022), docs/protocol-rep4.md:
//
//     m_0 = u_1 (w_1 + w_2) + u_2 w_1 - d_0      with the next party
//     m_1 = u_0 (w_0 + w_1) + u_1 w_0 - d_1      with the previous one
//     m_2 = u_0 w_2 + u_2 w_0 - d_2              with the one opposite
//
// with d_0, d_1, ... drawn by AES in counter mode. Each m_k is sent, or vouched for: then it goes to a code (rep4_code), outside. The product
// is, until what others send is added (rep4_join),
//
//     m_1 + d_3 + d_2 or m_2,    m_0 + d_1 + d_4,    d_0 + m_2 or d_2
//
// Sums over pairs and over rows are added up before they are masked. Multipliers and AES are used for Fold parts of a beat in turn: six
// multipliers and five AES pipelines with Fold = 1, one of each with Fold = 6.
//
// Latency:  13 cycles from the last part of the operands to the result's queue.   Throughput: a product in Fold cycles.
// Back-pressure: nothing starts without room for its result; of a result all streams are taken before the next is offered. No path depends
// on a share but as data.

module rep4_core #(
  parameter int unsigned Fold   = 1,  // 1, 2, 3, 4 or 6
  parameter int unsigned Flight = 32  // results that may wait or be on their way: a power of two, at least 16
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Keys of AES: of the components 0, 1, 2. Written while idle, or before commands start for want of them
  input  logic                key_en_i,
  input  logic [1:0]          key_number_i,
  input  aes_pkg::block_t     key_i,
  output logic                ready_o,
  output logic                idle_o,

  // Wipes keys and all that was computed; ends commands
  input  logic                scrub_i,
  output logic                scrubs_o,

  // Which party it is. Stable while commands are there
  input  share_pkg::form_t    form_i,

  input  share_pkg::command_t command_i,
  input  logic                command_valid_i,
  output logic                command_ready_o,

  // Operands {u_2, u_1, u_0}. Not of Random, which takes none
  input  logic [383:0]        in_a_i,
  input  logic [383:0]        in_b_i,
  input  logic                in_valid_i,
  output logic                in_ready_o,

  // Results, like operands, of products incomplete
  output logic [383:0]        out_data_o,
  output logic                out_valid_o,
  input  logic                out_ready_i,
  // Messages of products
  output logic [383:0]        message_data_o, // {m_2, m_1, m_0}
  output logic [2:0]          message_valid_o,
  input  logic [2:0]          message_ready_i,
  // Of result and messages
  output logic [4:0]          out_bytes_o, // that hold rows
  output logic                out_last_o,  // of the column
  output logic                out_product_o,
  output logic [1:0]          out_closes_o,
  output logic [15:0]         out_tag_o
);

  localparam int unsigned MaskAt   = 11;
  localparam int unsigned TermAt   = 4;
  localparam int unsigned Products = 6;
  localparam int unsigned Draws    = 5;
  localparam int unsigned Muls     = (Products + Fold - 1) / Fold;
  localparam int unsigned Prfs     = (Draws + Fold - 1) / Fold;
  localparam int unsigned PhaseW   = Fold > 1 ? $clog2(Fold) : 1;
  localparam int unsigned ControlW = 5 + 1 + 1 + 2 + 16;
  localparam int unsigned QueueW   = 768 + ControlW;

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
  logic [383:0] keys;
  logic [2:0]   there;

  assign ready_o = there == '1;

  for (genvar k = 0; k < 3; k++) begin : g_key
    aes_pkg::block_t key_q;
    logic            there_q;

    always_ff @(posedge clk_i) begin : p_key
      if (!alive) begin
        key_q   <= '0;
        there_q <= 1'b0;
      end else if (key_en_i && key_number_i == 2'(k)) begin
        key_q   <= key_i;
        there_q <= 1'b1;
      end
    end

    assign keys[128*k +: 128] = key_q;
    assign there[k]           = there_q;
  end

  // ---- what starts
  share_pkg::command_t now;
  logic                start, first, last, masks, ends, taken, unused_fields;
  logic [PhaseW-1:0]   phase;

  assign unused_fields = ^{now.beats, now.pairs};

  share_issue #(.Step(1), .Fold(Fold), .Flight(Flight)) u_issue (
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
    .phase_o         (phase),
    .first_o         (first),
    .last_o          (last),
    .masks_o         (masks),
    .end_o           (ends),
    .idle_o          (idle_o)
  );

  // ---- cycle 0: operands. Rows that do not exist are no part of a sum
  share_pkg::ring_e          ring;
  logic                      product;
  share_pkg::word_t          keep;
  logic [383:0]              u, w, linear;
  logic [128*Products-1:0]   a, b; // of all products

  assign ring    = now.ring;
  assign product = now.op == share_pkg::Product;

  always_comb begin : p_operands
    for (int unsigned k = 0; k < 16; k++) begin
      keep[8*k +: 8] = {8{start && !(now.sum && ends && 12'(k) >= now.tail)}};
    end
    u = in_a_i & {3{keep}};
    w = in_b_i & {3{keep}};
    for (int unsigned c = 0; c < 3; c++) begin
      linear[128*c +: 128] = share_pkg::combine(ring, now.op == share_pkg::Sub, u[128*c +: 128], w[128*c +: 128]);
    end
    // Products 2k and 2k + 1 are of cross term k, or the first of component k.
    a = {u[383:256], u[127:0], u[255:128], u[127:0], u[383:256], u[255:128]};
    b = {w[127:0], w[383:256], w[127:0], share_pkg::plus(ring, w[127:0], w[255:128]), w[255:128],
         share_pkg::plus(ring, w[255:128], w[383:256])};
    if (!product) begin
      a = {128'b0, u[383:256], 128'b0, u[255:128], 128'b0, u[127:0]};
      b = {128'b0, w[383:256], 128'b0, w[255:128], 128'b0, w[127:0]};
    end
  end

  // ---- masks, which are there in cycle 11
  logic              draws;
  logic [128*Prfs-1:0] drawn;

  assign draws = start && masks && (product || now.op == share_pkg::Random);

  for (genvar k = 0; k < Prfs; k++) begin : g_prf
    aes_pkg::block_t key_q, block_q;
    logic [2:0]      number, sub;
    logic [1:0]      which;

    // Of draws that there are not, something is drawn that nobody uses.
    assign number = 3'(32'(phase) * Prfs + k);
    assign which  = product ? share_pkg::key_of(form_i.swapped, number) : number[1:0];

    assign sub    = share_pkg::sub_of(form_i.subs, number);

    always_ff @(posedge clk_i) begin : p_block
      key_q   <= '0;
      block_q <= '0;
      if (draws && number < 3'(Draws) && which != 2'd3) begin
        key_q   <= keys[128*which +: 128];
        block_q <= share_pkg::prf_input(now.used | (product ? 16'(sub) : '0), now.lane, now.counter, now.chunk);
      end
    end

    aes_pipeline u_aes (
      .clk_i   (clk_i),
      .key_i   (key_q),
      .block_i (block_q),
      .block_o (drawn[128*k +: 128])
    );
  end

  // ---- cycle 4: what is added up
  logic [128*Muls-1:0] multiplied;
  logic [383:0]        added4;
  logic                start4, first4, linear4;
  logic [PhaseW-1:0]   phase4;
  logic [2:0]          op4_bits;
  logic [1:0]          ring4_bits;
  share_pkg::op_e      op4;
  share_pkg::ring_e    ring4;

  assign op4     = share_pkg::op_e'(op4_bits);
  assign ring4   = share_pkg::ring_e'(ring4_bits);
  assign linear4 = op4 == share_pkg::Add || op4 == share_pkg::Sub;

  for (genvar m = 0; m < Muls; m++) begin : g_mul
    share_pkg::word_t a_now, b_now;

    always_comb begin : p_pick
      a_now = '0;
      b_now = '0;
      for (int unsigned f = 0; f < Fold; f++) begin
        if (phase == PhaseW'(f) && f * Muls + m < Products) begin
          a_now = a[128*(f*Muls+m) +: 128];
          b_now = b[128*(f*Muls+m) +: 128];
        end
      end
    end

    share_mul u_mul (
      .clk_i     (clk_i),
      .ring_i    (ring),
      .a_i       (a_now),
      .b_i       (b_now),
      .product_o (multiplied[128*m +: 128])
    );
  end

  prim_delay #(.Width(384), .Cycles(TermAt)) u_added (
    .clk_i (clk_i),
    .in_i  (linear),
    .out_o (added4)
  );

  prim_delay #(.Width(7+PhaseW), .Cycles(TermAt)) u_control4 (
    .clk_i (clk_i),
    .in_i  ({start, first, phase, now.op, now.ring}),
    .out_o ({start4, first4, phase4, op4_bits, ring4_bits})
  );

  // ---- cycle 5: sums over pairs and rows
  logic [383:0] sums_d, sums_q, sums11;

  always_comb begin : p_terms
    for (int unsigned c = 0; c < 3; c++) begin
      share_pkg::word_t term;
      term = linear4 && phase4 == '0 ? added4[128*c +: 128] : '0;
      for (int unsigned f = 0; f < Fold; f++) begin
        for (int unsigned m = 0; m < Muls; m++) begin
          if (f * Muls + m == 2 * c || f * Muls + m == 2 * c + 1) begin
            term = share_pkg::plus(ring4, term, phase4 == PhaseW'(f) && !linear4 ? multiplied[128*m +: 128] : '0);
          end
        end
      end
      sums_d[128*c +: 128] = share_pkg::plus(ring4, first4 ? '0 : sums_q[128*c +: 128], term);
    end
  end

  always_ff @(posedge clk_i) begin : p_sums
    if (!alive) begin
      sums_q <= '0;
    end else if (start4) begin
      sums_q <= sums_d;
    end
  end

  prim_delay #(.Width(384), .Cycles(MaskAt-TermAt-1)) u_sums (
    .clk_i (clk_i),
    .in_i  (sums_q),
    .out_o (sums11)
  );

  // ---- cycle 11: masks. What was drawn in earlier phases is kept until the last one
  logic                  valid11, start11, sum11, ends11, product11;
  logic [PhaseW-1:0]     phase11;
  logic [2:0]            op11_bits;
  logic [1:0]            ring11_bits, closes11;
  share_pkg::op_e        op11;
  share_pkg::ring_e      ring11;
  logic [4:0]            tail11;
  logic [15:0]           tag11;
  logic [128*Draws-1:0]  kept_q, d, d_q;
  logic [383:0]          across, whole, m, m_q;
  logic [4:0]            bytes;
  logic [ControlW-1:0]   control_q, control13_q;
  logic                  valid12_q, valid13_q, random12_q;
  share_pkg::ring_e      ring12_q;
  logic [383:0]          parts, parts_q, messages_q;

  assign op11      = share_pkg::op_e'(op11_bits);
  assign ring11    = share_pkg::ring_e'(ring11_bits);
  assign product11 = op11 == share_pkg::Product;
  assign bytes     = sum11 ? (ring11 == share_pkg::Z64 ? 5'd8 : 5'd16) : ends11 ? tail11 : 5'd16;

  prim_delay #(.Width(32+PhaseW), .Cycles(MaskAt)) u_control11 (
    .clk_i (clk_i),
    .in_i  ({start && last && alive, start, now.sum, ends, phase, now.op, now.ring, now.tail[4:0], now.tag, now.closes}),
    .out_o ({valid11, start11, sum11, ends11, phase11, op11_bits, ring11_bits, tail11, tag11, closes11})
  );

  always_comb begin : p_draws
    for (int unsigned k = 0; k < Draws; k++) begin
      d[128*k +: 128] = k / Prfs == Fold - 1 ? drawn[128*(k%Prfs) +: 128] : kept_q[128*k +: 128];
      // One element of a block is drawn for a sum, its lowest.
      if (sum11 && ring11 == share_pkg::Z64) begin
        d[128*k+64 +: 64] = '0;
      end
    end
    for (int unsigned c = 0; c < 3; c++) begin
      across[128*c +: 128] = share_pkg::across(ring11, sums11[128*c +: 128]);
      whole[128*c +: 128]  = sum11 ? across[128*c +: 128] : sums11[128*c +: 128];
      m[128*c +: 128]      = share_pkg::minus(ring11, whole[128*c +: 128], d[128*c +: 128] & {128{product11}});
    end
  end

  always_ff @(posedge clk_i) begin : p_kept
    for (int unsigned k = 0; k < Draws; k++) begin
      if (!alive) begin
        kept_q[128*k +: 128] <= '0;
      end else if (start11 && phase11 == PhaseW'(k / Prfs)) begin
        kept_q[128*k +: 128] <= drawn[128*(k%Prfs) +: 128];
      end
    end
  end

  // ---- cycles 12 and 13: what the product has already
  always_comb begin : p_parts
    share_pkg::word_t to0, to2, p0, p1, p2;
    to0   = form_i.swapped ? d_q[128*2 +: 128] : m_q[128*2 +: 128];
    to2   = form_i.swapped ? m_q[128*2 +: 128] : d_q[128*2 +: 128];
    p0    = share_pkg::plus(ring12_q, share_pkg::plus(ring12_q, m_q[128*1 +: 128], d_q[128*3 +: 128]), to0);
    p1    = share_pkg::plus(ring12_q, share_pkg::plus(ring12_q, m_q[127:0], d_q[128*1 +: 128]),
                            d_q[128*4 +: 128] & {128{form_i.five}});
    p2    = share_pkg::plus(ring12_q, d_q[127:0], to2);
    parts = !control_q[18] ? (random12_q ? d_q[383:0] : m_q) : {p2, p1, p0};
  end

  always_ff @(posedge clk_i) begin : p_result
    valid12_q   <= valid11 && alive;
    valid13_q   <= valid12_q && alive;
    m_q         <= m & {384{valid11}};
    d_q         <= d & {(128*Draws){valid11}};
    ring12_q    <= ring11;
    random12_q  <= op11 == share_pkg::Random;
    control_q   <= {bytes, ends11, product11, closes11, tag11};
    control13_q <= control_q;
    parts_q     <= parts;
    messages_q  <= m_q & {384{control_q[18]}};
  end

  // ---- results wait, and leave when all streams have taken theirs
  logic       queue_ready, queue_valid;
  logic [3:0] offered, done_q, takes;
  logic [$clog2(Flight):0] unused_count;

  garble_queue #(.Width(QueueW), .Depth(Flight)) u_queue (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (!alive),
    .in_data_i   ({control13_q, messages_q, parts_q}),
    .in_valid_i  (valid13_q),
    .in_ready_o  (queue_ready),
    .out_data_o  ({out_bytes_o, out_last_o, out_product_o, out_closes_o, out_tag_o, message_data_o, out_data_o}),
    .out_valid_o (queue_valid),
    .out_ready_i (taken),
    .count_o     (unused_count)
  );

  assign offered         = {{3{out_product_o}}, 1'b1} & ~done_q & {4{queue_valid}};
  assign out_valid_o     = offered[0];
  assign message_valid_o = offered[3:1];
  assign takes           = offered & {message_ready_i, out_ready_i};
  assign taken           = queue_valid && (offered & ~takes) == '0;

  always_ff @(posedge clk_i) begin : p_done
    done_q <= alive && !taken ? done_q | takes : '0;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (alive) begin
      Room_A: assert (!valid13_q || queue_ready);
      KeysStay_A: assert (!key_en_i || idle_o || !ready_o);
      Tail_A: assert (!start || now.tail <= 12'd16);
    end
  end
  if (Fold == 0 || Fold == 5 || Fold > 6) begin : g_fold
    initial Fold_A: assert (0);
  end
`endif

endmodule
