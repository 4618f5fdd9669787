//! Products of matrices of shares, as passes over columns: results, costs, messages, and cheats.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use veil_engine::Abort;
use veil_job::passes::{ColumnId, PassSpec, ProgramSpec, Take};
use veil_job::{Adversary, Audience, Holder, Security};
use veil_link::LinkFault;
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_operators::{Builder, Shared, Sharing};
use veil_protocol::passes::{Pass, PassProgram, ProgramError};
use veil_protocol::{Options, Task};
use veil_session::{Channel, PartyId, Peer};

use crate::common::programs::{
    CPU, Ends, Factory, REFERENCE, Tap, builder, honest, opened, parties, random, run, securities,
    sent,
};

const RINGS: [Ring; 3] = [Ring::Z32, Ring::Z64, Ring::Z128];

/// A matrix in the clear, column by column.
type Matrix = Vec<Vec<u128>>;

fn matrix(seed: u64, rows: u32, columns: u32, ring: Ring) -> Matrix {
    let column = |k| random(seed + u64::from(k), rows, ring.bits());
    (0..columns).map(column).collect()
}

/// The product, as it is defined.
fn product(ring: Ring, left: &Matrix, right: &Matrix) -> Matrix {
    let element = |row: usize, column: &Vec<u128>| {
        let terms = left.iter().zip(column);
        terms.fold(0, |sum, (of, b)| ring.add(sum, ring.mul(of[row], *b)))
    };
    let rows = 0..left[0].len();
    let column = |column| rows.clone().map(|row| element(row, column)).collect();
    right.iter().map(column).collect()
}

fn transposed(of: &Matrix) -> Matrix {
    let rows = 0..of[0].len();
    rows.map(|row| of.iter().map(|column| column[row]).collect())
        .collect()
}

fn inputs(b: &mut Builder, rows: u32, columns: u32, ring: Ring) -> Vec<Shared> {
    let input = |_| b.input(Holder::Owner(0), "x", rows, Sharing::Ring(ring));
    (0..columns).map(input).collect()
}

const OPENED: &str = "the product";

/// X W and Xᵀ (X W): a long dimension outside, and one inside.
fn both(security: Security, ring: Ring, [rows, left, right]: [u32; 3]) -> ProgramSpec {
    let mut b = builder(security, parties(security));
    let x = inputs(&mut b, rows, left, ring);
    let w = inputs(&mut b, left, right, ring);
    let xw = b.product(&x, &w);
    let xxw = b.transposed_product(&x, &xw);
    let to = Audience::Recipient(0);
    b.open(&xw, to, OPENED);
    b.open(&xxw, to, OPENED);
    b.finish()
}

#[test]
fn products_are_those_in_the_clear() {
    for (shape, lanes) in [
        ([1, 1, 1], 1),
        ([7, 3, 2], 1),
        ([33, 5, 4], 2),
        ([1, 9, 1], 1),
        ([700, 2, 3], 1),
    ] {
        for ring in RINGS {
            let [rows, left, right] = shape;
            let (x, w) = (matrix(1, rows, left, ring), matrix(50, left, right, ring));
            let xw = product(ring, &x, &w);
            let want = [xw.clone(), product(ring, &transposed(&x), &xw)].concat();
            let columns = [x, w].concat();
            for security in securities() {
                let spec = both(security, ring, shape);
                let devices: &[Factory] = if rows < 100 {
                    &[REFERENCE, CPU]
                } else {
                    &[CPU]
                };
                for device in devices {
                    let got = opened(&spec, &columns, *device, lanes);
                    assert!(got == want, "{shape:?} {} {security}", ring.name());
                }
            }
        }
    }
}

