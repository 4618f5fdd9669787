#!/usr/bin/env python3
"""Golden model of the marks of stock: what two parties have used of a generation, compared when a session begins, and every way in which they come apart.

    python3 vectors/model/ag_store.py            write the vectors
    python3 vectors/model/ag_store.py --check    compare them with what is committed; exit 1 if they differ
    python3 vectors/model/ag_store.py --escapes  go through all histories of four sessions

A session: both tell their marks; a party that is one session behind writes the other's and says so; then each writes the marks of the session and says so, and only
when both have said so it sends what depends on the cells. A party that is ended writes nothing more. A party may be set back to marks that it had before. The
model goes through all histories and asserts that honest parties never fork, and that no cell is used in two sessions unless both parties were set back.
"""

import argparse
import hashlib
import itertools
import pathlib
from collections import namedtuple

from common import draw, require, write_or_check

Marks = namedtuple("Marks", "generation made used sessions chain previous")
EQUAL, BEHIND, AHEAD, FORKED = "equal", "behind", "ahead", "forked"


def fresh(generation, made):
    return Marks(generation, made, 0, 0, hashlib.sha256(b"veilworks stock chain" + generation).digest(), bytes(32))


def advanced(marks, need, session):
    require(marks.used + need <= marks.made, "no more is used than there is")
    used, sessions = marks.used + need, marks.sessions + 1
    numbers = sessions.to_bytes(8, "little") + used.to_bytes(8, "little")
    chain = hashlib.sha256(b"veilworks stock session" + marks.generation + numbers + marks.chain + session).digest()
    return marks._replace(used=used, sessions=sessions, chain=chain, previous=marks.chain)


def one_more(of, than):
    same = (of.generation, of.made) == (than.generation, than.made)
    return same and of.sessions == than.sessions + 1 and of.previous == than.chain and of.used >= than.used


def standing(mine, theirs):
    if mine == theirs:
        return EQUAL
    if one_more(theirs, mine):
        return BEHIND
    return AHEAD if one_more(mine, theirs) else FORKED


def choose(mine, theirs, need):
    """What a party does: a generation that has enough, with the least beyond, by its place in the own list."""
    common = []
    for own, marks in enumerate(mine):
        for other, their in enumerate(theirs):
            if marks.generation == their.generation:
                stands = standing(marks, their)
                if stands == FORKED:
                    return [FORKED, own, other]
                left = min(marks.made - marks.used, their.made - their.used)
                common.append((left, marks.generation, own, stands))
    enough = [of for of in common if of[0] >= need]
    if enough:
        _, _, own, stands = min(enough)
        return [stands, own]
    return ["too few", max(left for left, *_ in common)] if common else ["none in common"]


# ---------------------------------------------------------------------------------------------- histories


class Party:
    def __init__(self, marks):
        self.marks, self.was, self.used = marks, [marks], []

    def write(self, marks):
        self.marks = marks
        self.was.append(marks)


def session(number, need, parties, writes):
    """One session, in which the parties of `writes` come to writing, the one that catches up before. What it says: forked, or nothing."""
    before = [party.marks for party in parties]
    stands = [standing(before[k], before[1 - k]) for k in range(2)]
    alike = ([EQUAL, EQUAL], [BEHIND, AHEAD], [AHEAD, BEHIND], [FORKED, FORKED])
    require(stands in alike, "both judge alike")
    if FORKED in stands:
        return FORKED
    if BEHIND in stands:
        late = stands.index(BEHIND)
        if not writes[late]:
            # It has not caught up, and the other one waits for its word.
            return None
        parties[late].write(before[1 - late])
    base = parties[0].marks
    begun = [k for k in range(2) if writes[k] == 2 or (writes[k] and BEHIND not in stands)]
    for k in begun:
        parties[k].write(advanced(base, need, number.to_bytes(32, "little")))
    for k in begun:
        # A party that hears that the other one has written uses the cells.
        if len(begun) == 2:
            parties[k].used.append((number, base.used, base.used + need))
    return None


def overlaps(used):
    """Pairs of sessions in which a party has used the same cells."""
    return {(a[0], b[0]) for a, b in itertools.combinations(used, 2) if a[1] < b[2] and b[1] < a[2]}


