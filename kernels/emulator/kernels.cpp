// All kernels by their names, launched as the driver of a GPU launches them: arguments are pointers to values.
#include <cstdio>
#include <cstring>
#include <tuple>
#include <utility>

#include "../all.cu"
#ifdef EMULATOR_PROBES
#include "../probes/probes.cu"
#endif

namespace {

template <class... A, size_t... K>
std::string run(const emulator::Launch &launch, void (*kernel)(A...), void *const *arguments, std::index_sequence<K...>) {
  const std::tuple<A...> values{*static_cast<A *>(arguments[K])...};
  return emulator::launch(launch, [&] { std::apply(kernel, values); });
}

template <class... A> std::string run(const emulator::Launch &launch, void (*kernel)(A...), void *const *arguments, u32 count) {
  if (count != sizeof...(A)) return "the kernel has another number of arguments";
  return run(launch, kernel, arguments, std::index_sequence_for<A...>{});
}

}  // namespace

// 0, or 1 and why in `message`, ended by a zero byte and cut if it is too long.
extern "C" int veil_emulate(const char *name, const emulator::Launch *launch, void *const *arguments, u32 count, char *message, size_t bytes) {
  std::string error = "no kernel of this name";
#define ENTRY(kernel) \
  if (strcmp(name, #kernel) == 0) error = run(*launch, kernel, arguments, count);
  ENTRY(aes_schedule)
  ENTRY(ag_pin)
  ENTRY(ag_expand)
  ENTRY(ag_bits)
  ENTRY(ag_pack)
  ENTRY(ag_offer)
  ENTRY(ag_take)
  ENTRY(ag_settle)
  ENTRY(ag_shift)
  ENTRY(ag_rotate)
  ENTRY(ag_absorb)
  ENTRY(ag_spend)
  ENTRY(ag_gates)
  ENTRY(ag_fold)
  ENTRY(ag_fold_end)
  ENTRY(ag_expect)
  ENTRY(ot_expand)
  ENTRY(ot_correct)
  ENTRY(ot_apply)
  ENTRY(ot_labels)
  ENTRY(ot_fold)
  ENTRY(ot_keys)
  ENTRY(rate_prmt)
  ENTRY(rate_lop3)
  ENTRY(rate_lds)
  ENTRY(rate_mma)
  ENTRY(device_random)
  ENTRY(device_combine)
  ENTRY(device_split)
  ENTRY(device_convert)
  ENTRY(device_lift)
  ENTRY(device_truncate)
  ENTRY(device_matmul_pack)
  ENTRY(device_matmul_z32)
  ENTRY(device_matmul_z64)
  ENTRY(device_matmul_z128)
  ENTRY(device_matmul_end)
  ENTRY(device_scale)
  ENTRY(device_dot)
  ENTRY(device_dot_end)
  ENTRY(device_compare)
  ENTRY(device_decide)
  ENTRY(device_pieces)
  ENTRY(device_hash)
  ENTRY(device_mac)
  ENTRY(device_mac_end)
  ENTRY(program_bits)
  ENTRY(program_z64)
  ENTRY(program_z128)
  ENTRY(program_sums_z64)
  ENTRY(program_sums_z128)
  ENTRY(program_add_received)
  ENTRY(cut_stretch)
  ENTRY(cut_number)
  ENTRY(cut_digest)
  ENTRY(cut_marks)
  ENTRY(cut_votes)
  ENTRY(cut_majority)
  ENTRY(cut_matrix)
  ENTRY(cut_active)
  ENTRY(cut_spread)
  ENTRY(cut_mask)
  ENTRY(cut_unmask)
  ENTRY(cut_shuffle)
  ENTRY(cut_pick)
  ENTRY(cut_same)
  ENTRY(device_gather)
  ENTRY(device_spread)
  ENTRY(device_compare_folds)
  ENTRY(device_choose)
  ENTRY(device_encode)
  ENTRY(device_colour)
  ENTRY(labels_garble_half)
  ENTRY(labels_garble_three)
  ENTRY(labels_garble_masked)
  ENTRY(labels_evaluate_half)
  ENTRY(labels_evaluate_three)
  ENTRY(labels_evaluate_masked)
  ENTRY(labels_masks)
  ENTRY(proof_claims)
  ENTRY(proof_claims_end)
  ENTRY(proof_clear)
  ENTRY(proof_compare)
  ENTRY(proof_end)
  ENTRY(proof_expand)
  ENTRY(proof_first)
  ENTRY(proof_fold)
  ENTRY(proof_last)
  ENTRY(proof_pairs)
  ENTRY(proof_put)
  ENTRY(proof_second)
  ENTRY(proof_share)
  ENTRY(proof_verify)
  ENTRY(proof_weights)
  ENTRY(psi_hash)
  ENTRY(psi_rows)
  ENTRY(psi_sum)
  ENTRY(psi_shift)
  ENTRY(psi_tags)
  ENTRY(psi_draw)
  ENTRY(psi_starts)
  ENTRY(psi_binned)
  ENTRY(psi_solve)
  ENTRY(psi_settle)
  ENTRY(psi_end)
  ENTRY(psi_stop)
  ENTRY(psi_ranges)
  ENTRY(psi_ranged)
  ENTRY(psi_ascend)
  ENTRY(psi_check)
  ENTRY(psi_find)
  ENTRY(silent_grow)
  ENTRY(silent_puncture)
  ENTRY(silent_give)
  ENTRY(silent_fill)
  ENTRY(silent_fold)
  ENTRY(silent_hide)
  ENTRY(silent_check)
  ENTRY(silent_rows)
  ENTRY(silent_products)
  ENTRY(silent_pack)
  ENTRY(silent_choose)
  ENTRY(silent_turn)
#ifdef EMULATOR_PROBES
  ENTRY(probe_sum)
  ENTRY(probe_neighbours)
  ENTRY(probe_diverging)
  ENTRY(probe_growing)
  ENTRY(probe_matrix)
#endif
#undef ENTRY
  snprintf(message, bytes, "%s", error.c_str());
  return !error.empty();
}
