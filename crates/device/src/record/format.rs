//! The bytes of a record: little-endian numbers, a tag before each variant, a count before each list.

use std::io::{self, Read};
use std::ops::Range;

use veil_math::Ring;
use veil_prss::Use;
use veil_session::{Frame, Secret, SessionId};
use zeroize::Zeroize;

use super::tape::chain;
use crate::{
    Bank, Command, Completion, Draw, Dst, Form, Instr, Item, KeyId, Layout, Op, Outcome, Place,
    Program, ProgramId, Region, Span, Src, Tag,
};

/// The first line says what the file is, the second that it is secret, to whoever looks at it.
pub(super) const MAGIC: &[u8] = b"veilworks device record 1\n\
SECRET: this file holds the keys, the shares and the values of one party. Keep it to yourself and delete it after use.\n";

/// Longest step: the bytes of one span.
const LONGEST: u64 = 1 << 32;

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// Not a record at all, or of another version.
    #[error("this is no device record of version 1")]
    Stranger,
    /// The file ends before its end mark.
    #[error("the record ends within step {step}: it was cut off, or the run was")]
    Cut {
        /// Number of the step.
        step: u64,
    },
    /// A digest does not match.
    #[error("step {step} of the record was changed after it was written")]
    Changed {
        /// Number of the step.
        step: u64,
    },
    /// A step that no recorder writes.
    #[error("step {step} of the record makes no sense: {what}")]
    Nonsense {
        /// Number of the step.
        step: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file cannot be read.
    #[error("step {step} of the record cannot be read: {error}")]
    Unreadable {
        /// Number of the step.
        step: u64,
        /// What the system says.
        error: io::Error,
    },
}

/// One call, as it is written.
pub(super) enum Step<'a> {
    Device {
        name: &'a str,
    },
    Bind {
        session: SessionId,
    },
    Key {
        id: KeyId,
        key: &'a Secret,
    },
    Layout {
        layout: &'a Layout,
    },
    Program {
        id: ProgramId,
        program: &'a Program,
        layout: u32,
    },
    Open {
        bank: Bank,
        layout: u32,
        frame: Frame,
    },
    Close {
        bank: Bank,
    },
    Write {
        bank: Bank,
        span: Span,
        bytes: &'a [u8],
    },
    Mapped {
        bank: Bank,
        span: Span,
        bytes: &'a [u8],
    },
    View {
        bank: Bank,
        span: Span,
        bytes: &'a [u8],
    },
    Submit {
        bank: Bank,
        batch: &'a [Command],
        tag: Tag,
    },
    Completion {
        completion: &'a Completion,
    },
    Wipe,
}

/// One call, as it is read.
pub(super) enum Call {
    Device(String),
    Bind(SessionId),
    Key(KeyId, Secret),
    Layout(Layout),
    Program(ProgramId, Program, u32),
    Open(Bank, u32, Frame),
    Close(Bank),
    /// Bytes that the host wrote, or that a transfer put there.
    Write(Bank, Span, Bytes),
    View(Bank, Span, Bytes),
    Submit(Bank, Vec<Command>, Tag),
    Completion(Completion),
    Wipe,
}

