// What leaves: tables as they come, and on one stream labels that were made (TDEST 0) and those that leave (TDEST 1), or the colours of
// these, 128 to a beat, bit 0 first. Each of the three is a packet of a run: its last beat has TLAST.
//
// Latency:  one cycle, and for colours until a beat is full or the last has come.   Throughput: one beat per cycle on each stream.
// Back-pressure: on each stream for itself; a beat stays until it is taken. A label that leaves goes before one that was made.

module garble_sender #(
  parameter  int unsigned Rows      = 2,
  parameter  int unsigned TablesOut = 2, // of a beat
  localparam int unsigned CycleW  = garble_pkg::CycleW,
  localparam int unsigned NumberW = garble_pkg::NumberW
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                wipe_i,

  // A run
  input  logic                start_i,
  input  logic [CycleW-1:0]   cycles_i,
  input  logic [CycleW-1:0]   leave_cycles_i, // of which labels leave
  input  logic [31:0]         lines_i,        // of a netlist cycle
  input  logic [NumberW-1:0]  leaves_i,       // of one
  input  logic [NumberW-1:0]  of_run_i,
  input  logic [NumberW-1:0]  of_cycle_i,
  input  logic                colours_i,
  output logic                empty_o,        // nothing waits here

  // From the core, and from who makes labels
  input  logic [Rows*256-1:0] tables_i,
  input  logic [Rows-1:0]     tables_keep_i,
  input  logic                tables_valid_i,
  output logic                tables_ready_o,
  input  garble_pkg::label_t  leave_i,
  input  logic                leave_valid_i,
  output logic                leave_ready_o,
  input  garble_pkg::label_t  made_i,
  input  logic                made_valid_i,
  output logic                made_ready_o,

  // To the host
  output logic [TablesOut*256-1:0]   m_axis_tables_tdata_o,
  output logic [TablesOut*32-1:0]    m_axis_tables_tkeep_o,
  output logic                       m_axis_tables_tlast_o,
  output logic                       m_axis_tables_tvalid_o,
  input  logic                       m_axis_tables_tready_i,
  output garble_pkg::label_t         m_axis_labels_tdata_o,
  output logic                       m_axis_labels_tdest_o,
  output logic                       m_axis_labels_tlast_o,
  output logic                       m_axis_labels_tvalid_o,
  input  logic                       m_axis_labels_tready_i
);

  logic alive;

  assign alive = rst_ni && !wipe_i;

  // ---- tables
  logic              tables_moves, tables_last, line_last;
  logic [31:0]       line_q;
  logic [CycleW-1:0] table_cycle_q;
  logic [Rows*256-1:0]  line;
  logic [Rows-1:0]      line_keep;
  logic                 line_is_last, line_valid, line_ready;
  logic [TablesOut-1:0] keep;

  assign line_last    = line_q + 32'd1 == lines_i;
  assign tables_last  = line_last && table_cycle_q + 1'b1 == cycles_i;
  assign tables_moves = tables_valid_i && tables_ready_o;

  always_ff @(posedge clk_i) begin : p_tables
    if (!alive || start_i) begin
      line_q        <= '0;
      table_cycle_q <= '0;
    end else if (tables_moves) begin
      line_q        <= line_last ? '0 : line_q + 32'd1;
      table_cycle_q <= table_cycle_q + CycleW'(line_last);
    end
  end

  prim_skid #(.Width(Rows*256 + Rows + 1)) u_tables (
    .clk_i       (clk_i),
    .rst_ni      (alive),
    .in_data_i   (wipe_i ? '0 : {tables_last, tables_keep_i, tables_i}),
    .in_valid_i  (tables_valid_i),
    .in_ready_o  (tables_ready_o),
    .out_data_o  ({line_is_last, line_keep, line}),
    .out_valid_o (line_valid),
    .out_ready_i (line_ready)
  );

  garble_narrow #(.Rows(Rows), .Out(TablesOut)) u_narrow (
    .clk_i        (clk_i),
    .rst_ni       (alive),
    .in_tables_i  (line),
    .in_keep_i    (line_keep),
    .in_last_i    (line_is_last),
    .in_valid_i   (line_valid),
    .in_ready_o   (line_ready),
    .out_tables_o (m_axis_tables_tdata_o),
    .out_keep_o   (keep),
    .out_last_o   (m_axis_tables_tlast_o),
    .out_valid_o  (m_axis_tables_tvalid_o),
    .out_ready_i  (m_axis_tables_tready_i)
  );

  for (genvar r = 0; r < TablesOut; r++) begin : g_keep
    assign m_axis_tables_tkeep_o[32*r +: 32] = {32{keep[r]}};
  end

  // ---- which label leaves is the last of the run
  logic               leave_moves, leave_last, leave_of_last;
  logic [NumberW-1:0] leave_q;
  logic [CycleW-1:0]  leave_cycle_q;

  assign leave_of_last = leave_q + 1'b1 == leaves_i;
  assign leave_last    = leave_of_last && leave_cycle_q + 1'b1 == leave_cycles_i;
  assign leave_moves   = leave_valid_i && leave_ready_o;

  always_ff @(posedge clk_i) begin : p_leaves
    if (!alive || start_i) begin
      leave_q       <= '0;
      leave_cycle_q <= '0;
    end else if (leave_moves) begin
      leave_q       <= leave_of_last ? '0 : leave_q + 1'b1;
      leave_cycle_q <= leave_cycle_q + CycleW'(leave_of_last);
    end
  end

  // ---- and of those that were made: inputs of the run, then of the netlist cycles
  logic               made_moves, made_last, made_of_last, of_cycles_q;
  logic [NumberW-1:0] made_q;
  logic [CycleW-1:0]  made_cycle_q;

  assign made_of_last = made_q + 1'b1 == (of_cycles_q ? of_cycle_i : of_run_i);
  assign made_last    = made_of_last && (of_cycles_q ? made_cycle_q + 1'b1 == cycles_i : of_cycle_i == '0);
  assign made_moves   = made_valid_i && made_ready_o;

  always_ff @(posedge clk_i) begin : p_made
    if (!alive || start_i) begin
      made_q       <= '0;
      made_cycle_q <= '0;
      of_cycles_q  <= of_run_i == '0;
    end else if (made_moves) begin
      made_q       <= made_of_last ? '0 : made_q + 1'b1;
      made_cycle_q <= made_cycle_q + CycleW'(made_of_last && of_cycles_q);
      of_cycles_q  <= of_cycles_q || made_of_last;
    end
  end

  // ---- colours, gathered
  logic [127:0] colours_q, colours;
  logic [6:0]   colour_q;
  logic         full;

  assign colours = colours_q | 128'(leave_i[0]) << colour_q;
  assign full    = colour_q == '1 || leave_last;

  always_ff @(posedge clk_i) begin : p_colours
    if (!alive || start_i || !colours_i || (leave_moves && full)) begin
      colours_q <= '0;
      colour_q  <= '0;
    end else if (leave_moves) begin
      colours_q <= colours;
      colour_q  <= colour_q + 7'd1;
    end
  end

  // ---- one stream of both
  logic sends_leave, labels_ready;

  assign sends_leave   = leave_valid_i && (!colours_i || full);
  assign leave_ready_o = labels_ready || (colours_i && !full);
  assign made_ready_o  = labels_ready && !sends_leave;

  prim_skid #(.Width(130)) u_labels (
    .clk_i       (clk_i),
    .rst_ni      (alive),
    .in_data_i   (wipe_i ? '0 : sends_leave ? {leave_last, 1'b1, colours_i ? colours : leave_i} : {made_last, 1'b0, made_i}),
    .in_valid_i  (sends_leave || made_valid_i),
    .in_ready_o  (labels_ready),
    .out_data_o  ({m_axis_labels_tlast_o, m_axis_labels_tdest_o, m_axis_labels_tdata_o}),
    .out_valid_o (m_axis_labels_tvalid_o),
    .out_ready_i (m_axis_labels_tready_i)
  );

  assign empty_o = !m_axis_tables_tvalid_o && !m_axis_labels_tvalid_o && !tables_valid_i && !leave_valid_i && !made_valid_i;

endmodule
