//! Measures the first GPU of this machine, and prints a table: `veil-gpu-bench [--look] [--emulator] [--json FILE]`. Where there is no GPU it says so, and
//! exits with 3. With `--look` that is all that it does. With `--emulator` it goes through the same on the CPU, in sizes that mean nothing.

use std::error::Error;
use std::process::ExitCode;

use veil_device::Device;
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_device_cuda::bench::{Effort, Figure, figures, limits};

/// What it exits with where there is no GPU.
const ABSENT: u8 = 3;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (mut emulator, mut look, mut json) = (false, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--emulator" => emulator = true,
            "--look" => look = true,
            "--json" => json = Some(arguments.next().ok_or("--json takes a file")?),
            other => {
                return Err(format!(
                    "veil-gpu-bench [--look] [--emulator] [--json FILE], and not {other}"
                )
                .into());
            }
        }
    }
    let (mut device, effort) = if emulator {
        println!("emulator: rates mean nothing");
        (
            Cuda::on(Box::new(Emulator::new(Order::Forward))),
            Effort::EMULATOR,
        )
    } else {
        match Cuda::open(0) {
            Ok(device) => (device, Effort::GPU),
            Err(absent) => {
                eprintln!("no GPU is measured: {absent}");
                return Ok(ExitCode::from(ABSENT));
            }
        }
    };
    if look {
        return Ok(ExitCode::SUCCESS);
    }
    let limits = limits(&mut device, effort)?;
    println!("{}", limits.table());
    println!("{}", Figure::HEADER);
    let figures = figures(&mut device, &limits, effort, |figure| {
        println!("{}", figure.row())
    })?;
    if let Some(path) = json {
        let name = device.name();
        let lines = figures.iter().map(|figure| figure.json(name) + "\n");
        std::fs::write(path, limits.json(name) + &lines.collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}
