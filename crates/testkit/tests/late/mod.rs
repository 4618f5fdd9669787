//! Attack case B7: what a corrupt party learns where joint messages are checked after those that depend on them, and that it learns nothing
//! where they are checked in their round.
//!
//! The corrupt party C is sender of a joint message to R, for which B vouches, and adds 2^(k-1) to one element. R alone has a wrong component
//! of the product z from then on. In the next product, z w, the pair of R and B owes C a joint message: one of them sends it, the other
//! vouches. R's is off by 2^(k-1) times a component of w that C lacks, which is 0 or 2^(k-1): its lowest bit. C holds the voucher's key,
//! so it tries both values.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use veil_circuit::{Builder, Per};
use veil_device::{
    ColumnType, Command, Completion, Cpu, Device, Fault, Layout, Op, Outcome, Program, ProgramId,
    Region, Residency, Span, Tag, Workspace,
};
use veil_engine::Abort;
use veil_job::{Audience, Holder, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::{Protocol, Replicated, Task};
use veil_prss::DomainTag;
use veil_session::Peer;
use veil_testkit::sample::{among_four, job, peer};
use veil_testkit::{Kind, Late, Message, Seed, World, flipped};

const RECIPIENT: Peer = Peer::Recipient(0);

/// Rows of a chunk. Chunk 0 is the set-up; in odd chunks sender and voucher have changed places.
const ROWS: u32 = 8;

/// A way to use a wrong component, as the joint messages (numbers of `docs/protocol-rep4.md`) of two products.
#[derive(Clone, Copy, Debug)]
struct Attack {
    corrupt: u8,
    /// In which chunk.
    chunk: u32,
    /// Who gets the wrong message, and who vouches for the right one.
    wronged: u8,
    voucher: u8,
    /// The joint message that the two owe the corrupt party in the next product.
    next: u8,
    /// Components of w that the wrong one is multiplied by there.
    factors: &'static [usize],
}

/// All of them: party 0 is in no such position.
const ATTACKS: [Attack; 4] = [
    // Message 5, then 2: R sends a wrong message, B a right code.
    Attack {
        corrupt: 1,
        chunk: 2,
        wronged: 2,
        voucher: 3,
        next: 2,
        factors: &[0, 1],
    },
    // Message 2, then 5: the same.
    Attack {
        corrupt: 2,
        chunk: 2,
        wronged: 1,
        voucher: 3,
        next: 5,
        factors: &[2],
    },
    // Message 3, then 4: B sends a right message, R a wrong code.
    Attack {
        corrupt: 3,
        chunk: 2,
        wronged: 2,
        voucher: 0,
        next: 4,
        factors: &[3],
    },
    // Message 4, then 3, in odd chunks: the same.
    Attack {
        corrupt: 2,
        chunk: 1,
        wronged: 3,
        voucher: 0,
        next: 3,
        factors: &[1, 2],
    },
];

/// x y w per row; the secret is w.
fn chain(ring: Ring) -> JobSpec {
    let mut b = Builder::new(ring);
    let [x, y, w] = ["x", "y", "w"].map(|name| b.input(name, 1, Per::Row)[0]);
    let z = b.mul(x, y);
    let z = b.mul(z, w);
    b.output("z", &[z]);
    let owners = [Holder::Owner(0), Holder::Owner(0), Holder::Owner(1)];
    among_four(job(
        b.finish().expect("a valid circuit"),
        &[(2 * u64::from(ROWS), &owners)],
        &[Audience::Recipient(0)],
    ))
}

/// Adds 2^(k-1) to the first element.
fn shift(ring: Ring, bytes: &mut [u8]) {
    match ring {
        Ring::Bits => bytes[0] ^= 1,
        Ring::Z32 => bytes[3] ^= 0x80,
        Ring::Z64 => bytes[7] ^= 0x80,
        Ring::Z128 => bytes[15] ^= 0x80,
    }
}

/// What the corrupt party finds out: the lowest bits of its components of w, and that of the error in what it was sent.
#[derive(Default)]
struct Found {
    components: Option<[u8; 3]>,
    error: Option<u8>,
}

/// The corrupt party's device: it does all that it should, and looks at what it has.
struct Spy {
    inner: Cpu,
    ring: Ring,
    /// The code that it computes over what it gets, and how it compares it with what the voucher sent.
    code: Command,
    compare: Command,
    /// Its components of w.
    w: [Span; 3],
    chunk: u32,
    /// Open workspaces: of which chunk, and the region through which it looks.
    workspaces: HashMap<Workspace, (u32, u16)>,
    ended: VecDeque<Completion>,
    found: Arc<Mutex<Found>>,
}

impl Spy {
    /// Another region, through which it looks at its own shares.
    fn wider(&self, layout: &Layout) -> (Layout, u16) {
        let mut layout = layout.clone();
        let window = layout.add(Region {
            residency: Residency::Mapped,
            column: ColumnType::Rows(self.ring),
            components: 1,
            count: 1,
        });
        (layout, window)
    }

    /// Runs commands of its own; whether no comparison failed.
    fn all_equal(&mut self, workspace: Workspace, batch: &[Command]) -> Result<bool, Fault> {
        const MINE: Tag = Tag(u64::MAX);
        self.inner.submit(workspace, batch, MINE)?;
        loop {
            match veil_device::completion(&mut self.inner)? {
                Completion { tag: MINE, outcome } => return Ok(outcome == Outcome::Done),
                other => self.ended.push_back(other),
            }
        }
    }

    fn look(&mut self, workspace: Workspace, region: u16) -> Result<(), Fault> {
        let window = Span {
            region,
            component: 0,
            first: 0,
            ..self.w[0]
        };
        let mut components = [0; 3];
        for (of, to) in self.w.into_iter().zip(&mut components) {
            let op = Op::Combine {
                ring: self.ring,
                minus: 0,
            };
            self.all_equal(workspace, &[Command::new(op, vec![of], vec![window])])?;
            *to = self.inner.view(workspace, window)?[0] & 1;
        }
        self.found.lock().unwrap().components = Some(components);
        Ok(())
    }

    /// Which of both candidates the MAC fits: the message as it came, or 2^(k-1) more.
    fn test(&mut self, workspace: Workspace) -> Result<(), Fault> {
        let both = [self.code.clone(), self.compare.clone()];
        let message = self.code.src[0];
        let mut fits = [false; 2];
        for fit in &mut fits {
            *fit = self.all_equal(workspace, &both)?;
            shift(self.ring, self.inner.map(workspace, message)?);
        }
        self.found.lock().unwrap().error = match fits {
            [true, false] => Some(0),
            [false, true] => Some(1),
            _ => None,
        };
        Ok(())
    }
}

impl Device for Spy {
    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let (layout, _) = self.wider(layout);
        self.inner.load(program, &layout)
    }

    fn open(&mut self, layout: &Layout, frame: veil_session::Frame) -> Result<Workspace, Fault> {
        let (layout, window) = self.wider(layout);
        let workspace = self.inner.open(&layout, frame)?;
        self.workspaces.insert(workspace, (frame.chunk, window));
        Ok(workspace)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        if let Some((chunk, window)) = self.workspaces.get(&workspace).copied()
            && chunk == self.chunk
        {
            let layer = |layer: u64| {
                let of = |c: &Command| {
                    let call = self.code.calls[0];
                    c.op == Op::Mac
                        && c.calls[0]
                            == veil_device::PrfCall {
                                first: layer,
                                ..call
                            }
                };
                batch.iter().any(of)
            };
            let [first, second] = [0, 1].map(layer);
            if first {
                self.look(workspace, window)?;
            }
            if second {
                self.test(workspace)?;
                return Err(Fault::Unknown("anything else that it wants to know"));
            }
        }
        self.inner.submit(workspace, batch, tag)
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        match self.ended.pop_front() {
            Some(ended) => Ok(Some(ended)),
            None => self.inner.poll(),
        }
    }

    veil_device::forward!(self, self.inner, name bind load_key close write map view wipe);
}

