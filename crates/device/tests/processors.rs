//! Which processors a kernel runs on.

use std::collections::BTreeSet;
use std::path::Path;

use veil_device::Isa;

/// Features that kernels are compiled for and that every x86-64 has.
const ELSEWHERE: [&str; 1] = ["sse2"];

/// Features in the text of a source: what stands between quotes and is a list of names of which one is an instruction set.
fn features(text: &str, found: &mut BTreeSet<String>) {
    for literal in text.split('"').skip(1).step_by(2) {
        let names: Vec<&str> = literal.split(',').collect();
        let plain =
            |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric());
        let of_a_kernel = |name: &&str| name.starts_with("avx") || name.contains("clmulqdq");
        if names.iter().all(plain) && names.iter().any(of_a_kernel) {
            found.extend(names.into_iter().map(str::to_owned));
        }
    }
}

fn sources(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            features(&std::fs::read_to_string(path).unwrap(), found);
        }
    }
}

/// A kernel that is compiled for a feature which the device does not ask the processor for is undefined behaviour on one that lacks it.
#[test]
#[cfg(target_arch = "x86_64")]
fn every_feature_of_a_kernel_is_asked_for() {
    let mut compiled = BTreeSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cpu");
    sources(&folder, &mut compiled);
    for elsewhere in ELSEWHERE {
        assert!(compiled.remove(elsewhere), "{elsewhere} is not used");
    }
    let needs = Isa::ALL.into_iter().flat_map(Isa::needs);
    let asked: BTreeSet<String> = needs.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(compiled, asked);
}

#[test]
fn what_is_available_is_what_lacks_nothing() {
    let available = Isa::available();
    assert_eq!(available.last(), Some(&Isa::Portable));
    for isa in Isa::ALL {
        let lacks = isa.needs().iter().any(|(_, there)| !there);
        assert_eq!(available.contains(&isa), !lacks, "{isa:?}");
    }
}
