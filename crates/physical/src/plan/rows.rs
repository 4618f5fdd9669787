//! What is computed in each row: circuits of expressions over columns, in the forms that they have.

use std::collections::{BTreeSet, HashMap};

use veil_circuit::generate::Aim;
use veil_circuit::{Builder as Gates, Circuit, Per, Wire};
use veil_job::passes::Take;
use veil_math::Ring;
use veil_operators::{Shared, Sharing};
use veil_relation::{ColumnId, Expr, Kind};

use super::known::Known;
use super::rel::{Base, Bits, Field, Packing, Rel};
use super::{PhysicalError, Planner};
use crate::exprs::{Data, Exprs, Form, Source, Want, needs};

/// Rows from which on few gates count for more than few rounds.
const MANY: u32 = 1 << 15;

/// What a circuit in so many rows is to have few of.
pub(crate) const fn aim_of(rows: u32) -> Aim {
    if rows >= MANY { Aim::Size } else { Aim::Depth }
}

impl Planner<'_> {
    /// The same in this plan: between two parties an AND costs the same wherever it is, so that few of them are what counts.
    pub(super) fn aim(&self, rows: u32) -> Aim {
        if self.b.is_garbled() {
            Aim::Size
        } else {
            aim_of(rows)
        }
    }
}

/// What a circuit puts out in every row.
pub(super) enum Out {
    /// Bits, 1 to 128.
    Bits(Vec<Wire>),
    /// An integer.
    Integer(Wire),
    /// The sum of an integer over all rows.
    Sum(Wire),
}

/// The input ports of a circuit of expressions.
pub(super) struct Ports {
    pub(super) b: Gates,
    pub(super) takes: Vec<Take>,
}

/// Forms of columns that a circuit reads: bits, or which integer.
pub(super) type Forms = Vec<(ColumnId, bool, Option<Shared>)>;

impl Ports {
    /// None yet.
    pub(super) fn new(ring: Ring) -> Self {
        Ports {
            b: Gates::new(ring),
            takes: vec![],
        }
    }

    /// A port of bits.
    pub(super) fn bits(&mut self, take: Take, count: u32) -> Vec<Wire> {
        let name = format!("in{}", self.takes.len());
        self.takes.push(take);
        match self.b.ring() {
            Ring::Bits => self.b.input(name, count, Per::Row),
            _ => self.b.input_bits(name, count),
        }
    }

    /// A port of an integer.
    pub(super) fn integer(&mut self, take: Take) -> Wire {
        let name = format!("in{}", self.takes.len());
        self.takes.push(take);
        self.b.input(name, 1, Per::Row)[0]
    }

    /// Ports of columns of a relation; in fewer rows than it has, from `first` on.
    pub(super) fn sources(
        &mut self,
        rel: &Rel,
        forms: &Forms,
        first: Option<u32>,
    ) -> HashMap<ColumnId, Source> {
        let bases = || forms.iter().map(|(column, ..)| &rel.base[column.index()]);
        let of_bits = forms.iter().zip(bases()).filter(|((_, bits, _), _)| *bits);
        let of_bits = of_bits.flat_map(|(_, base)| [base.bits.flatten(), base.below.flatten()]);
        let all = of_bits.chain(bases().map(|base| base.null)).flatten();
        let all: Vec<Field> = all.collect();
        let mut words = Words::of(&all, first);
        let mut sources: HashMap<ColumnId, Source> = HashMap::new();
        for (column, bits, integer) in forms {
            let base = &rel.base[column.index()];
            let source = sources.entry(*column).or_default();
            let mut field = |field: &Field| words.field(self, field);
            let mut some_bits = |bits: Option<&Bits>| {
                bits.map(|bits| bits.as_ref().map_or_else(Vec::new, &mut field))
            };
            if *bits && source.bits.is_none() {
                source.bits = some_bits(base.bits.as_ref());
                source.below = some_bits(base.below.as_ref());
            }
            if let (Some(null), None) = (&base.null, source.null) {
                source.null = Some(field(null)[0]);
            }
            if let (Some(integer), None) = (integer, source.integer) {
                let take = match first {
                    Some(first) => integer.rows_from(first.into()),
                    None => integer.take(),
                };
                source.integer = Some(self.integer(take));
            }
        }
        sources
    }

