//! Protocols on the first GPU of this machine: whether messages are those of the reference device, how fast what devices do is, and how long both parties
//! of cut-and-choose take. It is what a machine without anything but a driver is given (`make gpu-bundle`); elsewhere `veil-lab bench gpu` does the last two.
//!
//!     on_gpu [--look | --emulator] [--json FILE]
//!
//! Exits with 3 where there is no GPU that the kernels run on. With `--look` it says what the GPU has, launches the kernel that needs most of it, and does
//! nothing else. `--emulator` does the same on the CPU, in sizes that mean nothing. FILE gets each number as soon as it is measured.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::sync::PoisonError;
use std::time::Duration;

use veil_device::{Cpu, Device};
use veil_device_cuda::backend::{Absent, Emulator, Order, facts};
use veil_device_cuda::bench::{Effort, Figure, figures, limits};
use veil_device_cuda::{Cuda, Seconds};
use veil_job::{JobSpec, Statistical, Word};
use veil_math::Ring;
use veil_testkit::sample::{against_malicious, among_four, between_two, cut, everything, peer};
use veil_testkit::{Seed, World};

/// What it exits with where there is no GPU.
const ABSENT: u8 = 3;

/// Makes devices.
type Make = fn() -> Result<Cuda, Absent>;

#[expect(clippy::unnecessary_wraps, reason = "a GPU may be absent")]
fn emulated() -> Result<Cuda, Absent> {
    Ok(Cuda::on(Box::new(Emulator::new(Order::Forward))))
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    veil_device_cuda::prepare();
    let (mut make, mut look, mut json): (Make, _, _) = (|| Cuda::open(0), false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--emulator" => make = emulated,
            "--look" => look = true,
            "--json" => json = Some(arguments.next().ok_or("--json takes a file")?),
            other => return Err(format!("there is no option {other}").into()),
        }
    }
    let device = match make() {
        Ok(device) => device,
        Err(absent) => {
            eprintln!("no GPU: {absent}");
            return Ok(ExitCode::from(ABSENT));
        }
    };
    let emulated = device.name() != "cuda";
    if look {
        if !emulated {
            println!("{}", facts(0)?);
        }
        first(make);
        return Ok(ExitCode::SUCCESS);
    }
    if emulated {
        println!("emulated: rates mean nothing");
    }
    let mut lines: Box<dyn Write> = match json {
        Some(path) => Box::new(std::fs::File::create(path)?),
        None => Box::new(std::io::sink()),
    };
    messages(make)?;
    rates(device, emulated, &mut lines)?;
    circuits(make, emulated, &mut lines)?;
    Ok(ExitCode::SUCCESS)
}

/// A first job on it: a program over bits with several levels, and so a cooperative launch of blocks that have all tables of AES in shared memory.
fn first(make: Make) {
    let rows = 4096;
    let world = World::in_chunks(everything(Ring::Bits, &[rows]), rows as u32, 1).seed(Seed(1));
    world.devices(move |_| opened(make)).run().assert_right();
    println!("a job on it: right");
}

/// Of both devices: what the parties of a run send.
fn messages(make: Make) -> Result<(), Box<dyn Error>> {
    let bits = || everything(Ring::Bits, &[130, 70]);
    let words = || everything(Ring::Z64, &[130, 70]);
    let jobs: [(&str, u32, JobSpec); 8] = [
        ("rep3", 64, bits()),
        ("rep3, integers", 64, words()),
        ("rep3, malicious", 64, against_malicious(bits())),
        ("rep4", 64, among_four(bits())),
        ("rep4, malicious", 64, against_malicious(among_four(bits()))),
        (
            "rep4, integers, malicious",
            64,
            against_malicious(among_four(words())),
        ),
        ("yao", 64, between_two(bits())),
        ("yao, cut-and-choose", 1, cut("adder:16", 2)),
    ];
    for (name, rows, job) in jobs {
        let world = || World::in_chunks(job.clone(), rows, 1).seed(Seed(1));
        let own = world().devices(move |_| opened(make)).run();
        if own.assert_right().digests() != world().run().assert_right().digests() {
            return Err(format!("{name}: other messages than those of the reference").into());
        }
        println!("messages of {name}: those of the reference");
    }
    Ok(())
}

/// A device that was there before.
fn opened(make: Make) -> Box<dyn Device> {
    match make() {
        Ok(device) => Box::new(device),
        Err(absent) => panic!("the GPU has gone: {absent}"),
    }
}

fn rates(mut device: Cuda, emulated: bool, lines: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let name = device.name();
    let effort = if emulated {
        Effort::EMULATOR
    } else {
        Effort::GPU
    };
    let limits = limits(&mut device, effort)?;
    println!("\n{}\n{}", limits.table(), Figure::HEADER);
    write!(lines, "{}", limits.json(name))?;
    let mut written = Ok(());
    figures(device, &limits, effort, |figure| {
        println!("{}", figure.row());
        if written.is_ok() {
            written = writeln!(lines, "{}", figure.json(name));
        }
    })?;
    Ok(written?)
}

/// AES-128 by cut-and-choose, links in memory, one party after the other: from the set-up to the result, and kernels of each party by the clock of the GPU;
/// the same on this processor.
fn circuits(make: Make, emulated: bool, lines: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    println!(
        "\nAES-128 by cut-and-choose, ms: parties in turns, links in memory\n  s   GPU   its kernels (garbler, evaluator)   CPU"
    );
    let name = if emulated { "cuda-sim" } else { "cuda" };
    let decades = |s: &&Statistical| s.bits() % 10 == 9 && (!emulated || s.bits() == 9);
    let circuit = if emulated { "adder:16" } else { "aes128" };
    for s in Statistical::ALL.iter().filter(decades) {
        let mut job = cut(circuit, 1);
        job.security.statistical = *s;
        let world = || World::in_chunks(job.clone(), 1, 1).timeout(Duration::from_secs(300));
        let clocks = [Seconds::default(), Seconds::default()];
        let timed = clocks.clone();
        let run = |world: World| {
            let outcome = world.run();
            let reports = outcome.assert_right().reports.values();
            let took = reports.map(|r| r.results.saturating_sub(r.set_up));
            took.max().unwrap_or_default().as_secs_f64() * 1e3
        };
        // What is made once is made before.
        let gpu = [(), ()].map(|()| {
            for clock in &timed {
                *clock.lock().unwrap_or_else(PoisonError::into_inner) = 0.0;
            }
            let timed = timed.clone();
            run(world().devices(move |who| match make() {
                Ok(device) => Box::new(device.timed(&timed[usize::from(who != peer(0))])),
                Err(absent) => panic!("the GPU has gone: {absent}"),
            }))
        })[1];
        let cpu = run(world().devices(|_| Box::new(Cpu::detect())));
        let kernels =
            clocks.map(|clock| *clock.lock().unwrap_or_else(PoisonError::into_inner) * 1e3);
        let [garbler, evaluator] = kernels;
        println!(
            "{:>3} {gpu:>7.1} {garbler:>12.2} {evaluator:>8.2} {cpu:>16.1}",
            s.bits()
        );
        writeln!(
            lines,
            r#"{{"bench":"gpu-cut","device":"{name}","circuit":"{circuit}","statistical":{},"online_ms":{gpu:.3},"garbler_kernel_ms":{garbler:.3},"evaluator_kernel_ms":{evaluator:.3},"cpu_ms":{cpu:.3}}}"#,
            s.bits()
        )?;
    }
    Ok(())
}
