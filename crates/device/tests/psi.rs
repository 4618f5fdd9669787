//! Intersections, from keys to what is found, on every device.

use std::collections::BTreeSet;

use veil_device::{
    ColumnType, Command, Cpu, Device, Fault, Frame, KeyId, Layout, Okvs, Op, Outcome, PrfCall, Psi,
    Region, Residency, Span, Tag, Workspace,
};
use veil_prss::DomainTag;
use veil_session::{Secret, SessionId};

use crate::common::devices;

const OFFSET: KeyId = KeyId(0);
const OWN: KeyId = KeyId(1);
const COMMON: KeyId = KeyId(2);

type Key = [u8; 32];

/// A number that follows from another one, for test data (Steele, Lea, Flood 2014).
fn mixed(x: u64) -> u64 {
    let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn key(number: u64) -> Key {
    let word = |k: u64| mixed(number.wrapping_mul(4) + k + 0x9e37_79b9_7f4a_7c15).to_le_bytes();
    [word(0), word(1), word(2), word(3)]
        .as_flattened()
        .try_into()
        .unwrap()
}

/// a · b · X^−128, bit by bit (RFC 8452).
fn dot(a: u128, b: u128) -> u128 {
    let (mut sum, mut b) = (0, b);
    for i in (0..128).rev() {
        // b · X^-1 for each bit of a, from the highest on.
        b = b >> 1 ^ (b & 1).wrapping_neg() & (1 << 127 | 1 << 126 | 1 << 125 | 1 << 120);
        sum ^= (a >> i & 1).wrapping_neg() & b;
    }
    sum
}

/// Both ends in one workspace.
struct Pair {
    device: Box<dyn Device>,
    workspace: Workspace,
    okvs: Okvs,
    digests: [Span; 2],
    keys: [Span; 2],
    vole: [Span; 3],
    seed: Span,
    sent: Span,
    w: Span,
    tags: Span,
    found: Span,
}

impl Pair {
    fn new(mut device: Box<dyn Device>, okvs: Okvs, sets: [&[Key]; 2]) -> Self {
        let mut layout = Layout {
            chunk_rows: 1,
            regions: vec![],
        };
        let mut add = |bytes, count| {
            let region = layout.add(Region {
                residency: Residency::Mapped,
                column: ColumnType::Bytes(bytes),
                components: 1,
                count,
            });
            layout.all(region, 0)
        };
        let columns = okvs.columns() as u32;
        let keys = sets.map(|set| add(32, set.len() as u32));
        let digests = sets.map(|set| add(32, set.len() as u32));
        let vole = [(); 3].map(|()| add(16, columns));
        let (seed, sent, w) = (add(16, 1), add(16, columns), add(16, 2));
        let tags = add(16, sets[1].len() as u32);
        let found = add(1, (sets[0].len() as u32).div_ceil(8));
        let offset = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6979u128;
        device.bind(SessionId([3; 32]));
        for (id, key) in [(OFFSET, offset), (OWN, 5), (COMMON, 6)] {
            device
                .load_key(id, &Secret::new(key.to_le_bytes()))
                .unwrap();
        }
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 1,
        };
        let workspace = device.open(&layout, frame).unwrap();
        let blocks = |of: u64| {
            let block =
                move |k| u128::from(mixed(of + 2 * k)) << 64 | u128::from(mixed(of + 2 * k + 1));
            (0..u64::from(columns)).map(block).collect::<Vec<u128>>()
        };
        let (b, c) = (blocks(1 << 40), blocks(2 << 40));
        let a: Vec<u128> = b.iter().zip(&c).map(|(b, c)| b ^ dot(*c, offset)).collect();
        for (span, blocks) in vole.into_iter().zip([a, b, c]) {
            let bytes: Vec<u8> = blocks
                .iter()
                .flat_map(|block| block.to_le_bytes())
                .collect();
            device.write(workspace, span, &bytes).unwrap();
        }
        device.write(workspace, w, &[9; 32]).unwrap();
        for (span, set) in keys.into_iter().zip(sets) {
            device.write(workspace, span, set.as_flattened()).unwrap();
        }
        Pair {
            device,
            workspace,
            okvs,
            digests,
            keys,
            vole,
            seed,
            sent,
            w,
            tags,
            found,
        }
    }

    fn run(
        &mut self,
        step: Psi,
        (src, dst): (&[Span], &[Span]),
        call: Option<(KeyId, DomainTag, u64)>,
    ) -> Result<Outcome, Fault> {
        let mut command = Command::new(Op::Psi(step), src.to_vec(), dst.to_vec());
        let calls = call.into_iter();
        command.calls = calls
            .map(|(key, tag, first)| PrfCall { key, tag, first })
            .collect();
        self.device.submit(self.workspace, &[command], Tag(0))?;
        Ok(self.device.poll()?.unwrap().outcome)
    }

    fn hash(&mut self, end: usize) {
        // The ledger of the reference is one party's.
        let salt = (COMMON, DomainTag::PSI_SALT, 0);
        self.device.bind(SessionId([3; 32]));
        let done = self.run(
            Psi::Hash,
            (&[self.keys[end]], &[self.digests[end]]),
            Some(salt),
        );
        assert_eq!(done, Ok(Outcome::Done));
    }

    fn encode(&mut self) -> Result<Outcome, Fault> {
        let call = (OWN, DomainTag::PSI_ENCODE, 0);
        let (okvs, spans) = (self.okvs, [self.digests[0], self.vole[2]]);
        self.run(
            Psi::Encode { okvs },
            (&spans, &[self.seed, self.sent]),
            Some(call),
        )
    }

    fn tag(&mut self) -> Result<Outcome, Fault> {
        let spans = [self.digests[1], self.vole[1], self.sent, self.seed, self.w];
        let (okvs, offset) = (self.okvs, OFFSET);
        self.run(Psi::Tags { okvs, offset }, (&spans, &[self.tags]), None)
    }

    fn compare(&mut self) -> Result<Outcome, Fault> {
        let spans = [self.digests[0], self.vole[0], self.seed, self.w, self.tags];
        self.run(
            Psi::Match { okvs: self.okvs },
            (&spans, &[self.found]),
            None,
        )
    }

    fn see(&self, span: Span) -> &[u8] {
        self.device.view(self.workspace, span).unwrap()
    }

    /// A byte for each key.
    fn found(&self) -> Vec<u8> {
        let bits = self.see(self.found);
        let bit = |k: usize| bits[k / 8] >> (k % 8) & 1;
        (0..self.see(self.digests[0]).len() / 32).map(bit).collect()
    }

    fn all(&mut self) -> Result<Vec<u8>, Fault> {
        self.hash(0);
        self.hash(1);
        assert_eq!(self.encode()?, Outcome::Done);
        assert_eq!(self.tag()?, Outcome::Done);
        assert_eq!(self.compare()?, Outcome::Done);
        Ok(self.found())
    }
}

