// AXI4-Lite as one write and one read of a whole word at a time (Arm, "AMBA AXI Protocol Specification", IHI 0022).
//
// What is not a whole word, has an address that is not known or cannot be written now is answered with SLVERR and changes nothing; a read
// of it gives 0.
//
// Latency:  a response is offered one cycle after the address, and the data of a write, were.   Throughput: one write and one read per cycle.
// Back-pressure: while a response waits, nothing is taken on its side.

module prim_axil #(
  parameter int unsigned AddrW = 12
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic [AddrW-1:0] s_axil_awaddr_i,
  input  logic             s_axil_awvalid_i,
  output logic             s_axil_awready_o,
  input  logic [31:0]      s_axil_wdata_i,
  input  logic [3:0]       s_axil_wstrb_i,
  input  logic             s_axil_wvalid_i,
  output logic             s_axil_wready_o,
  output logic [1:0]       s_axil_bresp_o,
  output logic             s_axil_bvalid_o,
  input  logic             s_axil_bready_i,
  input  logic [AddrW-1:0] s_axil_araddr_i,
  input  logic             s_axil_arvalid_i,
  output logic             s_axil_arready_o,
  output logic [31:0]      s_axil_rdata_o,
  output logic [1:0]       s_axil_rresp_o,
  output logic             s_axil_rvalid_o,
  input  logic             s_axil_rready_i,

  // Registers: written in cycles with write_o; known and locked belong to the address
  output logic             write_o,
  output logic [AddrW-1:0] write_addr_o,
  output logic [31:0]      write_data_o,
  input  logic             write_known_i,
  input  logic             write_locked_i,
  output logic [AddrW-1:0] read_addr_o,
  input  logic [31:0]      read_data_i,
  input  logic             read_known_i
);

  localparam logic [1:0] Okay = 2'b00, SlvErr = 2'b10;

  logic        write_takes, read_takes, bvalid_q, rvalid_q;
  logic [1:0]  bresp_q, rresp_q;
  logic [31:0] rdata_q;

  assign write_takes      = rst_ni && s_axil_awvalid_i && s_axil_wvalid_i && (!bvalid_q || s_axil_bready_i);
  assign read_takes       = rst_ni && s_axil_arvalid_i && (!rvalid_q || s_axil_rready_i);
  assign s_axil_awready_o = write_takes;
  assign s_axil_wready_o  = write_takes;
  assign s_axil_arready_o = read_takes;
  assign s_axil_bvalid_o  = bvalid_q;
  assign s_axil_bresp_o   = bresp_q;
  assign s_axil_rvalid_o  = rvalid_q;
  assign s_axil_rresp_o   = rresp_q;
  assign s_axil_rdata_o   = rdata_q;
  assign write_o          = write_takes && s_axil_wstrb_i == '1;
  assign write_addr_o     = s_axil_awaddr_i;
  assign write_data_o     = s_axil_wdata_i;
  assign read_addr_o      = s_axil_araddr_i;

  always_ff @(posedge clk_i) begin : p_valid
    if (!rst_ni) begin
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
    end else begin
      bvalid_q <= write_takes || (bvalid_q && !s_axil_bready_i);
      rvalid_q <= read_takes || (rvalid_q && !s_axil_rready_i);
    end
  end

  always_ff @(posedge clk_i) begin : p_response
    if (write_takes) begin
      bresp_q <= write_o && write_known_i && !write_locked_i ? Okay : SlvErr;
    end
    if (read_takes) begin
      rresp_q <= read_known_i ? Okay : SlvErr;
      rdata_q <= read_known_i ? read_data_i : '0;
    end
  end

`ifndef SYNTHESIS
  prim_stable #(.Width(2)) u_write_stable (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .data_i  (bresp_q),
    .valid_i (bvalid_q),
    .ready_i (s_axil_bready_i)
  );

  prim_stable #(.Width(34)) u_read_stable (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .data_i  ({rresp_q, rdata_q}),
    .valid_i (rvalid_q),
    .ready_i (s_axil_rready_i)
  );

  logic past_q = 1'b0;

  always_ff @(posedge clk_i) begin : p_assert
    past_q <= rst_ni;
    if (!past_q && rst_ni) begin
      NothingInReset_A: assert (!bvalid_q && !rvalid_q);
    end
  end
`endif

`ifdef PROVE_PRIM_AXIL
`include "prim_axil.svh"
`endif

endmodule
