//! The kernels: their parameters, and how far they reach.
//!
//! Whatever is launched is checked against this table, so that no kernel leaves the memory that it is given. Who writes a kernel says here what it
//! reads and writes; a kernel that follows addresses which are data itself is known to this crate alone, which makes the data.

#[cfg(feature = "probes")]
mod probes;

use crate::backend::{Arg, Error, Launch};
#[cfg(feature = "probes")]
pub use probes::*;

/// A kernel that may be launched.
#[derive(Debug)]
pub struct Kernel {
    /// Its name in the source.
    pub name: &'static str,
    /// Threads of a block, at most.
    pub block: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Whether all blocks run at once, as a barrier of the grid needs.
    pub cooperative: bool,
    /// The same kernel for launches whose blocks do not meet, if it has others.
    pub(crate) apart: Option<&'static Kernel>,
    /// What it takes.
    pub(crate) parameters: &'static [Parameter],
}

/// A parameter of a kernel.
#[derive(Debug)]
pub(crate) enum Parameter {
    U32,
    U64,
    /// Memory, and of how many bytes, by what else it is given; `None` if there is no such number.
    Memory(fn(&Call<'_>) -> Option<u64>),
}

/// A launch, for [`Parameter::Memory`].
pub(crate) struct Call<'a> {
    pub(crate) launch: Launch,
    args: &'a [Arg<'a>],
}

impl Call<'_> {
    /// Argument `k`, which is a number.
    pub(crate) fn number(&self, k: usize) -> Option<u64> {
        match self.args.get(k)? {
            Arg::U32(value) => Some(u64::from(*value)),
            Arg::U64(value) => Some(*value),
            Arg::At(..) => None,
        }
    }

    /// The product of these arguments, times `each`.
    fn product(&self, of: &[usize], each: u64) -> Option<u64> {
        let mut all = of.iter();
        all.try_fold(each, |bytes, k| bytes.checked_mul(self.number(*k)?))
    }

    /// Argument `k`, times `each`.
    fn times(&self, k: usize, each: u64) -> Option<u64> {
        self.number(k)?.checked_mul(each)
    }
}

/// Threads of a block on any GPU.
const MOST_THREADS: u32 = 1024;
/// Blocks of a grid, at most.
const MOST_BLOCKS: u32 = i32::MAX as u32;
/// Whatever memory begins at a multiple of this.
const ALIGNED: u64 = 16;

impl Kernel {
    /// Refuses what would leave the memory of its arguments.
    pub(crate) fn check(&self, launch: Launch, args: &[Arg<'_>]) -> Result<(), Error> {
        let refuse = |why: &str| {
            Err(Error::Launch {
                kernel: self.name,
                why: why.to_owned(),
            })
        };
        let Launch { grid, block } = launch;
        let most = self.block.min(MOST_THREADS);
        if !(1..=MOST_BLOCKS).contains(&grid) || !(1..=most).contains(&block) || block % 32 != 0 {
            return refuse("blocks of whole warps are needed, and no more threads than it has");
        }
        if args.len() != self.parameters.len() {
            return refuse("it has another number of arguments");
        }
        let call = Call { launch, args };
        for (parameter, arg) in self.parameters.iter().zip(args) {
            match (parameter, arg) {
                (Parameter::U32, Arg::U32(_)) | (Parameter::U64, Arg::U64(_)) => {}
                (Parameter::Memory(bytes), Arg::At(buffer, at)) => {
                    let has = buffer.bytes().checked_sub(*at);
                    let (Some(has), Some(needs)) = (has, bytes(&call)) else {
                        return refuse("memory beyond its end");
                    };
                    if has < needs || at % ALIGNED != 0 {
                        return refuse("memory beyond its end, or that begins at no whole block");
                    }
                }
                _ => return refuse("an argument of another kind"),
            }
        }
        Ok(())
    }
}

use Parameter::{Memory, U32, U64};

/// Bytes of the tables of AES in shared memory.
const AES_TABLES: u32 = 4 * 32768;
/// Bytes of steps of tiles of matrices in shared memory.
const TILES: u32 = 6144 * 16;
/// Bytes of the round keys of AES-128.
pub const SCHEDULE_BYTES: u64 = 176;

/// Round keys: keys, schedules `[key][word]`, how many.
pub static AES_SCHEDULE: Kernel = Kernel {
    name: "aes_schedule",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|call| call.times(2, 16)),
        Memory(|call| call.times(2, SCHEDULE_BYTES)),
        U32,
    ],
};

