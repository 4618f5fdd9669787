//! A relation while a query is bound: its plan, what is known of it, and the names of its columns.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use veil_relation::{ColumnId, Plan, Shape, Type};

/// A name of a column in a FROM clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The table's name or alias.
    pub(crate) table: Option<String>,
    /// The column's name.
    pub(crate) column: String,
    /// Whether the name without its table is that of another column: the right one of a pair in USING.
    pub(crate) hidden: bool,
}

/// A plan with its shape and a name for each of its columns.
#[derive(Clone, Debug)]
pub(crate) struct Rel {
    pub(crate) plan: Plan,
    pub(crate) shape: Shape,
    pub(crate) names: Vec<Name>,
}

/// What a name stands for.
pub(crate) enum Found {
    Column(ColumnId),
    None,
    Several,
}

impl Rel {
    /// The types of the columns.
    pub(crate) fn types(&self) -> Vec<Type> {
        self.shape.types()
    }

    /// Number of columns.
    pub(crate) fn width(&self) -> u32 {
        self.shape.fields.len() as u32
    }

    /// The column of a name.
    pub(crate) fn find(&self, table: Option<&str>, column: &str) -> Found {
        let fits = |name: &Name| {
            name.column == column
                && match table {
                    Some(table) => name.table.as_deref() == Some(table),
                    None => !name.hidden,
                }
        };
        let mut found = self.names.iter().enumerate().filter(|(_, name)| fits(name));
        match (found.next(), found.next()) {
            (None, _) => Found::None,
            (Some((at, _)), None) => Found::Column(ColumnId(at as u32)),
            (Some(_), Some(_)) => Found::Several,
        }
    }

    /// The same relation under the name of a table; the names of its columns are those of its shape.
    pub(crate) fn named(plan: Plan, shape: Shape, table: Option<&str>) -> Self {
        let name = |field: &veil_relation::Field| Name {
            table: table.map(str::to_owned),
            column: field.name.clone(),
            hidden: false,
        };
        let names = shape.fields.iter().map(name).collect();
        Self { plan, shape, names }
    }
}

/// The name that an identifier means: lower case, if it is not quoted.
pub(crate) fn folded(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The one identifier of a name; `None` if it has several.
pub(crate) fn single(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Some(ident),
        _ => None,
    }
}