/// Bytes of a party: wiped when they are done with.
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Drop for Bytes {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Step<'_> {
    /// Replaces what is in `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let mut w = Writer(out);
        match self {
            Step::Device { name } => {
                w.u8(0);
                w.0.extend_from_slice(name.as_bytes());
            }
            Step::Bind { session } => {
                w.u8(1);
                w.0.extend_from_slice(&session.0);
            }
            Step::Key { id, key } => {
                w.u8(2);
                w.u16(id.0);
                w.0.extend_from_slice(key.expose());
            }
            Step::Layout { layout } => {
                w.u8(3);
                w.layout(layout);
            }
            Step::Program {
                id,
                program,
                layout,
            } => {
                w.u8(4);
                w.u32(id.0);
                w.u32(*layout);
                w.program(program);
            }
            Step::Open {
                bank,
                layout,
                frame,
            } => {
                w.u8(5);
                w.u32(bank.0);
                w.u32(*layout);
                w.u16(frame.epoch);
                w.u16(frame.lane);
                w.u32(frame.chunk);
                w.u32(frame.rows);
            }
            Step::Close { bank } => {
                w.u8(6);
                w.u32(bank.0);
            }
            Step::Write { bank, span, bytes } | Step::Mapped { bank, span, bytes } => {
                w.u8(7);
                w.u32(bank.0);
                w.span(*span);
                w.0.extend_from_slice(bytes);
            }
            Step::View { bank, span, bytes } => {
                w.u8(8);
                w.u32(bank.0);
                w.span(*span);
                w.0.extend_from_slice(bytes);
            }
            Step::Submit { bank, batch, tag } => {
                w.u8(9);
                w.u32(bank.0);
                w.u64(tag.0);
                w.list(batch, Writer::command);
            }
            Step::Completion { completion } => {
                w.u8(10);
                w.u64(completion.tag.0);
                match completion.outcome {
                    Outcome::Done => w.u8(0),
                    Outcome::Mismatch { command } => {
                        w.u8(1);
                        w.u32(command as u32);
                    }
                }
            }
            Step::Wipe => w.u8(11),
        }
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn u8(&mut self, x: u8) {
        self.0.push(x);
    }

    fn u16(&mut self, x: u16) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn u32(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn u64(&mut self, x: u64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn u128(&mut self, x: u128) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn list<T>(&mut self, list: &[T], one: impl Fn(&mut Self, &T)) {
        self.u32(list.len() as u32);
        for item in list {
            one(self, item);
        }
    }

    fn ring(&mut self, ring: Ring) {
        self.u8(match ring {
            Ring::Bits => 0,
            Ring::Z64 => 1,
            Ring::Z128 => 2,
        });
    }

    fn span(&mut self, span: Span) {
        self.u16(span.region);
        self.u8(span.part);
        self.u32(span.first);
        self.u32(span.count);
    }

    fn layout(&mut self, layout: &Layout) {
        self.u32(layout.chunk_rows);
        self.list(&layout.regions, |w, region| {
            w.u8(match region.place {
                Place::Resident => 0,
                Place::Mapped => 1,
                Place::Public => 2,
            });
            match region.item {
                Item::Rows(ring) => {
                    w.u8(0);
                    w.ring(ring);
                }
                Item::One(ring) => {
                    w.u8(1);
                    w.ring(ring);
                }
                Item::Bytes(n) => {
                    w.u8(2);
                    w.u32(n);
                }
            }
            w.u8(region.parts);
            w.u32(region.count);
        });
    }

    fn src(&mut self, src: Src) {
        let (tag, index) = match src {
            Src::Slot(i) => (0, i),
            Src::Temp(i) => (1, i),
            Src::Uniform(i) => (2, i),
        };
        self.u8(tag);
        self.u32(index);
    }

    fn dst(&mut self, dst: Dst) {
        let (tag, index) = match dst {
            Dst::Slot(i) => (0, i),
            Dst::Temp(i) => (1, i),
        };
        self.u8(tag);
        self.u32(index);
    }

    fn program(&mut self, program: &Program) {
        self.ring(program.ring);
        self.u16(program.slots);
        self.u16(program.uniforms);
        self.u16(program.sums);
        self.u32(program.temps);
        self.list(&program.pairs, |w, (a, b)| {
            w.src(*a);
            w.src(*b);
        });
        self.list(&program.code, Self::instr);
    }

    fn instr(&mut self, instr: &Instr) {
        match instr {
            Instr::Add(a, b, o) | Instr::Sub(a, b, o) => {
                self.u8(u8::from(matches!(instr, Instr::Sub(..))));
                self.src(*a);
                self.src(*b);
                self.dst(*o);
            }
            Instr::Plus(a, c, o) | Instr::Times(a, c, o) => {
                self.u8(2 + u8::from(matches!(instr, Instr::Times(..))));
                self.src(*a);
                self.u128(*c);
                self.dst(*o);
            }
            Instr::Copy(a, o) => {
                self.u8(4);
                self.src(*a);
                self.dst(*o);
            }
            Instr::Constant(c, o) => {
                self.u8(5);
                self.u128(*c);
                self.dst(*o);
            }
            Instr::Product { pairs, out, index } | Instr::ProductSum { pairs, out, index } => {
                self.u8(6 + u8::from(matches!(instr, Instr::ProductSum { .. })));
                for x in [pairs.start, pairs.end, *out, *index] {
                    self.u32(x);
                }
            }
            Instr::Sum(a, out) => {
                self.u8(8);
                self.src(*a);
                self.u32(*out);
            }
        }
    }

    fn command(&mut self, command: &Command) {
        match &command.op {
            Op::Linear => self.u8(0),
            Op::Product(form) => {
                self.u8(1);
                self.ring(form.ring);
                self.u8(form.own);
                self.list(form.terms, |w, (p, q)| {
                    w.u8(*p);
                    w.u8(*q);
                });
            }
            Op::Scatter { part } => {
                self.u8(2);
                self.u8(*part);
            }
            Op::Random => self.u8(3),
            Op::Combine { ring, minus } => {
                self.u8(4);
                self.ring(*ring);
                self.u32(*minus);
            }
            Op::Hash { label } => {
                self.u8(5);
                self.u16(*label);
            }
            Op::CheckEqual => self.u8(6),
        }
        match command.program {
            None => self.u8(0),
            Some(id) => {
                self.u8(1);
                self.u32(id.0);
            }
        }
        self.u8(command.constants);
        self.list(&command.src, |w, span| w.span(*span));
        self.list(&command.dst, |w, span| w.span(*span));
        self.list(&command.draws, |w, draw| {
            w.u16(draw.key.0);
            w.u16(draw.tag.0);
            w.u64(draw.first);
            w.u8(draw.minus.into());
        });
    }
}

/// Reads the steps of a record.
pub(super) struct Reader<R> {
    from: R,
    digest: [u8; 32],
    /// Number of the step that is read.
    pub(super) step: u64,
    /// Forms met so far. They live as long as the process, as those of protocols do: there are few.
    forms: Vec<&'static Form>,
}

/// More forms than any protocol has.
const MOST_FORMS: usize = 16;

impl<R: Read> Reader<R> {
    pub(super) fn new(mut from: R) -> Result<Self, Damage> {
        let mut magic = vec![0; MAGIC.len()];
        if from.read_exact(&mut magic).is_err() || magic != MAGIC {
            return Err(Damage::Stranger);
        }
        Ok(Reader {
            from,
            digest: [0; 32],
            step: 0,
            forms: Vec::new(),
        })
    }

    /// The next call; nothing at the end of the record.
    pub(super) fn next(&mut self) -> Result<Option<Call>, Damage> {
        self.step += 1;
        let step = self.step;
        let error = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Damage::Cut { step },
            _ => Damage::Unreadable { step, error },
        };
        let mut length = [0; 8];
        self.from.read_exact(&mut length).map_err(error)?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST {
            return Err(Damage::Changed { step });
        }
        // Grows with what is there, not with what is promised.
        let mut bytes = Bytes(Vec::new());
        (&mut self.from)
            .take(length)
            .read_to_end(&mut bytes.0)
            .map_err(error)?;
        let mut check = [0; 8];
        self.from.read_exact(&mut check).map_err(error)?;
        self.digest = chain(&self.digest, &bytes.0);
        if check != self.digest[..8] {
            return Err(Damage::Changed { step });
        }
        if bytes.0.is_empty() {
            return Ok(None);
        }
        let mut parser = Parser {
            rest: &bytes.0,
            forms: &mut self.forms,
        };
        let call = parser.call();
        match call {
            Ok(call) if parser.rest.is_empty() => Ok(Some(call)),
            Ok(_) => Err(Damage::Nonsense {
                step,
                what: "bytes after its end",
            }),
            Err(what) => Err(Damage::Nonsense { step, what }),
        }
    }
}

struct Parser<'a> {
    rest: &'a [u8],
    forms: &'a mut Vec<&'static Form>,
}

