//! Makes the RTL into C++ by Verilator and builds it, where Verilator is there. Where it is not, the crate has no simulated cards, and says so
//! when it is asked for one.
//!
//! `VEIL_RTL_ROWS` says for how many rows garblers are made: numbers with commas between them, `2` if it is not set.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the RTL that a garbler is made of, packages first.
const PACKAGES: [&str; 2] = ["aes/rtl/aes_pkg.sv", "garble/rtl/garble_pkg.sv"];
const FOLDERS: [&str; 3] = ["prim/rtl", "aes/rtl", "garble/rtl"];

/// Capacities of the simulated garblers, by number of rows: about 2^13 gates each.
const CAPACITIES: &str = "-GXorW=12 -GAndW=12 -GInputW=12 -GLinesW=10 -GBundles=16384";

fn main() {
    for name in ["VEIL_RTL_ROWS", "VERILATOR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=sim");
    let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rtl");
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", rtl.join(folder).display());
    }
    let verilator = env::var_os("VERILATOR").unwrap_or_else(|| "verilator".into());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to build"));
    let rows = env::var("VEIL_RTL_ROWS").unwrap_or_else(|_| "2".to_owned());
    let rows: Vec<u32> = rows
        .split(',')
        .filter_map(|n| n.trim().parse().ok())
        .collect();
    let mut models = String::new();
    if let Some(root) = root_of(&verilator).filter(|_| rtl.is_dir()) {
        let header = root.join("include/verilated.h");
        println!("cargo::rerun-if-changed={}", header.display());
        for rows in rows {
            match garbler(&verilator, &root, &rtl, &out, rows) {
                Ok(model) => {
                    let _ = writeln!(models, "    {model};");
                }
                Err(why) => println!("cargo::warning=no simulated card of {rows} rows: {why}"),
            }
        }
        if !models.is_empty() {
            runtime(&root);
        }
    } else {
        // It is there as soon as it can be found.
        println!("cargo::rerun-if-env-changed=PATH");
        println!("cargo::warning=no Verilator: this build has no simulated cards");
    }
    let models = format!("garblers! {{\n{models}}}\n");
    fs::write(out.join("models.rs"), models).expect("cargo's folder can be written");
}

/// Where Verilator keeps its C++, if it is there and runs.
fn root_of(verilator: &OsStr) -> Option<PathBuf> {
    let asked = Command::new(verilator)
        .args(["--getenv", "VERILATOR_ROOT"])
        .output()
        .ok()?;
    let root = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    root.join("include/verilated.h").is_file().then_some(root)
}

/// Makes the garbler of so many rows, and says under which name its functions are.
fn garbler(
    verilator: &OsStr,
    root: &Path,
    rtl: &Path,
    out: &Path,
    rows: u32,
) -> Result<String, String> {
    let name = format!("veil_garbler{rows}");
    let folder = out.join(&name);
    let mut sources: Vec<PathBuf> = PACKAGES.iter().map(|file| rtl.join(file)).collect();
    for folder in FOLDERS {
        let files = fs::read_dir(rtl.join(folder)).expect("the RTL is there");
        let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        files.retain(|path| path.extension() == Some(OsStr::new("sv")) && !sources.contains(path));
        files.sort();
        sources.extend(files);
    }
    let mut command = Command::new(verilator);
    command
        .args([
            "--cc",
            "-O3",
            "--assert",
            "-Wno-fatal",
            "--top-module",
            "garble_card",
        ])
        .arg(format!("-GRows={rows}"))
        .args(CAPACITIES.split(' '))
        .args(["--prefix", &format!("V{name}"), "--Mdir"])
        .arg(&folder)
        .args(&sources);
    run(&mut command)?;
    // Built by cargo's own jobs: the units are many and small.
    let mut units: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("Verilator made it")
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("cpp")))
        .collect();
    units.sort();
    let mut build = compiler(root);
    build
        .include(&folder)
        .define("MODEL", Some(format!("V{name}").as_str()))
        .define("HEADER", Some(format!("\"V{name}.h\"").as_str()))
        .define("NAME", Some(name.as_str()))
        .define("ROWS", Some(rows.to_string().as_str()))
        .files(units)
        .file("sim/garbler.cpp")
        .try_compile(&name)
        .map_err(|error| error.to_string())?;
    let functions = ["new", "free", "read", "write", "step"];
    let functions = functions.map(|function| format!("{name}_{function}"));
    Ok(format!("{rows}: {}", functions.join(" ")))
}

/// The part of Verilator that all models use.
fn runtime(root: &Path) {
    let mut build = compiler(root);
    for unit in ["verilated.cpp", "verilated_threads.cpp"] {
        build.file(root.join("include").join(unit));
    }
    build.compile("veil_verilated");
}

fn compiler(root: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(1)
        .debug(false)
        .warnings(false)
        .flag_if_supported("-faligned-new")
        .flag_if_supported("-fcf-protection=none")
        .define("VL_TIME_CONTEXT", None)
        .define("VM_COVERAGE", Some("0"))
        .define("VM_SC", Some("0"))
        .define("VM_TRACE", Some("0"))
        .include(root.join("include"))
        .include(root.join("include/vltstd"));
    build
}

fn run(command: &mut Command) -> Result<(), String> {
    let ended = command.output().map_err(|error| error.to_string())?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let first = said
        .lines()
        .find(|line| line.contains("Error"))
        .unwrap_or("it failed");
    Err(format!("Verilator says {first}"))
}