/// What is taken may be made of columns: a window of rows, as of a convolution, and a public column.
#[test]
fn products_are_of_what_is_taken() {
    let (rows, ring) = (40u32, Ring::Z64);
    let signal = random(3, rows, 64);
    let weights = random(4, 4, 64);
    for security in securities() {
        let mut b = builder(security, parties(security));
        let x = inputs(&mut b, rows, 1, ring)[0];
        let w = inputs(&mut b, 4, 1, ring)[0];
        let mut left: Vec<Take> = (0..3).map(|first| x.rows_from(first)).collect();
        left.push(Take::Sums {
            of: None,
            row: 0,
            constant: 1,
            totals: vec![],
            ring,
        });
        let out = b.product_of(rows - 2, (ring, false), left, vec![w.take()]);
        b.open(&out, Audience::Recipient(0), OPENED);
        let got = opened(&b.finish(), &[signal.clone(), weights.clone()], CPU, 1);
        let want = (0..rows as usize - 2).map(|row| {
            let terms = (0..3).map(|k| ring.mul(signal[row + k], weights[k]));
            terms.fold(weights[3], |a, b| ring.add(a, b))
        });
        assert_eq!(got, [want.collect::<Vec<_>>()], "{security}");
    }
}

fn planned(spec: &ProgramSpec) -> Arc<PassProgram> {
    Arc::new(PassProgram::new(spec, Options::default()).unwrap())
}

/// The numbers of products among the passes of a program.
fn products(program: &PassProgram) -> Vec<u16> {
    let passes = (0..).zip(program.passes());
    let products = passes.filter(|(_, pass)| matches!(pass, Pass::Product { .. }));
    products.map(|(number, _)| number).collect()
}

/// One element is sent for each joint message and element of the product, whatever is added up; the formulas say as much.
#[test]
fn costs_are_those_of_the_formulas() {
    for security in securities() {
        for ring in RINGS {
            let (shape, bytes) = ([37, 3, 2], ring.bytes(1));
            let program = planned(&both(security, ring, shape));
            let columns = [matrix(1, 37, 3, ring), matrix(9, 3, 2, ring)].concat();
            let ends = Ends::of(&program, &columns);
            let all = sent(&program, &ends);
            let elements = [37 * 2, 3 * 2];
            for (pass, elements) in products(&program).into_iter().zip(elements) {
                let mut total = 0;
                for party in program.first().parties() {
                    let me = Peer::Party(*party);
                    let own = all.iter();
                    let own = own.filter(|(from, _, at, _)| *from == me && at.frame.epoch == pass);
                    let (count, sent) = own.fold((0, 0), |(count, sum), (.., bytes)| {
                        (count + 1, sum + *bytes as u64)
                    });
                    let of = &program.passes()[usize::from(pass)];
                    let cost = of
                        .protocol(me)
                        .cost(Task::Layers, of.whole().unwrap().frame);
                    assert_eq!(
                        (cost.messages, cost.bytes),
                        (count, sent),
                        "{security} {me}"
                    );
                    assert_eq!(cost.rounds, 1);
                    total += sent;
                }
                let want = match (parties(security), security.adversary) {
                    (3, _) => 3 * elements * bytes,
                    (_, Adversary::SemiHonest) => 6 * elements * bytes,
                    _ => 6 * (elements * bytes + 16),
                };
                assert_eq!(total, want, "{security} {}", ring.name());
            }
        }
    }
}

/// What is sent, how long it is and in which order says nothing of values; and what is sent of equal values in runs of other keys differs: it is masked.
#[test]
fn messages_say_nothing_of_values() {
    for security in securities() {
        let ring = Ring::Z64;
        let program = planned(&both(security, ring, [20, 3, 2]));
        let numbers = products(&program);
        let contents = |columns: &[Vec<u128>]| {
            let all = Arc::new(Mutex::new(BTreeMap::new()));
            let note = Arc::clone(&all);
            let of = numbers.clone();
            let tap: Tap = Arc::new(move |from, to, at: Channel, bytes: &[u8]| {
                if of.contains(&at.frame.epoch) {
                    let key = (from, to, at.frame.epoch, at.part);
                    note.lock().unwrap().insert(key, bytes.to_vec());
                }
                Fate::Pass
            });
            run(&program, &Ends::of(&program, columns), CPU, &tap).unwrap();
            all.lock().unwrap().clone()
        };
        let zeros = [vec![vec![0; 20]; 3], vec![vec![0; 3]; 2]].concat();
        let others = [matrix(1, 20, 3, ring), matrix(9, 3, 2, ring)].concat();
        let [first, second, third] = [&zeros, &zeros, &others].map(|of| contents(of));
        assert!(first.keys().eq(second.keys()) && first.keys().eq(third.keys()));
        for (key, bytes) in &first {
            assert_eq!(bytes.len(), third[key].len());
            // Of products of zeros: uniform elements, none of which is there twice.
            assert_ne!(bytes, &second[key], "{security} {key:?}");
            let elements: std::collections::BTreeSet<_> = bytes.chunks(8).collect();
            assert_eq!(elements.len(), bytes.len() / 8, "{security} {key:?}");
            assert!(!bytes.chunks(8).any(|element| element == [0; 8]));
        }
    }
}

