//! `veil-lab bench`: how fast, at what part of the bound, with how many bytes and how much memory.

mod asked;
mod chart;
mod common;
mod cut;
mod figure;
mod fits;
mod fixmul;
mod forest;
mod fpga;
mod garble;
mod gpu;
mod infer;
mod links;
mod matmul;
mod measure;
mod ot;
mod psi;
mod random;
mod relations;
mod share;
mod silent;
mod stock;
mod stream;
mod tpch;
mod vole;
mod workload;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use miette::{IntoDiagnostic, Result, miette};
use veil_cli::devices::{self, Registry};
use veil_engine::DeviceFactory;
use veil_job::{Adversary, Ot, ProtocolKind, Security, Statistical, Tables};
use veil_link::shape;
use veil_program::Words;

use fits::Fitted;
use measure::{Carrier, Row, Setup, measure};
use relations::Operator;
use workload::Name;

/// Measures a protocol on this machine.
#[derive(clap::Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of a command, each of which is there or not"
)]
#[command(after_help = "Examples:
  veil-lab bench and                       ANDs in process and over TLS on loopback
  veil-lab bench aes --cores 1..2          AES blocks per second against cores
  veil-lab bench aes --batch 1             the latency of one block
  veil-lab bench mul128 --protocol rep4    products among four parties, checked
  veil-lab bench garble --svg fig.svg      ANDs garbled and evaluated on one core, against the rows of a chunk
  veil-lab bench yao --svg yao.svg         ANDs garbled and evaluated, in process and over TLS; then against the link
  veil-lab bench ag                        the same against a malicious party
  veil-lab bench ag --ot silent            the same with transfers that take hardly any bytes
  veil-lab bench ag-prepare                products made ahead, and runs that take them
  veil-lab bench yao --ands 1e9            so many over cycles and over a batch, and what a party's memory is; of ag as well
  veil-lab bench cut --svg cut.svg         AES-128 against a malicious party, against the statistical parameter
  veil-lab bench rep4-mul --svg fig3.svg   cores that fill 10 and 100 Gb/s, semi-honest and malicious
  veil-lab bench a2b --cores 2             a million integers taken apart into bits
  veil-lab bench fpga-garble --circuits netlists --svg fpga.svg
                                       clock cycles of garbling cores, simulated, for a paper's netlists
  veil-lab bench fpga-share --svg fpga.svg cores of replicated sharing, simulated, beside two papers (three plots: fpga-*.svg)
  veil-lab bench gpu                       what a GPU can do, then each primitive alone, with copies, and end to end
  veil-lab bench aes --device cuda --batch 4000000 --cores 8
                                       AES blocks of three parties that compute on the GPU, eight lanes each
  veil-lab bench cut --device cuda         both parties on a GPU, and how long its kernels take
  veil-lab bench lift                      bits to integers in Z_2^32, and nothing else
  veil-lab bench join --batch 100000       rows that look up others by a secret key, each of which has its own
  veil-lab bench matmul --shape 512x512x512 --protocol rep4
                                       a product of matrices among four parties, checked
  veil-lab bench fixmul --protocol rep4    fixed-point products, each truncated, among four parties: only a sum of all is opened
  veil-lab bench logreg --batch 100000 --features 30 --link tls
  veil-lab bench tree --batch 100000 --features 11 --steps 4 --link tls
  veil-lab bench forest --protocol rep4    public trees on secret rows, among four parties
  veil-lab bench infer --cores 2           classes of 64 images by a network of the shape of LeNet-5
  veil-lab bench tpch --sf 0.01 --query q03
                                       a question of TPC-H, compared with what it means
  veil-lab bench ot --svg ot.svg           random oblivious transfers between two parties
  veil-lab bench ot --silent               correlated ones that take hardly any bytes, for sets of parameters
  veil-lab bench ot --vole                 products of random blocks with the sender's offset
  veil-lab bench psi --opens size          how many of 65536 keys of two lists are in both
  veil-lab bench mul64 --net wan --json    over a link of 40 ms and 1 Gb/s, as JSON lines

