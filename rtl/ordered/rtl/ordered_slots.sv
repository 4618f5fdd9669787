// Holds the entries that wait for their operands, oldest first: those that start make room for the next ones of the netlist. An entry
// that waits does not hold up younger ones that are held here: so the order is that of the netlist but for Rows - 1 entries.
//
// Latency:  an entry can start in the cycle after it was taken.   Throughput: Rows entries per cycle.

module ordered_slots #(
  parameter  int unsigned Rows   = 2,
  localparam int unsigned CountW = $clog2(2 * Rows + 1),
  localparam int unsigned EntryW = ordered_pkg::EntryW
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Entries of the netlist, the next ones
  input  logic                   fill_i,  // takes them
  input  logic [Rows*EntryW-1:0] next_i,
  input  logic [Rows-1:0]        valid_i,
  output logic [CountW-1:0]      take_o,

  output logic [Rows*EntryW-1:0] entries_o,
  output logic [Rows-1:0]        held_o,
  input  logic [Rows-1:0]        start_i
);

  logic [Rows*EntryW-1:0] entries_d, entries_q;
  logic [Rows-1:0]        held_d, held_q;
  logic [CountW-1:0]      kept;

  assign entries_o = entries_q;
  assign held_o    = held_q;
  assign take_o    = CountW'(Rows) - kept;

  always_comb begin : p_refill
    entries_d = '0;
    held_d    = '0;
    kept      = '0;
    for (int unsigned r = 0; r < Rows; r++) begin
      if (held_q[r] && !start_i[r]) begin
        entries_d[32'(kept)*EntryW +: EntryW] = entries_q[r*EntryW +: EntryW];
        held_d[32'(kept)]                     = 1'b1;
        kept                                  = kept + 1'b1;
      end
    end
    for (int unsigned r = 0; r < Rows; r++) begin
      if (fill_i && r >= 32'(kept)) begin
        entries_d[r*EntryW +: EntryW] = next_i[(r-32'(kept))*EntryW +: EntryW];
        held_d[r]                     = valid_i[r-32'(kept)];
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_held
    if (!rst_ni) begin
      held_q <= '0;
    end else begin
      held_q <= held_d;
    end
  end

  always_ff @(posedge clk_i) begin : p_entries
    entries_q <= entries_d;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      StartsWhatIsHeld_A: assert ((start_i & ~held_q) == '0);
    end
  end
`endif

endmodule
