// Takes runs of words of some clients, in turns, and gives their bursts: each with its client, as lookaside_bursts cuts them.
//
// Latency:  a run's first burst is offered one cycle after it was taken.   Throughput: one burst per cycle, from client to client.
// Back-pressure: a run is taken when the last burst of the one before leaves.

module lookaside_runs #(
  parameter  int unsigned Clients = 2, // at least 2
  parameter  int unsigned Lanes   = 1, // words of a beat
  localparam int unsigned ClientW = $clog2(Clients)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic [Clients*lookaside_pkg::RunW-1:0] run_i,
  input  logic [Clients-1:0]  run_valid_i,
  output logic [Clients-1:0]  run_ready_o,

  output logic [63:0]         burst_address_o,
  output logic [8:0]          burst_beats_o,
  output logic                burst_last_o, // of its run
  output logic [ClientW-1:0]  burst_client_o,
  output logic                burst_valid_o,
  input  logic                burst_ready_i
);

  localparam int unsigned RunW = lookaside_pkg::RunW;

  logic [Clients-1:0]  grant;
  logic [ClientW-1:0]  chosen, client_q;
  lookaside_pkg::run_t run;
  logic                run_ready;

  prim_arbiter #(.Requesters(Clients)) u_arbiter (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni),
    .request_i (run_valid_i),
    .grant_o   (grant),
    .ready_i   (run_ready)
  );

  assign run_ready_o    = run_ready ? grant : '0;
  assign burst_client_o = client_q;

  always_comb begin : p_chosen
    chosen = '0;
    run    = run_i[RunW-1:0];
    for (int unsigned c = 0; c < Clients; c++) begin
      if (grant[c]) begin
        chosen = ClientW'(c);
        run    = run_i[c*RunW +: RunW];
      end
    end
  end

  lookaside_bursts #(.Lanes(Lanes)) u_bursts (
    .clk_i           (clk_i),
    .rst_ni          (rst_ni),
    .address_i       (run.address),
    .words_i         (run.words),
    .valid_i         (run_valid_i != '0),
    .ready_o         (run_ready),
    .burst_address_o (burst_address_o),
    .burst_beats_o   (burst_beats_o),
    .burst_last_o    (burst_last_o),
    .burst_valid_o   (burst_valid_o),
    .burst_ready_i   (burst_ready_i)
  );

  always_ff @(posedge clk_i) begin : p_client
    if (!rst_ni) begin
      client_q <= '0;
    end else if (run_valid_i != '0 && run_ready) begin
      client_q <= chosen;
    end
  end

`ifdef PROVE_LOOKASIDE_RUNS
`include "lookaside_runs.svh"
`endif

endmodule