The unit is operations per CPU-second of all participants together; the bound is what this machine's AES allows if
nothing but the masks is made, measured in the same run.")]
pub(crate) struct BenchArgs {
    /// What to measure.
    name: What,
    /// The protocol to measure: rep3, rep4 or yao [default: rep3; of rep4-mul rep4, of yao yao].
    #[arg(long, value_name = "NAME")]
    protocol: Option<ProtocolKind>,
    /// Against one party that is semi-honest or malicious [default: rep3 semi-honest, rep4 malicious; rep4-mul both].
    #[arg(long, value_name = "WHICH")]
    adversary: Option<Adversary>,
    /// How yao garbles gates: half-gates or three-halves [default: half-gates].
    #[arg(long, value_name = "WHICH")]
    tables: Option<Tables>,
    /// A cheat of cut-and-choose gets away with probability 2^-S [default: 40].
    #[arg(long, value_name = "S")]
    statistical: Option<Statistical>,
    /// Where the transfers of ag come from: extension or silent [default: extension]. Where silent ones would send more, the extension is measured.
    #[arg(long, value_name = "WHICH")]
    ot: Option<Ot>,
    /// The device of all parties, of `veil-lab device list` [default: the fastest CPU device]. Of gpu and cut: cuda or cuda-sim [default of
    /// gpu: cuda].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Rows computed together (default: as in docs/benchmarks.md).
    #[arg(long)]
    batch: Option<u64>,
    /// Cores: a number, or a range such as 1..4.
    #[arg(long, default_value = "1", value_parser = cores)]
    cores: (u16, u16),
    /// Links to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Carrier::Memory, Carrier::Tls])]
    link: Vec<Carrier>,
    /// Add the delay and the rate of a network: lan or wan.
    #[arg(long)]
    net: Option<shape::Profile>,
    /// Rows of a chunk (default: chosen from the circuit).
    #[arg(long)]
    chunk_rows: Option<u32>,
    /// So many ANDs of yao or ag, over the cycles of a netlist and then over the rows of a batch, each party a process of its own; fails if one of
    /// them takes more than 64 MB, of a batch of ag 104 MB.
    #[arg(long, value_name = "N", value_parser = stream::ands,
        conflicts_with_all = ["batch", "cores", "link", "chunk_rows", "repeat", "svg"])]
    ands: Option<u64>,
    /// Of ot silent transfers, by learning parity with noise.
    #[arg(long)]
    silent: bool,
    /// Of ot vectors of products with the sender's offset.
    #[arg(long)]
    vole: bool,
    /// Of psi what is opened of the keys that both lists have: keys, size, sums or columns [default: keys].
    #[arg(long, value_name = "WHAT", value_parser = common::opens)]
    opens: Option<veil_program::Shows>,
    /// The scale factor of tpch [default: 0.01].
    #[arg(long, value_name = "SF", value_parser = tpch::scale)]
    sf: Option<f64>,
    /// Questions of tpch, such as q03 or 1,6 [default: all 22].
    #[arg(long, value_name = "NAME", value_parser = tpch::question, value_delimiter = ',')]
    query: Vec<tpch::Question>,
    /// The shape of matmul: N rows and K columns times M columns [default: 1024x1024x1024].
    #[arg(long, value_name = "NxKxM", value_parser = matmul::shape, conflicts_with = "batch")]
    shape: Option<matmul::Shape>,
    /// Of matmul the transposed left matrix times the right one, which has N rows as well: these are added up.
    #[arg(long)]
    transposed: bool,
    /// Binary places of the numbers of fixmul, from 1 to 30 [default: 16].
    #[arg(long, value_name = "N", value_parser = fixmul::places)]
    places: Option<u32>,
    /// How the products of fixmul lose their last places [default: both ways; exact where three parties check integers].
    #[arg(long, value_name = "WHICH")]
    truncation: Option<fixmul::Truncation>,
    /// Features of logreg and of tree [default: 30 and 11].
    #[arg(long, value_name = "N")]
    features: Option<u32>,
    /// Steps of logreg, levels of splits of tree [default: 8 and 4].
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
    /// Steps of logreg are those of gradient descent over all rows, and not Newton's.
    #[arg(long)]
    gradient: bool,
    /// Runs, of which the median by CPU time is told.
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// Write down every round of the last run of a job. `veil-lab trace` draws it.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one JSON object per row.
    #[arg(long)]
    json: bool,
    /// The folder with the netlists of fpga-garble, which are no part of this project [default: $VEIL_CIRCUITS].
    #[arg(long, value_name = "DIR")]
    circuits: Option<PathBuf>,
    /// Write a plot to this file; of fpga-share one to each of several files beside it, NAME-cores.svg and so on.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What is measured: a job of its own, or transfers without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Job(Name),
    Relations(Operator),
    Matmul,
    Fixmul,
    Logreg,
    Tree,
    Forest,
    Infer,
    Tpch,
    Ot,
    AgPrepare,
    Psi,
    Gpu,
    FpgaGarble,
    FpgaShare,
}

