// Makes the label of an entry that starts, and the table if it is an AND.
//
// Latency:  the entry in cycle 0, labels of operands in cycle 1. Its label is written in cycle 2 (XOR, register) or 12 (AND), and can be
// read in that cycle; it is announced one cycle earlier. The colour of an output leaves in cycle 12.   Throughput: one entry per cycle.

module ordered_row #(
  parameter  int unsigned LabelW   = 13,
  parameter  int unsigned TableW   = 9,
  localparam int unsigned ProductW = ordered_pkg::ProductW,
  localparam int unsigned OutputW  = ordered_pkg::OutputW,
  localparam int unsigned TagW     = ordered_pkg::TagW
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Same for all entries of a run
  input  garble_pkg::label_t  offset_i,
  input  aes_pkg::block_t     hash_start_i,
  input  logic [15:0]         instance_i,

  // Cycle 0
  input  logic                start_i,
  input  logic                is_and_i,
  input  logic                is_output_i,
  input  logic                not_a_i,
  input  logic                not_b_i,
  input  logic                not_c_i,
  input  logic [LabelW-1:0]   entry_i, // where its tag is
  input  logic [LabelW-1:0]   at_i,    // where its label is
  input  logic [TagW-1:0]     tag_i,
  input  logic [ProductW-1:0] product_i,
  input  logic [TableW:0]     table_i, // number of the table
  input  logic [OutputW-1:0]  out_i,

  // Cycle 1
  input  garble_pkg::label_t  a_i,
  input  garble_pkg::label_t  b_i,

  // Announced: of XORs and registers, of ANDs
  output logic [1:0]          done_o,
  output logic [2*LabelW-1:0] done_at_o,
  output logic [2*TagW-1:0]   done_tag_o,

  // Written
  output logic [1:0]          label_en_o,
  output logic [2*LabelW-1:0] label_at_o,
  output logic [2*128-1:0]    label_o,
  output logic                table_en_o,
  output logic [TableW:0]     table_o,
  output garble_pkg::table_t  table_rows_o,

  output logic                mask_en_o,
  output logic [OutputW-1:0]  mask_at_o,
  output logic                mask_o,
  output logic                masks_wait_o, // outputs that started 1 to 11 cycles ago
  output logic                busy_o        // anything on its way
);

  localparam int unsigned Latency = 12;

  // What is known of an entry from cycle 0 to its end, and what only until it is announced.
  typedef struct packed {
    logic               is_and;
    logic [LabelW-1:0]  at;
    logic [TableW:0]    number;
    logic [OutputW-1:0] out;
  } place_t;

  typedef struct packed {
    logic [LabelW-1:0] entry;
    logic [TagW-1:0]   tag;
  } notice_t;

  place_t            place0, place1, place2, place11, place12;
  notice_t           notice0, notice1, notice11;
  logic [Latency:1]  live_q, output_q; // whether something started that many cycles ago, and whether it was an output
  logic              not_a_q, not_b_q, not_c1, not_c10, colour12;
  garble_pkg::label_t a, b, xor_q, c, and11_q, and12_q;
  garble_pkg::table_t rows, rows11_q, rows12_q;

  always_comb begin : p_place
    place0         = '0;
    notice0        = '0;
    place0.is_and  = is_and_i;
    place0.at      = at_i;
    place0.number  = table_i;
    place0.out     = out_i;
    notice0.entry  = entry_i;
    notice0.tag    = tag_i;
  end

  prim_delay #(.Width($bits(place_t)), .Cycles(1)) u_place1 (.clk_i(clk_i), .in_i(place0), .out_o(place1));
  prim_delay #(.Width($bits(place_t)), .Cycles(1)) u_place2 (.clk_i(clk_i), .in_i(place1), .out_o(place2));
  prim_delay #(.Width($bits(place_t)), .Cycles(9)) u_place11 (.clk_i(clk_i), .in_i(place2), .out_o(place11));
  prim_delay #(.Width($bits(place_t)), .Cycles(1)) u_place12 (.clk_i(clk_i), .in_i(place11), .out_o(place12));

  prim_delay #(.Width($bits(notice_t)), .Cycles(1)) u_notice1 (.clk_i(clk_i), .in_i(notice0), .out_o(notice1));
  prim_delay #(.Width($bits(notice_t)), .Cycles(10)) u_notice11 (.clk_i(clk_i), .in_i(notice1), .out_o(notice11));
  prim_delay #(.Width(1), .Cycles(1)) u_not_c1 (.clk_i(clk_i), .in_i(not_c_i), .out_o(not_c1));
  prim_delay #(.Width(1), .Cycles(9)) u_not_c10 (.clk_i(clk_i), .in_i(not_c1), .out_o(not_c10));

  always_ff @(posedge clk_i) begin : p_live
    if (!rst_ni) begin
      live_q   <= '0;
      output_q <= '0;
    end else begin
      live_q   <= {live_q[Latency-1:1], start_i};
      output_q <= {output_q[Latency-1:1], start_i && is_output_i};
    end
  end

  assign masks_wait_o = output_q[Latency-1:1] != '0;
  assign busy_o       = live_q != '0;

  // ---- labels
  always_ff @(posedge clk_i) begin : p_labels
    not_a_q  <= not_a_i;
    not_b_q  <= not_b_i;
    xor_q    <= a ^ b ^ (offset_i & {128{not_c1}});
    and11_q  <= c ^ (offset_i & {128{not_c10}});
    and12_q  <= and11_q;
    rows11_q <= rows;
    rows12_q <= rows11_q;
  end

  assign a = a_i ^ (offset_i & {128{not_a_q}});
  assign b = b_i ^ (offset_i & {128{not_b_q}});

  garble_engine u_engine (
    .clk_i    (clk_i),
    .offset_i (offset_i),
    .start_i  (hash_start_i),
    .gate_i   ({product_i, instance_i}),
    .a_i      (a),
    .b_i      (b),
    .table_o  (rows),
    .c_o      (c)
  );

  assign done_o       = {live_q[11] && place11.is_and, live_q[1] && !place1.is_and};
  assign done_at_o    = {notice11.entry, notice1.entry};
  assign done_tag_o   = {notice11.tag, notice1.tag};
  assign label_en_o   = {live_q[12] && place12.is_and, live_q[2] && !place2.is_and};
  assign label_at_o   = {place12.at, place2.at};
  assign label_o      = {and12_q, xor_q};
  assign table_en_o   = live_q[12] && place12.is_and;
  assign table_o      = place12.number;
  assign table_rows_o = rows12_q;

  // ---- colours: those of XORs and registers wait as long as those of ANDs, ten cycles
  prim_delay #(.Width(1), .Cycles(10)) u_colour (.clk_i(clk_i), .in_i(xor_q[0]), .out_o(colour12));

  assign mask_en_o = output_q[12];
  assign mask_at_o = place12.out;
  assign mask_o    = place12.is_and ? and12_q[0] : colour12;

endmodule
