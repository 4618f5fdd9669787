//! What owners supply, and parties have kept: columns of tables, in the forms that a query needs of them.

use std::collections::{BTreeMap, BTreeSet};

use veil_circuit::{Builder as Gates, Per};
use veil_job::Holder;
use veil_math::Ring;
use veil_operators::Shared;
use veil_relation::{ColumnId, First, Kind, Origin, Table, Type};
use veil_session::PartyId;

use super::rel::{Base, Field, Packing, Places, Rel};
use super::{PhysicalError, Planner};
use crate::ports::{TablePort, TablePorts, stored_ports};

/// A form of a column that a query asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Asked {
    /// Whether a cell is null.
    Null,
    /// Bits.
    Bits,
    /// An integer of a ring.
    Integer(Ring),
    /// That rows are sorted by the columns of their table's order up to this one.
    Order,
    /// The same, and that no two rows are equal in these columns.
    Differs,
}

/// What queries ask of columns of tables.
pub(super) type Forms = BTreeMap<usize, BTreeSet<(ColumnId, Asked)>>;

/// A table whose columns have been supplied.
#[derive(Clone, Debug)]
pub(super) struct Supplied {
    pub(super) base: Vec<Base>,
    pub(super) valid: Option<Field>,
}

impl Planner<'_> {
    /// A table's columns.
    pub(super) fn scan(&mut self, name: &str, columns: &[ColumnId]) -> Result<Rel, PhysicalError> {
        let tables = &self.program.tables;
        let at = tables.iter().position(|table| table.name == name);
        let at = at.ok_or_else(|| PhysicalError::Circuit(format!("there is no table `{name}`")))?;
        let supplied = self.table(at)?;
        let mut rel = Rel {
            rows: tables[at].capacity,
            base: supplied.base.clone(),
            fields: columns
                .iter()
                .map(|column| veil_relation::Expr::column(column.0))
                .collect(),
            valid: vec![],
            places: Places::Secret,
            order: None,
            min_rows: 0,
        };
        if let Some(valid) = supplied.valid {
            let bit = rel.push(Base::of_bits(Type::of(Kind::Bool), Some(valid), None));
            rel.valid.push(bit);
        }
        Ok(rel)
    }

    /// Supplies a table, in all forms that are known to be asked for.
    pub(super) fn table(&mut self, at: usize) -> Result<Supplied, PhysicalError> {
        if let Some(supplied) = self.supplied.get(&at) {
            return Ok(supplied.clone());
        }
        let table = &self.program.tables[at];
        if table.capacity == 0 {
            return Err(PhysicalError::Empty {
                table: table.name.clone(),
            });
        }
        let columns = table.columns.iter().enumerate();
        let base = columns.map(|(k, column)| Base {
            ty: column.ty.clone(),
            bits: None,
            below: None,
            integers: vec![],
            null: None,
            of_table: Some((at, ColumnId(k as u32))),
        });
        let supplied = Supplied {
            base: base.collect(),
            valid: None,
        };
        self.supplied.insert(at, supplied);
        let asked: Vec<(ColumnId, Asked)> =
            self.forms.get(&at).into_iter().flatten().copied().collect();
        let integers = |ring: Ring| {
            let of_ring = asked
                .iter()
                .filter(move |(_, asked)| *asked == Asked::Integer(ring));
            of_ring
                .map(|(column, _)| TablePort::Integer(*column, ring))
                .collect::<Vec<_>>()
        };
        let bits = asked.iter().filter_map(|(column, asked)| match asked {
            Asked::Null => Some(TablePort::Null(*column)),
            Asked::Bits => Some(TablePort::Bits(*column)),
            Asked::Integer(_) | Asked::Order | Asked::Differs => None,
        });
        let valid = table.padded.then_some(TablePort::Valid);
        let begin = self.b.passes();
        self.supply_ports(at, Ring::Bits, valid.into_iter().chain(bits).collect())?;
        for ring in [Ring::Z32, Ring::Z64, Ring::Z128] {
            self.supply_ports(at, ring, integers(ring))?;
        }
        self.supplying.insert(at, begin..self.b.passes());
        Ok(self.supplied[&at].clone())
    }

    /// Supplies one more form of a column of a table, and notes that it is asked for.
    pub(super) fn supply(
        &mut self,
        rel: &mut Rel,
        column: ColumnId,
        asked: Asked,
    ) -> Result<(), PhysicalError> {
        let Some((at, of)) = rel.base[column.index()].of_table else {
            return Ok(());
        };
        self.forms.entry(at).or_default().insert((of, asked));
        let base = &self.supplied[&at].base[of.index()];
        let has = match asked {
            Asked::Null => base.null.is_some(),
            Asked::Bits => base.bits.is_some(),
            Asked::Integer(ring) => base.integer(ring).is_some(),
            Asked::Order | Asked::Differs => true,
        };
        if !has {
            let (ring, port) = match asked {
                Asked::Null => (Ring::Bits, TablePort::Null(of)),
                Asked::Bits | Asked::Order | Asked::Differs => (Ring::Bits, TablePort::Bits(of)),
                Asked::Integer(ring) => (ring, TablePort::Integer(of, ring)),
            };
            self.supply_ports(at, ring, vec![port])?;
        }
        rel.base[column.index()] = self.supplied[&at].base[of.index()].clone();
        Ok(())
    }

    /// A pass in which the owner of a table supplies these ports, or parties load them: all of bits, or all of integers of a ring.
    fn supply_ports(
        &mut self,
        at: usize,
        ring: Ring,
        ports: Vec<TablePort>,
    ) -> Result<(), PhysicalError> {
        let table = &self.program.tables[at];
        let mut b = Gates::new(ring);
        let (mut packing, mut places) = (Packing::default(), Vec::new());
        let (mut taken, mut words) = (Vec::new(), Vec::new());
        for port in ports {
            let width = match port {
                TablePort::Valid | TablePort::Null(_) | TablePort::Integer(..) => 1,
                TablePort::Bits(column) => {
                    table.columns[column.index()].ty.kind.bits().unwrap_or(0)
                }
            };
            if width == 0 {
                self.note(at, port, None, None);
                continue;
            }
            let name = format!("in{}", taken.len());
            let wires = b.input(name, width, Per::Row);
            match port {
                TablePort::Integer(..) => b.output(format!("out{}", taken.len()), &wires),
                _ => places.push((port, packing.add(&wires))),
            }
            words.push(Self::words(table, port));
            taken.push(port);
        }
        if taken.is_empty() {
            return Ok(());
        }
        for (k, word) in std::mem::take(&mut packing.words).into_iter().enumerate() {
            b.output(format!("word{k}"), &word);
        }
        let circuit = b.finish()?;
        let pass = self.b.passes();
        let left = match &table.origin {
            Origin::Owner(name) => {
                let holder = self.holder(name)?;
                self.b.supplied(holder, circuit, table.capacity, &words)
            }
            Origin::Stored(dataset) | Origin::First(First { dataset, .. }) => {
                let all = stored_ports(table);
                let place = |port: &TablePort| all.iter().position(|of| of == port);
                let places: Option<Vec<usize>> = taken.iter().map(place).collect();
                let places = places.ok_or_else(|| {
                    PhysicalError::Circuit(
                        "a dataset has bits of all columns, and nothing else".into(),
                    )
                })?;
                let ports: Vec<_> = words.into_iter().zip(places).collect();
                let of = (dataset.as_str(), table.rows_kept());
                self.b.loaded(of, circuit, table.capacity, &ports)
            }
        };
        for (port, number) in places {
            self.note(at, port, Some(packing.field(number, &left)), None);
        }
        let integers = taken
            .iter()
            .filter(|port| matches!(port, TablePort::Integer(..)));
        for (port, shared) in integers.zip(&left) {
            self.note(at, *port, None, Some(*shared));
        }
        self.tables.push(TablePorts {
            table: at,
            pass,
            first: 0,
            ports: taken,
        });
        Ok(())
    }

    /// Notes where a port's values are.
    fn note(&mut self, at: usize, port: TablePort, field: Option<Field>, integer: Option<Shared>) {
        let Some(supplied) = self.supplied.get_mut(&at) else {
            return;
        };
        match port {
            TablePort::Valid => supplied.valid = field,
            TablePort::Null(column) => supplied.base[column.index()].null = field,
            TablePort::Bits(column) => supplied.base[column.index()].bits = Some(field),
            TablePort::Integer(column, _) => {
                supplied.base[column.index()].integers.extend(integer);
            }
        }
    }

    /// What a port is and how it is read, in words that are under the hash.
    fn words(table: &Table, port: TablePort) -> (String, String) {
        let of = |column: ColumnId| {
            let column = &table.columns[column.index()];
            (
                format!("{}.{}", table.name, column.name),
                column.ty.kind.to_string(),
            )
        };
        match port {
            TablePort::Valid => (table.name.clone(), "whether a row is valid".into()),
            TablePort::Null(column) => (of(column).0, "whether a cell is null".into()),
            TablePort::Bits(column) => {
                let (name, kind) = of(column);
                (name, format!("{kind}, as bits"))
            }
            TablePort::Integer(column, ring) => {
                let (name, kind) = of(column);
                (name, format!("{kind}, as an integer of {}", ring.name()))
            }
        }
    }

    fn holder(&self, owner: &str) -> Result<Holder, PhysicalError> {
        let of = self.b.participants();
        let place = |names: &[String]| names.iter().position(|name| name == owner);
        if let Some(owner) = place(&of.owners) {
            return Ok(Holder::Owner(owner as u16));
        }
        match place(&of.parties).and_then(|party| PartyId::FOUR.get(party)) {
            Some(party) => Ok(Holder::Party(*party)),
            None => Err(PhysicalError::Participant {
                name: owner.to_owned(),
                what: "owner",
            }),
        }
    }
}
