// Says which operands are there. The result of an entry has a tag, of the run and the parity of the netlist cycle: an operand of this
// cycle is there when the tag of its entry is that of this cycle. Nothing has to be cleared between cycles, as every entry has a result
// in every cycle; between runs the tag says that it is not of this one.
//
// A register takes what its D was in the cycle before. If that is a gate, the gate's tag is still of that cycle when it is there: no gate
// starts before all registers have. If it is a register, it is there.
// Latency:  none.   Throughput: all operands, and all that come, in every cycle.

module ordered_ready #(
  parameter  int unsigned Rows   = 2,
  parameter  int unsigned LabelW = 13,
  localparam int unsigned Ports  = 2 * Rows,
  localparam int unsigned TagW   = ordered_pkg::TagW,
  localparam int unsigned OperandW = ordered_pkg::OperandW
) (
  input  logic                      clk_i,

  input  logic [TagW-1:0]           tag_i, // of this netlist cycle; bit 0 is its parity

  // Operands: two of each row
  input  logic [Ports*OperandW-1:0] operand_i,
  input  logic [Ports-1:0]          of_register_i,
  output logic [Ports-1:0]          ready_o,

  // Results whose labels can be read from the next cycle on
  input  logic [Ports-1:0]          done_i,
  input  logic [Ports*LabelW-1:0]   done_at_i,
  input  logic [Ports*TagW-1:0]     done_tag_i,

  input  logic                      scrub_i,
  input  logic [LabelW-1:0]         scrub_at_i
);

  logic [Ports*LabelW-1:0] at;
  logic [Ports*TagW-1:0]   tags;

  prim_ram_xor #(.Width(TagW), .Depth(1 << LabelW), .Writes(Ports), .Reads(Ports)) u_tags (
    .clk_i        (clk_i),
    .clear_i      (scrub_i),
    .clear_addr_i (scrub_at_i),
    .w_en_i       (done_i),
    .w_addr_i     (done_at_i),
    .w_data_i     (done_tag_i),
    .r_addr_i     (at),
    .r_data_o     (tags)
  );

  for (genvar p = 0; p < Ports; p++) begin : g_at
    assign at[p*LabelW +: LabelW] = operand_i[p*OperandW +: LabelW]; // the index is the lower end of an operand
  end

  always_comb begin : p_ready
    ready_o = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      unique case (operand_i[p*OperandW+ordered_pkg::IndexW +: 2])
        ordered_pkg::KindGate:     ready_o[p] = tags[p*TagW +: TagW] == (tag_i ^ TagW'(of_register_i[p]));
        ordered_pkg::KindRegister: ready_o[p] = of_register_i[p] || tags[p*TagW +: TagW] == tag_i;
        ordered_pkg::KindInput:    ready_o[p] = 1'b1;
        ordered_pkg::KindZero:     ready_o[p] = 1'b1;
        default:                   ready_o[p] = 1'b0;
      endcase
    end
  end

endmodule