/// How many trees stand for so many bits each.
fn trees(bits: u64) -> Option<u64> {
    matches!(bits, 1 | 2 | 4 | 8).then(|| 128 / bits)
}

/// Sums over leaves of trees: keys `[tree][leaf]`, columns, sums `[tree][block]`, bits of a tree, the first leaf, blocks, bytes of choices, first
/// counter, first and last four bytes of the input of the pseudorandom function.
pub static OT_EXPAND: Kernel = Kernel {
    name: "ot_expand",
    block: 512,
    shared: AES_TABLES,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|call| Some((16 * trees(call.number(3)?)?) << call.number(3)?)),
        Memory(|call| call.times(5, 16 * 128)),
        Memory(|call| call.times(5, 16 * trees(call.number(3)?)?)),
        U32,
        U32,
        U32,
        U64,
        U64,
        U32,
        U32,
    ],
};

/// Corrections in the place of sums: sums, choices, how many trees, blocks.
pub static OT_CORRECT: Kernel = Kernel {
    name: "ot_correct",
    block: 256,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|call| call.product(&[2, 3], 16)),
        Memory(|call| call.times(3, 16)),
        U32,
        U32,
    ],
};

/// Corrections added to columns: columns, corrections, the offset, bits of a tree, blocks, bytes of choices.
pub static OT_APPLY: Kernel = Kernel {
    name: "ot_apply",
    block: 256,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|call| call.times(4, 16 * 128)),
        Memory(|call| call.times(4, 16 * trees(call.number(3)?)?)),
        Memory(|_| Some(16)),
        U32,
        U32,
        U64,
    ],
};

/// Labels of columns: columns, labels, blocks, items, rows.
pub static OT_LABELS: Kernel = Kernel {
    name: "ot_labels",
    block: 256,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|call| call.times(2, 16 * 128)),
        Memory(|call| call.product(&[3, 4], 16)),
        U32,
        U32,
        U32,
    ],
};

/// Folds of columns: columns, the challenge, folds, blocks, how many columns.
pub static OT_FOLD: Kernel = Kernel {
    name: "ot_fold",
    block: 256,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[
        // A string has a last block.
        Memory(|call| call.product(&[3, 4], 16).filter(|bytes| *bytes > 0)),
        Memory(|_| Some(16)),
        Memory(|call| call.times(4, 16)),
        U32,
        U32,
    ],
};

/// Keys of transfers: labels, two lists of keys, start point and offset, items, rows, the number of the first item.
pub static OT_KEYS: Kernel = Kernel {
    name: "ot_keys",
    block: 768,
    shared: AES_TABLES,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|call| call.product(&[3, 4], 16)),
        Memory(|call| call.product(&[3, 4], 32)),
        Memory(|_| Some(32)),
        U32,
        U32,
        U64,
    ],
};

/// A word for each thread, rounds, and a number that the compiler does not know: see kernels/probes/rates.cu.
const RATE: &[Parameter] = &[
    Memory(|call| Some(4 * u64::from(call.launch.grid) * u64::from(call.launch.block))),
    U32,
    U32,
];
/// Instructions of a thread in a round.
pub(crate) const RATE_ROUND: u64 = 8 * 16;

/// Chains of PRMT.
pub static RATE_PRMT: Kernel = Kernel {
    name: "rate_prmt",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: RATE,
};

/// Chains of LOP3.
pub static RATE_LOP3: Kernel = Kernel {
    name: "rate_lop3",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: RATE,
};

/// Chains of loads from shared memory, without conflicts.
pub static RATE_LDS: Kernel = Kernel {
    name: "rate_lds",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: RATE,
};

/// Chains of products of bytes by tensor cores.
pub static RATE_MMA: Kernel = Kernel {
    name: "rate_mma",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: RATE,
};

