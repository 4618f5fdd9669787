// Labels of inputs: taken from the source when an entry that reads them starts for the first time, in that cycle; kept for those that
// read them later; and given out in the order of the inputs.
//
// Inputs 0 to of_run_i - 1 have one label in a run, which entries of the first netlist cycle read. Then come of_cycle_i inputs that
// have a label in each cycle, then of_later_i inputs that have one in each but the first. Every one of them is read by an entry in
// every such cycle. Tags say which labels there are, as for the results of entries.
//
// Latency:  a label is read one cycle after its entry started.   Throughput: all operands of all rows.
// Back-pressure: ready_o is low when labels of this cycle would overwrite some of the last one that have not left, or when the source
// has not enough. A label that is given out stays until it is taken.

module ordered_inputs #(
  parameter  int unsigned Rows   = 2,
  parameter  int unsigned InputW = 10, // logarithm of the inputs
  localparam int unsigned Ports  = 2 * Rows,
  localparam int unsigned CountW = $clog2(2 * Ports + 1),
  localparam int unsigned IndexW = ordered_pkg::IndexW,
  localparam int unsigned CycleW = ordered_pkg::CycleW,
  localparam int unsigned TagW   = ordered_pkg::TagW
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  // A run
  input  logic                     start_i,
  input  logic [IndexW-1:0]        of_run_i,
  input  logic [IndexW-1:0]        of_cycle_i,
  input  logic [IndexW-1:0]        of_later_i,
  input  logic [CycleW-1:0]        cycles_i,
  input  logic [CycleW-1:0]        cycle_i, // that goes on
  input  logic [TagW-1:0]          tag_i,   // of it; bit 0 is its parity

  // Operands of entries that start if they may
  input  logic [Ports-1:0]         reads_i,
  input  logic [Ports*IndexW-1:0]  index_i,
  output logic                     ready_o,
  input  logic                     go_i,    // they do
  output logic [Ports*128-1:0]     label_o, // in the next cycle

  // The source: the next labels, how many there are, how many are taken
  input  logic [Ports*128-1:0]     source_i,
  input  logic [CountW-1:0]        source_count_i,
  output logic [CountW-1:0]        source_take_o,

  // Labels in the order of inputs
  output garble_pkg::label_t       out_label_o,
  output logic                     out_valid_o,
  input  logic                     out_ready_i,
  output logic [CycleW-1:0]        out_cycle_o, // of the next one; cycles_i when all have left

  input  logic                     scrub_i,
  input  logic [InputW-1:0]        scrub_at_i
);

  // ---- which operands are the first to read their input
  logic [Ports*InputW-1:0]     at;
  logic [(Ports+1)*TagW-1:0]   tags;
  logic [Ports*TagW-1:0]       now;
  logic [Ports-1:0]            first;
  logic [Ports*128-1:0]        drawn;
  logic [CountW-1:0]           count;
  logic                        kept; // what would be overwritten has left

  logic [IndexW-1:0]           out_d, out_q, end_of_cycle;
  logic [CycleW-1:0]           cycle_d, cycle_q;
  logic                        valid_q, moves, there;

  for (genvar p = 0; p < Ports; p++) begin : g_at
    assign at[p*InputW +: InputW] = index_i[p*IndexW +: InputW];
    assign now[p*TagW +: TagW]    = index_i[p*IndexW +: IndexW] < of_run_i ? {tag_i[TagW-1:1], 1'b0} : tag_i;
  end

  always_comb begin : p_first
    first = '0;
    drawn = '0;
    count = '0;
    kept  = 1'b1;
    for (int unsigned p = 0; p < Ports; p++) begin
      first[p] = reads_i[p] && tags[p*TagW +: TagW] != now[p*TagW +: TagW];
      for (int unsigned q = 0; q < p; q++) begin
        if (reads_i[q] && index_i[q*IndexW +: IndexW] == index_i[p*IndexW +: IndexW]) begin
          first[p] = 1'b0;
        end
      end
      if (first[p]) begin
        drawn[p*128 +: 128] = source_i[32'(count)*128 +: 128];
        count               = count + 1'b1;
        if (cycle_q != cycle_i && index_i[p*IndexW +: IndexW] >= out_q) begin
          kept = 1'b0;
        end
      end
    end
  end

  assign ready_o       = kept && count <= source_count_i;
  assign source_take_o = go_i ? count : '0;

  prim_ram_xor #(.Width(TagW), .Depth(1 << InputW), .Writes(Ports), .Reads(Ports + 1)) u_tags (
    .clk_i        (clk_i),
    .clear_i      (scrub_i),
    .clear_addr_i (scrub_at_i),
    .w_en_i       (first & {Ports{go_i}}),
    .w_addr_i     (at),
    .w_data_i     (now),
    .r_addr_i     ({out_d[InputW-1:0], at}),
    .r_data_o     (tags)
  );

  prim_ram_lvt #(.Width(128), .Depth(1 << InputW), .Writes(Ports), .Reads(Ports + 1)) u_labels (
    .clk_i        (clk_i),
    .clear_i      (scrub_i),
    .clear_addr_i (scrub_at_i),
    .w_en_i       (first & {Ports{go_i}}),
    .w_addr_i     (at),
    .w_data_i     (drawn),
    .r_addr_i     ({out_d[InputW-1:0], at}),
    .r_data_o     ({out_label_o, label_o})
  );

  // ---- labels that leave: the tag of the next one is looked at in each cycle, and its label read
  assign moves          = valid_q && out_ready_i;
  assign end_of_cycle   = of_run_i + of_cycle_i + (cycle_d == '0 ? '0 : of_later_i);
  assign out_valid_o    = valid_q;
  assign out_cycle_o    = cycle_q;
  assign there          = cycle_d != cycles_i && out_d < end_of_cycle && cycle_d <= cycle_i
                        && tags[Ports*TagW +: TagW]
                           == {tag_i[TagW-1:1], out_d >= of_run_i && cycle_d[0]};

  always_comb begin : p_next
    out_d   = out_q;
    cycle_d = cycle_q;
    if (moves) begin
      out_d = out_q + 1'b1;
    end else if (!valid_q && cycle_q != cycles_i && cycle_q <= cycle_i
                 && out_q >= of_run_i + of_cycle_i + (cycle_q == '0 ? '0 : of_later_i)) begin
      out_d   = of_run_i;
      cycle_d = cycle_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin : p_out
    if (!rst_ni) begin
      out_q   <= '0;
      cycle_q <= '0;
      valid_q <= 1'b0;
    end else if (start_i) begin
      out_q   <= '0;
      cycle_q <= '0;
      valid_q <= 1'b0;
    end else begin
      out_q   <= out_d;
      cycle_q <= cycle_d;
      valid_q <= there;
    end
  end

`ifndef SYNTHESIS
  prim_stable #(.Width(128)) u_stable (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni && !start_i),
    .data_i  (out_label_o),
    .valid_i (out_valid_o),
    .ready_i (out_ready_i)
  );
`endif

endmodule
