//! Encodings of longer lists than the suite has, in bins that are solved in many turns; keys that cannot be encoded, which the device finds out when it does a batch.

use veil_device::psi::{DUPLICATE, UNSOLVED};
use veil_device::{
    ColumnType, Command, Cpu, Device, Fault, Frame, KeyId, Layout, Okvs, Op, Outcome, PrfCall, Psi,
    Region, Residency, Span, Tag, Workspace, completion,
};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_prss::{DomainTag, Prf};
use veil_session::Secret;

const KEYS: u16 = 0;
const DIGESTS: u16 = 1;
const C: u16 = 2;
const SEED: u16 = 3;
const SENT: u16 = 4;
const AFTER: u16 = 5;

/// An encoding of so many keys.
struct List {
    okvs: Okvs,
    layout: Layout,
    keys: Vec<u8>,
    c: Vec<u8>,
}

impl List {
    fn new(okvs: Okvs, keys: u32) -> Self {
        let region = |column, count| Region {
            residency: Residency::Mapped,
            column,
            components: 1,
            count,
        };
        let (block, key) = (ColumnType::Bytes(16), ColumnType::Bytes(32));
        let columns = okvs.columns() as u32;
        let regions = vec![
            region(key, keys),
            region(key, keys),
            region(block, columns),
            region(block, 1),
            region(block, columns),
            region(key, keys),
        ];
        let drawn = |first, bytes| {
            let mut to = vec![0; bytes];
            let prf = Prf::new(&Secret::new([5; 16]));
            prf.stream(DomainTag::RAND3, 1, first, 2, &mut to);
            to
        };
        List {
            okvs,
            layout: Layout {
                chunk_rows: 1,
                regions,
            },
            keys: drawn(0, 32 * keys as usize),
            c: drawn(1 << 40, 16 * columns as usize),
        }
    }

    fn all(&self, region: u16) -> Span {
        self.layout.all(region, 0)
    }

    fn encode(&self) -> [Command; 2] {
        let step = |step, src, dst, tag| {
            let mut command = Command::new(Op::Psi(step), src, dst);
            let (key, first) = (KeyId(0), 77);
            command.calls = vec![PrfCall { key, tag, first }];
            command
        };
        let [keys, digests, c, seed, sent] = [KEYS, DIGESTS, C, SEED, SENT].map(|k| self.all(k));
        let okvs = self.okvs;
        [
            step(Psi::Hash, vec![keys], vec![digests], DomainTag::PSI_SALT),
            step(
                Psi::Encode { okvs },
                vec![digests, c],
                vec![seed, sent],
                DomainTag::PSI_ENCODE,
            ),
        ]
    }

    /// A workspace with the keys.
    fn open(&self, device: &mut dyn Device) -> Result<Workspace, Fault> {
        device.load_key(KeyId(0), &Secret::new([9; 16]))?;
        let frame = Frame {
            epoch: 0,
            lane: 3,
            chunk: 4,
            rows: 1,
        };
        let workspace = device.open(&self.layout, frame)?;
        device.write(workspace, self.all(KEYS), &self.keys)?;
        device.write(workspace, self.all(C), &self.c)?;
        Ok(workspace)
    }

    /// The seed, and what is sent.
    fn run(&self, device: &mut dyn Device) -> Result<[Vec<u8>; 2], Fault> {
        let workspace = self.open(device)?;
        device.submit(workspace, &self.encode(), Tag(1))?;
        assert_eq!(completion(device)?.outcome, Outcome::Done);
        let seen = [SEED, SENT].map(|k| device.view(workspace, self.all(k)).map(<[u8]>::to_vec));
        device.close(workspace);
        let [seed, sent] = seen;
        Ok([seed?, sent?])
    }
}

/// Bins of thousands of keys, and of so few columns that keys are left over, by several blocks of several warps.
#[test]
fn long_lists_are_encoded_as_by_the_processor() {
    let bins = |bins, sparse, dense| Okvs {
        bins,
        sparse,
        dense,
    };
    // 1500 keys have a solution under some seed with 1.2 columns each, and many are left over.
    for (okvs, keys) in [
        (Okvs::of(5000), 5000),
        (bins(5, 1400, 3), 5000),
        (bins(1, 360, 20), 300),
        (bins(7, 60, 40), 300),
    ] {
        let list = List::new(okvs, keys);
        let want = list.run(&mut Cpu::detect());
        for (order, size) in [(Order::Random(4), (2, 256)), (Order::Reverse, (9, 64))] {
            let on = Emulator::new(order).sized(size.0, size.1);
            let got = list.run(&mut Cuda::on(Box::new(on)));
            assert!(got == want, "{okvs:?}, {order:?}");
        }
        assert!(want.is_ok(), "{okvs:?}: {:?}", want.err());
    }
}

/// The batch stops there, what would have been sent is zero, and the device goes on.
#[test]
fn keys_that_cannot_be_encoded_stop_their_batch() -> Result<(), Fault> {
    let equal = |list: &mut List| list.keys.copy_within(..32, 32 * 50);
    let mut twice = List::new(Okvs::of(100), 100);
    equal(&mut twice);
    let few = Okvs {
        bins: 1,
        sparse: 60,
        dense: 2,
    };
    // Whether keys are equal is looked at before whether too many are left.
    let mut both = List::new(few, 900);
    equal(&mut both);
    for (list, why) in [
        (twice, DUPLICATE),
        (List::new(few, 100), UNSOLVED),
        (both, DUPLICATE),
    ] {
        let want = list.run(&mut Cpu::detect());
        let mut device = Cuda::on(Box::new(Emulator::new(Order::Random(2))));
        let workspace = list.open(&mut device)?;
        let before = vec![7; list.keys.len()];
        device.write(workspace, list.all(AFTER), &before)?;
        let [hash, encode] = list.encode();
        let mut after = hash.clone();
        after.dst = vec![list.all(AFTER)];
        device.submit(workspace, &[hash.clone(), encode, after], Tag(1))?;
        // The next batch is another one.
        device.submit(workspace, &[hash], Tag(2))?;
        let what = Fault::Shape {
            command: 1,
            what: why,
        };
        assert_eq!(want, Err(what.clone()));
        assert_eq!(device.poll(), Err(what));
        let next = device.poll()?.map(|c| (c.tag, c.outcome));
        assert_eq!(next, Some((Tag(2), Outcome::Done)));
        assert!(
            device
                .view(workspace, list.all(SENT))?
                .iter()
                .all(|b| *b == 0)
        );
        assert_eq!(device.view(workspace, list.all(SEED))?, [0; 16]);
        assert_eq!(device.view(workspace, list.all(AFTER))?, before);
    }
    Ok(())
}
