// Adds up the elements of a beat: those of each word, then the words, in a tree with one level in each cycle.
//
// Latency:  max(1, ceil(log2 Words)) cycles, from registers.   Throughput: one beat per cycle. Never stalls.

module share_whole #(
  parameter  int unsigned Words  = 1,
  localparam int unsigned Levels = Words > 1 ? $clog2(Words) : 1,
  localparam int unsigned Leaves = 1 << Levels
) (
  input  logic                 clk_i,

  input  share_pkg::ring_e     ring_i, // not Bits
  input  logic [128*Words-1:0] words_i,
  output share_pkg::word_t     whole_o // one element, the rest 0
);

  for (genvar l = 0; l <= Levels; l++) begin : g_level
    logic [(Leaves>>l)*128-1:0] sums; // of 2^l words each; words that there are not are 0
    logic [1:0]                 ring;

    if (l == 0) begin : g_leaves
      always_comb begin : p_leaves
        sums = '0;
        for (int unsigned c = 0; c < Words; c++) begin
          sums[128*c +: 128] = share_pkg::across(ring_i, words_i[128*c +: 128]);
        end
        ring = ring_i;
      end
    end else begin : g_sums
      always_ff @(posedge clk_i) begin : p_sums
        ring <= g_level[l-1].ring;
        for (int unsigned k = 0; k < (Leaves >> l); k++) begin
          sums[128*k +: 128] <= share_pkg::plus(share_pkg::ring_e'(g_level[l-1].ring), g_level[l-1].sums[256*k +: 128],
                                                g_level[l-1].sums[256*k+128 +: 128]);
        end
      end
    end
  end

  logic unused_ring;

  assign unused_ring = ^g_level[Levels].ring;
  assign whole_o     = g_level[Levels].sums;

endmodule
