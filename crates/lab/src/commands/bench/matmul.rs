//! `veil-lab bench matmul`: a product of two matrices of shares in Z_2^64, beside the plain products that it is made of.

use std::sync::Arc;
use std::time::Duration;

use miette::{IntoDiagnostic, Result, miette};
use veil_circuit::{Circuit, Per};
use veil_cli::devices::Registry;
use veil_device::{
    ColumnType, Command, Cpu, Cross, Device, Form, Frame, Layout, MatMul, Op, Region, Residency,
    Span, Tag, completion,
};
use veil_job::passes::ProgramSpec;
use veil_job::{Audience, Holder, ProtocolKind, Security};
use veil_math::Ring;
use veil_operators::{Builder, Participants, Shared};
use veil_program::Words;
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::PartyId;

use super::measure::{Course, Row, data, measure_program, thread_cpu};
use super::{BenchArgs, HEADER, print_json, short};

const RING: Ring = Ring::Z64;

/// The product of two matrices that a device knows: no shares, no masks.
static PLAIN: Form = Form {
    ring: RING,
    crosses: &[Cross {
        terms: &[(0, 0)],
        masks: &[],
        to: 0,
    }],
    keeps: &[],
};

/// Rows and columns of the left matrix, and columns of the right one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    rows: u32,
    left: u32,
    right: u32,
}

/// The shape that is measured where none is asked for.
const USUAL: Shape = Shape {
    rows: 1024,
    left: 1024,
    right: 1024,
};

/// Reads `NxKxM`.
pub(super) fn shape(text: &str) -> Result<Shape, String> {
    let numbers: Option<Vec<u32>> = text.split('x').map(|n| n.parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[rows, left, right])
            if rows > 0 && (1..=4096).contains(&left) && (1..=4096).contains(&right) =>
        {
            Ok(Shape { rows, left, right })
        }
        _ => Err(format!(
            "`{text}` is no shape: NxKxM, such as 1024x1024x1024, K and M up to 4096"
        )),
    }
}

impl Shape {
    fn products(self) -> f64 {
        f64::from(self.rows) * f64::from(self.left) * f64::from(self.right)
    }

    /// The other way round, Lᵀ R: of a transposed product N rows are added up.
    const fn right_rows(self, transposed: bool) -> u32 {
        if transposed { self.rows } else { self.left }
    }

    /// Party 0 supplies both matrices, and one column of the product is opened to party 1.
    fn program(self, transposed: bool, security: Security) -> ProgramSpec {
        let parties = 0..security.protocol.parties();
        let mut b = Builder::new(Participants {
            name: "bench matmul".into(),
            owners: vec![],
            parties: parties.map(|party| format!("party {party}")).collect(),
            recipients: vec![],
            security,
        });
        let left = supplied(&mut b, self.rows, self.left);
        let right = supplied(&mut b, self.right_rows(transposed), self.right);
        let product = if transposed {
            b.transposed_product(&left, &right)
        } else {
            b.product(&left, &right)
        };
        let to = Audience::Party(PartyId::THREE[1]);
        b.open(&product[..1], to, "a column of a benchmark");
        b.finish()
    }

    /// CPU-seconds of the plain product on this device: the least of three.
    fn plain(self, transposed: bool) -> Result<f64> {
        let matrix = |column: ColumnType, count: u32| Region {
            residency: Residency::Mapped,
            column,
            components: 1,
            count,
        };
        let (rows, one) = (ColumnType::Rows(RING), ColumnType::One(RING));
        let small = self.left * self.right;
        let mut layout = Layout {
            chunk_rows: self.rows,
            regions: vec![],
        };
        let left = layout.add(matrix(rows, self.left));
        let columns = layout.add(matrix(rows, self.right));
        let elements = layout.add(matrix(one, small));
        let each = |region: u16, count: u32| -> Vec<Span> {
            let span = |first| Span {
                region,
                component: 0,
                first,
                count: 1,
            };
            (0..count).map(span).collect()
        };
        let (columns, all) = (each(columns, self.right), vec![layout.all(elements, 0)]);
        let (right, dst) = if transposed {
            (columns, all)
        } else {
            (all, columns)
        };
        let mut src = each(left, self.left);
        src.extend(right);
        let of = MatMul {
            form: &PLAIN,
            left: self.left,
            transposed,
            zeros: 0,
        };
        let command = Command::new(Op::MatMul(of), src, dst);
        let mut device = Cpu::detect();
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 1,
            rows: self.rows,
        };
        let workspace = device.open(&layout, frame).into_diagnostic()?;
        let mut least = f64::INFINITY;
        for span in &command.src {
            let into = device.map(workspace, *span).into_diagnostic()?;
            for (k, byte) in into.iter_mut().enumerate() {
                *byte = (k * 37 + 11) as u8;
            }
        }
        for _ in 0..3 {
            let start = thread_cpu();
            let batch = std::slice::from_ref(&command);
            device.submit(workspace, batch, Tag(0)).into_diagnostic()?;
            completion(&mut device).into_diagnostic()?;
            least = least.min(thread_cpu().saturating_sub(start).as_secs_f64());
        }
        device.close(workspace);
        Ok(least)
    }
}

