//! Columns that wait on a party's disk while its memory is for others.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use veil_engine::{Abort, Acts, Room, columns_of_a_pass};
use veil_job::{Audience, DataError, Holder, Security, Spill};
use veil_operators::{Key, Sharing};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::{PartyId, Peer};

use crate::common::programs::{
    CPU, Ends, builder, honest, parties, random, run, run_in, securities,
};

/// What becomes of columns.
#[derive(Clone, Copy, PartialEq)]
enum Disk {
    Works,
    /// It has no room for the column of this number.
    Full(usize),
    /// It gives another byte back for the column of this number.
    Fails(usize),
}

/// A disk that is memory, and notes how much it has had.
struct Noted {
    disk: Disk,
    all: Mutex<(BTreeMap<u64, Vec<u8>>, u64, u64)>,
}

impl Noted {
    fn new(disk: Disk) -> Arc<Self> {
        Arc::new(Noted {
            disk,
            all: Mutex::default(),
        })
    }

    /// Columns that it had, bytes of them at once at most, and columns that it has.
    fn had(&self) -> (u64, u64, usize) {
        let all = self.all.lock().unwrap();
        (all.1, all.2, all.0.len())
    }
}

impl Spill for Noted {
    fn put(&self, bytes: &[u8]) -> Result<u64, DataError> {
        let mut all = self.all.lock().unwrap();
        let place = all.1;
        if self.disk == Disk::Full(place as usize) {
            return Err(DataError::own(io::Error::other("the disk is full")));
        }
        all.1 += 1;
        all.0.insert(place, bytes.to_vec());
        all.2 = all
            .0
            .values()
            .map(|of| of.len() as u64)
            .sum::<u64>()
            .max(all.2);
        Ok(place)
    }

    fn get(&self, place: u64, into: &mut [u8]) -> Result<(), DataError> {
        let bytes = self.all.lock().unwrap().0.remove(&place).unwrap();
        if self.disk == Disk::Fails(place as usize) {
            return Err(DataError::own(io::Error::other("they are not the ones")));
        }
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn free(&self, place: u64) {
        self.all.lock().unwrap().0.remove(&place);
    }
}

/// Columns that stay where they are.
const STAY: usize = 12;

/// Sorts a relation of four columns by the first, and then by the second, and opens all, with columns that nothing takes before: by comparisons and by
/// digits, of many chunks.
fn sorting(security: Security, rows: u32, lanes: u16) -> (Arc<PassProgram>, Vec<Vec<u128>>) {
    let mut b = builder(security, parties(security));
    let widths = [24, 6, 64, 128];
    let columns = widths.map(|bits| b.input(Holder::Owner(0), "column", rows, Sharing::Bits(bits)));
    let stay: Vec<_> = (0..STAY)
        .map(|_| b.input(Holder::Owner(0), "column", rows, Sharing::Bits(128)))
        .collect();
    let first = b.sort(&Key::of(&columns[..1]));
    let once = b.apply(&first, &columns);
    let second = b.sort(&Key::of(&once[1..2]));
    let twice = b.apply(&second, &once);
    b.open(&twice, Audience::Recipient(0), "the rows in order");
    b.open(&stay, Audience::Recipient(0), "the others");
    let options = Options {
        lanes,
        chunk_rows: Some(512),
    };
    let program = Arc::new(PassProgram::new(&b.finish(), options).unwrap());
    let widths = widths.into_iter().chain([128; STAY]);
    let values = (3..)
        .zip(widths)
        .map(|(seed, bits)| random(seed, rows, bits));
    (program, values.collect())
}

/// The rows in the order of the second column, those of one value in the order of the first.
fn wanted(values: &[Vec<u128>]) -> Vec<Vec<u128>> {
    let mut order: Vec<usize> = (0..values[0].len()).collect();
    order.sort_by_key(|row| (values[1][*row], values[0][*row]));
    let of = |column: &Vec<u128>| order.iter().map(|row| column[*row]).collect();
    let sorted = values[..4].iter().map(of);
    sorted.chain(values[4..].iter().cloned()).collect()
}

/// Whatever room there is, rows come out the same, and the disk has nothing of a run that is over. What a party has in memory is no more than what
/// it has room for, or what one pass takes.
#[test]
fn rows_are_the_same_in_any_room() {
    for (security, lanes) in securities().into_iter().zip([1, 3, 1]) {
        let (program, values) = sorting(security, 1300, lanes);
        let all = values[0].len() as u64 * 2 * 16 * (STAY as u64 + 4);
        let party = Peer::Party(PartyId::FOUR[..parties(security)][0]);
        let least = columns_of_a_pass(&Acts::new(Arc::clone(&program), party));
        let mut at_once = Vec::new();
        for bytes in [0, least, least + all / 4, 100 * all] {
            let disks: BTreeMap<Peer, Arc<Noted>> = PartyId::FOUR[..parties(security)]
                .iter()
                .map(|party| (Peer::Party(*party), Noted::new(Disk::Works)))
                .collect();
            let room = |peer: Peer| {
                let spill = Arc::clone(disks.get(&peer)?) as Arc<dyn Spill>;
                Some(Room { bytes, spill })
            };
            let ends = Ends::of(&program, &values);
            run_in(&program, &ends, CPU, &honest(), &room).unwrap();
            assert!(
                ends.opened(&program) == wanted(&values),
                "{security}, {bytes}"
            );
            for disk in disks.values() {
                assert_eq!(disk.had().2, 0, "{security}, {bytes}: nothing is left");
            }
            at_once.push(disks[&party].had());
        }
        let [none, least, half, enough] = at_once[..] else {
            unreachable!("four runs")
        };
        assert!(
            none.1 >= least.1 && least.1 >= half.1 && half.1 > 0,
            "{at_once:?}"
        );
        assert!(none.0 > half.0, "{at_once:?}");
        assert_eq!(enough.0, 0, "there is room for all");
    }
}

/// A party whose disk is full, or gives back something else, says so, and ends the run before anything is opened.
#[test]
fn a_disk_that_fails_ends_the_run() {
    for security in securities() {
        let (program, values) = sorting(security, 700, 1);
        let second = Peer::Party(PartyId::FOUR[..parties(security)][1]);
        for (disk, told) in [
            (Disk::Full(3), "the disk is full"),
            (Disk::Fails(4), "they are not the ones"),
        ] {
            let disk = Noted::new(disk);
            let room = |peer: Peer| {
                let spill = Arc::clone(&disk) as Arc<dyn Spill>;
                (peer == second).then_some(Room { bytes: 0, spill })
            };
            let ends = Ends::of(&program, &values);
            let failure = run_in(&program, &ends, CPU, &honest(), &room).unwrap_err();
            assert!(
                ends.seen.values().all(|seen| !seen.finished()),
                "{security}"
            );
            for (peer, abort) in &failure.0 {
                if *peer == second {
                    assert!(matches!(abort, Abort::Data(_)), "{abort}");
                    assert_eq!(abort.to_string(), told);
                } else {
                    assert!(
                        matches!(abort, Abort::Told { by, .. } if *by == second),
                        "{abort}"
                    );
                }
            }
        }
        // Nothing else of that program fails.
        let ends = Ends::of(&program, &values);
        run(&program, &ends, CPU, &honest()).unwrap();
        assert!(ends.opened(&program) == wanted(&values));
    }
}
