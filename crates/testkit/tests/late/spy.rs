//! What a corrupt party does that looks at what it is sent after a message of its own was wrong.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use veil_device::{
    ColumnType, Command, Completion, Cpu, Device, Fault, Layout, Op, Outcome, Program, ProgramId,
    Region, Residency, Span, Tag, Workspace,
};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::{Protocol, Replicated, Task};
use veil_prss::DomainTag;
use veil_testkit::sample::peer;
use veil_testkit::{Kind, Message, World};

use super::Attack;

/// What is wrong in a message: in which layer, and which bit of its first element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrong {
    pub(super) layer: usize,
    pub(super) bit: u32,
}

/// One attack on a run of `build`. The corrupt party looks at its spans `own` when the layer of the wrong message is over; the sum of their lowest
/// bits and of the error in the message that it gets in the next layer, if it finds that out, is its guess.
pub(super) fn play(
    world: World,
    attack: &Attack,
    wrong: Wrong,
    own: Vec<Span>,
    build: fn(Replicated) -> Arc<dyn Protocol>,
) -> (Option<u8>, veil_testkit::Outcome) {
    let plan = Arc::clone(world.plan());
    let chunk = (0..)
        .map_while(|k| plan.chunk(k))
        .find(|c| c.frame.chunk == attack.chunk)
        .expect("the job has two chunks");
    let me = peer(attack.corrupt);
    let protocol = build(Replicated::new(Arc::clone(&plan), me));
    let flow = protocol.flow(Task::Layers, chunk.frame);
    let [first, second] = [0, 1].map(|after| &flow.rounds()[wrong.layer + after]);
    let before = second.local.last().expect("it computes something").clone();
    let finish: Vec<&Command> = flow.rounds().iter().flat_map(|r| &r.finish).collect();
    let mac = |c: &&&Command| {
        let call = c.calls.first();
        let of = (DomainTag::mac4(attack.next), wrong.layer as u64 + 1);
        c.op == Op::Mac && call.is_some_and(|call| (call.tag, call.first) == of)
    };
    let code = (*finish.iter().find(mac).expect("it checks a code")).clone();
    let compares = |c: &&&Command| c.op == Op::CheckEqual && c.src[0] == code.dst[0];
    let compare = (*finish.iter().find(compares).expect("it compares it")).clone();
    let (first, second) = (first.place, second.place);
    let found = Arc::new(Mutex::new(Found::default()));
    let kept = Arc::clone(&found);
    let (ring, chunk, wronged) = (plan.words, attack.chunk, peer(attack.wronged));
    let devices = move |who| -> Box<dyn Device> {
        if who != me {
            return Box::new(veil_device::Reference::default());
        }
        Box::new(Spy {
            inner: Cpu::detect(),
            ring,
            code: code.clone(),
            compare: compare.clone(),
            own: own.clone(),
            before: before.clone(),
            chunk,
            workspaces: HashMap::new(),
            ended: VecDeque::new(),
            found: Arc::clone(&kept),
        })
    };
    let cheat = move |m: &Message| {
        if m.from != me || m.at.frame.chunk != chunk {
            return Fate::Pass;
        }
        match m.kind {
            Some(Kind::Product) if (m.to, m.at.step.place) == (wronged, first) => {
                let mut bytes = m.bytes.clone();
                flip(&mut bytes, wrong.bit);
                Fate::Replace(bytes)
            }
            // All others need something from it here, or later: none gets to the late checks before it has looked.
            Some(Kind::Product | Kind::Mac) if m.at.step.place >= second => Fate::Drop,
            _ => Fate::Pass,
        }
    };
    let outcome = world
        .window(1)
        .devices(devices)
        .cheat(cheat)
        .run_built(build);
    let found = found.lock().unwrap();
    let guess = found.error.zip(found.own).map(|(error, own)| error ^ own);
    (guess, outcome)
}

/// Changes a bit of the first element.
fn flip(bytes: &mut [u8], bit: u32) {
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
}

