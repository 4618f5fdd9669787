// Writes runs of words for some clients, as an AXI4 master with one identifier, of Lanes words in a beat.
//
// Latency:  a run is done when memory has answered its last burst.   Throughput: one beat per cycle, from client to client.
// Back-pressure: a client's beats are taken as memory takes them, in the order of its runs; runs of others wait behind it.

module lookaside_writer #(
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

  input  logic [Clients*BeatW-1:0]            data_i,
  input  logic [Clients-1:0]                  data_valid_i,
  output logic [Clients-1:0]                  data_ready_o,

  // A run was written, or memory answered one of its bursts with an error
  output logic [Clients-1:0]                  done_o,
  output logic                                error_o,

  output logic [63:0]                         m_axi_awaddr_o,
  output logic [7:0]                          m_axi_awlen_o,
  output logic [2:0]                          m_axi_awsize_o,
  output logic [1:0]                          m_axi_awburst_o,
  output logic                                m_axi_awvalid_o,
  input  logic                                m_axi_awready_i,
  output logic [BeatW-1:0]                    m_axi_wdata_o,
  output logic [16*Lanes-1:0]                 m_axi_wstrb_o,
  output logic                                m_axi_wlast_o,
  output logic                                m_axi_wvalid_o,
  input  logic                                m_axi_wready_i,
  input  logic [1:0]                          m_axi_bresp_i,
  input  logic                                m_axi_bvalid_i,
  output logic                                m_axi_bready_o
);

  logic [ClientW-1:0]  client, writes, answers;
  logic                burst_valid, burst_ready, burst_last, room, write_valid, write_last, write_moves, write_ends;
  logic                answer_room, answer_valid, answer_last, error_q;
  logic [8:0]          beats, write_beats, beat_q;

  lookaside_runs #(.Clients(Clients), .Lanes(Lanes)) u_runs (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .run_i           (run_i),
    .run_valid_i     (run_valid_i),
    .run_ready_o     (run_ready_o),
    .burst_address_o (m_axi_awaddr_o),
    .burst_beats_o   (beats),
    .burst_last_o    (burst_last),
    .burst_client_o  (client),
    .burst_valid_o   (burst_valid),
    .burst_ready_i   (burst_ready)
  );

  assign m_axi_awvalid_o = burst_valid && room;
  assign burst_ready     = m_axi_awready_i && room;
  assign m_axi_awlen_o   = 8'(beats - 9'd1);
  assign m_axi_awsize_o  = 3'(4 + $clog2(Lanes));
  assign m_axi_awburst_o = 2'b01; // of rising addresses

  // ---- bursts whose beats are still to be written
  logic [2:0] bursts;
  logic [4:0] owed;

  prim_fifo #(.Width(ClientW + 10), .Depth(4)) u_writes (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_data_i   ({client, burst_last, beats}),
    .in_valid_i  (burst_valid && m_axi_awready_i),
    .in_ready_o  (room),
    .out_data_o  ({writes, write_last, write_beats}),
    .out_valid_o (write_valid),
    .out_ready_i (write_ends),
    .count_o     (bursts)
  );

  assign m_axi_wvalid_o = write_valid && data_valid_i[writes] && answer_room;
  assign m_axi_wdata_o  = data_i[BeatW*32'(writes) +: BeatW];
  assign m_axi_wstrb_o  = '1;
  assign m_axi_wlast_o  = beat_q + 9'd1 == write_beats;
  assign write_moves    = m_axi_wvalid_o && m_axi_wready_i;
  assign write_ends     = write_moves && m_axi_wlast_o;
  assign data_ready_o   = write_moves ? Clients'(1) << writes : '0;

  always_ff @(posedge clk_i) begin : p_beat
    if (!rst_ni) begin
      beat_q <= '0;
    end else if (write_moves) begin
      beat_q <= m_axi_wlast_o ? '0 : beat_q + 9'd1;
    end
  end

  // ---- bursts that memory has not answered
  prim_fifo #(.Width(ClientW + 1), .Depth(16)) u_answers (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .in_data_i   ({writes, write_last}),
    .in_valid_i  (write_ends),
    .in_ready_o  (answer_room),
    .out_data_o  ({answers, answer_last}),
    .out_valid_o (answer_valid),
    .out_ready_i (m_axi_bvalid_i),
    .count_o     (owed)
  );

  assign m_axi_bready_o = answer_valid;
  assign done_o         = m_axi_bvalid_i && answer_valid && answer_last ? Clients'(1) << answers : '0;
  assign error_o        = error_q || m_axi_bresp_i[1];
  assign busy_o         = owed != '0 || bursts != '0 || burst_valid;

  always_ff @(posedge clk_i) begin : p_error
    if (!rst_ni) begin
      error_q <= 1'b0;
    end else if (m_axi_bvalid_i && answer_valid) begin
      error_q <= !answer_last && error_o;
    end
  end

  logic unused;
  assign unused = m_axi_bresp_i[0];

`ifdef PROVE_LOOKASIDE_WRITER
`include "lookaside_writer.svh"
`endif

endmodule
