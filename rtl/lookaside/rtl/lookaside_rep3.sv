// rep3_core as the accelerator of several workers: products of columns of shares of three parties, and shares of random values. Each worker has
// columns of its own, as of lookaside_columns. One after the other they load them, each as fast as memory is, and the core computes for those
// whose columns are there, a whole command for each. So one loads while one computes, and others wait for answers to what they have sent.
//
// Latency:  a product's first word is there about 19 cycles after the first of its fourth column could be taken.
// Throughput: Cores words per cycle, with one cycle at most from command to command.
// Back-pressure: a worker whose columns do not come, or which does not take its results, stops the others. While keys are expanded, commands wait.

module lookaside_rep3 #(
  parameter  int unsigned Sharers = 4,    // workers, at least 2
  parameter  int unsigned Lanes   = 1,    // words of a beat, a power of two
  parameter  int unsigned Cores   = 1,    // of them that are computed in a cycle, a power of two
  parameter  int unsigned Longest = 1024, // words of a column; a power of two, at least 2 Lanes
  localparam int unsigned BeatW   = 128 * Lanes
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic                     scrub_i, // begins a scrub, of 128 cycles
  input  logic                     wipe_i,  // Longest / Lanes cycles at least, from scrub_i on

  // As of rep3_core, while no command goes on
  input  logic                     key_en_i,
  input  logic                     key_previous_i,
  input  lookaside_pkg::word_t     key_i,

  // Of each worker
  input  logic [Sharers-1:0]       start_i,
  input  logic [Sharers*128-1:0]   command_i,
  input  logic [Sharers*128-1:0]   draw_i,
  input  logic [Sharers*BeatW-1:0] in_data_i,
  input  logic [Sharers-1:0]       in_valid_i,
  output logic [Sharers-1:0]       in_ready_o,
  output logic [Sharers*BeatW-1:0] out_data_o,
  output logic [Sharers-1:0]       out_valid_o,
  input  logic [Sharers-1:0]       out_ready_i
);

  share_pkg::command_t command;

  localparam int unsigned SharerW  = $clog2(Sharers);
  localparam int unsigned PairW    = 256 * Cores;
  localparam int unsigned CommandW = $bits(command);

  logic [Sharers*CommandW-1:0] asks;
  logic [Sharers-1:0]          loads, loads_q, loader, asked, grant, granted, last, valid, ready, result_ready;
  logic [Sharers*PairW-1:0]    a, b;
  logic [PairW-1:0]            result;

  for (genvar s = 0; s < Sharers; s++) begin : g_sharer
    lookaside_columns #(.Lanes(Lanes), .Cores(Cores), .Longest(Longest)) u_columns (
      .clk_i          (clk_i),
      .rst_ni         (rst_ni),
      .wipe_i         (wipe_i),
      .start_i        (start_i[s]),
      .command_i      (command_i[128*s +: 128]),
      .draw_i         (draw_i[128*s +: 128]),
      .in_data_i      (in_data_i[BeatW*s +: BeatW]),
      .in_valid_i     (in_valid_i[s]),
      .in_ready_o     (in_ready_o[s]),
      .out_data_o     (out_data_o[BeatW*s +: BeatW]),
      .out_valid_o    (out_valid_o[s]),
      .out_ready_i    (out_ready_i[s]),
      .loads_o        (loads[s]),
      .may_load_i     (loads_q[s]),
      .ask_o          (asks[CommandW*s +: CommandW]),
      .ask_valid_o    (asked[s]),
      .ask_ready_i    (granted[s]),
      .a_o            (a[PairW*s +: PairW]),
      .b_o            (b[PairW*s +: PairW]),
      .last_o         (last[s]),
      .valid_o        (valid[s]),
      .ready_i        (ready[s]),
      .result_i       (result),
      .result_valid_i (result_valid && gives && 32'(giver) == s),
      .result_ready_o (result_ready[s])
    );

    assign ready[s] = core_ready && takes && 32'(taker) == s;
  end

  // ---- who loads: if all did at once, the core would wait for all of them
  prim_arbiter #(.Requesters(Sharers)) u_loader (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni && !wipe_i),
    .request_i (loads),
    .grant_o   (loader),
    .ready_i   ((loads & loads_q) == '0)
  );

  always_ff @(posedge clk_i) begin : p_loader
    if (!rst_ni || wipe_i) begin
      loads_q <= '0;
    end else if ((loads & loads_q) == '0) begin
      loads_q <= loader;
    end
  end

  // ---- whose command is next; the core has its commands in this order
  logic [SharerW-1:0]  chosen, taker, giver;
  logic                begins, room, command_ready, takes_room, gives_room, takes, gives;

  assign room    = command_ready && takes_room && gives_room;
  assign begins  = asked != '0 && room;
  assign granted = room ? grant : '0;

  prim_arbiter #(.Requesters(Sharers)) u_arbiter (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni && !wipe_i),
    .request_i (asked),
    .grant_o   (grant),
    .ready_i   (room)
  );

  always_comb begin : p_chosen
    chosen  = '0;
    command = asks[CommandW-1:0];
    for (int unsigned s = 0; s < Sharers; s++) begin
      if (grant[s]) begin
        chosen  = SharerW'(s);
        command = asks[CommandW*s +: CommandW];
      end
    end
  end

  // ---- whose operands the core takes, and whose results it gives
  logic core_ready, core_valid, result_valid, result_last, core_result_ready;

  assign core_valid        = takes && valid[taker];
  assign core_result_ready = gives && result_ready[giver];

  /* verilator lint_off PINCONNECTEMPTY */
  prim_fifo #(.Width(SharerW), .Depth(4)) u_takers (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   (chosen),
    .in_valid_i  (begins && command.op == share_pkg::Product),
    .in_ready_o  (takes_room),
    .out_data_o  (taker),
    .out_valid_o (takes),
    .out_ready_i (core_valid && core_ready && last[taker]),
    .count_o     ()
  );

  prim_fifo #(.Width(SharerW), .Depth(4)) u_givers (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   (chosen),
    .in_valid_i  (begins),
    .in_ready_o  (gives_room),
    .out_data_o  (giver),
    .out_valid_o (gives),
    .out_ready_i (result_valid && core_result_ready && result_last),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  logic        unused_ready, unused_idle, unused_scrubs, unused_product;
  logic [11:0] unused_bytes;
  logic [15:0] unused_tag;

  rep3_core #(.Cores(Cores)) u_core (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .key_en_i        (key_en_i),
    .key_previous_i  (key_previous_i),
    .key_i           (key_i),
    .ready_o         (unused_ready),
    .idle_o          (unused_idle),
    .scrub_i         (scrub_i),
    .scrubs_o        (unused_scrubs),
    .command_i       (command),
    .command_valid_i (begins),
    .command_ready_o (command_ready),
    .in_a_i          (a[PairW*32'(taker) +: PairW]),
    .in_b_i          (b[PairW*32'(taker) +: PairW]),
    .in_valid_i      (core_valid),
    .in_ready_o      (core_ready),
    .out_data_o      (result),
    .out_bytes_o     (unused_bytes),
    .out_last_o      (result_last),
    .out_product_o   (unused_product),
    .out_tag_o       (unused_tag),
    .out_valid_o     (result_valid),
    .out_ready_i     (core_result_ready)
  );

  logic unused;
  assign unused = ^{unused_ready, unused_idle, unused_scrubs, unused_product, unused_bytes, unused_tag};

endmodule