fn malicious() -> Security {
    let [.., security] = securities();
    assert_eq!(security.adversary, Adversary::Malicious);
    security
}

/// A message: from whom, to whom, under which name, how long.
type Message = (Peer, Peer, Channel, usize);

/// The program of cheats, its values, and all messages of its products.
fn cheated(security: Security) -> (Arc<PassProgram>, Vec<Vec<u128>>, Vec<Message>) {
    let ring = Ring::Z64;
    let program = planned(&both(security, ring, [5, 3, 2]));
    let columns = [matrix(1, 5, 3, ring), matrix(9, 3, 2, ring)].concat();
    let all = sent(&program, &Ends::of(&program, &columns));
    let numbers = products(&program);
    let of = all
        .into_iter()
        .filter(|(_, _, at, _)| numbers.contains(&at.frame.epoch));
    (Arc::clone(&program), columns, of.collect())
}

/// Does something for each item, by several threads: most of a run that ends is waiting.
fn each<T: Sync>(all: &[T], of: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(item) = all.get(next.fetch_add(1, Relaxed)) {
                    of(item);
                }
            });
        }
    });
}

/// A run in which this message has another fate.
fn changed(
    (program, columns): (&Arc<PassProgram>, &[Vec<u128>]),
    (from, to, at, _): Message,
    fate: impl Fn(&[u8]) -> Fate + Send + Sync + 'static,
) -> (Result<(), veil_engine::local::Failure>, Ends) {
    let ends = Ends::of(program, columns);
    let tap: Tap = Arc::new(move |sender, receiver, name, bytes| {
        if (sender, receiver, name) == (from, to, at) {
            fate(bytes)
        } else {
            Fate::Pass
        }
    });
    let ran = run(program, &ends, CPU, &tap).map(drop);
    (ran, ends)
}

fn nothing_is_opened(ends: &Ends) {
    assert!(ends.seen.values().all(|seen| seen.slices().is_empty()));
}

/// The first and the last element of every joint message, and every code.
#[test]
fn a_wrong_joint_message_or_code_is_found_and_both_givers_are_named() {
    let (program, columns, all) = cheated(malicious());
    // Six joint messages of two columns, and of one list of elements, with six codes each.
    assert_eq!(all.len(), (6 * 2 + 6) + (6 + 6));
    let lies: Vec<(Message, usize)> = all
        .iter()
        .flat_map(|message| [(*message, 0), (*message, message.3 - 1)])
        .collect();
    each(&lies, |(message, byte)| {
        let (liar, receiver, at, _) = *message;
        let byte = *byte;
        let (ran, ends) = changed((&program, &columns), *message, move |bytes| {
            let mut bytes = bytes.to_vec();
            bytes[byte] ^= 0x80;
            Fate::Replace(bytes)
        });
        let failure = ran.expect_err("a lie");
        match &failure.0[&receiver] {
            Abort::Cheated {
                at: found,
                suspects,
                what,
            } => {
                assert_eq!(*what, "a joint message of a product of matrices");
                assert_eq!(
                    (found.frame.epoch, found.step.place),
                    (at.frame.epoch, at.step.place)
                );
                assert!(
                    suspects.len() == 2 && suspects.contains(&liar),
                    "{suspects:?}"
                );
            }
            other => panic!("{message:?}: {other}"),
        }
        nothing_is_opened(&ends);
    });
}

