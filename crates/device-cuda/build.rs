//! Builds the emulator and all kernels for the CPU, if the feature `emulator` asks for them, and takes the kernels for GPUs in, if a build made them: `VEIL_CUDA_FATBIN` is the path of a
//! file with the code for all generations (`scripts/cuda.sh`). Where it is not set the crate has no GPUs, and says so when it is asked for one.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=VEIL_CUDA_FATBIN");
    println!("cargo::rustc-check-cfg=cfg(veil_fatbin)");
    if env::var_os("CARGO_FEATURE_EMULATOR").is_some() {
        emulator();
    }
    let Some(fatbin) = env::var_os("VEIL_CUDA_FATBIN").filter(|path| !path.is_empty()) else {
        return;
    };
    match PathBuf::from(fatbin).canonicalize() {
        Ok(fatbin) if fatbin.is_file() => {
            println!("cargo::rerun-if-changed={}", fatbin.display());
            println!("cargo::rustc-env=VEIL_CUDA_FATBIN={}", fatbin.display());
            println!("cargo::rustc-cfg=veil_fatbin");
        }
        _ => println!("cargo::warning=VEIL_CUDA_FATBIN names no file: this build has no GPUs"),
    }
}

/// The emulator, with all kernels as functions of this processor.
fn emulator() {
    let kernels =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where a package is"))
            .join("../../kernels");
    println!("cargo::rerun-if-changed={}", kernels.display());
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .debug(false)
        .extra_warnings(true)
        .warnings(true)
        // Columns are read as words of several sizes, as compilers for GPUs have it.
        .flag("-fno-strict-aliasing")
        .file(kernels.join("emulator/kernels.cpp"));
    // Sanitizers, for tests alone, see threads of the system and no fibers (`scripts/emulate-sanitized.sh`).
    println!("cargo::rerun-if-env-changed=VEIL_EMULATOR_SANITIZE");
    match env::var("VEIL_EMULATOR_SANITIZE")
        .ok()
        .filter(|which| !which.is_empty())
    {
        Some(which) => {
            let flag = format!("-fsanitize={which}");
            build
                .file(kernels.join("emulator/threads.cpp"))
                .flag(&flag)
                .flag("-g");
            // What a sanitizer needs at run time is named, as rustc links no libraries by itself.
            let runtime = match which.as_str() {
                "thread" => "tsan",
                "address" => "asan",
                other => panic!("VEIL_EMULATOR_SANITIZE is thread or address, and not {other}"),
            };
            println!("cargo::rustc-link-arg=-l{runtime}");
        }
        None => {
            // Fibers jump between stacks, which a check of jumps takes for an error.
            build
                .file(kernels.join("emulator/fibers.cpp"))
                .flag("-U_FORTIFY_SOURCE");
        }
    }
    if env::var_os("CARGO_FEATURE_PROBES").is_some() {
        build.define("EMULATOR_PROBES", None);
    }
    build.compile("veil_emulator");
}