    /// A circuit has an input: a public bit, which is 0, if there is no other.
    pub(super) fn at_least_one(&mut self) {
        if self.takes.is_empty() {
            self.bits(Take::Within { first: 0, end: 0 }, 1);
        }
    }
}

/// The words that fields lie in. A word of which most bits are read is read once.
pub(super) struct Words {
    spans: Vec<(Field, Option<Vec<Wire>>)>,
    first: Option<u32>,
}

impl Words {
    /// Of these fields, in all rows or in those from `first` on.
    pub(super) fn of(fields: &[Field], first: Option<u32>) -> Self {
        let mut spans: Vec<(Field, Option<Vec<Wire>>)> = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            let same = |other: &&Field| other.column().column() == field.column().column();
            if fields[..at].iter().any(|before| same(&before)) {
                continue;
            }
            if let Some(span) = Field::span(fields.iter().filter(same)) {
                spans.push((span, None));
            }
        }
        Words { spans, first }
    }

    pub(super) fn field(&mut self, ports: &mut Ports, field: &Field) -> Vec<Wire> {
        let first = self.first;
        let read = |ports: &mut Ports, field: &Field| {
            let take = match first {
                Some(first) => field.take_shifted(first.into()),
                None => field.take(),
            };
            ports.bits(take, field.count())
        };
        let mut spans = self.spans.iter_mut();
        let within = spans.find_map(|(span, wires)| Some((span.place(field)?, span, wires)));
        match within {
            Some((at, span, wires)) => {
                let wires = wires.get_or_insert_with(|| read(ports, span));
                wires[at..][..field.count() as usize].to_vec()
            }
            None => read(ports, field),
        }
    }
}