/// Among three parties that are semi-honest, and among four.
#[test]
fn a_message_that_is_absent_late_too_short_too_long_or_repeated() {
    let [three, ..] = securities();
    assert_eq!(parties(three), 3);
    for security in [three, malicious()] {
        changed_ways(security);
    }
}

fn changed_ways(security: Security) {
    let (program, columns, all) = cheated(security);
    let right = {
        let ends = Ends::of(&program, &columns);
        run(&program, &ends, CPU, &honest()).unwrap();
        ends.opened(&program)
    };
    let refused = AtomicUsize::new(0);
    each(&all, |message| {
        let (liar, receiver, ..) = *message;
        let of = (&program, &columns[..]);
        // Absent: who waits for it names who has not sent it.
        let (ran, ends) = changed(of, *message, |_| Fate::Drop);
        let failure = ran.expect_err("a message that does not come");
        let waits = match &failure.0[&receiver] {
            Abort::Stalled { waits, .. } | Abort::Told { waits, .. } => waits,
            other => panic!("{message:?}: {other}"),
        };
        assert!(waits.iter().any(|wait| wait.peer == liar), "{waits:?}");
        nothing_is_opened(&ends);
        // Late: nothing is wrong.
        let (ran, ends) = changed(of, *message, |_| Fate::Delay(Duration::from_millis(50)));
        ran.unwrap();
        assert_eq!(ends.opened(&program), right);
        // Of another length.
        for change in [-1isize, 1] {
            let (ran, ends) = changed(of, *message, move |bytes| {
                let mut bytes = bytes.to_vec();
                bytes.resize(bytes.len().saturating_add_signed(change), 0);
                Fate::Replace(bytes)
            });
            let failure = ran.expect_err("a message of another length");
            match &failure.0[&receiver] {
                Abort::Link(error) => {
                    let got = message.3.saturating_add_signed(change) as u64;
                    let want = message.3 as u64;
                    assert_eq!((error.peer, error.at), (liar, Some(message.2)));
                    assert_eq!(error.fault, LinkFault::Length { got, want });
                }
                other => panic!("{message:?}: {other}"),
            }
            nothing_is_opened(&ends);
        }
        // Twice: the second one is refused, or comes when the run is over.
        let (ran, ends) = changed(of, *message, |_| Fate::Twice);
        match ran {
            Ok(()) => assert_eq!(ends.opened(&program), right),
            Err(failure) => match &failure.0[&receiver] {
                Abort::Link(error) => {
                    assert_eq!((error.peer, &error.fault), (liar, &LinkFault::Duplicate));
                    refused.fetch_add(1, Relaxed);
                }
                other => panic!("{message:?}: {other}"),
            },
        }
    });
    assert!(refused.into_inner() > all.len() / 2);
}

#[test]
fn three_parties_of_whom_one_is_malicious_multiply_no_matrices() {
    let three = Security {
        adversary: Adversary::Malicious,
        ..Security::among(3)
    };
    let spec = both(three, Ring::Z64, [5, 3, 2]);
    let refused = PassProgram::new(&spec, Options::default()).expect_err("no such protocol");
    assert!(matches!(refused, ProgramError::Matrices(of) if of == three));
    assert_eq!(
        refused.to_string(),
        format!(
            "matrices are multiplied among three parties that are semi-honest, and among four, in runs that end where a party fails; the job has {three}: \
             ask for four parties"
        )
    );
}

