// 16 numbers of 16 bits, sorted: the odd-even merge network (Batcher 1968, "Sorting networks and their applications"), 63 comparators.
// Number k is bits 16k to 16k + 15; the smallest comes first.
module Sort_16_1(input [255:0] unsorted, output reg [255:0] sorted);
  localparam N = 16, W = 16;
  integer p, k, j, i;
  reg [W-1:0] low, high;
  always @* begin
    sorted = unsorted;
    for (p = 1; p < N; p = 2 * p)
      for (k = p; k >= 1; k = k / 2)
        for (j = k % p; j + k < N; j = j + 2 * k)
          for (i = 0; i < k && i + j + k < N; i = i + 1)
            if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) begin
              low = sorted[W * (i + j) +: W];
              high = sorted[W * (i + j + k) +: W];
              if (high < low) begin
                sorted[W * (i + j) +: W] = high;
                sorted[W * (i + j + k) +: W] = low;
              end
            end
  end
endmodule
