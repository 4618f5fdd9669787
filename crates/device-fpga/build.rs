//! Makes the RTL into C++ by Verilator and builds it, if the feature `simulated` asks for it and Verilator is there. Where either is not, the crate
//! has no simulated cards, and says so when it is asked for one.
//!
//! `VEIL_RTL_ROWS` says for how many rows garblers are made: numbers with commas between them, `2` if it is not set. `2:4:1` is a garbler of two
//! rows that takes four labels in a cycle, two if that is not said, and has a register behind its memories of labels, none if that is not. Cards are
//! of a power of two; the core that takes gates in the order of the netlist is made for at most four rows, as its memories grow with their square.
//!
//! If `VEIL_RTL_FOLDED` is set, the first stage of four parties is made a second time, folded, for `veil-lab bench fpga-share`.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rows of a garbler, labels of inputs that come in a cycle, and registers behind its memories of labels.
struct Shape {
    rows: u32,
    labels_in: u32,
    label_reg: u32,
}

impl Shape {
    /// What is not said is as `Simulated::capacity` says it.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|n| n.trim().parse().ok());
        let mut next = |usual| numbers.next().unwrap_or(usual);
        Some(Shape {
            rows: next(None)?,
            labels_in: next(Some(2))?,
            label_reg: next(Some(0))?,
        })
    }
}

/// A core, and the functions of C that its model has.
struct Core {
    /// What functions and files begin with; the number of rows follows, if there are several models.
    name: &'static str,
    top: &'static str,
    /// The macro that makes a table of its models.
    table: &'static str,
    made: fn(&Shape) -> bool,
    /// How many models there are at most.
    most: usize,
    /// Packages, before all else.
    packages: &'static [&'static str],
    folders: &'static [&'static str],
    /// Capacities and options.
    arguments: &'static str,
    /// What of the shape are parameters of the module, and what is said to the source.
    parameters: fn(&Shape) -> Vec<(&'static str, u32)>,
    defines: fn(&Shape) -> Vec<(&'static str, u32)>,
    source: &'static str,
    functions: &'static [&'static str],
}

const SHARE_PACKAGES: &[&str] = &[
    "aes/rtl/aes_pkg.sv",
    "garble/rtl/garble_pkg.sv",
    "share/rtl/share_pkg.sv",
];
const SHARE_FOLDERS: &[&str] = &["prim/rtl", "aes/rtl", "garble/rtl", "share/rtl"];

/// Words of 128 bits in a beat of a node's memory, as `simulated::LANES` has them.
const NODE_LANES: u32 = 4;

const NODE_PACKAGES: &[&str] = &[
    "aes/rtl/aes_pkg.sv",
    "garble/rtl/garble_pkg.sv",
    "gcm/rtl/gcm_pkg.sv",
    "share/rtl/share_pkg.sv",
    "lookaside/rtl/lookaside_pkg.sv",
];
const NODE_FOLDERS: &[&str] = &[
    "prim/rtl",
    "aes/rtl",
    "garble/rtl",
    "gcm/rtl",
    "share/rtl",
    "lookaside/rtl",
];
const NODE_FUNCTIONS: &[&str] = &[
    "new",
    "free",
    "write",
    "read",
    "command",
    "completion",
    "step",
    "memory",
    "sent",
    "fault",
    "reset",
    "state",
];

