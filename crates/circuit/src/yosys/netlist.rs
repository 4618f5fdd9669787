//! A module of the file, with what drives each net.

use std::collections::{HashMap, HashSet};

use super::checks::{self, Parted};
use super::error::{YosysError, YosysErrorKind};
use super::json::{Bit, Cell, Direction, Entries, Module, Net, Value};

/// A module whose nets have one driver each.
pub(super) struct Netlist<'a> {
    pub(super) module: &'a Module,
    pub(super) cells: Vec<CellRef<'a>>,
    /// The cell and the bit of its output that drive a net.
    drivers: HashMap<u32, (u32, u32)>,
    /// How often a net is read, by inputs of cells and output ports.
    uses: HashMap<u32, u32>,
    /// Names of choices that may take any value where it is undefined.
    any: HashSet<&'a str>,
    /// Where there are assertions and prints.
    pub(super) watching: Vec<String>,
}

/// What wires for the address and the data of a write to memory are called. Yosys leaves both undefined where nothing is written.
const WRITE: &str = "$0$memwr$";

/// A cell and its name.
#[derive(Clone, Copy)]
pub(super) struct CellRef<'a> {
    pub(super) name: &'a str,
    pub(super) cell: &'a Cell,
}

impl<'a> Netlist<'a> {
    pub(super) fn new(module: &'a Module) -> Result<Self, YosysError> {
        let Parted { cells, watching } = checks::part(module);
        let mut watching: Vec<String> = watching.iter().filter_map(|at| at.place()).collect();
        // Lines of one file in their order.
        watching.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        watching.dedup();
        let mut netlist = Netlist {
            module,
            cells,
            watching,
            drivers: HashMap::new(),
            uses: HashMap::new(),
            any: HashSet::new(),
        };
        netlist.find_drivers()?;
        netlist.find_writes();
        Ok(netlist)
    }

    /// Finds the choices that lead to writes to memory and nowhere else.
    fn find_writes(&mut self) {
        let nets = self.module.netnames.0.iter();
        let writes = nets.filter(|(name, _)| name.starts_with(WRITE));
        let driver = |net: &Net| match net.bits.first() {
            Some(Bit::Net(net)) => self.driver(*net).map(|(cell, _)| self.cells[cell as usize]),
            _ => None,
        };
        let mut open: Vec<CellRef<'_>> = writes.filter_map(|(_, net)| driver(net)).collect();
        while let Some(at) = open.pop() {
            if matches!(at.cell.kind.as_str(), "$mux" | "$pmux") && self.any.insert(at.name) {
                let width = at.bits("A").len().max(1);
                let words = at.bits("B").chunks(width).chain([at.bits("A")]);
                let inner: Vec<_> = words.filter_map(|word| self.only_reader_of(word)).collect();
                open.extend(inner);
            }
        }
    }

    /// Whether a choice may take any value where it is undefined.
    pub(super) fn is_any(&self, at: CellRef<'_>) -> bool {
        self.any.contains(at.name)
    }

    fn find_drivers(&mut self) -> Result<(), YosysError> {
        let mut inputs = HashSet::new();
        for (name, port) in &self.module.ports.0 {
            match port.direction {
                Direction::Inout => {
                    let kind = YosysErrorKind::InOut(name.clone());
                    return Err(self.error_at_net(name, kind));
                }
                Direction::Output => count(&mut self.uses, &port.bits),
                Direction::Input => {
                    for bit in &port.bits {
                        match *bit {
                            Bit::Net(net) if inputs.insert(net) => {}
                            Bit::Net(net) => return Err(self.driven_twice(net)),
                            _ => return Err(self.malformed("an input port with constant bits")),
                        }
                    }
                }
            }
        }
        for (index, at) in (0..).zip(self.cells.clone()) {
            for (port, bits) in &at.cell.connections.0 {
                if port != at.output() {
                    count(&mut self.uses, bits);
                    continue;
                }
                for (place, bit) in (0..).zip(bits) {
                    match *bit {
                        Bit::Net(net) if inputs.contains(&net) => {
                            return Err(self.driven_twice(net));
                        }
                        Bit::Net(net) => {
                            if self.drivers.insert(net, (index, place)).is_some() {
                                return Err(self.driven_twice(net));
                            }
                        }
                        _ => return Err(self.malformed_cell(at, "an output that is a constant")),
                    }
                }
            }
        }
        Ok(())
    }

    /// The cell and the bit of its output that drive `net`.
    pub(super) fn driver(&self, net: u32) -> Option<(u32, u32)> {
        self.drivers.get(&net).copied()
    }

