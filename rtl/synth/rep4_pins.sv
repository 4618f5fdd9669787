// The first stage of four parties behind few pins, as rep3_pins has that of three. For measuring only.

module rep4_pins #(
  parameter int unsigned Fold = 6
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic shift_i,
  input  logic keep_i, // what has come out, rather than what comes out now
  output logic shift_o
);

  share_pkg::command_t command;
  share_pkg::form_t    form;
  aes_pkg::block_t     key;
  logic [383:0]        in_a, in_b;
  logic [255:0]        keys;
  logic [31:0]         used, chunk;
  logic [15:0]         lane;
  logic [63:0]         counter;
  logic [2:0]          sends, message_ready;
  logic [1:0]          key_number, code_ready;
  logic                key_en, scrub, checks, begin_valid, command_valid, in_valid, out_ready;

  localparam int unsigned InW  = $bits({command, form, key, in_a, in_b, keys, used, chunk, lane, counter, sends, message_ready, key_number,
                                        code_ready, key_en, scrub, checks, begin_valid, command_valid, in_valid, out_ready});
  localparam int unsigned OutW = 7 + 3 + 2 + 25 + 384 + 384 + 256;

  logic [InW-1:0]  in_q;
  logic [OutW-1:0] out, out_q;

  assign {command, form, key, in_a, in_b, keys, used, chunk, lane, counter, sends, message_ready, key_number,
          code_ready, key_en, scrub, checks, begin_valid, command_valid, in_valid, out_ready} = in_q;
  assign shift_o = out_q[OutW-1];

  always_ff @(posedge clk_i) begin : p_shift
    in_q  <= {in_q[InW-2:0], shift_i};
    out_q <= keep_i ? {out_q[OutW-2:0], 1'b0} : out;
  end

  rep4_local #(.Fold(Fold)) u_core (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .key_en_i        (key_en),
    .key_number_i    (key_number),
    .key_i           (key),
    .ready_o         (out[0]),
    .idle_o          (out[1]),
    .scrub_i         (scrub),
    .scrubs_o        (out[2]),
    .form_i          (form),
    .sends_i         (sends),
    .checks_i        (checks),
    .begin_valid_i   (begin_valid),
    .begin_ready_o   (out[3]),
    .keys_i          (keys),
    .used_i          (used),
    .lane_i          (lane),
    .counter_i       (counter),
    .chunk_i         (chunk),
    .command_i       (command),
    .command_valid_i (command_valid),
    .command_ready_o (out[4]),
    .in_a_i          (in_a),
    .in_b_i          (in_b),
    .in_valid_i      (in_valid),
    .in_ready_o      (out[5]),
    .out_data_o      (out[37 +: 384]),
    .out_valid_o     (out[6]),
    .out_ready_i     (out_ready),
    .message_data_o  (out[421 +: 384]),
    .message_valid_o (out[7 +: 3]),
    .message_ready_i (message_ready),
    .out_bytes_o     (out[12 +: 5]),
    .out_last_o      (out[17]),
    .out_product_o   (out[18]),
    .out_closes_o    (out[19 +: 2]),
    .out_tag_o       (out[21 +: 16]),
    .code_o          (out[805 +: 256]),
    .code_valid_o    (out[10 +: 2]),
    .code_ready_i    (code_ready)
  );

endmodule
