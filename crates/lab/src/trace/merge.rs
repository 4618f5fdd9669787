//! Sections of one run on one time axis.
//!
//! Clocks of one machine agree, and those of several usually do to a millisecond. They are taken as they are unless a message would
//! have landed before it was posted. Then the section is moved, relative to those already placed, such that the shortest
//! journeys in both directions take equally long (the symmetric estimate of Mills, "Internet Time Synchronization", 1991); where
//! messages go in one direction only, such that the shortest journey takes no time.

use std::collections::HashMap;

use veil_cli::failure::{Code, Failure};

use super::read::Section;
use super::{Event, Header};

/// All that is known of a run, on one time axis.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) header: Header,
    pub(crate) events: Vec<Event>,
    /// By how many nanoseconds the clock of a file had to be moved, if it had to.
    pub(crate) moved: Vec<(String, i128)>,
    /// Last time.
    pub(crate) end: u64,
}

/// Name of a message: from, to, chunk, lane, place, part.
type Message = (u32, u32, u32, u16, u32, u16);

/// Joins sections; all must be of the same run.
pub(crate) fn join(sections: Vec<Section>) -> Result<Run, Failure> {
    let mut sections = sections.into_iter();
    let first = sections
        .next()
        .ok_or_else(|| Failure::new(Code::Usage, "no trace was given"))?;
    let mut placed: Vec<(i128, Event)> = Vec::new();
    let mut moved = Vec::new();
    let clock = |section: &Section| i128::from(section.header.clock_ns);
    placed.extend(first.events.iter().map(|e| (clock(&first), e.clone())));
    for section in sections {
        if (&section.header.trace, &section.header.plan)
            != (&first.header.trace, &first.header.plan)
        {
            let message = format!(
                "{} is of another run than {}: trace {} and trace {}",
                section.file, first.file, section.header.trace, first.header.trace
            );
            return Err(Failure::new(Code::Input, message)
                .help("draw traces of one run together; each run has its own trace id"));
        }
        if section.header.participants != first.header.participants {
            let message = format!(
                "{} and {} name other participants of the same run: one of them was changed",
                section.file, first.file
            );
            return Err(Failure::new(Code::Input, message).help("ask for the file again"));
        }
        let shift = shift(&placed, &section.events, clock(&section));
        if shift != 0 {
            moved.push((section.file.clone(), shift));
        }
        let zero = clock(&section) + shift;
        placed.extend(section.events.into_iter().map(|e| (zero, e)));
    }
    let start = placed
        .iter()
        .map(|(zero, e)| zero + i128::from(e.t[0]))
        .min()
        .unwrap_or(0);
    let mut events: Vec<Event> = placed
        .into_iter()
        .map(|(zero, mut event)| {
            let by = zero - start;
            // Clocks may say anything: what lies beyond a century is put at its end, so that sums of times stay within 64 bits.
            let to = |at: u64| (by + i128::from(at)).clamp(0, 1 << 62) as u64;
            event.t = event.t.map(to);
            event.received.iter_mut().for_each(|r| r.3 = to(r.3));
            event
        })
        .collect();
    events.sort_by_key(|e| e.t[0]);
    let end = events.iter().map(|e| e.t[4]).max().unwrap_or(0);
    Ok(Run {
        header: first.header,
        events,
        moved,
        end,
    })
}

/// By how much a section whose time 0 is `zero` has to be moved to fit those already placed.
fn shift(placed: &[(i128, Event)], events: &[Event], zero: i128) -> i128 {
    // Journeys in both directions, as the clocks stand.
    let here: Vec<(i128, Event)> = events.iter().map(|e| (zero, e.clone())).collect();
    let out = shortest(&here, placed);
    let back = shortest(placed, &here);
    match (out, back) {
        (Some(out), Some(back)) if out < 0 || back < 0 => (out - back) / 2,
        // The section posts only: it must not post after what it sent has landed.
        (Some(out), None) if out < 0 => out,
        (None, Some(back)) if back < 0 => -back,
        _ => 0,
    }
}

/// The shortest journey of a message that one side posts and the other receives.
fn shortest(from: &[(i128, Event)], to: &[(i128, Event)]) -> Option<i128> {
    let mut posted: HashMap<Message, i128> = HashMap::new();
    for (zero, e) in from {
        for (peer, part, _) in &e.sent {
            let name = (e.by, *peer, e.chunk, e.lane, e.place, *part);
            // When local commands are done, posting begins.
            posted.insert(name, zero + i128::from(e.t[1]));
        }
    }
    let mut shortest: Option<i128> = None;
    for (zero, e) in to {
        for (peer, part, _, at) in &e.received {
            let name = (*peer, e.by, e.chunk, e.lane, e.place, *part);
            if let Some(left) = posted.get(&name) {
                let took = zero + i128::from(*at) - left;
                shortest = Some(shortest.map_or(took, |s| s.min(took)));
            }
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::{event, header};
    use super::*;

    fn section(file: &str, clock_ns: u64, events: Vec<Event>) -> Section {
        Section {
            file: file.into(),
            header: Header {
                clock_ns,
                ..header()
            },
            events,
        }
    }

    #[test]
    fn clocks_that_agree_are_left_alone() {
        let a = section("a", 1000, vec![event(0, [0, 10, 20, 50, 60])]);
        let b = section("b", 1005, vec![event(1, [0, 10, 20, 50, 60])]);
        let run = join(vec![a, b]).unwrap();
        assert_eq!(run.moved, []);
        assert_eq!(run.events[1].t, [5, 15, 25, 55, 65]);
        assert_eq!((run.events[1].received[0].3, run.end), (55, 65));
    }

    #[test]
    fn a_clock_that_is_off_is_moved_to_equal_journeys() {
        // Both post at 10 and receive at 50 of the same clock: journeys of 40 ns; the clock of b is a second late.
        let a = section("a", 5_000_000_000, vec![event(0, [0, 10, 20, 50, 60])]);
        let b = section("b", 6_000_000_000, vec![event(1, [0, 10, 20, 50, 60])]);
        let run = join(vec![a, b]).unwrap();
        assert_eq!(run.moved, [("b".to_owned(), -1_000_000_000)]);
        assert_eq!(run.events[0].t, run.events[1].t);
    }

    #[test]
    fn with_messages_one_way_the_shortest_takes_no_time() {
        let mut a = event(0, [0, 10, 20, 50, 60]);
        a.received.clear();
        let mut b = event(1, [0, 10, 20, 50, 60]);
        b.sent.clear();
        let late = section("a", 2000, vec![a]);
        let run = join(vec![section("b", 1000, vec![b]), late]).unwrap();
        // a posts at 2010, b has it at 1050: a is 960 late.
        assert_eq!(run.moved, [("a".to_owned(), -960)]);
    }

    #[test]
    fn runs_are_not_mixed() {
        let a = section("a", 0, vec![]);
        let mut b = section("b", 0, vec![]);
        b.header.trace = "ef".repeat(16);
        let message = join(vec![a, b]).unwrap_err().to_string();
        assert!(
            message.starts_with("b is of another run than a"),
            "{message}"
        );
    }
}
