//! The reads of a circuit job, as all participants must know them: whose values, from which column or file, in which form, for which port.

use veil_circuit::Per;

use super::{Combine, Gates, Input, InputFormat, Pad};
use veil_job::{InputSpec, Order};

impl Gates {
    /// Why its rows are rows of the same people: if several owners bring files with a value in every row, they have agreed on it.
    pub fn order(&self) -> Order {
        let brings = |input: &&Input| input.per != Per::Job && input.reads_file();
        let mut holders = self.inputs.iter().filter(brings).map(|input| input.holder);
        let first = holders.next();
        if holders.any(|holder| Some(holder) != first) {
            Order::Agreed
        } else {
            Order::Unsaid
        }
    }
}

impl Input {
    /// The CSV column that its values are read from.
    pub fn column(&self) -> Option<&str> {
        match &self.format {
            InputFormat::Csv(column) => Some(column),
            InputFormat::Hex | InputFormat::Binary(_) | InputFormat::Counter(_) => None,
        }
    }

    /// Whether its values come from a file of its owner.
    pub const fn reads_file(&self) -> bool {
        !matches!(self.format, InputFormat::Counter(_))
    }

    /// How its values are read, and what becomes of them: `column "pay" of a CSV file, 32 bits in every row`. Names are quoted with
    /// escapes, so that no two inputs read alike.
    pub fn read(&self) -> String {
        let format = match &self.format {
            InputFormat::Hex => "a hex file".to_owned(),
            InputFormat::Binary(Pad::None) => "a binary file".to_owned(),
            InputFormat::Binary(Pad::Zero) => "a binary file, filled with zeros".to_owned(),
            InputFormat::Binary(Pad::Pkcs7) => "a binary file, filled as PKCS #7 does".to_owned(),
            InputFormat::Csv(column) => format!("column {column:?} of a CSV file"),
            InputFormat::Counter(start) => format!("a counter from {start} on"),
        };
        let each = match self.per {
            Per::Row => "in every row",
            Per::Job => "for the job",
            Per::Cycle => "over the cycles of every row",
        };
        let combine = match self.combine {
            None => "",
            Some(Combine::Xor) => ", combined by xor",
            Some(Combine::Sum) => ", combined by sum",
        };
        format!("{format}, {} bits {each}{combine}", self.width)
    }

    /// What all participants agree to of it.
    pub(crate) fn spec(&self) -> InputSpec {
        InputSpec {
            holder: self.holder,
            block: None,
            column: self.column().map(str::to_owned),
            port: Some(self.port.clone()),
            format: self.read(),
        }
    }
}
