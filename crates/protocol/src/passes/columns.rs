//! Columns of relations, as a plan knows them.

use veil_device::ColumnType;
use veil_job::passes::ColumnForm;

/// The type of a device's column of a form.
pub(super) const fn column(form: ColumnForm) -> ColumnType {
    match form {
        ColumnForm::Ring(ring) => ColumnType::Rows(ring),
        ColumnForm::Words(bytes) => ColumnType::Words(bytes),
    }
}

/// Who knows a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ColumnKind {
    /// Shared: every party has its components.
    Shared,
    /// Opened to the parties: positions, which are a permutation.
    Opened,
    /// The factors of a permutation that a party knows: every party lacks one of them.
    Factors {
        /// The roles in which it was drawn.
        rotation: u8,
    },
}

/// A column, from the pass that leaves it to the last one that takes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColumnPlan {
    /// Its elements.
    pub form: ColumnForm,
    /// Rows, the same for all columns of a relation.
    pub rows: u32,
    /// Who knows it.
    pub kind: ColumnKind,
}
