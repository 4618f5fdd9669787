// A core of rep4_join as an accelerator of words: the second stage of products of four parties.
//
// It takes the three columns of shares that are not complete, the columns of the one or two messages that came, and, if it checks, a beat for
// each code that came. All but the last message are kept, and that goes by them through the core. Complete shares stay here until all codes
// were compared: then their three columns come out. After a difference nothing but zeros does, with the first of which it says so; the core is
// scrubbed, and ready for another command. Codes begin and end with the command.
//
// Latency:  the first share comes out when the last message and all codes have come and were compared, as rep4_join says it.
// Throughput: one beat per cycle in or out; of the last message a word per cycle.
// Back-pressure: words are taken as the core takes them.

module lookaside_join #(
  parameter  int unsigned Longest = 1024, // words of a column; a power of two
  parameter  int unsigned Lanes   = 1,    // words of a beat; a power of two, at most half of Longest
  localparam int unsigned Width   = 128 * Lanes,
  localparam int unsigned Depth   = Longest / Lanes,
  localparam int unsigned PlaceW  = $clog2(Depth),
  localparam int unsigned LaneW   = Lanes > 1 ? $clog2(Lanes) : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    scrub_i, // begins a scrub, of 32 cycles
  input  logic                    wipe_i,  // Depth cycles at least, and 32, from scrub_i on

  input  logic [383:0]            pairs_i, // keys with the next party, the one opposite, the previous one: stable while a command goes on

  input  logic                    start_i,
  input  lookaside_pkg::command_t command_i, // words: Lanes to Longest, and a multiple of Lanes
  input  lookaside_pkg::draw_t    draw_i,
  input  lookaside_pkg::stage_t   stage_i,   // of those that lookaside_pkg::is_stage knows

  input  logic [Width-1:0]        in_data_i,
  input  logic                    in_valid_i,
  output logic                    in_ready_o,
  output logic [Width-1:0]        out_data_o,
  output logic                    out_valid_o,
  input  logic                    out_ready_i,
  output logic                    mismatch_o // with every word: the codes are not those of the messages
);

  typedef enum logic [2:0] {
    Idle,
    Load,    // columns that are kept
    Compute, // the last message goes by
    Codes,   // come
    Wait,    // for what they say, and for the last shares
    Parts    // of complete shares
  } phase_e;

  phase_e                phase_q;
  lookaside_pkg::stage_t stage_q;
  lookaside_pkg::draw_t  draw_q;
  logic [PlaceW:0]       beats_q;
  logic [PlaceW-1:0]     in_q, in_d, out_q, out_d, read;
  logic [1:0]            column_q;
  logic                  loads, computes, leaves, in_moves, in_last, out_moves, out_last, code_q, refused_q, checked_q, written_q;
  logic [255:0]          codes_q;

  assign loads     = phase_q == Load;
  assign computes  = phase_q == Compute;
  assign leaves    = phase_q == Parts;
  assign in_moves  = in_valid_i && in_ready_o;
  assign in_last   = (PlaceW+1)'(in_q) + 1'b1 == beats_q;
  assign in_d      = in_moves && phase_q != Codes ? (in_last ? '0 : in_q + 1'b1) : in_q;
  assign out_moves = leaves ? out_ready_i : writes;
  assign out_last  = (PlaceW+1)'(out_q) + 1'b1 == beats_q;
  assign out_d     = out_moves ? (out_last ? '0 : out_q + 1'b1) : out_q;

  // ---- columns that are kept; complete shares lie where those lay of which they were made
  logic [3:0]         keeps;
  logic [4*Width-1:0] kept;
  logic [3*Width-1:0] some_q, some;
  logic               writes;

  // A word that is used in the next cycle is read in this one.
  assign read  = loads || computes ? in_d : out_d;
  assign keeps = {4{loads && in_moves}} & (4'b0001 << column_q) | {1'b0, {3{writes}}};

  for (genvar k = 0; k < 4; k++) begin : g_kept
    logic [Width-1:0] data;

    if (k < 3) begin : g_part
      assign data = loads ? in_data_i : some[Width*k +: Width];
    end else begin : g_message
      assign data = in_data_i;
    end

    prim_ram_1w1r #(.Width(Width), .Depth(Depth)) u_kept (
      .clk_i    (clk_i),
      .w_en_i   (keeps[k] || wipe_i),
      .w_addr_i (loads || wipe_i ? in_q : out_q),
      .w_data_i (wipe_i ? '0 : data),
      .r_en_i   (1'b1),
      .r_addr_i (read),
      .r_data_o (kept[Width*k +: Width])
    );
  end

  // ---- the core, word by word
  logic             begins_q, begin_ready, core_valid, core_ready, lane_last, last_word, checked, fails, result_valid, unused_scrubs;
  logic             unused_idle, unused_last;
  logic [LaneW-1:0] lane_q;
  logic [383:0]     shares, parts;
  logic [255:0]     messages, pair_keys;
  logic [1:0]       message_ready, code_ready, there;
  logic [4:0]       unused_bytes, bytes;
  logic [15:0]      unused_tag;

  always_comb begin : p_words
    lookaside_pkg::word_t goes, waits;
    for (int unsigned k = 0; k < 3; k++) begin
      shares[128*k +: 128] = kept[Width*k+128*32'(lane_q) +: 128];
    end
    goes     = in_data_i[128*32'(lane_q) +: 128];
    waits    = kept[Width*3+128*32'(lane_q) +: 128];
    messages = stage_q.two ? {goes, waits} : {128'b0, goes};
  end

  // Of a sum there is a single word, in the first lane.
  assign lane_last  = stage_q.sum || 32'(lane_q) == Lanes - 1;
  assign last_word  = in_last && lane_last;
  assign bytes      = !last_word || stage_q.tail == '0 ? 5'd16 : 5'(stage_q.tail);
  assign core_valid = computes && in_valid_i && !begins_q;
  assign in_ready_o = loads || phase_q == Codes || (computes && core_ready && lane_last);
  assign there      = phase_q == Wait && stage_q.checks ? {stage_q.two, 1'b1} : '0;
  assign pair_keys  = {lookaside_pkg::pair_key(pairs_i, stage_q.with_1), lookaside_pkg::pair_key(pairs_i, stage_q.with_0)};

  rep4_join u_core (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .scrub_i         (scrub_i || (phase_q == Wait && fails)),
    .scrubs_o        (unused_scrubs),
    .idle_o          (unused_idle),
    .from_two_i      (stage_q.two),
    .to_i            ({stage_q.to_1, stage_q.to_0}),
    .checks_i        (stage_q.checks),
    .begin_valid_i   (begins_q),
    .begin_ready_o   (begin_ready),
    .keys_i          (pair_keys & {256{begins_q}}),
    .used_i          ({stage_q.used_1, stage_q.used_0}),
    .lane_i          (draw_q.lane),
    .counter_i       (stage_q.counter),
    .chunk_i         (draw_q.chunk),
    .in_ring_i       (share_pkg::ring_e'(stage_q.ring)),
    .in_data_i       (shares),
    .in_bytes_i      (bytes),
    .in_last_i       (last_word),
    .in_closes_i     (2'd3),
    .in_tag_i        ('0),
    .in_valid_i      (core_valid),
    .in_ready_o      (core_ready),
    .message_data_i  (messages),
    .message_valid_i ({2{core_valid}}),
    .message_ready_o (message_ready),
    .code_i          (codes_q),
    .code_valid_i    (there),
    .code_ready_o    (code_ready),
    .checked_o       (checked),
    .fails_o         (fails),
    .out_data_o      (parts),
    .out_bytes_o     (unused_bytes),
    .out_last_o      (unused_last),
    .out_tag_o       (unused_tag),
    .out_valid_o     (result_valid),
    .out_ready_i     (1'b1)
  );

  // ---- results, brought together to beats, which are kept until all is checked
  logic [LaneW-1:0] place_q;
  logic             whole;

  always_comb begin : p_some
    some = some_q;
    for (int unsigned k = 0; k < 3; k++) begin
      some[Width*k+128*32'(place_q) +: 128] = parts[128*k +: 128];
    end
  end

  assign whole  = stage_q.sum || 32'(place_q) == Lanes - 1;
  assign writes = result_valid && whole && !leaves;

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
        if (result_valid) begin
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
  assign out_valid_o = leaves;
  assign out_data_o  = leaves && !refused_q ? kept[Width*32'(column_q) +: Width] : '0;
  assign mismatch_o  = leaves && refused_q;

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      phase_q   <= Idle;
      stage_q   <= '0;
      draw_q    <= '0;
      beats_q   <= '0;
      begins_q  <= 1'b0;
      column_q  <= '0;
      code_q    <= 1'b0;
      codes_q   <= '0;
      refused_q <= 1'b0;
      checked_q <= 1'b0;
      written_q <= 1'b0;
      in_q      <= '0;
      out_q     <= '0;
    end else if (wipe_i) begin
      phase_q  <= Idle;
      begins_q <= 1'b0;
      codes_q  <= '0;
      in_q     <= in_q + 1'b1;
    end else if (start_i) begin
      phase_q   <= Load;
      stage_q   <= stage_i;
      draw_q    <= draw_i;
      beats_q   <= (PlaceW+1)'(command_i.words / Lanes);
      begins_q  <= stage_i.checks;
      column_q  <= '0;
      code_q    <= 1'b0;
      refused_q <= 1'b0;
      checked_q <= !stage_i.checks;
      written_q <= 1'b0;
      in_q      <= '0;
      out_q     <= '0;
    end else begin
      begins_q  <= begins_q && !begin_ready;
      checked_q <= checked_q || checked;
      written_q <= written_q || (writes && out_last);
      in_q      <= in_d;
      out_q     <= out_d;
      unique case (phase_q)
        Load: begin
          if (in_moves && in_last) begin
            column_q <= column_q + 2'd1;
            if (column_q == (stage_q.two ? 2'd3 : 2'd2)) begin
              column_q <= '0;
              phase_q  <= Compute;
            end
          end
        end
        Compute: begin
          if (in_moves && in_last) begin
            phase_q <= stage_q.checks ? Codes : Wait;
          end
        end
        Codes: begin
          if (in_moves) begin
            codes_q[128*32'(code_q) +: 128] <= in_data_i[127:0];
            code_q  <= !code_q;
            phase_q <= code_q == stage_q.two ? Wait : Codes;
          end
        end
        Wait: begin
          if (fails) begin
            refused_q <= 1'b1;
            out_q     <= '0;
            phase_q   <= Parts;
          end else if (checked_q && written_q) begin
            phase_q <= Parts;
          end
        end
        Parts: begin
          if (out_moves && out_last) begin
            column_q <= column_q + 2'd1;
            phase_q  <= column_q == 2'd2 ? Idle : Parts;
          end
        end
        default: phase_q <= Idle;
      endcase
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !wipe_i) begin
      OneCommand_A: assert (!start_i || (phase_q == Idle && !begins_q));
      // Rule R1: what is not checked stays.
      Checked_A: assert (!out_valid_o || refused_q || !stage_q.checks || checked_q);
      Refused_A: assert (!refused_q || out_data_o == '0);
      Kept_A: assert (!result_valid || !leaves);
      Whole_A: assert (!start_i || command_i.words % Lanes == '0);
    end
  end
`endif

  logic unused;
  assign unused = ^{command_i.tag, command_i.words, command_i.zero, command_i.after, command_i.armed, command_i.slot, command_i.sources,
                    command_i.op,
                    command_i.destinations, stage_q.zero, stage_q.sends, draw_q.used, draw_q.counter, unused_scrubs, unused_idle,
                    unused_last, unused_bytes, unused_tag, message_ready, code_ready};

endmodule