const CORES: [Core; 8] = [
    // About 2^13 gates with any number of rows.
    Core {
        name: "veil_garbler",
        top: "garble_card",
        table: "garblers",
        made: |shape| shape.rows.is_power_of_two(),
        most: usize::MAX,
        packages: &["aes/rtl/aes_pkg.sv", "garble/rtl/garble_pkg.sv"],
        folders: &["prim/rtl", "aes/rtl", "garble/rtl"],
        arguments: "-GXorW=12 -GAndW=12 -GInputW=12 -GLinesW=10 -GBundles=16384",
        parameters: |shape| {
            vec![
                ("Rows", shape.rows),
                ("LabelsIn", shape.labels_in),
                ("LabelReg", shape.label_reg),
            ]
        },
        defines: |shape| vec![("LABELS_IN", shape.labels_in), ("TABLES_OUT", shape.rows)],
        source: "sim/garbler.cpp",
        functions: &["new", "free", "read", "write", "step"],
    },
    // Twice the entries of the published design, so that indices beyond 2^13 can be looked at.
    Core {
        name: "veil_ordered",
        top: "ordered_core",
        table: "ordered",
        made: |shape| (1..=4).contains(&shape.rows),
        most: usize::MAX,
        packages: &[
            "aes/rtl/aes_pkg.sv",
            "garble/rtl/garble_pkg.sv",
            "ordered/rtl/ordered_pkg.sv",
        ],
        folders: &["prim/rtl", "aes/rtl", "garble/rtl", "ordered/rtl"],
        arguments: "-GLabelW=14 --savable",
        parameters: |shape| vec![("Rows", shape.rows)],
        defines: |shape| vec![("ROWS", shape.rows)],
        source: "sim/ordered.cpp",
        functions: &["new", "free", "write", "run", "state"],
    },
    // Beside whatever garblers, and for any number of nodes. Flat, so that all of the state lies in one object.
    Core {
        name: "veil_node",
        top: "lookaside_node",
        table: "nodes",
        made: |_| true,
        most: 1,
        packages: NODE_PACKAGES,
        folders: NODE_FOLDERS,
        arguments: "-GSlots=16 --flatten",
        parameters: |_| vec![("Lanes", NODE_LANES)],
        defines: |_| vec![("LANES", NODE_LANES)],
        source: "sim/node.cpp",
        functions: NODE_FUNCTIONS,
    },
    // The same with workers for products of four parties, apart: it takes twice as long for a cycle.
    Core {
        name: "veil_four",
        top: "lookaside_node",
        table: "fours",
        made: |_| true,
        most: 1,
        packages: NODE_PACKAGES,
        folders: NODE_FOLDERS,
        arguments: "-GSlots=16 -GLocals=1 -GJoins=1 --flatten",
        parameters: |_| vec![("Lanes", NODE_LANES)],
        defines: |_| vec![("LANES", NODE_LANES)],
        source: "sim/node.cpp",
        functions: NODE_FUNCTIONS,
    },
    // Shares of three parties, two words of each component in a beat, beside whatever garblers.
    Core {
        name: "veil_rep3",
        top: "rep3_core",
        table: "rep3",
        made: |_| true,
        most: 1,
        packages: SHARE_PACKAGES,
        folders: SHARE_FOLDERS,
        arguments: "-GCores=2",
        parameters: |_| vec![],
        defines: |_| vec![("WORDS", 2)],
        source: "sim/rep3.cpp",
        functions: &["new", "free", "key", "run", "scrub", "ready"],
    },
    // Both stages of products of four parties: a product in each cycle.
    Core {
        name: "veil_rep4_local",
        top: "rep4_local",
        table: "rep4_local",
        made: |_| true,
        most: 1,
        packages: SHARE_PACKAGES,
        folders: SHARE_FOLDERS,
        arguments: "-GFold=1",
        parameters: |_| vec![],
        defines: |_| vec![],
        source: "sim/local.cpp",
        functions: &[
            "new", "free", "key", "set", "begin", "run", "codes", "scrub", "ready",
        ],
    },
    // The first of them with one multiplier and one pipeline of AES, for comparison, where it is asked for.
    Core {
        name: "veil_rep4_folded",
        top: "rep4_local",
        table: "rep4_folded",
        made: |_| env::var_os("VEIL_RTL_FOLDED").is_some(),
        most: 1,
        packages: SHARE_PACKAGES,
        folders: SHARE_FOLDERS,
        arguments: "-GFold=6 -fno-inline",
        parameters: |_| vec![],
        defines: |_| vec![],
        source: "sim/local.cpp",
        functions: &[
            "new", "free", "key", "set", "begin", "run", "codes", "scrub", "ready",
        ],
    },
    Core {
        name: "veil_rep4_join",
        top: "rep4_join",
        table: "rep4_join",
        made: |_| true,
        most: 1,
        packages: SHARE_PACKAGES,
        folders: SHARE_FOLDERS,
        arguments: "",
        parameters: |_| vec![],
        defines: |_| vec![],
        source: "sim/join.cpp",
        functions: &["new", "free", "set", "begin", "run", "verdict", "scrub"],
    },
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to build"));
    if env::var_os("CARGO_FEATURE_SIMULATED").is_none() {
        println!("cargo::rerun-if-changed=build.rs");
        for core in &CORES {
            table(&out, core, "");
        }
        return;
    }
    for name in ["VEIL_RTL_ROWS", "VEIL_RTL_FOLDED", "VERILATOR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=sim");
    let rtl = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where a package is"))
        .join("../../rtl");
    for folder in CORES.iter().flat_map(|core| core.folders) {
        println!("cargo::rerun-if-changed={}", rtl.join(folder).display());
    }
    let verilator = env::var_os("VERILATOR").unwrap_or_else(|| "verilator".into());
    let rows = env::var("VEIL_RTL_ROWS").unwrap_or_else(|_| "2".to_owned());
    let shapes: Vec<Shape> = rows.split(',').filter_map(Shape::parse).collect();
    let root = root_of(&verilator).filter(|_| rtl.is_dir());
    let mut any = false;
    for core in &CORES {
        let mut models = String::new();
        let made = shapes.iter().filter(|shape| (core.made)(shape));
        for shape in made.take(core.most) {
            let Some(root) = &root else { break };
            match model(core, [verilator.as_ref(), root, &rtl, &out], shape) {
                Ok(model) => {
                    let _ = writeln!(models, "    {model};");
                    any = true;
                }
                Err(why) => {
                    println!(
                        "cargo::warning=no simulated {} of {} rows: {why}",
                        core.top, shape.rows
                    );
                }
            }
        }
        table(&out, core, &models);
    }
    match root {
        Some(root) if any => runtime(&root),
        Some(_) => {}
        None => {
            // It is there as soon as it can be found.
            println!("cargo::rerun-if-env-changed=PATH");
            println!("cargo::warning=no Verilator: this build has no simulated cards");
        }
    }
}

