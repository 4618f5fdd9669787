//! Programs over replicated shares on cores of `rtl/share`: sums, products with their masks, and MACs of messages.
//!
//! A command of the device that runs a program becomes as many commands of a core as the program has instructions, each over all rows of
//! the chunk. The host keeps the columns, as it keeps workspaces.

pub(crate) mod circuit;
mod columns;
mod command;
mod core;
mod four;
mod loaded;
mod models;
pub(crate) mod port;
pub mod rates;
pub(crate) mod rounds;
mod run;
mod second;
mod steps;
mod tasks;
#[cfg(test)]
mod tests;

use veil_device::{
    Command, Cpu, Fault, Form, KeyId, Layout, Op, Program, ProgramId, Shares, Span, Workspace,
};
use veil_session::Secret;

use crate::Absent;
use crate::device::failed;
use crate::sim::Stalls;
use command::Closes;
use core::{Core, Rep3Core};
pub(crate) use four::Setting;
use four::{Begin, Rep4Join, Rep4Local};
use loaded::Loaded;
use port::Port;
pub(crate) use tasks::Task;
use tasks::{First, Known, Second};

/// Cores, the programs that they run, and the keys under which they draw masks.
pub struct Cores {
    rep3: Rep3Core,
    local: Rep4Local,
    join: Rep4Join,
    /// The keys that `rep3` has, and those that `local` has.
    on_rep3: OnCore,
    on_local: OnCore,
    known: Known,
}

/// Which keys a core has.
#[derive(Clone, PartialEq, Eq, Debug)]
enum OnCore {
    /// None: nothing starts.
    Nothing,
    /// Zeros, for commands that draw nothing.
    Zeros,
    /// These.
    Keys(Vec<KeyId>),
}

/// How commands ended.
pub(crate) enum Ended {
    /// So many took effect.
    Done(usize),
    /// So many are for the host.
    Host(usize),
    /// Among so many is a comparison that fails. None of them took effect.
    Differs(usize),
}

impl Cores {
    /// Simulated cores, just switched on.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] if no cores were built in.
    pub fn simulated(stalls: Stalls) -> Result<Self, Absent> {
        Ok(Self::with(port::simulated(stalls)?))
    }

    /// Cores behind these ports, in the order of [`port::simulated`].
    pub(crate) fn with([rep3, local, join]: [Box<dyn Port>; 3]) -> Self {
        Cores {
            rep3: Rep3Core::with(rep3),
            local: Rep4Local::with(local),
            join: Rep4Join::with(join),
            on_rep3: OnCore::Nothing,
            on_local: OnCore::Nothing,
            known: Known::default(),
        }
    }

