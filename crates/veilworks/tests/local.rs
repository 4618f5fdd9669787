//! Jobs of circuits and files, all participants in this process: results against the clear computation, progress, stopping.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use veilworks::{
    Builder, Code, Computation, DataError, Job, Local, Per, Phase, Ring, Slice, Source, Values,
};

/// x y and x + y of every row, over a ring.
pub(crate) fn both(ring: Ring, parties: usize, rows: u64) -> Job {
    let mut circuit = Builder::new(ring);
    let [x, y] = ["x", "y"].map(|name| circuit.input(name, 1, Per::Row)[0]);
    let (product, sum) = (circuit.mul(x, y), circuit.add(x, y));
    circuit.output("product", &[product]);
    circuit.output("sum", &[sum]);
    Computation::new("both", circuit.finish().unwrap())
        .parties(["a", "b", "c", "d"].into_iter().take(parties))
        .input("x", "ann")
        .input("y", "b")
        .output("product", "eve", "the product, for every row")
        .output("sum", "a", "the sum, for every row")
        .rows(rows)
        .job()
        .unwrap()
}

#[test]
fn circuits_over_all_rings_and_parties_give_what_the_clear_computation_gives() {
    for (ring, modulus) in [(Ring::Z64, 64), (Ring::Z128, 128), (Ring::Bits, 1)] {
        for parties in [2, 3, 4] {
            if parties == 2 && ring != Ring::Bits {
                // Garbled circuits are circuits of bits.
                continue;
            }
            let mask = u128::MAX >> (128 - modulus);
            let x: Vec<u128> = (0..100)
                .map(|k: u128| k.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) & mask)
                .collect();
            let y: Vec<u128> = (0..100)
                .map(|k: u128| (k * k + 7).wrapping_mul(0x1234_5678_9abc_def1) & mask)
                .collect();
            let outcome = Local::of(&both(ring, parties, 100))
                .values("ann", Values::new().integers("x", x.clone()))
                .values("b", Values::new().elements("y", y.clone()))
                .run()
                .unwrap();
            let products: Vec<u128> = x
                .iter()
                .zip(&y)
                .map(|(x, y)| x.wrapping_mul(*y) & mask)
                .collect();
            let sums: Vec<u128> = x
                .iter()
                .zip(&y)
                .map(|(x, y)| x.wrapping_add(*y) & mask)
                .collect();
            let opened = |who: &str, port: &str| outcome.opened(who).unwrap().integers(port);
            assert_eq!(
                opened("eve", "product"),
                Some(products),
                "{ring:?} {parties}"
            );
            assert_eq!(opened("a", "sum"), Some(sums), "{ring:?} {parties}");
            // No participant gets what was not opened to it.
            assert_eq!(opened("eve", "sum"), None);
            assert!(outcome.opened("ann").is_none() && outcome.statistics("eve").is_none());
            assert_eq!(outcome.reports().count(), parties + 2);
        }
    }
}

#[test]
fn numbers_fill_the_bits_of_a_port_and_come_back() {
    let mut circuit = Builder::new(Ring::Bits);
    let x = circuit.input("x", 20, Per::Row);
    let mask = circuit.input("mask", 20, Per::Job);
    let masked: Vec<_> = x
        .iter()
        .zip(&mask)
        .map(|(x, m)| circuit.mul(*x, *m))
        .collect();
    circuit.output("masked", &masked);
    let job = Computation::new("masked", circuit.finish().unwrap())
        .parties(["a", "b", "c"])
        .input("x", "ann")
        .input("mask", "ann")
        .output("masked", "ann", "x where the mask is set")
        .rows(3)
        .job()
        .unwrap();
    let values = Values::new().integers("x", [0xf_ffff_u32, 0x12345, 0]);
    let outcome = Local::of(&job)
        .values("ann", values.integers("mask", [0x0_ff0f_u32]))
        .run()
        .unwrap();
    let opened = outcome.opened("ann").unwrap();
    assert_eq!(opened.integers("masked"), Some(vec![0x0_ff0f, 0x2305, 0]));
    let bits = opened.elements("masked").unwrap();
    assert_eq!((bits.len(), bits.iter().sum::<u128>()), (60, 12 + 5));
}

