//! Weights of networks that an owner brings: a table of one column, in the order of the network's layers.

use veil_learn::network::Block;

use crate::apply::Apply;
use crate::plan::{Plan, Program};
use crate::plan_error::PlanError;
use crate::schema::{ColumnId, Table};

/// A table whose rows are the weights of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsUse {
    /// The table, by its place in the program.
    pub table: usize,
    /// The column.
    pub column: ColumnId,
    /// The name of the network.
    pub network: String,
    /// Its blocks, from the first row to the last.
    pub blocks: Vec<Block>,
}

impl Apply {
    /// Looks whether the weights that an owner brings are those of the network: a column of a table of exactly as many rows, of the network's places and without nulls.
    pub(crate) fn check_weights(
        &self,
        weights: Option<&Plan>,
        program: &Program,
    ) -> Result<(), PlanError> {
        let wrong = |what: String| {
            Err(PlanError::Weights {
                network: self.network.name().to_owned(),
                what,
            })
        };
        let blocks = self.network.secret();
        let scanned = match (weights, blocks.is_empty()) {
            (None, true) => return Ok(()),
            (Some(_), true) => {
                return wrong("its file has all of them, and it takes none of a table".into());
            }
            (None, false) => {
                return wrong(
                    "its file has bounds in their place, and no table is named that has them"
                        .into(),
                );
            }
            (Some(Plan::Scan { table, columns }), false) => {
                let table = program.tables.iter().find(|known| known.name == *table);
                table.zip(match columns[..] {
                    [column] => Some(column),
                    _ => None,
                })
            }
            (Some(_), false) => None,
        };
        let column = scanned.and_then(|(of, at)| of.columns.get(at.index()));
        let Some(((table, _), column)) = scanned.zip(column) else {
            return wrong("they are one column of a table".into());
        };
        let rows: u32 = blocks.iter().map(|block| block.count).sum();
        if table.padded || table.capacity != rows {
            return wrong(format!(
                "they are {rows} numbers, and table `{}` has {}{} rows",
                table.name,
                if table.padded { "up to " } else { "exactly " },
                table.capacity
            ));
        }
        let places = self.network.parts().places;
        let number = column.ty.kind.number();
        let number = number.filter(|(of, _)| *of == places && !column.ty.nullable);
        let Some((_, range)) = number else {
            let kind = match places {
                0 => "integers".into(),
                places => format!("decimals of {places} places"),
            };
            return wrong(format!(
                "they are {kind} without nulls, and column `{}` of `{}` is {}{}",
                column.name,
                table.name,
                column.ty.kind,
                if column.ty.nullable {
                    ", which may be null"
                } else {
                    ""
                }
            ));
        };
        let small = |end: i128| end.unsigned_abs() >> 61 == 0;
        if !range.contains(0) || !small(range.min()) || !small(range.max()) {
            return wrong(format!(
                "the range of column `{}` of `{}` holds 0, and its numbers have at most 61 bits in units of their places",
                column.name, table.name
            ));
        }
        let narrow = blocks.iter().find(|block| {
            let of = block.range();
            !of.contains(range.min()) || !of.contains(range.max())
        });
        match narrow {
            // Parties looked at the range of the column when they kept it, and at no more.
            Some(block) if table.origin.owner().is_none() => wrong(format!(
                "parties have kept table `{}` with the range of its column alone, which is wider than the bound of {} of layer {}",
                table.name,
                if block.bias { "biases" } else { "weights" },
                block.layer
            )),
            _ => Ok(()),
        }
    }
}

fn within(plan: &Plan, tables: &[Table], all: &mut Vec<WeightsUse>) {
    if let Plan::Apply {
        model,
        weights: Some(weights),
        ..
    } = plan
        && let Plan::Scan { table, columns } = &**weights
        && let [column] = columns[..]
        && let Some(table) = tables.iter().position(|known| known.name == *table)
    {
        let found = WeightsUse {
            table,
            column,
            network: model.network.name().to_owned(),
            blocks: model.network.secret(),
        };
        if !all.contains(&found) {
            all.push(found);
        }
    }
    for input in plan.inputs() {
        within(input, tables, all);
    }
}

impl Program {
    /// The tables whose rows are weights of networks, each once for a network.
    #[must_use]
    pub fn weights(&self) -> Vec<WeightsUse> {
        let mut all = Vec::new();
        for step in &self.steps {
            within(&step.plan, &self.tables, &mut all);
        }
        all
    }
}
