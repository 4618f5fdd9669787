// The lookaside unit: commands from the host's stream, workers that run them on accelerators between memory and other nodes, completions
// for all that happens. docs/lookaside.md says what is promised; registers and formats are described in data/lookaside.toml.
//
// Network streams are packets of whole words: the text streams of gcm_inline. A scrub here goes with one there, as it may cut a packet.

module lookaside_unit #(
  parameter  int unsigned Nodes   = 4,    // at least 2, at most 4
  parameter  int unsigned Movers  = 2,    // workers that move words and invoke other nodes, at least 2
  parameter  int unsigned Adders  = 2,    // workers that add columns, at least 2
  parameter  int unsigned Sharers = 4,    // workers that compute on shares, at least 2; all workers together at most 14
  parameter  int unsigned Locals  = 0,    // workers for both stages of products of four parties: none of both, or at least one of each
  parameter  int unsigned Joins   = 0,
  parameter  int unsigned Fold    = 6,    // as of rep4_local
  parameter  int unsigned Lanes   = 1,    // words of a beat of memory: 1, 2 or 4
  parameter  int unsigned Slots   = 4,    // for armed commands
  parameter  int unsigned Longest = 1024, // words of a column that is kept; a power of two
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned NodeW   = $clog2(Nodes)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  output logic                 scrubs_o,
  input  logic                 scrubs_i, // the inline path still does: no scrub is over before

  // For the inline path beside it: this node, and a key that is written, until it is taken
  output logic [NodeW-1:0]     node_o,
  output logic                 key_valid_o,
  input  logic                 key_ready_i,
  output logic                 key_open_o,
  output logic [NodeW-1:0]     key_node_o,
  output lookaside_pkg::word_t key_o,
  output logic [31:0]          key_salt_o,

  // Packets that it did not send, or did not give out
  input  lookaside_pkg::completion_t bad_i,
  input  logic                 bad_valid_i,
  output logic                 bad_ready_o,

  // Registers, by AXI4-Lite
  input  logic [11:0]          s_axil_awaddr_i,
  input  logic                 s_axil_awvalid_i,
  output logic                 s_axil_awready_o,
  input  logic [31:0]          s_axil_wdata_i,
  input  logic [3:0]           s_axil_wstrb_i,
  input  logic                 s_axil_wvalid_i,
  output logic                 s_axil_wready_o,
  output logic [1:0]           s_axil_bresp_o,
  output logic                 s_axil_bvalid_o,
  input  logic                 s_axil_bready_i,
  input  logic [11:0]          s_axil_araddr_i,
  input  logic                 s_axil_arvalid_i,
  output logic                 s_axil_arready_o,
  output logic [31:0]          s_axil_rdata_o,
  output logic [1:0]           s_axil_rresp_o,
  output logic                 s_axil_rvalid_o,
  input  logic                 s_axil_rready_i,

  // Commands in, completions out
  input  lookaside_pkg::word_t s_axis_command_tdata_i,
  input  logic                 s_axis_command_tlast_i,
  input  logic                 s_axis_command_tvalid_i,
  output logic                 s_axis_command_tready_o,
  output lookaside_pkg::completion_t m_axis_done_tdata_o,
  output logic                 m_axis_done_tvalid_o,
  input  logic                 m_axis_done_tready_i,

  // Other nodes
  input  lookaside_pkg::word_t s_axis_net_tdata_i,
  input  logic [NodeW-1:0]     s_axis_net_tdest_i, // the node that it is from
  input  logic                 s_axis_net_tlast_i,
  input  logic                 s_axis_net_tvalid_i,
  output logic                 s_axis_net_tready_o,
  output lookaside_pkg::word_t m_axis_net_tdata_o,
  output logic [NodeW-1:0]     m_axis_net_tdest_o,
  output logic                 m_axis_net_tlast_o,
  output logic                 m_axis_net_tvalid_o,
  input  logic                 m_axis_net_tready_i,

  // Memory, by AXI4: Lanes words in a beat
  output logic [63:0]          m_axi_araddr_o,
  output logic [7:0]           m_axi_arlen_o,
  output logic [2:0]           m_axi_arsize_o,
  output logic [1:0]           m_axi_arburst_o,
  output logic                 m_axi_arvalid_o,
  input  logic                 m_axi_arready_i,
  input  logic [BeatW-1:0]     m_axi_rdata_i,
  input  logic [1:0]           m_axi_rresp_i,
  input  logic                 m_axi_rlast_i,
  input  logic                 m_axi_rvalid_i,
  output logic                 m_axi_rready_o,
  output logic [63:0]          m_axi_awaddr_o,
  output logic [7:0]           m_axi_awlen_o,
  output logic [2:0]           m_axi_awsize_o,
  output logic [1:0]           m_axi_awburst_o,
  output logic                 m_axi_awvalid_o,
  input  logic                 m_axi_awready_i,
  output logic [BeatW-1:0]     m_axi_wdata_o,
  output logic [16*Lanes-1:0]  m_axi_wstrb_o,
  output logic                 m_axi_wlast_o,
  output logic                 m_axi_wvalid_o,
  input  logic                 m_axi_wready_i,
  input  logic [1:0]           m_axi_bresp_i,
  input  logic                 m_axi_bvalid_i,
  output logic                 m_axi_bready_o
);

  localparam bit          Four    = Locals > 0;
  localparam int unsigned Kinds   = Four ? 7 : 5;
  localparam int unsigned Workers = Movers + Adders + Sharers + Locals + Joins;
  localparam int unsigned RunW    = lookaside_pkg::RunW;
  // Clients of memory: workers, then what other nodes ask for; the lister reads as well. Clients of the sender: these, answers, the lister.
  localparam int unsigned Clients = Workers + 1;
  localparam int unsigned Readers = Workers + 2;
  localparam int unsigned Senders = Workers + 3;
  localparam int unsigned Tellers = Workers + 5; // of completions: the intake, workers, what came, bad packets, the lister, the awaiter
  localparam int unsigned Lister  = Workers;     // both take commands as workers do
  localparam int unsigned Awaiter = Workers + 1;

  // ---- registers
  logic                write, write_known, write_locked, read_known, scrub, reset, busy, drops;
  logic [11:0]         write_addr, read_addr;
  logic [31:0]         write_data, read_data, timeout, own_words, dropped_q;
  logic [7:0]          node;
  logic [63:0]         own_base;
  /* verilator lint_off UNUSEDSIGNAL */ // the registers are those of four nodes
  logic [3:0]          invoke_from;
  logic [255:0]        put_base, get_base;
  logic [127:0]        put_words, get_words;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [7:0]          key_node;
  logic                key_set, salt_set, load_seal, load_open, unused_key_write, unused_salt_write;
  lookaside_pkg::word_t own_key, previous_key;
  logic                own_set, own_write, previous_set, previous_write;
  /* verilator lint_off UNUSEDSIGNAL */ // of units with workers for four parties
  share_pkg::form_t    form;
  logic [383:0]        component_keys, pair_keys;
  logic [2:0]          components_set, components_write, pairs_set, unused_pairs_write;
  /* verilator lint_on UNUSEDSIGNAL */
  logic                write_here, read_here, regs_write_known, regs_read_known;

  prim_axil #(.AddrW(12)) u_axil (
    .clk_i            (clk_i),
    .rst_ni           (rst_ni),
    .s_axil_awaddr_i  (s_axil_awaddr_i),
    .s_axil_awvalid_i (s_axil_awvalid_i),
    .s_axil_awready_o (s_axil_awready_o),
    .s_axil_wdata_i   (s_axil_wdata_i),
    .s_axil_wstrb_i   (s_axil_wstrb_i),
    .s_axil_wvalid_i  (s_axil_wvalid_i),
    .s_axil_wready_o  (s_axil_wready_o),
    .s_axil_bresp_o   (s_axil_bresp_o),
    .s_axil_bvalid_o  (s_axil_bvalid_o),
    .s_axil_bready_i  (s_axil_bready_i),
    .s_axil_araddr_i  (s_axil_araddr_i),
    .s_axil_arvalid_i (s_axil_arvalid_i),
    .s_axil_arready_o (s_axil_arready_o),
    .s_axil_rdata_o   (s_axil_rdata_o),
    .s_axil_rresp_o   (s_axil_rresp_o),
    .s_axil_rvalid_o  (s_axil_rvalid_o),
    .s_axil_rready_i  (s_axil_rready_i),
    .write_o          (write),
    .write_addr_o     (write_addr),
    .write_data_o     (write_data),
    .write_known_i    (write_known),
    .write_locked_i   (write_locked),
    .read_addr_o      (read_addr),
    .read_data_i      (read_data),
    .read_known_i     (read_known)
  );

  assign write_here  = write_addr[11:10] == '0;
  assign read_here   = read_addr[11:10] == '0;
  assign write_known = write_here && regs_write_known;
  assign read_known  = read_here && regs_read_known;

  lookaside_regs u_regs (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .reset_i         (reset),
    .wipe_i          (scrubs),
    .locked_i        (busy),
    .write_i         (write && write_here),
    .write_addr_i    (write_addr[9:0]),
    .write_data_i    (write_data),
    .write_known_o   (regs_write_known),
    .write_locked_o  (write_locked),
    .read_addr_i     (read_addr[9:0]),
    .read_data_o     (read_data),
    .read_known_o    (regs_read_known),
    .movers_i        (8'(Movers)),
    .adders_i        (8'(Adders)),
    .longest_i       (32'(Longest)),
    .slots_i         (8'(Slots)),
    .sharers_i       (8'(Sharers)),
    .lanes_i         (8'(Lanes)),
    .locals_i        (8'(Locals)),
    .joins_i         (8'(Joins)),
    .control_scrub_o (scrub),
    .control_reset_o (reset),
    .status_busy_i   (busy),
    .dropped_i       (dropped_q),
    .node_o          (node),
    .timeout_o       (timeout),
    .own_base_o      (own_base),
    .own_words_o     (own_words),
    .invoke_from_o   (invoke_from),
    .put_base_o      (put_base),
    .put_words_o     (put_words),
    .get_base_o      (get_base),
    .get_words_o     (get_words),
    .key_o           (key_o),
    .key_set_o       (key_set),
    .key_write_o     (unused_key_write),
    .salt_o          (key_salt_o),
    .salt_set_o      (salt_set),
    .salt_write_o    (unused_salt_write),
    .key_node_o      (key_node),
    .load_seal_o     (load_seal),
    .load_open_o     (load_open),
    .keys_waits_i    (key_q),
    .own_key_o       (own_key),
    .own_key_set_o   (own_set),
    .own_key_write_o (own_write),
    .previous_key_o  (previous_key),
    .previous_key_set_o (previous_set),
    .previous_key_write_o (previous_write),
    .share_keys_own_i (own_set),
    .share_keys_previous_i (previous_set),
    .share_keys_components_i (components_set == '1),
    .share_keys_pairs_i (pairs_set == '1),
    .form_o          (form),
    .component_0_o       (component_keys[127:0]),
    .component_0_set_o   (components_set[0]),
    .component_0_write_o (components_write[0]),
    .component_1_o       (component_keys[255:128]),
    .component_1_set_o   (components_set[1]),
    .component_1_write_o (components_write[1]),
    .component_2_o       (component_keys[383:256]),
    .component_2_set_o   (components_set[2]),
    .component_2_write_o (components_write[2]),
    .pair_next_o           (pair_keys[127:0]),
    .pair_next_set_o       (pairs_set[0]),
    .pair_next_write_o     (unused_pairs_write[0]),
    .pair_opposite_o       (pair_keys[255:128]),
    .pair_opposite_set_o   (pairs_set[1]),
    .pair_opposite_write_o (unused_pairs_write[1]),
    .pair_previous_o       (pair_keys[383:256]),
    .pair_previous_set_o   (pairs_set[2]),
    .pair_previous_write_o (unused_pairs_write[2])
  );

  // ---- keys for the cores of shares: taken in the cycle after a write that leaves them whole. Writes are refused while commands go on
  logic own_taken_q, previous_taken_q, share_key_en, share_key_previous;

  assign share_key_en       = (own_taken_q && own_set) || (previous_taken_q && previous_set);
  assign share_key_previous = previous_taken_q;

  always_ff @(posedge clk_i) begin : p_share_keys
    own_taken_q      <= own_write && !scrubs && rst_ni;
    previous_taken_q <= previous_write && !scrubs && rst_ni;
  end

  // Components: the same. A number is that of the key that was written; two are not written in one cycle.
  /* verilator lint_off UNUSEDSIGNAL */
  logic [2:0]           components_taken_q;
  logic                 component_en;
  logic [1:0]           component_number;
  lookaside_pkg::word_t component_key;
  /* verilator lint_on UNUSEDSIGNAL */

  assign component_en     = (components_taken_q & components_set) != '0;
  assign component_number = {components_taken_q[2], components_taken_q[1]};
  assign component_key    = component_keys[128*32'(component_number) +: 128];

  always_ff @(posedge clk_i) begin : p_components
    components_taken_q <= components_write & {3{!scrubs && rst_ni}};
  end

  // ---- keys for the inline path
  logic key_q, key_open_q;

  assign node_o      = node[NodeW-1:0];
  assign key_node_o  = key_node[NodeW-1:0];
  assign key_valid_o = key_q && !scrubs;
  assign key_open_o  = key_open_q;

  always_ff @(posedge clk_i) begin : p_key
    if (!rst_ni || scrubs) begin
      key_q      <= 1'b0;
      key_open_q <= 1'b0;
    end else if (!key_q && (load_seal || load_open) && key_set && salt_set && 32'(key_node) < Nodes) begin
      key_q      <= 1'b1;
      key_open_q <= load_open;
    end else if (key_ready_i) begin
      key_q <= 1'b0;
    end
  end

  // ---- scrub: as long as the longest memory, and until memory owes nothing
  localparam int unsigned ScrubW = $clog2(Longest + 4 * lookaside_pkg::Chunk + 1);

  logic [ScrubW-1:0]  scrub_q;
  logic               scrubs, runs_n, reader_busy, writer_busy, intake_idle;
  logic [Awaiter:0]   free;
  logic [Kinds-1:0]   kind_valid; // commands wait

  assign scrubs   = scrub_q != '0;
  assign scrubs_o = scrubs;
  assign runs_n   = rst_ni && !scrubs;
  assign busy     = scrubs || scrubs_i || reader_busy || writer_busy || !intake_idle || free != '1 || kind_valid != '0;

  always_ff @(posedge clk_i) begin : p_scrub
    if (!rst_ni || scrub || reset) begin
      scrub_q <= ScrubW'(Longest + 4 * lookaside_pkg::Chunk);
    end else if (scrubs && !(scrub_q == ScrubW'(1) && (reader_busy || writer_busy))) begin
      scrub_q <= scrub_q - 1'b1;
    end
    if (!rst_ni || reset) begin
      dropped_q <= '0;
    end else begin
      dropped_q <= dropped_q + 32'(drops) + 32'(tell_drops);
    end
  end

  // ---- commands
  lookaside_pkg::origin_t       invoke;
  logic [31:0]                  invoke_slot;
  logic                         invoke_valid, invoke_ready, refuse, intake_ready;
  lookaside_pkg::command_word_t command;

  localparam int unsigned CommandW = $bits(command);
  localparam int unsigned Queued   = 64; // words of commands that wait, of each kind
  localparam int unsigned QueuedW  = $clog2(Queued) + 1;

  /* verilator lint_off UNUSEDSIGNAL */ // that of lists
  logic [Kinds*QueuedW-1:0]     queued;
  /* verilator lint_on UNUSEDSIGNAL */
  logic                         list_last, list_valid, list_ready, list_room;
  lookaside_pkg::word_t         list_word;
  logic [Kinds-1:0]             command_valid, command_ready, kind_ready;
  logic [Kinds*CommandW-1:0]    kind_word, given;
  logic [Awaiter:0]             given_valid;
  logic [Tellers*128-1:0]       told;
  logic [Tellers-1:0]           told_valid, told_listed, told_grant, told_ready;

  lookaside_intake #(.Nodes(Nodes), .Slots(Slots), .Longest(Longest), .Lanes(Lanes), .Four(Four)) u_intake (
    .clk_i           (clk_i),
    .rst_ni          (runs_n),
    .idle_o          (intake_idle),
    .self_i          (node),
    .own_base_i      (own_base),
    .own_words_i     (own_words),
    .put_base_i      (put_base[64*Nodes-1:0]),
    .put_words_i     (put_words[32*Nodes-1:0]),
    .invoke_from_i   (invoke_from[Nodes-1:0]),
    .keyed_i         (own_set && previous_set),
    .components_i    (components_set == '1),
    .pairs_i         (pairs_set == '1),
    .s_axis_tdata_i  (s_axis_command_tdata_i),
    .s_axis_tlast_i  (s_axis_command_tlast_i),
    .s_axis_tvalid_i (s_axis_command_tvalid_i && runs_n),
    .s_axis_tready_o (intake_ready),
    .list_data_i     (list_word),
    .list_last_i     (list_last),
    .list_valid_i    (list_valid),
    .list_ready_o    (list_ready),
    .list_room_i     (list_room),
    .invoke_i        (invoke),
    .invoke_slot_i   (invoke_slot),
    .invoke_valid_i  (invoke_valid),
    .invoke_ready_o  (invoke_ready),
    .refuse_o        (refuse),
    .out_data_o      (command),
    .out_valid_o     (command_valid),
    .out_ready_i     (command_ready),
    .done_o          (told[127:0]),
    .done_listed_o   (told_listed[0]),
    .done_valid_o    (told_valid[0]),
    .done_ready_i    (told_ready[0])
  );

  assign s_axis_command_tready_o = intake_ready && runs_n;

  for (genvar k = 0; k < Kinds; k++) begin : g_kind
    localparam int unsigned From = k == 0 ? 0 : k == 1 ? Movers : k == 2 ? Movers + Adders : k == 3 ? Lister : k == 4 ? Awaiter
                                 : k == 5 ? Movers + Adders + Sharers : Workers - Joins;
    localparam int unsigned Some = k == 0 ? Movers : k == 1 ? Adders : k == 2 ? Sharers : k < 5 ? 1 : k == 5 ? Locals : Joins;

    prim_fifo #(.Width(CommandW), .Depth(Queued)) u_commands (
      .clk_i       (clk_i),
      .rst_ni      (runs_n),
      .in_data_i   (command),
      .in_valid_i  (command_valid[k]),
      .in_ready_o  (command_ready[k]),
      .out_data_o  (kind_word[k*CommandW +: CommandW]),
      .out_valid_o (kind_valid[k]),
      .out_ready_i (kind_ready[k]),
      .count_o     (queued[k*QueuedW +: QueuedW])
    );

    lookaside_assign #(.Workers(Some)) u_assign (
      .clk_i       (clk_i),
      .rst_ni      (runs_n),
      .in_data_i   (kind_word[k*CommandW +: CommandW]),
      .in_valid_i  (kind_valid[k]),
      .in_ready_o  (kind_ready[k]),
      .free_i      (free[From +: Some]),
      .out_data_o  (given[k*CommandW +: CommandW]),
      .out_valid_o (given_valid[From +: Some])
    );
  end

  assign list_room = queued[3*QueuedW +: QueuedW] <= QueuedW'(Queued - 16);

  // ---- memory and the network
  logic [Readers*RunW-1:0] reads;
  logic [Clients*RunW-1:0] writes;
  logic [Readers-1:0]      read_valid, read_ready, read_data_valid;
  logic [Clients-1:0]      write_valid, write_ready, write_data_valid, write_data_ready, write_done;
  logic [Clients*BeatW-1:0] write_data_of;
  logic [BeatW-1:0]        memory_data;
  logic                    memory_error, memory_last, write_error;
  logic [Senders*128-1:0]  headers;
  logic [Senders*BeatW-1:0] send_data;
  logic [Senders*8-1:0]    send_nodes;
  logic [Senders-1:0]      send_valid, send_ready, send_data_ready;
  lookaside_pkg::header_t  answer;
  logic [7:0]              answer_node;
  logic [BeatW-1:0]        answer_data;
  logic                    answer_data_valid, answer_end, net_ready, tell, tell_drops;
  logic [7:0]              tell_node;

  lookaside_reader #(.Clients(Readers), .Lanes(Lanes)) u_reader (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .busy_o          (reader_busy),
    .run_i           (reads),
    .run_valid_i     (scrubs ? '0 : read_valid),
    .run_ready_o     (read_ready),
    .valid_o         (read_data_valid),
    .data_o          (memory_data),
    .error_o         (memory_error),
    .last_o          (memory_last),
    .m_axi_araddr_o  (m_axi_araddr_o),
    .m_axi_arlen_o   (m_axi_arlen_o),
    .m_axi_arsize_o  (m_axi_arsize_o),
    .m_axi_arburst_o (m_axi_arburst_o),
    .m_axi_arvalid_o (m_axi_arvalid_o),
    .m_axi_arready_i (m_axi_arready_i),
    .m_axi_rdata_i   (m_axi_rdata_i),
    .m_axi_rresp_i   (m_axi_rresp_i),
    .m_axi_rlast_i   (m_axi_rlast_i),
    .m_axi_rvalid_i  (m_axi_rvalid_i),
    .m_axi_rready_o  (m_axi_rready_o)
  );

  // In a scrub, runs that memory was told of get zeros for the words that they still lack.
  lookaside_writer #(.Clients(Clients), .Lanes(Lanes)) u_writer (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .busy_o          (writer_busy),
    .run_i           (writes),
    .run_valid_i     (scrubs ? '0 : write_valid),
    .run_ready_o     (write_ready),
    .data_i          (scrubs ? '0 : write_data_of),
    .data_valid_i    (scrubs ? '1 : write_data_valid),
    .data_ready_o    (write_data_ready),
    .done_o          (write_done),
    .error_o         (write_error),
    .m_axi_awaddr_o  (m_axi_awaddr_o),
    .m_axi_awlen_o   (m_axi_awlen_o),
    .m_axi_awsize_o  (m_axi_awsize_o),
    .m_axi_awburst_o (m_axi_awburst_o),
    .m_axi_awvalid_o (m_axi_awvalid_o),
    .m_axi_awready_i (m_axi_awready_i),
    .m_axi_wdata_o   (m_axi_wdata_o),
    .m_axi_wstrb_o   (m_axi_wstrb_o),
    .m_axi_wlast_o   (m_axi_wlast_o),
    .m_axi_wvalid_o  (m_axi_wvalid_o),
    .m_axi_wready_i  (m_axi_wready_i),
    .m_axi_bresp_i   (m_axi_bresp_i),
    .m_axi_bvalid_i  (m_axi_bvalid_i),
    .m_axi_bready_o  (m_axi_bready_o)
  );

  lookaside_send #(.Clients(Senders), .NodeW(NodeW), .Lanes(Lanes)) u_send (
    .clk_i           (clk_i),
    .rst_ni          (runs_n),
    .header_i        (headers),
    .node_i          (send_nodes),
    .valid_i         (send_valid),
    .ready_o         (send_ready),
    .data_i          (send_data),
    .data_ready_o    (send_data_ready),
    .m_axis_tdata_o  (m_axis_net_tdata_o),
    .m_axis_tdest_o  (m_axis_net_tdest_o),
    .m_axis_tlast_o  (m_axis_net_tlast_o),
    .m_axis_tvalid_o (m_axis_net_tvalid_o),
    .m_axis_tready_i (m_axis_net_tready_i)
  );

  assign s_axis_net_tready_o                      = net_ready && runs_n;
  assign send_data[BeatW*(Workers+1) +: 2*BeatW] = '0;

  lookaside_receive #(.Nodes(Nodes), .Workers(Workers), .Lanes(Lanes)) u_receive (
    .clk_i               (clk_i),
    .rst_ni              (rst_ni),
    .wipe_i              (scrubs),
    .put_base_i          (put_base[64*Nodes-1:0]),
    .put_words_i         (put_words[32*Nodes-1:0]),
    .get_base_i          (get_base[64*Nodes-1:0]),
    .get_words_i         (get_words[32*Nodes-1:0]),
    .s_axis_tdata_i      (s_axis_net_tdata_i),
    .s_axis_tdest_i      (s_axis_net_tdest_i),
    .s_axis_tlast_i      (s_axis_net_tlast_i),
    .s_axis_tvalid_i     (s_axis_net_tvalid_i && runs_n),
    .s_axis_tready_o     (net_ready),
    .drops_o             (drops),
    .answer_o            (answer),
    .answer_node_o       (answer_node),
    .answer_data_o       (answer_data),
    .answer_data_valid_o (answer_data_valid),
    .answer_end_o        (answer_end),
    .invoke_o            (invoke),
    .invoke_slot_o       (invoke_slot),
    .invoke_valid_o      (invoke_valid),
    .invoke_ready_i      (invoke_ready),
    .refuse_i            (refuse),
    .write_o             (writes[Workers*RunW +: RunW]),
    .write_valid_o       (write_valid[Workers]),
    .write_ready_i       (write_ready[Workers]),
    .write_data_o        (write_data_of[BeatW*Workers +: BeatW]),
    .write_data_valid_o  (write_data_valid[Workers]),
    .write_data_ready_i  (write_data_ready[Workers]),
    .write_done_i        (write_done[Workers] && !scrubs),
    .write_error_i       (write_error),
    .read_o              (reads[Workers*RunW +: RunW]),
    .read_valid_o        (read_valid[Workers]),
    .read_ready_i        (read_ready[Workers]),
    .read_data_i         (memory_data),
    .read_data_valid_i   (read_data_valid[Workers]),
    .read_error_i        (memory_error),
    .read_last_i         (memory_last),
    .reply_o             (headers[128*(Workers+1) +: 128]),
    .reply_node_o        (send_nodes[8*(Workers+1) +: 8]),
    .reply_valid_o       (send_valid[Workers+1]),
    .reply_ready_i       (send_ready[Workers+1]),
    .send_o              (headers[128*Workers +: 128]),
    .send_node_o         (send_nodes[8*Workers +: 8]),
    .send_valid_o        (send_valid[Workers]),
    .send_ready_i        (send_ready[Workers]),
    .send_data_o         (send_data[BeatW*Workers +: BeatW]),
    .send_data_ready_i   (send_data_ready[Workers]),
    .done_o              (told[128*(Workers+1) +: 128]),
    .done_valid_o        (told_valid[Workers+1]),
    .done_ready_i        (told_ready[Workers+1]),
    .tell_o              (tell),
    .tell_node_o         (tell_node)
  );

  // ---- the core of shares, of all sharers
  logic [Sharers-1:0]       share_start, share_in_valid, share_in_ready, share_out_valid, share_out_ready;
  logic [Sharers*128-1:0]   share_command, share_draw;
  logic [Sharers*BeatW-1:0] share_in, share_out;

  lookaside_rep3 #(.Sharers(Sharers), .Lanes(Lanes), .Longest(Longest)) u_share (
    .clk_i          (clk_i),
    .rst_ni         (rst_ni),
    .scrub_i        (scrub || reset),
    .wipe_i         (scrubs),
    .key_en_i       (share_key_en),
    .key_previous_i (share_key_previous),
    .key_i          (share_key_previous ? previous_key : own_key),
    .start_i        (share_start),
    .command_i      (share_command),
    .draw_i         (share_draw),
    .in_data_i      (share_in),
    .in_valid_i     (share_in_valid),
    .in_ready_o     (share_in_ready),
    .out_data_o     (share_out),
    .out_valid_o    (share_out_valid),
    .out_ready_i    (share_out_ready)
  );

  // ---- workers and their accelerators
  for (genvar w = 0; w < Workers; w++) begin : g_worker
    localparam int unsigned Kind = w < Movers ? 0 : w < Movers + Adders ? 1 : w < Movers + Adders + Sharers ? 2
                                 : w < Workers - Joins ? 5 : 6;

    logic [BeatW-1:0]        in_data, out_data, words;
    logic                    in_valid, in_ready, out_valid, out_ready, mismatch;
    /* verilator lint_off UNUSEDSIGNAL */ // of accelerators that have a state
    logic                    start, failed;
    lookaside_pkg::command_t now;
    lookaside_pkg::draw_t    draw;
    lookaside_pkg::stage_t   stage;
    /* verilator lint_on UNUSEDSIGNAL */

    lookaside_worker #(.Nodes(Nodes), .Lanes(Lanes), .Index(w)) u_worker (
      .clk_i               (clk_i),
      .rst_ni              (rst_ni),
      .wipe_i              (scrubs),
      .self_i              (node),
      .timeout_i           (timeout),
      .free_o              (free[w]),
      .command_i           (given[Kind*CommandW +: CommandW]),
      .command_valid_i     (given_valid[w]),
      .read_o              (reads[w*RunW +: RunW]),
      .read_valid_o        (read_valid[w]),
      .read_ready_i        (read_ready[w]),
      .read_data_i         (memory_data),
      .read_data_valid_i   (read_data_valid[w] && !scrubs),
      .read_error_i        (memory_error),
      .write_o             (writes[w*RunW +: RunW]),
      .write_valid_o       (write_valid[w]),
      .write_ready_i       (write_ready[w]),
      .write_data_o        (words),
      .write_data_valid_o  (write_data_valid[w]),
      .write_data_ready_i  (write_data_ready[w]),
      .write_done_i        (write_done[w] && !scrubs),
      .write_error_i       (write_error),
      .send_o              (headers[w*128 +: 128]),
      .send_node_o         (send_nodes[w*8 +: 8]),
      .send_valid_o        (send_valid[w]),
      .send_ready_i        (send_ready[w]),
      .send_data_ready_i   (send_data_ready[w]),
      .answer_i            (answer),
      .answer_node_i       (answer_node),
      .answer_data_i       (answer_data),
      .answer_data_valid_i (answer_data_valid),
      .answer_end_i        (answer_end),
      .start_o             (start),
      .command_o           (now),
      .draw_o              (draw),
      .stage_o             (stage),
      .in_data_o           (in_data),
      .in_valid_o          (in_valid),
      .in_ready_i          (in_ready),
      .out_data_i          (out_data),
      .out_valid_i         (out_valid),
      .out_ready_o         (out_ready),
      .mismatch_i          (mismatch),
      .busy_i              (1'b0),
      .status_i            (lookaside_pkg::StatusOk),
      .failed_o            (failed),
      .done_o              (told[128*(w+1) +: 128]),
      .done_listed_o       (told_listed[w+1]),
      .done_valid_o        (told_valid[w+1]),
      .done_ready_i        (told_ready[w+1])
    );

    assign write_data_of[w*BeatW +: BeatW] = words;
    assign send_data[w*BeatW +: BeatW]     = words;

    if (Kind == 5) begin : g_local
      lookaside_local #(.Lanes(Lanes), .Longest(Longest), .Fold(Fold)) u_local (
        .clk_i        (clk_i),
        .rst_ni       (rst_ni),
        .scrub_i      (scrub || reset),
        .wipe_i       (scrubs),
        .key_en_i     (component_en),
        .key_number_i (component_number),
        .key_i        (component_key),
        .form_i       (form),
        .pairs_i      (pair_keys),
        .start_i      (start),
        .command_i    (now),
        .draw_i       (draw),
        .stage_i      (stage),
        .in_data_i    (in_data),
        .in_valid_i   (in_valid),
        .in_ready_o   (in_ready),
        .out_data_o   (out_data),
        .out_valid_o  (out_valid),
        .out_ready_i  (out_ready)
      );

      assign mismatch = 1'b0;
    end else if (Kind == 6) begin : g_join
      lookaside_join #(.Lanes(Lanes), .Longest(Longest)) u_join (
        .clk_i       (clk_i),
        .rst_ni      (rst_ni),
        .scrub_i     (scrub || reset),
        .wipe_i      (scrubs),
        .pairs_i     (pair_keys),
        .start_i     (start),
        .command_i   (now),
        .draw_i      (draw),
        .stage_i     (stage),
        .in_data_i   (in_data),
        .in_valid_i  (in_valid),
        .in_ready_o  (in_ready),
        .out_data_o  (out_data),
        .out_valid_o (out_valid),
        .out_ready_i (out_ready),
        .mismatch_o  (mismatch)
      );
    end else if (Kind == 2) begin : g_share
      localparam int unsigned Sharer = w - Movers - Adders;

      assign share_start[Sharer]                 = start;
      assign share_command[128*Sharer +: 128]    = now;
      assign share_draw[128*Sharer +: 128]       = draw;
      assign share_in[BeatW*Sharer +: BeatW]     = in_data;
      assign share_in_valid[Sharer]              = in_valid;
      assign share_out_ready[Sharer]             = out_ready;
      assign in_ready  = share_in_ready[Sharer];
      assign out_data  = share_out[BeatW*Sharer +: BeatW];
      assign out_valid = share_out_valid[Sharer];
      assign mismatch  = 1'b0;
    end else if (Kind == 1) begin : g_add
      lookaside_add #(.Lanes(Lanes), .Longest(Longest)) u_add (
        .clk_i       (clk_i),
        .rst_ni      (rst_ni),
        .wipe_i      (scrubs),
        .start_i     (start),
        .op_i        (now.op),
        .words_i     (now.words),
        .in_data_i   (in_data),
        .in_valid_i  (in_valid),
        .in_ready_o  (in_ready),
        .out_data_o  (out_data),
        .out_valid_o (out_valid),
        .out_ready_i (out_ready),
        .mismatch_o  (mismatch)
      );
    end else begin : g_move
      assign out_data  = in_data;
      assign out_valid = in_valid;
      assign in_ready  = out_ready;
      assign mismatch  = 1'b0;
    end
  end

  // ---- lists: a worker that fetches them, and gives nothing to anybody but the intake
  logic                    list_start, list_failed, list_in_valid, list_in_ready, list_busy, list_ended, list_bad;
  logic [BeatW-1:0]        list_in;
  logic [7:0]              list_status;
  /* verilator lint_off UNUSEDSIGNAL */
  lookaside_pkg::command_t list_now;
  /* verilator lint_on UNUSEDSIGNAL */
  lookaside_pkg::word_t    done;

  /* verilator lint_off PINCONNECTEMPTY */
  lookaside_worker #(.Nodes(Nodes), .Lanes(Lanes), .Index(15)) u_lister (
    .clk_i               (clk_i),
    .rst_ni              (rst_ni),
    .wipe_i              (scrubs),
    .self_i              (node),
    .timeout_i           (timeout),
    .free_o              (free[Lister]),
    .command_i           (given[3*CommandW +: CommandW]),
    .command_valid_i     (given_valid[Lister]),
    .read_o              (reads[(Workers+1)*RunW +: RunW]),
    .read_valid_o        (read_valid[Workers+1]),
    .read_ready_i        (read_ready[Workers+1]),
    .read_data_i         (memory_data),
    .read_data_valid_i   (read_data_valid[Workers+1] && !scrubs),
    .read_error_i        (memory_error),
    .write_o             (),
    .write_valid_o       (),
    .write_ready_i       (1'b0),
    .write_data_o        (),
    .write_data_valid_o  (),
    .write_data_ready_i  (1'b0),
    .write_done_i        (1'b0),
    .write_error_i       (1'b0),
    .send_o              (headers[(Workers+2)*128 +: 128]),
    .send_node_o         (send_nodes[(Workers+2)*8 +: 8]),
    .send_valid_o        (send_valid[Workers+2]),
    .send_ready_i        (send_ready[Workers+2]),
    .send_data_ready_i   (send_data_ready[Workers+2]),
    .answer_i            (answer),
    .answer_node_i       (answer_node),
    .answer_data_i       (answer_data),
    .answer_data_valid_i (answer_data_valid),
    .answer_end_i        (answer_end),
    .start_o             (list_start),
    .command_o           (list_now),
    .draw_o              (),
    .stage_o             (),
    .in_data_o           (list_in),
    .in_valid_o          (list_in_valid),
    .in_ready_i          (list_in_ready),
    .out_data_i          ('0),
    .out_valid_i         (1'b0),
    .out_ready_o         (),
    .mismatch_i          (1'b0),
    .busy_i              (list_busy),
    .status_i            (list_status),
    .failed_o            (list_failed),
    .done_o              (told[128*(Workers+3) +: 128]),
    .done_listed_o       (told_listed[Workers+3]),
    .done_valid_o        (told_valid[Workers+3]),
    .done_ready_i        (told_ready[Workers+3])
  );
  /* verilator lint_on PINCONNECTEMPTY */

  lookaside_list #(.Lanes(Lanes)) u_list (
    .clk_i           (clk_i),
    .rst_ni          (runs_n),
    .start_i         (list_start),
    .words_i         (list_now.words),
    .failed_i        (list_failed),
    .in_data_i       (list_in),
    .in_valid_i      (list_in_valid),
    .in_ready_o      (list_in_ready),
    .busy_o          (list_busy),
    .status_o        (list_status),
    .command_o       (list_word),
    .command_last_o  (list_last),
    .command_valid_o (list_valid),
    .command_ready_i (list_ready),
    .ended_i         (list_ended),
    .bad_i           (list_bad),
    .bad_status_i    (done[7:0])
  );

  lookaside_await #(.Nodes(Nodes)) u_await (
    .clk_i           (clk_i),
    .rst_ni          (runs_n),
    .self_i          (node),
    .timeout_i       (timeout),
    .free_o          (free[Awaiter]),
    .command_i       (given[4*CommandW +: CommandW]),
    .command_valid_i (given_valid[Awaiter]),
    .tell_i          (tell),
    .tell_node_i     (tell_node),
    .drops_o         (tell_drops),
    .done_o          (told[128*(Workers+4) +: 128]),
    .done_listed_o   (told_listed[Workers+4]),
    .done_valid_o    (told_valid[Workers+4]),
    .done_ready_i    (told_ready[Workers+4])
  );

  // ---- completions. Of commands of the list that end well it alone is told
  logic               done_room;
  logic [Tellers-1:0] quiet, quiet_grant;

  assign told[128*(Workers+2) +: 128] = bad_i;
  assign told_listed[Workers+2:Workers+1] = '0;
  assign told_valid[Workers+2]        = bad_valid_i && !scrubs;
  assign bad_ready_o                  = told_ready[Workers+2];

  for (genvar t = 0; t < Tellers; t++) begin : g_quiet
    assign quiet[t] = told_valid[t] && told_listed[t] && told[128*t +: 8] == lookaside_pkg::StatusOk;
  end

  assign told_ready = (done_room ? told_grant : '0) | quiet_grant;
  assign list_ended = quiet != '0;
  assign list_bad   = done_room && (told_grant & told_listed) != '0;

  prim_arbiter #(.Requesters(Tellers)) u_quiet (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni),
    .request_i (quiet),
    .grant_o   (quiet_grant),
    .ready_i   (1'b1)
  );

  prim_arbiter #(.Requesters(Tellers)) u_tellers (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni),
    .request_i (told_valid & ~quiet),
    .grant_o   (told_grant),
    .ready_i   (done_room)
  );

  always_comb begin : p_done
    done = '0;
    for (int unsigned t = 0; t < Tellers; t++) begin
      done = done | (told_grant[t] ? told[128*t +: 128] : '0);
    end
  end

  logic done_valid;

  /* verilator lint_off PINCONNECTEMPTY */
  prim_fifo #(.Width(128), .Depth(16)) u_done (
    .clk_i       (clk_i),
    .rst_ni      (runs_n),
    .in_data_i   (done),
    .in_valid_i  ((told_valid & ~quiet) != '0),
    .in_ready_o  (done_room),
    .out_data_o  (m_axis_done_tdata_o),
    .out_valid_o (done_valid),
    .out_ready_i (m_axis_done_tready_i),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  assign m_axis_done_tvalid_o = done_valid && runs_n;

endmodule