impl clap::ValueEnum for What {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<What>> = LazyLock::new(|| {
            let jobs = Name::value_variants().iter().map(|name| What::Job(*name));
            let operators = Operator::value_variants().iter();
            let operators = operators.map(|operator| What::Relations(*operator));
            jobs.chain(operators)
                .chain([
                    What::Matmul,
                    What::Fixmul,
                    What::Forest,
                    What::Infer,
                    What::Logreg,
                    What::Tree,
                    What::Tpch,
                    What::Ot,
                    What::AgPrepare,
                    What::Psi,
                    What::Gpu,
                ])
                .chain([What::FpgaGarble, What::FpgaShare])
                .collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            What::Job(name) => name.to_possible_value(),
            What::Relations(operator) => operator.to_possible_value(),
            What::Matmul => {
                let help = "A product of matrices in Z_2^64, beside plain ones of the same shape";
                Some(clap::builder::PossibleValue::new("matmul").help(help))
            }
            What::Fixmul => {
                let help = "Products of fixed-point numbers in Z_2^64 that lose their last places: 16 of 8 numbers in every row, of which one sum over all rows is opened, and compared with what it means";
                Some(clap::builder::PossibleValue::new("fixmul").help(help))
            }
            What::Forest => {
                let help = "A hundred trees of depth 8 in every row, compared with what they mean";
                Some(clap::builder::PossibleValue::new("forest").help(help))
            }
            What::Infer => {
                let help =
                    "A network of the shape of LeNet-5 over images, compared with what it means";
                Some(clap::builder::PossibleValue::new("infer").help(help))
            }
            What::Logreg => {
                let help =
                    "A logistic regression by Newton's method, opened with its standard errors";
                Some(clap::builder::PossibleValue::new("logreg").help(help))
            }
            What::Tree => {
                let help = "A decision tree that is grown among parties, and opened";
                Some(clap::builder::PossibleValue::new("tree").help(help))
            }
            What::Tpch => {
                let help = "Questions of TPC-H in SQL, on tables of its generator";
                Some(clap::builder::PossibleValue::new("tpch").help(help))
            }
            What::Ot => {
                let help =
                    "Random oblivious transfers between two parties, for trees of every size";
                Some(clap::builder::PossibleValue::new("ot").help(help))
            }
            What::AgPrepare => {
                let help = "Stock of two parties against a malicious one: how fast it is made, and what takes it";
                Some(clap::builder::PossibleValue::new("ag-prepare").help(help))
            }
            What::Psi => {
                let help =
                    "Keys of two lists that meet, between parties of whom either may be malicious";
                Some(clap::builder::PossibleValue::new("psi").help(help))
            }
            What::Gpu => {
                let help = "What a GPU can do at most, and what devices do by it";
                Some(clap::builder::PossibleValue::new("gpu").help(help))
            }
            What::FpgaGarble => {
                let help = "Clock cycles of garbling cores for the netlists of a paper";
                Some(clap::builder::PossibleValue::new("fpga-garble").help(help))
            }
            What::FpgaShare => {
                let help = "Products in a second of cores of replicated sharing, and what they take of an FPGA";
                Some(clap::builder::PossibleValue::new("fpga-share").help(help))
            }
        }
    }
}