/// What the corrupt party finds out: the sum of the lowest bits of what it looks at, and whether there is an error in what it was sent.
#[derive(Default)]
struct Found {
    own: Option<u8>,
    error: Option<u8>,
}

/// The corrupt party's device: it does all that it should, and looks at what it has.
struct Spy {
    inner: Cpu,
    ring: Ring,
    /// The code that it computes over what it gets, and how it compares it with what the voucher sent.
    code: Command,
    compare: Command,
    /// Integers that it looks at, just before it does this.
    own: Vec<Span>,
    before: Command,
    chunk: u32,
    /// Open workspaces: of which chunk, and the region through which it looks.
    workspaces: HashMap<Workspace, (u32, u16)>,
    ended: VecDeque<Completion>,
    found: Arc<Mutex<Found>>,
}

impl Spy {
    /// Another region, through which it looks at its own shares.
    fn wider(&self, layout: &Layout) -> (Layout, u16) {
        let mut layout = layout.clone();
        let window = layout.add(Region {
            residency: Residency::Mapped,
            column: ColumnType::Rows(self.ring),
            components: 1,
            count: 1,
        });
        (layout, window)
    }

    /// Runs commands of its own; whether no comparison failed.
    fn all_equal(&mut self, workspace: Workspace, batch: &[Command]) -> Result<bool, Fault> {
        const MINE: Tag = Tag(u64::MAX);
        self.inner.submit(workspace, batch, MINE)?;
        loop {
            match veil_device::completion(&mut self.inner)? {
                Completion { tag: MINE, outcome } => return Ok(outcome == Outcome::Done),
                other => self.ended.push_back(other),
            }
        }
    }

    fn look(&mut self, workspace: Workspace, region: u16) -> Result<(), Fault> {
        let mut sum = 0;
        for of in self.own.clone() {
            let window = Span {
                region,
                component: 0,
                first: 0,
                ..of
            };
            let op = Op::Combine {
                ring: self.ring,
                minus: 0,
            };
            self.all_equal(workspace, &[Command::new(op, vec![of], vec![window])])?;
            sum ^= self.inner.view(workspace, window)?[0] & 1;
        }
        self.found.lock().unwrap().own = Some(sum);
        Ok(())
    }

    /// Which of both candidates the MAC fits: the message as it came, or 2^(k-1) more.
    fn test(&mut self, workspace: Workspace) -> Result<(), Fault> {
        let both = [self.code.clone(), self.compare.clone()];
        let message = self.code.src[0];
        let mut fits = [false; 2];
        for fit in &mut fits {
            *fit = self.all_equal(workspace, &both)?;
            flip(self.inner.map(workspace, message)?, self.ring.bits() - 1);
        }
        self.found.lock().unwrap().error = match fits {
            [true, false] => Some(0),
            [false, true] => Some(1),
            _ => None,
        };
        Ok(())
    }
}

impl Device for Spy {
    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let (layout, _) = self.wider(layout);
        self.inner.load(program, &layout)
    }

    fn open(&mut self, layout: &Layout, frame: veil_session::Frame) -> Result<Workspace, Fault> {
        let (layout, window) = self.wider(layout);
        let workspace = self.inner.open(&layout, frame)?;
        self.workspaces.insert(workspace, (frame.chunk, window));
        Ok(workspace)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        if let Some((chunk, window)) = self.workspaces.get(&workspace).copied()
            && chunk == self.chunk
        {
            if batch.contains(&self.before) {
                self.look(workspace, window)?;
            }
            if batch.contains(&self.code) {
                self.test(workspace)?;
                return Err(Fault::Unknown("anything else that it wants to know"));
            }
        }
        self.inner.submit(workspace, batch, tag)
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        match self.ended.pop_front() {
            Some(ended) => Ok(Some(ended)),
            None => self.inner.poll(),
        }
    }

    veil_device::forward!(self, self.inner, name bind load_key close write map view wipe);
}