#[test]
fn a_job_is_planned_once_and_two_of_one_hash_are_the_same() {
    let (one, other) = (both(Ring::Z64, 3, 5), both(Ring::Z64, 3, 5));
    assert_eq!(one.hash(), other.hash());
    assert!(Arc::ptr_eq(one.plan(), one.clone().plan()));
    for different in [
        both(Ring::Z64, 3, 6),
        both(Ring::Z128, 3, 5),
        both(Ring::Z64, 4, 5),
        one.on_lanes(2).unwrap(),
    ] {
        assert_ne!(one.hash(), different.hash());
    }
    assert_eq!(one.participants(), ["a", "b", "c", "ann", "eve"]);
    let opens = [
        ("the product, for every row", "eve"),
        ("the sum, for every row", "a"),
    ];
    assert_eq!(
        one.opens(),
        opens.map(|(what, who)| (what.to_owned(), who.to_owned()))
    );
    for _ in 0..2 {
        let values = |port: &str| Values::new().integers(port, [1_u64, 2, 3, 4, 5]);
        let run = Local::of(&one)
            .values("ann", values("x"))
            .values("b", values("y"));
        let outcome = run.run().unwrap();
        let product = outcome.opened("eve").unwrap().integers("product");
        assert_eq!(product, Some(vec![1, 4, 9, 16, 25]));
    }
}

/// Rows that come so slowly that the run is under way when it is looked at.
struct Slow(Duration);

