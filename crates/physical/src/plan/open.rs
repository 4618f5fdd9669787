//! Relations that are opened.

use veil_job::Audience;
use veil_math::Ring;
use veil_operators::Key;
use veil_relation::{Expr, Kind, Shape};
use veil_session::PartyId;

use super::order::{distinct_columns, in_other_rows};
use super::rel::{Places, Rel};
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::exprs::{ExprError, Want};
use crate::ports::{ResultPort, ResultPorts};
use crate::{Node, Opening};

impl Planner<'_> {
    /// Opens the fields of valid rows to a recipient. Rows whose places would say something are shuffled first.
    pub(super) fn open(
        &mut self,
        mut rel: Rel,
        input: Node,
        shape: &Shape,
        (step, to): (&str, &str),
    ) -> Result<Node, PhysicalError> {
        let mut named = shape.fields.iter().zip(&rel.fields);
        if let Some((field, expr)) =
            named.find(|(field, _)| matches!(field.ty.kind, Kind::Ratio { .. }))
        {
            let (name, at) = (field.name.clone(), expr.written());
            return Err(ExprError::Opened { name, at }.into());
        }
        let audience = self.audience(to)?;
        let begin = self.b.passes();
        let (places, min_rows) = (rel.places, rel.min_rows);
        if rel.rows > 1 && Self::says_something(&rel) {
            rel = self.in_no_order(rel, shape)?;
        }
        let incomplete = self.incomplete(&mut rel);
        let condition = rel.condition();
        let checked = !rel.valid.is_empty();
        let exprs = rel.fields.clone();
        let wants = exprs.iter().chain([&condition]).chain(&incomplete);
        let wants: Vec<_> = wants.map(|expr| (expr.clone(), Want::Bits)).collect();
        let mut ports = Vec::new();
        let mut words = Vec::new();
        let (circuit, takes) = self.circuit(&mut rel, Ring::Bits, &wants, |of| {
            let mut outs = Vec::new();
            let valid = of.truth(&condition)?;
            if checked {
                ports.push(ResultPort::Valid);
                words.push(format!("{step}: whether a row is one of the result"));
                outs.push(Out::Bits(vec![valid]));
            }
            for (at, (expr, field)) in exprs.iter().zip(&shape.fields).enumerate() {
                let (bits, null) = of.bits_as(expr, &field.ty.kind)?;
                let mut shown = |bits: Vec<_>, port| {
                    let bits = bits.into_iter().map(|bit| of.b.and(bit, valid)).collect();
                    outs.push(Out::Bits(bits));
                    ports.push(port);
                };
                if !bits.is_empty() {
                    shown(bits, ResultPort::Bits(at));
                    words.push(format!("{step}: {}", field.name));
                }
                if let Some(null) = null.filter(|_| field.ty.nullable) {
                    shown(vec![null], ResultPort::Null(at));
                    words.push(format!("{step}: whether {} is null", field.name));
                }
            }
            if outs.is_empty() {
                // Rows of one public value: that there are rows is all that they say.
                ports.push(ResultPort::Valid);
                words.push(format!("{step}: whether a row is one of the result"));
                outs.push(Out::Bits(vec![valid]));
            }
            if let Some(incomplete) = &incomplete {
                ports.push(ResultPort::Incomplete);
                words.push(format!("{step}: whether a bound has left out rows"));
                outs.push(Out::Bits(vec![of.truth(incomplete)?]));
            }
            Ok(outs)
        })?;
        let pass = self.b.passes();
        self.b
            .open_computed(circuit, rel.rows, takes, (audience, words));
        self.results.push(ResultPorts {
            step: step.to_owned(),
            to: to.to_owned(),
            pass,
            first: 0,
            rows: rel.rows,
            ports,
            fields: shape.fields.clone(),
            order: (places != Places::Ordered).then(Vec::new),
        });
        self.opens.push(Opening::Rows {
            step: step.to_owned(),
            rows: rel.rows,
            columns: shape
                .fields
                .iter()
                .map(|field| field.name.clone())
                .collect(),
            min_rows,
            to: to.to_owned(),
        });
        let flags = self.flags.raised_so_far().iter();
        let of: Vec<(String, u32)> = flags.map(|flag| (flag.of.clone(), flag.rows)).collect();
        if !of.is_empty() {
            self.opens.push(Opening::Incomplete {
                step: step.to_owned(),
                of,
                to: to.to_owned(),
            });
        }
        let own = begin..self.b.passes();
        Ok(Node {
            text: format!("open {step} to {to}"),
            rows: rel.rows,
            passes: std::iter::once(own).collect(),
            inputs: vec![input],
        })
    }

    /// The fields of the rows, in places that say nothing: of rows that have been shuffled. Between two parties, where no row moves in secret, of rows that have been
    /// sorted by all that is opened of them; rows that are not opened are zero, each like the others.
    fn in_no_order(&mut self, mut rel: Rel, shape: &Shape) -> Result<Rel, PhysicalError> {
        if !self.b.is_garbled() {
            let fields = self.fields(&mut rel, shape)?;
            let columns = distinct_columns(&fields);
            let shuffled = self.b.shuffle(&columns);
            return Ok(in_other_rows(&fields, &columns, &shuffled));
        }
        let exprs = rel.fields.iter().zip(&shape.fields);
        let exprs: Vec<(Expr, Kind)> = exprs
            .map(|(expr, field)| (expr.clone(), field.ty.kind.clone()))
            .collect();
        let fields = self.materialised(&mut rel, &exprs, true)?;
        let columns = distinct_columns(&fields);
        if columns.is_empty() {
            return Ok(fields);
        }
        let order = self.b.sort(&Key::of(&columns));
        let sorted = self.b.apply(&order, &columns);
        Ok(in_other_rows(&fields, &columns, &sorted))
    }

    /// Whether the places of rows would say something that the query does not open.
    fn says_something(rel: &Rel) -> bool {
        match rel.places {
            Places::Ordered => false,
            Places::Secret => true,
            // The keys of public groups are the first columns of the base: places say no more than they do.
            Places::Public => {
                let keys = rel.base.iter().take_while(|base| base.integers.is_empty());
                let shown = |key: usize| rel.fields.contains(&Expr::column(key as u32));
                !(0..keys.count()).all(shown)
            }
        }
    }

    fn audience(&self, to: &str) -> Result<Audience, PhysicalError> {
        let of = self.b.participants();
        if let Some(recipient) = of.recipients.iter().position(|name| name == to) {
            return Ok(Audience::Recipient(recipient as u16));
        }
        let party = of.parties.iter().position(|name| name == to);
        match party.and_then(|party| PartyId::FOUR.get(party)) {
            Some(party) => Ok(Audience::Party(*party)),
            None => Err(PhysicalError::Participant {
                name: to.to_owned(),
                what: "recipient",
            }),
        }
    }
}