impl Planner<'_> {
    /// A circuit over `ring` in every row of a relation, for what is wanted of expressions over its base: a column for each thing that `with` puts out.
    pub(super) fn rows(
        &mut self,
        rel: &mut Rel,
        ring: Ring,
        wants: &[(Expr, Want)],
        with: impl FnOnce(&mut Exprs) -> Result<Vec<Out>, PhysicalError>,
    ) -> Result<Vec<Shared>, PhysicalError> {
        let (circuit, takes) = self.circuit(rel, ring, wants, with)?;
        Ok(self.b.compute(circuit, rel.rows, takes))
    }

    /// The circuit, and what its input ports take.
    pub(super) fn circuit(
        &mut self,
        rel: &mut Rel,
        ring: Ring,
        wants: &[(Expr, Want)],
        with: impl FnOnce(&mut Exprs) -> Result<Vec<Out>, PhysicalError>,
    ) -> Result<(Circuit, Vec<Take>), PhysicalError> {
        let forms = self.forms(rel, ring, wants)?;
        let mut ports = Ports::new(ring);
        let sources = ports.sources(rel, &forms, None);
        ports.at_least_one();
        let aim = self.aim(rel.rows);
        let mut exprs = Exprs::new(ports.b, rel.types(), sources, aim);
        let outs = with(&mut exprs)?;
        let mut b = exprs.b;
        for (k, out) in outs.into_iter().enumerate() {
            match out {
                Out::Bits(bits) => b.output(format!("out{k}"), &bits),
                Out::Integer(wire) => b.output(format!("out{k}"), &[wire]),
                Out::Sum(wire) => b.output_sum(format!("out{k}"), &[wire]),
            }
        }
        let circuit = b.finish()?;
        Ok((circuit, ports.takes))
    }

    /// The forms of columns that a circuit over `ring` reads, which are made where they are not there.
    pub(super) fn forms(
        &mut self,
        rel: &mut Rel,
        ring: Ring,
        wants: &[(Expr, Want)],
    ) -> Result<Forms, PhysicalError> {
        let types = rel.types();
        let of_each = wants
            .iter()
            .flat_map(|(expr, want)| needs(expr, *want, &types));
        let needed: BTreeSet<(ColumnId, Form)> = of_each.collect();
        let mut forms = Forms::new();
        for (column, form) in needed {
            let (bits, integer) = self.form_of(rel, column, form, ring)?;
            forms.push((column, bits, integer));
        }
        Ok(forms)
    }

    /// Makes a column be there in a form that serves a circuit over `ring`: whether as bits, and as which integer.
    fn form_of(
        &mut self,
        rel: &mut Rel,
        column: ColumnId,
        form: Form,
        ring: Ring,
    ) -> Result<(bool, Option<Shared>), PhysicalError> {
        let base = &rel.base[column.index()];
        if base.null.is_none() && base.ty.nullable && base.of_table.is_some() {
            self.supply(rel, column, super::inputs::Asked::Null)?;
        }
        let base = &rel.base[column.index()];
        match form {
            Form::Null => return Ok((false, None)),
            Form::Integer => {
                if let Some(integer) = base.integer(ring) {
                    return Ok((false, Some(integer)));
                }
                let supplies =
                    |(at, _): (usize, ColumnId)| self.program.tables[at].origin.owner().is_some();
                if base.of_table.is_some_and(supplies) && self.twice {
                    self.supply(rel, column, super::inputs::Asked::Integer(ring))?;
                    return Ok((false, rel.base[column.index()].integer(ring)));
                }
            }
            Form::Bits => {}
        }
        if base.bits.is_some() {
            return Ok((true, None));
        }
        if base.of_table.is_some() {
            self.supply(rel, column, super::inputs::Asked::Bits)?;
            return Ok((true, None));
        }
        if let Some(integer) = base.integer(ring) {
            return Ok((false, Some(integer)));
        }
        self.make_bits(rel, column)?;
        Ok((true, None))
    }

    /// The bits of a column of the base, in every row.
    pub(super) fn as_bits(&mut self, rel: &mut Rel, column: usize) -> Result<(), PhysicalError> {
        self.make_bits(rel, ColumnId(column as u32))?;
        rel.base[column].integers.clear();
        Ok(())
    }

    /// Makes the bits of a column that is there as an integer of any ring.
    fn make_bits(&mut self, rel: &mut Rel, column: ColumnId) -> Result<(), PhysicalError> {
        let base = &rel.base[column.index()];
        let integer = base.integers.first().copied();
        let Some((integer, Sharing::Ring(ring))) = integer.map(|shared| (shared, shared.sharing()))
        else {
            return Err(PhysicalError::Circuit(format!(
                "column {} of a relation is there in no form",
                column.0
            )));
        };
        // A relation of this column alone: the circuit is that of its bits.
        let mut alone = Rel {
            base: vec![Base::of_integer(base.ty.clone(), integer)],
            fields: vec![],
            valid: vec![],
            ..rel.clone()
        };
        let expr = Expr::column(0);
        let width = base.ty.kind.bits().unwrap_or(0);
        let bits = if width == 0 {
            None
        } else {
            let wants = [(expr.clone(), Want::Integer)];
            let left = self.rows(&mut alone, ring, &wants, |exprs| {
                Ok(vec![Out::Bits(exprs.bits(&expr)?.0)])
            })?;
            Some(Field::new(left[0], 0, width))
        };
        rel.base[column.index()].bits = Some(bits);
        Ok(())
    }

    /// Computes expressions over the base in every row, and whether rows are valid: a relation whose base they are, as bits, in few columns. Integers that no
    /// circuit has to make bits of stay what they are. With `zeroed`, cells of rows that are not valid are zero.
    pub(super) fn materialised(
        &mut self,
        rel: &mut Rel,
        exprs: &[(Expr, Kind)],
        zeroed: bool,
    ) -> Result<Rel, PhysicalError> {
        let kept = |rel: &Rel, expr: &Expr| -> Option<Base> {
            let Expr::Column(column, _) = expr else {
                return None;
            };
            let base = &rel.base[column.index()];
            let alone = base.bits.is_none() && base.null.is_none() && base.of_table.is_none();
            (alone && !zeroed && !base.integers.is_empty()).then(|| base.clone())
        };
        let as_they_are: Vec<Option<Base>> = exprs.iter().map(|(e, _)| kept(rel, e)).collect();
        let computed: Vec<&(Expr, Kind)> = exprs
            .iter()
            .zip(&as_they_are)
            .filter(|(_, kept)| kept.is_none())
            .map(|(of, _)| of)
            .collect();
        let condition = rel.condition();
        let checked = !rel.valid.is_empty();
        let wants = computed.iter().map(|(expr, _)| (expr.clone(), Want::Bits));
        let wants: Vec<_> = wants.chain([(condition.clone(), Want::Bits)]).collect();
        let mut packing = Packing::default();
        let mut made: Vec<Made> = Vec::new();
        let mut valid = None;
        let any = checked || !computed.is_empty();
        let words = if any {
            self.rows(rel, Ring::Bits, &wants, |exprs| {
                let holds = if checked {
                    Some(exprs.truth(&condition)?)
                } else {
                    None
                };
                valid = holds.map(|wire| packing.add(&[wire]));
                for (expr, kind) in &computed {
                    made.push(Made::add(
                        exprs,
                        &mut packing,
                        (expr, kind),
                        holds.filter(|_| zeroed),
                    )?);
                }
                let words = std::mem::take(&mut packing.words);
                let outs = words.into_iter().map(Out::Bits);
                Ok(outs.collect())
            })?
        } else {
            vec![]
        };
        let mut of = made.into_iter().map(|made| made.base(&packing, &words));
        let mut result = Rel {
            rows: rel.rows,
            base: vec![],
            fields: vec![],
            valid: vec![],
            places: rel.places,
            order: None,
            min_rows: rel.min_rows,
        };
        for kept in as_they_are {
            let base = kept.or_else(|| of.next());
            let base = base.ok_or_else(|| PhysicalError::Circuit("a column is missing".into()))?;
            let field = result.push(base);
            result.fields.push(field);
        }
        if let Some(number) = valid {
            let field = packing.field(number, &words);
            let ty = veil_relation::Type::of(Kind::Bool);
            let bit = result.push(Base::of_bits(ty, Some(field), None));
            result.valid.push(bit);
        }
        result.order = Known::over(rel, &exprs.iter().map(|(expr, _)| expr), &result);
        Ok(result)
    }
}

