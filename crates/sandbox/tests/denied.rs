//! What a confined process cannot do: each attempt in a process of its own, and what ends it, against a table.
//!
//! The program is both sides: started with `child NAME`, it confines itself and makes the attempt.
#![allow(
    clippy::semicolon_if_nothing_returned,
    reason = "a table of attempts reads better in lines"
)]
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal};
use veil_sandbox::{Confinement, Ended, Limit, Limits, Require, enter, run};

/// What is to end an attempt.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    /// The filter.
    Call,
    Memory,
    Cpu,
    Wall,
    Reply,
    /// Itself, without a reply.
    Crash,
    /// Nothing: it replies this.
    Says(&'static [u8]),
}

type Attempt = fn();

/// What an attempt comes to is seen from outside.
fn ignore<T>(_: T) {}

/// Something that a computation has no use for.
const FORBIDDEN: &[(&str, Attempt)] = &[
    ("open a file", || ignore(fs::File::open("/etc/passwd"))),
    ("write a file", || {
        ignore(fs::write("/tmp/veil-denied", "x"))
    }),
    ("list a folder", || ignore(fs::read_dir("/"))),
    ("stat", || ignore(fs::metadata("/etc/passwd"))),
    ("make a folder", || {
        ignore(fs::create_dir("/tmp/veil-denied"))
    }),
    ("remove a file", || {
        ignore(fs::remove_file("/tmp/veil-denied"))
    }),
    ("rename", || {
        ignore(fs::rename("/tmp/veil-a", "/tmp/veil-b"))
    }),
    ("link", || {
        ignore(fs::hard_link("/etc/passwd", "/tmp/veil-b"))
    }),
    ("symlink", || {
        ignore(std::os::unix::fs::symlink("/etc", "/tmp/veil-b"))
    }),
    ("read a link", || ignore(fs::read_link("/proc/self/exe"))),
    ("change a mode", || {
        ignore(rustix::fs::chmod("/tmp", rustix::fs::Mode::empty()))
    }),
    ("where am I", || ignore(env::current_dir())),
    ("change folder", || ignore(env::set_current_dir("/tmp"))),
    ("change root", || ignore(rustix::process::chroot("/tmp"))),
    ("connect", || ignore(TcpStream::connect("127.0.0.1:9"))),
    ("listen", || ignore(TcpListener::bind("127.0.0.1:0"))),
    ("send a datagram", || ignore(UdpSocket::bind("127.0.0.1:0"))),
    ("a local socket", || ignore(UnixStream::connect("/run/x"))),
    ("a pair of sockets", || ignore(UnixStream::pair())),
    ("a pipe", || ignore(rustix::pipe::pipe())),
    ("start a process", || {
        ignore(Command::new("/bin/true").status())
    }),
    ("start a thread", || {
        ignore(thread::Builder::new().spawn(|| ()))
    }),
    ("signal init", || {
        ignore(rustix::process::kill_process(Pid::INIT, Signal::HUP))
    }),
    ("is init there", || {
        ignore(rustix::process::test_kill_process(Pid::INIT))
    }),
    ("who started me", || ignore(rustix::process::getppid())),
    ("who am I", || ignore(rustix::process::getuid())),
    ("a new session", || ignore(rustix::process::setsid())),
    ("raise a limit", || {
        let none = rustix::process::Rlimit {
            current: None,
            maximum: None,
        };
        ignore(rustix::process::setrlimit(
            rustix::process::Resource::Cpu,
            none,
        ));
    }),
    ("look at a limit", || {
        ignore(rustix::process::getrlimit(rustix::process::Resource::Cpu))
    }),
    ("wait for a child", || {
        ignore(rustix::process::wait(rustix::process::WaitOptions::NOHANG))
    }),
    ("be dumpable", || {
        let dumpable = rustix::process::DumpableBehavior::Dumpable;
        ignore(rustix::process::set_dumpable_behavior(dumpable));
    }),
    ("change priority", || {
        ignore(rustix::process::setpriority_process(None, 0))
    }),
    ("how many processors", || {
        ignore(rustix::thread::sched_getaffinity(None))
    }),
    ("sleep", || thread::sleep(Duration::from_millis(1))),
    ("duplicate a descriptor", || {
        ignore(rustix::io::dup(std::io::stdout()))
    }),
    ("flags of a descriptor", || {
        ignore(rustix::io::fcntl_getfd(std::io::stdout()))
    }),
    ("wait for an event", || {
        ignore(rustix::event::poll(&mut [], None))
    }),
    ("make an event", || {
        ignore(rustix::event::eventfd(
            0,
            rustix::event::EventfdFlags::empty(),
        ));
    }),
    ("the machine's name", || ignore(rustix::system::uname())),
    ("change the machine's name", || {
        ignore(rustix::system::sethostname(b"x"))
    }),
    ("the machine's memory", || ignore(rustix::system::sysinfo())),
    ("flush disks", rustix::fs::sync),
    ("a file in memory", || {
        ignore(rustix::fs::memfd_create(
            "x",
            rustix::fs::MemfdFlags::empty(),
        ));
    }),
    ("room on a disk", || ignore(rustix::fs::statvfs("/"))),
    ("wait for changes", || {
        ignore(rustix::fs::inotify::init(
            rustix::fs::inotify::CreateFlags::empty(),
        ));
    }),
    ("read standard output", || {
        ignore(rustix::io::read(std::io::stdout(), &mut [0; 1]))
    }),
    ("write standard input", || {
        ignore(rustix::io::write(std::io::stdin(), b"x"))
    }),
    ("seek", || {
        ignore(rustix::fs::seek(
            std::io::stdin(),
            rustix::fs::SeekFrom::Start(0),
        ))
    }),
    ("set the clock", || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        ignore(rustix::time::clock_settime(
            rustix::time::ClockId::Realtime,
            now,
        ));
    }),
    ("a terminal", || {
        ignore(rustix::termios::tcgetattr(std::io::stdout()))
    }),
];

