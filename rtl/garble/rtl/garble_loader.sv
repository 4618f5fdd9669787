// Takes a program as it comes in beats, and writes its bundles one after the other; looks whether this core has what they name.
//
// Latency:  a bundle is written two cycles after its last beat.   Throughput: one beat per cycle.
// Back-pressure: nothing is taken while locked_i is high.

module garble_loader #(
  parameter  int unsigned Rows     = 2,
  parameter  int unsigned XorW     = 11,
  parameter  int unsigned AndW     = 11,
  parameter  int unsigned InputW   = 11,
  parameter  int unsigned LabelsIn = 2,
  parameter  int unsigned Bundles  = 4096,
  parameter  int unsigned Beat     = 128,
  localparam int unsigned BundleAW = $clog2(Bundles),
  localparam int unsigned BundleW  = Rows * garble_pkg::GateW + garble_pkg::LeaveW + 2 * garble_pkg::NumberW
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           locked_i,

  // The program: a packet
  input  logic [Beat-1:0]                s_axis_program_tdata_i,
  input  logic                           s_axis_program_tlast_i,
  input  logic                           s_axis_program_tvalid_i,
  output logic                           s_axis_program_tready_o,

  output logic                           write_o,
  output logic [BundleAW-1:0]            write_addr_o,
  output logic [BundleW-1:0]             write_bundle_o,

  // What has come wholly, and what its products take
  output logic [31:0]                    length_o,
  output logic [garble_pkg::NumberW:0]   numbers_o, // one more than the highest number of a product
  output logic                           loads_o,   // a program is on its way

  // For one cycle, when a program is forgotten
  output logic                           bad_stream_o,
  output logic                           bad_gate_o
);

  localparam int unsigned Beats  = (BundleW + Beat - 1) / Beat;
  localparam int unsigned BeatsW = Beats > 1 ? $clog2(Beats) : 1;
  localparam int unsigned SlotW  = garble_pkg::SlotW;

  logic [Beats*Beat-1:0] bundle_q;
  logic [BeatsW-1:0]     beat_q;
  logic [31:0]           next_q, length_q;
  logic                  takes, whole, whole_q, last_q, fits, spoilt_q, loads_q, bad_stream, bad_gate;
  logic [garble_pkg::NumberW:0] numbers_q, number;

  assign s_axis_program_tready_o = rst_ni && !locked_i;
  assign takes                   = s_axis_program_tvalid_i && s_axis_program_tready_o;
  assign whole                   = beat_q == BeatsW'(Beats - 1);
  assign fits                    = next_q < 32'(Bundles);
  assign loads_o                 = loads_q;
  assign length_o                = length_q;
  assign numbers_o               = numbers_q;
  assign write_o                 = whole_q && fits && !spoilt_q;
  assign write_addr_o            = next_q[BundleAW-1:0];
  assign write_bundle_o          = bundle_q[BundleW-1:0];

  // A beat at a time, the lowest first: the last one shifted in is the highest.
  always_ff @(posedge clk_i) begin : p_beats
    if (takes) begin
      bundle_q <= (Beats*Beat)'({s_axis_program_tdata_i, bundle_q} >> Beat);
    end
  end

  always_ff @(posedge clk_i) begin : p_place
    if (!rst_ni) begin
      beat_q   <= '0;
      whole_q  <= 1'b0;
      last_q   <= 1'b0;
      loads_q  <= 1'b0;
      next_q   <= '0;
      length_q <= '0;
      spoilt_q <= 1'b0;
    end else begin
      whole_q <= takes && whole;
      last_q  <= takes && s_axis_program_tlast_i;
      if (takes) begin
        beat_q  <= whole || s_axis_program_tlast_i ? '0 : beat_q + 1'b1;
        loads_q <= 1'b1;
      end else if (last_q) begin
        loads_q <= 1'b0;
      end
      if (takes || whole_q) begin
        length_q <= '0;
      end
      if (last_q) begin
        length_q <= bad_stream || bad_gate || spoilt_q ? '0 : next_q + 1'b1;
        next_q   <= '0;
        spoilt_q <= 1'b0;
      end else if (whole_q) begin
        next_q   <= next_q + 32'(fits);
        spoilt_q <= spoilt_q || bad_stream || bad_gate;
      end
    end
  end

  // ---- what is wrong with the bundle
  function automatic logic has(input garble_pkg::operand_t x);
    unique case (x.bank)
      garble_pkg::BankXor:   has = 32'(x.row) < Rows && x.place.slot >> XorW == '0;
      garble_pkg::BankAnd:   has = 32'(x.row) < Rows && x.place.slot >> AndW == '0;
      garble_pkg::BankInput: has = 32'(x.row) < LabelsIn && x.place.slot >> (InputW - $clog2(LabelsIn)) == '0;
      default:               has = 1'b1;
    endcase
  endfunction

  // A stage more would be that of a netlist cycle of which the first product is no longer known.
  function automatic logic late(input logic [garble_pkg::StageW-1:0] stage);
    late = stage == '1;
  endfunction

  logic               wrong;
  /* verilator lint_off UNUSEDSIGNAL */ // inversions are always there
  garble_pkg::gate_t  gate;
  /* verilator lint_on UNUSEDSIGNAL */
  garble_pkg::leave_t leave;

  always_comb begin : p_look
    leave  = bundle_q[2*garble_pkg::NumberW +: garble_pkg::LeaveW];
    wrong  = leave.valid && (!has(leave.from) || late(leave.stage));
    number = '0;
    gate   = '0;
    for (int unsigned r = 0; r < Rows; r++) begin
      gate = bundle_q[2*garble_pkg::NumberW + garble_pkg::LeaveW + r*garble_pkg::GateW +: garble_pkg::GateW];
      if (gate.valid) begin
        if (!has(gate.a) || !has(gate.b) || late(gate.stage) || gate.c.slot >> (gate.is_and ? AndW : XorW) != SlotW'(0)) begin
          wrong = 1'b1;
        end
        if (gate.is_and && {1'b0, gate.number} >= number) begin
          number = {1'b0, gate.number} + 1'b1;
        end
      end
    end
  end

  assign bad_stream   = (last_q && !whole_q) || (whole_q && !fits);
  assign bad_gate     = whole_q && wrong;
  assign bad_stream_o = bad_stream && !spoilt_q;
  assign bad_gate_o   = bad_gate && !spoilt_q;

  always_ff @(posedge clk_i) begin : p_numbers
    if (!rst_ni) begin
      numbers_q <= '0;
    end else if (whole_q) begin
      numbers_q <= next_q == '0 || number > numbers_q ? number : numbers_q;
    end
  end

endmodule
