// Columns of a command on shares of three parties, for a core that others use as well: a sharer's part of lookaside_rep3.
//
// A product takes four columns, one after the other: own and previous component of the first factor, then of the second. The first three
// are kept; the fourth goes by them through the core. What comes out is the own component of the product, twice: it is the message to the
// next party as well. Of random values nothing is taken, and the own components come out before the previous ones. All rows of all words are
// computed. Of a sum of products one element comes out, in a beat whose other words are 0, twice as well.
//
// Latency:  none but the core's.   Throughput: one beat of Lanes words per cycle in or out; what goes by the core, Cores words.
// Back-pressure: beats are taken when it is this one's turn to load, and as the core takes them.

module lookaside_columns #(
  parameter  int unsigned Lanes   = 1,    // words of a beat, a power of two
  parameter  int unsigned Cores   = 1,    // of them that are computed in a cycle, a power of two
  parameter  int unsigned Longest = 1024, // words of a column; a power of two, at least 2 Lanes
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned CoreW   = 128 * Cores,
  localparam int unsigned PlaceW  = $clog2(Longest / Lanes)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    wipe_i, // Longest / Lanes cycles at least

  // As of an accelerator
  input  logic                    start_i,
  input  lookaside_pkg::command_t command_i, // words: a multiple of Lanes, Lanes to Longest
  input  lookaside_pkg::draw_t    draw_i,
  input  logic [BeatW-1:0]        in_data_i,
  input  logic                    in_valid_i,
  output logic                    in_ready_o,
  output logic [BeatW-1:0]        out_data_o,
  output logic                    out_valid_o,
  input  logic                    out_ready_i,

  // Columns that are kept come while it may load, which it may until it has all of them
  output logic                    loads_o,
  input  logic                    may_load_i,

  // The core: asked when the columns that are kept are there; then operands, and results
  output share_pkg::command_t     ask_o,
  output logic                    ask_valid_o,
  input  logic                    ask_ready_i,
  output logic [2*CoreW-1:0]      a_o,
  output logic [2*CoreW-1:0]      b_o,
  output logic                    last_o, // of the column
  output logic                    valid_o,
  input  logic                    ready_i,
  input  logic [2*CoreW-1:0]      result_i,
  input  logic                    result_valid_i,
  output logic                    result_ready_o
);

  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Parts = Lanes / Cores; // of a beat, one after the other
  localparam int unsigned PartW = Parts > 1 ? $clog2(Parts) : 1;

  typedef enum logic [2:0] { Idle, OwnA, PreviousA, OwnB, Compute, Again } phase_e;

  phase_e             phase_q;
  logic [PlaceW:0]    beats_q;
  logic [PlaceW-1:0]  in_q, in_d, out_q, out_d, read;
  logic [PartW-1:0]   in_part_q, out_part_q;
  logic               in_moves, in_last, in_part_last, out_moves, out_last, out_part_last, result_moves;
  logic               random_q, sum_q, waits_q, loads, computes;
  logic [BeatW-1:0]   own_a, previous_a, own_b, gathered;
  logic [CoreW-1:0]   result_own, result_previous;
  logic [2:0]         keeps;
  logic [2*BeatW-1:0] kept;

  assign loads_o   = loads;
  assign loads     = phase_q == OwnA || phase_q == PreviousA || phase_q == OwnB;
  assign computes  = phase_q == Compute;
  assign in_moves  = in_valid_i && in_ready_o;
  assign in_last   = (PlaceW+1)'(in_q) + 1'b1 == beats_q;
  assign in_d      = in_moves ? (in_last ? '0 : in_q + 1'b1) : in_q;
  assign out_moves = out_valid_o && out_ready_i;
  assign out_last  = sum_q || (PlaceW+1)'(out_q) + 1'b1 == beats_q;
  assign out_d     = out_moves ? (out_last ? '0 : out_q + 1'b1) : out_q;

  // ---- columns that are kept. Where the first one lay, there is the result: the core is done with a word of it long before. A beat that is
  // used in the next cycle is read in this one
  assign read  = phase_q == Again || (computes && out_moves && out_last) ? out_d : in_d;
  assign keeps = {phase_q == OwnB, phase_q == PreviousA, phase_q == OwnA} & {3{in_moves}};

  for (genvar p = 0; p < Parts; p++) begin : g_first
    prim_ram_1w1r #(.Width(CoreW), .Depth(Longest / Lanes)) u_first (
      .clk_i    (clk_i),
      .w_en_i   (keeps[0] || wipe_i || (result_moves && (sum_q || out_part_q == PartW'(p)))),
      .w_addr_i (computes ? out_q : in_q),
      .w_data_i (wipe_i ? '0 : !computes ? in_data_i[CoreW*p +: CoreW] : sum_q && p != 0 ? '0
                   : random_q ? result_previous : result_own),
      .r_en_i   (1'b1),
      .r_addr_i (read),
      .r_data_o (own_a[CoreW*p +: CoreW])
    );
  end

  for (genvar k = 0; k < 2; k++) begin : g_kept
    prim_ram_1w1r #(.Width(BeatW), .Depth(Longest / Lanes)) u_kept (
      .clk_i    (clk_i),
      .w_en_i   (keeps[k+1] || wipe_i),
      .w_addr_i (in_q),
      .w_data_i (wipe_i ? '0 : in_data_i),
      .r_en_i   (1'b1),
      .r_addr_i (read),
      .r_data_o (kept[BeatW*k +: BeatW])
    );
  end

  assign {own_b, previous_a} = kept;

  // ---- to the core: a part of the beats
  always_comb begin : p_ask
    ask_o         = '0;
    ask_o.op      = random_q ? share_pkg::Random : share_pkg::Product;
    ask_o.ring    = command_i.op == lookaside_pkg::OpProduct64 || command_i.op == lookaside_pkg::OpSum64 ? share_pkg::Z64
                  : command_i.op == lookaside_pkg::OpProduct128 || command_i.op == lookaside_pkg::OpSum128 ? share_pkg::Z128
                  : share_pkg::Bits;
    ask_o.sum     = sum_q;
    ask_o.beats   = 16'(beats_q) << $clog2(Parts);
    ask_o.pairs   = 16'd1;
    ask_o.tail    = 12'(16 * Cores);
    ask_o.used    = draw_i.used;
    ask_o.lane    = draw_i.lane;
    ask_o.counter = draw_i.counter;
    ask_o.chunk   = draw_i.chunk;
  end

  for (genvar c = 0; c < Cores; c++) begin : g_words
    assign a_o[256*c +: 256] = {previous_a[CoreW*32'(in_part_q)+128*c +: 128], own_a[CoreW*32'(in_part_q)+128*c +: 128]};
    assign b_o[256*c +: 256] = {in_data_i[CoreW*32'(in_part_q)+128*c +: 128], own_b[CoreW*32'(in_part_q)+128*c +: 128]};
    assign {result_previous[128*c +: 128], result_own[128*c +: 128]} = result_i[256*c +: 256];
  end

  assign ask_valid_o  = waits_q && computes;
  assign valid_o      = computes && !waits_q && !random_q && in_valid_i;
  assign last_o       = in_last && in_part_last;
  assign in_part_last = in_part_q == PartW'(Parts - 1);
  assign in_ready_o   = (loads && may_load_i) || (computes && !waits_q && !random_q && ready_i && in_part_last);

  // ---- from it: the parts of a beat wait until the last one is there. A sum has one
  assign out_part_last  = sum_q || out_part_q == PartW'(Parts - 1);
  assign result_ready_o = computes && (out_ready_i || !out_part_last);
  assign result_moves   = result_valid_i && result_ready_o;
  assign out_valid_o    = (computes && result_valid_i && out_part_last) || phase_q == Again;
  assign out_data_o     = !computes ? own_a : sum_q ? BeatW'(result_own) : gathered;

  assign gathered[BeatW-1 -: CoreW] = result_own;

  for (genvar p = 0; p < Parts - 1; p++) begin : g_gather
    logic [CoreW-1:0] part_q;

    assign gathered[CoreW*p +: CoreW] = part_q;

    always_ff @(posedge clk_i) begin : p_part
      if (!rst_ni || wipe_i) begin
        part_q <= '0;
      end else if (result_moves && out_part_q == PartW'(p)) begin
        part_q <= result_own;
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      phase_q    <= Idle;
      beats_q    <= '0;
      random_q   <= 1'b0;
      sum_q      <= 1'b0;
      waits_q    <= 1'b0;
      in_q       <= '0;
      out_q      <= '0;
      in_part_q  <= '0;
      out_part_q <= '0;
    end else if (wipe_i) begin
      phase_q <= Idle;
      waits_q <= 1'b0;
      in_q    <= in_q + 1'b1;
    end else if (start_i) begin
      phase_q    <= command_i.op == lookaside_pkg::OpRandom ? Compute : OwnA;
      beats_q    <= (PlaceW+1)'(command_i.words >> LaneW);
      random_q   <= command_i.op == lookaside_pkg::OpRandom;
      sum_q      <= lookaside_pkg::of_sums(command_i.op);
      waits_q    <= 1'b1;
      in_q       <= '0;
      out_q      <= '0;
      in_part_q  <= '0;
      out_part_q <= '0;
    end else begin
      waits_q <= waits_q && !(ask_valid_o && ask_ready_i);
      in_q    <= in_d;
      out_q   <= out_d;
      if (valid_o && ready_i) begin
        in_part_q <= in_part_last ? '0 : in_part_q + 1'b1;
      end
      if (result_moves) begin
        out_part_q <= out_part_last ? '0 : out_part_q + 1'b1;
      end
      unique case (phase_q)
        OwnA:      phase_q <= in_moves && in_last ? PreviousA : OwnA;
        PreviousA: phase_q <= in_moves && in_last ? OwnB : PreviousA;
        OwnB:      phase_q <= in_moves && in_last ? Compute : OwnB;
        Compute:   phase_q <= out_moves && out_last ? Again : Compute;
        Again:     phase_q <= out_moves && out_last ? Idle : Again;
        default:   phase_q <= Idle;
      endcase
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !wipe_i) begin
      OneCommand_A: assert (!start_i || (phase_q == Idle && !waits_q));
    end
  end
`endif

  logic unused;
  assign unused = ^{command_i.tag, command_i.words, command_i.zero, command_i.after, command_i.armed, command_i.slot, command_i.sources,
                    command_i.destinations};

endmodule
