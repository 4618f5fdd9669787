// Reads runs of words for some clients, as an AXI4 master with one identifier, of Lanes words in a beat: answers come in the order of the
// bursts.
//
// Latency:  a beat is given in the cycle in which memory answers.   Throughput: one beat per cycle, from client to client.
// Back-pressure: none to memory. Who asks has to have room for the beats.

module lookaside_reader #(
  parameter  int unsigned Clients = 2, // at least 2
  parameter  int unsigned Lanes   = 1, // words of a beat, a power of two, at most 8
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned ClientW = $clog2(Clients)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,
  output logic                                busy_o, // memory owes an answer

  input  logic [Clients*lookaside_pkg::RunW-1:0] run_i,
  input  logic [Clients-1:0]                  run_valid_i,
  output logic [Clients-1:0]                  run_ready_o,

  // Beats, in the order of the runs; each one's client
  output logic [Clients-1:0]                  valid_o,
  output logic [BeatW-1:0]                    data_o,
  output logic                                error_o, // of this beat
  output logic                                last_o,  // of its run

  output logic [63:0]                         m_axi_araddr_o,
  output logic [7:0]                          m_axi_arlen_o,
  output logic [2:0]                          m_axi_arsize_o,
  output logic [1:0]                          m_axi_arburst_o,
  output logic                                m_axi_arvalid_o,
  input  logic                                m_axi_arready_i,
  input  logic [BeatW-1:0]                    m_axi_rdata_i,
  input  logic [1:0]                          m_axi_rresp_i,
  input  logic                                m_axi_rlast_i,
  input  logic                                m_axi_rvalid_i,
  output logic                                m_axi_rready_o
);

  logic [ClientW-1:0]  client, answers;
  logic                burst_valid, burst_ready, burst_last, room, ends, answer_valid, answer_last;
  logic [8:0]          beats;

  lookaside_runs #(.Clients(Clients), .Lanes(Lanes)) u_runs (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .run_i           (run_i),
    .run_valid_i     (run_valid_i),
    .run_ready_o     (run_ready_o),
    .burst_address_o (m_axi_araddr_o),
    .burst_beats_o   (beats),
    .burst_last_o    (burst_last),
    .burst_client_o  (client),
    .burst_valid_o   (burst_valid),
    .burst_ready_i   (burst_ready)
  );

  assign m_axi_arvalid_o = burst_valid && room;
  assign burst_ready     = m_axi_arready_i && room;
  assign m_axi_arlen_o   = 8'(beats - 9'd1);
  assign m_axi_arsize_o  = 3'(4 + $clog2(Lanes));
  assign m_axi_arburst_o = 2'b01; // of rising addresses
  assign m_axi_rready_o  = answer_valid;
  assign ends            = m_axi_rvalid_i && answer_valid && m_axi_rlast_i;

  logic [4:0] owed; // bursts

  prim_fifo #(.Width(ClientW + 1), .Depth(16)) u_bursts_out (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_data_i   ({client, burst_last}),
    .in_valid_i  (burst_valid && m_axi_arready_i),
    .in_ready_o  (room),
    .out_data_o  ({answers, answer_last}),
    .out_valid_o (answer_valid),
    .out_ready_i (ends),
    .count_o     (owed)
  );

  assign valid_o = m_axi_rvalid_i && answer_valid ? Clients'(1) << answers : '0;
  assign data_o  = m_axi_rdata_i;
  assign error_o = m_axi_rresp_i[1];
  assign last_o  = answer_last && m_axi_rlast_i;
  assign busy_o  = owed != '0 || burst_valid;

  logic unused;
  assign unused = m_axi_rresp_i[0];

`ifdef PROVE_LOOKASIDE_READER
`include "lookaside_reader.svh"
`endif

endmodule
