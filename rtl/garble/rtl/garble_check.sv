// What stands against a run, of what its parameters say. All of it is looked at in every cycle; the run waits for it.
//
// Latency:  3 cycles.

module garble_check #(
  parameter  int unsigned Rows    = 2,
  parameter  int unsigned InputW  = 11,
  parameter  int unsigned LabelsIn = 2,
  localparam int unsigned NumberW = garble_pkg::NumberW
) (
  input  logic                         clk_i,

  input  logic [31:0]                  length_i,  // of the program
  input  logic                         loads_i,   // it is on its way
  input  logic [NumberW:0]             numbers_i, // of products that it has in a netlist cycle
  input  logic [15:0]                  instance_i,
  input  garble_pkg::product_t         first_i,
  input  logic [NumberW-1:0]           step_first_i,
  input  logic                         step_instance_i,
  input  logic [19:0]                  prologue_i,
  input  logic [19:0]                  kernel_i,
  input  logic [31:0]                  cycles_i,
  input  logic [31:0]                  repeats_i,
  input  logic [19:0]                  last_i,
  input  logic [31:0]                  leave_from_i,
  input  logic [31:0]                  lines_i,
  input  logic [15:0]                  last_keep_i,
  input  logic [NumberW-1:0]           of_run_i,
  input  logic [NumberW-1:0]           of_cycle_i,
  input  logic [garble_pkg::RingW-1:0] ring_i,
  input  logic                         secrets_i, // all that the run needs were written

  output logic                         program_o,
  output logic                         cycles_o,
  output logic                         inputs_o,
  output logic                         numbers_o,
  output logic                         lines_o,
  output logic                         secrets_o
);

  localparam int unsigned RowsW  = $clog2(Rows);
  localparam int unsigned LanesW = $clog2(LabelsIn);

  logic [31:0] behind_q, inputs_q, aligned_q, run_slots, cycle_slots; // slots of a bank of inputs
  logic [45:0] reach_q;
  logic [48:0] products_q, lines_q;
  logic [32:0] instances_q;

  assign run_slots   = (32'(of_run_i) + 32'(LabelsIn - 1)) >> LanesW;
  assign cycle_slots = (32'(of_cycle_i) + 32'(LabelsIn - 1)) >> LanesW;

  // Sums, and the product, in two steps.
  always_ff @(posedge clk_i) begin : p_sums
    behind_q    <= repeats_i - cycles_i;
    aligned_q   <= (run_slots + (32'd1 << ring_i) - 32'd1) & ~((32'd1 << ring_i) - 32'd1);
    inputs_q    <= of_cycle_i == '0 ? run_slots : aligned_q + (cycle_slots << ring_i);
    reach_q     <= 46'(cycles_i) * 46'(step_first_i);
    lines_q     <= 49'(lines_i) << RowsW;
    products_q  <= 49'(first_i) + 49'(reach_q) + lines_q;
    instances_q <= 33'(instance_i) + (step_instance_i ? 33'(cycles_i) : 33'd1);
  end

  always_ff @(posedge clk_i) begin : p_against
    program_o <= loads_i || kernel_i == '0 || last_i == '0 || last_i > kernel_i
              || 32'(prologue_i) + 32'(kernel_i) > length_i;
    cycles_o  <= cycles_i == '0 || repeats_i < cycles_i || behind_q > 32'd126 || leave_from_i > cycles_i;
    inputs_o  <= inputs_q > 32'd1 << (InputW - LanesW);
    numbers_o <= products_q > 49'd1 << 47 || instances_q > 33'd1 << 16;
    lines_o   <= (lines_i == '0) != (last_keep_i == '0) || last_keep_i >> Rows != '0
              || (last_keep_i & (last_keep_i + 16'd1)) != '0 || 49'(numbers_i) > lines_q;
    secrets_o <= !secrets_i;
  end

endmodule