impl Source for Slow {
    fn fill(&self, _: usize, _: Slice, into: &mut [u8]) -> Result<(), DataError> {
        std::thread::sleep(self.0);
        into.fill(1);
        Ok(())
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_run_tells_how_far_it_is_and_is_a_future_of_its_outcome() {
    let job = both(Ring::Z64, 3, 200_000);
    let slow = Arc::new(Slow(Duration::from_millis(5)));
    let run = Local::of(&job)
        .source("ann", slow.clone())
        .source("b", slow)
        .start();
    let mut last = 0;
    let mut phases = Vec::new();
    for participants in run.progress() {
        let rows = participants.iter().map(|one| one.rows).min().unwrap();
        assert!(rows >= last && rows <= 200_000, "{rows} after {last}");
        last = rows;
        phases.extend(participants.iter().map(|one| one.phase));
    }
    assert!(phases.contains(&Phase::Done));
    let (woken, mut run) = (Arc::new(Woken::default()), pin!(run));
    let waker = Waker::from(woken);
    let Poll::Ready(outcome) = run.as_mut().poll(&mut Context::from_waker(&waker)) else {
        panic!("the progress has ended, and so has the run");
    };
    assert_eq!(
        outcome
            .unwrap()
            .opened("eve")
            .unwrap()
            .integers("product")
            .unwrap()
            .len(),
        200_000
    );
    let again = run.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(again, Poll::Ready(Err(error)) if error.code() == Code::Usage));
}

#[test]
fn a_caller_that_awaits_a_run_is_woken_at_its_end() {
    let slow = Arc::new(Slow(Duration::from_millis(50)));
    let run = Local::of(&both(Ring::Z64, 3, 4))
        .source("ann", slow.clone())
        .source("b", slow)
        .start();
    let (woken, mut run) = (Arc::new(Woken::default()), pin!(run));
    let waker = Waker::from(Arc::clone(&woken));
    let until = Instant::now() + Duration::from_secs(30);
    let mut polls = 0;
    loop {
        let before = woken.0.load(Ordering::Relaxed);
        polls += 1;
        if let Poll::Ready(outcome) = run.as_mut().poll(&mut Context::from_waker(&waker)) {
            outcome.unwrap();
            break;
        }
        while woken.0.load(Ordering::Relaxed) == before {
            assert!(Instant::now() < until, "it is never woken");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(polls >= 2, "it was over before it was asked");
}

#[test]
fn a_run_that_is_stopped_ends_soon_and_gives_nothing() {
    let slow = Arc::new(Slow(Duration::from_millis(5)));
    let start = || {
        let job = both(Ring::Z64, 3, 3_000_000);
        Local::of(&job)
            .source("ann", slow.clone())
            .source("b", slow.clone())
            .start()
    };
    let run = start();
    let _ = run.progress().next();
    run.stop();
    let began = Instant::now();
    let error = run.join().unwrap_err();
    assert_eq!(error.code(), Code::Other);
    assert_eq!(
        error.to_string(),
        "stopped; the other participants were told, nothing was published"
    );
    assert!(began.elapsed() < Duration::from_secs(10));
    // Dropping it is stopping it: its stream ends.
    let run = start();
    let updates = run.progress();
    drop(run);
    let began = Instant::now();
    assert!(
        updates
            .last()
            .is_none_or(|last| last.iter().all(|one| one.rows < 3_000_000))
    );
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_job_file_gives_statistics_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let table = |name: &str, rows: &[u64]| {
        let rows: Vec<String> = rows.iter().map(u64::to_string).collect();
        std::fs::write(
            folder.path().join(name),
            format!("pay\n{}\n", rows.join("\n")),
        )
        .unwrap();
    };
    table("north.csv", &[10, 20, 30, 40]);
    table("south.csv", &[50, 60]);
    let block = |name: &str, rows: u64| {
        format!(
            "[[block]]\nname = \"{name}\"\nrows = {rows}\nholds = {{ {name} = [\"pay\"] }}\nfiles = {{ {name} = \"{name}.csv\" }}\n"
        )
    };
    let job = format!(
        "version = 1\nkind = \"stats\"\nname = \"pay\"\nparties = [\"a\", \"b\", \"c\"]\nowners = [\"north\", \"south\"]\n\
         recipients = [\"eve\"]\n[[column]]\nname = \"pay\"\ntype = \"integer\"\nmin = 0\nmax = 1000\n{}{}\
         [[analysis]]\nname = \"mean pay\"\nkind = \"mean\"\nof = \"pay\"\nto = \"eve\"\n",
        block("north", 4),
        block("south", 2)
    );
    std::fs::write(folder.path().join("job.toml"), job).unwrap();
    let job = Job::read(folder.path().join("job.toml")).unwrap();
    let outcome = Local::of(&job).run().unwrap();
    let text = outcome.statistics("eve").unwrap().to_string();
    assert!(text.contains("35"), "{text}");
    let out = folder.path().join("results");
    let outcome = Local::of(&job).out(&out).run().unwrap();
    assert_eq!(outcome.statistics("eve").unwrap().to_string(), text);
    assert!(out.join("eve/result.json").is_file());
}

/// Queries of a job file: results are in the outcome, and their tables in files alone.
#[test]
fn queries_are_answered_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "g,x\nb,1\na,2\nb,40\n").unwrap();
    let text = r#"
        version = 1
        kind = "query"
        name = "sums"
        owners = ["ann"]
        parties = ["p", "q", "r"]
        recipients = ["eve"]
        table = [{ name = "t", owner = "ann", rows = { up_to = 5 }, file = "t.csv", column = [
            { name = "g", type = "category", values = ["a", "b", "c"] }, { name = "x", type = "integer", min = 0, max = 99 } ] }]
        query = { name = "q", sql = "SELECT g, sum(x) AS s FROM t GROUP BY g ORDER BY g", to = "eve" }
    "#;
    let job = Job::parse(text, folder.path()).unwrap();
    assert!(job.passes().count() > 1);
    assert_eq!(job.hash(), job.passes().program().hash());
    assert_eq!(
        job.opens(),
        [("`q`: up to 3 rows of g, s".to_owned(), "eve".to_owned())]
    );
    let outcome = Local::of(&job).run().unwrap();
    let [answer] = outcome.answers("eve").unwrap() else {
        panic!("one query was asked");
    };
    assert_eq!(answer.csv(), "g,s\na,2\nb,41\n");
    assert!(outcome.answers("ann").is_none() && outcome.opened("eve").is_none());
    // Other lanes are another plan with the same answer.
    let wide = job.on_lanes(2).unwrap();
    assert_ne!(wide.hash(), job.hash());
    let outcome = Local::of(&wide).run().unwrap();
    assert_eq!(outcome.answers("eve").unwrap()[0].csv(), "g,s\na,2\nb,41\n");
    assert_eq!(outcome.answers("eve").unwrap()[0].incomplete, None);
    // A bound that flags leaves out rows, and says so to whom the result is opened.
    for (rows, csv, missing) in [(1, "g,s\na,2\n", true), (2, "g,s\na,2\nb,41\n", false)] {
        let bound =
            format!("{text}\nbound = [{{ of = \"q\", rows = {rows}, overflow = \"flag\" }}]");
        let job = Job::parse(&bound, folder.path()).unwrap();
        let count = if rows == 1 { "1 row" } else { "2 rows" };
        let flag = format!(
            "`q`, one bit: whether groups of `t` has more than {count}; the result lacks rows if so, and the run goes on"
        );
        assert_eq!(
            job.opens(),
            [
                (format!("`q`: up to {count} of g, s"), "eve".to_owned()),
                (flag, "eve".to_owned())
            ]
        );
        let outcome = Local::of(&job).run().unwrap();
        let answer = &outcome.answers("eve").unwrap()[0];
        assert_eq!(
            (answer.csv().as_str(), answer.incomplete),
            (csv, Some(missing))
        );
    }
    // Values of a program would be of one pass of many.
    let refused = Local::of(&job)
        .values("ann", Values::new().integers("x", [1_u64]))
        .run();
    let error = refused.unwrap_err();
    assert_eq!(error.code(), Code::Usage, "{error}");
}
