//! Compiles the part of libfabric that the `fabric` link uses, where its headers are. Where they are not, that link is not in this build, and
//! says so when it is asked for.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(libfabric)");
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "fabric")]
    fabric();
}

#[cfg(feature = "fabric")]
fn fabric() {
    use std::path::Path;
    use std::process::Command;

    println!("cargo::rerun-if-changed=fabric");
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let tool = std::env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let ask = |arguments: &[&str]| {
        let asked = Command::new(&tool).args(arguments).output().ok()?;
        let said = asked.status.success().then_some(asked.stdout)?;
        String::from_utf8(said).ok()
    };
    let folders = ask(&[
        "--cflags-only-I",
        "--keep-system-cflags",
        "libfabric >= 1.9",
    ]);
    let Some(folders) = folders else {
        // It is there as soon as it can be found.
        println!("cargo::rerun-if-env-changed=PATH");
        let searched = ask(&["--variable", "pc_path", "pkg-config"]).unwrap_or_default();
        let searched = searched.trim().split(':').map(Path::new);
        for folder in searched.filter(|folder| folder.is_dir()) {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
        println!(
            "cargo::warning=no libfabric: this build has no fabric link; `apt-get install libfabric-dev` brings it"
        );
        return;
    };
    let folders = folders.split_whitespace();
    let built = cc::Build::new()
        .includes(folders.filter_map(|folder| folder.strip_prefix("-I")))
        .flag_if_supported("-std=gnu11")
        .file("fabric/shim.c")
        .try_compile("veil_fabric");
    match built {
        Ok(()) => println!("cargo::rustc-cfg=libfabric"),
        Err(error) => println!("cargo::warning=no fabric link: {error}"),
    }
}
