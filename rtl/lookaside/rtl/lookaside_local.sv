// A core of rep4_local as an accelerator of words: the first stage of products of four parties.
//
// It takes six columns, one after the other: the three components of the first factor, then those of the second. Five are kept; the sixth goes
// by them through the core. What comes out: the messages that this party sends, one or two columns in the order of the cross terms; if it
// checks, the codes of those that it vouches for, a beat each; the three columns of shares that are not complete. The first message leaves as
// it is computed; the rest lies where the factors lay, of which the core is done with each word long before. Of a sum over rows each column is
// a single element, in a beat. Codes begin and end with the command.
//
// Latency:  that of rep4_local, from a word of the sixth column to the first message.
// Throughput: a beat of columns per cycle, but a word of the sixth in Fold cycles.
// Back-pressure: words are taken as the core takes them. Without keys of components commands wait.

module lookaside_local #(
  parameter  int unsigned Longest = 1024, // words of a column; a power of two
  parameter  int unsigned Lanes   = 1,    // words of a beat; a power of two, at most half of Longest
  parameter  int unsigned Fold    = 6,    // as of rep4_local
  localparam int unsigned Width   = 128 * Lanes,
  localparam int unsigned Depth   = Longest / Lanes,
  localparam int unsigned PlaceW  = $clog2(Depth),
  localparam int unsigned LaneW   = Lanes > 1 ? $clog2(Lanes) : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    scrub_i, // begins a scrub, of 128 cycles
  input  logic                    wipe_i,  // Depth cycles at least, and 128, from scrub_i on

  // Keys of components as of rep4_local, while no command goes on. Form and keys of pairs are stable while one does
  input  logic                    key_en_i,
  input  logic [1:0]              key_number_i,
  input  lookaside_pkg::word_t    key_i,
  input  share_pkg::form_t        form_i,
  input  logic [383:0]            pairs_i, // with the next party, the one opposite, the previous one

  input  logic                    start_i,
  input  lookaside_pkg::command_t command_i, // words: Lanes to Longest, and a multiple of Lanes
  input  lookaside_pkg::draw_t    draw_i,
  input  lookaside_pkg::stage_t   stage_i,   // of those that lookaside_pkg::is_stage knows

  input  logic [Width-1:0]        in_data_i,
  input  logic                    in_valid_i,
  output logic                    in_ready_o,
  output logic [Width-1:0]        out_data_o,
  output logic                    out_valid_o,
  input  logic                    out_ready_i
);

  localparam int unsigned Kept = 5;

  typedef enum logic [2:0] {
    Idle,
    Load,    // columns that are kept
    Compute, // the last one goes by, the first message leaves
    Second,  // message
    Codes,
    Parts    // the shares
  } phase_e;

  phase_e                phase_q;
  lookaside_pkg::stage_t stage_q;
  lookaside_pkg::draw_t  draw_q;
  logic [PlaceW:0]       beats_q, results_q; // of a column that comes, of one that leaves
  logic [PlaceW-1:0]     in_q, in_d, out_q, out_d, read;
  logic [2:0]            column_q; // that comes; of those that leave the part
  logic                  loads, computes, in_moves, in_last, out_moves, out_last, two, code_q, code_last;
  logic [1:0]            codes;

  assign loads     = phase_q == Load;
  assign computes  = phase_q == Compute;
  assign two       = lookaside_pkg::messages(stage_q.sends) == 2'd2;
  assign codes     = stage_q.checks ? 2'd3 - lookaside_pkg::messages(stage_q.sends) : 2'd0;
  assign in_moves  = in_valid_i && in_ready_o;
  assign in_last   = (PlaceW+1)'(in_q) + 1'b1 == beats_q;
  assign in_d      = in_moves ? (in_last ? '0 : in_q + 1'b1) : in_q;
  assign out_moves = out_valid_o && out_ready_i;
  assign out_last  = (PlaceW+1)'(out_q) + 1'b1 == results_q;
  assign out_d     = out_moves && phase_q != Codes ? (out_last ? '0 : out_q + 1'b1) : out_q;
  assign code_last = 2'(code_q) + 2'd1 == codes;

  // ---- columns that are kept: factors, then from the first on the parts of the result, and the second message
  logic [Kept-1:0]       keeps;
  logic [Kept*Width-1:0] kept;
  logic [4*Width-1:0]    results; // to be kept

  // A word that is used in the next cycle is read in this one.
  assign read = loads || (computes && !(out_moves && out_last)) ? in_d : out_d;

  always_comb begin : p_keeps
    keeps = '0;
    if (computes && out_moves) begin
      keeps[3:0] = 4'b1111;
    end else if (loads && in_moves) begin
      keeps[column_q] = 1'b1;
    end
  end

  for (genvar k = 0; k < Kept; k++) begin : g_kept
    logic [Width-1:0] data;

    if (k < 4) begin : g_result
      assign data = computes ? results[Width*k +: Width] : in_data_i;
    end else begin : g_factor
      assign data = in_data_i;
    end

    prim_ram_1w1r #(.Width(Width), .Depth(Depth)) u_kept (
      .clk_i    (clk_i),
      .w_en_i   (keeps[k] || wipe_i),
      .w_addr_i (computes && !wipe_i ? out_q : in_q),
      .w_data_i (wipe_i ? '0 : data),
      .r_en_i   (1'b1),
      .r_addr_i (read),
      .r_data_o (kept[Width*k +: Width])
    );
  end

  // ---- the core, word by word
  share_pkg::command_t command;
  logic                begins_q, waits_q, begin_ready, command_ready, core_valid, core_ready, lane_last, result_valid, unused_ready;
  logic                unused_idle, unused_scrubs, unused_last, unused_product;
  logic [LaneW-1:0]    lane_q;
  logic [383:0]        factor_a, factor_b, parts, messages;
  logic [2:0]          message_valid;
  logic [4:0]          unused_bytes;
  logic [1:0]          code_valid, code_ready, unused_closes;
  logic [15:0]         unused_tag;
  logic [255:0]        code, pair_keys;
  logic                result_ready;

  always_comb begin : p_command
    command         = '0;
    command.op      = share_pkg::Product;
    command.ring    = share_pkg::ring_e'(stage_q.ring);
    command.sum     = stage_q.sum;
    command.beats   = 16'(32'(beats_q) * Lanes);
    command.pairs   = 16'd1;
    command.tail    = stage_q.tail == '0 ? 12'd16 : 12'(stage_q.tail);
    command.closes  = 2'd3;
    command.used    = draw_q.used;
    command.lane    = draw_q.lane;
    command.counter = draw_q.counter;
    command.chunk   = draw_q.chunk;
  end

  always_comb begin : p_factors
    for (int unsigned k = 0; k < 3; k++) begin
      factor_a[128*k +: 128] = kept[Width*k+128*32'(lane_q) +: 128];
    end
    factor_b = {in_data_i[128*32'(lane_q) +: 128], kept[Width*4+128*32'(lane_q) +: 128], kept[Width*3+128*32'(lane_q) +: 128]};
  end

  assign lane_last  = 32'(lane_q) == Lanes - 1;
  assign core_valid = computes && in_valid_i;
  assign in_ready_o = loads || (computes && core_ready && lane_last);
  assign pair_keys  = {lookaside_pkg::pair_key(pairs_i, stage_q.with_1), lookaside_pkg::pair_key(pairs_i, stage_q.with_0)};

  rep4_local #(.Fold(Fold)) u_core (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .key_en_i        (key_en_i),
    .key_number_i    (key_number_i),
    .key_i           (key_i),
    .ready_o         (unused_ready),
    .idle_o          (unused_idle),
    .scrub_i         (scrub_i),
    .scrubs_o        (unused_scrubs),
    .form_i          (form_i),
    .sends_i         (stage_q.sends),
    .checks_i        (stage_q.checks),
    .begin_valid_i   (begins_q),
    .begin_ready_o   (begin_ready),
    .keys_i          (pair_keys & {256{begins_q}}),
    .used_i          ({stage_q.used_1, stage_q.used_0}),
    .lane_i          (draw_q.lane),
    .counter_i       (stage_q.counter),
    .chunk_i         (draw_q.chunk),
    .command_i       (command),
    .command_valid_i (waits_q && !begins_q),
    .command_ready_o (command_ready),
    .in_a_i          (factor_a),
    .in_b_i          (factor_b),
    .in_valid_i      (core_valid),
    .in_ready_o      (core_ready),
    .out_data_o      (parts),
    .out_valid_o     (result_valid),
    .out_ready_i     (result_ready),
    .message_data_o  (messages),
    .message_valid_o (message_valid),
    .message_ready_i ({3{result_ready}}),
    .out_bytes_o     (unused_bytes),
    .out_last_o      (unused_last),
    .out_product_o   (unused_product),
    .out_closes_o    (unused_closes),
    .out_tag_o       (unused_tag),
    .code_o          (code),
    .code_valid_o    (code_valid),
    .code_ready_i    (code_ready)
  );

  // ---- results, brought together to beats. Parts and messages that leave the core are offered at once, and taken at once
  logic [LaneW-1:0]   place_q;
  logic [5*Width-1:0] some_q, some;
  logic               whole;
  lookaside_pkg::word_t first, second;

  always_comb begin : p_messages
    first  = stage_q.sends[0] ? messages[127:0] : stage_q.sends[1] ? messages[255:128] : messages[383:256];
    second = stage_q.sends[2] ? messages[383:256] : messages[255:128];
  end

  always_comb begin : p_some
    some = some_q;
    for (int unsigned k = 0; k < 3; k++) begin
      some[Width*k+128*32'(place_q) +: 128] = parts[128*k +: 128];
    end
    some[Width*3+128*32'(place_q) +: 128] = two ? second : '0;
    some[Width*4+128*32'(place_q) +: 128] = first;
  end

  assign whole        = stage_q.sum || 32'(place_q) == Lanes - 1;
  assign result_ready = computes && (!whole || out_ready_i);
  assign results      = some[4*Width-1:0];

  if (Lanes > 1) begin : g_some
    always_ff @(posedge clk_i) begin : p_lanes
      if (!rst_ni || wipe_i || start_i) begin
        some_q  <= '0;
        lane_q  <= '0;
        place_q <= '0;
      end else begin
        if (core_valid && core_ready) begin
          lane_q <= lane_last ? '0 : lane_q + 1'b1;
        end
        if (result_valid && result_ready) begin
          some_q  <= whole ? '0 : some;
          place_q <= whole ? '0 : place_q + 1'b1;
        end
      end
    end
  end else begin : g_one
    assign some_q  = '0;
    assign lane_q  = '0;
    assign place_q = '0;
  end

  // ---- what leaves
  logic [1:0] code_now;

  assign code_now   = phase_q == Codes ? 2'b01 << code_q : '0;
  assign code_ready = code_now & {2{out_ready_i}};

  always_comb begin : p_out
    unique case (phase_q)
      Compute: {out_valid_o, out_data_o} = {result_valid && whole, some[4*Width +: Width]};
      Second:  {out_valid_o, out_data_o} = {1'b1, kept[3*Width +: Width]};
      Codes:   {out_valid_o, out_data_o} = {(code_valid & code_now) != '0, Width'(code[128*32'(code_q) +: 128])};
      Parts:   {out_valid_o, out_data_o} = {1'b1, kept[Width*32'(column_q[1:0]) +: Width]};
      default: {out_valid_o, out_data_o} = '0;
    endcase
  end

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      phase_q   <= Idle;
      stage_q   <= '0;
      draw_q    <= '0;
      beats_q   <= '0;
      results_q <= '0;
      begins_q  <= 1'b0;
      waits_q   <= 1'b0;
      column_q  <= '0;
      code_q    <= 1'b0;
      in_q      <= '0;
      out_q     <= '0;
    end else if (wipe_i) begin
      phase_q  <= Idle;
      begins_q <= 1'b0;
      waits_q  <= 1'b0;
      in_q     <= in_q + 1'b1;
    end else if (start_i) begin
      phase_q   <= Load;
      stage_q   <= stage_i;
      draw_q    <= draw_i;
      beats_q   <= (PlaceW+1)'(command_i.words / Lanes);
      results_q <= stage_i.sum ? (PlaceW+1)'(1) : (PlaceW+1)'(command_i.words / Lanes);
      begins_q  <= stage_i.checks;
      waits_q   <= 1'b1;
      column_q  <= '0;
      code_q    <= 1'b0;
      in_q      <= '0;
      out_q     <= '0;
    end else begin
      begins_q <= begins_q && !begin_ready;
      waits_q  <= waits_q && !(command_ready && !begins_q);
      in_q     <= in_d;
      out_q    <= out_d;
      unique case (phase_q)
        Load: begin
          if (in_moves && in_last) begin
            column_q <= column_q == 3'(Kept - 1) ? '0 : column_q + 3'd1;
            phase_q  <= column_q == 3'(Kept - 1) ? Compute : Load;
          end
        end
        Compute: begin
          if (out_moves && out_last) begin
            phase_q <= two ? Second : codes != '0 ? Codes : Parts;
          end
        end
        Second: begin
          if (out_moves && out_last) begin
            phase_q <= codes != '0 ? Codes : Parts;
          end
        end
        Codes: begin
          if (out_moves) begin
            code_q  <= !code_last;
            phase_q <= code_last ? Parts : Codes;
          end
        end
        Parts: begin
          if (out_moves && out_last) begin
            column_q <= column_q + 3'd1;
            phase_q  <= column_q == 3'd2 ? Idle : Parts;
          end
        end
        default: phase_q <= Idle;
      endcase
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !wipe_i) begin
      OneCommand_A: assert (!start_i || (phase_q == Idle && !waits_q && !begins_q));
      AtOnce_A: assert (message_valid == (result_valid ? stage_q.sends : '0));
      Whole_A: assert (!start_i || command_i.words % Lanes == '0);
    end
  end
`endif

  logic unused;
  assign unused = ^{command_i.tag, command_i.words, command_i.zero, command_i.after, command_i.armed, command_i.slot, command_i.sources,
                    command_i.op,
                    command_i.destinations, stage_q.zero, stage_q.two, stage_q.to_0, stage_q.to_1, unused_ready, unused_idle,
                    unused_scrubs, unused_last, unused_product, unused_bytes, unused_tag, unused_closes, message_valid};

endmodule
