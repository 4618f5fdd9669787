// Commands of a list, whose words a worker fetches: each is given to the intake as one of the host, when all its words are there. A command
// with `after` is given when all before it have ended. Words whose operation is 0 where a command would begin are skipped.
//
// A list ends when all of its commands have. After one that ends badly, after words that are no command, or if the worker fails, no further
// command is given, and what comes is thrown away. Nothing here depends on more than the list, which is public.
//
// Latency:  a command's first word is offered two cycles after its last one came.   Throughput: a word in a cycle in, and one out, with one
// cycle at least between two commands.
// Back-pressure: from the intake; some 32 words wait here.

module lookaside_list #(
  parameter  int unsigned Lanes = 1, // words of a beat, a power of two
  localparam int unsigned BeatW = 128 * Lanes
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // As of an accelerator
  input  logic                 start_i,
  input  logic [31:0]          words_i,  // a multiple of Lanes, at least Lanes
  input  logic                 failed_i, // the worker has: what comes are no words of the list
  input  logic [BeatW-1:0]     in_data_i,
  input  logic                 in_valid_i,
  output logic                 in_ready_o,
  output logic                 busy_o,   // words are to come, or a command goes on
  output logic [7:0]           status_o, // the first one that is bad

  // To the intake
  output lookaside_pkg::word_t command_o,
  output logic                 command_last_o,
  output logic                 command_valid_o,
  input  logic                 command_ready_i,

  // In a cycle one command ends well, and one badly
  input  logic                 ended_i,
  input  logic                 bad_i,
  input  logic [7:0]           bad_status_i
);

  localparam int unsigned LaneW = Lanes > 1 ? $clog2(Lanes) : 1;
  localparam int unsigned Most  = 16; // words of a command
  localparam int unsigned Ahead = 2 * Most;

  logic [31:0]             left_q; // words that are to come
  logic [LaneW-1:0]        lane_q;
  logic [3:0]              at_q, last_q;
  logic [9:0]              length;
  logic [7:0]              status_q;
  logic [4:0]              whole_q; // commands that wait whole
  logic [11:0]             runs_q;  // that were given and have not ended
  logic                    going_q; // one is given, until its last word is
  logic                    failed, steps, pads, wrong, room, keeps, last, lane_last, goes, moves, out_last, out_valid;
  lookaside_pkg::word_t    word, out_word;
  /* verilator lint_off UNUSEDSIGNAL */ // of both, what says how long the command is and when it goes
  lookaside_pkg::command_t head, out_head;
  /* verilator lint_on UNUSEDSIGNAL */

  assign failed    = failed_i || status_q != lookaside_pkg::StatusOk;
  assign status_o  = start_i ? lookaside_pkg::StatusOk : status_q; // not that of the list before
  assign busy_o    = left_q != '0 || whole_q != '0 || going_q || runs_q != '0;

  // ---- words of a beat, one after the other; which are a command
  assign word       = in_data_i[128*32'(lane_q) +: 128];
  assign head       = word;
  assign length     = 10'(lookaside_pkg::segments_from(head.op)) + 10'(head.sources) + 10'(head.destinations);
  assign pads       = at_q == '0 && head.op == '0;
  assign wrong      = at_q == '0 && !pads && (length > 10'(Most) || 32'(length) > left_q);
  assign steps      = in_valid_i && left_q != '0 && (failed || pads || wrong || room);
  assign keeps      = steps && !failed && !pads && !wrong;
  assign last       = at_q != '0 && at_q == last_q;
  assign lane_last  = lane_q == LaneW'(Lanes - 1);
  assign in_ready_o = steps && lane_last;

  always_ff @(posedge clk_i) begin : p_in
    if (!rst_ni) begin
      left_q <= '0;
      lane_q <= '0;
      at_q   <= '0;
      last_q <= '0;
    end else if (start_i) begin
      left_q <= words_i;
      lane_q <= '0;
      at_q   <= '0;
    end else begin
      if (steps) begin
        left_q <= left_q - 32'd1;
        lane_q <= lane_last ? '0 : lane_q + 1'b1;
      end
      if (keeps) begin
        at_q   <= last ? '0 : at_q + 4'd1;
        last_q <= at_q == '0 ? 4'(length - 10'd1) : last_q;
      end
    end
  end

  // ---- whole commands on their way. After a failure what has not begun is forgotten
  logic [$clog2(Ahead):0] unused_count;

  prim_fifo #(.Width(129), .Depth(Ahead)) u_words (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !(failed && !going_q)),
    .in_data_i   ({last, word}),
    .in_valid_i  (keeps),
    .in_ready_o  (room),
    .out_data_o  ({out_last, out_word}),
    .out_valid_o (out_valid),
    .out_ready_i (moves),
    .count_o     (unused_count)
  );

  assign out_head        = out_word;
  assign goes            = whole_q != '0 && !going_q && !failed && !(out_head.after && runs_q != '0);
  assign moves           = going_q && command_ready_i;
  assign command_o       = out_word;
  assign command_last_o  = out_last;
  assign command_valid_o = going_q;

  always_ff @(posedge clk_i) begin : p_out
    if (!rst_ni || start_i) begin
      whole_q  <= '0;
      runs_q   <= '0;
      going_q  <= 1'b0;
      status_q <= lookaside_pkg::StatusOk;
    end else begin
      whole_q <= failed && !going_q ? '0 : whole_q + 5'(keeps && last) - 5'(moves && out_last);
      runs_q  <= runs_q + 12'(goes) - 12'(ended_i) - 12'(bad_i);
      going_q <= goes || (going_q && !(moves && out_last));
      if (status_q == lookaside_pkg::StatusOk) begin
        status_q <= bad_i ? bad_status_i : steps && !failed && wrong ? lookaside_pkg::StatusMalformed : lookaside_pkg::StatusOk;
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      OneList_A: assert (!start_i || !busy_o);
      Whole_A: assert (!going_q || out_valid);
      Ends_A: assert (12'(ended_i) + 12'(bad_i) <= runs_q);
    end
  end
`endif

endmodule
