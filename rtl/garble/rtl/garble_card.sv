// The garbler as a card: registers by AXI4-Lite, programs and labels in, tables and labels out by AXI4-Stream, an interrupt.
//
// data/garble.toml describes registers and programs. A run takes the labels of its inputs from the host, those of the run and then those
// of each netlist cycle, or makes them from a seed and sends them as it uses them. Reset and scrub take what waits on the streams with
// them: the other ends have to be reset too. Labels come in beats of LabelsIn: those of the run begin with a beat, those of each netlist
// cycle do too, and what the last beat has beyond them is not looked at. They are made one at a time.
//
// Latency:  a run begins 6 cycles after it is started.   Throughput: that of garble_core; one beat per cycle on each stream.
// Back-pressure: on all streams; a host that takes nothing, or sends no labels, only makes the run wait.

module garble_card #(
  parameter  int unsigned Rows      = 2,    // 1, 2, 4, 8 or 16
  parameter  int unsigned XorW      = 11,   // logarithm of the labels of a bank, 7 to 13; so are the next two
  parameter  int unsigned AndW      = 11,
  parameter  int unsigned InputW    = 11,
  parameter  int unsigned LinesW    = 10,   // logarithm of the lines of tables that wait, up to 13
  parameter  int unsigned Bundles   = 4096,
  parameter  int unsigned LabelsIn  = 2,    // labels of inputs in a beat: 1, 2, 4, 8 or 16
  parameter  int unsigned TablesOut = Rows, // tables in a beat: a power of two, up to Rows
  parameter  int unsigned LabelReg  = 0,    // 1: a register behind the memories of labels, for a faster clock
  localparam int unsigned Beat      = 128,  // of a program, and a label
  localparam int unsigned AddrW     = 9
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  output logic                       irq_o,

  // Registers
  input  logic [AddrW-1:0]           s_axil_awaddr_i,
  input  logic                       s_axil_awvalid_i,
  output logic                       s_axil_awready_o,
  input  logic [31:0]                s_axil_wdata_i,
  input  logic [3:0]                 s_axil_wstrb_i,
  input  logic                       s_axil_wvalid_i,
  output logic                       s_axil_wready_o,
  output logic [1:0]                 s_axil_bresp_o,
  output logic                       s_axil_bvalid_o,
  input  logic                       s_axil_bready_i,
  input  logic [AddrW-1:0]           s_axil_araddr_i,
  input  logic                       s_axil_arvalid_i,
  output logic                       s_axil_arready_o,
  output logic [31:0]                s_axil_rdata_o,
  output logic [1:0]                 s_axil_rresp_o,
  output logic                       s_axil_rvalid_o,
  input  logic                       s_axil_rready_i,

  // A program, while the card is not busy
  input  logic [Beat-1:0]            s_axis_program_tdata_i,
  input  logic                       s_axis_program_tlast_i,
  input  logic                       s_axis_program_tvalid_i,
  output logic                       s_axis_program_tready_o,

  // Labels of inputs, while a run takes some; they have no TLAST
  input  logic [LabelsIn*128-1:0]    s_axis_labels_tdata_i,
  input  logic                       s_axis_labels_tvalid_i,
  output logic                       s_axis_labels_tready_o,

  // Tables: rows of a line side by side, 32 bytes each, T_G first, TablesOut of them in a beat
  output logic [TablesOut*256-1:0]   m_axis_tables_tdata_o,
  output logic [TablesOut*32-1:0]    m_axis_tables_tkeep_o,
  output logic                       m_axis_tables_tlast_o,
  output logic                       m_axis_tables_tvalid_o,
  input  logic                       m_axis_tables_tready_i,

  // Labels that were made (TDEST 0), labels that leave or their colours (TDEST 1)
  output garble_pkg::label_t         m_axis_labels_tdata_o,
  output logic                       m_axis_labels_tdest_o,
  output logic                       m_axis_labels_tlast_o,
  output logic                       m_axis_labels_tvalid_o,
  input  logic                       m_axis_labels_tready_i
);

  localparam int unsigned BundleAW = $clog2(Bundles);
  localparam int unsigned BundleW  = Rows * garble_pkg::GateW + garble_pkg::LeaveW + 2 * garble_pkg::NumberW;
  localparam int unsigned NumberW  = garble_pkg::NumberW;

  // ---- registers
  logic             write, write_known, write_locked, read_known;
  logic [AddrW-1:0] write_addr, read_addr;
  logic [31:0]      write_data, read_data;

  prim_axil #(.AddrW(AddrW)) u_axil (
    .clk_i            (clk_i),
    .rst_ni           (rst_ni),
    .s_axil_awaddr_i  (s_axil_awaddr_i),
    .s_axil_awvalid_i (s_axil_awvalid_i),
    .s_axil_awready_o (s_axil_awready_o),
    .s_axil_wdata_i   (s_axil_wdata_i),
    .s_axil_wstrb_i   (s_axil_wstrb_i),
    .s_axil_wvalid_i  (s_axil_wvalid_i),
    .s_axil_wready_o  (s_axil_wready_o),
    .s_axil_bresp_o   (s_axil_bresp_o),
    .s_axil_bvalid_o  (s_axil_bvalid_o),
    .s_axil_bready_i  (s_axil_bready_i),
    .s_axil_araddr_i  (s_axil_araddr_i),
    .s_axil_arvalid_i (s_axil_arvalid_i),
    .s_axil_arready_o (s_axil_arready_o),
    .s_axil_rdata_o   (s_axil_rdata_o),
    .s_axil_rresp_o   (s_axil_rresp_o),
    .s_axil_rvalid_o  (s_axil_rvalid_o),
    .s_axil_rready_i  (s_axil_rready_i),
    .write_o          (write),
    .write_addr_o     (write_addr),
    .write_data_o     (write_data),
    .write_known_i    (write_known),
    .write_locked_i   (write_locked),
    .read_addr_o      (read_addr),
    .read_data_i      (read_data),
    .read_known_i     (read_known)
  );

  logic [15:0]                   instance_low;
  garble_pkg::product_t          first;
  logic [NumberW-1:0]            step_first, leaves, of_run, of_cycle;
  logic                          step_instance, make_labels, colours;
  logic [19:0]                   prologue, kernel, last;
  logic [31:0]                   cycles, repeats, leave_from, lines, length;
  logic [15:0]                   last_keep;
  logic [garble_pkg::RingW-1:0]  input_ring;
  logic [garble_pkg::StageW-1:0] input_stages;
  garble_pkg::label_t            offset;
  aes_pkg::block_t               hash_start, seed;
  logic                          offset_set, hash_start_set, seed_set, seed_write;
  logic                          start, scrub, reset, busy, done_q, scrubs;
  logic                          bad_program, bad_cycles, bad_inputs, bad_numbers, bad_lines, bad_secrets, bad_stream, bad_gate;
  logic                          bad_busy, tells_q, ended;
  logic [8:0]                    error;
  logic [1:0]                    interrupt, interrupt_enable;
  logic [63:0]                   run_cycles_q, wait_inputs_q, wait_tables_q, wait_leaves_q, made;

  /* verilator lint_off PINCONNECTEMPTY */
  garble_regs u_regs (
    .clk_i                 (clk_i),
    .rst_ni                (rst_ni),
    .reset_i               (reset),
    .wipe_i                (scrub || reset),
    .locked_i              (busy),
    .write_i               (write),
    .write_addr_i          (write_addr),
    .write_data_i          (write_data),
    .write_known_o         (write_known),
    .write_locked_o        (write_locked),
    .read_addr_i           (read_addr),
    .read_data_o           (read_data),
    .read_known_o          (read_known),
    .rows_i                (5'(Rows)),
    .bundles_i             (Bundles),
    .bundle_bits_i         (BundleW),
    .xor_labels_i          (32'd1 << XorW),
    .and_labels_i          (32'd1 << AndW),
    .input_labels_i        (32'd1 << InputW),
    .table_lines_i         (32'd1 << LinesW),
    .program_beat_i        (Beat),
    .xor_latency_i         (4'(1 + LabelReg)),
    .and_latency_i         (4'(10 + LabelReg)),
    .labels_in_i           (5'(LabelsIn)),
    .tables_out_i          (5'(TablesOut)),
    .control_start_o       (start),
    .control_scrub_o       (scrub),
    .control_reset_o       (reset),
    .status_busy_i         (busy),
    .status_done_i         (done_q),
    .status_scrubs_i       (scrubs),
    .error_busy_set_i      (bad_busy),
    .error_program_set_i   (tells_q && bad_program),
    .error_cycles_set_i    (tells_q && bad_cycles),
    .error_inputs_set_i    (tells_q && bad_inputs),
    .error_numbers_set_i   (tells_q && bad_numbers),
    .error_lines_set_i     (tells_q && bad_lines),
    .error_secrets_set_i   (tells_q && bad_secrets),
    .error_stream_set_i    (bad_stream),
    .error_gate_set_i      (bad_gate),
    .error_o               (error),
    .interrupt_done_set_i  (ended),
    .interrupt_error_set_i (error != '0),
    .interrupt_o           (interrupt),
    .interrupt_enable_o    (interrupt_enable),
    .program_length_i      (length),
    .instance_o            (instance_low),
    .first_o               (first),
    .step_first_o          (step_first),
    .step_instance_o       (step_instance),
    .prologue_o            (prologue),
    .kernel_o              (kernel),
    .cycles_o              (cycles),
    .repeats_o             (repeats),
    .last_o                (last),
    .leave_from_o          (leave_from),
    .leaves_o              (leaves),
    .lines_o               (lines),
    .last_keep_o           (last_keep),
    .inputs_of_run_o       (of_run),
    .inputs_of_cycle_o     (of_cycle),
    .input_ring_o          (input_ring),
    .input_stages_o        (input_stages),
    .mode_make_labels_o    (make_labels),
    .mode_colours_o        (colours),
    .offset_o              (offset),
    .offset_set_o          (offset_set),
    .offset_write_o        (),
    .hash_start_o          (hash_start),
    .hash_start_set_o      (hash_start_set),
    .hash_start_write_o    (),
    .seed_o                (seed),
    .seed_set_o            (seed_set),
    .seed_write_o          (seed_write),
    .run_cycles_i          (run_cycles_q),
    .wait_inputs_i         (wait_inputs_q),
    .wait_tables_i         (wait_tables_q),
    .wait_leaves_i         (wait_leaves_q),
    .labels_made_i         (made)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  assign irq_o = |(interrupt & interrupt_enable);

  // ---- the program
  logic                loads, program_en;
  logic [BundleAW-1:0] program_addr;
  logic [BundleW-1:0]  program_bundle;
  logic [NumberW:0]    numbers;

  garble_loader #(
    .Rows(Rows), .XorW(XorW), .AndW(AndW), .InputW(InputW), .LabelsIn(LabelsIn), .Bundles(Bundles), .Beat(Beat)
  ) u_loader (
    .clk_i                   (clk_i),
    .rst_ni                  (rst_ni && !reset),
    .locked_i                (busy),
    .s_axis_program_tdata_i  (s_axis_program_tdata_i),
    .s_axis_program_tlast_i  (s_axis_program_tlast_i),
    .s_axis_program_tvalid_i (s_axis_program_tvalid_i),
    .s_axis_program_tready_o (s_axis_program_tready_o),
    .write_o                 (program_en),
    .write_addr_o            (program_addr),
    .write_bundle_o          (program_bundle),
    .length_o                (length),
    .numbers_o               (numbers),
    .loads_o                 (loads),
    .bad_stream_o            (bad_stream),
    .bad_gate_o              (bad_gate)
  );

  garble_check #(.Rows(Rows), .InputW(InputW), .LabelsIn(LabelsIn)) u_check (
    .clk_i           (clk_i),
    .length_i        (length),
    .loads_i         (loads),
    .numbers_i       (numbers),
    .instance_i      (instance_low),
    .first_i         (first),
    .step_first_i    (step_first),
    .step_instance_i (step_instance),
    .prologue_i      (prologue),
    .kernel_i        (kernel),
    .cycles_i        (cycles),
    .repeats_i       (repeats),
    .last_i          (last),
    .leave_from_i    (leave_from),
    .lines_i         (lines),
    .last_keep_i     (last_keep),
    .of_run_i        (of_run),
    .of_cycle_i      (of_cycle),
    .ring_i          (input_ring),
    .secrets_i       (offset_set && offset[0] && hash_start_set && (seed_set || !make_labels)),
    .program_o       (bad_program),
    .cycles_o        (bad_cycles),
    .inputs_o        (bad_inputs),
    .numbers_o       (bad_numbers),
    .lines_o         (bad_lines),
    .secrets_o       (bad_secrets)
  );

  // ---- a run: looked at, run by the core, until all of it has left
  typedef enum logic [1:0] { Idle, Look, Run, Leave } state_e;

  state_e     state_d, state_q;
  logic [1:0] look_q;
  logic       core_start, core_busy, core_done, empty, bad, ends, scrubs_q;
  logic       waits_inputs, waits_tables, waits_leaves;

  assign busy       = state_q != Idle || core_busy;
  assign bad        = bad_program || bad_cycles || bad_inputs || bad_numbers || bad_lines || bad_secrets;
  assign bad_busy   = (start && busy) || (write && write_locked);
  assign core_start = tells_q && !bad;
  assign ended      = ends || (scrubs_q && !scrubs);

  always_comb begin : p_next
    state_d = state_q;
    ends    = 1'b0;
    unique case (state_q)
      Idle:  state_d = start && !busy ? Look : Idle;
      Look:  state_d = !tells_q ? Look : bad ? Idle : Run;
      Run:   state_d = core_done ? Leave : Run;
      Leave: begin
        ends    = empty;
        state_d = empty ? Idle : Leave;
      end
      default: state_d = Idle;
    endcase
    if (scrub || reset) begin
      state_d = Idle;
    end
  end

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      state_q  <= Idle;
      look_q   <= '0;
      tells_q  <= 1'b0;
      done_q   <= 1'b0;
      scrubs_q <= 1'b0;
    end else begin
      state_q  <= state_d;
      look_q   <= state_q == Look ? look_q + 2'd1 : '0;
      tells_q  <= state_q == Look && look_q == 2'd3 && !scrub && !reset;
      done_q   <= (done_q || ends) && !start && !scrub && !reset;
      scrubs_q <= scrubs;
    end
  end

  always_ff @(posedge clk_i) begin : p_counters
    if (!rst_ni || reset || core_start) begin
      run_cycles_q  <= '0;
      wait_inputs_q <= '0;
      wait_tables_q <= '0;
      wait_leaves_q <= '0;
    end else begin
      run_cycles_q  <= run_cycles_q + 64'(state_q == Run || state_q == Leave);
      wait_inputs_q <= wait_inputs_q + 64'(waits_inputs);
      wait_tables_q <= wait_tables_q + 64'(waits_tables);
      wait_leaves_q <= wait_leaves_q + 64'(waits_leaves);
    end
  end

  // ---- labels of inputs: the host's, or made here and sent to it
  garble_pkg::label_t      made_label, sent_label;
  logic [LabelsIn*128-1:0] in_labels;
  logic                    made_valid, in_valid, in_ready, sent_room, sent_valid, sent_ready;

  garble_labels u_labels (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni),
    .wipe_i    (scrubs),
    .seed_i    (seed),
    .restart_i (seed_write),
    .en_i      (make_labels && seed_set && state_q == Run),
    .label_o   (made_label),
    .valid_o   (made_valid),
    .ready_i   (make_labels && in_ready && sent_room),
    .made_o    (made)
  );

  assign in_labels              = make_labels ? (LabelsIn*128)'(made_label) : s_axis_labels_tdata_i;
  assign in_valid               = make_labels ? made_valid && sent_room : s_axis_labels_tvalid_i && state_q == Run;
  assign s_axis_labels_tready_o = !make_labels && in_ready && state_q == Run;

  /* verilator lint_off PINCONNECTEMPTY */
  garble_queue #(.Depth(4)) u_sent (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (scrubs),
    .in_data_i   (made_label),
    .in_valid_i  (make_labels && made_valid && in_ready),
    .in_ready_o  (sent_room),
    .out_data_o  (sent_label),
    .out_valid_o (sent_valid),
    .out_ready_i (sent_ready),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // ---- the core
  logic [Rows*256-1:0] tables;
  logic [Rows-1:0]     tables_keep;
  logic                tables_valid, tables_ready, leave_valid, leave_ready;
  garble_pkg::label_t  leave_label;

  garble_core #(
    .Rows(Rows), .XorW(XorW), .AndW(AndW), .InputW(InputW), .LinesW(LinesW), .Bundles(Bundles), .LabelsIn(LabelsIn), .LabelReg(LabelReg)
  ) u_core (
    .clk_i            (clk_i),
    .rst_ni           (rst_ni),
    .program_en_i     (program_en),
    .program_addr_i   (program_addr),
    .program_bundle_i (program_bundle),
    .start_i          (core_start),
    .offset_i         (offset),
    .hash_start_i     (hash_start),
    .instance_i       (instance_low),
    .first_i          (first),
    .step_instance_i  (step_instance),
    .step_first_i     (step_first),
    .prologue_i       ((BundleAW+1)'(prologue)),
    .kernel_i         ((BundleAW+1)'(kernel)),
    .cycles_i         (cycles),
    .repeats_i        (repeats),
    .last_i           ((BundleAW+1)'(last)),
    .leave_from_i     (leave_from),
    .lines_i          (lines),
    .last_keep_i      (last_keep[Rows-1:0]),
    .of_run_i         (of_run),
    .of_cycle_i       (of_cycle),
    .input_ring_i     (input_ring),
    .input_stages_i   (input_stages),
    .busy_o           (core_busy),
    .done_o           (core_done),
    .waits_inputs_o   (waits_inputs),
    .waits_tables_o   (waits_tables),
    .waits_leaves_o   (waits_leaves),
    .scrub_i          (scrub || reset),
    .scrubs_o         (scrubs),
    .in_single_i      (make_labels),
    .in_labels_i      (scrubs ? '0 : in_labels),
    .in_valid_i       (in_valid),
    .in_ready_o       (in_ready),
    .out_tables_o     (tables),
    .out_keep_o       (tables_keep),
    .out_valid_o      (tables_valid),
    .out_ready_i      (tables_ready),
    .leave_label_o    (leave_label),
    .leave_valid_o    (leave_valid),
    .leave_ready_i    (leave_ready)
  );

  garble_sender #(.Rows(Rows), .TablesOut(TablesOut)) u_sender (
    .clk_i                  (clk_i),
    .rst_ni                 (rst_ni),
    .wipe_i                 (scrubs),
    .start_i                (core_start),
    .cycles_i               (cycles),
    .leave_cycles_i         (cycles - leave_from),
    .lines_i                (lines),
    .leaves_i               (leaves),
    .of_run_i               (of_run),
    .of_cycle_i             (of_cycle),
    .colours_i              (colours),
    .empty_o                (empty),
    .tables_i               (tables),
    .tables_keep_i          (tables_keep),
    .tables_valid_i         (tables_valid),
    .tables_ready_o         (tables_ready),
    .leave_i                (leave_label),
    .leave_valid_i          (leave_valid),
    .leave_ready_o          (leave_ready),
    .made_i                 (sent_label),
    .made_valid_i           (sent_valid),
    .made_ready_o           (sent_ready),
    .m_axis_tables_tdata_o  (m_axis_tables_tdata_o),
    .m_axis_tables_tkeep_o  (m_axis_tables_tkeep_o),
    .m_axis_tables_tlast_o  (m_axis_tables_tlast_o),
    .m_axis_tables_tvalid_o (m_axis_tables_tvalid_o),
    .m_axis_tables_tready_i (m_axis_tables_tready_i),
    .m_axis_labels_tdata_o  (m_axis_labels_tdata_o),
    .m_axis_labels_tdest_o  (m_axis_labels_tdest_o),
    .m_axis_labels_tlast_o  (m_axis_labels_tlast_o),
    .m_axis_labels_tvalid_o (m_axis_labels_tvalid_o),
    .m_axis_labels_tready_i (m_axis_labels_tready_i)
  );

`ifndef SYNTHESIS
  logic past_q = 1'b0;

  always_ff @(posedge clk_i) begin : p_assert
    past_q <= rst_ni;
    if (!past_q) begin
      NothingAfterReset_A: assert (!m_axis_tables_tvalid_o && !m_axis_labels_tvalid_o || !rst_ni);
    end
    if (rst_ni && scrubs) begin
      NothingInScrub_A: assert (!s_axis_labels_tready_o && !s_axis_program_tready_o);
    end
    if (core_start) begin
      StartIsAlone_A: assert (!core_busy && empty);
    end
  end
`endif

endmodule
