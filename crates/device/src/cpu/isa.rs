//! Instruction sets of processors.

/// Features of a processor, and whether this one has them. A build with `--cfg veil_portable` is for a processor that has none.
#[cfg(target_arch = "x86_64")]
macro_rules! needs {
    ($($feature:tt),*) => {
        vec![$(($feature, cfg!(not(veil_portable)) && is_x86_feature_detected!($feature))),*]
    };
}

/// The instruction set that a [`Cpu`](super::Cpu) uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isa {
    /// 512-bit vectors, with products of 52 bits (IFMA) and of 16 bits (VNNI), VBMI2, VAES, VPCLMULQDQ.
    Avx512,
    /// 256-bit vectors, VAES, VPCLMULQDQ.
    Avx2Vaes,
    /// 256-bit vectors, AES-NI, PCLMULQDQ.
    Avx2,
    /// 64-bit words and the `aes` crate.
    Portable,
}

impl Isa {
    /// All of them, fastest first.
    pub const ALL: [Isa; 4] = [Isa::Avx512, Isa::Avx2Vaes, Isa::Avx2, Isa::Portable];

    /// The instruction sets that this machine has, fastest first.
    pub fn available() -> Vec<Isa> {
        let there = |isa: &Isa| isa.needs().iter().all(|(_, there)| *there);
        Isa::ALL.into_iter().filter(there).collect()
    }

    /// Features that a processor needs for it, by the names of the compiler, and whether this one has them. Every feature that a kernel of
    /// the instruction set is compiled for is here.
    pub fn needs(self) -> Vec<(&'static str, bool)> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => needs!(
                "avx512f",
                "avx512bw",
                "avx512dq",
                "avx512ifma",
                "avx512vbmi2",
                "avx512vnni",
                "vaes",
                "vpclmulqdq",
                "pclmulqdq",
                "bmi2",
                "adx"
            ),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2Vaes => needs!("avx2", "aes", "vaes", "bmi2", "vpclmulqdq", "pclmulqdq"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => needs!("avx2", "aes", "pclmulqdq"),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512 | Isa::Avx2Vaes | Isa::Avx2 => vec![("x86-64", false)],
            Isa::Portable => Vec::new(),
        }
    }
}
