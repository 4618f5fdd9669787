//! Reading traces. They come from other machines, and may be cut off or damaged.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use veil_cli::failure::{Code, Failure};

use super::{Event, Header, VERSION};

/// Longest line: a header with two thousand participants.
const LONGEST: u64 = 1 << 20;
/// What to do about a file that is no trace.
const HELP: &str = "a trace comes from `veil run JOB --trace FILE` or `veil party JOB --trace FILE`: run the job again, or give the file that it wrote";

/// Rounds of one drawing: more do not fit into memory comfortably, and cannot be looked at.
const MOST: usize = 4_000_000;

/// What one participant, or all participants of one process, wrote.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// The file, for messages.
    pub(crate) file: String,
    pub(crate) header: Header,
    pub(crate) events: Vec<Event>,
}

/// A line of either kind: what a header has, no round has.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Header(Header),
    Event(Event),
}

/// Reads one file; `room` is how many rounds may still be read.
pub(crate) fn read(path: &Path, room: &mut usize) -> Result<Vec<Section>, Failure> {
    let file = path.display().to_string();
    let wrong = |line: usize, what: &str| {
        let message = format!("{file}, line {line}: {what}");
        Failure::new(Code::Input, message).help(HELP)
    };
    let open = File::open(path).map_err(|error| {
        Failure::new(
            Code::Input,
            format!("cannot read the trace {file}: {error}"),
        )
        .help(HELP)
    })?;
    let mut reader = BufReader::new(open);
    let mut sections: Vec<Section> = Vec::new();
    let (mut text, mut number) = (Vec::new(), 0);
    loop {
        text.clear();
        number += 1;
        let read = reader
            .by_ref()
            .take(LONGEST + 1)
            .read_until(b'\n', &mut text)
            .map_err(|error| wrong(number, &error.to_string()))?;
        if read == 0 {
            break;
        }
        if text.len() as u64 > LONGEST {
            return Err(wrong(number, "a line of more than a megabyte"));
        }
        let whole = text.last() == Some(&b'\n');
        match serde_json::from_slice::<Line>(&text) {
            Ok(Line::Header(header)) => {
                check_header(&header).map_err(|what| wrong(number, &what))?;
                sections.push(Section {
                    file: file.clone(),
                    header,
                    events: Vec::new(),
                });
            }
            Ok(Line::Event(event)) => {
                let section = sections
                    .last_mut()
                    .ok_or_else(|| wrong(number, "a round before any header"))?;
                check_event(&event, &section.header).map_err(|what| wrong(number, what))?;
                *room = room
                    .checked_sub(1)
                    .ok_or_else(|| wrong(number, "more rounds than can be drawn: 4 million"))?;
                section.events.push(event);
            }
            // A process that was killed leaves half a line: what came before it still tells the story.
            Err(_) if !whole && !sections.is_empty() => break,
            Err(_) => {
                return Err(wrong(
                    number,
                    &format!("not a line of a trace: {}", why(&text)),
                ));
            }
        }
    }
    if sections.is_empty() {
        return Err(wrong(1, "the file is empty: no session was agreed on"));
    }
    Ok(sections)
}

/// Reads several files.
pub(crate) fn read_all<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Vec<Section>, Failure> {
    let mut room = MOST;
    let mut all = Vec::new();
    for path in paths {
        all.append(&mut read(path, &mut room)?);
    }
    Ok(all)
}

/// What is wrong with a line.
fn why(line: &[u8]) -> String {
    let header = line.windows(13).any(|part| part == b"\"veil_trace\":");
    let error = if header {
        serde_json::from_slice::<Header>(line).err()
    } else {
        serde_json::from_slice::<Event>(line).err()
    };
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    // Of one line, its place in the line is enough.
    error.replace(" at line 1 column ", " at byte ")
}

fn check_header(header: &Header) -> Result<(), String> {
    if header.veil_trace != VERSION {
        return Err(format!(
            "a trace of version {}; this release reads version {VERSION}",
            header.veil_trace
        ));
    }
    if header.participants.is_empty() || header.participants.len() > 4096 {
        return Err("a run has between 1 and 4096 participants".into());
    }
    Ok(())
}

