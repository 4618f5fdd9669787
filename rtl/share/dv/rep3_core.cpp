// rep3_core for bench.py: bench.h says what it does.
#include "Vrep3_core.h"
#include "Vrep3_core___024root.h"
#include "bench.h"

int main() {
  static unsigned char always = 1;
  return drive<Vrep3_core>([](Bench<Vrep3_core>& bench) {
    auto& t = bench.top;
    bench.in = {
        {"key", t.key_en_i, always, {t.key_previous_i, t.key_i}},
        {"command", t.command_valid_i, t.command_ready_o, {t.command_i}},
        {"operands", t.in_valid_i, t.in_ready_o, {t.in_a_i, t.in_b_i}},
    };
    bench.out = {{"result", t.out_valid_o, t.out_ready_i, {t.out_tag_o, t.out_bytes_o, t.out_last_o, t.out_product_o, t.out_data_o}}};
  });
}
