//! Small jobs that between them have every kind of input, message and output.

use veil_circuit::generate::{Integer, is_less};
use veil_circuit::{Builder, Circuit, Per, Reduce, make};
use veil_job::{Adversary, Audience, Block, Holder, JobSpec, Order, Statistical, Word};
use veil_math::Ring;
use veil_session::{PartyId, Peer};

/// Party `index`, from 0.
///
/// # Panics
/// If there is no such party.
pub fn party(index: u8) -> PartyId {
    PartyId::new(index).expect("no protocol has so many parties")
}

/// Party `index` as a peer.
///
/// # Panics
/// If there is no such party.
pub fn peer(index: u8) -> Peer {
    Peer::Party(party(index))
}

/// A job of `circuit`: of each block the number of rows and the holders of the input ports; of each output port the audience. Owners
/// and recipients are as many as these name.
pub fn job(circuit: Circuit, blocks: &[(u64, &[Holder])], audiences: &[Audience]) -> JobSpec {
    let owner = |h: &Holder| {
        if let Holder::Owner(o) = h {
            Some(*o)
        } else {
            None
        }
    };
    let recipient = |a: &Audience| {
        if let Audience::Recipient(r) = a {
            Some(*r)
        } else {
            None
        }
    };
    let owners = blocks
        .iter()
        .flat_map(|(_, holders)| *holders)
        .filter_map(owner)
        .max()
        .map_or(0, |o| o + 1);
    let recipients = audiences
        .iter()
        .filter_map(recipient)
        .max()
        .map_or(0, |r| r + 1);
    let block = |(k, (rows, holders)): (usize, &(u64, &[Holder]))| Block {
        name: format!("block {k}"),
        rows: *rows,
        holders: holders.to_vec(),
        stored: None,
        order: veil_job::Order::Unsaid,
    };
    JobSpec {
        name: "sample".into(),
        schema: String::new(),
        owners: (0..owners).map(|o| format!("owner {o}")).collect(),
        parties: [0, 1, 2].map(|p| format!("party {p}")).into(),
        recipients: (0..recipients).map(|r| format!("recipient {r}")).collect(),
        security: veil_job::Security::among(3),
        totals: None,
        blocks: blocks.iter().enumerate().map(block).collect(),
        opened: circuit
            .outputs
            .iter()
            .map(|o| format!("output {}", o.name))
            .collect(),
        audiences: audiences.to_vec(),
        circuit,
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    }
}

/// The same job, whose parties need not follow the protocol.
#[must_use]
pub fn against_malicious(job: JobSpec) -> JobSpec {
    JobSpec {
        security: job.security.against(Adversary::Malicious),
        ..job
    }
}

/// The same job among four parties.
#[must_use]
pub fn among_four(job: JobSpec) -> JobSpec {
    JobSpec {
        parties: (0..4).map(|p| format!("party {p}")).collect(),
        security: veil_job::Security::among(4),
        ..job
    }
}

/// The same job between two parties, of bits: what party 2 has is party 1's.
#[must_use]
pub fn between_two(job: JobSpec) -> JobSpec {
    let mut job = JobSpec {
        parties: (0..2).map(|p| format!("party {p}")).collect(),
        security: veil_job::Security::among(2),
        ..job
    };
    for holder in job.blocks.iter_mut().flat_map(|block| &mut block.holders) {
        if *holder == Holder::Party(party(2)) {
            *holder = Holder::Party(party(1));
        }
    }
    job
}

/// A circuit of the catalogue between two parties of whom one cheats, and gets away with it with probability 2^-9: the first port is the
/// garbler's, the second the evaluator's, who is told the results.
///
/// # Panics
/// If the catalogue has no such circuit.
pub fn cut(name: &str, rows: u64) -> JobSpec {
    let circuit = make(name).expect("the catalogue has it");
    let holders: Vec<Holder> = (0..circuit.inputs.len())
        .map(|k| Holder::Party(PartyId::TWO[k % 2]))
        .collect();
    let audiences = vec![Audience::Party(PartyId::TWO[1]); circuit.outputs.len()];
    let mut job = between_two(job(circuit, &[(rows, &holders)], &audiences));
    job.security = job.security.against(Adversary::CutAndChoose);
    job.security.statistical = Statistical::ALL[0];
    job
}

/// A circuit of the catalogue between two parties of whom one does whatever it likes: the first port is the garbler's, the second the
/// evaluator's, and all outputs are for `audience`.
///
/// # Panics
/// If the catalogue has no such circuit.
pub fn authenticated(name: &str, rows: u64, audience: Audience) -> JobSpec {
    let circuit = make(name).expect("the catalogue has it");
    let holders: Vec<Holder> = (0..circuit.inputs.len())
        .map(|k| Holder::Party(PartyId::TWO[k % 2]))
        .collect();
    let audiences = vec![audience; circuit.outputs.len()];
    let job = between_two(job(circuit, &[(rows, &holders)], &audiences));
    against(job, Adversary::Malicious)
}

/// Keys of two parties that meet: how many each has, and who learns which of its own the other has.
pub fn intersection(keys: [u64; 2], result: PartyId) -> JobSpec {
    let circuit = veil_job::equality(["left", "right"], "common");
    let holders = PartyId::TWO.map(Holder::Party);
    let rows = keys[result.index()];
    let mut job = between_two(job(
        circuit,
        &[(rows, &holders)],
        &[Audience::Party(result)],
    ));
    job.blocks[0].order = Order::Intersected { keys, result };
    against(job, Adversary::Malicious)
}