type Parsed<T> = Result<T, &'static str>;

impl Parser<'_> {
    fn bytes<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or("it ends too soon")?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Parsed<u8> {
        Ok(self.bytes::<1>()?[0])
    }

    fn u16(&mut self) -> Parsed<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Parsed<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Parsed<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Parsed<u128> {
        self.bytes().map(u128::from_le_bytes)
    }

    /// A list, which grows with what is there.
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let count = self.u32()?;
        // Every item takes at least a byte.
        if count as usize > self.rest.len() {
            return Err("a list longer than its step");
        }
        (0..count).map(|_| one(self)).collect()
    }

    fn ring(&mut self) -> Parsed<Ring> {
        match self.u8()? {
            0 => Ok(Ring::Bits),
            1 => Ok(Ring::Z64),
            2 => Ok(Ring::Z128),
            _ => Err("an unknown ring"),
        }
    }

    fn span(&mut self) -> Parsed<Span> {
        Ok(Span {
            region: self.u16()?,
            part: self.u8()?,
            first: self.u32()?,
            count: self.u32()?,
        })
    }

    fn tail(&mut self) -> Bytes {
        Bytes(std::mem::take(&mut self.rest).to_vec())
    }

    fn call(&mut self) -> Parsed<Call> {
        let bank = |p: &mut Self| p.u32().map(Bank);
        Ok(match self.u8()? {
            0 => {
                let name = self.tail();
                Call::Device(String::from_utf8_lossy(&name.0).into_owned())
            }
            1 => Call::Bind(SessionId(self.bytes()?)),
            2 => {
                let id = KeyId(self.u16()?);
                let mut key: [u8; 16] = self.bytes()?;
                let secret = Secret::new(key);
                key.zeroize();
                Call::Key(id, secret)
            }
            3 => Call::Layout(self.layout()?),
            4 => {
                let (id, layout) = (ProgramId(self.u32()?), self.u32()?);
                Call::Program(id, self.program()?, layout)
            }
            5 => {
                let (bank, layout) = (bank(self)?, self.u32()?);
                let frame = Frame {
                    epoch: self.u16()?,
                    lane: self.u16()?,
                    chunk: self.u32()?,
                    rows: self.u32()?,
                };
                Call::Open(bank, layout, frame)
            }
            6 => Call::Close(bank(self)?),
            7 => Call::Write(bank(self)?, self.span()?, self.tail()),
            8 => Call::View(bank(self)?, self.span()?, self.tail()),
            9 => {
                let (bank, tag) = (bank(self)?, Tag(self.u64()?));
                Call::Submit(bank, self.list(Self::command)?, tag)
            }
            10 => {
                let tag = Tag(self.u64()?);
                let outcome = match self.u8()? {
                    0 => Outcome::Done,
                    1 => Outcome::Mismatch {
                        command: self.u32()? as usize,
                    },
                    _ => return Err("an unknown outcome"),
                };
                Call::Completion(Completion { tag, outcome })
            }
            11 => Call::Wipe,
            _ => return Err("an unknown call"),
        })
    }

    fn layout(&mut self) -> Parsed<Layout> {
        let chunk_rows = self.u32()?;
        let regions = self.list(|p| {
            let place = match p.u8()? {
                0 => Place::Resident,
                1 => Place::Mapped,
                2 => Place::Public,
                _ => return Err("an unknown place"),
            };
            let item = match p.u8()? {
                0 => Item::Rows(p.ring()?),
                1 => Item::One(p.ring()?),
                2 => Item::Bytes(p.u32()?),
                _ => return Err("an unknown item"),
            };
            Ok(Region {
                place,
                item,
                parts: p.u8()?,
                count: p.u32()?,
            })
        })?;
        Ok(Layout {
            chunk_rows,
            regions,
        })
    }

    fn src(&mut self) -> Parsed<Src> {
        let (tag, index) = (self.u8()?, self.u32()?);
        match tag {
            0 => Ok(Src::Slot(index)),
            1 => Ok(Src::Temp(index)),
            2 => Ok(Src::Uniform(index)),
            _ => Err("an unknown operand"),
        }
    }

    fn dst(&mut self) -> Parsed<Dst> {
        let (tag, index) = (self.u8()?, self.u32()?);
        match tag {
            0 => Ok(Dst::Slot(index)),
            1 => Ok(Dst::Temp(index)),
            _ => Err("an unknown result"),
        }
    }

    fn program(&mut self) -> Parsed<Program> {
        let ring = self.ring()?;
        let (slots, uniforms, sums) = (self.u16()?, self.u16()?, self.u16()?);
        let temps = self.u32()?;
        let pairs = self.list(|p| Ok((p.src()?, p.src()?)))?;
        let code = self.list(Self::instr)?;
        // Each temp is written by an instruction.
        if temps as usize > code.len() {
            return Err("more temps than instructions");
        }
        Ok(Program {
            ring,
            slots,
            uniforms,
            sums,
            temps,
            pairs,
            code,
        })
    }

    fn instr(&mut self) -> Parsed<Instr> {
        Ok(match self.u8()? {
            0 => Instr::Add(self.src()?, self.src()?, self.dst()?),
            1 => Instr::Sub(self.src()?, self.src()?, self.dst()?),
            2 => Instr::Plus(self.src()?, self.u128()?, self.dst()?),
            3 => Instr::Times(self.src()?, self.u128()?, self.dst()?),
            4 => Instr::Copy(self.src()?, self.dst()?),
            5 => Instr::Constant(self.u128()?, self.dst()?),
            6 => {
                let (pairs, out, index) = self.product()?;
                Instr::Product { pairs, out, index }
            }
            7 => {
                let (pairs, out, index) = self.product()?;
                Instr::ProductSum { pairs, out, index }
            }
            8 => Instr::Sum(self.src()?, self.u32()?),
            _ => return Err("an unknown instruction"),
        })
    }

    fn product(&mut self) -> Parsed<(Range<u32>, u32, u32)> {
        Ok((self.u32()?..self.u32()?, self.u32()?, self.u32()?))
    }

    fn command(&mut self) -> Parsed<Command> {
        let op = match self.u8()? {
            0 => Op::Linear,
            1 => Op::Product(self.form()?),
            2 => Op::Scatter { part: self.u8()? },
            3 => Op::Random,
            4 => Op::Combine {
                ring: self.ring()?,
                minus: self.u32()?,
            },
            5 => Op::Hash { label: self.u16()? },
            6 => Op::CheckEqual,
            _ => return Err("an unknown command"),
        };
        let program = match self.u8()? {
            0 => None,
            _ => Some(ProgramId(self.u32()?)),
        };
        Ok(Command {
            op,
            program,
            constants: self.u8()?,
            src: self.list(Self::span)?,
            dst: self.list(Self::span)?,
            draws: self.list(|p| {
                Ok(Draw {
                    key: KeyId(p.u16()?),
                    tag: Use(p.u16()?),
                    first: p.u64()?,
                    minus: p.u8()? != 0,
                })
            })?,
        })
    }

    fn form(&mut self) -> Parsed<&'static Form> {
        let (ring, own) = (self.ring()?, self.u8()?);
        let terms = self.list(|p| Ok((p.u8()?, p.u8()?)))?;
        let known = self
            .forms
            .iter()
            .find(|f| (f.ring, f.own, f.terms) == (ring, own, &terms[..]));
        if let Some(known) = known {
            return Ok(known);
        }
        if self.forms.len() == MOST_FORMS || terms.len() > 64 {
            return Err("more forms than any protocol has");
        }
        let form: &'static Form = Box::leak(Box::new(Form {
            ring,
            terms: Vec::leak(terms),
            own,
        }));
        self.forms.push(form);
        Ok(form)
    }
}
