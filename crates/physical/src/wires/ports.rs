//! The ports of the one circuit: what owners supply, what is opened, and what hides it.

use veil_circuit::generate::any;
use veil_circuit::{Builder, Per, Wire};
use veil_job::{Audience, Holder, InputSpec, JobSpec};

/// What a circuit takes and gives.
#[derive(Debug, Default)]
pub(super) struct Ports {
    /// Who supplies each input port.
    pub(super) holders: Vec<Holder>,
    /// How it is read, in words.
    pub(super) inputs: Vec<InputSpec>,
    /// The first input port of each pass.
    pub(super) of_inputs: Vec<usize>,
    /// What is opened, before it is hidden.
    pub(super) outputs: Vec<(Vec<Wire>, Audience, String)>,
    /// The first output port of each pass.
    pub(super) of_outputs: Vec<usize>,
    /// Bits that are 0 if what they claim is true, and what that is.
    broken: Vec<(Wire, String)>,
    /// To whom each output port is opened, once all are there.
    pub(super) audiences: Vec<Audience>,
    /// What is opened, in words.
    pub(super) opened: Vec<String>,
    /// Whether there are claims.
    pub(super) claims: bool,
}

impl Ports {
    /// Begins a pass.
    pub(super) fn begin(&mut self) {
        self.of_inputs.push(self.holders.len());
        self.of_outputs.push(self.outputs.len());
    }

    /// An input port of a pass, of all its rows: the bits of each.
    pub(super) fn input(
        &mut self,
        b: &mut Builder,
        job: &JobSpec,
        port: usize,
        (rows, bits): (u32, u32),
    ) -> Vec<Vec<Wire>> {
        let name = format!("in{}", self.holders.len());
        self.holders.push(job.blocks[0].holders[port]);
        let own = &job.circuit.inputs[port];
        let said = job.inputs.iter();
        let said = said.filter(|said| said.port.as_deref() == Some(own.name.as_str()));
        self.inputs.extend(said.map(|said| InputSpec {
            port: Some(name.clone()),
            format: format!("{}, of all rows", said.format),
            ..said.clone()
        }));
        // One value that all rows use is supplied once.
        if own.per == Per::Job {
            let word = b.input(name, bits, Per::Row);
            return vec![word; rows as usize];
        }
        let all = b.input(name, bits.saturating_mul(rows), Per::Row);
        all.chunks(bits as usize).map(<[Wire]>::to_vec).collect()
    }

    /// Opens something.
    pub(super) fn output(&mut self, wires: Vec<Wire>, (to, what): (Audience, String)) {
        self.outputs.push((wires, to, what));
    }

    /// Claims that a bit is 0.
    pub(super) fn claim(&mut self, broken: Wire, what: &str) {
        self.broken.push((broken, what.to_owned()));
    }

    /// Adds all output ports: results, which are 0 where a claim is false; of each claim whether it is the first that is false, for the parties; and whether any is, for each recipient of a
    /// result that is no party, with its port.
    pub(super) fn finish(&mut self, b: &mut Builder) -> Vec<(u16, usize)> {
        let mut outside: Vec<u16> = Vec::new();
        let outputs = std::mem::take(&mut self.outputs);
        let bits: Vec<Wire> = self.broken.iter().map(|(bit, _)| *bit).collect();
        let ended = any(b, &bits);
        let goes_on = b.not(ended);
        for (wires, to, what) in outputs {
            let shown: Vec<Wire> = wires.iter().map(|wire| b.and(*wire, goes_on)).collect();
            self.open(b, &shown, (to, what));
            if let Audience::Recipient(recipient) = to
                && !outside.contains(&recipient)
            {
                outside.push(recipient);
            }
        }
        let broken = std::mem::take(&mut self.broken);
        if broken.is_empty() {
            return vec![];
        }
        self.claims = true;
        let mut none = b.constant_bit(true);
        for (bit, what) in broken {
            let first = b.and(bit, none);
            self.open(b, &[first], (Audience::Parties, what));
            let holds = b.not(bit);
            none = b.and(none, holds);
        }
        let told = outside.into_iter().map(|recipient| {
            let what = "whether the run ends without a result".to_owned();
            let to = Audience::Recipient(recipient);
            (recipient, self.open(b, &[ended], (to, what)))
        });
        told.collect()
    }

    fn open(&mut self, b: &mut Builder, wires: &[Wire], (to, what): (Audience, String)) -> usize {
        let port = self.audiences.len();
        b.output(format!("out{port}"), wires);
        self.audiences.push(to);
        self.opened.push(what);
        port
    }
}
