// The core of three parties behind few pins, so that it can be placed and routed by itself: what goes in comes from a shift register, what
// comes out goes through one. For measuring only.

module rep3_pins #(
  parameter  int unsigned Cores = 1,
  parameter  bit          Rings = 1'b1,
  localparam int unsigned BeatW = 256 * Cores
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic shift_i,
  input  logic keep_i, // what has come out, rather than what comes out now
  output logic shift_o
);

  share_pkg::command_t command;
  aes_pkg::block_t     key;
  logic [BeatW-1:0]    in_a, in_b;
  logic                key_en, key_previous, scrub, command_valid, in_valid, out_ready;

  localparam int unsigned InW  = $bits({command, key, in_a, in_b, key_en, key_previous, scrub, command_valid, in_valid, out_ready});
  localparam int unsigned OutW = BeatW + 12 + 1 + 1 + 16 + 6;

  logic [InW-1:0]  in_q;
  logic [OutW-1:0] out, out_q;

  assign {command, key, in_a, in_b, key_en, key_previous, scrub, command_valid, in_valid, out_ready} = in_q;
  assign shift_o = out_q[OutW-1];

  always_ff @(posedge clk_i) begin : p_shift
    in_q  <= {in_q[InW-2:0], shift_i};
    out_q <= keep_i ? {out_q[OutW-2:0], 1'b0} : out;
  end

  rep3_core #(.Cores(Cores), .Rings(Rings)) u_core (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .key_en_i        (key_en),
    .key_previous_i  (key_previous),
    .key_i           (key),
    .ready_o         (out[0]),
    .idle_o          (out[1]),
    .scrub_i         (scrub),
    .scrubs_o        (out[2]),
    .command_i       (command),
    .command_valid_i (command_valid),
    .command_ready_o (out[3]),
    .in_a_i          (in_a),
    .in_b_i          (in_b),
    .in_valid_i      (in_valid),
    .in_ready_o      (out[4]),
    .out_data_o      (out[36 +: BeatW]),
    .out_bytes_o     (out[6 +: 12]),
    .out_last_o      (out[18]),
    .out_product_o   (out[19]),
    .out_tag_o       (out[20 +: 16]),
    .out_valid_o     (out[5]),
    .out_ready_i     (out_ready)
  );

endmodule
