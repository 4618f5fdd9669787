// A node on the network: the lookaside unit behind the inline path, so that every packet is sealed and opened on its way. Keys are written
// by the unit's registers; a packet that is not right is a completion of its stream. A scrub of one is a scrub of both.

module lookaside_node #(
  parameter  int unsigned Nodes   = 4,    // at least 2, at most 4
  parameter  int unsigned Movers  = 2,    // as of lookaside_unit
  parameter  int unsigned Adders  = 2,
  parameter  int unsigned Sharers = 4,
  parameter  int unsigned Locals  = 0,
  parameter  int unsigned Joins   = 0,
  parameter  int unsigned Fold    = 6,
  parameter  int unsigned Lanes   = 1,
  parameter  int unsigned Slots   = 4,
  parameter  int unsigned Longest = 1024,
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned NodeW   = $clog2(Nodes)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  output logic                 scrubs_o,

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

  // The wire: whole packets, as docs/inline.md has them
  input  lookaside_pkg::word_t s_axis_net_tdata_i,
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

  logic                 unit_scrubs, inline_scrubs, key_valid, key_ready, key_open;
  logic [NodeW-1:0]     self, key_node;
  aes_pkg::block_t      key;
  logic [31:0]          salt;
  lookaside_pkg::word_t out_data, in_data;
  logic [NodeW-1:0]     out_dest, in_dest;
  logic                 out_last, out_valid, out_ready, in_last, in_valid, in_ready;
  /* verilator lint_off UNUSEDSIGNAL */ // of both, status and node
  gcm_pkg::completion_t sealed, opened;
  /* verilator lint_on UNUSEDSIGNAL */
  logic                 sealed_valid, sealed_ready, opened_valid, opened_ready, sealed_bad, opened_bad, bad_ready;

  lookaside_pkg::completion_t bad;

  assign scrubs_o = unit_scrubs || inline_scrubs;

  // Of packets that are right nothing is said: what they are part of has its own completion.
  assign sealed_bad   = sealed_valid && sealed.status != gcm_pkg::Ok;
  assign opened_bad   = opened_valid && opened.status != gcm_pkg::Ok;
  assign opened_ready = !opened_bad || bad_ready;
  assign sealed_ready = !sealed_bad || (bad_ready && !opened_bad);

  always_comb begin : p_bad
    bad        = '0;
    bad.tag    = {23'b0, opened_bad, 5'b0, opened_bad ? opened.status : sealed.status};
    bad.node   = opened_bad ? opened.node : sealed.node;
    bad.kind   = lookaside_pkg::EventPacket;
    bad.status = lookaside_pkg::StatusPacket;
  end

  lookaside_unit #(
    .Nodes   (Nodes),
    .Movers  (Movers),
    .Adders  (Adders),
    .Sharers (Sharers),
    .Locals  (Locals),
    .Joins   (Joins),
    .Fold    (Fold),
    .Lanes   (Lanes),
    .Slots   (Slots),
    .Longest (Longest)
  ) u_unit (
    .scrubs_o            (unit_scrubs),
    .scrubs_i            (inline_scrubs),
    .node_o              (self),
    .key_valid_o         (key_valid),
    .key_ready_i         (key_ready),
    .key_open_o          (key_open),
    .key_node_o          (key_node),
    .key_o               (key),
    .key_salt_o          (salt),
    .bad_i               (bad),
    .bad_valid_i         (opened_bad || sealed_bad),
    .bad_ready_o         (bad_ready),
    .s_axis_net_tdata_i  (in_data),
    .s_axis_net_tdest_i  (in_dest),
    .s_axis_net_tlast_i  (in_last),
    .s_axis_net_tvalid_i (in_valid),
    .s_axis_net_tready_o (in_ready),
    .m_axis_net_tdata_o  (out_data),
    .m_axis_net_tdest_o  (out_dest),
    .m_axis_net_tlast_o  (out_last),
    .m_axis_net_tvalid_o (out_valid),
    .m_axis_net_tready_i (out_ready),
    .*
  );

  /* verilator lint_off PINCONNECTEMPTY */
  gcm_inline #(.Nodes(Nodes), .MaxWords(128)) u_inline (
    .clk_i                (clk_i),
    .rst_ni               (rst_ni),
    .scrub_i              (unit_scrubs),
    .scrubs_o             (inline_scrubs),
    .self_i               (self),
    .key_valid_i          (key_valid),
    .key_ready_o          (key_ready),
    .key_open_i           (key_open),
    .key_node_i           (key_node),
    .key_i                (key),
    .key_salt_i           (salt),
    .s_axis_text_tdata_i  (out_data),
    .s_axis_text_tkeep_i  ('1),
    .s_axis_text_tdest_i  (out_dest),
    .s_axis_text_tlast_i  (out_last),
    .s_axis_text_tvalid_i (out_valid),
    .s_axis_text_tready_o (out_ready),
    .m_axis_wire_tdata_o  (m_axis_net_tdata_o),
    .m_axis_wire_tdest_o  (m_axis_net_tdest_o),
    .m_axis_wire_tlast_o  (m_axis_net_tlast_o),
    .m_axis_wire_tvalid_o (m_axis_net_tvalid_o),
    .m_axis_wire_tready_i (m_axis_net_tready_i),
    .sealed_o             (sealed),
    .sealed_valid_o       (sealed_valid),
    .sealed_ready_i       (sealed_ready),
    .s_axis_wire_tdata_i  (s_axis_net_tdata_i),
    .s_axis_wire_tlast_i  (s_axis_net_tlast_i),
    .s_axis_wire_tvalid_i (s_axis_net_tvalid_i),
    .s_axis_wire_tready_o (s_axis_net_tready_o),
    .m_axis_text_tdata_o  (in_data),
    .m_axis_text_tkeep_o  (),
    .m_axis_text_tdest_o  (in_dest),
    .m_axis_text_tlast_o  (in_last),
    .m_axis_text_tvalid_o (in_valid),
    .m_axis_text_tready_i (in_ready),
    .opened_o             (opened),
    .opened_valid_o       (opened_valid),
    .opened_ready_i       (opened_ready)
  );
  /* verilator lint_on PINCONNECTEMPTY */

endmodule