fn keys(numbers: std::ops::Range<u64>) -> Vec<Key> {
    numbers.map(key).collect()
}

/// Keys of both are found, and no others, whatever sets have in common.
#[test]
fn keys_of_both_are_found() {
    let sizes = [0, 1, 2, 3, 5, 64, 65, 1000];
    for receiver in sizes {
        for sender in sizes {
            // Disjoint, one key in common, half of them, the same.
            for common in [0, 1, receiver / 2, receiver] {
                let common = common.min(sender).min(receiver);
                let own = keys(0..receiver);
                let theirs = keys(receiver - common..receiver - common + sender);
                let okvs = Okvs::of(receiver as u32);
                let want: Vec<u8> = (0..receiver)
                    .map(|k| u8::from(k >= receiver - common))
                    .collect();
                for device in devices() {
                    let name = device.name();
                    if name == "reference" && receiver + sender > 300 {
                        continue;
                    }
                    let mut pair = Pair::new(device, okvs, [&own, &theirs]);
                    let what = format!("{name}: {receiver} and {sender}, {common} in common");
                    assert_eq!(pair.all(), Ok(want.clone()), "{what}");
                    let tags: BTreeSet<&[u8]> = pair.see(pair.tags).chunks(16).collect();
                    assert_eq!(tags.len() as u64, sender, "{what}");
                }
            }
        }
    }
}