fn cores(text: &str) -> Result<(u16, u16), String> {
    let number = |t: &str| {
        t.parse::<u16>()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| format!("`{t}` is no number of cores"))
    };
    match text.split_once("..") {
        Some((from, to)) => {
            let range = (number(from)?, number(to.trim_start_matches('='))?);
            if range.0 <= range.1 {
                Ok(range)
            } else {
                Err("the range is empty".into())
            }
        }
        None => number(text).map(|n| (n, n)),
    }
}

impl BenchArgs {
    fn setup(&self, device: &DeviceFactory, carrier: Carrier, cores: u16) -> Setup {
        Setup {
            carrier,
            net: self.net,
            cores,
            chunk_rows: self.chunk_rows,
            repeat: self.repeat,
            device: Arc::clone(device),
            trace: self.trace.clone(),
        }
    }

    /// How the protocol protects, against the adversary that was asked for; `words` say what else was.
    fn security(&self, sharing: ProtocolKind, words: Words) -> Result<Security> {
        let words = Words {
            protocol: Some(sharing),
            adversary: words.adversary.or(self.adversary),
            ..words
        };
        words.among(sharing.parties()).into_diagnostic()
    }

    /// A row of results, as it is asked for.
    fn show(&self, row: &Row) -> Result<()> {
        if self.json {
            return print_json(row);
        }
        print(row);
        Ok(())
    }

    /// A chart of all rows, if one is asked for.
    fn draw(&self, rows: &[Row]) -> Result<()> {
        match &self.svg {
            Some(path) => chart::write(rows, path),
            None => Ok(()),
        }
    }

    /// What makes the device of each lane. One that is not here is said now.
    fn devices(&self, registry: &Arc<dyn Registry>) -> Result<DeviceFactory> {
        Ok(devices::maker(
            self.device.as_deref().unwrap_or(devices::CPU),
            registry,
        )?)
    }
}

fn print_json(row: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(row).into_diagnostic()?);
    Ok(())
}

