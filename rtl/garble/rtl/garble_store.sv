// The labels of wires, for Rows rows that read two operands each and write one result of an XOR and one of an AND, and for a port
// that reads what leaves.
//
// Every writer has a bank of its own, and every reader a copy of all banks, so that nobody waits for anybody and nothing has to say
// which copy is the latest: an operand names its bank. What is written in a cycle is what is read in that cycle.
//
// Latency:  a label one cycle after its operand.   Throughput: 2 Rows + 1 reads, 2 Rows + 1 writes per cycle.
// Scrubbing writes zeros to all banks, one slot of each per cycle.
//
// A program that names slots beyond a bank is refused before it is loaded: here their upper bits are not looked at.

/* verilator lint_off UNUSEDSIGNAL */ // upper bits of slots, as said above
module garble_store #(
  parameter  int unsigned Rows   = 2,
  parameter  int unsigned XorW   = 11, // logarithm of the slots of a bank
  parameter  int unsigned AndW   = 11,
  parameter  int unsigned InputW = 11,
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
  input  logic                                   input_en_i,
  input  logic [SlotW-1:0]                       input_slot_i,
  input  garble_pkg::label_t                     input_label_i,

  // While it is scrubbed, nothing else is written
  input  logic                                   scrub_i,
  input  logic [SlotW-1:0]                       scrub_slot_i
);

  for (genvar p = 0; p < Ports; p++) begin : g_port
    logic [SlotW-1:0]            slot;
    logic [1:0]                  bank_q;
    logic [garble_pkg::RowW-1:0] row_q;
    logic [Rows*128-1:0]         from_xor, from_and;
    garble_pkg::label_t          from_input, xor_row, and_row, picked;

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

    prim_ram_1w1r #(.Width(128), .Depth(1 << InputW)) u_input (
      .clk_i    (clk_i),
      .w_en_i   (input_en_i || scrub_i),
      .w_addr_i (scrub_i ? scrub_slot_i[InputW-1:0] : input_slot_i[InputW-1:0]),
      .w_data_i (scrub_i ? 128'b0 : input_label_i),
      .r_en_i   (1'b1),
      .r_addr_i (slot[InputW-1:0]),
      .r_data_o (from_input)
    );

    always_comb begin : p_pick
      xor_row = '0;
      and_row = '0;
      for (int unsigned r = 0; r < Rows; r++) begin
        if (row_q == garble_pkg::RowW'(r)) begin
          xor_row = from_xor[r*128 +: 128];
          and_row = from_and[r*128 +: 128];
        end
      end
      unique case (bank_q)
        garble_pkg::BankXor:   picked = xor_row;
        garble_pkg::BankAnd:   picked = and_row;
        garble_pkg::BankInput: picked = from_input;
        garble_pkg::BankZero:  picked = '0;
        default:               picked = '0;
      endcase
    end

    assign label_o[p*128 +: 128] = picked;
  end

endmodule
/* verilator lint_on UNUSEDSIGNAL */
