//! The cleartext twin of a run: silent where all is right, exact where one bit is wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_device::{Cpu, Device};
use veil_engine::local::{self, Conditions};
use veil_engine::shadow::{Compared, Diverged, Divergence, NoShadow, Shadow};
use veil_engine::{Data, Settings, participants};
use veil_job::{Audience, Holder, JobSpec, Sink, Source};
use veil_math::Ring;
use veil_protocol::Replicated;
use veil_protocol::{Options, Plan};
use veil_session::Peer;
use veil_testkit::sample::{everything, job, peer};
use veil_testkit::{OneBitWrong, Seed, Seen, Values};

const RINGS: [Ring; 3] = [Ring::Bits, Ring::Z64, Ring::Z128];

/// Runs `job` in its shadow; the device of `wrong.0` computes program `wrong.1` wrong.
fn shadowed(job: JobSpec, wrong: Option<(Peer, u32)>) -> (Result<Compared, Divergence>, bool) {
    let options = Options {
        chunk_rows: Some(16),
        lanes: 2,
    };
    let values = Arc::new(Values::random(&job, Seed::any()));
    let plan = Arc::new(Plan::new(Arc::new(job), options).expect("a sample has a plan"));
    let sources: BTreeMap<Peer, Arc<dyn Source>> = participants(&plan)
        .into_iter()
        .map(|peer| (peer, Arc::clone(&values) as Arc<dyn Source>))
        .collect();
    let protocol = Arc::new(Replicated::new(Arc::clone(&plan), peer(0)));
    let shadow = Shadow::new(&plan, protocol, sources).expect("all owners have values");
    let settings = |peer: Peer| Settings {
        timeout: Duration::from_secs(5),
        device: Arc::new(move || {
            Ok(match wrong {
                Some((who, program)) if who == peer => {
                    Box::new(OneBitWrong::new(Box::new(Cpu::detect()), program)) as Box<dyn Device>
                }
                _ => Box::new(Cpu::detect()),
            })
        }),
        ..Settings::default()
    };
    let data = |_| Data {
        source: Some(Arc::clone(&values) as Arc<dyn Source>),
        sink: Some(shadow.sink(Arc::new(Seen::default()) as Arc<dyn Sink>)),
        ..Data::default()
    };
    let conditions = Conditions {
        settings: &settings,
        wrap: &|me, _, link| shadow.link(me, Box::new(link)),
        stop: None,
    };
    let ended = local::run_with(&plan, data, &|_| (), &conditions);
    (shadow.verdict(), ended.is_ok())
}

/// x y, then (x y) x, then ((x y) x) y: three layers of one product.
fn chain(ring: Ring) -> JobSpec {
    let port = |name: &str| InputPort {
        name: name.into(),
        width: 1,
        per: Per::Row,
        bits: false,
    };
    let circuit = Circuit {
        ring,
        inputs: vec![port("x"), port("y")],
        gates: vec![
            Gate::Mul(Wire(0), Wire(1)),
            Gate::Mul(Wire(2), Wire(0)),
            Gate::Mul(Wire(3), Wire(1)),
        ],
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: vec![Wire(4)],
            reduce: Reduce::None,
        }],
        clock: veil_circuit::Clock::default(),
    };
    let holders = [Holder::Owner(0), Holder::Owner(1)];
    job(circuit, &[(50, &holders)], &[Audience::Recipient(0)])
}

#[test]
fn a_right_run_has_the_same_shadow() {
    for ring in RINGS {
        let (verdict, ended) = shadowed(everything(ring, &[40, 33]), None);
        let compared = verdict.unwrap();
        assert!(ended);
        assert!(compared.layers >= 2, "{compared:?}");
        assert!(
            compared.products > 73 && compared.opened >= 73,
            "{compared:?}"
        );
        let (verdict, ended) = shadowed(chain(ring), None);
        let want = Compared {
            layers: 3,
            products: 150,
            opened: 50,
        };
        assert_eq!((verdict, ended), (Ok(want), true));
    }
}

#[test]
fn a_wrong_bit_is_found_in_its_layer() {
    for ring in RINGS {
        for layer in 0..3 {
            for who in [peer(0), peer(1), peer(2)] {
                let (verdict, ended) = shadowed(chain(ring), Some((who, layer as u32)));
                let found = verdict.unwrap_err();
                assert_eq!(found.what, Diverged::Product { layer, index: 0 });
                assert_eq!(found.row % 16, 0, "the first row of a chunk");
                // Adding two shares, one of them off by the lowest bit.
                let apart = ring.sub(found.actual, found.expected);
                assert!(apart == 1 || apart == ring.sub(0, 1), "{found}");
                assert!(!ended, "a run that diverged goes on");
                let text = found.to_string();
                let start = format!(
                    "layer {}, product 0, row {} of block",
                    layer + 1,
                    found.row + 1
                );
                assert!(text.starts_with(&start), "{text}");
            }
        }
    }
}

#[test]
fn sums_of_products_are_compared_too() {
    use veil_testkit::sample::dot;
    for ring in [Ring::Z64, Ring::Z128] {
        let job = || dot(ring, 77, Audience::Recipient(0));
        let (verdict, _) = shadowed(job(), Some((peer(1), 0)));
        assert_eq!(
            verdict.unwrap_err().what,
            Diverged::Sum { layer: 0, index: 0 }
        );
        let compared = shadowed(job(), None).0.unwrap();
        assert_eq!((compared.products, compared.opened), (5, 2));
    }
}

#[test]
fn what_is_nowhere_in_the_clear_has_no_shadow() {
    let plan = Plan::new(Arc::new(chain(Ring::Z64)), Options::default()).unwrap();
    let plan = Arc::new(plan);
    let protocol = Arc::new(Replicated::new(Arc::clone(&plan), peer(0)));
    let missing = Shadow::new(&plan, protocol, BTreeMap::new()).err().unwrap();
    assert_eq!(missing, NoShadow::Missing(Peer::Owner(0)));
    assert_eq!(
        missing.to_string(),
        "owner 0 brings no values to this process: a shadow needs the values of all owners"
    );
}
