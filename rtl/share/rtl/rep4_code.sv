// The code of joint messages (docs/protocol-rep4.md): POLYVAL under a key of two parties of all columns of a layer, one after the other,
// each message filled up with zeros to whole blocks; then their length; masked by a block that is drawn once.
//
// Latency:  a message may begin 26 cycles after begin_i; its code comes 11 cycles after its last word.   Throughput: one word per cycle.
// Back-pressure: words wait while a code begins or ends; a code stays until it is taken. Begins again when it was taken.

module rep4_code (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             wipe_i,

  input  logic             begin_i, // takes effect while idle_o
  input  aes_pkg::block_t  key_i,
  input  logic [15:0]      used_i,  // of the mask, as counter, lane and chunk
  input  logic [15:0]      lane_i,
  input  logic [63:0]      counter_i,
  input  logic [31:0]      chunk_i,
  output logic             idle_o,

  input  share_pkg::word_t in_data_i,
  input  logic [4:0]       in_bytes_i,
  input  logic             in_last_i,   // of a column
  input  logic [1:0]       in_closes_i, // of the column's command
  input  logic             in_valid_i,
  output logic             in_ready_o,

  output share_pkg::word_t code_o,
  output logic             code_valid_o,
  input  logic             code_ready_i
);

  typedef enum logic [2:0] {Idle, Key, Mask, Open, Flush, Length, Finish, Done} state_e;

  localparam logic [15:0] MacKey = 16'h0700; // the use of the key of the hash

  state_e           state_q;
  logic             alive, whole_q, aes_en_q, aes_done, hash_ready, key_en, hash_valid, block_en, pack_en, takes;
  aes_pkg::block_t  key_q, aes_input, aes_output;
  share_pkg::word_t packed_block, hash, mask_q, code_q;
  logic [63:0]      length_q;
  logic [15:0]      used_q, lane_q;
  logic [63:0]      counter_q;
  logic [31:0]      chunk_q;

  assign alive        = rst_ni && !wipe_i;
  assign idle_o       = state_q == Idle;
  assign in_ready_o   = state_q == Open && hash_ready;
  assign takes        = in_valid_i && in_ready_o;
  assign code_valid_o = state_q == Done;
  assign code_o       = code_q;
  assign key_en       = state_q == Key && aes_done && !aes_en_q;

  assign aes_input = state_q == Key ? share_pkg::prf_input(MacKey, '0, '0, '0)
                                    : share_pkg::prf_input(used_q, lane_q, counter_q, chunk_q);

  share_aes u_aes (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .wipe_i  (wipe_i),
    .en_i    (aes_en_q),
    .key_i   (key_q),
    .block_i (aes_input),
    .block_o (aes_output),
    .done_o  (aes_done)
  );

  share_pack u_pack (
    .clk_i      (clk_i),
    .rst_ni     (rst_ni),
    .wipe_i     (wipe_i),
    .in_en_i    (takes),
    .in_data_i  (in_data_i),
    .in_bytes_i (in_bytes_i),
    .flush_i    (state_q == Flush),
    .out_en_o   (pack_en),
    .out_data_o (packed_block)
  );

  assign block_en = pack_en || state_q == Length;

  share_polyval u_hash (
    .clk_i      (clk_i),
    .rst_ni     (rst_ni),
    .wipe_i     (wipe_i),
    .key_en_i   (key_en),
    .key_i      (aes_output),
    .ready_o    (hash_ready),
    .block_en_i (block_en),
    .block_i    (state_q == Length ? {64'b0, length_q} : packed_block),
    .finish_i   (state_q == Finish && hash_ready && !whole_q),
    .valid_o    (hash_valid),
    .hash_o     (hash)
  );

  always_ff @(posedge clk_i) begin : p_state
    if (!alive) begin
      state_q  <= Idle;
      aes_en_q <= 1'b0;
      whole_q  <= 1'b0;
    end else begin
      aes_en_q <= 1'b0;
      unique case (state_q)
        Idle: if (begin_i) begin
          state_q  <= Key;
          aes_en_q <= 1'b1;
        end
        Key: if (key_en) begin
          state_q  <= Mask;
          aes_en_q <= 1'b1;
        end
        Mask: if (aes_done && !aes_en_q) begin
          state_q <= Open;
        end
        Open: if (takes && in_last_i && in_closes_i != '0) begin
          state_q <= Flush;
          whole_q <= in_closes_i[1];
        end
        Flush: begin
          state_q <= whole_q ? Length : Open;
          whole_q <= 1'b0;
        end
        Length: state_q <= Finish;
        Finish: begin
          whole_q <= 1'b1; // was told
          if (hash_valid) begin
            state_q <= Done;
          end
        end
        default: if (code_ready_i) begin
          state_q <= Idle;
          whole_q <= 1'b0;
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin : p_data
    if (!alive) begin
      key_q     <= '0;
      mask_q    <= '0;
      code_q    <= '0;
      length_q  <= '0;
    end else begin
      if (state_q == Idle && begin_i) begin
        key_q     <= key_i;
        used_q    <= used_i;
        lane_q    <= lane_i;
        counter_q <= counter_i;
        chunk_q   <= chunk_i;
        length_q  <= '0;
      end
      if (state_q == Mask) begin
        mask_q <= aes_output;
      end
      if (takes) begin
        length_q <= length_q + 64'(in_bytes_i);
      end
      if (hash_valid) begin
        code_q <= hash ^ mask_q;
      end
    end
  end

endmodule
