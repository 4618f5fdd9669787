//! From the bytes of a record to calls, believing none of them.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};
use zeroize::Zeroize;

use super::format::{Bytes, Call, Damage, MAGIC};
use super::tape::chain;
use crate::cut::By;
use crate::ot::{Choices, Low};
use crate::{
    ColumnType, Command, Completion, Cross, Cut, Dst, Form, Garbling, Instr, KeyId, Layout,
    Lifting, MatMul, Op, Ot, Outcome, PrfCall, Program, ProgramId, Proof, Region, Repeat,
    Residency, RowStep, Side, Span, Src, Step, Tag, Trees, Truncation, Workspace,
};

/// Longest step: the bytes of one span.
const LONGEST: u64 = 1 << 32;

/// Reads the steps of a record.
pub(super) struct Reader<R> {
    from: R,
    digest: [u8; 32],
    /// Number of the step that is read.
    pub(super) step: u64,
    /// Forms met so far. They live as long as the process, as forms of protocols do: there are few.
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

pub(super) struct Parser<'a> {
    rest: &'a [u8],
    forms: &'a mut Vec<&'static Form>,
}

pub(super) type Parsed<T> = Result<T, &'static str>;

impl Parser<'_> {
    fn bytes<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or("it ends too soon")?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self) -> Parsed<u8> {
        Ok(self.bytes::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Parsed<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Parsed<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Parsed<u64> {
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
            3 => Ok(Ring::Z32),
            1 => Ok(Ring::Z64),
            2 => Ok(Ring::Z128),
            _ => Err("an unknown ring"),
        }
    }

    fn garbling(&mut self) -> Parsed<Garbling> {
        let scheme = usize::from(self.u8()?);
        let known = Garbling::ALL.get(scheme).copied();
        known.ok_or("an unknown scheme of garbling")
    }

    fn span(&mut self) -> Parsed<Span> {
        Ok(Span {
            region: self.u16()?,
            component: self.u8()?,
            first: self.u32()?,
            count: self.u32()?,
        })
    }

    fn tail(&mut self) -> Bytes {
        Bytes(std::mem::take(&mut self.rest).to_vec())
    }

    fn call(&mut self) -> Parsed<Call> {
        let workspace = |p: &mut Self| p.u32().map(Workspace);
        Ok(match self.u8()? {
            0 => {
                let name = self.tail();
                let printable = name.0.iter().all(u8::is_ascii_graphic);
                if name.0.len() > 64 || !printable {
                    return Err("a name that no device has");
                }
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
                let (workspace, layout) = (workspace(self)?, self.u32()?);
                let frame = Frame {
                    epoch: self.u16()?,
                    lane: self.u16()?,
                    chunk: self.u32()?,
                    rows: self.u32()?,
                };
                Call::Open(workspace, layout, frame)
            }
            6 => Call::Close(workspace(self)?),
            7 => Call::Write(workspace(self)?, self.span()?, self.tail()),
            8 => Call::View(workspace(self)?, self.span()?, self.tail()),
            9 => {
                let (workspace, tag) = (workspace(self)?, Tag(self.u64()?));
                Call::Submit(workspace, self.list(Self::command)?, tag)
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
                0 => Residency::Resident,
                1 => Residency::Mapped,
                2 => Residency::Public,
                3 => Residency::Plane,
                4 => Residency::Lent,
                _ => return Err("an unknown place"),
            };
            let item = match p.u8()? {
                0 => ColumnType::Rows(p.ring()?),
                1 => ColumnType::One(p.ring()?),
                2 => ColumnType::Bytes(p.u32()?),
                3 => ColumnType::Labels,
                4 => ColumnType::Label,
                5 => ColumnType::Halves,
                6 => Some(ColumnType::Words(p.u8()?))
                    .filter(|column| column.is_known())
                    .ok_or("words of a size that there is not")?,
                _ => return Err("an unknown item"),
            };
            Ok(Region {
                residency: place,
                column: item,
                components: p.u8()?,
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
            2 => Ok(Src::JobWide(index)),
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
        let (slots, job_wide, sums) = (self.u16()?, self.u16()?, self.u16()?);
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
            job_wide,
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

    fn lifting(&mut self) -> Parsed<Lifting> {
        Ok(match self.u8()? {
            0 => Lifting::Share,
            1 => Lifting::Turn,
            2 => Lifting::Terms {
                terms: [(self.u8()?, self.u8()?), (self.u8()?, self.u8()?)],
                keeps: [self.u8()?.checked_sub(1), self.u8()?.checked_sub(1)],
            },
            _ => return Err("an unknown step of lifts"),
        })
    }

    fn truncation(&mut self) -> Parsed<Truncation> {
        let (step, by) = (self.u8()?, self.u32()?);
        Ok(match step {
            0 => Truncation::Hide { by },
            1 => Truncation::Take { by },
            2 => Truncation::Answer { by },
            3 => Truncation::Settle { by },
            _ => return Err("an unknown step of truncations"),
        })
    }

    fn product(&mut self) -> Parsed<(Range<u32>, u32, u32)> {
        Ok((self.u32()?..self.u32()?, self.u32()?, self.u32()?))
    }

    /// A command, which may be one that is repeated.
    fn command(&mut self) -> Parsed<Command> {
        let kind = self.u8()?;
        if kind == 20 {
            let op = Op::Repeat(Arc::new(self.repeat()?));
            return self.command_of(op);
        }
        self.once(kind)
    }

    fn repeat(&mut self) -> Parsed<Repeat> {
        Ok(Repeat {
            count: self.u32()?,
            body: self.list(|p| {
                // What is repeated repeats nothing.
                let kind = p.u8()?;
                Ok(Step {
                    command: p.once(kind)?,
                    src: p.list(Self::u32)?,
                    dst: p.list(Self::u32)?,
                    calls: p.list(Self::u64)?,
                })
            })?,
            live: self.list(Self::span)?,
        })
    }

    fn once(&mut self, kind: u8) -> Parsed<Command> {
        let op = match kind {
            0 => Op::Linear,
            1 => Op::Product(self.form()?),
            2 => Op::AddReceived {
                component: self.u8()?,
            },
            3 => Op::Random,
            4 => Op::Combine {
                ring: self.ring()?,
                minus: self.u32()?,
            },
            5 => Op::Hash { label: self.u16()? },
            6 => Op::CheckEqual,
            7 => Op::Mac,
            8 => Op::Proof(self.proof()?),
            9 => Op::Split { first: self.u32()? },
            10 => Op::Lift,
            11 => Op::Shift { by: self.u32()? },
            23 => Op::Lifting(self.lifting()?),
            30 => Op::Truncation(self.truncation()?),
            24 => Op::Permutation,
            25 => Op::Permute {
                back: self.u8()? != 0,
            },
            26 => Op::Invert,
            27 => Op::Rank(self.form()?),
            28 => Op::MatMul(MatMul {
                form: self.form()?,
                left: self.u32()?,
                transposed: self.u8()? != 0,
                zeros: self.u8()?,
            }),
            12 => Op::Scale,
            13 => Op::Resize,
            14 => Op::Dot,
            15 => Op::Garble {
                scheme: self.garbling()?,
                offset: KeyId(self.u16()?),
            },
            16 => Op::Evaluate {
                scheme: self.garbling()?,
            },
            17 => Op::Encode {
                offset: KeyId(self.u16()?),
            },
            18 => Op::Colour,
            19 => Op::Ot(self.transfer()?),
            21 => Op::Cut(self.cut()?),
            32 => Op::Silent(self.silent()?),
            33 => Op::Psi(self.intersection()?),
            22 => Op::Publish,
            31 => Op::Ag(self.authenticated()?),
            _ => return Err("an unknown command"),
        };
        self.command_of(op)
    }

    fn command_of(&mut self, op: Op) -> Parsed<Command> {
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
            calls: self.list(|p| {
                Ok(PrfCall {
                    key: KeyId(p.u16()?),
                    tag: DomainTag(p.u16()?),
                    first: p.u64()?,
                })
            })?,
        })
    }

    fn trees(&mut self) -> Parsed<Trees> {
        Trees::new(self.u8()?).ok_or("trees of keys that there are not")
    }

    fn transfer(&mut self) -> Parsed<Ot> {
        let key = |p: &mut Self| p.u16().map(KeyId);
        Ok(match self.u8()? {
            0 => Ot::Receive {
                trees: self.trees()?,
            },
            1 => Ot::Send {
                trees: self.trees()?,
                offset: key(self)?,
            },
            2 => Ot::Fold {
                items: self.u32()?,
                of: Choices::Rows,
            },
            8 => Ot::Fold {
                items: self.u32()?,
                of: Choices::Bytes(self.u32()?),
            },
            3 => Ot::Compare { offset: key(self)? },
            4 => Ot::Labels { low: Low::Column },
            9 => Ot::Labels { low: Low::Choice },
            10 => Ot::Labels { low: Low::Zero },
            5 => Ot::Keys { offset: None },
            6 => Ot::Keys {
                offset: Some(key(self)?),
            },
            7 => Ot::Choose,
            _ => return Err("an unknown step of transfers"),
        })
    }

    fn cut(&mut self) -> Parsed<Cut> {
        Ok(match self.u8()? {
            0 => Cut::Stretch,
            1 => Cut::Number { first: self.u32()? },
            2 => Cut::Digest { label: self.u16()? },
            3 => Cut::Marks {
                label: self.u16()?,
                by: match self.u8()? {
                    0 => By::Colour,
                    1 => By::Value,
                    _ => return Err("an unknown order of marks"),
                },
            },
            4 => Cut::Member { label: self.u16()? },
            5 => Cut::Majority { label: self.u16()? },
            6 => Cut::Matrix { key: None },
            7 => {
                let mut key = [0; 16];
                for byte in &mut key {
                    *byte = self.u8()?;
                }
                Cut::Matrix { key: Some(key) }
            }
            8 => Cut::Active,
            9 => Cut::Spread,
            10 => Cut::Mask,
            11 => Cut::Unmask,
            12 => Cut::Shuffle,
            13 => Cut::Pick { half: self.u8()? },
            14 => Cut::Same,
            15 => Cut::Garble { first: self.u64()? },
            16 => Cut::Evaluate { first: self.u64()? },
            _ => return Err("an unknown step of cut-and-choose"),
        })
    }

    fn proof(&mut self) -> Parsed<Proof> {
        Ok(match self.u8()? {
            0 => Proof::Elements { from: self.u32()? },
            1 => Proof::Claims { side: self.side()? },
            3 => Proof::Share {
                level: self.u32()?,
                products: self.u32()?,
                last: self.u32()? != 0,
            },
            4 => Proof::Expand { side: self.side()? },
            5 => Proof::Fold {
                level: self.u32()?,
                products: self.u32()?,
            },
            6 => Proof::End {
                level: self.u32()?,
                products: self.u32()?,
            },
            7 => Proof::Verify {
                level: self.u32()?,
                last: self.u32()? != 0,
            },
            8 => Proof::Compare,
            9 => Proof::Rows(RowStep::Hashes {
                word: self.u32()?,
                place: self.place()?,
            }),
            10 => Proof::Rows(RowStep::Weights {
                place: self.place()?,
                back: self.u32()? != 0,
            }),
            11 => Proof::Rows(RowStep::Claim {
                word: self.u32()?,
                place: self.place()?,
                first: self.u32()? != 0,
            }),
            _ => return Err("an unknown step of a proof"),
        })
    }

    fn place(&mut self) -> Parsed<u8> {
        u8::try_from(self.u32()?).map_err(|_| "an unknown place of a proof")
    }

    fn side(&mut self) -> Parsed<Side> {
        let side = Side::ALL.get(self.u32()? as usize);
        side.copied().ok_or("an unknown side of a proof")
    }

    fn form(&mut self) -> Parsed<&'static Form> {
        let ring = self.ring()?;
        let pair = |p: &mut Self| Ok((p.u8()?, p.u8()?));
        let crosses = self.list(|p| {
            let terms = p.list(pair)?;
            let masks = p.list(|p| Ok((p.u8()?, p.u8()? != 0)))?;
            Ok((terms, masks, p.u8()?))
        })?;
        let keeps = self.list(pair)?;
        let same = |form: &Form| {
            let each = |(cross, (terms, masks, to)): (&Cross, &(Vec<_>, Vec<_>, u8))| {
                (cross.terms, cross.masks, cross.to) == (&terms[..], &masks[..], *to)
            };
            (form.ring, form.keeps, form.crosses.len()) == (ring, &keeps[..], crosses.len())
                && form.crosses.iter().zip(&crosses).all(each)
        };
        if let Some(known) = self.forms.iter().find(|form| same(form)) {
            return Ok(known);
        }
        let entries = crosses
            .iter()
            .map(|(terms, masks, _)| terms.len() + masks.len());
        if self.forms.len() == MOST_FORMS || keeps.len() + entries.sum::<usize>() > 64 {
            return Err("more forms than any protocol has");
        }
        let crosses = crosses.into_iter().map(|(terms, masks, to)| Cross {
            terms: Vec::leak(terms),
            masks: Vec::leak(masks),
            to,
        });
        let form: &'static Form = Box::leak(Box::new(Form {
            ring,
            crosses: Vec::leak(crosses.collect()),
            keeps: Vec::leak(keeps),
        }));
        self.forms.push(form);
        Ok(form)
    }
}
