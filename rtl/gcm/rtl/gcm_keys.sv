// The keys of nodes in one direction: key, salt, and powers H^1 to H^Stages of H = AES_key(0), which the core makes when a key is written.
//
// Power p is H times power p - 1: a beat through the core, whose AES gives H and whose multiplier the product. A key is there Stages times
// the core's latency after it was taken. It is taken when idle_i says that no beat of a message is under way that reads keys or powers;
// from then on until loads_o falls no other beat may come.
//
// While wipe_i is high, zeros are written to all words, one of each memory per cycle, and no key is there after it.

module gcm_keys #(
  parameter  int unsigned Nodes = 4, // at least 2
  localparam int unsigned NodeW = $clog2(Nodes)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      wipe_i,
  input  logic                      idle_i,

  input  logic                      load_valid_i,
  output logic                      load_ready_o,
  input  logic [NodeW-1:0]          load_node_i,
  input  aes_pkg::block_t           load_key_i,
  input  logic [31:0]               load_salt_i,
  output logic                      loads_o,
  output logic [Nodes-1:0]          known_o,

  // Through the core: power number of H of the node, made in the cycle of made_i
  output logic                      beat_o,
  output logic [NodeW-1:0]          beat_node_o,
  output logic [gcm_pkg::LeftW-1:0] beat_number_o, // of the power before it
  input  logic                      made_i,
  input  gcm_pkg::poly_t            made_power_i,

  // Read in the cycle of the node, and of the number of the power; power 0 is 1
  input  logic [NodeW-1:0]          key_node_i,
  output aes_pkg::block_t           key_o,
  output logic [31:0]               salt_o,
  input  logic [NodeW-1:0]          power_node_i,
  input  logic [gcm_pkg::LeftW-1:0] power_number_i,
  output gcm_pkg::poly_t            power_o
);

  localparam int unsigned Stages  = gcm_pkg::Stages;
  localparam int unsigned LeftW   = gcm_pkg::LeftW;
  localparam int unsigned NumberW = $clog2(Stages);
  localparam int unsigned PlaceW  = NodeW + NumberW;

  logic              loads_q, beat_q, takes;
  logic [NodeW-1:0]  node_q;
  logic [LeftW-1:0]  number_q; // powers that are there
  logic [Nodes-1:0]  known_q;
  logic [PlaceW-1:0] wipe_q;
  gcm_pkg::poly_t    power;
  logic [NumberW-1:0] place;

  assign load_ready_o  = rst_ni && !wipe_i && !loads_q && idle_i;
  assign takes         = load_valid_i && load_ready_o;
  assign loads_o       = loads_q || takes;
  assign known_o       = known_q;
  assign beat_o        = beat_q;
  assign beat_node_o   = node_q;
  assign beat_number_o = number_q;

  prim_ram_async #(.Width(160), .Depth(1 << NodeW)) u_keys (
    .clk_i    (clk_i),
    .w_en_i   (takes || wipe_i),
    .w_addr_i (wipe_i ? wipe_q[NodeW-1:0] : load_node_i),
    .w_data_i (wipe_i ? '0 : {load_salt_i, load_key_i}),
    .r_addr_i (key_node_i),
    .r_data_o ({salt_o, key_o})
  );

  // Power p lies at p - 1.
  assign place   = NumberW'(power_number_i - LeftW'(1));
  assign power_o = power_number_i == '0 ? gcm_pkg::poly_t'(1) : power;

  prim_ram_async #(.Width(128), .Depth(1 << PlaceW)) u_powers (
    .clk_i    (clk_i),
    .w_en_i   (made_i || wipe_i),
    .w_addr_i (wipe_i ? wipe_q : {node_q, NumberW'(number_q)}),
    .w_data_i (wipe_i ? '0 : made_power_i),
    .r_addr_i ({power_node_i, place}),
    .r_data_o (power)
  );

  always_ff @(posedge clk_i) begin : p_load
    if (!rst_ni || wipe_i) begin
      loads_q  <= 1'b0;
      beat_q   <= 1'b0;
      node_q   <= '0;
      number_q <= '0;
      known_q  <= '0;
    end else begin
      beat_q <= takes || (made_i && number_q != LeftW'(Stages - 1));
      if (takes) begin
        loads_q              <= 1'b1;
        node_q               <= load_node_i;
        number_q             <= '0;
        known_q[load_node_i] <= 1'b0;
      end else if (made_i) begin
        number_q <= number_q + 1'b1;
        if (number_q == LeftW'(Stages - 1)) begin
          loads_q         <= 1'b0;
          known_q[node_q] <= 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_wipe
    wipe_q <= rst_ni && wipe_i ? wipe_q + 1'b1 : '0;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !wipe_i && made_i) begin
      MadeInLoad_A: assert (loads_q && !takes);
    end
  end
`endif

endmodule
