// rep4_local for bench.py: bench.h says what it does.
#include "Vrep4_local.h"
#include "Vrep4_local___024root.h"
#include "bench.h"

int main() {
  static unsigned char always = 1;
  return drive<Vrep4_local>([](Bench<Vrep4_local>& bench) {
    auto& t = bench.top;
    auto word = [](auto& wide, unsigned k) { return Port(&wide[4 * k], 16); };
    bench.ports = {{"form", t.form_i}, {"sends", t.sends_i}, {"checks", t.checks_i}};
    bench.in = {
        {"key", t.key_en_i, always, {t.key_number_i, t.key_i}},
        {"begin", t.begin_valid_i, t.begin_ready_o, {t.keys_i, t.used_i, t.lane_i, t.counter_i, t.chunk_i}},
        {"command", t.command_valid_i, t.command_ready_o, {t.command_i}},
        {"operands", t.in_valid_i, t.in_ready_o, {t.in_a_i, t.in_b_i}},
    };
    std::vector<Port> about = {t.out_tag_o, t.out_bytes_o, t.out_last_o, t.out_product_o};
    auto with = [&](Port data) {
      std::vector<Port> ports = about;
      ports.push_back(data);
      return ports;
    };
    bench.out = {{"result", t.out_valid_o, t.out_ready_i, with(t.out_data_o)}};
    for (unsigned k = 0; k < 3; k++)
      bench.out.push_back({"message" + std::to_string(k), Port(&t.message_valid_o, 1, k), Port(&t.message_ready_i, 1, k), with(word(t.message_data_o, k))});
    for (unsigned k = 0; k < 2; k++)
      bench.out.push_back({"code" + std::to_string(k), Port(&t.code_valid_o, 1, k), Port(&t.code_ready_i, 1, k), {word(t.code_o, k)}});
  });
}
