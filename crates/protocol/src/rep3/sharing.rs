//! Inputs: by a computing party, and by an outside owner who only sends shares.
//!
//! Party P_i: u_i = ρ_i, u_{i+1} = 0, and u_{i-1} = v - u_i goes to P_{i-1}. A consistent sharing of whatever
//! the party sent, if the party keeps what it sends.
//!
//! Owner: u_0 and u_1 are drawn from two seeds, of which parties 0 and 1, and 1 and 2, hold one each; u_2 = v - u_0 - u_1 goes to parties 2
//! and 0. Holders of the same seed compare digests of it once; parties 2 and 0 compare digests of every chunk of u_2 before they use it
//! (attack case A4). What differs is refused, never repaired.

use veil_circuit::Per;
use veil_device::{Command, Op};
use veil_program::Holder;
use veil_prss::Use;
use veil_session::{PartyId, Peer};

use super::regions::{self, JOB_MASKS, MASKS};
use super::{
    KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS, check, combine, label, place, random, seed_key, transfer,
};
use crate::plan::{Gives, Plan, PortPlan};
use crate::round::Round;

/// Agreement on the list of inputs and on seeds, then the inputs that all rows share, and what follows from them.
pub(super) fn set_up(plan: &Plan, me: Peer) -> Vec<Round> {
    let mut rounds = Vec::new();
    if let Peer::Party(me) = me {
        rounds.push(list(plan, me));
    }
    rounds.extend(shared(plan, me, 0, Per::Job));
    rounds.extend(super::layers::job_rounds(plan, me));
    let keep = super::opening::keep(plan, Gives::Once);
    if me.party().is_some() && !keep.is_empty() {
        rounds.push(Round {
            place: place::JOB_CHECK,
            local: keep,
            ..Round::default()
        });
    }
    rounds
}

/// Inputs of the rows of a chunk of block `block`.
pub(super) fn inputs(plan: &Plan, me: Peer, block: usize) -> Vec<Round> {
    shared(plan, me, block, Per::Row)
}

/// Everyone tells everyone the digest of its list of accepted inputs (attack case A7), and holders of a seed its digest.
fn list(plan: &Plan, me: PartyId) -> Round {
    let mut round = Round {
        place: place::LIST,
        ..Round::default()
    };
    for (k, peer) in [(1, me.next()), (2, me.previous())] {
        let peer = Peer::Party(peer);
        round.sends.push(transfer(regions::list(0), peer, 0));
        round.recvs.push(transfer(regions::list(k), peer, 0));
        check(
            &mut round,
            regions::list(0),
            regions::list(k),
            vec![peer],
            "the list of accepted inputs",
        );
    }
    for owner in 0..plan.job.owners.len() as u16 {
        for (index, holder) in [(0u8, PartyId::ALL[0]), (1, PartyId::ALL[1])] {
            let other = match me {
                m if m == holder => holder.next(),
                m if m == holder.next() => holder,
                _ => continue,
            };
            let (mine, theirs) = (
                regions::seed_digest(owner, index),
                regions::other_seed_digest(owner, index),
            );
            let part = 1 + 2 * owner + u16::from(index);
            let other = Peer::Party(other);
            round.sends.push(transfer(mine, other, part));
            round.recvs.push(transfer(theirs, other, part));
            check(
                &mut round,
                mine,
                theirs,
                vec![Peer::Owner(owner), other],
                "an owner's seed",
            );
        }
    }
    round
}

/// Ports with a value per row, or per job, and their holders in a block.
fn ports(plan: &Plan, block: usize, per: Per) -> impl Iterator<Item = (usize, &PortPlan, Holder)> {
    let holders = &plan.job.blocks[block].holders;
    plan.inputs
        .iter()
        .zip(holders)
        .enumerate()
        .filter(move |(_, (p, _))| p.per == per)
        .map(|(k, (p, h))| (k, p, *h))
}

