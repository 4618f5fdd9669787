//! Smallest and largest values: every owner finds the extremes of its own rows, and the parties compare them.
//!
//! An owner supplies one number for each group: 0 if none of its rows is in the group, else 1 more than the steps from the far end of the
//! column's declared range. So the largest of these numbers is the answer, for smallest values as well.

use super::{Analysis, Column, End, Stats};
use crate::table::{Cells, Chunk, Table};
use veil_job::{DataError, Holder};

/// Letters of a column's name that a port's name repeats.
const LONGEST: usize = 40;

/// Extremes of a column that owners find among their rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extremes {
    pub(super) end: End,
    pub(super) of: usize,
    /// Columns that make the groups.
    pub(super) by: Vec<usize>,
    /// Columns that must not be missing, `of` among them.
    pub(super) needed: Vec<usize>,
    /// The groups, in order.
    pub(super) groups: Vec<Vec<u8>>,
    /// Who finds them: every participant that holds the column in some block.
    pub(crate) holders: Vec<Holder>,
}

impl Extremes {
    pub(super) fn new(stats: &Stats, analysis: &Analysis, end: End, of: usize) -> Self {
        let mut holders = Vec::new();
        for block in &stats.blocks {
            let holder = block.holders[of];
            if !holders.contains(&holder) {
                holders.push(holder);
            }
        }
        Self {
            end,
            of,
            by: analysis.by.clone(),
            needed: stats.needed(analysis),
            groups: stats.groups(analysis),
            holders,
        }
    }

    /// The columns that an owner reads for it.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.needed.iter().chain(&self.by).copied()
    }

    /// Name of the input port number `port` of those that bring extremes.
    fn port(&self, columns: &[Column], port: usize) -> String {
        let of: String = columns[self.of].name.chars().take(LONGEST).collect();
        let group = if self.by.is_empty() {
            ""
        } else {
            " of each group"
        };
        format!(
            "{} {of}{group} in own rows, {}",
            self.end.adjective(),
            port + 1
        )
    }

    /// Takes the rows of a part of a table into account, from row `first` of the part on.
    fn search(&self, stats: &Stats, table: &Table, part: &Chunk, first: usize, found: &mut [u64]) {
        let cells = |column: usize| {
            let place = table.place(column);
            &part.columns[place.expect("the table was opened with it")]
        };
        let of = cells(self.of);
        let needed: Vec<&Cells> = self.needed.iter().map(|&column| cells(column)).collect();
        let by: Vec<(&Cells, usize)> = (self.by.iter())
            .map(|&column| (cells(column), stats.columns[column].categories().len()))
            .collect();
        let (far, _) = self.end.range(&stats.columns[self.of]);
        for row in first..of.len() {
            let complete = needed.iter().all(|cells| cells.is_present(row));
            let value = of.number(row).filter(|_| complete);
            if let (Some(value), Some(group)) = (value, group(&by, row)) {
                // At most 2^63: both are at most 2^62 away from 0.
                let steps = 1 + i128::from(value).abs_diff(far) as u64;
                found[group] = found[group].max(steps);
            }
        }
    }
}

/// What `holder` supplies, from the tables of all blocks where it has any: for each port of extremes a number for each group, nothing in
/// those of others.
pub(super) fn find(
    all: &[Extremes],
    stats: &Stats,
    holder: Holder,
    tables: &[Option<Table>],
) -> Result<Vec<Vec<u64>>, DataError> {
    let mut found: Vec<Vec<u64>> = all.iter().map(|one| vec![0; one.groups.len()]).collect();
    for (block, table) in stats.blocks.iter().zip(tables) {
        let mine = |one: &Extremes| block.holders[one.of] == holder;
        let Some(table) = table.as_ref().filter(|_| all.iter().any(mine)) else {
            continue;
        };
        let mut at = 0;
        while at < table.rows() {
            let (part, first) = table.at(at)?;
            let wanted = all.iter().zip(&mut found).filter(|(one, _)| mine(one));
            for (one, found) in wanted {
                one.search(stats, table, &part, first, found);
            }
            at += (part.rows - first) as u64;
        }
    }
    let ports = all.iter().zip(found).flat_map(|(one, found)| {
        let of = move |other: &Holder| {
            if *other == holder {
                found.clone()
            } else {
                Vec::new()
            }
        };
        one.holders.iter().map(of)
    });
    Ok(ports.collect())
}

/// The number of the group that a row is in, as [`Stats::groups`] counts them, from the columns that make it and how many values each has.
fn group(by: &[(&Cells, usize)], row: usize) -> Option<usize> {
    by.iter().try_fold(0, |group, (cells, values)| {
        Some(group * values + usize::from(cells.category(row)?))
    })
}

/// Input ports of all extremes, in order: name, elements, and who supplies them.
pub(super) fn ports<'a>(
    all: &'a [Extremes],
    columns: &'a [Column],
) -> impl Iterator<Item = (String, u32, Holder)> + 'a {
    let ports = all
        .iter()
        .flat_map(|one| one.holders.iter().map(move |holder| (one, *holder)));
    ports
        .enumerate()
        .map(|(port, (one, holder))| (one.port(columns, port), one.groups.len() as u32, holder))
}
