//! `veil bench gpu`: what a GPU can do at most, then what devices do by it, as three rates beside the bounds that follow from it.

use miette::{IntoDiagnostic, Result, miette};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_device_cuda::bench::{Effort, Figure, figures, limits};

use super::{BenchArgs, print_json, short};

/// What a GPU can do.
#[derive(serde::Serialize)]
struct Limit<'a> {
    bench: &'a str,
    device: &'a str,
    what: &'a str,
    unit: &'a str,
    per_s: f64,
}

/// What a device does by it.
#[derive(serde::Serialize)]
struct Row<'a> {
    bench: &'a str,
    device: &'a str,
    what: &'a str,
    unit: &'a str,
    kernel_per_s: f64,
    pinned_per_s: f64,
    end_to_end_per_s: f64,
    /// What the kernels could do at most, and what they would wait for; the same with copies.
    kernel_bound_per_s: f64,
    kernel_bound_by: &'a str,
    pinned_bound_per_s: f64,
    pinned_bound_by: &'a str,
}

/// A GPU, or the emulator of one in its place.
pub(super) fn device(args: &BenchArgs) -> Result<Cuda> {
    match args.device.as_deref().unwrap_or("cuda") {
        "cuda" => Cuda::open(0).map_err(|absent| {
            miette!(
                help = "`make gpu-bundle` makes what measures one elsewhere; `--device cuda-sim` does the same here, and its rates mean nothing",
                "no GPU is measured: {absent}"
            )
        }),
        "cuda-sim" => Ok(Cuda::on(Box::new(Emulator::new(Order::Forward)))),
        other => Err(miette!(
            help = "--device takes one of: cuda, cuda-sim",
            "`{other}` has no kernels"
        )),
    }
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let name = args.device.as_deref().unwrap_or("cuda");
    let mut device = device(args)?;
    let effort = if name == "cuda" {
        Effort::GPU
    } else {
        Effort::EMULATOR
    };
    if !args.json && name != "cuda" {
        println!("Emulated: rates mean nothing.\n");
    }
    let limits = limits(&mut device, effort).into_diagnostic()?;
    for (what, unit, per_s) in limits.rows() {
        if !args.json {
            println!("{what:<32} {:>10} {unit}", short(per_s));
            continue;
        }
        print_json(&Limit {
            bench: "gpu-limit",
            device: name,
            what,
            unit,
            per_s,
        })?;
    }
    if !args.json {
        println!("\n{HEADER}");
    }
    let mut said = Ok(());
    let each = |figure: Figure| {
        if args.json {
            let printed = print_json(&row(name, &figure));
            said = std::mem::replace(&mut said, Ok(())).and(printed);
        } else {
            print(&figure);
        }
    };
    figures(device, &limits, effort, each).into_diagnostic()?;
    said
}

fn row<'a>(device: &'a str, figure: &Figure) -> Row<'a> {
    let [kernel_per_s, pinned_per_s, end_to_end_per_s] = figure.rates;
    Row {
        bench: "gpu",
        device,
        what: figure.name,
        unit: figure.unit,
        kernel_per_s,
        pinned_per_s,
        end_to_end_per_s,
        kernel_bound_per_s: figure.kernel_bound.0,
        kernel_bound_by: figure.kernel_bound.1,
        pinned_bound_per_s: figure.pinned_bound.0,
        pinned_bound_by: figure.pinned_bound.1,
    }
}

const HEADER: &str = "what                 unit             kernel/s   of bound   pinned/s   of bound   end to end/s   the kernel waits for";

fn print(figure: &Figure) {
    let [kernel, pinned, whole] = figure.rates;
    println!(
        "{:<20} {:<14} {:>10} {:>9.0}% {:>10} {:>9.0}% {:>14}   {}",
        figure.name,
        figure.unit,
        short(kernel),
        100.0 * kernel / figure.kernel_bound.0,
        short(pinned),
        100.0 * pinned / figure.pinned_bound.0,
        short(whole),
        figure.kernel_bound.1,
    );
}