/// Memory whose addresses are data that this crate made: of a workspace, or of what a command says.
const TRUSTED: Parameter = Memory(|_| Some(0));
/// The verdict of a batch.
const VERDICT: Parameter = Memory(|_| Some(8));

/// All kernels whose launches depend on what a multiprocessor has: those with barriers of the grid, and those with tables or tiles in shared memory.
pub(crate) static TOGETHER_OR_WITH_TABLES: &[&Kernel] = &[
    &OT_EXPAND,
    &OT_KEYS,
    &RANDOM,
    &LIFT,
    &TRUNCATE,
    &MATMUL_Z32,
    &MATMUL_Z64,
    &MATMUL_Z128,
    &MATMUL_END,
    &PROGRAM_BITS,
    &PROGRAM_Z64,
    &PROGRAM_Z128,
    &SUMS_Z64,
    &SUMS_Z128,
    &GARBLE_HALF,
    &GARBLE_THREE,
    &EVALUATE_HALF,
    &EVALUATE_THREE,
    &GARBLE_MASKED,
    &EVALUATE_MASKED,
    &MASKS,
    &AG_OFFER,
    &AG_TAKE,
    &AG_SHIFT,
    &CUT_STRETCH,
    &CUT_MATRIX,
    &CUT_MASK,
    &CUT_UNMASK,
    &CUT_SHUFFLE,
    &PSI_ROWS,
    &PSI_DRAW,
    &SILENT_GROW,
    &SILENT_PUNCTURE,
    &SILENT_GIVE,
    &SILENT_FILL,
    &SILENT_ROWS,
    &SILENT_PRODUCTS,
];

