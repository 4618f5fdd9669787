use super::*;

const WAIT: Duration = Duration::from_secs(60);

/// A participant, and the time at which it is: none passes but by `rest` and `after`.
struct Run {
    me: Participant<&'static str>,
    step: Step<&'static str>,
    now: Instant,
    began: Instant,
}

impl Run {
    fn of(me: As, two: bool, guaranteed: bool) -> Self {
        let now = Instant::now();
        let course = Course {
            me,
            two,
            guaranteed,
            wait: WAIT,
        };
        let (me, step) = Participant::new(course, now);
        Run {
            me,
            step,
            now,
            began: now,
        }
    }

    fn party(serves: bool, two: bool) -> Self {
        Run::of(As::Party { serves }, two, false)
    }

    fn owner() -> Self {
        let me = As::Guest {
            input: true,
            compute: false,
        };
        Run::of(me, true, false)
    }

    fn recipient(guaranteed: bool) -> Self {
        let me = As::Guest {
            input: false,
            compute: true,
        };
        Run::of(me, true, guaranteed)
    }

    #[track_caller]
    fn expects(&mut self, step: &Step<&'static str>) -> &mut Self {
        assert_eq!(self.step, *step, "after {:?}", self.passed());
        self
    }

    fn hears(&mut self, heard: Heard<&'static str>) -> &mut Self {
        self.step = self.me.next(heard, self.now);
        self
    }

    fn ends(&mut self, ended: Ended<&'static str>) -> &mut Self {
        self.hears(Heard::Ended { ended, void: false })
    }

    fn again(&mut self, again: Again) -> &mut Self {
        self.ends(Ended::Again(again, "why"))
    }