/// The same job against another adversary.
#[must_use]
pub fn against(job: JobSpec, adversary: Adversary) -> JobSpec {
    JobSpec {
        security: job.security.against(adversary),
        ..job
    }
}

/// x y per row, x of owner 0 and y of owner 1, opened to `audience`.
///
/// # Panics
/// Never: the circuit is valid.
pub fn product(ring: Ring, rows: u64, audience: Audience) -> JobSpec {
    let mut b = Builder::new(ring);
    let (x, y) = (b.input("x", 1, Per::Row), b.input("y", 1, Per::Row));
    let z = b.mul(x[0], y[0]);
    b.output("z", &[z]);
    let circuit = b.finish().expect("a valid circuit");
    job(
        circuit,
        &[(rows, &[Holder::Owner(0), Holder::Owner(1)])],
        &[audience],
    )
}

/// Σ x y and Σ x over the rows, x of owner 0 and y of party 1, both opened to `audience`.
///
/// # Panics
/// If `ring` is bits, which cannot be summed.
pub fn dot(ring: Ring, rows: u64, audience: Audience) -> JobSpec {
    let mut b = Builder::new(ring);
    let (x, y) = (b.input("x", 1, Per::Row), b.input("y", 1, Per::Row));
    let z = b.mul(x[0], y[0]);
    b.output_sum("z", &[z]);
    b.output_sum("x", &[x[0]]);
    let circuit = b.finish().expect("a valid circuit");
    job(
        circuit,
        &[(rows, &[Holder::Owner(0), Holder::Party(party(1))])],
        &[audience, audience],
    )
}

/// The integer of the lowest bits of an input: a masked value is opened on the way.
///
/// # Panics
/// If the catalogue has no such circuit.
pub fn word(rows: u64, audience: Audience) -> JobSpec {
    let circuit = make("int-word:5").expect("the catalogue has it");
    job(circuit, &[(rows, &[Holder::Owner(0)])], &[audience])
}

/// Every kind of input, of output and, over a ring with sums, of message; blocks of the given numbers of rows, which differ in who
/// holds the second port.
///
/// # Panics
/// If there is no block.
pub fn everything(ring: Ring, blocks: &[u64]) -> JobSpec {
    let mut b = Builder::new(ring);
    let (x, y, p) = (
        b.input("x", 2, Per::Row),
        b.input("y", 1, Per::Row),
        b.input("p", 1, Per::Row),
    );
    let (k, q) = (b.input("k", 1, Per::Job), b.input("q", 2, Per::Job));
    let m = b.mul(x[0], y[0]);
    let n = b.mul(m, p[0]);
    let kq = b.mul(k[0], q[0]);
    let keyed = b.mul(kq, x[1]);
    let shifted = b.add(n, q[1]);
    let more = b.plus(keyed, 1);
    b.output("to all", &[shifted, m]);
    b.output("to party 1", &[m]);
    b.output("to recipient 0", &[more, p[0]]);
    b.output("to recipient 1", &[q[0], kq]);
    let mut audiences = vec![
        Audience::Parties,
        Audience::Party(party(1)),
        Audience::Recipient(0),
        Audience::Recipient(1),
    ];
    if ring != Ring::Bits {
        let (xy, xp) = (b.mul(x[1], y[0]), b.mul(x[0], p[0]));
        let dot = b.add(xy, xp);
        b.output_sum("dot to all", &[dot, x[0]]);
        b.output_sum("sum to recipient 0", &[n]);
        b.output_sum("sum to party 2", &[y[0], keyed]);
        audiences.extend([
            Audience::Parties,
            Audience::Recipient(0),
            Audience::Party(party(2)),
        ]);
    }
    let circuit = b.finish().expect("a valid circuit");
    let holders = |second| {
        [
            Holder::Owner(0),
            second,
            Holder::Party(party(0)),
            Holder::Owner(0),
            Holder::Party(party(2)),
        ]
    };
    let (even, odd) = (holders(Holder::Owner(1)), holders(Holder::Party(party(1))));
    let blocks: Vec<(u64, &[Holder])> = blocks
        .iter()
        .enumerate()
        .map(|(k, rows)| (*rows, if k % 2 == 0 { &even[..] } else { &odd[..] }))
        .collect();
    job(circuit, &blocks, &audiences)
}

/// The sums of `job`, each only if the first is less than `bound`, else 0; the first squared.
///
/// # Panics
/// If `job` sums nothing.
pub fn guarded(job: JobSpec, bound: u128) -> JobSpec {
    let ring = job.circuit.ring;
    let sums = job.circuit.outputs.iter();
    let sums = sums.filter(|o| o.reduce == Reduce::Sum);
    let widths: Vec<usize> = sums.map(|o| o.wires.len()).collect();
    let mut b = Builder::new(ring);
    let all = b.input("sums", widths.iter().sum::<usize>() as u32, Per::Row);
    let bound = b.constant(bound);
    // Whatever the sum is: all bits of the ring.
    let less = is_less(&mut b, all[0], bound, Integer::unsigned(ring.bits()));
    let less = b.lift(less);
    let mut rest = &all[..];
    for (k, width) in widths.into_iter().enumerate() {
        let (own, others) = rest.split_at(width);
        rest = others;
        let factor = |wire| if wire == all[0] { wire } else { less };
        let wires: Vec<_> = own.iter().map(|w| b.mul(*w, factor(*w))).collect();
        b.output(format!("opened {k}"), &wires);
    }
    let totals = Some(b.finish().expect("a valid circuit"));
    JobSpec { totals, ..job }
}