macro_rules! of_device {
    ($($name:ident $entry:literal, $block:literal, $shared:expr, [$($parameter:expr),+] $($together:ident)?;)+) => {$(
        #[doc = concat!("`", $entry, "`, which is for devices alone: see kernels/device.")]
        pub(crate) static $name: Kernel = Kernel {
            name: $entry,
            block: $block,
            shared: $shared,
            cooperative: of_device!(@ $($together)?),
            apart: of_device!(# $entry, $block, $shared, [$($parameter),+] $($together)?),
            parameters: &[$($parameter),+],
        };
    )+};
    (# $entry:literal, $block:literal, $shared:expr, [$($parameter:expr),+] together) => {
        Some(&Kernel {
            name: $entry,
            block: $block,
            shared: $shared,
            cooperative: false,
            apart: None,
            parameters: &[$($parameter),+],
        })
    };
    (# $entry:literal, $block:literal, $shared:expr, [$($parameter:expr),+]) => { None };
    (@ together) => { true };
    (@) => { false };
}

of_device! {
    RANDOM "device_random", 1024, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    COMBINE "device_combine", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    SPLIT "device_split", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CONVERT "device_convert", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    LIFT "device_lift", 1024, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    TRUNCATE "device_truncate", 1024, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    MATMUL_PACK "device_matmul_pack", 256, 0, [TRUSTED, TRUSTED, TRUSTED, TRUSTED, VERDICT];
    MATMUL_Z32 "device_matmul_z32", 256, TILES, [TRUSTED, TRUSTED, VERDICT];
    MATMUL_Z64 "device_matmul_z64", 256, TILES, [TRUSTED, TRUSTED, VERDICT];
    MATMUL_Z128 "device_matmul_z128", 256, TILES, [TRUSTED, TRUSTED, VERDICT];
    MATMUL_END "device_matmul_end", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED];
    SCALE "device_scale", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    DOT "device_dot", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    DOT_END "device_dot_end", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    COMPARE "device_compare", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    DECIDE "device_decide", 32, 0, [VERDICT, U32];
    PIECES "device_pieces", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    HASH "device_hash", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    MAC "device_mac", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    MAC_END "device_mac_end", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PROGRAM_BITS "program_bits", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    PROGRAM_Z64 "program_z64", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    PROGRAM_Z128 "program_z128", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    SUMS_Z64 "program_sums_z64", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED];
    SUMS_Z128 "program_sums_z128", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED];
    ENCODE "device_encode", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    COLOUR "device_colour", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    GARBLE_HALF "labels_garble_half", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    GARBLE_THREE "labels_garble_three", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    EVALUATE_HALF "labels_evaluate_half", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    EVALUATE_THREE "labels_evaluate_three", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    GARBLE_MASKED "labels_garble_masked", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    EVALUATE_MASKED "labels_evaluate_masked", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    MASKS "labels_masks", 512, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED, TRUSTED] together;
    AG_PIN "ag_pin", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_EXPAND "ag_expand", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_BITS "ag_bits", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_PACK "ag_pack", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    AG_OFFER "ag_offer", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT];
    AG_TAKE "ag_take", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT];
    AG_SETTLE "ag_settle", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_SHIFT "ag_shift", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    AG_ROTATE "ag_rotate", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    AG_ABSORB "ag_absorb", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_SPEND "ag_spend", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_GATES "ag_gates", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_FOLD "ag_fold", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    AG_EXPECT "ag_expect", 32, 0, [TRUSTED, TRUSTED, VERDICT];
    AG_FOLD_END "ag_fold_end", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    CUT_STRETCH "cut_stretch", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT];
    CUT_NUMBER "cut_number", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CUT_DIGEST "cut_digest", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CUT_MARKS "cut_marks", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CUT_VOTES "cut_votes", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT, U32];
    CUT_MAJORITY "cut_majority", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    CUT_MATRIX "cut_matrix", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT];
    CUT_ACTIVE "cut_active", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CUT_SPREAD "cut_spread", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CUT_MASK "cut_mask", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT];
    CUT_UNMASK "cut_unmask", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT];
    CUT_SHUFFLE "cut_shuffle", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    CUT_PICK "cut_pick", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CUT_SAME "cut_same", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_HASH "psi_hash", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_ROWS "psi_rows", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PSI_SUM "psi_sum", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PSI_SHIFT "psi_shift", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PSI_TAGS "psi_tags", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PSI_DRAW "psi_draw", 1024, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT, TRUSTED];
    PSI_STARTS "psi_starts", 1024, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_BINNED "psi_binned", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_SOLVE "psi_solve", 512, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PSI_SETTLE "psi_settle", 32, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_END "psi_end", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PSI_STOP "psi_stop", 32, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_RANGES "psi_ranges", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_RANGED "psi_ranged", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_ASCEND "psi_ascend", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    PSI_CHECK "psi_check", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PSI_FIND "psi_find", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    SILENT_GROW "silent_grow", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    SILENT_PUNCTURE "silent_puncture", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    SILENT_GIVE "silent_give", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    SILENT_FILL "silent_fill", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    SILENT_FOLD "silent_fold", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    SILENT_HIDE "silent_hide", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    SILENT_CHECK "silent_check", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    SILENT_ROWS "silent_rows", 640, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    SILENT_PRODUCTS "silent_products", 512, AES_TABLES, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
    SILENT_PACK "silent_pack", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    SILENT_CHOOSE "silent_choose", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    SILENT_TURN "silent_turn", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    GATHER "device_gather", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    SPREAD "device_spread", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    COMPARE_FOLDS "device_compare_folds", 128, 0, [TRUSTED, TRUSTED, VERDICT];
    CHOOSE "device_choose", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PUT "proof_put", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    WEIGHTS "proof_weights", 512, AES_TABLES, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    CLEAR "proof_clear", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    CLAIMS "proof_claims", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    CLAIMS_END "proof_claims_end", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    FIRST "proof_first", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    SECOND "proof_second", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    EXPAND "proof_expand", 256, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    FOLD "proof_fold", 256, 0, [TRUSTED, TRUSTED, VERDICT];
    PAIRS "proof_pairs", 64, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    LAST "proof_last", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    SHARE "proof_share", 32, 0, [TRUSTED, TRUSTED, TRUSTED, VERDICT];
    END "proof_end", 32, 0, [TRUSTED, TRUSTED, VERDICT];
    VERIFY "proof_verify", 32, 0, [TRUSTED, TRUSTED, VERDICT];
    COMPARE_FOUND "proof_compare", 32, 0, [TRUSTED, TRUSTED, VERDICT];
    ADD_RECEIVED "program_add_received", 256, 0, [TRUSTED, TRUSTED, VERDICT, TRUSTED];
}