    /// How often cells and output ports read a bit.
    pub(super) fn reads(&self, bit: Bit) -> u32 {
        match bit {
            Bit::Net(net) => self.uses.get(&net).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// The cell whose whole output these bits are, if no other cell reads any of it.
    pub(super) fn only_reader_of(&self, bits: &[Bit]) -> Option<CellRef<'a>> {
        let Some(Bit::Net(first)) = bits.first() else {
            return None;
        };
        let (cell, _) = self.driver(*first)?;
        let cell = self.cells[cell as usize];
        let whole = cell.cell.connections.get(cell.output())?.as_slice() == bits;
        let once = |bit: &Bit| self.reads(*bit) == 1;
        (whole && bits.iter().all(once)).then_some(cell)
    }

    /// What to call a bit: the shortest name in the source, if it has one there.
    pub(super) fn signal(&self, bit: Bit) -> String {
        let mut best: Option<(bool, String)> = None;
        for (name, net) in &self.module.netnames.0 {
            if let Some(place) = net.bits.iter().position(|other| *other == bit) {
                let full = match net.bits.len() {
                    1 => name.clone(),
                    _ => format!("{name}[{place}]"),
                };
                let key = (name.starts_with('$'), full);
                if best.as_ref().is_none_or(|best| {
                    (key.0, key.1.len(), &key.1) < (best.0, best.1.len(), &best.1)
                }) {
                    best = Some(key);
                }
            }
        }
        best.map_or_else(|| "a value".into(), |(_, name)| name)
    }

    /// Where a bit is declared.
    pub(super) fn place_of(&self, bit: Bit) -> Option<String> {
        let named = |net: &&(String, Net)| net.1.bits.contains(&bit);
        let mut nets = self.module.netnames.0.iter().filter(named);
        nets.find_map(|(_, net)| place(&net.attributes))
    }

    pub(super) fn error_at(&self, cell: CellRef<'_>, kind: YosysErrorKind) -> YosysError {
        let output = cell.cell.connections.get(cell.output());
        let declared = || self.place_of(*output?.first()?);
        YosysError {
            place: cell.place().or_else(declared),
            kind,
        }
    }

    /// An error at the declaration of a named net.
    pub(super) fn error_at_net(&self, name: &str, kind: YosysErrorKind) -> YosysError {
        let net = self.module.netnames.get(name);
        YosysError {
            place: net.and_then(|net| place(&net.attributes)),
            kind,
        }
    }

    pub(super) fn error_at_bit(&self, bit: Bit, kind: YosysErrorKind) -> YosysError {
        YosysError {
            place: self.place_of(bit),
            kind,
        }
    }

    pub(super) fn malformed_cell(&self, at: CellRef<'_>, what: &'static str) -> YosysError {
        let kind = YosysErrorKind::Cell {
            cell: at.name.into(),
            kind: at.cell.kind.clone(),
            what,
        };
        self.error_at(at, kind)
    }

    fn driven_twice(&self, net: u32) -> YosysError {
        let bit = Bit::Net(net);
        let signal = self.signal(bit);
        self.error_at_bit(bit, YosysErrorKind::DrivenTwice { signal })
    }

    fn malformed(&self, what: &str) -> YosysError {
        YosysError {
            place: place(&self.module.attributes),
            kind: YosysErrorKind::Json(what.into()),
        }
    }
}

/// Counts the nets of a connection, each once: a number that goes on with its sign repeats a bit.
fn count(uses: &mut HashMap<u32, u32>, bits: &[Bit]) {
    for (place, bit) in bits.iter().enumerate() {
        if let Bit::Net(net) = bit
            && place
                .checked_sub(1)
                .is_none_or(|before| bits[before] != *bit)
        {
            let uses = uses.entry(*net).or_default();
            *uses = uses.saturating_add(1);
        }
    }
}

impl<'a> CellRef<'a> {
    /// The name of its output: Yosys' own cells have one.
    pub(super) fn output(self) -> &'static str {
        let kind = self.cell.kind.as_str();
        let stores = [
            "$dff", "$adff", "$aldff", "$sdff", "$dlatch", "$sr", "$ff", "$_DFF",
        ];
        let stores = stores.iter().any(|start| kind.starts_with(start))
            || [
                "$adlatch", "$_DLATCH", "$_SR_", "$_FF_", "$_ALDFF", "$_SDFF",
            ]
            .iter()
            .any(|start| kind.starts_with(start));
        match kind {
            "$mem" | "$mem_v2" => "RD_DATA",
            _ if stores => "Q",
            _ => "Y",
        }
    }

    /// The bits of an input; those of a missing one are none.
    pub(super) fn bits(self, port: &str) -> &'a [Bit] {
        let bits = self.cell.connections.get(port);
        bits.map_or(&[], Vec::as_slice)
    }

    pub(super) fn parameter(self, name: &str) -> Option<u64> {
        self.cell.parameters.get(name).and_then(Value::number)
    }

    /// Whether an operand is signed.
    pub(super) fn signed(self, name: &str) -> bool {
        self.parameter(name) == Some(1)
    }

    fn place(self) -> Option<String> {
        place(&self.cell.attributes)
    }
}

/// File and line of the first place that attributes name.
pub(super) fn place(attributes: &Entries<Value>) -> Option<String> {
    let text = attributes.get("src")?.text()?;
    // Some parts of an expression have line 0.
    text.split('|').find_map(|part| {
        let (file, span) = part.rsplit_once(':')?;
        let line = span.split(['.', '-']).next()?;
        let line: u64 = line.parse().ok()?;
        (line > 0).then(|| format!("{file}:{line}"))
    })
}