/// One attack on a run of `build`: the lowest bit of w as the corrupt party finds it, and as it is.
fn attack(
    attack: Attack,
    ring: Ring,
    seed: Seed,
    build: fn(Replicated) -> Arc<dyn Protocol>,
) -> (Option<u8>, u8, veil_testkit::Outcome) {
    let world = World::in_chunks(chain(ring), ROWS, 1).window(1).seed(seed);
    let plan = Arc::clone(world.plan());
    let chunk = (0..)
        .map_while(|k| plan.chunk(k))
        .find(|c| c.frame.chunk == attack.chunk)
        .expect("the job has two chunks");
    let me = peer(attack.corrupt);
    let protocol = build(Replicated::new(Arc::clone(&plan), me));
    let flow = protocol.flow(Task::Layers, chunk.frame);
    let finish: Vec<&Command> = flow.rounds().iter().flat_map(|r| &r.finish).collect();
    let is_mac = |c: &&&Command| {
        let call = c.calls.first();
        c.op == Op::Mac
            && call.is_some_and(|d| (d.tag, d.first) == (DomainTag::mac4(attack.next), 1))
    };
    let code = (*finish.iter().find(is_mac).expect("it checks a code")).clone();
    let compares = |c: &&&Command| c.op == Op::CheckEqual && c.src[0] == code.dst[0];
    let compare = (*finish.iter().find(compares).expect("it compares it")).clone();
    let w = [0, 1, 2].map(|part| Span {
        region: plan.programs[0].slots,
        component: part,
        first: plan.inputs[2].first,
        count: 1,
    });
    let found = Arc::new(Mutex::new(Found::default()));
    let (kept, in_chunk) = (Arc::clone(&found), attack.chunk);
    let devices = move |who| -> Box<dyn Device> {
        if who != me {
            return Box::new(veil_device::Reference::default());
        }
        Box::new(Spy {
            inner: Cpu::detect(),
            ring,
            code: code.clone(),
            compare: compare.clone(),
            w,
            chunk: in_chunk,
            workspaces: HashMap::new(),
            ended: VecDeque::new(),
            found: Arc::clone(&kept),
        })
    };
    let [first, second] = [0, 1].map(|layer| flow.rounds()[layer].place);
    let cheat = move |m: &Message| {
        if m.from != me || m.at.frame.chunk != attack.chunk {
            return Fate::Pass;
        }
        match m.kind {
            Some(Kind::Product) if (m.to, m.at.step.place) == (peer(attack.wronged), first) => {
                let mut bytes = m.bytes.clone();
                shift(ring, &mut bytes);
                Fate::Replace(bytes)
            }
            // All others need something from it here: none gets to the late checks before it has looked.
            _ if m.at.step.place == second => Fate::Drop,
            _ => Fate::Pass,
        }
    };
    let outcome = world.devices(devices).cheat(cheat).run_built(build);
    let row = outcome.values.blocks[chunk.block as usize][chunk.first as usize].clone();
    let found = found.lock().unwrap();
    let guess = found.error.zip(found.components).map(|(error, mine)| {
        // Part k of a party is component k + 1 places after its number.
        let part = |c: usize| (c + 3 - usize::from(attack.corrupt)) % 4;
        let known = attack.factors.iter().map(|c| part(*c)).filter(|k| *k < 3);
        let missing = known.fold(error, |bit, k| bit ^ mine[k]);
        mine.iter().fold(missing, |bit, m| bit ^ m)
    });
    (guess, (row[2][0] & 1) as u8, outcome)
}