/// The denominator of a cell that a circuit has put out.
#[derive(Clone, Copy)]
enum Below {
    /// It is no quotient.
    None,
    /// A field; none if it has one value.
    Of(Option<usize>),
}

/// A cell that a circuit has put out: its fields among those of a packing.
struct Made {
    ty: veil_relation::Type,
    bits: Option<usize>,
    /// Of a quotient the denominator.
    below: Below,
    null: Option<usize>,
}

impl Made {
    fn add(
        exprs: &mut Exprs,
        packing: &mut Packing,
        (expr, kind): (&Expr, &Kind),
        zeroed: Option<Wire>,
    ) -> Result<Self, PhysicalError> {
        let nullable = exprs.ty(expr)?.nullable;
        let mut masked = |exprs: &mut Exprs, bits: &[Wire]| -> Option<usize> {
            let wires = bits.iter().map(|bit| match zeroed {
                Some(valid) => exprs.b.and(*bit, valid),
                None => *bit,
            });
            let wires: Vec<Wire> = wires.collect();
            (!wires.is_empty()).then(|| packing.add(&wires))
        };
        if matches!(kind, Kind::Ratio { .. }) {
            let cell = exprs.cell(expr)?;
            let Data::Ratio(ratio) = &cell.value else {
                return Err(PhysicalError::Circuit("a quotient is no quotient".into()));
            };
            let (above, below) = (ratio.above.clone(), ratio.below.clone());
            let aim = Aim::Size;
            let (above_range, below_range) = (above.range, below.range);
            let above = above.normal(&mut exprs.b, aim);
            let below = below.normal(&mut exprs.b, aim);
            let Kind::Ratio { places, .. } = exprs.ty(expr)?.kind else {
                return Err(PhysicalError::Circuit("a quotient is no quotient".into()));
            };
            let kind = Kind::Ratio {
                places,
                above: above_range,
                below: below_range,
            };
            let bits = masked(exprs, &above);
            let below = masked(exprs, &below);
            let null = cell.null.and_then(|null| masked(exprs, &[null]));
            return Ok(Made {
                ty: veil_relation::Type::of(kind).or_null(null.is_some()),
                bits,
                below: Below::Of(below),
                null,
            });
        }
        let (bits, null) = exprs.bits_as(expr, kind)?;
        let bits = masked(exprs, &bits);
        let null = null.and_then(|null| masked(exprs, &[null]));
        Ok(Made {
            ty: veil_relation::Type::of(kind.clone()).or_null(nullable),
            bits,
            below: Below::None,
            null,
        })
    }

    fn base(&self, packing: &Packing, words: &[Shared]) -> Base {
        let field = |number: usize| packing.field(number, words);
        Base {
            ty: self.ty.clone(),
            bits: Some(self.bits.map(field)),
            below: match self.below {
                Below::None => None,
                Below::Of(below) => Some(below.map(field)),
            },
            integers: vec![],
            null: self.null.map(field),
            of_table: None,
        }
    }
}
