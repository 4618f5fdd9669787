//! Which command wrote a column last, for those who compare two devices: replays and shadows.

use std::collections::BTreeMap;

use crate::{Command, Layout, Op, Span};

/// A command: its batch, counted from 1 within the workspace, its number in the batch, and its name.
pub(crate) type Wrote = (u64, usize, &'static str);

/// What the commands of one workspace have written.
#[derive(Default)]
pub(crate) struct Written {
    batches: u64,
    spans: Vec<(Span, Wrote)>,
    /// The commands of batches that have written what is there.
    steps: BTreeMap<u64, Vec<Step>>,
}

/// What a command reads and writes: what it writes it may read, too.
struct Step {
    reads: Vec<Span>,
    writes: Vec<Span>,
    name: &'static str,
}

impl Written {
    /// Notes what a batch writes: its commands, each with the region of the slots that its program runs on.
    pub(crate) fn batch<'a>(
        &mut self,
        layout: &Layout,
        commands: impl Iterator<Item = (&'a Command, Option<u16>)>,
    ) {
        self.batches += 1;
        let now = self.batches;
        let mut steps = Vec::new();
        for (index, (command, slots)) in commands.enumerate() {
            // Which of its slots a program writes does not matter: what is viewed of a plane is what came of it.
            let of_slots = slots.into_iter().flat_map(|slots| {
                let components = layout.regions[slots as usize].components;
                (0..components).map(move |component| layout.all(slots, component))
            });
            let written = command.dst.iter().copied().chain(of_slots);
            let writes: Vec<Span> = written.filter(|span| span.count > 0).collect();
            let name = name(&command.op);
            for span in &writes {
                // A later batch that writes to the same place hides an earlier one.
                self.spans
                    .retain(|(old, (batch, ..))| old != span || *batch == now);
                self.spans.push((*span, (now, index, name)));
            }
            steps.push(Step {
                reads: command.src.clone(),
                writes,
                name,
            });
        }
        self.steps.insert(now, steps);
        let spans = &self.spans;
        self.steps
            .retain(|batch, _| spans.iter().any(|(_, (of, ..))| of == batch));
    }

    /// The last batch that wrote a column of this span: the commands of it that had a part in that, in their order. The last of them wrote it, the others what
    /// it was made of.
    pub(crate) fn last(&self, place: Span) -> Vec<Wrote> {
        let mut latest = self.spans.iter().rev();
        let found = latest.find(|(span, _)| span.overlaps(place));
        let Some((_, (batch, last, _))) = found else {
            return Vec::new();
        };
        let steps = self.steps.get(batch).map_or(&[][..], Vec::as_slice);
        let mut of = vec![place];
        let mut all = Vec::new();
        for (index, step) in steps.iter().enumerate().take(last + 1).rev() {
            let meets = |a: &Span| of.iter().any(|b| a.overlaps(*b));
            if step.writes.iter().any(meets) {
                of.extend(&step.reads);
                of.extend(&step.writes);
                all.push((*batch, index, step.name));
            }
        }
        all.reverse();
        all
    }
}

/// The first item of a span, counted in its region, and the first byte of it, in which two devices differ.
pub(crate) fn differ(
    layout: &Layout,
    rows: u32,
    span: Span,
    (want, got): (&[u8], &[u8]),
) -> Option<(u32, u64)> {
    let at = want.iter().zip(got).position(|(a, b)| a != b);
    let at = at.or((got.len() != want.len()).then_some(got.len().min(want.len())))?;
    let column = layout.regions[span.region as usize].column;
    let size = column.bytes(rows).max(1);
    Some((span.first + (at as u64 / size) as u32, at as u64 % size))
}

/// A command in words.
pub(crate) const fn name(op: &Op) -> &'static str {
    match op {
        Op::Linear => "linear",
        Op::Product(_) => "product",
        Op::AddReceived { .. } => "add received",
        Op::Publish => "publish",
        Op::Random => "random",
        Op::Combine { .. } => "combine",
        Op::Hash { .. } => "hash",
        Op::Mac => "mac",
        Op::Split { .. } => "split",
        Op::Lift => "lift",
        Op::Shift { .. } => "shift",
        Op::Lifting(_) => "a step of lifts",
        Op::Truncation(_) => "a step of truncations",
        Op::Permutation => "permutation",
        Op::Permute { .. } => "permute",
        Op::Invert => "invert",
        Op::Rank(_) => "rank",
        Op::MatMul(_) => "product of matrices",
        Op::Scale => "scale",
        Op::Resize => "resize",
        Op::Dot => "dot",
        Op::CheckEqual => "check equal",
        Op::Proof(_) => "proof",
        Op::Garble { .. } => "garble",
        Op::Evaluate { .. } => "evaluate",
        Op::Encode { .. } => "encode",
        Op::Colour => "colour",
        Op::Ot(_) => "oblivious transfer",
        Op::Silent(_) => "silent transfers",
        Op::Psi(_) => "intersection",
        Op::Cut(_) => "cut-and-choose",
        Op::Ag(_) => "authenticated garbling",
        Op::Repeat(_) => "repeat",
    }
}
