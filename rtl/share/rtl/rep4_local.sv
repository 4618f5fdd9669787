// The first stage of products of four parties, whole: rep4_core, and codes of the messages that this party vouches for. What it sends leaves;
// what it vouches for ends here, in one of two codes, the first of them in code 0. Without checks that is dropped.
//
// Latency, throughput and back-pressure are those of rep4_core and rep4_code: words wait while a code begins or ends.

module rep4_local #(
  parameter int unsigned Fold   = 1,
  parameter int unsigned Flight = 32
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                key_en_i,
  input  logic [1:0]          key_number_i,
  input  aes_pkg::block_t     key_i,
  output logic                ready_o,
  output logic                idle_o, // but for codes

  input  logic                scrub_i,
  output logic                scrubs_o,

  // Which party it is, which cross terms it sends (at least one), whether it vouches for the others. Stable while commands or codes are there
  input  share_pkg::form_t    form_i,
  input  logic [2:0]          sends_i,
  input  logic                checks_i,

  // Codes of a layer begin, before its commands: the keys of this party and the receivers, the tuples of the masks
  input  logic                begin_valid_i,
  output logic                begin_ready_o,
  input  logic [255:0]        keys_i,
  input  logic [31:0]         used_i,
  input  logic [15:0]         lane_i,
  input  logic [63:0]         counter_i,
  input  logic [31:0]         chunk_i,

  input  share_pkg::command_t command_i,
  input  logic                command_valid_i,
  output logic                command_ready_o,

  input  logic [383:0]        in_a_i,
  input  logic [383:0]        in_b_i,
  input  logic                in_valid_i,
  output logic                in_ready_o,

  output logic [383:0]        out_data_o,
  output logic                out_valid_o,
  input  logic                out_ready_i,
  output logic [383:0]        message_data_o,
  output logic [2:0]          message_valid_o,
  input  logic [2:0]          message_ready_i,
  output logic [4:0]          out_bytes_o,
  output logic                out_last_o,
  output logic                out_product_o,
  output logic [1:0]          out_closes_o,
  output logic [15:0]         out_tag_o,

  output logic [255:0]        code_o,
  output logic [1:0]          code_valid_o,
  input  logic [1:0]          code_ready_i
);

  logic [2:0]   valid, ready;
  logic [1:0]   used, idle, takes;
  logic [255:0] vouched;     // words of what codes 0 and 1 are of
  logic [1:0]   vouched_en;
  logic         alive;

  assign alive           = rst_ni && !scrubs_o && !scrub_i;
  assign message_valid_o = valid & sends_i;
  assign begin_ready_o   = alive && idle == '1;

  rep4_core #(.Fold(Fold), .Flight(Flight)) u_core (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .key_en_i        (key_en_i),
    .key_number_i    (key_number_i),
    .key_i           (key_i),
    .ready_o         (ready_o),
    .idle_o          (idle_o),
    .scrub_i         (scrub_i),
    .scrubs_o        (scrubs_o),
    .form_i          (form_i),
    .command_i       (command_i),
    .command_valid_i (command_valid_i),
    .command_ready_o (command_ready_o),
    .in_a_i          (in_a_i),
    .in_b_i          (in_b_i),
    .in_valid_i      (in_valid_i),
    .in_ready_o      (in_ready_o),
    .out_data_o      (out_data_o),
    .out_valid_o     (out_valid_o),
    .out_ready_i     (out_ready_i),
    .message_data_o  (message_data_o),
    .message_valid_o (valid),
    .message_ready_i (ready),
    .out_bytes_o     (out_bytes_o),
    .out_last_o      (out_last_o),
    .out_product_o   (out_product_o),
    .out_closes_o    (out_closes_o),
    .out_tag_o       (out_tag_o)
  );

  // ---- which message goes where
  always_comb begin : p_route
    used       = '0;
    vouched    = '0;
    vouched_en = '0;
    ready      = message_ready_i & sends_i;
    for (int unsigned k = 0; k < 3; k++) begin
      if (!sends_i[k]) begin
        if (!used[0]) begin
          used[0]          = 1'b1;
          vouched[127:0]   = message_data_o[128*k +: 128];
          vouched_en[0]    = valid[k];
          ready[k]         = !checks_i || takes[0];
        end else begin
          used[1]          = 1'b1;
          vouched[255:128] = message_data_o[128*k +: 128];
          vouched_en[1]    = valid[k];
          ready[k]         = !checks_i || takes[1];
        end
      end
    end
  end

  for (genvar k = 0; k < 2; k++) begin : g_code
    rep4_code u_code (
      .clk_i        (clk_i),
      .rst_ni       (rst_ni),
      .wipe_i       (!alive),
      .begin_i      (begin_valid_i && begin_ready_o && checks_i && used[k]),
      .key_i        (keys_i[128*k +: 128]),
      .used_i       (used_i[16*k +: 16]),
      .lane_i       (lane_i),
      .counter_i    (counter_i),
      .chunk_i      (chunk_i),
      .idle_o       (idle[k]),
      .in_data_i    (vouched[128*k +: 128]),
      .in_bytes_i   (out_bytes_o),
      .in_last_i    (out_last_o),
      .in_closes_i  (out_closes_o),
      .in_valid_i   (vouched_en[k] && checks_i),
      .in_ready_o   (takes[k]),
      .code_o       (code_o[128*k +: 128]),
      .code_valid_o (code_valid_o[k]),
      .code_ready_i (code_ready_i[k])
    );
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (alive) begin
      Sends_A: assert (valid == '0 || sends_i != '0);
    end
  end
`endif

endmodule
