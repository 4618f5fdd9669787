//! `veil-lab bench shuffle|sort|sort64|groupby|join`: rows that move.

use std::hint::black_box;
use std::sync::Arc;

use miette::{IntoDiagnostic, Result, miette};
use veil_cli::devices::Registry;
use veil_job::passes::{ColumnForm, MoveKind, PassSpec, ProgramSpec};
use veil_job::{Audience, Holder, ProtocolKind, Security};
use veil_math::Ring;
use veil_operators::{Builder, Duplicates, GroupKey, Key, Participants, Shared, Sharing};
use veil_program::Words;
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::PartyId;

use super::measure::{Course, data, measure_program, thread_cpu};
use super::{BenchArgs, HEADER};

/// What is measured of relations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Operator {
    /// Rows of 32 bytes, moved by a permutation that no party knows
    Shuffle,
    /// Rows of 16 bytes beside a key of 32 bits, sorted by it
    Sort,
    /// The same with keys of 64 bits
    Sort64,
    /// Rows grouped by a secret key of 32 bits, with two sums
    Groupby,
    /// Rows that look up 8 bytes by a key of 32 bits, in as many others of which each has its own
    Join,
}

impl Operator {
    const fn name(self) -> &'static str {
        match self {
            Operator::Shuffle => "shuffle",
            Operator::Sort => "sort",
            Operator::Sort64 => "sort64",
            Operator::Groupby => "groupby",
            Operator::Join => "join",
        }
    }

    /// Party 0 supplies the rows, and they are opened to party 1.
    fn program(self, rows: u32, security: Security) -> ProgramSpec {
        let parties = 0..security.protocol.parties();
        let mut b = Builder::new(Participants {
            name: format!("bench {}", self.name()),
            owners: vec![],
            parties: parties.map(|party| format!("party {party}")).collect(),
            recipients: vec![],
            security,
        });
        let (from, to) = (
            Holder::Party(PartyId::THREE[0]),
            Audience::Party(PartyId::THREE[1]),
        );
        // Of eight bytes, as these parties move them.
        let sharing = if security.moves_integers() {
            Sharing::Ring(Ring::Z64)
        } else {
            Sharing::Bits(64)
        };
        let integers = |b: &mut Builder, count: usize| -> Vec<_> {
            (0..count)
                .map(|k| b.input(from, &format!("x{k}"), rows, sharing))
                .collect()
        };
        let moved = match self {
            Operator::Shuffle => {
                let columns = integers(&mut b, 4);
                b.shuffle(&columns)
            }
            Operator::Groupby => {
                let key = b.input(from, "key", rows, Sharing::Bits(32));
                let valid = b.input(from, "valid", rows, Sharing::Bits(1));
                let values = integers(&mut b, 2);
                let key = b.key(key, valid);
                let values: Vec<_> = values.iter().map(|x| b.zeroed(*x, valid)).collect();
                let groups = b.group(GroupKey::of(&[key]), &values, &[]);
                let columns = [groups.key[0], groups.count];
                let columns = columns.into_iter().chain(groups.sums);
                let shown = columns.map(|column| b.zeroed(column, groups.valid));
                let mut opened: Vec<_> = shown.collect();
                opened.push(groups.valid);
                opened
            }
            Operator::Join => joined(&mut b, from, rows),
            Operator::Sort | Operator::Sort64 => {
                let bits = if self == Operator::Sort { 32 } else { 64 };
                let key = b.input(from, "key", rows, Sharing::Bits(bits));
                let mut columns = vec![key];
                columns.extend(integers(&mut b, 2));
                let order = b.sort(&Key::of(&[key]));
                b.apply(&order, &columns)
            }
        };
        b.open(&moved, to, "the rows of a benchmark");
        b.finish()
    }
}

/// Rows that look up 64 bits in as many others: whether each was found, and what.
///
/// Keys are made up and may be there twice: the first row of a key is found, and nothing is opened about the others.
fn joined(b: &mut Builder, from: Holder, rows: u32) -> Vec<Shared> {
    let mut keyed = |name: &str| {
        let key = b.input(from, &format!("{name} key"), rows, Sharing::Bits(32));
        let valid = b.input(from, &format!("{name} valid"), rows, Sharing::Bits(1));
        (b.key(key, valid), valid)
    };
    let ((of, _), (by, valid)) = (keyed("known"), keyed("asking"));
    let column = b.input(from, "column", rows, Sharing::Bits(64));
    let looked_up = b.look_up(&[by], &[of], &[column], Duplicates::First);
    let found = b.zeroed(looked_up.found, valid);
    let column = b.zeroed(looked_up.columns[0], found);
    vec![found, column]
}

