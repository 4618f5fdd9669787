// The core behind few pins, so that it can be placed and routed by itself: what goes in comes from a shift register, what comes out goes
// through one. For measuring only.

module garble_pins #(
  parameter  int unsigned Rows     = 1,
  parameter  int unsigned XorW     = 9,
  parameter  int unsigned AndW     = 9,
  parameter  int unsigned InputW   = 9,
  parameter  int unsigned LinesW   = 9,
  parameter  int unsigned Bundles  = 512,
  parameter  int unsigned LabelsIn = 1,
  parameter  int unsigned LabelReg = 0,
  localparam int unsigned BundleAW = $clog2(Bundles),
  localparam int unsigned BundleW  = Rows * garble_pkg::GateW + garble_pkg::LeaveW + 2 * garble_pkg::NumberW,
  localparam int unsigned CycleW   = garble_pkg::CycleW,
  localparam int unsigned NumberW  = garble_pkg::NumberW,
  localparam int unsigned OutW     = Rows * 256 + Rows + 128 + 5
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic shift_i,
  input  logic keep_i, // what has come out, rather than what comes out now
  output logic shift_o
);

  typedef struct packed {
    logic                          program_en;
    logic [BundleAW-1:0]           program_addr;
    logic [BundleW-1:0]            program_bundle;
    logic                          start;
    logic [127:0]                  offset;
    logic [127:0]                  hash_start;
    logic [15:0]                   instance_first;
    logic [46:0]                   first;
    logic                          step_instance;
    logic [NumberW-1:0]            step_first;
    logic [BundleAW:0]             prologue;
    logic [BundleAW:0]             kernel;
    logic [CycleW-1:0]             cycles;
    logic [CycleW-1:0]             repeats;
    logic [BundleAW:0]             last;
    logic [CycleW-1:0]             leave_from;
    logic [31:0]                   lines;
    logic [Rows-1:0]               last_keep;
    logic [NumberW-1:0]            of_run;
    logic [NumberW-1:0]            of_cycle;
    logic [garble_pkg::RingW-1:0]  input_ring;
    logic [garble_pkg::StageW-1:0] input_stages;
    logic                          scrub;
    logic                          in_single;
    logic [LabelsIn*128-1:0]       in_labels;
    logic                          in_valid;
    logic                          out_ready;
    logic                          leave_ready;
  } in_t;

  in_t             in_q;
  logic [OutW-1:0] out, out_q;

  assign shift_o = out_q[OutW-1];

  always_ff @(posedge clk_i) begin : p_shift
    in_q  <= {in_q, shift_i}; // the highest bit goes
    out_q <= keep_i ? {out_q[OutW-2:0], 1'b0} : out;
  end

  garble_core #(
    .Rows(Rows), .XorW(XorW), .AndW(AndW), .InputW(InputW), .LinesW(LinesW), .Bundles(Bundles), .LabelsIn(LabelsIn), .LabelReg(LabelReg)
  ) u_core (
    .clk_i            (clk_i),
    .rst_ni           (rst_ni),
    .program_en_i     (in_q.program_en),
    .program_addr_i   (in_q.program_addr),
    .program_bundle_i (in_q.program_bundle),
    .start_i          (in_q.start),
    .offset_i         (in_q.offset),
    .hash_start_i     (in_q.hash_start),
    .instance_i       (in_q.instance_first),
    .first_i          (in_q.first),
    .step_instance_i  (in_q.step_instance),
    .step_first_i     (in_q.step_first),
    .prologue_i       (in_q.prologue),
    .kernel_i         (in_q.kernel),
    .cycles_i         (in_q.cycles),
    .repeats_i        (in_q.repeats),
    .last_i           (in_q.last),
    .leave_from_i     (in_q.leave_from),
    .lines_i          (in_q.lines),
    .last_keep_i      (in_q.last_keep),
    .of_run_i         (in_q.of_run),
    .of_cycle_i       (in_q.of_cycle),
    .input_ring_i     (in_q.input_ring),
    .input_stages_i   (in_q.input_stages),
    .busy_o           (out[0]),
    .done_o           (out[1]),
    .scrub_i          (in_q.scrub),
    .in_single_i      (in_q.in_single),
    .in_labels_i      (in_q.in_labels),
    .in_valid_i       (in_q.in_valid),
    .in_ready_o       (out[2]),
    .out_tables_o     (out[5+Rows+128 +: Rows*256]),
    .out_keep_o       (out[5+128 +: Rows]),
    .out_valid_o      (out[3]),
    .out_ready_i      (in_q.out_ready),
    .leave_label_o    (out[5 +: 128]),
    .leave_valid_o    (out[4]),
    .leave_ready_i    (in_q.leave_ready)
  );

endmodule