fn shared(plan: &Plan, me: Peer, block: usize, per: Per) -> Vec<Round> {
    let (place, check_place) = match per {
        Per::Row => (place::INPUTS, place::INPUT_CHECK),
        Per::Job => (place::JOB_INPUTS, place::JOB_CHECK),
    };
    let mut round = Round {
        place,
        ..Round::default()
    };
    let mut owners: Vec<u16> = Vec::new();
    let mut loads = false;
    for (k, port, holder) in ports(plan, block, per) {
        match (me, holder) {
            (Peer::Party(me), Holder::Party(p)) => by_party(plan, &mut round, me, p, k, port),
            (Peer::Party(me), Holder::Owner(o)) => {
                from_owner(plan, &mut round, me, o, k, port);
                if !owners.contains(&o) {
                    owners.push(o);
                }
            }
            (Peer::Owner(me), Holder::Owner(o)) if me == o => {
                by_owner(plan, &mut round, o, k, port);
            }
            (Peer::Party(_), Holder::Stored) => {
                for part in [OWN, PREVIOUS] {
                    let (from, to) = (regions::stored(port, part), regions::shares(port, part));
                    round.local.push(combine(plan.ring, vec![from], 0, to));
                }
                loads = true;
            }
            (Peer::Owner(_) | Peer::Recipient(_), _) => {}
        }
    }
    let mut rounds = Vec::new();
    let nothing = round.local.is_empty()
        && round.sends.is_empty()
        && round.recvs.is_empty()
        && round.finish.is_empty();
    if !nothing {
        rounds.push(round);
    }
    if let Peer::Party(me) = me {
        let mut round = Round {
            place: check_place,
            ..Round::default()
        };
        if let Some(other) = explicit_partner(me) {
            for owner in owners {
                compare_owner(plan, &mut round, other, owner, (block, per));
            }
        }
        if loads {
            compare_loaded(plan, &mut round, me, (block, per));
        }
        if !round.sends.is_empty() {
            rounds.push(round);
        }
    }
    rounds
}

/// Parties 2 and 0 compare digests of all explicit components of an owner.
fn compare_owner(
    plan: &Plan,
    round: &mut Round,
    other: PartyId,
    owner: u16,
    (block, per): (usize, Per),
) {
    let src = ports(plan, block, per).filter(|(_, _, h)| *h == Holder::Owner(owner));
    let src = src.map(|(_, port, _)| regions::input(port)).collect();
    let (mine, theirs) = (
        regions::owner_digest(owner, per, false),
        regions::owner_digest(owner, per, true),
    );
    let base = if per == Per::Row {
        label::OWNER_ROWS
    } else {
        label::OWNER_JOB
    };
    round.local.push(Command::new(
        Op::Hash {
            label: base + owner,
        },
        src,
        vec![mine],
    ));
    let other = Peer::Party(other);
    round.sends.push(transfer(mine, other, owner));
    round.recvs.push(transfer(theirs, other, owner));
    check(
        round,
        mine,
        theirs,
        vec![Peer::Owner(owner), other],
        "an owner's shares",
    );
}

/// Both holders of a component that was loaded compare digests of it: own with the next party, previous with the previous one.
fn compare_loaded(plan: &Plan, round: &mut Round, me: PartyId, (block, per): (usize, Per)) {
    let base = if per == Per::Row {
        label::STORED_ROWS
    } else {
        label::STORED_JOB
    };
    let holders = [
        (OWN, me, Peer::Party(me.next())),
        (PREVIOUS, me.previous(), Peer::Party(me.previous())),
    ];
    for (part, component, other) in holders {
        let src = ports(plan, block, per).filter(|(_, _, h)| *h == Holder::Stored);
        let src = src.map(|(_, port, _)| regions::stored(port, part));
        let component = component.index() as u16;
        let (mine, theirs) = (
            regions::loaded_digest(plan, per, u32::from(part)),
            regions::loaded_digest(plan, per, 2 + u32::from(part)),
        );
        let label = base + component;
        round
            .local
            .push(Command::new(Op::Hash { label }, src.collect(), vec![mine]));
        round.sends.push(transfer(mine, other, LOADED + component));
        round
            .recvs
            .push(transfer(theirs, other, LOADED + component));
        check(
            round,
            mine,
            theirs,
            vec![Peer::Party(me), other],
            "a stored share",
        );
    }
}

