//! What is measured: a workspace, a batch of one command, and what it takes.

use std::sync::Arc;

use veil_device::garble::Garbling;
use veil_device::ot::{Choices, column_bytes};
use veil_device::{
    ColumnType, Command, Device, Form, Frame, Instr, KeyId, Layout, Lpn, MatMul, Op, Ot, PrfCall,
    Program, Region, Residency, Silent, Span, Src, Trees,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use super::{Effort, Error};
use crate::Cuda;

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) layout: Layout,
    pub(super) rows: u32,
    pub(super) commands: Vec<Command>,
    /// What the host writes before, and reads after.
    pub(super) input: Vec<Span>,
    pub(super) output: Vec<Span>,
    /// Units of a batch; and of a unit, along the path that it takes through the code: PRMT, LOP3 and what else the same units do; loads and stores
    /// of any memory, in words; bytes of device memory; products of bytes of tensor cores.
    pub(super) units: f64,
    pub(super) alu: f64,
    pub(super) words: f64,
    pub(super) near: f64,
    pub(super) bytes: f64,
}

impl Case {
    pub(super) fn frame(&self, chunk: u32) -> Frame {
        Frame {
            epoch: 0,
            lane: 0,
            chunk,
            rows: self.rows,
        }
    }
}

/// Makes a case: loads what it needs.
type Make = fn(&mut Cuda, Effort) -> Result<Case, Error>;

pub(super) const ALL: [Make; 10] = [
    prss,
    and,
    rep4,
    garble,
    evaluate,
    transfers,
    silent,
    digest,
    matrices,
    matrices_32,
];

/// Those of a block of AES in counter mode (docs/cuda.md): tables are 159 of the words, round keys 40.
const AES: [f64; 2] = [266.0, 203.0];
/// The same of 128 ANDs of bits among three parties.
const ANDS: [f64; 2] = [775.0, 527.0];

const OFFSET: KeyId = KeyId(0);

fn call(device: &mut Cuda, key: u16, tag: DomainTag) -> Result<PrfCall, Error> {
    let key = KeyId(key);
    // An offset has bit 0, and keys of others may have it too.
    let secret = [key.0 as u8 ^ 0x35, (key.0 >> 8) as u8].repeat(8);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&secret);
    device.load_key(key, &Secret::new(bytes))?;
    let first = 0;
    Ok(PrfCall { key, tag, first })
}

fn workspace(effort: Effort) -> Layout {
    Layout {
        chunk_rows: effort.rows,
        regions: vec![],
    }
}

fn add(
    layout: &mut Layout,
    residency: Residency,
    column: ColumnType,
    components: u8,
    count: u32,
) -> Span {
    let region = layout.add(Region {
        residency,
        column,
        components,
        count,
    });
    layout.all(region, 0)
}

/// Masks: a stream of a key.
fn prss(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    let mut layout = workspace(effort);
    let item = ColumnType::Rows(Ring::Z64);
    let to = add(&mut layout, Residency::Mapped, item, 1, effort.items);
    let mut command = Command::new(Op::Random, vec![], vec![to]);
    command.calls = vec![call(device, 1, DomainTag::RAND3)?];
    Ok(Case {
        name: "AES-CTR",
        unit: "bytes",
        units: layout.bytes(to, effort.rows) as f64,
        layout,
        rows: effort.rows,
        commands: vec![command],
        input: vec![],
        output: vec![to],
        alu: AES[0] / 16.0,
        words: AES[1] / 16.0,
        near: 1.0,
        bytes: 0.0,
    })
}

/// A program of so many products of its own operands, over a workspace that has its regions first.
fn products(
    ring: Ring,
    items: [ColumnType; 2],
    parts: u8,
    count: u32,
    layout: &mut Layout,
) -> Program {
    let [rows, one] = items;
    let slots = add(layout, Residency::Resident, rows, parts, 3 * count).region;
    let job_wide = add(layout, Residency::Mapped, one, parts, 1).region;
    let sums = add(layout, Residency::Mapped, one, parts, 1).region;
    let product = |k: u32| Instr::Product {
        pairs: k..k + 1,
        out: 2 * count + k,
        index: k,
    };
    Program {
        ring,
        slots,
        job_wide,
        sums,
        temps: 0,
        pairs: (0..count)
            .map(|k| (Src::Slot(2 * k), Src::Slot(2 * k + 1)))
            .collect(),
        code: (0..count).map(product).collect(),
    }
}

