//! Openings: the colours of a wire's labels at both parties, the garbler's of the label that means 0 and the evaluator's of the one that it has,
//! are shares of the value.

use veil_circuit::Reduce;
use veil_device::{Command, Op};
use veil_job::Audience;
use veil_session::{PartyId, Peer};

use super::regions;
use super::{combine, other, place, transfer};
use crate::plan::Plan;
use crate::round::Round;

/// The opening of the outputs of a chunk, in one round.
pub(super) fn open(plan: &Plan, me: Peer) -> Vec<Round> {
    let mut round = Round {
        place: place::OPEN,
        ..Round::default()
    };
    for (port, (output, audience)) in plan.outputs.iter().zip(&plan.job.audiences).enumerate() {
        let share = |party: PartyId| regions::share(plan, port, party.index() as u8);
        let get = |round: &mut Round, from: PartyId| {
            round
                .recvs
                .push(transfer(share(from), Peer::Party(from), port as u16));
        };
        match me {
            Peer::Party(party) => {
                // Those of every cycle are there already.
                if !of_every_cycle(plan).any(|of| of == port) {
                    let colour = Command::new(
                        Op::Colour,
                        vec![regions::result(output)],
                        vec![share(party)],
                    );
                    round.local.push(colour);
                }
                let to = receivers(*audience).filter(|peer| *peer != me);
                round
                    .sends
                    .extend(to.map(|peer| transfer(share(party), peer, port as u16)));
                if audience.includes(me) {
                    let Peer::Party(from) = other(party) else {
                        unreachable!("the other one is a party")
                    };
                    get(&mut round, from);
                }
            }
            Peer::Recipient(_) if audience.includes(me) => {
                for from in PartyId::TWO {
                    get(&mut round, from);
                }
            }
            Peer::Owner(_) | Peer::Recipient(_) => continue,
        }
        if audience.includes(me) {
            let shares = PartyId::TWO.map(share).into();
            round
                .finish
                .push(combine(shares, regions::opened(plan, port)));
        }
    }
    if round.local.is_empty() && round.sends.is_empty() && round.recvs.is_empty() {
        vec![]
    } else {
        vec![round]
    }
}

/// The output ports with a value in every cycle.
pub(super) fn of_every_cycle(plan: &Plan) -> impl Iterator<Item = usize> {
    let ports = plan.job.circuit.outputs.iter().enumerate();
    ports.filter_map(|(port, output)| (output.reduce == Reduce::EveryCycle).then_some(port))
}

/// Who gets what is opened to an audience.
pub(super) fn receivers(audience: Audience) -> impl Iterator<Item = Peer> {
    let parties = PartyId::TWO
        .into_iter()
        .map(Peer::Party)
        .filter(move |peer| audience.includes(*peer));
    let recipient = match audience {
        Audience::Recipient(recipient) => Some(Peer::Recipient(recipient)),
        Audience::Party(_) | Audience::Parties | Audience::Stored | Audience::Column => None,
    };
    parties.chain(recipient)
}
