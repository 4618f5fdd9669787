// rep4_join for bench.py: bench.h says what it does. checked_o is a stream that never waits.
#include "Vrep4_join.h"
#include "Vrep4_join___024root.h"
#include "bench.h"

int main() {
  static unsigned char told = 1;
  return drive<Vrep4_join>([](Bench<Vrep4_join>& bench) {
    auto& t = bench.top;
    auto word = [](auto& wide, unsigned k) { return Port(&wide[4 * k], 16); };
    bench.ports = {{"two", t.from_two_i}, {"to", t.to_i}, {"checks", t.checks_i}};
    bench.in = {
        {"begin", t.begin_valid_i, t.begin_ready_o, {t.keys_i, t.used_i, t.lane_i, t.counter_i, t.chunk_i}},
        {"shares", t.in_valid_i, t.in_ready_o, {t.in_ring_i, t.in_data_i, t.in_bytes_i, t.in_last_i, t.in_closes_i, t.in_tag_i}},
    };
    for (unsigned k = 0; k < 2; k++) {
      bench.in.push_back({"message" + std::to_string(k), Port(&t.message_valid_i, 1, k), Port(&t.message_ready_o, 1, k), {word(t.message_data_i, k)}});
      bench.in.push_back({"code" + std::to_string(k), Port(&t.code_valid_i, 1, k), Port(&t.code_ready_o, 1, k), {word(t.code_i, k)}});
    }
    bench.out = {
        {"result", t.out_valid_o, t.out_ready_i, {t.out_tag_o, t.out_bytes_o, t.out_last_o, t.out_data_o}},
        {"checked", t.checked_o, told, {}},
    };
    bench.out[1].eager = true;
    bench.flags = {{"fails", t.fails_o}};
  });
}