/// Products of shares of a form: instructions and words that each takes, and bytes of device memory.
fn shares(
    device: &mut Cuda,
    effort: Effort,
    (name, unit): (&'static str, &'static str),
    (form, parts, count): (&'static Form, u8, u32),
    ([alu, words], near): ([f64; 2], f64),
) -> Result<Case, Error> {
    let mut layout = workspace(effort);
    let items = [ColumnType::Rows(form.ring), ColumnType::One(form.ring)];
    let program = products(form.ring, items, parts, count, &mut layout);
    let messages = form.crosses.iter();
    let messages: Vec<Span> = messages
        .map(|_| add(&mut layout, Residency::Mapped, items[0], 1, count))
        .collect();
    // Of sums there are none: their messages may be anything.
    let to = [&messages[..], &messages[..]].concat();
    let mut command = Command::new(Op::Product(form), vec![], to);
    command.program = Some(device.load(&Arc::new(program), &layout)?);
    for k in 0..form.calls() {
        let call = call(device, 1 + k as u16, DomainTag::MUL3)?;
        command.calls.push(call);
    }
    Ok(Case {
        name,
        unit,
        layout,
        rows: effort.rows,
        commands: vec![command],
        input: vec![],
        output: messages,
        units: f64::from(count) * f64::from(effort.rows),
        alu,
        words,
        near,
        bytes: 0.0,
    })
}

/// ANDs among three parties: two bits of masks, four of shares; a message, and a component.
fn and(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    let form = (Form::replicated(Ring::Bits), 2, 32 * effort.items);
    let takes = (ANDS.map(|of| of / 128.0), 6.0 / 8.0);
    shares(device, effort, ("rep3 AND", "ANDs"), form, takes)
}

/// Products among four parties: four masks of sixteen bytes; six components; three messages, three components.
fn rep4(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    let form = (Form::fourfold(Ring::Z128, false, false), 3, effort.items);
    let takes = (AES.map(|of| 4.0 * of), 12.0 * 16.0);
    shares(
        device,
        effort,
        ("rep4 product, 128", "products"),
        form,
        takes,
    )
}

/// ANDs of a layer of half-gates: as the garbler, or as the evaluator.
fn gates(device: &mut Cuda, effort: Effort, garbles: bool) -> Result<Case, Error> {
    let (mut layout, count) = (workspace(effort), effort.items);
    let items = [ColumnType::Labels, ColumnType::Label];
    let program = products(Ring::Bits, items, 1, count, &mut layout);
    let tables = add(
        &mut layout,
        Residency::Mapped,
        ColumnType::Labels,
        1,
        2 * count,
    );
    let (scheme, offset) = (Garbling::HalfGates, OFFSET);
    call(device, OFFSET.0, DomainTag::GARBLE)?;
    let mut command = if garbles {
        Command::new(Op::Garble { scheme, offset }, vec![], vec![tables])
    } else {
        Command::new(Op::Evaluate { scheme }, vec![tables], vec![])
    };
    command.program = Some(device.load(&Arc::new(program), &layout)?);
    command.calls = vec![call(device, 1, DomainTag::GARBLE)?];
    let (name, alu, words) = if garbles {
        ("garble, half-gates", 1380.0, 753.0)
    } else {
        ("evaluate, half-gates", 841.0, 441.0)
    };
    let [input, output] = if garbles {
        [vec![], vec![tables]]
    } else {
        [vec![tables], vec![]]
    };
    Ok(Case {
        name,
        unit: "ANDs",
        layout,
        rows: effort.rows,
        commands: vec![command],
        input,
        output,
        units: f64::from(count) * f64::from(effort.rows),
        alu,
        words,
        near: 80.0,
        bytes: 0.0,
    })
}

fn garble(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    gates(device, effort, true)
}

fn evaluate(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    gates(device, effort, false)
}

/// Transfers at the receiver, which has all leaves: trees of four bits, so that a transfer takes four blocks.
fn transfers(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    const KEYS: u16 = 16;
    let trees = Trees::ALL[2];
    let (mut layout, items) = (workspace(effort), effort.items);
    let bits = ColumnType::Rows(Ring::Bits);
    let choices = add(&mut layout, Residency::Mapped, bits, 1, items);
    let corrections = add(
        &mut layout,
        Residency::Mapped,
        bits,
        1,
        items * trees.count(),
    );
    let last = ColumnType::Bytes(16);
    let last = add(&mut layout, Residency::Mapped, last, 1, trees.count() - 1);
    let column = ColumnType::Bytes(column_bytes(Choices::Rows, items, effort.rows) as u32);
    let columns = add(&mut layout, Residency::Resident, column, 1, 129);
    for tree in 0..trees.count() {
        for leaf in 0..trees.leaves() {
            call(device, KEYS + trees.index(tree, leaf), DomainTag::OT_LEAF)?;
        }
    }
    let op = Op::Ot(Ot::Receive { trees });
    let mut command = Command::new(op, vec![choices], vec![corrections, last, columns]);
    command.calls = vec![PrfCall {
        key: KeyId(KEYS),
        tag: DomainTag::OT_LEAF,
        first: 0,
    }];
    Ok(Case {
        name: "OT extension, k = 4",
        unit: "transfers",
        layout,
        rows: effort.rows,
        commands: vec![command],
        input: vec![choices],
        output: vec![corrections, last],
        units: f64::from(items) * f64::from(effort.rows),
        alu: 4.0 * 341.0,
        words: 4.0 * 178.0,
        near: 20.0,
        bytes: 0.0,
    })
}

/// A round of silent transfers at the sender: trees, and rows of places in a secret that is as long as that of the default set.
fn silent(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    let whole = Lpn::C12;
    let trees = effort.items * effort.rows / whole.leaves();
    let set = Lpn::of(trees.clamp(1, whole.trees), whole.log_secret, whole.height);
    let (mut layout, resident) = (workspace(effort), Residency::Resident);
    let base = add(&mut layout, resident, set.column(), 1, set.base_columns());
    let leaves = add(&mut layout, resident, set.column(), 1, set.trees);
    let block = ColumnType::Bytes(16);
    let sums = add(&mut layout, Residency::Mapped, block, 1, set.levels());
    let none = Span { count: 0, ..leaves };
    let starts = call(device, 1, DomainTag::OT_TREE)?;
    let roots = call(device, 2, DomainTag::OT_ROOT)?;
    let rows = call(device, 1, DomainTag::OT_ROWS)?;
    call(device, OFFSET.0, DomainTag::OT_ROOT)?;
    let offset = OFFSET;
    let mut grow = Command::new(
        Op::Silent(Silent::Grow { set, offset }),
        vec![base],
        vec![leaves, none, sums],
    );
    grow.calls = vec![starts, roots];
    let mut add_up = Command::new(
        Op::Silent(Silent::Rows { set }),
        vec![base],
        vec![leaves, none],
    );
    add_up.calls = vec![rows];
    Ok(Case {
        name: "silent transfers, a round at the sender",
        unit: "outputs",
        layout,
        rows: effort.rows,
        commands: vec![grow, add_up],
        input: vec![],
        output: vec![sums],
        units: set.outputs() as f64,
        alu: 335.0 + 780.0,
        words: 192.0 + 556.0,
        near: 64.0,
        bytes: 0.0,
    })
}

/// A digest of a long source: pieces of 1024 bytes, and of their digests, to the end.
#[expect(clippy::unnecessary_wraps, reason = "it is a case among others")]
fn digest(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    device.bind(veil_session::SessionId([1; 32]));
    let mut layout = workspace(effort);
    let pieces = 512 * effort.items;
    let from = add(
        &mut layout,
        Residency::Mapped,
        ColumnType::Bytes(1024),
        1,
        pieces,
    );
    let to = add(&mut layout, Residency::Mapped, ColumnType::Bytes(32), 1, 1);
    let (mut bytes, mut blocks) = (1024 * u64::from(pieces), 0);
    while bytes > 1024 {
        // The length of a piece takes a block of its own.
        blocks += bytes.div_ceil(1024) * 17;
        bytes = bytes.div_ceil(1024) * 32;
    }
    Ok(Case {
        name: "SHA-256, a tree",
        unit: "compressions",
        layout,
        rows: effort.rows,
        commands: vec![Command::new(Op::Hash { label: 1 }, vec![from], vec![to])],
        input: vec![from],
        output: vec![to],
        units: blocks as f64,
        alu: 1977.0,
        words: 64.0,
        near: 62.0,
        bytes: 0.0,
    })
}

/// Matrices of shares among three parties: two products of elements, of limbs i and j with i + j less than there are. Masks are those of an element of the product.
/// Loads of a tile: a warp of 32 by 16 elements, or 32 by 32 of four limbs, brings each limb of its rows and columns for all limb products of a step.
fn of_matrices(
    device: &mut Cuda,
    effort: Effort,
    ring: Ring,
    (name, tile): (&'static str, f64),
) -> Result<Case, Error> {
    let rows = (effort.rows / 8).max(8);
    let size = 4 * effort.items;
    let mut layout = Layout {
        chunk_rows: rows,
        regions: vec![],
    };
    let (all, one) = (ColumnType::Rows(ring), ColumnType::One(ring));
    let mapped = Residency::Mapped;
    let left = add(&mut layout, mapped, all, 2, size);
    let right = add(&mut layout, mapped, one, 2, size * size);
    let to = add(&mut layout, mapped, all, 1, size);
    let part = |span: Span, component| Span { component, ..span };
    let column = |span: Span, first| Span {
        first,
        count: 1,
        ..span
    };
    let lefts = (0..size).flat_map(|k| [0, 1].map(|p| column(part(left, p), k)));
    let sources = lefts.chain([right, part(right, 1)]);
    let form = Form::replicated(ring);
    let of = MatMul {
        form,
        left: size,
        transposed: false,
        zeros: 0,
    };
    let to_columns = (0..size).map(|j| column(to, j)).collect();
    let mut command = Command::new(Op::MatMul(of), sources.collect(), to_columns);
    for k in 0..form.calls() {
        let call = call(device, 1 + k as u16, DomainTag::MUL3)?;
        command.calls.push(call);
    }
    let [high, size] = [rows, size].map(f64::from);
    let limbs = ring.bytes(1) as f64;
    let (units, product) = (high * size * size, high * size);
    let limb_products = limbs * (limbs + 1.0) / 2.0;
    // Both matrices are read, written as sums, and read again; of the product there are sums, which are made zero, added to and read.
    let near = 2.0 * limbs * 3.0 * (high * size + size * size) + limbs * 5.0 * product;
    let masks = AES.map(|of| of * 2.0 * limbs / 16.0 / size);
    Ok(Case {
        name,
        unit: "products",
        layout,
        rows,
        commands: vec![command],
        input: vec![left, part(left, 1), right, part(right, 1)],
        output: vec![to],
        units,
        alu: masks[0],
        words: masks[1] + 2.0 * limbs / tile,
        near: near / units,
        bytes: 2.0 * limb_products,
    })
}

/// Words of both limbs of a tile, four terms each, for as many elements.
const TILES: [f64; 2] = [4.0 * 32.0 * 16.0 / 48.0, 4.0 * 32.0 * 32.0 / 64.0];

fn matrices(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    of_matrices(device, effort, Ring::Z64, ("matrices, rep3, 64", TILES[0]))
}

fn matrices_32(device: &mut Cuda, effort: Effort) -> Result<Case, Error> {
    of_matrices(device, effort, Ring::Z32, ("matrices, rep3, 32", TILES[1]))
}