/// Runs the command.
pub(crate) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let name = match args.name {
        What::Job(Name::Yao) if args.ands.is_some() => {
            return stream::run(args, Adversary::SemiHonest, registry);
        }
        What::Job(Name::Ag) if args.ands.is_some() => {
            return stream::run(args, Adversary::Malicious, registry);
        }
        _ if args.ands.is_some() => {
            return Err(miette!(
                help = "`veil-lab bench yao --ands 1e9`, `veil-lab bench ag --ands 1e9`; others take `--batch`",
                "--ands is of yao and ag"
            ));
        }
        name if name != What::Tpch && (args.sf.is_some() || !args.query.is_empty()) => {
            return Err(miette!(
                help = "`veil-lab bench tpch --sf 0.01 --query q03`",
                "--sf and --query are of tpch"
            ));
        }
        name if name != What::Ot && (args.silent || args.vole) => {
            return Err(miette!(
                help = "`veil-lab bench ot --silent`, `veil-lab bench ot --vole`",
                "--silent and --vole are of ot"
            ));
        }
        name if name != What::Job(Name::Ag) && args.ot.is_some() => {
            return Err(miette!(
                help = "`veil-lab bench ag --ot silent`",
                "--ot is of ag"
            ));
        }
        name if name != What::Psi && args.opens.is_some() => {
            return Err(miette!(
                help = "`veil-lab bench psi --opens size`",
                "--opens is of psi"
            ));
        }
        name if !matches!(name, What::Logreg | What::Tree)
            && (args.features.is_some() || args.steps.is_some()) =>
        {
            return Err(miette!(
                help = "`veil-lab bench logreg --batch 100000 --features 30 --steps 8`",
                "--features and --steps are of logreg and tree"
            ));
        }
        name if name != What::Logreg && args.gradient => {
            return Err(miette!(
                help = "`veil-lab bench logreg --gradient`",
                "--gradient is of logreg"
            ));
        }
        name if name != What::Matmul && (args.shape.is_some() || args.transposed) => {
            return Err(miette!(
                help = "`veil-lab bench matmul --shape 1024x1024x1024`",
                "--shape and --transposed are of matmul"
            ));
        }
        name if name != What::Fixmul && (args.places.is_some() || args.truncation.is_some()) => {
            return Err(miette!(
                help = "`veil-lab bench fixmul --places 20 --truncation exact`",
                "--places and --truncation are of fixmul"
            ));
        }
        What::Ot | What::FpgaGarble | What::FpgaShare | What::Job(Name::Garble)
            if args.device.is_some() =>
        {
            return Err(miette!(
                help = "others take it: `veil-lab bench and --device cuda`",
                "--device has no meaning here: what is measured says the device"
            ));
        }
        What::Matmul => return matmul::run(args, registry),
        What::Fixmul => return fixmul::run(args, registry),
        What::Logreg => return fits::run(args, registry, Fitted::Logistic),
        What::Tree => return fits::run(args, registry, Fitted::Tree),
        What::Forest => return forest::run(args, registry),
        What::Infer => return infer::run(args, registry),
        What::Tpch => return tpch::run(args, registry),
        What::Ot => return ot::run(args),
        What::AgPrepare => return stock::run(args, registry),
        What::Psi => {
            return match args.opens {
                None | Some(veil_program::Shows::Keys) => psi::run(args, registry),
                Some(shows) => common::run(args, registry, shows),
            };
        }
        What::Gpu => return gpu::run(args),
        What::FpgaGarble => return fpga::run(args),
        What::FpgaShare => return share::run(args),
        What::Job(Name::Rep4Mul) => return figure::run(args, registry),
        What::Job(Name::Garble) => return garble::run(args),
        What::Job(Name::Cut) => return cut::run(args),
        What::Relations(operator) => return relations::run(args, operator, registry),
        What::Job(name) => name,
    };
    let batch = args.batch.unwrap_or_else(|| name.batch()).max(1);
    let usual = match name {
        Name::Yao | Name::Ag => ProtocolKind::Yao,
        _ => ProtocolKind::Rep3,
    };
    let sharing = args.protocol.unwrap_or(usual);
    let words = Words {
        tables: args.tables,
        statistical: args.statistical,
        ot: args.ot,
        adversary: (name == Name::Ag).then_some(Adversary::Malicious),
        ..Words::default()
    };
    let security = args.security(sharing, words)?;
    let workload = name.workload(batch, security);
    let device = args.devices(registry)?;
    let mut rows = Vec::new();
    if !args.json {
        println!("{HEADER}");
    }
    for &carrier in &args.link {
        for cores in args.cores.0..=args.cores.1 {
            let row = measure(&workload, &args.setup(&device, carrier, cores))?;
            args.show(&row)?;
            rows.push(row);
        }
    }
    match &args.svg {
        Some(path) if name == Name::Yao => links::run(args, &device, path),
        _ => args.draw(&rows),
    }
}

const HEADER: &str = "bench     link    net   cores      batch   per CPU-s      per s   of masks   of bytes   B/op   Gb/s/party   MB   online ms   set-up ms (kept)";

fn print(row: &Row) {
    let Row {
        bench,
        link,
        net,
        cores,
        batch,
        ..
    } = row;
    let kept = (row.kept_set_up_ms).map_or_else(String::new, |ms| format!("({ms:.2})"));
    println!(
        "{bench:<9} {link:<7} {net:<5} {cores:>5} {batch:>10} {:>11} {:>10} {:>9.0}% {:>9.0}% {:>6.3} {:>12.2} {:>4.0} {:>11.2} {:>11.2} {kept}",
        short(row.rate_per_cpu_s),
        short(row.rate_per_s),
        row.bound_fraction * 100.0,
        row.bytes_fraction * 100.0,
        row.bytes_per_op,
        row.gbit_per_s,
        row.peak_rss_mb,
        row.online_ms,
        row.set_up_ms,
    );
}

/// Three digits and a unit.
fn short(x: f64) -> String {
    match x {
        x if x >= 1e9 => format!("{:.2} G", x / 1e9),
        x if x >= 1e6 => format!("{:.2} M", x / 1e6),
        x if x >= 1e3 => format!("{:.2} k", x / 1e3),
        x => format!("{x:.2}"),
    }
}