/// Number of the digest message of loaded component 0, after those of owners, of whom there are at most 1024.
const LOADED: u16 = 1024;

/// The other holder of u_2.
fn explicit_partner(me: PartyId) -> Option<PartyId> {
    match me.index() {
        0 => Some(PartyId::ALL[2]),
        2 => Some(PartyId::ALL[0]),
        _ => None,
    }
}

/// Counter of a port's first wire: wires in order, as many counters each as a full chunk of one wire takes.
fn first_draw(plan: &Plan, port: &PortPlan) -> u64 {
    let stride = match port.per {
        Per::Row => plan.ring.bytes(u64::from(plan.chunk_rows)).div_ceil(16),
        Per::Job => 1,
    };
    u64::from(port.first) * stride
}

fn by_party(
    plan: &Plan,
    round: &mut Round,
    me: PartyId,
    holder: PartyId,
    k: usize,
    port: &PortPlan,
) {
    let (own, previous, input) = (
        regions::shares(port, OWN),
        regions::shares(port, PREVIOUS),
        regions::input(port),
    );
    let (tag, first, ring) = (
        Use::input3(holder.index() as u8),
        first_draw(plan, port),
        plan.ring,
    );
    if me == holder {
        round.local.push(random(own, KEY_OWN, tag, first));
        round
            .local
            .push(combine(ring, vec![input, own], 0b10, input));
        round.local.push(combine(ring, vec![input], 0, previous));
        round
            .sends
            .push(transfer(input, Peer::Party(me.previous()), k as u16));
    } else if me == holder.previous() {
        round
            .recvs
            .push(transfer(input, Peer::Party(holder), k as u16));
        round.finish.push(combine(ring, vec![input], 0, own));
        round.finish.push(combine(ring, vec![], 0, previous));
    } else {
        round.local.push(random(previous, KEY_PREVIOUS, tag, first));
        round.local.push(combine(ring, vec![], 0, own));
    }
}

fn from_owner(plan: &Plan, round: &mut Round, me: PartyId, owner: u16, k: usize, port: &PortPlan) {
    let (own, previous, input) = (
        regions::shares(port, OWN),
        regions::shares(port, PREVIOUS),
        regions::input(port),
    );
    let first = first_draw(plan, port);
    let drawn = |to, index| random(to, seed_key(owner, index), Use::SHARE3, first);
    let explicit = |round: &mut Round, to| {
        round
            .recvs
            .push(transfer(input, Peer::Owner(owner), k as u16));
        round.finish.push(combine(plan.ring, vec![input], 0, to));
    };
    match me.index() {
        0 => {
            round.local.push(drawn(own, 0));
            explicit(round, previous);
        }
        1 => round.local.extend([drawn(own, 1), drawn(previous, 0)]),
        _ => {
            round.local.push(drawn(previous, 1));
            explicit(round, own);
        }
    }
}

fn by_owner(plan: &Plan, round: &mut Round, owner: u16, k: usize, port: &PortPlan) {
    let input = regions::input(port);
    let region = if port.per == Per::Row {
        MASKS
    } else {
        JOB_MASKS
    };
    let masks = [0, 1].map(|part| veil_device::Span {
        region,
        part,
        ..input
    });
    let first = first_draw(plan, port);
    for (index, to) in masks.into_iter().enumerate() {
        round
            .local
            .push(random(to, seed_key(owner, index as u8), Use::SHARE3, first));
    }
    round.local.push(combine(
        plan.ring,
        vec![input, masks[0], masks[1]],
        0b110,
        input,
    ));
    for party in [2, 0] {
        round
            .sends
            .push(transfer(input, Peer::Party(PartyId::ALL[party]), k as u16));
    }
}
