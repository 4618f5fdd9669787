// The labels of wires, for Rows rows that read two operands each and write one result of an XOR and one of an AND, and for a port
// that reads what leaves.
//
// Every writer has a bank of its own, and every reader a copy of all banks, so that nobody waits for anybody and nothing has to say
// which copy is the latest: an operand names its bank. Of inputs, LabelsIn are written at once, each to a bank of its own. What is written
// in a cycle is what is read in that cycle.
//
// Latency:  a label 1 + LabelReg cycles after its operand.   Throughput: 2 Rows + 1 reads, 2 Rows + LabelsIn writes per cycle.
// Scrubbing writes zeros to all banks, one slot of each per cycle.
//
// A program that names slots beyond a bank is refused before it is loaded: here their upper bits are not looked at.

/* verilator lint_off UNUSEDSIGNAL */ // upper bits of slots, as said above
module garble_store #(
  parameter  int unsigned Rows   = 2,
  parameter  int unsigned XorW   = 11, // logarithm of the slots of a bank
  parameter  int unsigned AndW   = 11,
  parameter  int unsigned InputW = 11, // of the slots of all banks of inputs
  parameter  int unsigned LabelsIn = 2,
  parameter  int unsigned LabelReg = 0, // 1: a register behind the memories
  localparam int unsigned Ports  = 2 * Rows + 1,
  localparam int unsigned SlotW  = garble_pkg::SlotW
) (
  input  logic                                   clk_i,

  // Reads: bank, row and slot of each port
  input  logic [Ports*2-1:0]                     bank_i,
  input  logic [Ports*garble_pkg::RowW-1:0]      row_i,
  input  logic [Ports*SlotW-1:0]                 slot_i,
  output logic [Ports*128-1:0]                   label_o,

  // Writes
  input  logic [Rows-1:0]                        xor_en_i,
  input  logic [Rows*SlotW-1:0]                  xor_slot_i,
  input  logic [Rows*128-1:0]                    xor_label_i,
  input  logic [Rows-1:0]                        and_en_i,
  input  logic [Rows*SlotW-1:0]                  and_slot_i,
  input  logic [Rows*128-1:0]                    and_label_i,
  input  logic [LabelsIn-1:0]                    input_en_i,
  input  logic [SlotW-1:0]                       input_slot_i,
  input  logic [LabelsIn*128-1:0]                input_labels_i,

  // While it is scrubbed, nothing else is written
  input  logic                                   scrub_i,
  input  logic [SlotW-1:0]                       scrub_slot_i
);

  localparam int unsigned LaneW = InputW - $clog2(LabelsIn);

  for (genvar p = 0; p < Ports; p++) begin : g_port
    logic [SlotW-1:0]            slot;
    logic [1:0]                  bank_q;
    logic [garble_pkg::RowW-1:0] row_q;
    logic [Rows*128-1:0]         from_xor, from_and;
    logic [LabelsIn*128-1:0]     from_input;
    garble_pkg::label_t          xor_row, and_row, input_lane, picked;

    assign slot = slot_i[p*SlotW +: SlotW];

    always_ff @(posedge clk_i) begin : p_from
      bank_q <= bank_i[p*2 +: 2];
      row_q  <= row_i[p*garble_pkg::RowW +: garble_pkg::RowW];
    end

    for (genvar r = 0; r < Rows; r++) begin : g_row
      prim_ram_1w1r #(.Width(128), .Depth(1 << XorW)) u_xor (
        .clk_i    (clk_i),
        .w_en_i   (xor_en_i[r] || scrub_i),
        .w_addr_i (scrub_i ? scrub_slot_i[XorW-1:0] : xor_slot_i[r*SlotW +: XorW]),
        .w_data_i (scrub_i ? 128'b0 : xor_label_i[r*128 +: 128]),
        .r_en_i   (1'b1),
        .r_addr_i (slot[XorW-1:0]),
        .r_data_o (from_xor[r*128 +: 128])
      );

      prim_ram_1w1r #(.Width(128), .Depth(1 << AndW)) u_and (
        .clk_i    (clk_i),
        .w_en_i   (and_en_i[r] || scrub_i),
        .w_addr_i (scrub_i ? scrub_slot_i[AndW-1:0] : and_slot_i[r*SlotW +: AndW]),
        .w_data_i (scrub_i ? 128'b0 : and_label_i[r*128 +: 128]),
        .r_en_i   (1'b1),
        .r_addr_i (slot[AndW-1:0]),
        .r_data_o (from_and[r*128 +: 128])
      );
    end

    for (genvar l = 0; l < LabelsIn; l++) begin : g_lane
      prim_ram_1w1r #(.Width(128), .Depth(1 << LaneW)) u_input (
        .clk_i    (clk_i),
        .w_en_i   (input_en_i[l] || scrub_i),
        .w_addr_i (scrub_i ? scrub_slot_i[LaneW-1:0] : input_slot_i[LaneW-1:0]),
        .w_data_i (scrub_i ? 128'b0 : input_labels_i[l*128 +: 128]),
        .r_en_i   (1'b1),
        .r_addr_i (slot[LaneW-1:0]),
        .r_data_o (from_input[l*128 +: 128])
      );
    end

    always_comb begin : p_pick
      xor_row    = '0;
      and_row    = '0;
      input_lane = '0;
      for (int unsigned r = 0; r < Rows; r++) begin
        if (row_q == garble_pkg::RowW'(r)) begin
          xor_row = from_xor[r*128 +: 128];
          and_row = from_and[r*128 +: 128];
        end
      end
      for (int unsigned l = 0; l < LabelsIn; l++) begin
        if (row_q == garble_pkg::RowW'(l)) begin
          input_lane = from_input[l*128 +: 128];
        end
      end
      unique case (bank_q)
        garble_pkg::BankXor:   picked = xor_row;
        garble_pkg::BankAnd:   picked = and_row;
        garble_pkg::BankInput: picked = input_lane;
        garble_pkg::BankZero:  picked = '0;
        default:               picked = '0;
      endcase
    end

    if (LabelReg != 0) begin : g_late
      garble_pkg::label_t picked_q;

      always_ff @(posedge clk_i) begin : p_picked
        picked_q <= picked;
      end

      assign label_o[p*128 +: 128] = picked_q;
    end else begin : g_now
      assign label_o[p*128 +: 128] = picked;
    end
  end

endmodule
/* verilator lint_on UNUSEDSIGNAL */
