//! Garbles the rows of a workspace: labels that go to the core, tables and labels that come.

use veil_device::{Fault, Gates, Span};
use zeroize::Zeroizing;

use crate::assembled::Loaded;
use crate::driver::{Garbler, Run, Streams};
use crate::garble::body::Of;

impl Loaded {
    /// Garbles rows `from` to `until`.
    pub(crate) fn run(
        &self,
        garbler: &mut Garbler,
        gates: &mut Gates<'_>,
        (from, until): (u32, u32),
        tables: Span,
    ) -> Result<(), Fault> {
        let rows = from as usize..until as usize;
        let labels = self.labels(gates, rows.clone());
        let mut made = Vec::new();
        let mut leaves = Zeroizing::new(Vec::new());
        let run = Run {
            repetitions: until - from,
            first: gates.first,
            instance: from as u16,
            rows: true,
            leave_from: 0,
        };
        let mut streams = Streams {
            labels: labels.as_flattened(),
            tables: &mut made,
            leaves: &mut leaves,
        };
        let secrets = (*gates.offset, *gates.start);
        garbler
            .run(&self.image, &run, secrets, &mut streams)
            .map_err(|error| garbler.fault(&error))?;
        // The tables of a row come one after the other; a message has those of a product side by side.
        let halves = made.as_chunks::<16>().0;
        let of_row = 2 * self.image.products as usize;
        for half in 0..of_row {
            let column = gates.labels_mut(tables.region, tables.first + half as u32);
            for (to, row) in column[rows.clone()]
                .iter_mut()
                .zip(halves.chunks_exact(of_row))
            {
                *to = row[half];
            }
        }
        self.write(gates, rows, leaves.as_chunks().0);
        Ok(())
    }

    /// The labels that the core takes: those that all rows share, then those of each row.
    fn labels(&self, gates: &Gates<'_>, rows: std::ops::Range<usize>) -> Zeroizing<Vec<[u8; 16]>> {
        let (image, layer) = (&self.image, &self.layer);
        let shared = image.run_inputs.len();
        let each = image.each_inputs.len();
        let mut labels = Zeroizing::new(vec![[0; 16]; shared + each * rows.len()]);
        for (to, input) in labels.iter_mut().zip(&image.run_inputs) {
            *to = gates.labels(self.program.job_wide, layer.job_wide[*input as usize])[0];
        }
        for (k, input) in image.each_inputs.iter().enumerate() {
            let column = gates.labels(self.program.slots, layer.reads[*input as usize]);
            let places = labels[shared..].iter_mut().skip(k).step_by(each);
            for (to, label) in places.zip(&column[rows.clone()]) {
                *to = *label;
            }
        }
        labels
    }

    /// Writes the slots that the program writes.
    fn write(&self, gates: &mut Gates<'_>, rows: std::ops::Range<usize>, leaves: &[[u8; 16]]) {
        let (image, layer) = (&self.image, &self.layer);
        // Read before anything is written: a slot may get what another one had.
        let mut columns: Vec<(u32, Zeroizing<Vec<[u8; 16]>>)> =
            Vec::with_capacity(layer.writes.len());
        let offset = gates.offset.to_le_bytes();
        // Places in the order in which labels leave, by number in the body.
        let mut places = vec![0; image.leaves.len()];
        for (place, leave) in image.leaves.iter().enumerate() {
            places[*leave as usize] = place;
        }
        for (slot, of, not) in &layer.writes {
            let mut column = Zeroizing::new(vec![[0; 16]; rows.len()]);
            match of {
                Ok(leave) => {
                    let at = places[*leave as usize];
                    for (to, row) in column
                        .iter_mut()
                        .zip(leaves.chunks_exact(image.leaves.len()))
                    {
                        *to = row[at];
                    }
                }
                Err(Of::Run(input)) => {
                    column.fill(
                        gates.labels(self.program.job_wide, layer.job_wide[*input as usize])[0],
                    );
                }
                Err(Of::Each { input, .. }) => {
                    let from = gates.labels(self.program.slots, layer.reads[*input as usize]);
                    column.copy_from_slice(&from[rows.clone()]);
                }
                Err(_) => {}
            }
            if *not {
                for label in column.iter_mut() {
                    label
                        .iter_mut()
                        .zip(offset)
                        .for_each(|(byte, one)| *byte ^= one);
                }
            }
            columns.push((*slot, column));
        }
        for (slot, column) in columns {
            gates.labels_mut(self.program.slots, slot)[rows.clone()].copy_from_slice(&column);
        }
    }
}
