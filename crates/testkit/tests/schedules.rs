//! Plans whose gates are in the order of hardware: numbers, sizes of programs, hashes, and that the hardware can start them so.

use std::collections::HashMap;
use std::sync::Arc;

use veil_circuit::schedule::{Machine, NO_NUMBER, Node, Read, schedule_numbered};
use veil_circuit::{Circuit, make};
use veil_device::{Dst, Instr, Program, Src};
use veil_job::{Audience, Holder, JobSpec, Rows, Schedule, Word};
use veil_math::Ring;
use veil_protocol::{Options, Plan};
use veil_testkit::sample::{between_two, everything, job, party};
use veil_testkit::{Seed, clocked};

fn plan(job: &JobSpec, schedule: Schedule) -> Plan {
    let mut job = between_two(job.clone());
    job.security.schedule = schedule;
    Plan::new(Arc::new(job), Options::default()).expect("a job of bits")
}

fn of(circuit: Circuit) -> JobSpec {
    let holders: Vec<Holder> = (0..circuit.inputs.len() as u8)
        .map(|k| Holder::Party(party(k % 2)))
        .collect();
    let audiences = vec![Audience::Parties; circuit.outputs.len()];
    job(circuit, &[(3, &holders)], &audiences)
}

fn circuits() -> Vec<JobSpec> {
    let seed = Seed::any();
    println!("{seed}");
    let mut numbers = seed.numbers("circuits");
    let mut jobs: Vec<JobSpec> = (0..20)
        .map(|_| of(clocked(Seed(numbers.next_u128() as u64))))
        .collect();
    jobs.push(of(make("aes128").expect("the catalogue has it")));
    jobs.push(of(make("mul:48").expect("the catalogue has it")));
    jobs.push(everything(Ring::Bits, &[5]));
    jobs
}

/// Products by number, over all programs of the rows.
fn numbers(plan: &Plan) -> Vec<u32> {
    let mut first = 0;
    let mut numbers = Vec::new();
    for layer in &plan.layers {
        assert!(layer.products <= 8192);
        for instr in &plan.programs[layer.program].code {
            if let Instr::Product { index, .. } = instr {
                numbers.push(first + index);
            }
        }
        first += layer.products;
    }
    numbers
}

/// Every schedule has the same products, of the same depth, each with a number; no two have one hash.
#[test]
fn a_schedule_orders_gates_and_changes_nothing_else() {
    for job in circuits() {
        let usual = plan(&job, Schedule::Layers);
        let mut hashes = vec![usual.hash];
        for &schedule in &Schedule::ALL[1..] {
            let listed = plan(&job, schedule);
            assert_eq!(listed.products(), usual.products(), "{}", schedule.word());
            assert_eq!(listed.depth, usual.depth);
            assert_eq!(
                (&listed.inputs, listed.job_wide),
                (&usual.inputs, usual.job_wide)
            );
            let mut numbers = numbers(&listed);
            numbers.sort_unstable();
            assert!(numbers.iter().copied().eq(0..numbers.len() as u32));
            assert_eq!(listed.hash, plan(&job, schedule).hash);
            assert!(!hashes.contains(&listed.hash), "{}", schedule.word());
            hashes.push(listed.hash);
        }
    }
}

/// The gates of a program, from what its instructions write and read.
fn nodes(program: &Program) -> (Vec<Node>, Vec<u32>) {
    let mut at: HashMap<(bool, u32), Option<u32>> = HashMap::new();
    let (mut nodes, mut numbers) = (Vec::new(), Vec::new());
    for instr in &program.code {
        let made = |src: &Src| {
            let node = match *src {
                Src::Slot(slot) => at.get(&(true, slot)),
                Src::Temp(temp) => at.get(&(false, temp)),
                Src::JobWide(_) => None,
            };
            node.copied().flatten()
        };
        let read = |src: &Src| made(src).map(|node| Read { node, distance: 0 });
        let place = |dst: &Dst| match *dst {
            Dst::Slot(slot) => (true, slot),
            Dst::Temp(temp) => (false, temp),
        };
        let (to, gate) = match instr {
            Instr::Add(a, b, out) | Instr::Sub(a, b, out) => {
                (place(out), Some((false, [read(a), read(b)], NO_NUMBER)))
            }
            Instr::Product { pairs, out, index } => {
                let (a, b) = &program.pairs[pairs.start as usize];
                ((true, *out), Some((true, [read(a), read(b)], *index)))
            }
            Instr::Plus(a, _, out) | Instr::Times(a, _, out) | Instr::Copy(a, out) => {
                let value = made(a);
                at.insert(place(out), value);
                continue;
            }
            Instr::Constant(_, out) => (place(out), None),
            Instr::ProductSum { .. } | Instr::Sum(..) => unreachable!("bits have no sums"),
        };
        let node = gate.map(|(product, reads, number)| {
            nodes.push(Node { product, reads });
            numbers.push(number);
            nodes.len() as u32 - 1
        });
        at.insert(to, node);
    }
    (nodes, numbers)
}

/// What the hardware makes of the numbers of a plan is as good as what the planner had in mind: hardly a row is idle.
#[test]
fn hardware_starts_gates_by_the_numbers_of_a_plan() {
    for (name, rows, most) in [
        ("aes128", Rows::Two, 1.02),
        ("aes128", Rows::Eight, 1.1),
        ("mul:48", Rows::Four, 1.15),
    ] {
        let circuit = make(name).expect("the catalogue has it");
        let plan = plan(&of(circuit), Schedule::List(rows));
        let (mut starts, mut gates) = (0, 0);
        let machine = Machine::garbler(rows.count());
        for layer in plan.layers.iter().filter(|layer| layer.products > 0) {
            let (nodes, numbers) = nodes(&plan.programs[layer.program]);
            let found = schedule_numbered(&nodes, &machine, 1, &numbers);
            let found = found.expect("numbers in the order of starts");
            assert_eq!(found.check(&nodes, &machine), Ok(()));
            starts += found.total(1);
            gates += nodes.len();
        }
        let bound = gates.div_ceil(rows.count() as usize);
        let ratio = starts as f64 / bound as f64;
        assert!(
            ratio <= most,
            "{name}: {starts} cycles, {bound} if no row is ever idle"
        );
    }
}