type Change = fn(&mut PassSpec);

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let [security, ..] = securities();
    let good = both(security, Ring::Z64, [5, 3, 2]);
    let at = products(&planned(&good));
    let cases: [(Change, &str); 9] = [
        (
            |of| {
                if let PassSpec::Product { rows, .. } = of {
                    *rows = 6;
                }
            },
            "a column that is taken as it is has the pass's rows",
        ),
        (
            |of| {
                if let PassSpec::Product { rows, .. } = of {
                    *rows = 0;
                }
            },
            "a matrix has a row, and 1 to 4096 columns",
        ),
        (
            |of| {
                if let PassSpec::Product { left, .. } = of {
                    left.clear();
                }
            },
            "a matrix has a row, and 1 to 4096 columns",
        ),
        (
            |of| {
                if let PassSpec::Product { left, .. } = of {
                    *left = vec![left[0].clone(); 4097];
                }
            },
            "a matrix has a row, and 1 to 4096 columns",
        ),
        (
            |of| {
                if let PassSpec::Product { ring, .. } = of {
                    *ring = Ring::Bits;
                }
            },
            "matrices are of integers modulo 2^32, 2^64 or 2^128",
        ),
        (
            |of| {
                if let PassSpec::Product { ring, .. } = of {
                    *ring = Ring::Z32;
                }
            },
            "a column is taken in its own form",
        ),
        (
            |of| {
                if let PassSpec::Product { left, .. } = of {
                    drop(left.pop());
                }
            },
            "a column that is taken as it is has the pass's rows",
        ),
        (
            |of| {
                if let PassSpec::Product { transposed, .. } = of {
                    *transposed = true;
                }
            },
            "a column that is taken as it is has the pass's rows",
        ),
        (
            |of| {
                if let PassSpec::Product { left, .. } = of {
                    left[0] = Take::Of(ColumnId(6));
                }
            },
            "a column is taken after the pass that leaves it",
        ),
    ];
    for (change, want) in cases {
        let mut spec = good.clone();
        change(&mut spec.passes[usize::from(at[0])]);
        let refused = PassProgram::new(&spec, Options::default()).expect_err(want);
        let want = format!("pass {} of the program: {want}", at[0]);
        assert_eq!(refused.to_string(), want);
    }
    let mut spec = good.clone();
    if let PassSpec::Product { leaves, .. } = &mut spec.passes[usize::from(at[0])] {
        leaves.push(None);
    }
    let refused = PassProgram::new(&spec, Options::default()).expect_err("a column more");
    let want = "a product has as many columns as its right matrix";
    assert!(refused.to_string().ends_with(want), "{refused}");
    // Every part of a product is under the hash.
    let hash = |spec: &ProgramSpec| PassProgram::new(spec, Options::default()).map(|of| of.hash());
    let mut hashes = vec![hash(&good).unwrap()];
    let square = both(security, Ring::Z64, [3, 3, 2]);
    let plain = planned(&square);
    hashes.push(plain.hash());
    for change in [
        (|of: &mut PassSpec| {
            if let PassSpec::Product { transposed, .. } = of {
                *transposed = true;
            }
        }) as Change,
        |of| {
            if let PassSpec::Product { rotation, .. } = of {
                *rotation += 1;
            }
        },
        |of| {
            if let PassSpec::Product { left, .. } = of {
                left.swap(0, 1);
            }
        },
        |of| {
            if let PassSpec::Product { right, .. } = of {
                right.swap(0, 1);
            }
        },
        |of| {
            if let PassSpec::Product { leaves, .. } = of {
                leaves.swap(0, 1);
            }
        },
    ] {
        let mut spec = square.clone();
        change(&mut spec.passes[usize::from(products(&plain)[0])]);
        hashes.push(hash(&spec).unwrap());
    }
    let different: std::collections::BTreeSet<_> = hashes.iter().map(|hash| hash.0).collect();
    assert_eq!(different.len(), hashes.len());
}

/// One party of three is silent in a product.
#[test]
fn a_party_that_is_silent_in_a_product_is_named() {
    let [security, ..] = securities();
    let program = planned(&both(security, Ring::Z32, [5, 3, 2]));
    let columns = [matrix(1, 5, 3, Ring::Z32), matrix(9, 3, 2, Ring::Z32)].concat();
    let ends = Ends::of(&program, &columns);
    let silent = Peer::Party(PartyId::THREE[1]);
    let first = products(&program)[0];
    let tap: Tap = Arc::new(move |from, _, at, _| {
        if from == silent && at.frame.epoch >= first {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let failure = run(&program, &ends, CPU, &tap).expect_err("a party that is silent");
    let named = failure.0.values().any(|abort| match abort {
        Abort::Stalled { waits, .. } | Abort::Told { waits, .. } => {
            waits.iter().any(|wait| wait.peer == silent)
        }
        _ => false,
    });
    assert!(named, "{failure:?}");
    nothing_is_opened(&ends);
}
