//! Boards that are processes: the bytes of the reference through a socket, and boards and clients that do what they should not.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use veil_device::{Device, conformance};
use veil_device_fpga::board::{
    Board, BoardFault, Identity, Kind, Patience, Refusal, Server, Simulation, socket_of,
};
use veil_device_fpga::node::{Carrier, NodeError, Shape};
use veil_device_fpga::{Absent, CardError, Fpga, Stalls, abi};
use veil_testkit::Seed;

/// A folder of its own for a socket.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        Place(folder)
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("card")
    }
}

/// Simulated cores behind a socket, until this is dropped.
struct Served {
    place: Place,
    stop: Arc<AtomicBool>,
    said: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// A board, or a message and nothing.
    fn new(simulation: Simulation) -> Option<Self> {
        let place = Place::new();
        let server = match Server::bind(&place.socket(), simulation) {
            Ok(server) => server,
            Err(Refusal::Absent(Absent::NoVerilator)) => {
                eprintln!("skipped: {}", Absent::NoVerilator);
                return None;
            }
            Err(refusal) => panic!("{refusal}"),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let said = Arc::new(Mutex::new(Vec::new()));
        let thread = thread::spawn({
            let (stop, said) = (Arc::clone(&stop), Arc::clone(&said));
            move || server.serve(&stop, &|line| said.lock().unwrap().push(line.to_owned()))
        });
        Some(Served {
            place,
            stop,
            said,
            thread: Some(thread),
        })
    }

    fn board(&self) -> Board {
        Board::connect(&self.place.socket(), Patience::default()).unwrap()
    }

    /// Waits until it has said so of a client.
    fn says(&self, part: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        while !self
            .said
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains(part))
        {
            assert!(Instant::now() < until, "{part}: {:?}", self.said.lock());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        if !thread::panicking() {
            ended.unwrap();
            assert!(!self.place.socket().exists(), "the socket is removed");
        }
    }
}

#[test]
fn it_equals_the_reference() {
    for (seed, rate) in [(1, 0), (2, 100)] {
        let simulation = Simulation {
            stalls: Stalls { seed, rate },
            ..Simulation::new(Kind::Both, 2)
        };
        let Some(served) = Served::new(simulation) else {
            return;
        };
        let mut fpga = Fpga::of_board(&served.board()).unwrap();
        assert_eq!(fpga.name(), "fpga");
        conformance::check(&mut fpga, seed, 100).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(fpga.cycles() > 1000, "the core did the garbling");
        assert!(fpga.share_cycles() > 1000, "and others what is shared");
        drop(fpga);
        served.says("has ended");
        // The next one finds a card as new.
        let mut fpga = Fpga::of_board(&served.board()).unwrap();
        conformance::check(&mut fpga, 3, 10).unwrap();
    }
}

/// Of each kind the commands that its cores do are done there, and the others on the host.
#[test]
fn a_board_has_what_its_kind_says() {
    for kind in [Kind::Garbler, Kind::Shares] {
        let Some(served) = Served::new(Simulation::new(kind, 2)) else {
            return;
        };
        let board = served.board();
        assert_eq!(board.identity().kind, kind);
        let idents = board.identity().registers.map(|[ident, _]| ident);
        assert_eq!(idents, kind.garbles().then_some(abi::IDENT_VALUE));
        assert_eq!(board.garbler().is_ok(), kind.garbles());
        assert_eq!(board.cores().is_ok(), kind.shares());
        drop(board);
        let mut fpga = Fpga::of_board(&served.board()).unwrap();
        conformance::check(&mut fpga, 4, 30).unwrap();
        assert_eq!(fpga.cycles() > 0, kind.garbles());
        assert_eq!(fpga.share_cycles() > 0, kind.shares());
    }
}

#[test]
fn a_client_beside_another_waits_for_a_card() {
    let Some(served) = Served::new(Simulation::new(Kind::Garbler, 1)) else {
        return;
    };
    let first = served.board();
    let patience = Patience {
        greeting: Duration::from_millis(200),
        ..Patience::default()
    };
    let second = Board::connect(&served.place.socket(), patience).err();
    let fault = second.map(|error| error.fault);
    assert_eq!(fault, Some(BoardFault::Busy { cards: 1 }));
    let socket = served.place.socket();
    // The card is scrubbed first, in simulation.
    let patience = Patience {
        greeting: Duration::from_secs(60),
        ..Patience::default()
    };
    let waits = thread::spawn(move || Board::connect(&socket, patience).map(|_| ()));
    thread::sleep(Duration::from_millis(100));
    drop(first);
    waits.join().unwrap().unwrap();
}

#[test]
fn sockets_are_of_one_user_and_one_board() {
    let simulation = Simulation::new(Kind::Garbler, 1);
    let Some(served) = Served::new(simulation) else {
        return;
    };
    let socket = served.place.socket();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    let refused = Server::bind(&socket, simulation).err();
    assert_eq!(
        refused,
        Some(Refusal::Served {
            socket: socket.clone()
        })
    );
    served.board();
    // A folder is made, and closed to others.
    let place = Place::new();
    let nested = place.0.path().join("of/its/own/card");
    drop(Server::bind(&nested, simulation).unwrap());
    assert_eq!(mode(nested.parent().unwrap()), 0o700);
    assert!(!nested.exists());
    let open = place.0.path().join("open");
    fs::DirBuilder::new().mode(0o755).create(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
    let refused = Server::bind(&open.join("card"), simulation).err();
    assert!(
        matches!(refused, Some(Refusal::Open { mode: 0o755, .. })),
        "{refused:?}"
    );
    // What is no socket stays; the socket of a process that is gone does not.
    let file = place.0.path().join("file");
    fs::write(&file, "mine").unwrap();
    let refused = Server::bind(&file, simulation).err();
    assert_eq!(refused, Some(Refusal::NoSocket { file: file.clone() }));
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let stale = place.socket();
    drop(UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    let gone = Board::connect(&stale, Patience::default()).err().unwrap();
    assert!(matches!(gone.fault, BoardFault::Absent { .. }), "{gone}");
    let server = Server::bind(&stale, simulation).unwrap();
    // One that has taken its place since is not its to remove.
    fs::remove_file(&stale).unwrap();
    let other = UnixListener::bind(&stale).unwrap();
    drop(server);
    assert!(stale.exists());
    drop(other);
}

/// The greeting of a version, with a number.
fn greeting(version: u32, number: u32) -> Vec<u8> {
    let numbers = [version, number].map(u32::to_le_bytes);
    [b"veil-brd", numbers.as_flattened()].concat()
}

/// A message.
fn message(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let lengths = [head, payload].map(|bytes| (bytes.len() as u32).to_le_bytes());
    [lengths.as_flattened(), head, payload].concat()
}

/// Variant `number` of the answers or requests, with these fields.
fn variant(number: u32, fields: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_allocvec(&(number, fields)).unwrap()
}

fn identity(kind: Kind) -> Vec<u8> {
    let identity = Identity {
        kind,
        build: "a board that is made for tests".to_owned(),
        clock_khz: 1,
        registers: None,
        node: None,
    };
    message(&postcard::to_allocvec(&identity).unwrap(), &[])
}

/// A request: its variant, and nothing if the host has gone.
fn request(stream: &mut UnixStream) -> Option<u8> {
    let mut lengths = [[0; 4]; 2];
    stream.read_exact(lengths.as_flattened_mut()).ok()?;
    let mut all = vec![0; lengths.map(u32::from_le_bytes).iter().sum::<u32>() as usize];
    stream.read_exact(&mut all).ok()?;
    all.first().copied()
}

/// Numbers of requests and answers, as `docs/boards.md` has them.
const READ: u8 = 0;
const WAIT: u8 = 4;
const VALUE: u32 = 0;
const FETCH: u32 = 1;
const DELIVER: u32 = 2;
const WAITED: u32 = 3;

/// Time enough for a board that answers, and no more than a test may take.
const SHORT: Patience = Patience {
    greeting: Duration::from_millis(500),
    answer: Duration::from_millis(700),
};

/// What a host says of a board that does this with each connection.
fn met(board: impl Fn(&mut UnixStream) + Send + 'static) -> CardError {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            board(&mut stream.unwrap());
        }
    });
    let begun = Instant::now();
    let error = match Board::connect(&place.socket(), SHORT) {
        Ok(board) => board.garbler().err().expect("it does not work"),
        Err(error) => error.into(),
    };
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{error} after {took:?}");
    error
}

