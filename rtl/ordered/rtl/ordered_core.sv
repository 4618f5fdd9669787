// The garbler that takes gates in the order of the netlist: Rows rows, each with an entry that starts when its operands are there. It is
// the design of Oishi, Kadomoto, Irie, Sakai, "FPGA-based Garbling Accelerator with Parallel Pipeline Processing", with the same number
// of cycles for the same netlist, but with a sound hash, back-pressure at every stream, and the scrubbing of labels.
//
// Latency:  an operand can be read 2 cycles after the XOR or register started, 12 cycles after the AND.   Throughput: Rows entries per
// cycle. Netlist cycles do not overlap; their number of cycles is told at ordered_control. No cycle depends on a label.
// Back-pressure: nothing starts while the source has too few labels, tables have no room, or labels of the same inputs have not left.
// Results come at their latencies, whether or not something starts meanwhile.

module ordered_core #(
  parameter  int unsigned Rows    = 2,    // 1 to 16
  parameter  int unsigned LabelW  = 13,   // logarithm of entries and registers together
  parameter  int unsigned InputW  = 10,   // logarithm of the inputs
  parameter  int unsigned Outputs = 256,  // of a netlist cycle
  parameter  int unsigned TableW  = 9,    // logarithm of the tables that wait
  parameter  int unsigned LinesW  = $clog2(((1 << LabelW) + Rows - 1) / Rows), // logarithm of the lines of the netlist, Rows entries each
  localparam int unsigned Ports   = 2 * Rows,
  localparam int unsigned BankW   = Rows > 1 ? $clog2(Rows) : 1,
  localparam int unsigned CountW  = $clog2(2 * Rows + 1),
  localparam int unsigned DrawW   = $clog2(2 * Ports + 1),
  localparam int unsigned WordW   = ordered_pkg::WordW,
  localparam int unsigned EntryW  = ordered_pkg::EntryW,
  localparam int unsigned IndexW  = ordered_pkg::IndexW,
  localparam int unsigned ProductW = ordered_pkg::ProductW,
  localparam int unsigned OutputW = ordered_pkg::OutputW,
  localparam int unsigned CycleW  = ordered_pkg::CycleW,
  localparam int unsigned TagW    = ordered_pkg::TagW,
  localparam int unsigned OperandW = ordered_pkg::OperandW
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // The netlist, written while nothing runs: entry e in bank e mod Rows of line e / Rows
  input  logic                   netlist_en_i,
  input  logic [LinesW-1:0]      netlist_line_i,
  input  logic [BankW-1:0]       netlist_bank_i,
  input  logic [WordW-1:0]       netlist_word_i,

  // What a run is. Stable from start_i until done_o
  input  logic                   start_i,
  input  garble_pkg::label_t     offset_i,
  input  aes_pkg::block_t        hash_start_i,
  input  logic [15:0]            instance_i,   // low bits of the gates' numbers
  input  logic [ProductW-1:0]    first_i,      // number of the first product
  input  logic [IndexW-1:0]      entries_i,    // at least 1
  input  logic [CycleW-1:0]      cycles_i,     // netlist cycles, at least 1
  input  logic [IndexW-1:0]      of_run_i,     // inputs: one label in the run
  input  logic [IndexW-1:0]      of_cycle_i,   // one in each cycle
  input  logic [IndexW-1:0]      of_later_i,   // one in each cycle but the first
  output logic                   busy_o,
  output logic                   done_o,       // for one cycle
  output logic [47:0]            cycles_o,     // that the run took, until its last netlist cycle ended

  // Wipes all labels and tables; ends a run
  input  logic                   scrub_i,

  // The source of labels, which are taken in the order of their first use. What is left of a line when a run ends is forgotten
  input  logic [Ports*128-1:0]   in_labels_i,
  input  logic                   in_valid_i,
  output logic                   in_ready_o,

  // Labels of inputs: of the run, then of each cycle
  output garble_pkg::label_t     label_o,
  output logic                   label_valid_o,
  input  logic                   label_ready_i,

  // Tables in the order of their products
  output garble_pkg::table_t     table_o,
  output logic                   table_valid_o,
  input  logic                   table_ready_i,

  // Masks of all outputs of a netlist cycle
  output logic [Outputs-1:0]     masks_o,
  output logic                   masks_valid_o,
  input  logic                   masks_ready_i
);

  localparam int unsigned MemoryW = LabelW > InputW ? (LabelW > TableW ? LabelW : TableW) : (InputW > TableW ? InputW : TableW);
  localparam int unsigned ScrubW  = MemoryW > 5 ? MemoryW : 5;

  // ---- netlist cycles
  logic              begins, restarts, fills, issues, closes, scrubs, works;
  logic [CycleW-1:0] cycle, label_cycle;
  logic [TagW-1:0]   tag;
  logic [ScrubW-1:0] scrub_at;
  logic [Rows-1:0]   held, start, masks_wait, row_busy;
  logic              masks_room, tables_left;

  assign works = rst_ni && !scrubs;

  ordered_control #(.ScrubW(ScrubW)) u_control (
    .clk_i         (clk_i),
    .rst_ni        (rst_ni),
    .scrub_i       (scrub_i),
    .start_i       (start_i),
    .cycles_i      (cycles_i),
    .busy_o        (busy_o),
    .done_o        (done_o),
    .cycles_o      (cycles_o),
    .held_i        (held != '0),
    .masks_wait_i  (masks_wait != '0),
    .busy_i        (row_busy != '0),
    .masks_room_i  (masks_room),
    .masks_left_i  (!masks_valid_o),
    .tables_left_i (tables_left),
    .label_cycle_i (label_cycle),
    .begin_o       (begins),
    .restart_o     (restarts),
    .fill_o        (fills),
    .issue_o       (issues),
    .close_o       (closes),
    .cycle_o       (cycle),
    .tag_o         (tag),
    .scrub_o       (scrubs),
    .scrub_at_o    (scrub_at)
  );

  // ---- entries
  logic [Rows*EntryW-1:0] next_entries, entries;
  logic [Rows-1:0]        next_valid;
  logic [CountW-1:0]      take;
  logic [31:0]            next_product;

  ordered_fetch #(.Rows(Rows), .LinesW(LinesW)) u_fetch (
    .clk_i     (clk_i),
    .rst_ni    (works),
    .w_en_i    (netlist_en_i),
    .w_line_i  (netlist_line_i),
    .w_bank_i  (netlist_bank_i),
    .w_word_i  (netlist_word_i),
    .start_i   (begins),
    .first_i   (first_i),
    .restart_i (restarts),
    .entries_i (entries_i),
    .entries_o (next_entries),
    .valid_o   (next_valid),
    .product_o (next_product),
    .next_i    (fills),
    .take_i    (take)
  );

  ordered_slots #(.Rows(Rows)) u_slots (
    .clk_i     (clk_i),
    .rst_ni    (works),
    .fill_i    (fills),
    .next_i    (next_entries),
    .valid_i   (next_valid),
    .take_o    (take),
    .entries_o (entries),
    .held_o    (held),
    .start_i   (start)
  );

  // ---- operands: of registers the first is what they take, and the second nothing
  logic [Ports*OperandW-1:0] operand;
  logic [Ports*IndexW-1:0]   index;
  logic [Ports*LabelW-1:0]   label_at;
  logic [Ports-1:0]          of_register, is_input, is_zero, ready;
  logic [Rows-1:0]           is_register, is_and, is_output, not_a, not_b, not_c;
  logic [Rows*LabelW-1:0]    entry_at, result_at;
  logic [Rows*ProductW-1:0]  product;
  logic [Rows*OutputW-1:0]   out;

  // Registers have a label of each parity, so that all take what others were before.
  function automatic logic [LabelW-1:0] place_of_register(input logic [LabelW-1:0] register, input logic odd);
    place_of_register = odd ? ~register : register;
  endfunction

  always_comb begin : p_operands
    ordered_pkg::entry_t   entry;
    ordered_pkg::operand_t a, b;
    entry = '0;
    a     = '0;
    b     = '0;
    {operand, index, label_at, of_register, is_input, is_zero}    = '0;
    {is_register, is_and, is_output, not_a, not_b, not_c}         = '0;
    {entry_at, result_at, product, out}                           = '0;
    for (int unsigned r = 0; r < Rows; r++) begin
      entry          = entries[r*EntryW +: EntryW];
      a              = entry.word.a;
      b              = entry.word.b;
      is_register[r] = entry.word.is_register;
      is_and[r]      = entry.word.is_and && !entry.word.is_register;
      is_output[r]   = entry.word.is_output;
      not_a[r]       = entry.word.not_a;
      not_b[r]       = entry.word.not_b;
      not_c[r]       = entry.word.not_c;
      if (is_register[r]) begin
        if (cycle == '0) begin
          a        = b;
          not_a[r] = not_b[r];
        end
        b.kind   = ordered_pkg::KindZero;
        not_b[r] = 1'b0;
      end
      operand[2*r*OperandW +: OperandW]     = a;
      operand[(2*r+1)*OperandW +: OperandW] = b;
      index[2*r*IndexW +: IndexW]           = a.index;
      index[(2*r+1)*IndexW +: IndexW]       = b.index;
      of_register[2*r]   = is_register[r];
      of_register[2*r+1] = is_register[r];
      is_input[2*r]      = a.kind == ordered_pkg::KindInput;
      is_input[2*r+1]    = b.kind == ordered_pkg::KindInput;
      is_zero[2*r]       = a.kind == ordered_pkg::KindZero;
      is_zero[2*r+1]     = b.kind == ordered_pkg::KindZero;
      label_at[2*r*LabelW +: LabelW]     = a.kind == ordered_pkg::KindRegister
          ? place_of_register(a.index[LabelW-1:0], cycle[0] ^ is_register[r]) : a.index[LabelW-1:0];
      label_at[(2*r+1)*LabelW +: LabelW] = b.kind == ordered_pkg::KindRegister
          ? place_of_register(b.index[LabelW-1:0], cycle[0]) : b.index[LabelW-1:0];
      entry_at[r*LabelW +: LabelW]    = entry.index[LabelW-1:0];
      result_at[r*LabelW +: LabelW]   = is_register[r]
          ? place_of_register(entry.index[LabelW-1:0], cycle[0]) : entry.index[LabelW-1:0];
      product[r*ProductW +: ProductW] = entry.product;
      out[r*OutputW +: OutputW]       = entry.out;
    end
  end

  // ---- what may start: no gate before all registers, as one of these may take what the gate was before
  logic [Rows-1:0] may;
  logic            register_waits, inputs_ready, tables_room, goes;
  logic [Rows*32-1:0] number;
  logic [31:0]     next_table, number_delta_q; // number of a table less that of its product

  always_comb begin : p_may
    register_waits = 1'b0;
    tables_room    = 1'b1;
    may            = '0;
    number         = '0;
    for (int unsigned r = 0; r < Rows; r++) begin
      may[r] = held[r] && ready[2*r] && ready[2*r+1];
      if (held[r] && is_register[r] && !may[r]) begin
        register_waits = 1'b1;
      end
    end
    for (int unsigned r = 0; r < Rows; r++) begin
      number[r*32 +: 32] = product[r*ProductW +: 32] + number_delta_q;
      may[r]             = may[r] && (is_register[r] || !register_waits);
      if (may[r] && is_and[r] && number[r*32 +: 32] - next_table >= 32'd1 << TableW) begin
        tables_room = 1'b0;
      end
    end
  end

  assign goes        = issues && inputs_ready && tables_room;
  assign start       = may & {Rows{goes}};
  assign tables_left = next_product + number_delta_q == next_table;

  always_ff @(posedge clk_i) begin : p_delta
    if (begins) begin
      number_delta_q <= next_table - first_i[31:0];
    end
  end

  // ---- labels of inputs
  logic [Ports*128-1:0] source, input_labels;
  logic [DrawW-1:0]     source_count, source_take;
  logic                 source_ready;
  logic [Ports-1:0]     reads_input;

  for (genvar p = 0; p < Ports; p++) begin : g_reads
    assign reads_input[p] = may[p/2] && is_input[p];
  end

  ordered_window #(.Words(Ports), .Width(128)) u_source (
    .clk_i        (clk_i),
    .rst_ni       (works),
    .clear_i      (begins),
    .line_i       (in_labels_i),
    .line_valid_i (in_valid_i && issues),
    .line_ready_o (source_ready),
    .words_o      (source),
    .count_o      (source_count),
    .take_i       (source_take)
  );

  assign in_ready_o = source_ready && issues;

  ordered_inputs #(.Rows(Rows), .InputW(InputW)) u_inputs (
    .clk_i          (clk_i),
    .rst_ni         (works),
    .start_i        (begins),
    .of_run_i       (of_run_i),
    .of_cycle_i     (of_cycle_i),
    .of_later_i     (of_later_i),
    .cycles_i       (cycles_i),
    .cycle_i        (cycle),
    .tag_i          (tag),
    .reads_i        (reads_input),
    .index_i        (index),
    .ready_o        (inputs_ready),
    .go_i           (goes),
    .label_o        (input_labels),
    .source_i       (source),
    .source_count_i (source_count),
    .source_take_o  (source_take),
    .out_label_o    (label_o),
    .out_valid_o    (label_valid_o),
    .out_ready_i    (label_ready_i),
    .out_cycle_o    (label_cycle),
    .scrub_i        (scrubs),
    .scrub_at_i     (scrub_at[InputW-1:0])
  );

  // ---- labels of entries
  logic [Ports-1:0]        done, write;
  logic [Ports*LabelW-1:0] done_at, write_at;
  logic [Ports*TagW-1:0]   done_tag;
  logic [Ports*128-1:0]    written, labels;
  logic [Ports-1:0]        is_input_q, is_zero_q;

  ordered_ready #(.Rows(Rows), .LabelW(LabelW)) u_ready (
    .clk_i         (clk_i),
    .tag_i         (tag),
    .operand_i     (operand),
    .of_register_i (of_register),
    .ready_o       (ready),
    .done_i        (done),
    .done_at_i     (done_at),
    .done_tag_i    (done_tag),
    .scrub_i       (scrubs),
    .scrub_at_i    (scrub_at[LabelW-1:0])
  );

  prim_ram_lvt #(.Width(128), .Depth(1 << LabelW), .Writes(Ports), .Reads(Ports)) u_labels (
    .clk_i        (clk_i),
    .clear_i      (scrubs),
    .clear_addr_i (scrub_at[LabelW-1:0]),
    .w_en_i       (write),
    .w_addr_i     (write_at),
    .w_data_i     (written),
    .r_addr_i     (label_at),
    .r_data_o     (labels)
  );

  always_ff @(posedge clk_i) begin : p_kinds
    is_input_q <= is_input;
    is_zero_q  <= is_zero;
  end

  // ---- rows
  logic [Rows-1:0]            table_en, mask_en, mask;
  logic [Rows*(TableW+1)-1:0] table_number;
  logic [Rows*256-1:0]        tables;
  logic [Rows*OutputW-1:0]    mask_at;

  for (genvar r = 0; r < Rows; r++) begin : g_row
    garble_pkg::label_t a, b;

    assign a = is_zero_q[2*r] ? '0 : is_input_q[2*r] ? input_labels[2*r*128 +: 128] : labels[2*r*128 +: 128];
    assign b = is_zero_q[2*r+1] ? '0 : is_input_q[2*r+1] ? input_labels[(2*r+1)*128 +: 128] : labels[(2*r+1)*128 +: 128];

    ordered_row #(.LabelW(LabelW), .TableW(TableW)) u_row (
      .clk_i        (clk_i),
      .rst_ni       (works),
      .offset_i     (offset_i),
      .hash_start_i (hash_start_i),
      .instance_i   (instance_i),
      .start_i      (start[r]),
      .is_and_i     (is_and[r]),
      .is_output_i  (is_output[r]),
      .not_a_i      (not_a[r]),
      .not_b_i      (not_b[r]),
      .not_c_i      (not_c[r] && !is_register[r]),
      .entry_i      (entry_at[r*LabelW +: LabelW]),
      .at_i         (result_at[r*LabelW +: LabelW]),
      .tag_i        (tag),
      .product_i    (product[r*ProductW +: ProductW]),
      .table_i      (number[r*32 +: TableW+1]),
      .out_i        (out[r*OutputW +: OutputW]),
      .a_i          (a),
      .b_i          (b),
      .done_o       (done[2*r +: 2]),
      .done_at_o    (done_at[2*r*LabelW +: 2*LabelW]),
      .done_tag_o   (done_tag[2*r*TagW +: 2*TagW]),
      .label_en_o   (write[2*r +: 2]),
      .label_at_o   (write_at[2*r*LabelW +: 2*LabelW]),
      .label_o      (written[2*r*128 +: 256]),
      .table_en_o   (table_en[r]),
      .table_o      (table_number[r*(TableW+1) +: TableW+1]),
      .table_rows_o (tables[r*256 +: 256]),
      .mask_en_o    (mask_en[r]),
      .mask_at_o    (mask_at[r*OutputW +: OutputW]),
      .mask_o       (mask[r]),
      .masks_wait_o (masks_wait[r]),
      .busy_o       (row_busy[r])
    );
  end

  // ---- what leaves
  ordered_tables #(.Rows(Rows), .TableW(TableW)) u_tables (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_en_i     (table_en),
    .in_number_i (table_number),
    .in_table_i  (tables),
    .out_table_o (table_o),
    .out_valid_o (table_valid_o),
    .out_ready_i (table_ready_i),
    .next_o      (next_table),
    .scrub_i     (scrubs),
    .scrub_at_i  (scrub_at[TableW-1:0])
  );

  ordered_masks #(.Rows(Rows), .Outputs(Outputs)) u_masks (
    .clk_i       (clk_i),
    .rst_ni      (works),
    .en_i        (mask_en),
    .at_i        (mask_at),
    .mask_i      (mask),
    .close_i     (closes),
    .room_o      (masks_room),
    .out_masks_o (masks_o),
    .out_valid_o (masks_valid_o),
    .out_ready_i (masks_ready_i)
  );

endmodule