/// What takes too much, and what is none of it.
const OTHERS: &[(&str, Attempt, End)] = &[
    (
        "take memory",
        || {
            let mut all = Vec::new();
            loop {
                all.push(black_box(vec![1u8; 16 << 20]));
            }
        },
        End::Memory,
    ),
    (
        "take time",
        || {
            let mut x = 1u64;
            loop {
                x = black_box(x.wrapping_mul(3));
            }
        },
        End::Cpu,
    ),
    (
        "never read",
        || {
            let mut byte = [0];
            // Its input never ends, since its writer does not close it before all is written.
            while std::io::stdin().read(&mut byte).unwrap() == 1 {
                let until = Instant::now() + Duration::from_millis(200);
                while Instant::now() < until {
                    thread::yield_now();
                }
            }
        },
        End::Wall,
    ),
    (
        "say too much",
        || {
            let much = vec![b'x'; 1 << 20];
            while std::io::stdout().write_all(&much).is_ok() {}
        },
        End::Reply,
    ),
    ("panic", || panic!("a defect"), End::Crash),
    (
        "recurse",
        || {
            fn deep(depth: u64) -> u64 {
                let room = black_box([depth; 512]);
                if room[7] == u64::MAX {
                    return 0;
                }
                1 + deep(room[7] + 1)
            }
            black_box(deep(0));
        },
        End::Crash,
    ),
    (
        "compute",
        || {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            let mut words: std::collections::HashMap<&str, usize> =
                std::collections::HashMap::new();
            for word in text.split_whitespace() {
                *words.entry(word).or_default() += 1;
            }
            let environment = env::vars_os().count();
            print!("{} {environment}", words["b"]);
        },
        End::Says(b"2 0"),
    ),
    ("say nothing", || {}, End::Says(b"")),
];

fn limits() -> Limits {
    Limits {
        memory: 256 << 20,
        cpu: Duration::from_secs(1),
        wall: Duration::from_secs(20),
        reply: 64 << 10,
        nice: 10,
    }
}

fn child(name: &str) -> ExitCode {
    match enter(&limits(), Require::Filter) {
        Ok(Confinement::Landlock | Confinement::Filter) => {}
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    }
    let forbidden = FORBIDDEN.iter().map(|(name, attempt)| (*name, *attempt));
    let others = OTHERS.iter().map(|(name, attempt, _)| (*name, *attempt));
    let (_, attempt) = forbidden
        .chain(others)
        .find(|(known, _)| *known == name)
        .unwrap();
    attempt();
    ExitCode::SUCCESS
}

fn ended(name: &str, limits: &Limits) -> Result<Vec<u8>, Ended> {
    let program = env::current_exe().unwrap();
    run(program.as_os_str(), &["child", name], b"a b b c", limits)
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().collect();
    if let [_, child_, name] = &args[..]
        && child_ == "child"
    {
        return child(name);
    }
    let mut failed = 0;
    let mut check = |name: &str, end: End| {
        let limits = match end {
            End::Wall => Limits {
                wall: Duration::from_millis(300),
                ..limits()
            },
            _ => limits(),
        };
        let ended = ended(name, &limits);
        let right = match (&ended, end) {
            (Ok(said), End::Says(wanted)) => said == wanted,
            (Err(Ended::Limit(limit)), _) => {
                *limit
                    == match end {
                        End::Call => Limit::Call,
                        End::Memory => Limit::Memory,
                        End::Cpu => Limit::Cpu,
                        End::Wall => Limit::Wall,
                        End::Reply => Limit::Reply,
                        End::Crash | End::Says(_) => return failed += 1,
                    }
            }
            (Err(Ended::Crashed { .. }), End::Crash) => true,
            _ => false,
        };
        if !right {
            failed += 1;
            eprintln!("{name}: {end:?} was to end it, and it was {ended:?}");
        }
    };
    for (name, _) in FORBIDDEN {
        check(name, End::Call);
    }
    for (name, _, end) in OTHERS {
        check(name, *end);
    }
    let all = FORBIDDEN.len() + OTHERS.len();
    println!(
        "test result: {}. {} passed; {failed} failed",
        if failed == 0 { "ok" } else { "FAILED" },
        all - failed
    );
    ExitCode::from(u8::from(failed > 0))
}
