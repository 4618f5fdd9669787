// Packets to other nodes from some clients, one whole packet after the other, in turns.
//
// Latency:  a header leaves two cycles after it was offered.   Throughput: one word per cycle, and a cycle between packets.
// Back-pressure: a client's header is taken when it has left; the beats of its data, which have to be there by then, follow, word by word:
// of the lowest first.

module lookaside_send #(
  parameter  int unsigned Clients = 2, // at least 2
  parameter  int unsigned NodeW   = 2,
  parameter  int unsigned Lanes   = 1, // words of a beat, a power of two
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned ClientW = $clog2(Clients)
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  input  logic [Clients*128-1:0]   header_i,
  input  logic [Clients*8-1:0]     node_i,
  input  logic [Clients-1:0]       valid_i,
  output logic [Clients-1:0]       ready_o,
  input  logic [Clients*BeatW-1:0] data_i,
  output logic [Clients-1:0]       data_ready_o, // the last word of the client's beat is taken

  output lookaside_pkg::word_t     m_axis_tdata_o,
  output logic [NodeW-1:0]         m_axis_tdest_o,
  output logic                     m_axis_tlast_o,
  output logic                     m_axis_tvalid_o,
  input  logic                     m_axis_tready_i
);

  localparam int unsigned LaneW = Lanes > 1 ? $clog2(Lanes) : 1;

  typedef enum logic [1:0] { Choose, Header, Data } state_e;

  state_e                 state_q;
  logic [Clients-1:0]     grant, client_q;
  logic [ClientW-1:0]     index;
  logic [7:0]             left_q;
  lookaside_pkg::header_t header;
  logic [NodeW-1:0]       node_q;
  logic                   moves, has_data, lane_last;
  logic [LaneW-1:0]       lane_q;
  logic [BeatW-1:0]       beat;

  prim_arbiter #(.Requesters(Clients)) u_arbiter (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni),
    .request_i (valid_i),
    .grant_o   (grant),
    .ready_i   (state_q == Choose)
  );

  always_comb begin : p_index
    index = '0;
    for (int unsigned c = 0; c < Clients; c++) begin
      if (client_q[c]) begin
        index = ClientW'(c);
      end
    end
  end

  assign header          = header_i[128*32'(index) +: 128];
  assign has_data        = (header.kind == lookaside_pkg::PacketPut || header.kind == lookaside_pkg::PacketGetDone) && header.words != '0;
  assign m_axis_tvalid_o = state_q == Header || state_q == Data;
  assign m_axis_tdata_o  = state_q == Header ? header : beat[128*32'(lane_q) +: 128];
  assign m_axis_tdest_o  = state_q == Header ? node_i[8*32'(index) +: NodeW] : node_q;
  assign m_axis_tlast_o  = state_q == Header ? !has_data : left_q == 8'd1;
  assign moves           = m_axis_tvalid_o && m_axis_tready_i;
  assign ready_o         = state_q == Header && moves ? client_q : '0;
  assign data_ready_o    = state_q == Data && moves && lane_last ? client_q : '0;
  assign beat            = data_i[BeatW*32'(index) +: BeatW];
  assign lane_last       = lane_q == LaneW'(Lanes - 1);

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      state_q  <= Choose;
      client_q <= '0;
      left_q   <= '0;
      node_q   <= '0;
      lane_q   <= '0;
    end else begin
      unique case (state_q)
        Choose: begin
          client_q <= grant;
          state_q  <= valid_i != '0 ? Header : Choose;
        end
        Header: begin
          left_q <= header.words;
          node_q <= m_axis_tdest_o;
          if (moves) begin
            state_q <= has_data ? Data : Choose;
          end
        end
        Data: begin
          left_q  <= left_q - 8'(moves);
          lane_q  <= !moves ? lane_q : lane_last ? '0 : lane_q + 1'b1;
          state_q <= moves && m_axis_tlast_o ? Choose : Data;
        end
        default: state_q <= Choose;
      endcase
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && state_q == Header) begin
      Offered_A: assert ((valid_i & client_q) != '0);
    end
  end
`endif

endmodule