/// A matrix that party 0 supplies, in one pass.
fn supplied(b: &mut Builder, rows: u32, columns: u32) -> Vec<Shared> {
    let circuit = passing(columns);
    let ports = (0..columns).map(|k| (format!("x{k}"), "integer".into()));
    let ports: Vec<(String, String)> = ports.collect();
    b.supplied(Holder::Party(PartyId::THREE[0]), circuit, rows, &ports)
}

/// The circuit that puts out what it takes, column by column.
fn passing(columns: u32) -> Circuit {
    let mut b = veil_circuit::Builder::new(RING);
    for k in 0..columns {
        let x = b.input(format!("x{k}"), 1, Per::Row);
        b.output(format!("z{k}"), &x);
    }
    b.finish().expect("a circuit of ports alone")
}

/// What the kernel reaches by itself.
#[derive(serde::Serialize)]
struct Kernel {
    bench: &'static str,
    device: &'static str,
    shape: String,
    /// Products of elements per CPU-second, each added to a sum.
    rate_per_cpu_s: f64,
    /// The same as the instructions allow in registers.
    ports_per_s: Option<f64>,
    /// Part of that.
    ports_fraction: Option<f64>,
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let shape = args.shape.unwrap_or(USUAL);
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    let security = args.security(sharing, Words::default())?;
    // What each party multiplies: sums of components.
    let products = match sharing {
        ProtocolKind::Rep3 => 2.0,
        ProtocolKind::Rep4 => 5.0,
        ProtocolKind::Yao => {
            return Err(miette!(
                "matrices of shares are multiplied among three or four parties"
            ));
        }
    };
    let device = args.devices(registry)?;
    let spec = shape.program(args.transposed, security);
    let plain = shape.plain(args.transposed)?;
    let ports = Cpu::detect().product_bound(Duration::from_millis(200));
    let rate = shape.products() / plain;
    let kernel = Kernel {
        bench: "matmul-kernel",
        device: Cpu::detect().name(),
        shape: format!("{}x{}x{}", shape.rows, shape.left, shape.right),
        rate_per_cpu_s: rate,
        ports_per_s: ports,
        ports_fraction: ports.map(|ports| rate / ports),
    };
    if args.json {
        print_json(&kernel)?;
    } else {
        let of = kernel.ports_fraction;
        let of = of.map_or_else(String::new, |of| {
            format!(", {:.0}% of what registers allow", of * 100.0)
        });
        println!(
            "plain product of {}: {} products per CPU-s{of}",
            kernel.shape,
            short(rate)
        );
        println!("{HEADER}   (of masks: of {products} plain products by each party)");
    }
    let parties = f64::from(security.protocol.parties() as u32);
    let mut found: Vec<Row> = Vec::new();
    for &carrier in &args.link {
        for cores in args.cores.0..=args.cores.1 {
            let options = Options {
                lanes: cores,
                chunk_rows: args.chunk_rows,
            };
            let program = PassProgram::new(&spec, options).into_diagnostic()?;
            let course = Course {
                name: "matmul",
                batch: shape.rows.into(),
                ops: shape.products(),
                blocks_per_op: 0.0,
                gather_seconds: parties * products * plain,
                program: Arc::new(program),
                data: &|peer, _| data(peer),
            };
            let row = measure_program(&course, &args.setup(&device, carrier, cores))?;
            args.show(&row)?;
            found.push(row);
        }
    }
    args.draw(&found)
}