    fn after(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    /// Rests for as long as it is told, which is returned.
    #[track_caller]
    fn rest(&mut self) -> Duration {
        let Step::Rest { pause, .. } = self.step else {
            panic!("no rest, but {:?}", self.step);
        };
        self.after(pause).hears(Heard::Ready);
        pause
    }

    fn passed(&self) -> Duration {
        self.now - self.began
    }

    /// Comes to a run of the stage, as a party that is not done without.
    #[track_caller]
    fn comes(&mut self, stage: Stage) -> &mut Self {
        if self.step == Step::AskDone {
            self.hears(Heard::Yes(false));
        }
        if self.step == Step::Locate {
            self.hears(Heard::At(stage));
        }
        assert!(
            matches!(self.step, Step::Prepare(at, _) if at == stage),
            "{:?}",
            self.step
        );
        self.hears(Heard::Ready);
        if self.step == Step::AskKept {
            self.hears(Heard::Yes(false));
        }
        self.expects(&Step::Run(stage))
    }

    #[track_caller]
    fn given_up(&mut self, failure: Option<&'static str>, again: Option<Again>) {
        let given = GivenUp { failure, again };
        self.expects(&Step::GivenUp(given));
        // Nothing brings it back.
        for heard in [Heard::Ready, Heard::Yes(true), Heard::At(Stage::Input)] {
            self.hears(heard);
            assert!(matches!(self.step, Step::GivenUp(_)), "{:?}", self.step);
        }
    }
}

#[test]
fn pauses_grow_and_come_to_an_end() {
    let seconds: Vec<u64> = (0..).map_while(pause).map(|p| p.as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert_eq!(pause(u32::MAX), None);
}

#[test]
fn a_job_in_one_run_is_run_once() {
    for serves in [false, true] {
        Run::party(serves, false)
            .comes(Stage::Whole)
            .ends(Ended::Done)
            .expects(&Step::Finished);
        Run::party(serves, false)
            .comes(Stage::Whole)
            .ends(Ended::Failed("why"))
            .given_up(Some("why"), None);
    }
}

#[test]
fn a_party_goes_through_both_stages_and_removes_the_inputs() {
    for serves in [false, true] {
        Run::party(serves, true)
            .comes(Stage::Input)
            .ends(Ended::Done)
            .expects(&Step::Locate)
            .comes(Stage::Compute)
            .ends(Ended::Done)
            .expects(&Step::Forget)
            .hears(Heard::Ready)
            .expects(&Step::Finished);
    }
}

/// The inputs are asked for once more, and no more.
#[test]
fn inputs_that_are_kept_and_gone_do_not_make_it_go_round_for_ever() {
    let mut run = Run::party(false, true);
    run.comes(Stage::Input).ends(Ended::Done);
    run.comes(Stage::Input).ends(Ended::Done);
    run.hears(Heard::At(Stage::Input)).given_up(None, None);
}

#[test]
fn a_service_asks_whether_the_others_are_done_but_for_a_job_that_has_just_kept_its_inputs() {
    let mut run = Run::party(true, true);
    run.expects(&Step::AskDone)
        .hears(Heard::Yes(true))
        .expects(&Step::Forget)
        .hears(Heard::Ready)
        .expects(&Step::Finished);
    let mut run = Run::party(true, true);
    run.comes(Stage::Input)
        .ends(Ended::Done)
        .comes(Stage::Compute)
        .again(Again::Interrupted);
    run.rest();
    run.expects(&Step::AskDone);
}

#[test]
fn a_party_is_tried_so_often_with_pauses_that_grow_and_no_more() {
    for (again, seconds) in [
        (Again::Interrupted, vec![1, 2, 4, 8, 16, 30, 30, 30]),
        (Again::Disagreed, vec![1; 8]),
    ] {
        let mut run = Run::party(true, true);
        let mut pauses = Vec::new();
        loop {
            run.comes(Stage::Compute).again(again);
            if matches!(run.step, Step::GivenUp(_)) {
                break;
            }
            let attempt = Some((pauses.len() as u32 + 1, AGAIN));
            assert!(
                matches!(run.step, Step::Rest { attempt: of, why: Some("why"), .. } if of == attempt)
            );
            pauses.push(run.rest().as_secs());
        }
        assert_eq!(pauses, seconds, "{again:?}");
        run.given_up(Some("why"), Some(again));
    }
}

#[test]
fn a_run_takes_back_disagreements_and_a_stage_that_is_done_takes_back_all_failures() {
    let mut run = Run::party(true, true);
    for _ in 0..AGAIN {
        run.comes(Stage::Input).again(Again::Disagreed);
        run.rest();
    }
    run.comes(Stage::Input).again(Again::Interrupted);
    assert_eq!(run.rest().as_secs(), 1);
    for _ in 0..AGAIN {
        run.comes(Stage::Input).again(Again::Disagreed);
        run.rest();
    }
    run.comes(Stage::Input)
        .ends(Ended::Done)
        .comes(Stage::Compute)
        .again(Again::Interrupted);
    assert_eq!(run.rest().as_secs(), 1);
}

#[test]
fn views_come_to_an_end_whichever_party_counts_them() {
    for again in [Again::View as fn(u32) -> Again, Again::Follow] {
        let mut run = Run::of(As::Party { serves: true }, true, true);
        run.comes(Stage::Compute).again(again(VIEWS - 1));
        assert!(run.rest() <= PAUSE);
        run.comes(Stage::Finish(PartyId::FOUR[0]))
            .again(again(VIEWS));
        run.given_up(Some("why"), Some(again(VIEWS)));
    }
}

#[test]
fn recipients_are_waited_for_as_long_as_a_meeting_and_anew_after_a_run() {
    let mut run = Run::of(As::Party { serves: true }, true, true);
    run.comes(Stage::Compute).again(Again::Recipients);
    run.after(WAIT / 2).rest();
    run.comes(Stage::Compute).again(Again::Seen);
    run.rest();
    run.comes(Stage::Compute).again(Again::Recipients);
    run.after(WAIT * 2 / 3).rest();
    run.comes(Stage::Compute).again(Again::Recipients);
    run.after(WAIT / 2).rest();
    run.comes(Stage::Compute).again(Again::Recipients);
    run.given_up(Some("why"), Some(Again::Recipients));
}

#[test]
fn inputs_that_are_void_are_removed_before_anything_else() {
    let mut run = Run::party(false, true);
    run.comes(Stage::Compute)
        .hears(Heard::Ended {
            ended: Ended::Again(Again::Disagreed, "why"),
            void: true,
        })
        .expects(&Step::Forget)
        .hears(Heard::Ready);
    assert_eq!(run.rest(), PAUSE);
    run.expects(&Step::Locate).comes(Stage::Input);
    let mut run = Run::party(true, true);
    run.comes(Stage::Compute)
        .hears(Heard::Ended {
            ended: Ended::Failed("why"),
            void: true,
        })
        .expects(&Step::Forget)
        .hears(Heard::Ready)
        .given_up(Some("why"), None);
}

#[test]
fn an_owner_brings_its_values_and_has_no_part_in_what_follows() {
    Run::owner()
        .expects(&Step::Prepare(Stage::Input, Because::Course))
        .hears(Heard::Ready)
        .expects(&Step::AskKept)
        .hears(Heard::Yes(false))
        .expects(&Step::Run(Stage::Input))
        .ends(Ended::Done)
        .expects(&Step::Finished);
}

#[test]
fn an_owner_goes_when_all_parties_have_its_values() {
    let says_why = |run: &mut Run| {
        run.expects(&Step::Finished);
        assert_eq!(run.me.because(), Because::Kept);
    };
    let mut before = Run::owner();
    says_why(before.hears(Heard::Ready).hears(Heard::Yes(true)));
    let mut meanwhile = Run::owner();
    says_why(meanwhile.comes(Stage::Input).ends(Ended::Kept));
    let mut after = Run::owner();
    after
        .comes(Stage::Input)
        .again(Again::Unmet)
        .expects(&Step::AskKept);
    says_why(after.hears(Heard::Yes(true)));
    let mut unmet = Run::owner();
    unmet
        .comes(Stage::Input)
        .again(Again::Unmet)
        .hears(Heard::Yes(false))
        .given_up(Some("why"), Some(Again::Unmet));
}

#[test]
fn an_owner_that_one_party_sends_away_lingers_until_no_party_wants_its_values() {
    let mut run = Run::owner();
    while run.passed() < LINGER {
        run.comes_or_runs().again(Again::Disagreed);
        if run.step == Step::AskWanted {
            break;
        }
        assert_eq!(run.rest(), BETWEEN);
    }
    run.comes_or_runs().again(Again::Disagreed);
    run.expects(&Step::AskWanted).hears(Heard::Yes(false));
    assert_eq!(run.rest(), BETWEEN);
    run.comes_or_runs()
        .again(Again::Disagreed)
        .hears(Heard::Yes(true))
        .expects(&Step::Finished);
}

#[test]
fn an_owner_that_is_neither_let_in_nor_sent_home_gives_up_when_the_time_is_over() {
    let mut run = Run::owner();
    loop {
        run.comes_or_runs().again(Again::Disagreed);
        if run.step == Step::AskWanted {
            run.hears(Heard::Yes(false));
        }
        if matches!(run.step, Step::GivenUp(_)) {
            break;
        }
        run.rest();
    }
    assert!(run.passed() >= WAIT && run.passed() < WAIT + PAUSE);
    run.given_up(Some("why"), Some(Again::Disagreed));
}

#[test]
fn a_recipient_comes_to_the_stage_at_which_two_parties_are() {
    for again in [Again::Disagreed, Again::Unmet] {
        let finish = Stage::Finish(PartyId::FOUR[2]);
        let mut run = Run::recipient(true);
        run.comes(Stage::Compute)
            .again(again)
            .expects(&Step::AskStage)
            .hears(Heard::Parties(None));
        assert_eq!(run.rest(), BETWEEN);
        run.expects(&Step::Run(Stage::Compute))
            .again(again)
            .hears(Heard::Parties(Some(finish)))
            .expects(&Step::Prepare(finish, Because::Moved))
            .comes(finish)
            .ends(Ended::Done)
            .expects(&Step::Finished);
    }
}

#[test]
fn a_recipient_gives_up_when_the_parties_say_nothing_for_so_long() {
    for again in [Again::Disagreed, Again::Unmet] {
        let mut run = Run::recipient(true);
        run.comes(Stage::Compute);
        loop {
            run.again(again).hears(Heard::Parties(None));
            if matches!(run.step, Step::GivenUp(_)) {
                break;
            }
            run.rest();
        }
        assert!(run.passed() >= WAIT && run.passed() < WAIT + PAUSE);
        run.given_up(Some("why"), Some(again));
    }
}

#[test]
fn a_recipient_of_a_guaranteed_output_comes_again_at_once_and_for_every_turn() {
    let mut run = Run::recipient(true);
    for view in 0..VIEWS {
        run.comes(Stage::Compute).again(Again::Interrupted);
        let attempt = Some((view + 1, VIEWS));
        assert!(matches!(run.step, Step::Rest { attempt: of, .. } if of == attempt));
        assert_eq!(run.rest(), PAUSE);
        run.expects(&Step::AskStage).hears(Heard::Parties(None));
    }
    run.comes(Stage::Compute)
        .again(Again::Interrupted)
        .given_up(Some("why"), Some(Again::Interrupted));
}

#[test]
fn who_has_no_part_in_a_stage_is_past_it() {
    let none = As::Guest {
        input: false,
        compute: false,
    };
    Run::of(none, true, false).expects(&Step::Finished);
    Run::recipient(false).comes(Stage::Compute);
}

/// Whatever a caller answers, the machine neither panics nor runs a stage in which the participant has no part, and it comes to an end.
#[test]
fn answers_in_any_order_come_to_an_end() {
    let mut state = 1_u64;
    let mut draw = |of: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % of
    };
    let stages = [
        Stage::Input,
        Stage::Compute,
        Stage::Finish(PartyId::FOUR[1]),
    ];
    for case in 0..2000 {
        let me = match case % 4 {
            0 => As::Party { serves: false },
            1 => As::Party { serves: true },
            2 => As::Guest {
                input: true,
                compute: false,
            },
            _ => As::Guest {
                input: false,
                compute: true,
            },
        };
        let mut run = Run::of(me, draw(2) == 0, draw(2) == 0);
        for _ in 0..400 {
            let took_part = match &run.step {
                Step::Run(stage) | Step::Prepare(stage, _) => run.me.course.takes_part(*stage),
                _ => true,
            };
            assert!(took_part, "{me:?}: {:?}", run.step);
            if let Step::Rest { pause, .. } = run.step {
                run.after(pause);
            }
            let again = [
                Again::Interrupted,
                Again::Disagreed,
                Again::Unmet,
                Again::View(draw(12) as u32),
                Again::Follow(draw(12) as u32),
                Again::Seen,
                Again::Recipients,
            ][draw(7) as usize];
            let heard = match draw(9) {
                0 => Heard::Yes(draw(2) == 0),
                1 => Heard::At(stages[draw(3) as usize]),
                2 => Heard::Parties((draw(2) == 0).then(|| stages[draw(3) as usize])),
                3 => Heard::Ready,
                4 => Heard::failed("why"),
                5 => Heard::Ended {
                    ended: [Ended::Done, Ended::Kept][draw(2) as usize].clone(),
                    void: draw(2) == 0,
                },
                _ => Heard::Ended {
                    ended: Ended::Again(again, "why"),
                    void: draw(2) == 0,
                },
            };
            run.hears(heard);
        }
        run.hears(Heard::failed("why"));
        if run.step != Step::Finished {
            run.hears(Heard::failed("why"));
            assert!(
                matches!(run.step, Step::GivenUp(_) | Step::Forget),
                "{:?}",
                run.step
            );
        }
    }
}

impl Run {
    /// Comes to a run of the input stage, for the first time or once more.
    #[track_caller]
    fn comes_or_runs(&mut self) -> &mut Self {
        if matches!(self.step, Step::Prepare(..)) {
            self.hears(Heard::Ready);
        }
        if self.step == Step::AskKept {
            self.hears(Heard::Yes(false));
        }
        self.expects(&Step::Run(Stage::Input))
    }
}
