// rep3_core as an accelerator of beats of words: products of columns of shares of three parties, and shares of random values.
//
// A product takes four columns, one after the other: own and previous component of the first factor, then of the second. The first three
// are kept; the fourth goes by them through the core. What comes out is the own component of the product, twice: it is the message to the
// next party as well. Of random values nothing is taken, and the own components come out before the previous ones. All rows of all words are
// computed.
//
// Latency:  a product's first word is there 15 cycles after the first of its fourth column came.
// Throughput: one beat of Lanes words per cycle in or out; while the fourth column comes, Cores words.
// Back-pressure: beats are taken as the core takes them. While keys are expanded, commands wait.

module lookaside_rep3 #(
  parameter  int unsigned Lanes   = 1,    // words of a beat, a power of two
  parameter  int unsigned Cores   = 1,    // of them that are computed in a cycle, a power of two
  parameter  int unsigned Longest = 1024, // words of a column; a power of two, at least 2 Lanes
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned PlaceW  = $clog2(Longest / Lanes)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    scrub_i, // begins a scrub, of 128 cycles
  input  logic                    wipe_i,  // Longest / Lanes cycles at least, from scrub_i on

  // As of rep3_core, while no command goes on
  input  logic                    key_en_i,
  input  logic                    key_previous_i,
  input  lookaside_pkg::word_t    key_i,

  input  logic                    start_i,
  input  lookaside_pkg::command_t command_i, // words: a multiple of Lanes, Lanes to Longest
  input  lookaside_pkg::draw_t    draw_i,

  input  logic [BeatW-1:0]        in_data_i,
  input  logic                    in_valid_i,
  output logic                    in_ready_o,
  output logic [BeatW-1:0]        out_data_o,
  output logic                    out_valid_o,
  input  logic                    out_ready_i
);

  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Parts = Lanes / Cores; // of a beat, one after the other
  localparam int unsigned PartW = Parts > 1 ? $clog2(Parts) : 1;
  localparam int unsigned CoreW = 128 * Cores;

  typedef enum logic [2:0] { Idle, OwnA, PreviousA, OwnB, Compute, Again } phase_e;

  phase_e               phase_q;
  logic [PlaceW:0]      beats_q;
  logic [PlaceW-1:0]    in_q, in_d, out_q, out_d, read;
  logic [PartW-1:0]     in_part_q, out_part_q;
  logic                 in_moves, in_last, in_part_last, out_moves, out_last, out_part_last, random_q, loads, computes;
  logic [BeatW-1:0]     own_a, previous_a, own_b;

  assign loads    = phase_q == OwnA || phase_q == PreviousA || phase_q == OwnB;
  assign computes = phase_q == Compute;
  assign in_moves = in_valid_i && in_ready_o;
  assign in_last  = (PlaceW+1)'(in_q) + 1'b1 == beats_q;
  assign in_d     = in_moves ? (in_last ? '0 : in_q + 1'b1) : in_q;
  assign out_moves = out_valid_o && out_ready_i;
  assign out_last = (PlaceW+1)'(out_q) + 1'b1 == beats_q;
  assign out_d    = out_moves ? (out_last ? '0 : out_q + 1'b1) : out_q;

  // ---- columns that are kept. Where the first one lay, there is the result: the core is done with a word of it long before
  logic                 result_valid, result_ready, result_moves;
  logic [CoreW-1:0]     result_own, result_previous;
  logic [2:0]           keeps;
  logic [2*BeatW-1:0]   kept;

  // A beat that is used in the next cycle is read in this one.
  assign read  = phase_q == Again || (computes && out_moves && out_last) ? out_d : in_d;
  assign keeps = {phase_q == OwnB, phase_q == PreviousA, phase_q == OwnA} & {3{in_moves}};

  for (genvar p = 0; p < Parts; p++) begin : g_first
    prim_ram_1w1r #(.Width(CoreW), .Depth(Longest / Lanes)) u_first (
      .clk_i    (clk_i),
      .w_en_i   (keeps[0] || wipe_i || (result_moves && out_part_q == PartW'(p))),
      .w_addr_i (computes ? out_q : in_q),
      .w_data_i (wipe_i ? '0 : !computes ? in_data_i[CoreW*p +: CoreW] : random_q ? result_previous : result_own),
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

  // ---- cores: a part of the beats for them, and of a beat of results
  share_pkg::command_t command;
  logic [2*CoreW-1:0]  in_a, in_b;
  logic                waits_q, command_ready, core_valid, core_ready, unused_ready, unused_idle, unused_scrubs, unused_last;
  logic                unused_product;
  logic [11:0]         unused_bytes;
  logic [15:0]         unused_tag;
  logic [2*CoreW-1:0]  result;

  for (genvar c = 0; c < Cores; c++) begin : g_words
    assign in_a[256*c +: 256] = {previous_a[CoreW*32'(in_part_q)+128*c +: 128], own_a[CoreW*32'(in_part_q)+128*c +: 128]};
    assign in_b[256*c +: 256] = {in_data_i[CoreW*32'(in_part_q)+128*c +: 128], own_b[CoreW*32'(in_part_q)+128*c +: 128]};
    assign {result_previous[128*c +: 128], result_own[128*c +: 128]} = result[256*c +: 256];
  end

  always_comb begin : p_command
    command         = '0;
    command.op      = random_q ? share_pkg::Random : share_pkg::Product;
    command.ring    = command_i.op == lookaside_pkg::OpProduct64 ? share_pkg::Z64
                    : command_i.op == lookaside_pkg::OpProduct128 ? share_pkg::Z128 : share_pkg::Bits;
    command.beats   = 16'(beats_q) << $clog2(Parts);
    command.pairs   = 16'd1;
    command.tail    = 12'(16 * Cores);
    command.used    = draw_i.used;
    command.lane    = draw_i.lane;
    command.counter = draw_i.counter;
    command.chunk   = draw_i.chunk;
  end

  assign core_valid   = computes && in_valid_i && !random_q;
  assign in_ready_o   = loads || (computes && core_ready && !random_q && in_part_last);
  assign in_part_last = in_part_q == PartW'(Parts - 1);

  rep3_core #(.Cores(Cores)) u_core (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .key_en_i        (key_en_i),
    .key_previous_i  (key_previous_i),
    .key_i           (key_i),
    .ready_o         (unused_ready),
    .idle_o          (unused_idle),
    .scrub_i         (scrub_i),
    .scrubs_o        (unused_scrubs),
    .command_i       (command),
    .command_valid_i (waits_q),
    .command_ready_o (command_ready),
    .in_a_i          (in_a),
    .in_b_i          (in_b),
    .in_valid_i      (core_valid),
    .in_ready_o      (core_ready),
    .out_data_o      (result),
    .out_bytes_o     (unused_bytes),
    .out_last_o      (unused_last),
    .out_product_o   (unused_product),
    .out_tag_o       (unused_tag),
    .out_valid_o     (result_valid),
    .out_ready_i     (result_ready)
  );

  // The parts of a beat of results wait until the last one is there.
  logic [BeatW-1:0] gathered;

  assign out_part_last = out_part_q == PartW'(Parts - 1);
  assign result_ready  = computes && (out_ready_i || !out_part_last);
  assign result_moves  = result_valid && result_ready;
  assign out_valid_o   = (computes && result_valid && out_part_last) || phase_q == Again;
  assign out_data_o    = computes ? gathered : own_a;

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
      phase_q  <= Idle;
      beats_q  <= '0;
      random_q <= 1'b0;
      waits_q  <= 1'b0;
      in_q     <= '0;
      out_q    <= '0;
      in_part_q  <= '0;
      out_part_q <= '0;
    end else if (wipe_i) begin
      phase_q <= Idle;
      waits_q <= 1'b0;
      in_q    <= in_q + 1'b1;
    end else if (start_i) begin
      phase_q  <= command_i.op == lookaside_pkg::OpRandom ? Compute : OwnA;
      beats_q  <= (PlaceW+1)'(command_i.words >> LaneW);
      random_q <= command_i.op == lookaside_pkg::OpRandom;
      waits_q  <= 1'b1;
      in_q     <= '0;
      out_q    <= '0;
      in_part_q  <= '0;
      out_part_q <= '0;
    end else begin
      if (core_valid && core_ready) begin
        in_part_q <= in_part_last ? '0 : in_part_q + 1'b1;
      end
      if (result_moves) begin
        out_part_q <= out_part_last ? '0 : out_part_q + 1'b1;
      end
      waits_q <= waits_q && !command_ready;
      in_q    <= in_d;
      out_q   <= out_d;
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
  assign unused = ^{command_i.tag, command_i.words, command_i.zero, command_i.armed, command_i.slot, command_i.sources,
                    command_i.destinations, unused_ready, unused_idle, unused_scrubs, unused_last, unused_product, unused_bytes,
                    unused_tag};

endmodule
