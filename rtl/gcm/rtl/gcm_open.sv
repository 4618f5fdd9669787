// Packets that come into a node: header, ciphertext and tag from the wire, text out, under the key of the node that they come from.
//
// No word of a packet is offered before its tag was found right and its counter the next of its node. Until then its text lies in a queue;
// if it is not right, it is dropped there. Every packet has a completion, in the order of the packets, one that is right after its last
// word was taken. The counter that is waited for starts at 0 with the node's key, and goes on with packets that are right alone: a packet
// that somebody forged, repeated or sent early changes nothing, and after one that was lost nothing from its node is right any more.
//
// Latency:  of a packet of n words, from its tag to its first word 18 cycles, which do not depend on what it says.
// Throughput: a word of the wire per cycle.   Back-pressure: from the text and the completions to the wire, by queues.

module gcm_open #(
  parameter  int unsigned Nodes    = 4,   // at least 2
  parameter  int unsigned MaxWords = 256, // of a packet's text; a power of two
  localparam int unsigned NodeW    = $clog2(Nodes)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   wipe_i, // all text and keys: 2 MaxWords cycles at least
  input  logic [NodeW-1:0]       self_i,

  input  logic                   load_valid_i,
  output logic                   load_ready_o,
  input  logic [NodeW-1:0]       load_node_i,
  input  aes_pkg::block_t        load_key_i,
  input  logic [31:0]            load_salt_i,

  // The wire
  input  aes_pkg::block_t        s_axis_tdata_i,
  input  logic                   s_axis_tlast_i,
  input  logic                   s_axis_tvalid_i,
  output logic                   s_axis_tready_o,

  // Text of packets that are right; a packet of no bytes has no words
  output aes_pkg::block_t        m_axis_tdata_o,
  output logic [15:0]            m_axis_tkeep_o,
  output logic [NodeW-1:0]       m_axis_tdest_o, // the node that it is from
  output logic                   m_axis_tlast_o,
  output logic                   m_axis_tvalid_o,
  input  logic                   m_axis_tready_i,

  output gcm_pkg::completion_t   done_o,
  output logic                   done_valid_o,
  input  logic                   done_ready_i
);

  localparam int unsigned Places  = 2 * MaxWords; // for words of text
  localparam int unsigned Packets = 32;           // that are under way
  localparam int unsigned PlacesW = $clog2(Places) + 1;
  localparam int unsigned SomeW   = $clog2(Packets) + 1;
  localparam int unsigned LeftW   = gcm_pkg::LeftW;
  localparam int unsigned Stages  = gcm_pkg::Stages;

  // ---- beats of the wire go into the core
  typedef enum logic [1:0] {
    Begin,  // a header comes
    Words,  // text
    End,    // the tag
    Discard // what belongs to no packet that can be right
  } state_e;

  typedef struct packed {
    gcm_pkg::completion_t done;
    logic [12:0]          words; // that are in the queue
    aes_pkg::block_t      tag;   // as it came
  } user_t;

  state_e               state_q, state_d;
  gcm_pkg::status_e     status, status_d, status_q;
  gcm_pkg::header_t     header, from_q, from_d;
  gcm_pkg::beat_t       beat;
  user_t                user, out_user;
  logic [Nodes-1:0]     known;
  logic [NodeW-1:0]     node;
  logic [12:0]          words_q, words_d, left, of_header;
  logic [4:0]           of_word;
  logic [PlacesW-1:0]   places_q;
  logic [SomeW-1:0]     open_q, inside_q;
  logic                 loads, takes, goes, out_valid, out_tail, loads_takes, text_moves, done_moves, ends, turns, filled;
  gcm_pkg::kind_e       out_kind;
  aes_pkg::block_t      out_data;

  assign header    = s_axis_tdata_i;
  assign from_d    = state_q == Begin ? header : from_q;
  assign node      = from_d.from[NodeW-1:0];
  assign of_word   = left == 13'd1 ? gcm_pkg::bytes_of_last(from_q.bytes) : 5'd16;
  assign filled    = gcm_pkg::first_bytes(s_axis_tdata_i, of_word) != s_axis_tdata_i; // behind the text, not with zeros
  assign of_header = gcm_pkg::words_of(header.bytes) + 13'd1; // hashed blocks that follow it
  assign left      = gcm_pkg::words_of(from_q.bytes) - words_q; // words of text that are still to come, this one among them

  // What can be said of a packet by its header alone.
  always_comb begin : p_status
    status = gcm_pkg::Ok;
    if (header.version != gcm_pkg::Version || header.nil != 8'd0 || header.zero != 16'd0 || header.to != 8'(self_i)
        || 32'(header.from) >= Nodes || header.from == 8'(self_i)) begin
      status = gcm_pkg::Node;
    end else if (!known[node]) begin
      status = gcm_pkg::NoKey;
    end else if (32'(header.bytes) > 16 * MaxWords) begin
      status = gcm_pkg::Length;
    end
  end

  // A word of text needs a place, and so does a packet's end, at which it comes to the list.
  assign goes = (state_q == Words && !s_axis_tlast_i ? places_q != '0 : 1'b1) && (s_axis_tlast_i ? open_q != SomeW'(Packets) : 1'b1)
              && !(state_q == Begin && (load_valid_i || loads)) && !wipe_i && rst_ni;
  assign s_axis_tready_o = goes;
  assign takes           = s_axis_tvalid_i && goes;

  always_comb begin : p_beat
    state_d      = state_q;
    status_d     = status_q;
    words_d      = words_q;
    beat         = '0;
    beat.open    = 1'b1;
    beat.counter = from_d.counter;
    beat.bytes   = 5'd16;
    beat.data    = s_axis_tdata_i;
    unique case (state_q)
      Begin: begin
        beat.kind  = gcm_pkg::Head;
        beat.first = 1'b1;
        beat.left  = of_header >= 13'(Stages) ? LeftW'(Stages) : LeftW'(of_header);
        beat.valid = takes && status == gcm_pkg::Ok;
        status_d   = status;
        words_d    = '0;
        state_d    = status != gcm_pkg::Ok ? Discard : header.bytes == '0 ? End : Words;
      end
      Words: begin
        beat.kind  = gcm_pkg::Text;
        beat.left  = left >= 13'(Stages) ? LeftW'(Stages) : LeftW'(left);
        beat.bytes = of_word;
        beat.valid = takes;
        words_d    = words_q + 13'd1;
        state_d    = left != 13'd1 ? Words : filled ? Discard : End;
        status_d   = filled ? gcm_pkg::Length : status_q;
      end
      End: begin
        status_d = gcm_pkg::Length;
        state_d  = Discard;
      end
      default: ;
    endcase
    // The last beat is the tag if it comes where the tag should be; elsewhere the packet is not as long as it says.
    if (s_axis_tlast_i) begin
      if (state_q == Begin || state_q == Words) begin
        status_d = status_d == gcm_pkg::Ok ? gcm_pkg::Length : status_d;
        words_d  = state_q == Begin ? '0 : words_q;
      end
      if (state_q == End) begin
        status_d = gcm_pkg::Ok;
      end
      state_d    = Begin;
      beat.valid = takes;
      beat.kind  = gcm_pkg::Tail;
      beat.first = 1'b0;
      beat.left  = '0;
      beat.bytes = 5'd16;
      beat.data  = gcm_pkg::lengths(16'd16, from_d.bytes);
    end
    user.done  = {status_d, from_d.from, from_d.bytes, from_d.counter};
    user.words = words_d;
    user.tag   = s_axis_tdata_i;
  end

  assign ends  = beat.valid && beat.kind == gcm_pkg::Tail;
  assign turns = beat.valid && beat.kind == gcm_pkg::Text;

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni || wipe_i) begin
      state_q  <= Begin;
      status_q <= gcm_pkg::Ok;
      from_q   <= '0;
      words_q  <= '0;
      places_q <= PlacesW'(Places);
      open_q   <= '0;
      inside_q <= '0;
    end else begin
      places_q <= places_q - PlacesW'(turns) + PlacesW'(text_moves);
      open_q   <= open_q + SomeW'(ends) - SomeW'(done_moves);
      inside_q <= inside_q + SomeW'(ends) - SomeW'(out_tail);
      if (takes) begin
        state_q  <= state_d;
        status_q <= status_d;
        from_q   <= from_d;
        words_q  <= words_d;
      end
    end
  end

  // A key is written between packets, when none is inside of which the counter would be looked at after it.
  gcm_core #(.Nodes(Nodes), .UserW($bits(user))) u_core (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .wipe_i       (wipe_i),
    .idle_i       (state_q == Begin && inside_q == '0),
    .load_valid_i (load_valid_i),
    .load_ready_o (load_ready_o),
    .load_node_i  (load_node_i),
    .load_key_i   (load_key_i),
    .load_salt_i  (load_salt_i),
    .loads_o      (loads),
    .known_o      (known),
    .beat_i       (wipe_i ? '0 : beat),
    .node_i       (node),
    .user_i       (user),
    .valid_o      (out_valid),
    .kind_o       (out_kind),
    .data_o       (out_data),
    .user_o       (out_user)
  );

  // ---- is it right?
  gcm_pkg::completion_t verdict;
  logic [63:0]          expected;
  logic [NodeW-1:0]     out_node;
  logic                 right;

  assign loads_takes = load_valid_i && load_ready_o;
  assign out_tail    = out_valid && out_kind == gcm_pkg::Tail;
  assign out_node    = out_user.done.node[NodeW-1:0];
  assign right       = verdict.status == gcm_pkg::Ok;

  always_comb begin : p_verdict
    verdict = out_user.done;
    if (verdict.status == gcm_pkg::Ok) begin
      if (out_user.tag != out_data) begin
        verdict.status = gcm_pkg::Forged;
      end else if (verdict.counter != expected) begin
        verdict.status = gcm_pkg::Order;
      end
    end
  end

  prim_ram_async #(.Width(64), .Depth(1 << NodeW)) u_counters (
    .clk_i    (clk_i),
    .w_en_i   (loads_takes || (out_tail && right)),
    .w_addr_i (loads_takes ? load_node_i : out_node),
    .w_data_i (loads_takes ? '0 : expected + 64'd1),
    .r_addr_i (out_node),
    .r_data_o (expected)
  );

  // ---- text waits for the verdict
  aes_pkg::block_t      text;
  gcm_pkg::completion_t packet;
  logic [12:0]          packet_words;
  logic                 packet_valid, takes_text, pops, done_waits;
  /* verilator lint_off UNUSEDSIGNAL */
  logic text_room, list_room, text_valid, done_room; // there is always a place: see places_q and open_q
  /* verilator lint_on UNUSEDSIGNAL */

  /* verilator lint_off PINCONNECTEMPTY */
  prim_buffer #(.Width(128), .Depth(Places)) u_text (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (wipe_i),
    .in_data_i   (out_data),
    .in_valid_i  (out_valid && out_kind == gcm_pkg::Text),
    .in_ready_o  (text_room),
    .out_data_o  (text),
    .out_valid_o (text_valid),
    .out_ready_i (takes_text),
    .count_o     ()
  );

  prim_fifo #(.Width($bits({packet, packet_words})), .Depth(Packets)) u_packets (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   ({verdict, out_user.words}),
    .in_valid_i  (out_tail),
    .in_ready_o  (list_room),
    .out_data_o  ({packet, packet_words}),
    .out_valid_o (packet_valid),
    .out_ready_i (pops),
    .count_o     ()
  );

  prim_fifo #(.Width($bits(done_o)), .Depth(Packets)) u_done (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   (packet),
    .in_valid_i  (pops),
    .in_ready_o  (done_room),
    .out_data_o  (done_o),
    .out_valid_o (done_waits),
    .out_ready_i (done_ready_i),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // Of the packet that is first in the list, words that were offered; the others are not looked at.
  logic [12:0] offered_q;
  logic        last, whole;

  assign last            = offered_q + 13'd1 == packet_words;
  assign whole           = packet_valid && packet.status == gcm_pkg::Ok;
  assign m_axis_tvalid_o = whole && packet_words != '0 && !wipe_i;
  assign m_axis_tdata_o  = m_axis_tvalid_o ? text : '0;
  assign m_axis_tkeep_o  = last ? 16'hffff >> (5'd16 - gcm_pkg::bytes_of_last(packet.bytes)) : 16'hffff;
  assign m_axis_tdest_o  = packet.node[NodeW-1:0];
  assign m_axis_tlast_o  = last;
  assign takes_text      = packet_valid && packet_words != '0 && (!whole || m_axis_tready_i) && !wipe_i;
  assign pops            = packet_valid && !wipe_i && (packet_words == '0 || (takes_text && last));
  assign text_moves      = takes_text;
  assign done_valid_o    = done_waits && !wipe_i;
  assign done_moves      = done_valid_o && done_ready_i;

  always_ff @(posedge clk_i) begin : p_offered
    if (!rst_ni || wipe_i || pops) begin
      offered_q <= '0;
    end else begin
      offered_q <= offered_q + 13'(takes_text);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !wipe_i) begin
      TextPlace_A: assert (!(out_valid && out_kind == gcm_pkg::Text) || text_room);
      ListPlace_A: assert (!out_tail || list_room);
      DonePlace_A: assert (!pops || done_room);
      TextThere_A: assert (!takes_text || text_valid);
    end
  end
`endif

endmodule
