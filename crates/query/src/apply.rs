//! Networks of a job, applied to the rows of a query.

use veil_relation::{Apply, ColumnId, Expr, Field, Named, Network, Plan, Table, Trained};

/// A network that is applied to the rows of a query, whose columns by the names of its features are these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The name of the network in the job.
    pub model: String,
    /// Decimal places of what it gives.
    pub places: u32,
    /// Whether the relation has the scores of classes, too.
    pub scores: bool,
    /// The table of the weights that an owner brings, if the job names one.
    pub weights: Option<String>,
}

/// Why no network is applied to the rows of a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// A name of no model of the job.
    #[error("the job has no model `{0}`: it is declared as [model.{0}]")]
    NoModel(String),
    /// A name of a model of trees.
    #[error("`{0}` is a model of trees, which SQL applies: write predict('{0}', …) in the query")]
    Trees(String),
    /// A query of a model that is fitted, too.
    #[error("a query has `fit` or `apply`, and not both; apply the network in a query of its own")]
    Fitted,
    /// A table of weights that the job does not have.
    #[error("the job has no table `{table}`, which has the weights of network `{network}`")]
    NoTable {
        /// The network.
        network: String,
        /// The table.
        table: String,
    },
    /// A table of weights with more than one column.
    #[error(
        "table `{table}` has the weights of network `{network}`: it has one column, and not {found}"
    )]
    Columns {
        /// The network.
        network: String,
        /// The table.
        table: String,
        /// How many columns it has.
        found: usize,
    },
    /// A feature that is no column.
    #[error(
        "`{feature}` is a feature of network `{network}`, and no column of the query; select it by this name"
    )]
    NoFeature {
        /// The network.
        network: String,
        /// The feature.
        feature: String,
    },
    /// A feature that is several columns.
    #[error(
        "`{feature}` is a feature of network `{network}`, and the name of two columns of the query"
    )]
    Ambiguous {
        /// The network.
        network: String,
        /// The feature.
        feature: String,
    },
}

/// The network of this name.
fn network<'a>(models: &'a [Trained], name: &str) -> Result<&'a Network, ApplyError> {
    match models.iter().find(|model| model.name() == name) {
        Some(Trained::Network(network)) => Ok(network),
        Some(Trained::Trees(_)) => Err(ApplyError::Trees(name.to_owned())),
        None => Err(ApplyError::NoModel(name.to_owned())),
    }
}

/// The column of weights of a network that an owner brings.
fn weights(network: &Network, tables: &[Table], name: &str) -> Result<Plan, ApplyError> {
    let (network, table) = (network.name().to_owned(), name.to_owned());
    let Some(found) = tables.iter().find(|known| known.name == name) else {
        return Err(ApplyError::NoTable { network, table });
    };
    match found.columns.len() {
        1 => Ok(Plan::Scan {
            table,
            columns: vec![ColumnId(0)],
        }),
        found => Err(ApplyError::Columns {
            network,
            table,
            found,
        }),
    }
}

/// A network over a relation with these columns: those that are none of its features, in their order, then what it gives.
pub(crate) fn applied(
    input: Plan,
    fields: &[Field],
    (models, tables): (&[Trained], &[Table]),
    of: &Application,
) -> Result<Plan, ApplyError> {
    let network = network(models, &of.model)?;
    let weights = match &of.weights {
        Some(table) => Some(Box::new(weights(network, tables, table)?)),
        None => None,
    };
    let mut features = Vec::new();
    for feature in &network.parts().features {
        let name = || (network.name().to_owned(), feature.clone());
        let mut found = (0..)
            .zip(fields)
            .filter(|(_, field)| field.name == *feature);
        match (found.next(), found.next()) {
            (Some((at, _)), None) => features.push(at),
            (Some(_), Some(_)) => {
                let (network, feature) = name();
                return Err(ApplyError::Ambiguous { network, feature });
            }
            (None, _) => {
                let (network, feature) = name();
                return Err(ApplyError::NoFeature { network, feature });
            }
        }
    }
    let apply = Apply {
        network: network.clone(),
        features: features.iter().copied().map(Expr::column).collect(),
        places: of.places,
        scores: of.scores,
    };
    let taken: std::collections::BTreeSet<u32> = features.into_iter().collect();
    let given = apply.names();
    let names = fields.iter().map(|field| &field.name).chain(&given);
    let kept = (0..)
        .zip(names)
        .filter(|(at, _)| !taken.contains(at))
        .map(|(at, name)| Named {
            name: name.clone(),
            expr: Expr::column(at),
        });
    let columns = kept.collect();
    let applied = Plan::Apply {
        input: Box::new(input),
        model: Box::new(apply),
        weights,
    };
    Ok(Plan::Project {
        input: Box::new(applied),
        columns,
    })
}