def histories(sessions, back):
    """All histories: which party is set back by how much before each session, and how far each comes in it."""
    steps = list(itertools.product(back, itertools.product((0, 1, 2), repeat=2)))
    return itertools.product(steps, repeat=sessions)


def run(history):
    parties = [Party(fresh(bytes(32), 1000)) for _ in range(2)]
    lost = [0, 0]
    for number, (back, writes) in enumerate(history, 1):
        for k, party in enumerate(parties):
            if back[k] and len(party.was) > back[k]:
                party.marks = party.was[-1 - back[k]]
                party.was = party.was[: -back[k]]
                lost[k] += back[k]
        if session(number, 10, parties, writes) == FORKED:
            return parties, lost, number
    return parties, lost, None


def check_histories():
    count = 0
    for history in histories(4, [(0, 0)]):
        parties, _, forked = run(history)
        require(forked is None, "honest parties do not fork")
        for party in parties:
            require(not overlaps(party.used), "honest parties use nothing twice")
        count += 1
    print(f"{count} histories of parties that are ended at any point: none forks, nothing is used twice")
    # A party that is set back, before any session, by one session or more.
    found = healed = 0
    for history in histories(4, [(0, 0), (1, 0), (2, 0), (3, 0)]):
        if sum(back[0] > 0 for back, _ in history) != 1:
            continue
        parties, lost, forked = run(history)
        require(not overlaps(parties[0].used), "a party that was set back uses nothing twice")
        require(not overlaps(parties[1].used), "the other party uses nothing twice")
        found += forked is not None
        healed += bool(lost[0]) and forked is None
    require(found and healed, "both kinds are there")
    print(f"one party set back: {found} histories are found and burnt, {healed} go on behind what was used; nothing is used twice")
    twice = 0
    for history in histories(3, [(0, 0), (1, 1), (2, 2)]):
        parties, _, forked = run(history)
        if forked is None and overlaps(parties[0].used) & overlaps(parties[1].used):
            twice += 1
    require(twice, "the limit is one")
    print(f"both parties set back: {twice} histories use cells twice, and nothing of the two tells")


# ---------------------------------------------------------------------------------------------- vectors


def listed(marks):
    numbers = {"made": marks.made, "used": marks.used, "sessions": marks.sessions}
    return {"generation": marks.generation.hex(), **numbers, "chain": marks.chain.hex(), "previous": marks.previous.hex()}


def vectors():
    names = [draw(f"stock/generation/{k}", 32) for k in range(3)]
    sessions = [draw(f"stock/session/{k}", 32) for k in range(4)]
    needs = [5, 0, 300, 1]
    chain = [fresh(names[0], 1024)]
    for need, name in zip(needs, sessions):
        chain.append(advanced(chain[-1], need, name))
    steps = [{"need": need, "session": name.hex(), "marks": listed(marks)} for need, name, marks in zip(needs, sessions, chain[1:])]
    fork = advanced(chain[1], 0, sessions[3])
    less, more = chain[2]._replace(used=4), chain[2]._replace(made=2048)
    other, third = fresh(names[1], 700), fresh(names[2], 512)
    states = [chain[0], chain[1], chain[2], chain[3], fork, less, more]
    cases = [([a], [b], need) for a in states for b in states for need in (719, 720, 1020)]
    cases += [([], [], 1), ([other], [], 1), ([], [other], 1), ([other], [third], 1)]
    cases += [([chain[1], other, third], [third, other, chain[1]], need) for need in (1, 513, 701, 1019, 1020)]
    cases += [([chain[1], other, third], [third, other, fork], 1), ([other, fork], [chain[2], other], 1), ([chain[1], other], [chain[2]], 1)]
    told = [{"mine": [listed(m) for m in mine], "theirs": [listed(m) for m in theirs], "need": need, "choice": choose(mine, theirs, need)} for mine, theirs, need in cases]
    return {"fresh": listed(chain[0]), "steps": steps, "cases": told}


def main():
    parser = argparse.ArgumentParser(description="Writes the golden vectors of the marks of stock.")
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--escapes", action="store_true", help="go through all histories")
    args = parser.parse_args()
    if args.escapes:
        check_histories()
        return
    folder = pathlib.Path(__file__).resolve().parent.parent
    write_or_check(folder, {"stock.json": vectors()}, args.check, "vectors/model/ag_store.py")


if __name__ == "__main__":
    main()
