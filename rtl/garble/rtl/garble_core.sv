// The garbler: Rows rows that each start a gate per cycle, by a program that says where every label is and when.
//
// A program is made by the planner for this number of rows (docs of `schedule`): it knows when every label is there, so that the core
// checks no readiness and renames nothing. A netlist cycle is a pass through the kernel of the program; passes overlap.
// Results are there at their latencies after the gate was started, whether or not something is started meanwhile, and a slot is written
// again only by a gate that starts after all that read the label before: so a core that has to wait merely starts nothing.
//
// Latency:  a label of an XOR is read 1 cycle after the gate started, of an AND 10 cycles; with LabelReg one cycle more.
// Throughput: Rows gates per cycle.
// Back-pressure: nothing is started while labels of inputs are missing, tables have no room, or labels that leave have none.

module garble_core #(
  parameter  int unsigned Rows     = 2,    // 1, 2, 4, 8 or 16
  parameter  int unsigned XorW     = 11,   // logarithm of the labels of a bank
  parameter  int unsigned AndW     = 11,
  parameter  int unsigned InputW   = 11,
  parameter  int unsigned LabelsIn = 2,    // labels of inputs in a beat: 1, 2, 4, 8 or 16
  parameter  int unsigned LabelReg = 0,    // 1: a register behind the memories of labels, for a faster clock
  parameter  int unsigned LinesW   = 10,   // logarithm of the lines of tables that wait
  parameter  int unsigned Bundles  = 4096,
  localparam int unsigned BundleAW = $clog2(Bundles),
  localparam int unsigned BundleW  = Rows * garble_pkg::GateW + garble_pkg::LeaveW + 2 * garble_pkg::NumberW,
  localparam int unsigned CycleW   = garble_pkg::CycleW,
  localparam int unsigned NumberW  = garble_pkg::NumberW,
  localparam int unsigned SlotW    = garble_pkg::SlotW,
  localparam int unsigned RowW     = garble_pkg::RowW
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  // The program, written while nothing runs
  input  logic                          program_en_i,
  input  logic [BundleAW-1:0]           program_addr_i,
  input  logic [BundleW-1:0]            program_bundle_i,

  // What a run is. Stable from start_i until done_o
  input  logic                          start_i,
  input  garble_pkg::label_t            offset_i,
  input  aes_pkg::block_t               hash_start_i,
  // Gate p of repetition c, a netlist cycle or a row of a batch, has number (first + c step_first + p) << 16 | (instance + c step_instance):
  // netlist cycles step by their products, rows by an instance. Nobody may let either part run over.
  input  logic [15:0]                   instance_i,
  input  garble_pkg::product_t          first_i,
  input  logic                          step_instance_i,
  input  logic [NumberW-1:0]            step_first_i,
  input  logic [BundleAW:0]             prologue_i,
  input  logic [BundleAW:0]             kernel_i,
  input  logic [CycleW-1:0]             cycles_i,     // netlist cycles
  input  logic [CycleW-1:0]             repeats_i,    // of the kernel
  input  logic [BundleAW:0]             last_i,       // bundles of the last repetition
  input  logic [CycleW-1:0]             leave_from_i, // the first netlist cycle of which labels leave
  input  logic [31:0]                   lines_i,      // of a netlist cycle
  input  logic [Rows-1:0]               last_keep_i,  // rows of its last line
  input  logic [NumberW-1:0]            of_run_i,
  input  logic [NumberW-1:0]            of_cycle_i,
  input  logic [garble_pkg::RingW-1:0]  input_ring_i,
  input  logic [garble_pkg::StageW-1:0] input_stages_i,
  output logic                          busy_o,
  output logic                          done_o,       // for one cycle
  // A bundle waits in this cycle for labels of inputs, for room for tables, for room for labels that leave
  output logic                          waits_inputs_o,
  output logic                          waits_tables_o,
  output logic                          waits_leaves_o,

  // Wipes all labels and tables; ends a run
  input  logic                          scrub_i,
  output logic                          scrubs_o,

  // Labels of inputs: of the run, then of each cycle; in beats as garble_inputs takes them
  input  logic                          in_single_i, // of the run
  input  logic [LabelsIn*128-1:0]       in_labels_i,
  input  logic                          in_valid_i,
  output logic                          in_ready_o,

  // Lines of tables
  output logic [Rows*256-1:0]           out_tables_o,
  output logic [Rows-1:0]               out_keep_o,
  output logic                          out_valid_o,
  input  logic                          out_ready_i,

  // Labels that leave
  output garble_pkg::label_t            leave_label_o,
  output logic                          leave_valid_o,
  input  logic                          leave_ready_i
);

  localparam int unsigned XorLatency = 1 + LabelReg; // a label is there so many cycles after it was asked for
  localparam int unsigned AndLatency = 10 + LabelReg;
  localparam int unsigned Ports      = 2 * Rows + 1;
  localparam int unsigned LeaveDepth = 16;
  localparam int unsigned ScrubW     = 13; // the largest memory

  // ---- scrubbing: one word of every memory per cycle, twice as long as the engines are deep
  logic              scrubs_q;
  logic [ScrubW-1:0] scrub_q;

  always_ff @(posedge clk_i) begin : p_scrub
    if (!rst_ni || scrub_i) begin
      scrubs_q <= 1'b1;
      scrub_q  <= '0;
    end else if (scrubs_q) begin
      scrubs_q <= scrub_q != '1;
      scrub_q  <= scrub_q + 1'b1;
    end
  end

  // ---- bundles
  logic [BundleW-1:0]             bundle;
  logic                           bundle_valid, bundle_prologue, bundle_begins, taken;
  logic [CycleW-1:0]              repetition;
  garble_pkg::leave_t             leave;
  logic [NumberW-1:0]             need_run, need_cycle;

  garble_sequencer #(.Width(BundleW), .Depth(Bundles)) u_sequencer (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni && !scrubs_q),
    .w_en_i       (program_en_i),
    .w_addr_i     (program_addr_i),
    .w_data_i     (program_bundle_i),
    .start_i      (start_i),
    .prologue_i   (prologue_i),
    .kernel_i     (kernel_i),
    .repeats_i    (repeats_i),
    .last_i       (last_i),
    .bundle_o     (bundle),
    .valid_o      (bundle_valid),
    .prologue_o   (bundle_prologue),
    .begins_o     (bundle_begins),
    .repetition_o (repetition),
    .next_i       (taken)
  );

  assign need_cycle = bundle[NumberW-1:0];
  assign need_run   = bundle[2*NumberW-1:NumberW];
  assign leave      = bundle[2*NumberW +: garble_pkg::LeaveW];

  // ---- first product, instance and first line of netlist cycles: written a repetition ahead, read at k - stage
  logic [46:0]                   firsts    [1 << garble_pkg::StageW];
  logic [15:0]                   instances [1 << garble_pkg::StageW];
  logic [31:0]                   lines     [1 << garble_pkg::StageW];
  logic [46:0]                   ahead_first_q, written_first;
  logic [15:0]                   ahead_instance_q, written_instance;
  logic [31:0]                   ahead_line_q, written_line;
  logic [CycleW-1:0]             ahead_q, begun_q;
  logic [garble_pkg::StageW-1:0] written;
  logic                          ahead_step;
  logic [31:0]                   next_line; // of all runs: the one that leaves next

  // Cycle 0 is written when a run starts, cycle k + 1 when repetition k begins.
  assign ahead_step       = taken && bundle_begins;
  assign written          = start_i ? '0 : ahead_q[garble_pkg::StageW-1:0];
  assign written_first    = start_i ? first_i : ahead_first_q;
  assign written_instance = start_i ? instance_i : ahead_instance_q;
  assign written_line     = start_i ? next_line : ahead_line_q;

  always_ff @(posedge clk_i) begin : p_ahead
    if (start_i || ahead_step) begin
      firsts[written]    <= written_first;
      instances[written] <= written_instance;
      lines[written]     <= written_line;
      ahead_first_q      <= written_first + 47'(step_first_i);
      ahead_instance_q   <= written_instance + 16'(step_instance_i);
      ahead_line_q       <= written_line + lines_i;
      ahead_q            <= start_i ? CycleW'(1) : ahead_q + 1'b1;
      begun_q            <= start_i ? '0 : begun_q + 1'b1;
    end
  end

  // ---- rows: decoded, then started when they may
  logic [Ports*2-1:0]     port_bank, port_bank_q;
  logic [Ports*RowW-1:0]  port_row, port_row_q;
  logic [Ports*SlotW-1:0] port_slot, port_slot_q;
  logic [Ports*128-1:0]   port_label;
  logic [Rows-1:0]        xor_d, and_d, xor_q, and_q, not_a_q, not_b_q, not_c_q;
  logic [Rows*SlotW-1:0]  place_d, place_q;
  logic [Rows*47-1:0]     product_d, product_q;
  logic [Rows*16-1:0]     instance_d, instance_q;
  logic [Rows*32-1:0]     line_d, line_q;
  logic [Rows-1:0]        not_a_d, not_b_d, not_c_d, first_d, first_q, first_late;
  logic                   leave_d, leave_q, started_q, goes;
  logic                   inputs_there, lines_free, leave_free;
  logic [CycleW-1:0]      leave_cycle;

  for (genvar r = 0; r < Rows; r++) begin : g_decode
    garble_pkg::gate_t               gate;
    logic [garble_pkg::StageW-1:0]   stage, from;

    assign gate       = bundle[2*NumberW + garble_pkg::LeaveW + r*garble_pkg::GateW +: garble_pkg::GateW];
    assign from       = repetition[garble_pkg::StageW-1:0] - stage;
    assign not_a_d[r] = gate.not_a;
    assign not_b_d[r] = gate.not_b;
    assign not_c_d[r] = gate.not_c;
    assign instance_d[r*16 +: 16] = instances[from];
    assign first_d[r] = gate.is_and; // in the prologue: the first label of a register that ANDs write
    assign port_bank[(2*r)*2 +: 2]         = gate.a.bank;
    assign port_bank[(2*r+1)*2 +: 2]       = gate.b.bank;
    assign port_row[(2*r)*RowW +: RowW]    = gate.a.row;
    assign port_row[(2*r+1)*RowW +: RowW]  = gate.b.row;

    garble_decode #(.Rows(Rows)) u_decode (
      .gate_i       (gate),
      .prologue_i   (bundle_prologue),
      .repetition_i (repetition),
      .cycles_i     (cycles_i),
      .stage_o      (stage),
      .first_i      (firsts[from]),
      .line_i       (lines[from]),
      .xor_o        (xor_d[r]),
      .and_o        (and_d[r]),
      .slot_a_o     (port_slot[(2*r)*SlotW +: SlotW]),
      .slot_b_o     (port_slot[(2*r+1)*SlotW +: SlotW]),
      .slot_c_o     (place_d[r*SlotW +: SlotW]),
      .product_o    (product_d[r*47 +: 47]),
      .line_o       (line_d[r*32 +: 32])
    );
  end

  assign leave_cycle                          = repetition - CycleW'(leave.stage);
  assign leave_d                              = leave.valid && !bundle_prologue && CycleW'(leave.stage) <= repetition
                                              && leave_cycle < cycles_i && leave_cycle >= leave_from_i;
  assign port_bank[2*Rows*2 +: 2]             = leave.from.bank;
  assign port_row[2*Rows*RowW +: RowW]        = leave.from.row;
  assign port_slot[2*Rows*SlotW +: SlotW]     = garble_pkg::slot_of(leave.from.place, repetition[6:0]);

  // A bundle is taken when the one before it has been started, which a valid one is as soon as it may.
  assign taken = bundle_valid && (!started_q || goes);
  assign goes  = inputs_there && lines_free && leave_free;

  assign waits_inputs_o = started_q && !inputs_there;
  assign waits_tables_o = started_q && inputs_there && !lines_free;
  assign waits_leaves_o = started_q && inputs_there && lines_free && !leave_free;

  logic [NumberW-1:0] need_run_q, need_cycle_q;
  logic [CycleW-1:0]  repetition_q;

  always_ff @(posedge clk_i) begin : p_taken
    if (!rst_ni || scrubs_q || start_i) begin
      started_q <= 1'b0;
    end else if (taken) begin
      started_q <= 1'b1;
    end else if (goes) begin
      started_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin : p_bundle
    if (taken) begin
      {port_bank_q, port_row_q, port_slot_q} <= {port_bank, port_row, port_slot};
      {xor_q, and_q, leave_q}                <= {xor_d, and_d & {Rows{!bundle_prologue}}, leave_d};
      first_q                                <= first_d & {Rows{bundle_prologue}};
      {not_a_q, not_b_q, not_c_q}            <= {not_a_d, not_b_d, not_c_d};
      {place_q, product_q, line_q}           <= {place_d, product_d, line_d};
      instance_q                             <= instance_d;
      {need_run_q, need_cycle_q}             <= {need_run, need_cycle};
      repetition_q                           <= repetition;
    end
  end

  // ---- may it start?
  logic               run_done;
  logic [CycleW-1:0]  whole_cycles;
  logic [NumberW-1:0] in_number;
  logic [LabelsIn-1:0]     input_en;
  logic [SlotW-1:0]        input_slot;
  logic [LabelsIn*128-1:0] input_labels;

  assign inputs_there = (run_done || in_number >= need_run_q)
                      && (of_cycle_i == '0 || whole_cycles == cycles_i || whole_cycles > repetition_q
                          || (whole_cycles == repetition_q
                              && (need_cycle_q == '0 || (run_done && in_number >= need_cycle_q))));

  always_comb begin : p_lines_free
    lines_free = 1'b1;
    for (int unsigned r = 0; r < Rows; r++) begin
      if (and_q[r] && line_q[r*32 +: 32] - next_line >= 32'd1 << LinesW) begin
        lines_free = 1'b0;
      end
    end
  end

  garble_inputs #(.LabelsIn(LabelsIn)) u_inputs (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !scrubs_q),
    .start_i     (start_i),
    .of_run_i    (of_run_i),
    .of_cycle_i  (of_cycle_i),
    .cycles_i    (cycles_i),
    .ring_i      (input_ring_i),
    .stages_i    (input_stages_i),
    .begun_i     (begun_q),
    .single_i    (in_single_i),
    .in_labels_i (in_labels_i),
    .in_valid_i  (in_valid_i),
    .in_ready_o  (in_ready_o),
    .w_en_o      (input_en),
    .w_slot_o    (input_slot),
    .w_labels_o  (input_labels),
    .run_done_o  (run_done),
    .cycles_o    (whole_cycles),
    .number_o    (in_number)
  );

  // ---- labels
  logic [Rows-1:0]       xor_done, and_done; // rows of which an XOR, an AND is computed in this cycle
  logic [Rows*SlotW-1:0] xor_place, and_late, and_place;
  logic [Rows*128-1:0]   xor_label, and_label;
  logic [Rows*256-1:0]   tables;
  logic [Rows*32-1:0]    line_late;
  logic [Rows-1:0]       not_a_late, not_b_late, not_c_late;

  garble_store #(
    .Rows(Rows), .XorW(XorW), .AndW(AndW), .InputW(InputW), .LabelsIn(LabelsIn), .LabelReg(LabelReg)
  ) u_store (
    .clk_i          (clk_i),
    .bank_i         (port_bank_q),
    .row_i          (port_row_q),
    .slot_i         (port_slot_q),
    .label_o        (port_label),
    .xor_en_i       (xor_done & ~first_late),
    .xor_slot_i     (xor_place),
    .xor_label_i    (xor_label),
    .and_en_i       (and_done | (xor_done & first_late)),
    .and_slot_i     (and_place),
    .and_label_i    (and_label),
    .input_en_i     (input_en),
    .input_slot_i   (input_slot),
    .input_labels_i (input_labels),
    .scrub_i        (scrubs_q),
    .scrub_slot_i   (scrub_q)
  );

  // What belongs to the labels that are there in this cycle
  prim_delay #(.Width(Rows * (4 + SlotW)), .Cycles(XorLatency)) u_late (
    .clk_i (clk_i),
    .in_i  ({first_q, not_a_q, not_b_q, not_c_q, place_q}),
    .out_o ({first_late, not_a_late, not_b_late, not_c_late, xor_place})
  );

  for (genvar r = 0; r < Rows; r++) begin : g_row
    garble_pkg::label_t a, b, c;
    garble_pkg::table_t rows;
    logic               not_c_last;
    logic [62:0]        number; // of the gate, a cycle before its labels

    assign a = port_label[(2*r)*128 +: 128] ^ (offset_i & {128{not_a_late[r]}});
    assign b = port_label[(2*r+1)*128 +: 128] ^ (offset_i & {128{not_b_late[r]}});
    assign xor_label[r*128 +: 128] = a ^ b ^ (offset_i & {128{not_c_late[r]}});

    if (LabelReg != 0) begin : g_number
      prim_delay #(.Width(63), .Cycles(LabelReg)) u_number (
        .clk_i (clk_i),
        .in_i  ({product_q[r*47 +: 47], instance_q[r*16 +: 16]}),
        .out_o (number)
      );
    end else begin : g_number_now
      assign number = {product_q[r*47 +: 47], instance_q[r*16 +: 16]};
    end

    garble_engine u_engine (
      .clk_i    (clk_i),
      .offset_i (offset_i),
      .start_i  (hash_start_i),
      .gate_i   (number),
      .a_i      (a),
      .b_i      (b),
      .table_o  (rows),
      .c_o      (c)
    );

    prim_delay #(.Width(1 + SlotW + 32), .Cycles(AndLatency)) u_place (
      .clk_i (clk_i),
      .in_i  ({not_c_q[r], place_q[r*SlotW +: SlotW], line_q[r*32 +: 32]}),
      .out_o ({not_c_last, and_late[r*SlotW +: SlotW], line_late[r*32 +: 32]})
    );

    assign and_place[r*SlotW +: SlotW] = and_done[r] ? and_late[r*SlotW +: SlotW] : xor_place[r*SlotW +: SlotW];
    assign and_label[r*128 +: 128]     = and_done[r] ? c ^ (offset_i & {128{not_c_last}}) : xor_label[r*128 +: 128];
    assign tables[r*256 +: 256]    = rows;
  end

  // What was started: nothing of a run that was ended is written or comes out of the engines.
  logic [Rows*AndLatency-1:0] and_flight_q;
  logic [Rows*XorLatency-1:0] xor_flight_q;
  logic [XorLatency-1:0]      leave_flight_q;

  assign and_done = and_flight_q[Rows*(AndLatency-1) +: Rows];
  assign xor_done = xor_flight_q[Rows*(XorLatency-1) +: Rows];

  always_ff @(posedge clk_i) begin : p_flight
    if (!rst_ni || scrubs_q) begin
      and_flight_q   <= '0;
      xor_flight_q   <= '0;
      leave_flight_q <= '0;
    end else begin
      and_flight_q   <= (Rows*AndLatency)'({and_flight_q, and_q & {Rows{started_q && goes}}});
      xor_flight_q   <= (Rows*XorLatency)'({xor_flight_q, xor_q & {Rows{started_q && goes}}});
      leave_flight_q <= XorLatency'({leave_flight_q, leave_q && started_q && goes});
    end
  end

  // ---- tables
  logic runs_q;

  garble_tables #(.Rows(Rows), .LinesW(LinesW)) u_tables (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .in_en_i      (and_done),
    .in_line_i    (line_late),
    .in_table_i   (tables),
    .lines_i      (lines_i),
    .last_keep_i  (last_keep_i),
    .out_tables_o (out_tables_o),
    .out_keep_o   (out_keep_o),
    .out_valid_o  (out_valid_o),
    .out_ready_i  (out_ready_i),
    .line_o       (next_line),
    .start_i      (start_i),
    .runs_i       (runs_q),
    .scrub_i      (scrubs_q),
    .scrub_line_i (scrub_q[LinesW-1:0])
  );

  // ---- labels that leave
  logic [$clog2(LeaveDepth):0] leave_count;
  logic                        leave_room, leave_there;

  assign leave_free  = !leave_q || leave_count < ($clog2(LeaveDepth)+1)'(LeaveDepth - 1 - XorLatency); // some are on their way
  assign leave_there = leave_flight_q[XorLatency-1];

  garble_queue #(.Width(128), .Depth(LeaveDepth)) u_leave (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (scrubs_q),
    .in_data_i   (port_label[2*Rows*128 +: 128]),
    .in_valid_i  (leave_there),
    .in_ready_o  (leave_room),
    .out_data_o  (leave_label_o),
    .out_valid_o (leave_valid_o),
    .out_ready_i (leave_ready_i),
    .count_o     (leave_count)
  );

  // ---- the end: all was started, nothing is in the engines, all has left, and all labels of inputs have come, read or not
  logic        waits_q, idle, inputs_came;
  logic [31:0] end_line_q; // the line after the last one of all netlist cycles that have begun

  assign inputs_came = run_done && (of_cycle_i == '0 || whole_cycles == cycles_i);

  assign idle     = !bundle_valid && !started_q && and_flight_q == '0 && leave_flight_q == '0 && leave_count == '0
                  && next_line == end_line_q && inputs_came;
  assign busy_o   = runs_q || scrubs_q;
  assign scrubs_o = scrubs_q;

  always_ff @(posedge clk_i) begin : p_run
    if (!rst_ni || scrubs_q) begin
      runs_q  <= 1'b0;
      waits_q <= 1'b0;
      done_o  <= 1'b0;
    end else begin
      done_o  <= runs_q && idle && !waits_q;
      runs_q  <= start_i || (runs_q && (!idle || waits_q));
      waits_q <= start_i || (waits_q && !bundle_valid); // for the first bundle
    end
  end

  always_ff @(posedge clk_i) begin : p_end_line
    if (start_i) begin
      end_line_q <= next_line;
    end else if (ahead_step && repetition < cycles_i) begin
      end_line_q <= end_line_q + lines_i;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !scrubs_q) begin
      LeaveRoom_A: assert (!leave_there || leave_room);
    end
  end
`endif

endmodule
