// Gives the entries of the netlist in their order, with their numbers: gate index, number of the product, number of the output.
//
// Line l of the memory has entries l Rows to l Rows + Rows - 1, one in each bank.
// Latency:  the first entries two cycles after restart_i.   Throughput: Rows entries per cycle; never waits.

module ordered_fetch #(
  parameter  int unsigned Rows    = 2,
  parameter  int unsigned LinesW  = 12, // logarithm of the lines kept
  localparam int unsigned BankW   = Rows > 1 ? $clog2(Rows) : 1,
  localparam int unsigned CountW  = $clog2(2 * Rows + 1),
  localparam int unsigned WordW   = ordered_pkg::WordW,
  localparam int unsigned EntryW  = ordered_pkg::EntryW,
  localparam int unsigned IndexW  = ordered_pkg::IndexW,
  localparam int unsigned ProductW = ordered_pkg::ProductW,
  localparam int unsigned OutputW = ordered_pkg::OutputW
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // The netlist, written while nothing runs
  input  logic                   w_en_i,
  input  logic [LinesW-1:0]      w_line_i,
  input  logic [BankW-1:0]       w_bank_i,
  input  logic [WordW-1:0]       w_word_i,

  input  logic                   start_i,   // of a run
  input  logic [ProductW-1:0]    first_i,   // number of its first product
  input  logic                   restart_i, // of a netlist cycle
  input  logic [IndexW-1:0]      entries_i, // of the netlist, at least 1

  // The next entries; those after the last one are not valid
  output logic [Rows*EntryW-1:0] entries_o,
  output logic [Rows-1:0]        valid_o,
  output logic [31:0]            product_o, // low bits of the number of the next product
  input  logic                   next_i,    // takes
  input  logic [CountW-1:0]      take_i     // as many
);

  logic [Rows*WordW-1:0] line, words;
  logic                  line_valid_q, line_ready, reads;
  logic [LinesW-1:0]     line_q;
  logic [CountW-1:0]     take, there;
  logic [Rows-1:0]       is_and, is_output;
  logic [IndexW-1:0]     index_q;
  logic [ProductW-1:0]   product_d, product_q;
  logic [OutputW-1:0]    output_d, output_q;

  assign product_o = product_q[31:0];
  assign reads = restart_i || (line_ready && line_valid_q);
  assign take  = next_i ? take_i : '0;

  for (genvar r = 0; r < Rows; r++) begin : g_bank
    prim_ram_1w1r #(.Width(WordW), .Depth(1 << LinesW)) u_words (
      .clk_i    (clk_i),
      .w_en_i   (w_en_i && w_bank_i == BankW'(r)),
      .w_addr_i (w_line_i),
      .w_data_i (w_word_i),
      .r_en_i   (reads),
      .r_addr_i (restart_i ? '0 : line_q),
      .r_data_o (line[r*WordW +: WordW])
    );
  end

  ordered_window #(.Words(Rows), .Width(WordW)) u_window (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .clear_i      (restart_i),
    .line_i       (line),
    .line_valid_i (line_valid_q),
    .line_ready_o (line_ready),
    .words_o      (words),
    .count_o      (there),
    .take_i       (take)
  );

  always_ff @(posedge clk_i) begin : p_line
    if (!rst_ni) begin
      line_valid_q <= 1'b0;
    end else if (restart_i) begin
      line_valid_q <= 1'b1;
    end
    if (restart_i) begin
      line_q <= LinesW'(1);
    end else if (reads) begin
      line_q <= line_q + 1'b1;
    end
  end

  // What is taken is numbered in its order.
  always_comb begin : p_number
    ordered_pkg::entry_t entry;
    entries_o = '0;
    valid_o   = '0;
    is_and    = '0;
    is_output = '0;
    entry     = '0;
    entry.product = product_q;
    entry.out     = output_q;
    for (int unsigned r = 0; r < Rows; r++) begin
      entry.word  = words[r*WordW +: WordW];
      entry.index = index_q + IndexW'(r);
      valid_o[r]  = 32'(index_q) + r < 32'(entries_i);
      entries_o[r*EntryW +: EntryW] = entry;
      is_and[r]     = entry.word.is_and;
      is_output[r]  = entry.word.is_output;
      entry.product = entry.product + ProductW'(is_and[r]);
      entry.out     = entry.out + OutputW'(is_output[r]);
    end
  end

  always_comb begin : p_taken
    product_d = product_q;
    output_d  = output_q;
    for (int unsigned r = 0; r < Rows; r++) begin
      if (valid_o[r] && r < 32'(take)) begin
        product_d = product_d + ProductW'(is_and[r]);
        output_d  = output_d + OutputW'(is_output[r]);
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_numbers
    if (start_i) begin
      product_q <= first_i;
    end else begin
      product_q <= product_d;
    end
    if (restart_i) begin
      index_q  <= '0;
      output_q <= '0;
    end else begin
      index_q  <= index_q + (valid_o[0] ? IndexW'(take) : '0); // stays beyond the last entry
      output_q <= output_d;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !restart_i && next_i) begin
      There_A: assert (there >= CountW'(Rows));
    end
  end
`endif

endmodule
