//! `veil-lab bench gpu`: what a GPU can do at most, then what devices do by it, as three rates beside the bounds that follow from it.

use miette::{IntoDiagnostic, Result, miette};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_device_cuda::bench::{Effort, Figure, figures, limits};

use super::BenchArgs;

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
    if args.json {
        print!("{}", limits.json(name));
    } else {
        println!("{}\n{}", limits.table(), Figure::HEADER);
    }
    let each = |figure: Figure| {
        let said = if args.json {
            figure.json(name)
        } else {
            figure.row()
        };
        println!("{said}");
    };
    figures(device, &limits, effort, each).into_diagnostic()
}
