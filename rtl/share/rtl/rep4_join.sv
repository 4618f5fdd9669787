// The second stage of products of four parties: what others sent is added to what rep4_core left, and checked by the codes of those who
// vouch for it, in the round in which it came (docs/protocol-rep4.md).
//
// A party gets one message of each product, or two: from_two_i. Message k is added to component to_i[k]. Its code is computed from what
// came, and compared with the one that came. After a difference nothing leaves and nothing is taken until a scrub: what was
// computed up to there must not be used. Nobody may use it before checked_o in any case: that is for who keeps the shares.
//
// Latency:  one cycle; the verdict 11 cycles after the last word, and when the codes have come.   Throughput: one word of shares per cycle.
// Back-pressure: a word waits until the shares and all messages are there, and while codes begin or end. The verdict depends on all
// bits of the codes at once.

module rep4_join (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Wipes all; ends what goes on
  input  logic                scrub_i,
  output logic                scrubs_o,
  output logic                idle_o,

  // What is received. Stable while not idle
  input  logic                from_two_i,
  input  logic [3:0]          to_i, // components of message 0 and 1
  input  logic                checks_i, // whether there are codes

  // Codes of the messages of a layer begin: the key of this party and who vouches, the tuple of the mask. Of message 1 only if there are two
  input  logic                begin_valid_i,
  output logic                begin_ready_o,
  input  logic [255:0]        keys_i,
  input  logic [31:0]         used_i,
  input  logic [15:0]         lane_i,
  input  logic [63:0]         counter_i,
  input  logic [31:0]         chunk_i,

  // Shares that are not complete, and messages, word by word: with the bytes that hold rows, whether it is the last of the column, and how
  // the column closes codes, all as rep4_core says them of its shares
  input  share_pkg::ring_e    in_ring_i,
  input  logic [383:0]        in_data_i,
  input  logic [4:0]          in_bytes_i,
  input  logic                in_last_i,
  input  logic [1:0]          in_closes_i,
  input  logic [15:0]         in_tag_i,
  input  logic                in_valid_i,
  output logic                in_ready_o,
  input  logic [255:0]        message_data_i,
  input  logic [1:0]          message_valid_i,
  output logic [1:0]          message_ready_o,

  // Codes that came
  input  logic [255:0]        code_i,
  input  logic [1:0]          code_valid_i,
  output logic [1:0]          code_ready_o,

  output logic                checked_o, // for one cycle: all that came since the codes began is right
  output logic                fails_o,   // something was not; until a scrub

  // Shares that are complete
  output logic [383:0]        out_data_o,
  output logic [4:0]          out_bytes_o,
  output logic                out_last_o,
  output logic [15:0]         out_tag_o,
  output logic                out_valid_o,
  input  logic                out_ready_i
);

  localparam int unsigned OutW = 384 + 5 + 1 + 16;

  logic       scrubs_q, alive, open_q, fails_q, skid_ready, moves, begins;
  logic [4:0] scrub_q;

  assign scrubs_o = scrubs_q;
  assign alive    = rst_ni && !scrubs_q && !scrub_i;
  assign fails_o  = fails_q;

  assign begin_ready_o = alive && !fails_q && !open_q && code_idle == '1;
  assign begins        = begin_valid_i && begin_ready_o && checks_i;

  always_ff @(posedge clk_i) begin : p_scrub
    if (!rst_ni || scrub_i) begin
      scrubs_q <= 1'b1;
      scrub_q  <= '0;
    end else if (scrubs_q) begin
      scrubs_q <= scrub_q != '1;
      scrub_q  <= scrub_q + 1'b1;
    end
  end

  // ---- codes
  logic [1:0]   code_idle, code_takes, code_done, code_equal, there, used;
  logic         verdict, right;

  assign used = {from_two_i, 1'b1};

  for (genvar k = 0; k < 2; k++) begin : g_code
    share_pkg::word_t code;
    logic             valid;

    rep4_code u_code (
      .clk_i        (clk_i),
      .rst_ni       (rst_ni),
      .wipe_i       (!alive),
      .begin_i      (begins && used[k]),
      .key_i        (keys_i[128*k +: 128]),
      .used_i       (used_i[16*k +: 16]),
      .lane_i       (lane_i),
      .counter_i    (counter_i),
      .chunk_i      (chunk_i),
      .idle_o       (code_idle[k]),
      .in_data_i    (message_data_i[128*k +: 128]),
      .in_bytes_i   (in_bytes_i),
      .in_last_i    (in_last_i),
      .in_closes_i  (in_closes_i),
      .in_valid_i   (moves && checks_i && used[k]),
      .in_ready_o   (code_takes[k]),
      .code_o       (code),
      .code_valid_o (valid),
      .code_ready_i (verdict)
    );

    // Both are there, or none is needed.
    assign code_done[k]    = !used[k] || (valid && code_valid_i[k]);
    assign code_equal[k]   = !used[k] || code == code_i[128*k +: 128];
    assign code_ready_o[k] = verdict && used[k];
  end

  assign verdict   = alive && !fails_q && open_q && checks_i && code_done == '1;
  assign right     = code_equal == '1;
  assign checked_o = verdict && right;
  assign idle_o    = !open_q && !out_valid_o && code_idle == '1;

  always_ff @(posedge clk_i) begin : p_open
    if (!alive) begin
      open_q  <= 1'b0;
      fails_q <= 1'b0;
    end else begin
      open_q  <= begins || (open_q && !verdict);
      fails_q <= fails_q || (verdict && !right);
    end
  end

  // ---- shares
  logic [383:0] sum;

  assign there           = message_valid_i | ~used;
  assign moves           = alive && !fails_q && in_valid_i && there == '1 && skid_ready && (!checks_i || (code_takes | ~used) == '1);
  assign in_ready_o      = moves;
  assign message_ready_o = used & {2{moves}};

  always_comb begin : p_sum
    sum = in_data_i;
    for (int unsigned c = 0; c < 3; c++) begin
      share_pkg::word_t m0, m1;
      m0 = message_data_i[127:0] & {128{to_i[1:0] == 2'(c)}};
      m1 = message_data_i[255:128] & {128{from_two_i && to_i[3:2] == 2'(c)}};
      sum[128*c +: 128] = share_pkg::plus(in_ring_i, in_data_i[128*c +: 128], share_pkg::plus(in_ring_i, m0, m1));
    end
  end

  logic offers;

  assign out_valid_o = offers && !fails_q;

  prim_skid #(.Width(OutW)) u_out (
    .clk_i       (clk_i),
    .rst_ni      (alive),
    .in_data_i   ({in_tag_i, in_last_i, in_bytes_i, sum} & {OutW{moves}}),
    .in_valid_i  (moves),
    .in_ready_o  (skid_ready),
    .out_data_o  ({out_tag_o, out_last_o, out_bytes_o, out_data_o}),
    .out_valid_o (offers),
    .out_ready_i (out_ready_i && !fails_q)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (alive) begin
      Begun_A: assert (!moves || open_q || !checks_i);
    end
  end
`endif

endmodule
