//! Damaged traces, from a fixed seed: they are read, joined, summed up and drawn, or refused; nothing panics.

use veil_testkit::{Seed, damaged};

use super::read::tests::{event, header};
use super::{Event, Header, draw, merge, perfetto, read, summary};

/// A file of one participant, with two lanes and some chunks.
fn file(by: u32, clock_ns: u64) -> Vec<u8> {
    let head = Header {
        clock_ns,
        lanes: 2,
        ..header()
    };
    let rounds = (0..8u32).map(|k| {
        let at = 100 * u64::from(k);
        Event {
            lane: (k % 2) as u16,
            chunk: k / 2,
            place: k,
            task: ["set-up", "layers", "open", "agree"][k as usize % 4].into(),
            ..event(by, [at, at + 10, at + 20, at + 50, at + 60])
        }
    });
    let lines = rounds.map(|event| serde_json::to_string(&event).unwrap());
    let head = serde_json::to_string(&head).unwrap();
    let text: String = std::iter::once(head)
        .chain(lines)
        .map(|line| line + "\n")
        .collect();
    text.into_bytes()
}

#[test]
fn damaged_traces_are_drawn_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let good = [file(0, 1_000_000), file(1, 1_000_040)];
    let draw = |files: [&[u8]; 2]| {
        for (path, bytes) in paths.iter().zip(files) {
            std::fs::write(path, bytes).unwrap();
        }
        let run = read::read_all(paths.iter().map(std::path::PathBuf::as_path))
            .and_then(merge::join)
            .ok()?;
        let summary = summary::summarise(&run);
        let mut events = Vec::new();
        perfetto::write(&run, &mut events).unwrap();
        serde_json::from_slice::<serde_json::Value>(&events).unwrap();
        Some(draw::svg(&run, &summary))
    };
    assert!(draw([&good[0], &good[1]]).is_some());
    let (mut drawn, mut refused) = (0u32, 0u32);
    for seed in 0..1000 {
        let mut numbers = Seed(seed).numbers("traces");
        let bad = damaged(&good[0], &mut numbers);
        let fed = std::panic::catch_unwind(|| draw([&bad, &good[1]]));
        match fed.unwrap_or_else(|_| panic!("seed {seed}")) {
            Some(svg) => {
                assert!(svg.ends_with("</svg>\n"), "seed {seed}");
                drawn += 1;
            }
            None => refused += 1,
        }
    }
    // Both paths were taken, often.
    assert!(
        drawn > 20 && refused > 500,
        "{drawn} drawn, {refused} refused"
    );
}