/// The same of one that is a board, answers reads of registers as a garbler, and each wait as `wait` does.
fn waited(wait: impl Fn(&mut UnixStream) + Send + 'static) -> BoardFault {
    let error = met(move |stream| {
        let _ = stream.write_all(&[greeting(1, 0), identity(Kind::Garbler)].concat());
        let mut greeted = [0; 16];
        stream.read_exact(&mut greeted).unwrap();
        let mut reads = 0;
        while let Some(what) = request(stream) {
            match what {
                READ => {
                    let value = match reads {
                        0 => abi::IDENT_VALUE,
                        1 => abi::VERSION_VALUE,
                        // Its scrub goes on and on.
                        _ => u32::MAX,
                    };
                    reads += 1;
                    let _ = stream.write_all(&message(&variant(VALUE, &value), &[]));
                }
                WAIT => wait(stream),
                _ => {}
            }
        }
    });
    match error {
        CardError::Board(error) => error.fault,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_no_board_is_an_error_before_anything_is_asked() {
    let fault = |board: fn(&mut UnixStream)| match met(board) {
        CardError::Board(error) => error.fault,
        other => panic!("{other}"),
    };
    let greet = "the greeting";
    assert_eq!(
        fault(|stream| {
            let _ = stream.read_to_end(&mut Vec::new());
        }),
        BoardFault::Late {
            what: greet,
            seconds: 0
        }
    );
    // One byte at a time, for longer than there is time.
    assert_eq!(
        fault(|stream| {
            for byte in greeting(1, 0) {
                let _ = stream.write_all(&[byte]);
                thread::sleep(Duration::from_millis(100));
            }
        }),
        BoardFault::Late {
            what: greet,
            seconds: 0
        }
    );
    let no_board = fault(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    assert_eq!(no_board, BoardFault::NoBoard);
    let version = fault(|stream| {
        let _ = stream.write_all(&greeting(2, 0));
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert_eq!(version, BoardFault::Version { theirs: 2 });
    let gone = fault(|stream| {
        let mut greeted = [0; 16];
        stream.read_exact(&mut greeted).unwrap();
        let _ = stream.write_all(&greeting(1, 0)[..9]);
    });
    assert_eq!(gone, BoardFault::Gone { what: greet });
    let long = fault(|stream| {
        let _ = stream.write_all(&[greeting(1, 0), vec![0xff; 64]].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (bytes, most) = (u32::MAX.into(), 4096);
    assert_eq!(long, BoardFault::TooLong { bytes, most });
    let garbled = fault(|stream| {
        let _ = stream.write_all(&[greeting(1, 0), message(&[77; 9], &[])].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert_eq!(garbled, BoardFault::Garbled);
    let kind = fault(|stream| {
        let _ = stream.write_all(&[greeting(1, 0), identity(Kind::Shares)].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (wanted, got) = ("with a garbler", Kind::Shares);
    assert_eq!(kind, BoardFault::Kind { wanted, got });
    let busy = fault(|stream| {
        let _ = stream.write_all(&greeting(1, 5));
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert_eq!(busy, BoardFault::Busy { cards: 5 });
    // A board whose registers are those of another card.
    let other = met(|stream| {
        let _ = stream.write_all(&[greeting(1, 0), identity(Kind::Both)].concat());
        let mut greeted = [0; 16];
        stream.read_exact(&mut greeted).unwrap();
        while request(stream) == Some(READ) {
            let _ = stream.write_all(&message(&variant(VALUE, &7u32), &[]));
        }
    });
    let (ident, version) = (7, 7);
    assert_eq!(other, CardError::Other { ident, version });
}

/// Ranges of memory, as messages have them.
fn ranges(number: u32, all: &[(u64, u32)], payload: &[u8]) -> Vec<u8> {
    message(&variant(number, &all), payload)
}

const MEMORY: u64 = 1 << 20;

#[test]
fn an_engine_that_reaches_too_far_is_an_error() {
    let wait = |answer: Vec<u8>| {
        waited(move |stream| {
            let _ = stream.write_all(&answer);
        })
    };
    let memory = MEMORY;
    let outside = |address, bytes| BoardFault::Memory {
        address,
        bytes,
        memory,
    };
    for (address, bytes) in [
        (MEMORY - 4, 8),
        (MEMORY, 1),
        (u64::MAX, 1),
        (u64::MAX - 15, 16),
        (0, u32::MAX),
    ] {
        let found = wait(ranges(FETCH, &[(0, 16), (address, bytes)], &[]));
        assert_eq!(found, outside(address, bytes.into()));
        let found = wait(ranges(DELIVER, &[(address, bytes)], &[1; 16]));
        assert_eq!(found, outside(address, bytes.into()));
    }
    let what = "memory";
    let amount = BoardFault::Amount {
        what,
        got: 15,
        expected: 16,
    };
    assert_eq!(wait(ranges(DELIVER, &[(0, 16)], &[1; 15])), amount);
    // More ranges than all rings have descriptors.
    assert_eq!(
        wait(ranges(FETCH, &[(0, 0); 100], &[])),
        BoardFault::Garbled
    );
    let heads = wait(message(&variant(WAITED, &(true, [0u32, 0, 1, 0, 0])), &[]));
    let (stream, head, tail) = (2, 1, 0);
    assert_eq!(heads, BoardFault::Descriptors { stream, head, tail });
    let what = "its streams";
    let unexpected = wait(message(&variant(VALUE, &0u32), &[]));
    assert_eq!(unexpected, BoardFault::Unexpected { what });
    // A message with bytes behind it, one cut off, and none.
    let long = [variant(WAITED, &(true, [0u32; 5])), vec![0]].concat();
    assert_eq!(wait(message(&long, &[])), BoardFault::Garbled);
    assert_eq!(wait(message(&long[..3], &[])), BoardFault::Garbled);
    assert_eq!(wait(message(&[], &[])), BoardFault::Garbled);
    assert_eq!(wait(message(&[9], &[])), BoardFault::Garbled);
}

#[test]
fn a_board_that_gets_no_further_is_late() {
    let late = |what| BoardFault::Late { what, seconds: 0 };
    let what = "its streams";
    assert_eq!(waited(|_| {}), late(what));
    // It moves, it says, and moves, and the scrub does not end.
    let moved = || message(&variant(WAITED, &(true, [0u32; 5])), &[]);
    let found = waited(move |stream| {
        let _ = stream.write_all(&moved());
    });
    assert!(
        matches!(found, BoardFault::Late { seconds: 0, .. }),
        "{found}"
    );
    // It reads memory for ever.
    let found = waited(|stream| {
        while stream.write_all(&ranges(FETCH, &[(0, 4096)], &[])).is_ok() {
            let _ = request(stream);
        }
    });
    assert_eq!(found, late(what));
    // It writes memory for ever.
    let found = waited(|stream| {
        while stream
            .write_all(&ranges(DELIVER, &[(0, 16)], &[7; 16]))
            .is_ok()
        {}
    });
    assert_eq!(found, late(what));
    // It dies in the middle of a message.
    let found = waited(|stream| {
        let _ = stream.write_all(&ranges(DELIVER, &[(0, 16)], &[7; 16])[..12]);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    assert_eq!(found, BoardFault::Gone { what });
}

/// Whatever bytes come, the host has an error and goes on.
#[test]
fn random_bytes_of_a_board_are_an_error() {
    let seed = Seed::any();
    println!("{seed}");
    for round in 0..60 {
        let wait = waited(move |stream| {
            let mut random = seed.numbers(&format!("round {round}"));
            let mut bytes = vec![0; random.below(u64::MAX) as usize % 90];
            for byte in &mut bytes {
                // Mostly small numbers, of which lengths and variants are made.
                *byte = (random.below(u64::MAX) >> (random.below(u64::MAX) % 8)) as u8 & 0x1f;
            }
            // Lengths that are no reason to wait.
            let at = bytes.len().min(8);
            bytes[1.min(at)..4.min(at)].fill(0);
            bytes[5.min(at)..at].fill(0);
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        assert!(!wait.to_string().is_empty());
    }
}

/// The fuzz target `board`, without libFuzzer: messages that are damaged.
#[test]
fn damaged_messages_are_no_reason_to_panic() {
    let seed = Seed::any();
    println!("{seed}");
    let whole = [
        ranges(FETCH, &[(0, 64), (4096, 16)], &[]),
        ranges(DELIVER, &[(64, 16)], &[9; 16]),
        message(&variant(WAITED, &(true, [1u32, 2, 3, 4, 0])), &[]),
        message(&variant(VALUE, &5u32), &[]),
        ranges(DELIVER, &[(MEMORY - 1, 1)], &[1]),
    ]
    .concat();
    veil_device_fpga::board::fuzz_messages(&whole);
    for round in 0..300 {
        let mut random = seed.numbers(&format!("damage {round}"));
        let mut bytes = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.index(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(bytes.len() - random.index(20));
        veil_device_fpga::board::fuzz_messages(&bytes);
    }
}

/// A client that has greeted.
fn client(served: &Served, version: u32, memory: u32) -> UnixStream {
    let mut stream = UnixStream::connect(served.place.socket()).unwrap();
    stream.write_all(&greeting(version, memory)).unwrap();
    stream
}

#[test]
fn a_board_survives_its_clients() {
    let Some(served) = Served::new(Simulation::new(Kind::Both, 4)) else {
        return;
    };
    let memory = MEMORY as u32;
    // Another version is told this one's, and the next client is served.
    let mut other = client(&served, 7, memory);
    let mut greeted = [0; 16];
    other.read_exact(&mut greeted).unwrap();
    assert_eq!(greeted[..12], greeting(1, 0)[..12]);
    served.says("it speaks version 7");
    client(&served, 1, memory + 1);
    served.says("it registers");
    UnixStream::connect(served.place.socket())
        .unwrap()
        .write_all(&[3; 40])
        .unwrap();
    served.says("it greets with other bytes");
    drop(UnixStream::connect(served.place.socket()).unwrap());
    // Wrong requests, each on a connection of its own: beyond rings, streams, memory, cores, lengths.
    let place = |stream: u8, address: u64, count: u32| variant(2, &(stream, address, count));
    let wrong = [
        (place(5, 0, 4), "a stream that is not there"),
        (place(0, MEMORY - 16, 2), "a ring that is too long"),
        (place(0, u64::MAX, 2), "a ring that is too long"),
        (place(0, 0, 0), "a ring that is too long"),
        (place(0, 0, u32::MAX), "a ring that is too long"),
        (variant(3, &(0u8, 1u32)), "more descriptors than a ring has"),
        (variant(3, &(9u8, 1u32)), "a stream that is not there"),
        (variant(5, &()), "cores that this board does not have"),
        (variant(6, &(3u8, 6u32)), "a core that is not there"),
        (
            variant(7, &(0u8, [1u32, 0, 0], [0u32; 4])),
            "streams of other lengths",
        ),
        (
            variant(7, &(0u8, [0u32; 3], [u32::MAX; 4])),
            "streams of other lengths",
        ),
        (
            variant(7, &(0u8, [0u32; 3], [63u32, 0, 0, 0])),
            "streams that are no whole beats",
        ),
        (
            variant(7, &(2u8, [0u32; 3], [47u32, 0, 0, 0])),
            "streams that are no whole beats",
        ),
        (vec![99], "bytes that are no message"),
        (vec![], "bytes that are no message"),
        (vec![0; 5000], "a message of 5000 bytes"),
    ];
    for (head, part) in wrong {
        let mut stream = client(&served, 1, memory);
        stream.write_all(&message(&head, &[])).unwrap();
        served.says(part);
        // It is sent away.
        stream.read_to_end(&mut Vec::new()).unwrap_or_default();
        served.said.lock().unwrap().clear();
    }
    // Descriptors of memory that is not there.
    let mut stream = client(&served, 1, memory);
    let rung = [
        message(&place(2, 0, 4), &[]),
        message(&variant(3, &(2u8, 1u32)), &[]),
        message(&variant(WAIT.into(), &()), &[]),
        message(&variant(5, &()), &[0xff; 16]),
    ];
    stream.write_all(&rung.concat()).unwrap();
    served.says("memory that it has not registered");
    // Random messages of known kinds, to registers and streams of the garbler.
    let seed = Seed::any();
    println!("{seed}");
    let mut random = seed.numbers("requests");
    for _ in 0..20 {
        let mut stream = client(&served, 1, memory);
        let mut sent = Vec::new();
        for _ in 0..random.below(u64::MAX) % 40 {
            let number = random.below(u64::MAX);
            let (small, any) = ((number >> 32) as u32 % 300, number as u32);
            sent.extend(match number % 5 {
                0 => message(&variant(0, &(4 * small)), &[]),
                1 => message(&variant(1, &(4 * small, any)), &[]),
                2 => message(&place(any as u8 % 6, u64::from(small) * 16, 4), &[]),
                3 => message(&variant(3, &(any as u8 % 5, any >> 30)), &[]),
                _ => message(&variant(5, &()), &[any as u8; 16]),
            });
        }
        stream.write_all(&sent).unwrap_or_default();
        drop(stream);
    }
    let mut fpga = Fpga::of_board(&served.board()).unwrap();
    conformance::check(&mut fpga, 6, 10).unwrap();
}

/// A node is a node, and not another one; what it answers is checked as what cards answer is.
#[test]
fn a_board_is_the_node_that_a_party_needs() {
    let place = Place::new();
    let shape = Shape::new(2);
    let servers = match Server::bind_nodes(&place.socket(), shape) {
        Ok(servers) => servers,
        Err(Refusal::Absent(absent)) => {
            eprintln!("skipped: {absent}");
            return;
        }
        Err(refusal) => panic!("{refusal}"),
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| server.serve(&stop, &|_| ()));
        }
        let meet = |node| {
            let socket = socket_of(&place.socket(), node);
            Board::connect(&socket, Patience::default()).unwrap()
        };
        let boards = [meet(0), meet(1)];
        let no_garbler = boards[0].garbler().err();
        let exchanged = [boards[1].clone(), boards[0].clone()];
        let mut keys = |bytes: &mut [u8]| bytes.fill(7);
        let other = Carrier::of_boards(&exchanged, &mut keys).err();
        let carrier = Carrier::of_boards(&boards, &mut keys).err();
        stop.store(true, Ordering::Relaxed);
        let Some(CardError::Board(no_garbler)) = no_garbler else {
            panic!("{no_garbler:?}");
        };
        let got = Kind::Node;
        let wanted = "with a garbler";
        assert_eq!(no_garbler.fault, BoardFault::Kind { wanted, got });
        let Some(NodeError::Board(other)) = other else {
            panic!("{other:?}");
        };
        let wanted = "that is the node of that party";
        assert_eq!(other.fault, BoardFault::Kind { wanted, got });
        assert_eq!(carrier, None);
    });
    assert_eq!(servers.len(), 2);
}

/// A server that stops while a device computes is an error of the device, and so is all that is asked of it after that.
#[test]
fn a_board_that_ends_is_a_fault_of_the_device() {
    let Some(served) = Served::new(Simulation::new(Kind::Both, 1)) else {
        return;
    };
    let mut garbler = served.board().garbler().unwrap();
    drop(served);
    for _ in 0..2 {
        let gone = garbler.scrub().err();
        let Some(CardError::Board(gone)) = gone else {
            panic!("{gone:?}");
        };
        assert!(
            matches!(gone.fault, BoardFault::Gone { .. }),
            "{}",
            gone.fault
        );
    }
}
