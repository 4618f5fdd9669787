//! A run in the Trace Event Format, which Perfetto (ui.perfetto.dev) and browsers' tracing pages read: a process per participant, a thread per lane,
//! an arrow per message.
//!
//! Format: Google, "Trace Event Format", 2016. Times are microseconds; `X` is a complete event, `M` a name, `s` and `f` the ends of an arrow.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use super::merge::Run;
use super::summary::{Doing, lanes, stretches};

/// One object of the list.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    ph: char,
    pid: u32,
    tid: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// An arrow ends at the event that holds its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'a str>,
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    args: serde_json::Value,
}

impl<'a> Entry<'a> {
    fn new(name: &'a str, ph: char, pid: u32, tid: u16) -> Self {
        Entry {
            name,
            ph,
            pid,
            tid,
            ts: None,
            dur: None,
            cat: "",
            id: None,
            bp: None,
            args: serde_json::Value::Null,
        }
    }
}

/// Writes the run.
///
/// # Errors
/// `out` takes no more.
pub(crate) fn write(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let mut list = List { out, empty: true };
    list.out
        .write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (by, participant) in (0u32..).zip(&run.header.participants) {
        let of = lanes(run, by);
        if of.is_empty() {
            continue;
        }
        let args =
            serde_json::json!({ "name": format!("{}, {}", participant.name, participant.role) });
        list.add(&Entry {
            args,
            ..Entry::new("process_name", 'M', by, 0)
        })?;
        for lane in of {
            let args = serde_json::json!({ "name": format!("lane {lane}") });
            list.add(&Entry {
                args,
                ..Entry::new("thread_name", 'M', by, lane)
            })?;
            for stretch in stretches(run, by, lane) {
                let event = &run.events[stretch.event];
                let what = event.what();
                let (cat, args) = match stretch.doing {
                    Doing::Computing => (
                        "computing",
                        serde_json::json!({ "commands": event.commands }),
                    ),
                    Doing::Sending => ("sending", serde_json::Value::Null),
                    Doing::Waiting(peer) => (
                        "waiting",
                        serde_json::json!({ "for": run.header.participants[peer as usize].name }),
                    ),
                };
                list.add(&Entry {
                    ts: Some(micros(stretch.from)),
                    dur: Some(micros(stretch.to - stretch.from)),
                    cat,
                    args,
                    ..Entry::new(&what, 'X', by, lane)
                })?;
            }
        }
    }
    messages(run, &mut list)?;
    list.out.write_all(b"\n]}\n")
}

/// An arrow for each message whose both ends are known.
fn messages(run: &Run, list: &mut List<'_>) -> io::Result<()> {
    let mut posted = HashMap::new();
    for e in &run.events {
        for (to, part, bytes) in &e.sent {
            let name = (e.by, *to, e.chunk, e.lane, e.place, *part);
            posted.insert(name, (e.t[1], *bytes));
        }
    }
    let mut id = 0;
    for e in &run.events {
        for (from, part, _, at) in &e.received {
            let name = (*from, e.by, e.chunk, e.lane, e.place, *part);
            let Some((left, bytes)) = posted.remove(&name) else {
                continue;
            };
            id += 1;
            list.add(&Entry {
                ts: Some(micros(left)),
                cat: "message",
                id: Some(id),
                args: serde_json::json!({ "bytes": bytes }),
                ..Entry::new("message", 's', *from, e.lane)
            })?;
            list.add(&Entry {
                ts: Some(micros(*at)),
                cat: "message",
                id: Some(id),
                bp: Some("e"),
                ..Entry::new("message", 'f', e.by, e.lane)
            })?;
        }
    }
    Ok(())
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// The list, written entry by entry: millions of rounds do not stand in memory a second time.
struct List<'a> {
    out: &'a mut dyn Write,
    empty: bool,
}

impl List<'_> {
    fn add(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let between: &[u8] = if self.empty { b"\n" } else { b",\n" };
        self.empty = false;
        self.out.write_all(between)?;
        serde_json::to_writer(&mut *self.out, entry).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::{event, header};
    use super::*;

    #[test]
    fn rounds_are_stretches_and_messages_are_arrows() {
        let run = Run {
            header: header(),
            events: vec![event(0, [0, 10, 20, 50, 60]), event(1, [0, 10, 20, 50, 60])],
            moved: Vec::new(),
            end: 60,
        };
        let mut text = Vec::new();
        write(&run, &mut text).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let events = read["traceEvents"].as_array().unwrap();
        let of = |ph: &str, cat: &str| {
            let mine = events.iter().filter(|e| e["ph"] == ph);
            mine.filter(|e| cat.is_empty() || e["cat"] == cat).count()
        };
        // Two participants with a lane each; per lane two stretches of computing, one of sending, one of waiting; a message each way.
        assert_eq!([of("M", ""), of("X", "")], [4, 8]);
        assert_eq!(
            ["computing", "sending", "waiting"].map(|cat| of("X", cat)),
            [4, 2, 2]
        );
        let arrows = |ph| -> Vec<_> {
            let mine = events.iter().filter(|e| e["ph"] == ph);
            let mine = mine.map(|e| (e["id"].as_u64(), e["pid"].as_u64(), e["ts"].as_f64()));
            mine.collect()
        };
        assert_eq!(
            arrows("s"),
            [
                (Some(1), Some(1), Some(0.01)),
                (Some(2), Some(0), Some(0.01))
            ]
        );
        assert_eq!(
            arrows("f"),
            [
                (Some(1), Some(0), Some(0.05)),
                (Some(2), Some(1), Some(0.05))
            ]
        );
    }
}