fn check_event(event: &Event, header: &Header) -> Result<(), &'static str> {
    let known = |index: u32| (index as usize) < header.participants.len();
    let peers = event.sent.iter().map(|(to, ..)| *to);
    let peers = peers.chain(event.received.iter().map(|(from, ..)| *from));
    if !known(event.by) || !peers.into_iter().all(known) {
        return Err("a participant that the header does not name");
    }
    if event.lane >= header.lanes {
        return Err("a lane that the header does not have");
    }
    if event.t.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err("times that go backwards");
    }
    // Decades in nanoseconds: sums of times stay within 64 bits.
    if event.t[4] > 1 << 61 || event.received.iter().any(|(.., at)| *at > event.t[4]) {
        return Err("a time after the end of its round");
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use super::*;
    use veil_cli::trace::Participant;

    pub(crate) fn header() -> Header {
        let participant = |name: &str| Participant {
            name: name.into(),
            role: "party".into(),
        };
        Header {
            veil_trace: VERSION,
            job: "pay".into(),
            plan: "ab".repeat(32),
            trace: "cd".repeat(16),
            protocol: "rep3".into(),
            version: "0.1.0".into(),
            rows: 1000,
            chunk_rows: 512,
            lanes: 1,
            clock_ns: 1_000_000,
            participants: ["a", "b"].map(participant).to_vec(),
        }
    }

    pub(crate) fn event(by: u32, t: [u64; 5]) -> Event {
        Event {
            by,
            lane: 0,
            chunk: 1,
            rows: 512,
            task: "layers".into(),
            index: 0,
            place: 8,
            commands: vec![("product".into(), 3)],
            t,
            sent: vec![(1 - by, 0, 64)],
            received: vec![(1 - by, 0, 64, t[3])],
        }
    }

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn refused(text: &str) -> String {
        let (_folder, path) = file(text);
        let message = read(&path, &mut 10).unwrap_err().to_string();
        message.rsplit("t.jsonl, ").next().unwrap().to_owned()
    }

    #[test]
    fn what_was_written_is_read() {
        let one = event(0, [1, 2, 3, 4, 5]);
        let text = format!(
            "{}\n{}\n",
            serde_json::to_string(&header()).unwrap(),
            serde_json::to_string(&one).unwrap()
        );
        let (_folder, path) = file(&text);
        let sections = read(&path, &mut 10).unwrap();
        assert_eq!(sections[0].header, header());
        assert_eq!(sections[0].events, [one]);
        // Half a line at the end is what a killed process leaves.
        let (_folder, path) = file(&text[..text.len() - 10]);
        assert_eq!(read(&path, &mut 10).unwrap()[0].events, []);
    }

    #[test]
    fn broken_traces_are_refused_with_their_line() {
        let head = serde_json::to_string(&header()).unwrap();
        let line = |event: &Event| serde_json::to_string(event).unwrap();
        let good = event(0, [1, 2, 3, 4, 5]);
        assert_eq!(
            refused(""),
            "line 1: the file is empty: no session was agreed on"
        );
        assert_eq!(refused(&line(&good)), "line 1: a round before any header");
        assert!(refused("hello\n").starts_with("line 1: not a line of a trace"));
        assert!(refused(&format!("{head}\n{{}}\n")).starts_with("line 2: not a line of a trace"));
        let stranger = Event {
            by: 7,
            ..good.clone()
        };
        assert_eq!(
            refused(&format!("{head}\n{}\n", line(&stranger))),
            "line 2: a participant that the header does not name"
        );
        let backwards = Event {
            t: [5, 4, 3, 2, 1],
            ..good.clone()
        };
        assert_eq!(
            refused(&format!("{head}\n{}\n", line(&backwards))),
            "line 2: times that go backwards"
        );
        let late = Event {
            received: vec![(1, 0, 64, 6)],
            ..good.clone()
        };
        assert_eq!(
            refused(&format!("{head}\n{}\n", line(&late))),
            "line 2: a time after the end of its round"
        );
        let newer = Header {
            veil_trace: 2,
            ..header()
        };
        assert_eq!(
            refused(&serde_json::to_string(&newer).unwrap()),
            "line 1: a trace of version 2; this release reads version 1"
        );
        let many = format!("{head}\n{}", (line(&good) + "\n").repeat(11));
        assert_eq!(
            refused(&many),
            "line 12: more rounds than can be drawn: 4 million"
        );
    }
}