#[test]
fn where_checks_come_late_a_corrupt_party_learns_a_bit_of_a_secret() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let mut bits = [0; 2];
        for (k, way) in ATTACKS.iter().cycle().take(100).enumerate() {
            let seed = Seed(1000 + k as u64);
            let (guess, truth, outcome) =
                attack(*way, ring, seed, |inner| Arc::new(Late::new(inner)));
            assert_eq!(guess, Some(truth), "{seed}: {ring:?}: {way:?}");
            bits[usize::from(truth)] += 1;
            assert!(!outcome.seen[&RECIPIENT].finished(), "{seed}");
        }
        assert!(bits.iter().all(|n| *n > 4), "{bits:?}: not a secret");
    }
}

#[test]
fn where_checks_come_in_time_it_learns_nothing() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        for (k, way) in ATTACKS.iter().cycle().take(12).enumerate() {
            let seed = Seed(2000 + k as u64);
            let (guess, _, outcome) = attack(*way, ring, seed, |inner| Arc::new(inner));
            assert_eq!(guess, None, "{seed}: {ring:?}: {way:?}");
            let [wronged, corrupt, voucher] = [way.wronged, way.corrupt, way.voucher].map(peer);
            match outcome.abort(wronged) {
                Abort::Cheated { suspects, what, .. } => {
                    assert_eq!(*suspects, [corrupt, voucher], "{seed}");
                    assert_eq!(*what, "a joint message of a product", "{seed}");
                }
                other => panic!("{seed}: {other:?}"),
            }
            // Nothing that depends on the wrong component has left.
            let products = || {
                let kinds = [Some(Kind::Product), Some(Kind::Mac)];
                let chunk = way.chunk;
                let of_chunk =
                    move |m: &&Message| kinds.contains(&m.kind) && m.at.frame.chunk == chunk;
                outcome.transcript.iter().filter(of_chunk)
            };
            let first = products().map(|m| m.at.step.place).min();
            let sent = products().filter(|m| m.from == wronged);
            assert!(
                sent.clone().count() == 3 && sent.clone().all(|m| Some(m.at.step.place) == first),
                "{seed}: {:?}",
                sent.collect::<Vec<&Message>>()
            );
            assert!(!outcome.seen[&RECIPIENT].finished(), "{seed}");
        }
    }
}

/// The build is bad in nothing else: it computes what it should, and finds a wrong message in the end.
#[test]
fn late_checks_are_checks() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let world = World::in_chunks(chain(ring), ROWS, 1);
        let late = |inner| -> Arc<dyn Protocol> { Arc::new(Late::new(inner)) };
        world.run_built(late).assert_right();
        let cheat = move |m: &Message| match m.kind {
            Some(Kind::Product) if m.from == peer(1) => Fate::Replace(flipped(&m.bytes)),
            _ => Fate::Pass,
        };
        let outcome = world.cheat(cheat).run_built(late);
        let cheated = |abort: &Abort| matches!(abort, Abort::Cheated { .. });
        assert!(outcome.aborts.values().any(cheated), "{}", outcome.seed);
        assert!(!outcome.seen[&RECIPIENT].finished(), "{}", outcome.seed);
    }
}
