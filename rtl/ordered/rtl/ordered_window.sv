// Shows the next words of a stream of lines, from which any number may be taken per cycle.
//
// Latency:  a line that comes while no word is there is shown in that cycle.   Throughput: Words words per cycle.
// Back-pressure: line_ready_o is high when the line kept is used up in this cycle. It depends on take_i.

module ordered_window #(
  parameter  int unsigned Words  = 2,  // of a line
  parameter  int unsigned Width  = 42, // of a word
  localparam int unsigned CountW = $clog2(2 * Words + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Forgets what is kept, and wipes it
  input  logic                   clear_i,

  input  logic [Words*Width-1:0] line_i,
  input  logic                   line_valid_i,
  output logic                   line_ready_o,

  output logic [Words*Width-1:0] words_o,
  output logic [CountW-1:0]      count_o, // that are there; more than Words say that all of words_o are
  input  logic [CountW-1:0]      take_i   // at most count_o and Words
);

  logic [Words*Width-1:0] kept_q;
  logic [CountW-1:0]      used_q, used; // words of the line kept that were taken: all if there is none

  assign count_o      = CountW'(Words) - used_q + (line_valid_i ? CountW'(Words) : '0);
  assign used         = used_q + take_i;
  assign line_ready_o = used >= CountW'(Words);

  always_comb begin : p_words
    words_o = '0;
    for (int unsigned k = 0; k < Words; k++) begin
      if (k + 32'(used_q) < Words) begin
        words_o[k*Width +: Width] = kept_q[(k+32'(used_q))*Width +: Width];
      end else begin
        words_o[k*Width +: Width] = line_i[(k+32'(used_q)-Words)*Width +: Width];
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_used
    if (!rst_ni || clear_i) begin
      used_q <= CountW'(Words);
    end else if (line_ready_o && line_valid_i) begin
      used_q <= used - CountW'(Words);
    end else begin
      used_q <= used;
    end
  end

  always_ff @(posedge clk_i) begin : p_kept
    if (!rst_ni || clear_i) begin
      kept_q <= '0;
    end else if (line_ready_o && line_valid_i) begin
      kept_q <= line_i;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !clear_i) begin
      TakesWhatIsThere_A: assert (take_i <= count_o && take_i <= CountW'(Words));
    end
  end
`endif

endmodule