    /// Name of the kind of port.
    pub(crate) fn name(&self) -> &'static str {
        self.rep3.name()
    }

    /// Whether one of them has the keys of its masks. A core that does not answer has none.
    pub fn have_keys(&mut self) -> bool {
        self.rep3.ready() || self.local.ready()
    }

    /// Cycles that they have run so far.
    pub(crate) fn cycles(&self) -> u64 {
        self.rep3.cycles() + self.local.cycles() + self.join.cycles()
    }

    pub(crate) fn load_key(&mut self, id: KeyId, key: &Secret) {
        let has = |on: &OnCore| matches!(on, OnCore::Keys(there) if there.contains(&id));
        if has(&self.on_rep3) || has(&self.on_local) {
            self.scrub();
        }
        self.known.keys.insert(id, key.clone());
    }

    /// Keeps a program, if its values are shares. Or says why there is no room for it.
    pub(crate) fn load(
        &mut self,
        id: ProgramId,
        program: &Program,
        layout: &Layout,
    ) -> Result<(), String> {
        let words = |parts| match parts {
            2 => Some(self.rep3.words()),
            3 => Some(self.local.words()),
            _ => None,
        };
        if let Some(loaded) = Loaded::of(program, layout, words)? {
            self.known.programs.insert(id, loaded);
        }
        Ok(())
    }

    /// Whether a command multiplies shares in a form that no core has.
    pub(crate) fn refuse(&self, command: &Command) -> bool {
        let other = |form: &Form| !form.is_replicated();
        matches!(command.op, Op::Product(form) if other(form))
            && self.known.program(command).is_some()
    }

    /// What they do with the first commands of a batch, if they do something.
    pub(crate) fn task(&self, batch: &[Command]) -> Option<Task> {
        self.known.task(batch)
    }

    /// Does what a batch begins with, whose first command is number `first`.
    pub(crate) fn run(
        &mut self,
        host: &mut Cpu,
        workspace: Workspace,
        (first, batch): (usize, &[Command]),
        task: &Task,
    ) -> Result<Ended, Fault> {
        let count = match task {
            Task::Three(_) => 1,
            Task::First(of) => of.programs + of.macs.len(),
            Task::Second(of) => of.commands(),
        };
        let batch = &batch[..count];
        let mut shares = host.offload_shares(workspace, first, batch)?;
        let ended = match task {
            Task::Three(keys) => self.three(&mut shares, &batch[0], keys),
            Task::First(of) => self.first(&mut shares, batch, of),
            Task::Second(of) => self.second(&mut shares, batch, of),
        };
        if !matches!(ended, Ok(Ended::Done(_) | Ended::Host(_))) {
            self.scrub();
        }
        ended
    }

    fn three(
        &mut self,
        shares: &mut Shares<'_>,
        command: &Command,
        ids: &[KeyId],
    ) -> Result<Ended, Fault> {
        if let Some(keys) = keys_for(&self.known, &mut self.on_rep3, ids)? {
            let there = self.rep3.keys(&keys);
            there.map_err(|error| failed(self.rep3.name(), &error))?;
        }
        let loaded = self.known.program(command);
        let loaded = loaded.ok_or(Fault::Unknown("the program of a command"))?;
        loaded.run(&mut self.rep3, shares, command, [Closes::Nothing; 2])?;
        Ok(Ended::Done(1))
    }

    fn first(
        &mut self,
        shares: &mut Shares<'_>,
        batch: &[Command],
        of: &First,
    ) -> Result<Ended, Fault> {
        let name = self.local.name();
        // MACs of nothing are the host's.
        let coded = !of.macs.is_empty() && shares.frame().rows > 0;
        let (mut setting, ids) = match of.products {
            Some((setting, ids)) => (setting, ids.to_vec()),
            None => (Setting::default(), Vec::new()),
        };
        if !coded {
            setting.sends = Setting::ALL;
        }
        if let Some(keys) = keys_for(&self.known, &mut self.on_local, &ids)? {
            let there = self.local.keys(&keys);
            there.map_err(|error| failed(name, &error))?;
        }
        let set = self.local.set(setting, coded);
        set.map_err(|error| failed(name, &error))?;
        let (programs, macs) = batch.split_at(of.programs);
        // MACs are made in the order of messages.
        let mut order: Vec<(usize, &Command)> = of.macs.iter().copied().zip(macs).collect();
        order.sort_by_key(|(message, _)| *message);
        if coded {
            let macs = order.iter().map(|(_, command)| {
                let call = command.calls[0];
                Some((self.known.keys.get(&call.key)?, call))
            });
            let macs: Option<Vec<_>> = macs.collect();
            let macs = macs.ok_or(Fault::Unknown("the key of a draw"))?;
            let frame = shares.frame();
            let begun = self.local.begin(&Begin { frame, macs: &macs });
            begun.map_err(|error| failed(name, &error))?;
        }
        for (command, closes) in programs.iter().zip(&of.closes) {
            let loaded = self.known.program(command);
            let loaded = loaded.ok_or(Fault::Unknown("the program of a command"))?;
            let closes = if coded { *closes } else { Default::default() };
            loaded.run(&mut self.local, shares, command, closes)?;
        }
        if !coded {
            return Ok(Ended::Done(of.programs));
        }
        let made = self.local.macs(order.len());
        let made = made.map_err(|error| failed(name, &error))?;
        for ((_, command), mac) in order.iter().zip(&made) {
            let Span {
                region,
                component: part,
                first,
                ..
            } = command.dst[0];
            shares.column_mut(region, part, first).copy_from_slice(mac);
        }
        Ok(Ended::Done(batch.len()))
    }

    fn second(
        &mut self,
        shares: &mut Shares<'_>,
        batch: &[Command],
        of: &Second,
    ) -> Result<Ended, Fault> {
        if shares.frame().rows == 0 {
            return Ok(Ended::Host(batch.len()));
        }
        let right = second::run(&mut self.join, &self.known, shares, (of, batch))?;
        Ok(if right {
            Ended::Done(batch.len())
        } else {
            Ended::Differs(2 * of.macs)
        })
    }

    fn scrub(&mut self) {
        // A core that does not answer any more keeps what it has until it is switched off.
        let _ = self.rep3.scrub();
        let _ = self.local.scrub();
        let _ = self.join.scrub();
        self.on_rep3 = OnCore::Nothing;
        self.on_local = OnCore::Nothing;
    }

    pub(crate) fn wipe(&mut self) {
        self.scrub();
        self.known.keys.clear();
    }
}

/// The keys that a core needs and does not have. Without any named it may have whichever.
fn keys_for<const N: usize>(
    known: &Known,
    on: &mut OnCore,
    ids: &[KeyId],
) -> Result<Option<[Secret; N]>, Fault> {
    let has = match on {
        OnCore::Nothing => false,
        OnCore::Zeros => ids.is_empty(),
        OnCore::Keys(there) => ids.is_empty() || there == ids,
    };
    if has {
        return Ok(None);
    }
    if ids.is_empty() {
        *on = OnCore::Zeros;
        return Ok(Some([(); N].map(|()| Secret::new([0; 16]))));
    }
    let keys: Option<Vec<Secret>> = ids.iter().map(|id| known.keys.get(id).cloned()).collect();
    let keys = keys.and_then(|keys| keys.try_into().ok());
    let keys = keys.ok_or(Fault::Unknown("the key of a draw"))?;
    *on = OnCore::Keys(ids.to_vec());
    Ok(Some(keys))
}
