// Packets that leave a node: text comes in, header, ciphertext and tag go out, under the key of the node that they go to.
//
// A packet of n words is n + 2 on the wire, which carries a word in every cycle while there are packets. It is sealed when all of it came:
// its header says its length. Each has a completion, in the order of the packets; one that is not sent, for its status, has no words on the
// wire. The counter of a node starts at 0 with its key.
//
// Latency:  of a packet of n words, from its last word to its header 19 cycles, which do not depend on what it says.
// Back-pressure: from the wire and the completions to the text, by queues; the core between them never stops.

module gcm_seal #(
  parameter  int unsigned Nodes    = 4,   // at least 2
  parameter  int unsigned MaxWords = 256, // of a packet's text; a power of two
  parameter  int unsigned LimitW   = 32,  // logarithm of the packets of a key
  localparam int unsigned NodeW    = $clog2(Nodes),
  localparam int unsigned WordsW   = $clog2(MaxWords) + 1
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

  // Text; TKEEP is all ones but in a last word. A packet of no bytes is one word of TKEEP 0
  input  aes_pkg::block_t        s_axis_tdata_i,
  input  logic [15:0]            s_axis_tkeep_i,
  input  logic [NodeW-1:0]       s_axis_tdest_i,
  input  logic                   s_axis_tlast_i,
  input  logic                   s_axis_tvalid_i,
  output logic                   s_axis_tready_o,

  // The wire
  output aes_pkg::block_t        m_axis_tdata_o,
  output logic [NodeW-1:0]       m_axis_tdest_o,
  output logic                   m_axis_tlast_o,
  output logic                   m_axis_tvalid_o,
  input  logic                   m_axis_tready_i,

  output gcm_pkg::completion_t   done_o,
  output logic                   done_valid_o,
  input  logic                   done_ready_i
);

  localparam int unsigned Places  = 64; // for words on their way to the wire: more than the core's latency
  localparam int unsigned Packets = 32; // that have not all left
  localparam int unsigned PlacesW = $clog2(Places) + 1;
  localparam int unsigned SomeW   = $clog2(Packets) + 1;
  localparam int unsigned LeftW   = gcm_pkg::LeftW;

  typedef struct packed {
    logic              bad;
    logic [NodeW-1:0]  node;
    logic [15:0]       bytes;
    logic [WordsW-1:0] words; // in the queue
  } packet_t;

  // ---- packets come
  logic              in_moves, room, list_room, first_q, bad_q, in_bad, partial, writes;
  logic [4:0]        in_bytes;
  logic [15:0]       bytes_q, bytes_d;
  logic [WordsW-1:0] words_q, words_d;
  logic [NodeW-1:0]  in_node_q;
  packet_t           coming, packet;
  logic              packet_valid, pops;

  // TKEEP as a number of bytes.
  always_comb begin : p_bytes
    in_bytes = '0;
    for (int unsigned k = 0; k < 16; k++) begin
      in_bytes = in_bytes + 5'(s_axis_tkeep_i[k]);
    end
  end

  assign s_axis_tready_o = room && list_room && !wipe_i;
  assign in_moves        = s_axis_tvalid_i && s_axis_tready_o;
  // Ones from the lowest on; all of them but in the last word; some but in a packet without any.
  assign partial  = s_axis_tlast_i ? (s_axis_tkeep_i & (s_axis_tkeep_i + 16'd1)) != 16'd0 || (s_axis_tkeep_i == 16'd0 && !first_q)
                                   : s_axis_tkeep_i != '1;
  assign in_bad   = bad_q || partial || (words_q == WordsW'(MaxWords) && s_axis_tkeep_i != 16'd0);
  assign writes   = in_moves && !in_bad && s_axis_tkeep_i != 16'd0;
  assign bytes_d  = bytes_q + (in_bad ? '0 : 16'(in_bytes));
  assign words_d  = words_q + WordsW'(writes);
  assign coming   = {in_bad, first_q ? s_axis_tdest_i : in_node_q, bytes_d, words_d};

  always_ff @(posedge clk_i) begin : p_coming
    if (!rst_ni || wipe_i || (in_moves && s_axis_tlast_i)) begin
      first_q   <= 1'b1;
      bad_q     <= 1'b0;
      bytes_q   <= '0;
      words_q   <= '0;
      in_node_q <= '0;
    end else if (in_moves) begin
      first_q   <= 1'b0;
      bad_q     <= in_bad;
      bytes_q   <= bytes_d;
      words_q   <= words_d;
      in_node_q <= coming.node;
    end
  end

  aes_pkg::block_t word;
  logic            word_valid, takes;

  /* verilator lint_off PINCONNECTEMPTY */
  prim_buffer #(.Width(128), .Depth(2 * MaxWords)) u_words (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (wipe_i),
    .in_data_i   (s_axis_tdata_i),
    .in_valid_i  (writes),
    .in_ready_o  (room),
    .out_data_o  (word),
    .out_valid_o (word_valid),
    .out_ready_i (takes),
    .count_o     ()
  );

  prim_fifo #(.Width($bits(packet)), .Depth(Packets)) u_packets (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   (coming),
    .in_valid_i  (in_moves && s_axis_tlast_i),
    .in_ready_o  (list_room),
    .out_data_o  (packet),
    .out_valid_o (packet_valid),
    .out_ready_i (pops),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // ---- and go into the core, a beat per cycle
  typedef enum logic [1:0] { Begin, Words, Drop, End } state_e;

  typedef struct packed {
    logic                 sends; // the beat is a word of the wire
    logic [NodeW-1:0]     node;
    gcm_pkg::completion_t done;
  } user_t;

  state_e               state_q, state_d;
  gcm_pkg::status_e     status, status_q;
  gcm_pkg::beat_t       beat;
  gcm_pkg::header_t     header;
  user_t                user, out_user;
  logic [Nodes-1:0]     known;
  logic [63:0]          counter;
  logic [PlacesW-1:0]   places_q;
  logic [SomeW-1:0]     open_q;
  logic [WordsW-1:0]    left_q;
  logic                 loads, loads_takes, leaves, places, ends, out_valid, done_moves, wire_moves;
  gcm_pkg::kind_e       out_kind;
  aes_pkg::block_t      out_data;

  assign places      = places_q != '0;
  assign loads_takes = load_valid_i && load_ready_o;

  always_comb begin : p_status
    status = gcm_pkg::Ok;
    if (packet.bad) begin
      status = gcm_pkg::Length;
    end else if (packet.node == self_i) begin
      status = gcm_pkg::Node;
    end else if (!known[packet.node]) begin
      status = gcm_pkg::NoKey;
    end else if (counter[LimitW]) begin
      status = gcm_pkg::Spent;
    end
  end

  always_comb begin : p_beat
    header         = '0;
    header.version = gcm_pkg::Version;
    header.from    = 8'(self_i);
    header.to      = 8'(packet.node);
    header.bytes   = packet.bytes;
    header.counter = counter;
    state_d        = state_q;
    beat           = '0;
    beat.counter   = counter;
    beat.bytes     = 5'd16;
    user.sends     = 1'b1;
    user.node      = packet.node;
    user.done      = {status_q, 8'(packet.node), packet.bytes, status_q == gcm_pkg::Ok ? counter : 64'd0};
    takes          = 1'b0;
    pops           = 1'b0;
    unique case (state_q)
      Begin: begin
        beat.kind  = gcm_pkg::Head;
        beat.first = 1'b1;
        beat.left  = packet.words + WordsW'(1) >= WordsW'(gcm_pkg::Stages) ? LeftW'(gcm_pkg::Stages) : LeftW'(packet.words) + LeftW'(1);
        beat.data  = header;
        if (packet_valid && !load_valid_i && !loads && (status != gcm_pkg::Ok || places)) begin
          beat.valid = status == gcm_pkg::Ok;
          state_d    = packet.words == '0 ? End : status == gcm_pkg::Ok ? Words : Drop;
        end
      end
      Words: begin
        beat.kind  = gcm_pkg::Text;
        beat.left  = left_q >= WordsW'(gcm_pkg::Stages) ? LeftW'(gcm_pkg::Stages) : LeftW'(left_q);
        beat.bytes = left_q == WordsW'(1) ? gcm_pkg::bytes_of_last(packet.bytes) : 5'd16;
        beat.data  = word;
        beat.valid = places;
        takes      = places;
        state_d    = places && left_q == WordsW'(1) ? End : Words;
      end
      Drop: begin
        takes   = 1'b1;
        state_d = left_q == WordsW'(1) ? End : Drop;
      end
      End: begin
        beat.kind  = gcm_pkg::Tail;
        beat.data  = gcm_pkg::lengths(16'd16, packet.bytes);
        beat.valid = places && open_q != SomeW'(Packets);
        user.sends = status_q == gcm_pkg::Ok;
        pops       = beat.valid;
        state_d    = beat.valid ? Begin : End;
      end
      default: state_d = Begin;
    endcase
  end

  // What has a place in the queue to the wire, and in that of completions.
  assign leaves = beat.valid && user.sends;
  assign ends   = beat.valid && beat.kind == gcm_pkg::Tail;

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni || wipe_i) begin
      state_q  <= Begin;
      status_q <= gcm_pkg::Ok;
      left_q   <= '0;
      places_q <= PlacesW'(Places);
      open_q   <= '0;
    end else begin
      state_q  <= state_d;
      places_q <= places_q - PlacesW'(leaves) + PlacesW'(wire_moves);
      open_q   <= open_q + SomeW'(ends) - SomeW'(done_moves);
      if (state_q == Begin) begin
        status_q <= status;
        left_q   <= packet.words;
      end else if (takes) begin
        left_q <= left_q - 1'b1;
      end
    end
  end

  // Counters of packets; the key's writing makes one 0, the last beat of a packet counts it.
  prim_ram_async #(.Width(64), .Depth(1 << NodeW)) u_counters (
    .clk_i    (clk_i),
    .w_en_i   (loads_takes || (ends && user.sends)),
    .w_addr_i (loads_takes ? load_node_i : packet.node),
    .w_data_i (loads_takes ? '0 : counter + 64'd1),
    .r_addr_i (packet.node),
    .r_data_o (counter)
  );

  gcm_core #(.Nodes(Nodes), .UserW($bits(user))) u_core (
    .clk_i        (clk_i),
    .rst_ni       (rst_ni),
    .wipe_i       (wipe_i),
    .idle_i       (state_q == Begin),
    .load_valid_i (load_valid_i),
    .load_ready_o (load_ready_o),
    .load_node_i  (load_node_i),
    .load_key_i   (load_key_i),
    .load_salt_i  (load_salt_i),
    .loads_o      (loads),
    .known_o      (known),
    .beat_i       (wipe_i ? '0 : beat),
    .node_i       (packet.node),
    .user_i       (user),
    .valid_o      (out_valid),
    .kind_o       (out_kind),
    .data_o       (out_data),
    .user_o       (out_user)
  );

  // ---- to the wire
  /* verilator lint_off PINCONNECTEMPTY */
  /* verilator lint_off UNUSEDSIGNAL */
  logic wire_room, done_room; // there is always a place: see places_q and open_q
  /* verilator lint_on UNUSEDSIGNAL */
  logic wire_waits, done_waits;

  prim_fifo #(.Width(129 + NodeW), .Depth(Places)) u_wire (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   ({out_kind == gcm_pkg::Tail, out_user.node, out_data}),
    .in_valid_i  (out_valid && out_user.sends),
    .in_ready_o  (wire_room),
    .out_data_o  ({m_axis_tlast_o, m_axis_tdest_o, m_axis_tdata_o}),
    .out_valid_o (wire_waits),
    .out_ready_i (m_axis_tready_i),
    .count_o     ()
  );

  prim_fifo #(.Width($bits(done_o)), .Depth(Packets)) u_done (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   (out_user.done),
    .in_valid_i  (out_valid && out_kind == gcm_pkg::Tail),
    .in_ready_o  (done_room),
    .out_data_o  (done_o),
    .out_valid_o (done_waits),
    .out_ready_i (done_ready_i),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  assign m_axis_tvalid_o = wire_waits && !wipe_i;
  assign done_valid_o    = done_waits && !wipe_i;
  assign wire_moves      = m_axis_tvalid_o && m_axis_tready_i;
  assign done_moves      = done_valid_o && done_ready_i;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !wipe_i) begin
      WirePlace_A: assert (!(out_valid && out_user.sends) || wire_room);
      DonePlace_A: assert (!(out_valid && out_kind == gcm_pkg::Tail) || done_room);
      WordThere_A: assert (!takes || word_valid);
    end
  end
`endif

endmodule