/// Runs the command.
pub(super) fn run(
    args: &BenchArgs,
    operator: Operator,
    registry: &Arc<dyn Registry>,
) -> Result<()> {
    let rows = args.batch.unwrap_or(100_000).clamp(1, 1 << 31) as u32;
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    let security = args.security(sharing, Words::default())?;
    if operator == Operator::Groupby && !security.moves_integers() {
        return Err(miette!(
            help =
                "`veil-lab bench tpch --query q01` asks for sums of groups, which are words there",
            "these parties sum no integers over rows: their programs are of bits"
        ));
    }
    let spec = operator.program(rows, security);
    let device = args.devices(registry)?;
    let mut found = Vec::new();
    if !args.json {
        println!("{HEADER}");
    }
    let least = Least::of(&spec, security);
    let gather = gathered(least.widest);
    for &carrier in &args.link {
        for cores in args.cores.0..=args.cores.1 {
            let options = Options {
                lanes: cores,
                chunk_rows: args.chunk_rows,
            };
            let program = PassProgram::new(&spec, options).into_diagnostic()?;
            let course = Course {
                name: operator.name(),
                batch: rows.into(),
                ops: rows.into(),
                blocks_per_op: least.blocks / f64::from(rows),
                gather_seconds: least.gathers * gather,
                program: Arc::new(program),
                data: &|peer, _| data(peer),
            };
            let row = measure_program(&course, &args.setup(&device, carrier, cores))?;
            args.show(&row)?;
            found.push(row);
        }
    }
    args.draw(&found)
}

/// What moves take at least, over all parties.
pub(super) struct Least {
    /// AES blocks of permutations and of masks.
    pub(super) blocks: f64,
    /// Elements that go to other places, counted by eight bytes.
    pub(super) gathers: f64,
    /// Rows of the largest.
    pub(super) widest: u32,
}

impl Least {
    /// Of three parties five gathers and eight streams of masks each, of four three in each of four steps. Three that prove their moves have three steps, in each of which two parties gather
    /// two components and draw both masks.
    pub(super) fn of(spec: &ProgramSpec, security: Security) -> Self {
        let (permutations, masks, gathers) = match security.protocol {
            ProtocolKind::Rep4 => (12.0, 36.0, 36.0),
            _ if security.moves_integers() => (6.0, 8.0, 5.0),
            _ => (6.0, 12.0, 12.0),
        };
        let mut least = Least {
            blocks: 0.0,
            gathers: 0.0,
            widest: 1,
        };
        for pass in &spec.passes {
            let PassSpec::Move {
                takes, kind, rows, ..
            } = pass
            else {
                continue;
            };
            let bytes = |form: &ColumnForm| form.bytes() as f64;
            let width: f64 = takes.iter().map(|(_, form)| bytes(form)).sum();
            // What goes back does so by permutations that were drawn.
            let drawn = if kind.draws() { permutations } else { 0.0 };
            least.blocks += (drawn + masks * width / 16.0) * f64::from(*rows);
            if *kind == MoveKind::Rank {
                // Positions are computed where the rows are.
                continue;
            }
            let elements = takes.iter().map(|(_, form)| (bytes(form) / 8.0).max(1.0));
            least.gathers += gathers * elements.sum::<f64>() * f64::from(*rows);
            least.widest = least.widest.max(*rows);
        }
        least
    }
}

/// CPU-seconds of one element of eight bytes that goes to another place, of so many: the least of three measurements.
pub(super) fn gathered(rows: u32) -> f64 {
    let rows = rows as usize;
    // A permutation without a pattern that a processor would foresee: rows times a number that has no factor in common.
    let step = 0x9e37_79b1usize;
    let order: Vec<u32> = (0..rows)
        .map(|row| (row.wrapping_mul(step) % rows) as u32)
        .collect();
    let from: Vec<u64> = (0..rows as u64).collect();
    let mut to = vec![0u64; rows];
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let start = thread_cpu();
        for (to, at) in to.iter_mut().zip(&order) {
            *to = from[*at as usize];
        }
        black_box(&mut to);
        least = least.min(thread_cpu().saturating_sub(start).as_secs_f64() / rows as f64);
    }
    least
}
