//! Attack case A8: a plan or a device that draws twice rings on the reference device, whose ledger every other test here runs under.

use veil_device::{Bank, Command, Device, Fault, Layout, Op, Reference, Tag};
use veil_engine::Abort;
use veil_math::Ring;
use veil_prss::Use;
use veil_session::Frame;
use veil_testkit::World;
use veil_testkit::sample::{everything, peer};

/// What the device gets wrong.
#[derive(Clone, Copy)]
enum Defect {
    /// Every layer of products starts at the counter of the first one.
    Counter,
    /// Every chunk believes to be chunk 1.
    Chunk,
    /// Sums are drawn under the tag of products.
    Tag,
}

/// A reference device that is told to draw twice.
struct Defective {
    inner: Reference,
    defect: Defect,
}

impl Device for Defective {
    fn name(&self) -> &'static str {
        "defective"
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Bank, Fault> {
        match self.defect {
            Defect::Chunk => self.inner.open(layout, Frame { chunk: 1, ..frame }),
            Defect::Counter | Defect::Tag => self.inner.open(layout, frame),
        }
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let mut batch = batch.to_vec();
        for command in batch.iter_mut().filter(|c| matches!(c.op, Op::Product(_))) {
            let first = command.draws[0];
            for draw in &mut command.draws {
                match self.defect {
                    Defect::Counter => draw.first = 0,
                    Defect::Tag => (draw.tag, draw.first) = (first.tag, first.first),
                    Defect::Chunk => {}
                }
            }
        }
        self.inner.submit(bank, &batch, tag)
    }

    veil_device::forward!(self, self.inner, bind load_key load close write map view poll wipe);
}

/// The reuse that party 1's device reports.
fn rings(defect: Defect) -> veil_prss::Reuse {
    let devices = move |who| -> Box<dyn Device> {
        let inner = Reference::default();
        if who == peer(1) {
            Box::new(Defective { inner, defect })
        } else {
            Box::new(inner)
        }
    };
    // Three layers with products, one of which has sums too; three chunks.
    let outcome = World::in_chunks(everything(Ring::Z64, &[20]), 8, 1)
        .window(1)
        .devices(devices)
        .run();
    outcome.assert_sound(None);
    assert!(outcome.seen.values().all(|seen| !seen.finished()));
    match outcome.abort(peer(1)) {
        Abort::Device(Fault::Reuse(reuse)) => *reuse,
        other => panic!("{}: {other:?}", outcome.seed),
    }
}

#[test]
fn layers_that_share_counters_ring() {
    let reuse = rings(Defect::Counter);
    assert_eq!(
        (reuse.tag, reuse.lane, reuse.j, reuse.ctr),
        (Use::MUL3, 0, 1, 0)
    );
}

#[test]
fn chunks_that_share_a_number_ring() {
    // The set-up draws the value per job under the same number and another tag or owner's key; the rows of the second chunk ring.
    assert_eq!(rings(Defect::Chunk).j, 1);
}

#[test]
fn sums_that_share_a_tag_with_products_ring() {
    let reuse = rings(Defect::Tag);
    assert_eq!((reuse.tag, reuse.j), (Use::MUL3, 1));
}

#[test]
fn an_honest_job_does_not_ring() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        World::in_chunks(everything(ring, &[20, 9]), 8, 2)
            .run()
            .assert_right();
    }
}