/// Several bins, with more keys than a tile has in each.
#[test]
fn keys_in_several_bins_are_found() {
    let (receiver, sender) = (40_000, 30_000);
    let (own, theirs) = (keys(0..receiver), keys(25_000..25_000 + sender));
    let okvs = Okvs::of(receiver as u32);
    assert_eq!(okvs.bins, 3);
    let mut pair = Pair::new(Box::new(Cpu::detect()), okvs, [&own, &theirs]);
    let found = pair.all().unwrap();
    assert!(
        (0..)
            .zip(&found)
            .all(|(k, found)| (*found == 1) == (k >= 25_000))
    );
}

/// A message that is changed on the way, whatever it is, and nothing is found that is not there; tags out of order, or twice, end the batch.
#[test]
fn changed_messages_find_nothing_else() {
    let (own, theirs) = (keys(0..40), keys(20..80));
    for mut device in devices() {
        device.wipe();
        let mut pair = Pair::new(device, Okvs::of(40), [&own, &theirs]);
        let honest = pair.all().unwrap();
        assert_eq!(
            honest.iter().map(|found| u32::from(*found)).sum::<u32>(),
            20
        );
        // One bit of w, of the seed, of columns: sender and receiver no longer agree.
        for span in [pair.w, pair.seed, pair.sent] {
            let (at, bits) = (pair.see(span).len() / 2, 0x10);
            pair.device.map(pair.workspace, span).unwrap()[at] ^= bits;
            assert_eq!(pair.tag(), Ok(Outcome::Done));
            pair.device.map(pair.workspace, span).unwrap()[at] ^= bits;
            assert_eq!(pair.compare(), Ok(Outcome::Done));
            let found = pair.found();
            let more = found
                .iter()
                .zip(&honest)
                .any(|(found, honest)| found > honest);
            assert!(!more && (span == pair.sent || !found.contains(&1)));
        }
        assert_eq!(pair.tag(), Ok(Outcome::Done));
        let tags = pair.see(pair.tags).to_vec();
        for change in [
            &|tags: &mut Vec<u8>| tags.copy_within(..16, 16),
            &|tags: &mut Vec<u8>| tags.copy_within(16..32, 0),
            &|tags: &mut Vec<u8>| tags.rotate_left(16),
            &|tags: &mut Vec<u8>| tags.copy_within(32..48, 16 * 59),
        ] as [&dyn Fn(&mut Vec<u8>); 4]
        {
            let mut lies = tags.clone();
            change(&mut lies);
            pair.device.write(pair.workspace, pair.tags, &lies).unwrap();
            assert_eq!(pair.compare(), Ok(Outcome::Mismatch { command: 0 }));
            assert!(!pair.found().contains(&1));
        }
    }
}

/// Two equal keys, and stores without room for keys, are errors at the party that has them, and leave nothing.
#[test]
fn keys_that_are_equal_or_do_not_fit_are_refused() {
    let fault = |what| Err(Fault::Shape { command: 0, what });
    let mut twice = keys(0..200);
    twice[150] = twice[3];
    let equal = fault("keys of an intersection of which two are equal");
    for device in devices() {
        let mut pair = Pair::new(device, Okvs::of(200), [&twice, &twice]);
        (0..2).for_each(|end| pair.hash(end));
        assert_eq!(pair.encode(), equal);
        assert!(pair.see(pair.sent).iter().all(|byte| *byte == 0));
        assert_eq!(pair.tag(), equal);
        assert!(pair.see(pair.tags).iter().all(|byte| *byte == 0));
    }
    let unsolved = fault("keys of an intersection that no seed of eight encodes");
    for (count, sparse, dense) in [(2, 3, 0), (4, 3, 0), (200, 120, 3), (2000, 2200, 3)] {
        let okvs = Okvs {
            bins: 1,
            sparse,
            dense,
        };
        let set = keys(0..count);
        for device in devices() {
            let mut pair = Pair::new(device, okvs, [&set, &set]);
            pair.hash(0);
            assert_eq!(pair.encode(), unsolved, "{okvs:?}");
            assert!(pair.see(pair.sent).iter().all(|byte| *byte == 0));
            assert!(pair.see(pair.seed).iter().all(|byte| *byte == 0));
        }
    }
}