/// Writes the table of the models of a core.
fn table(out: &Path, core: &Core, models: &str) {
    let file = out.join(format!("{}.rs", core.table));
    let text = format!("{}! {{\n{models}}}\n", core.table);
    fs::write(file, text).expect("cargo's folder can be written");
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

/// Makes a core of this shape, by Verilator, from the RTL, and says under which name its functions are. `places`: Verilator, its own
/// folder, the RTL, and where to build.
fn model(core: &Core, places: [&Path; 4], shape: &Shape) -> Result<String, String> {
    let [verilator, root, rtl, out] = places;
    let rows = shape.rows;
    // What is beside garblers is the same for all of them.
    let name = match core.most {
        1 => core.name.to_owned(),
        _ => format!("{}{rows}", core.name),
    };
    let folder = out.join(&name);
    let mut sources: Vec<PathBuf> = core.packages.iter().map(|file| rtl.join(file)).collect();
    for folder in core.folders {
        let files = fs::read_dir(rtl.join(folder)).expect("the RTL is there");
        let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        files.retain(|path| path.extension() == Some(OsStr::new("sv")) && !sources.contains(path));
        files.sort();
        sources.extend(files);
    }
    let functions = core.functions.iter();
    let functions: Vec<String> = functions.map(|f| format!("{name}_{f}")).collect();
    let functions = format!("{rows}: {}", functions.join(" "));
    let mut arguments: Vec<String> = core
        .arguments
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    arguments.extend(
        (core.parameters)(shape)
            .iter()
            .map(|(of, value)| format!("-G{of}={value}")),
    );
    // What was made of the same sources is there still.
    let stamp = out.join(format!("{name}.made"));
    let made_of = digest(&sources, (root, core.source), &arguments);
    if fs::read_to_string(&stamp).is_ok_and(|made| made == made_of) {
        println!("cargo::rustc-link-lib=static={name}");
        return Ok(functions);
    }
    let _ = fs::remove_file(&stamp);
    let _ = fs::remove_dir_all(&folder);
    let mut command = Command::new(verilator);
    command
        .args(["--cc", "-O3", "--assert", "-Wno-fatal", "--top-module"])
        .arg(core.top)
        .args(&arguments)
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
        .define("ROOT", Some(format!("\"V{name}___024root.h\"").as_str()))
        .define("NAME", Some(name.as_str()))
        .files(units)
        .file(core.source);
    for (name, value) in (core.defines)(shape) {
        build.define(name, Some(value.to_string().as_str()));
    }
    build
        .try_compile(&name)
        .map_err(|error| error.to_string())?;
    fs::write(stamp, made_of).expect("cargo's folder can be written");
    Ok(functions)
}

/// What a model is made of, in a few characters: files with their names, arguments, and which Verilator.
fn digest(sources: &[PathBuf], (root, source): (&Path, &str), arguments: &[String]) -> String {
    let mut hasher = DefaultHasher::new();
    (root, arguments).hash(&mut hasher);
    let own = [source, "sim/model.h", "sim/share.h", "build.rs"].map(PathBuf::from);
    let verilator = root.join("include/verilated_config.h");
    for file in sources.iter().chain(&own).chain([&verilator]) {
        file.hash(&mut hasher);
        fs::read(file).unwrap_or_default().hash(&mut hasher);
    }
    format!("{:x}", hasher.finish())
}

/// The part of Verilator that all models use.
fn runtime(root: &Path) {
    let mut build = compiler(root);
    for unit in [
        "verilated.cpp",
        "verilated_save.cpp",
        "verilated_threads.cpp",
    ] {
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
