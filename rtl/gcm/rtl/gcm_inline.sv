// The inline path of a node: every packet that leaves is sealed, every one that comes in is opened, each way with a word per cycle, under
// keys of their own for every node and direction. docs/inline.md says what is promised.
//
// Keys come in by a port that never gives one back. A scrub, which follows each reset, ends everything, wipes keys and text, and takes
// 2 MaxWords + 64 cycles, in which nothing is taken or offered: what a stream offered is dropped.

module gcm_inline #(
  parameter  int unsigned Nodes    = 4,   // at least 2
  parameter  int unsigned MaxWords = 256, // of a packet's text; a power of two
  parameter  int unsigned LimitW   = 32,  // logarithm of the packets of a key
  localparam int unsigned NodeW    = $clog2(Nodes)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 scrub_i,
  output logic                 scrubs_o,
  input  logic [NodeW-1:0]     self_i, // number of this node; constant but in a scrub

  // A key for packets to the node, or for those from it
  input  logic                 key_valid_i,
  output logic                 key_ready_o,
  input  logic                 key_open_i,
  input  logic [NodeW-1:0]     key_node_i,
  input  aes_pkg::block_t      key_i,
  input  logic [31:0]          key_salt_i,

  // To other nodes: text, then the wire
  input  aes_pkg::block_t      s_axis_text_tdata_i,
  input  logic [15:0]          s_axis_text_tkeep_i,
  input  logic [NodeW-1:0]     s_axis_text_tdest_i,
  input  logic                 s_axis_text_tlast_i,
  input  logic                 s_axis_text_tvalid_i,
  output logic                 s_axis_text_tready_o,
  output aes_pkg::block_t      m_axis_wire_tdata_o,
  output logic [NodeW-1:0]     m_axis_wire_tdest_o,
  output logic                 m_axis_wire_tlast_o,
  output logic                 m_axis_wire_tvalid_o,
  input  logic                 m_axis_wire_tready_i,
  output gcm_pkg::completion_t sealed_o,
  output logic                 sealed_valid_o,
  input  logic                 sealed_ready_i,

  // From other nodes: the wire, then text
  input  aes_pkg::block_t      s_axis_wire_tdata_i,
  input  logic                 s_axis_wire_tlast_i,
  input  logic                 s_axis_wire_tvalid_i,
  output logic                 s_axis_wire_tready_o,
  output aes_pkg::block_t      m_axis_text_tdata_o,
  output logic [15:0]          m_axis_text_tkeep_o,
  output logic [NodeW-1:0]     m_axis_text_tdest_o,
  output logic                 m_axis_text_tlast_o,
  output logic                 m_axis_text_tvalid_o,
  input  logic                 m_axis_text_tready_i,
  output gcm_pkg::completion_t opened_o,
  output logic                 opened_valid_o,
  input  logic                 opened_ready_i
);

  localparam int unsigned Scrub  = 2 * MaxWords + 64;
  localparam int unsigned ScrubW = $clog2(Scrub + 1);

  logic [ScrubW-1:0] scrub_q; // cycles of it that are left
  logic              scrubs, seal_ready, open_ready;

  assign scrubs      = scrub_q != '0;
  assign scrubs_o    = scrubs;
  assign key_ready_o = (key_open_i ? open_ready : seal_ready) && !scrubs;

  always_ff @(posedge clk_i) begin : p_scrub
    if (!rst_ni || scrub_i) begin
      scrub_q <= ScrubW'(Scrub);
    end else if (scrubs) begin
      scrub_q <= scrub_q - 1'b1;
    end
  end

  gcm_seal #(.Nodes(Nodes), .MaxWords(MaxWords), .LimitW(LimitW)) u_seal (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .wipe_i          (scrubs),
    .self_i          (self_i),
    .load_valid_i    (key_valid_i && !key_open_i && !scrubs),
    .load_ready_o    (seal_ready),
    .load_node_i     (key_node_i),
    .load_key_i      (key_i),
    .load_salt_i     (key_salt_i),
    .s_axis_tdata_i  (s_axis_text_tdata_i),
    .s_axis_tkeep_i  (s_axis_text_tkeep_i),
    .s_axis_tdest_i  (s_axis_text_tdest_i),
    .s_axis_tlast_i  (s_axis_text_tlast_i),
    .s_axis_tvalid_i (s_axis_text_tvalid_i),
    .s_axis_tready_o (s_axis_text_tready_o),
    .m_axis_tdata_o  (m_axis_wire_tdata_o),
    .m_axis_tdest_o  (m_axis_wire_tdest_o),
    .m_axis_tlast_o  (m_axis_wire_tlast_o),
    .m_axis_tvalid_o (m_axis_wire_tvalid_o),
    .m_axis_tready_i (m_axis_wire_tready_i),
    .done_o          (sealed_o),
    .done_valid_o    (sealed_valid_o),
    .done_ready_i    (sealed_ready_i)
  );

  gcm_open #(.Nodes(Nodes), .MaxWords(MaxWords)) u_open (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .wipe_i          (scrubs),
    .self_i          (self_i),
    .load_valid_i    (key_valid_i && key_open_i && !scrubs),
    .load_ready_o    (open_ready),
    .load_node_i     (key_node_i),
    .load_key_i      (key_i),
    .load_salt_i     (key_salt_i),
    .s_axis_tdata_i  (s_axis_wire_tdata_i),
    .s_axis_tlast_i  (s_axis_wire_tlast_i),
    .s_axis_tvalid_i (s_axis_wire_tvalid_i),
    .s_axis_tready_o (s_axis_wire_tready_o),
    .m_axis_tdata_o  (m_axis_text_tdata_o),
    .m_axis_tkeep_o  (m_axis_text_tkeep_o),
    .m_axis_tdest_o  (m_axis_text_tdest_o),
    .m_axis_tlast_o  (m_axis_text_tlast_o),
    .m_axis_tvalid_o (m_axis_text_tvalid_o),
    .m_axis_tready_i (m_axis_text_tready_i),
    .done_o          (opened_o),
    .done_valid_o    (opened_valid_o),
    .done_ready_i    (opened_ready_i)
  );

endmodule
