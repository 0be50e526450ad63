//! The machine without a kernel: whole stories, each stage by each event, and chance.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use outrigger_sandbox::{CreateSpec, Generation};
use proptest::prelude::*;

use super::*;
use crate::spawner::create::request::CreateRequest;

fn id() -> SandboxId {
    SandboxId::new("one").unwrap()
}

fn name() -> SnapshotId {
    SnapshotId::new("kept").unwrap()
}

fn request() -> CreateRequest {
    CreateRequest { spec: CreateSpec::default(), read_only: Vec::new() }
}

fn generation() -> Generation {
    Generation::new("g").unwrap()
}

fn previous() -> PreviousGuest {
    PreviousGuest { generation: generation(), request: request() }
}

fn spec(disk_age: DiskAge) -> Box<SandboxSpec> {
    Box::new(SandboxSpec {
        request: request(),
        outcome: CreateOutcome::Made,
        generation: generation(),
        template: "host-tools".to_owned(),
        lowers: Vec::new(),
        disk_age,
    })
}

fn tree() -> Fingerprint {
    Fingerprint::from_bytes(&[7; 32]).unwrap()
}

fn snapshot() -> Snapshot {
    Snapshot { name: name(), sandbox: id(), taken_at_ms: 1, layers: 2 }
}

fn failure() -> Error {
    Error::Backend("it failed".to_owned())
}

fn requests() -> [SandboxRequest; 5] {
    [
        SandboxRequest::Find,
        SandboxRequest::Become(DesiredState::Live(Box::new(request()))),
        SandboxRequest::Become(DesiredState::Cold),
        SandboxRequest::Become(DesiredState::Snapshot(name())),
        SandboxRequest::Become(DesiredState::Gone),
    ]
}

/// What can come of an effect; nothing of one that is over when it is performed.
fn outcomes(effect: &LifecycleEffect) -> Vec<LifecycleEvent> {
    let both =
        |event: fn(Result<(), Error>) -> LifecycleEvent| vec![event(Ok(())), event(Err(failure()))];
    let measured = |kept: Option<[u8; 32]>| {
        vec![
            LifecycleEvent::Measured(Ok(Measure { tree: tree(), kept })),
            LifecycleEvent::Measured(Err(failure())),
        ]
    };
    match effect {
        LifecycleEffect::Answer(..)
        | LifecycleEffect::Find(_)
        | LifecycleEffect::Attach(..)
        | LifecycleEffect::AbandonStart
        | LifecycleEffect::DiscardDisk
        | LifecycleEffect::ForgetHandedOver
        | LifecycleEffect::CollectLayers => Vec::new(),
        LifecycleEffect::Inspect(name) => {
            let inspected =
                |settled, guest, named| LifecycleEvent::Inspected { settled, guest, named };
            let mut all = Vec::new();
            for guest in [GuestState::Running, GuestState::Suspended, GuestState::Ended] {
                all.push(inspected(Ok(()), guest, None));
                all.extend(name.iter().map(|_| inspected(Ok(()), guest, Some(snapshot()))));
            }
            all.push(inspected(Err(failure()), GuestState::Ended, None));
            all
        }
        LifecycleEffect::Plan(_) => vec![
            LifecycleEvent::Planned(Ok((spec(DiskAge::New), Vec::new()))),
            LifecycleEvent::Planned(Ok((spec(DiskAge::Old), Vec::new()))),
            LifecycleEvent::Planned(Err(failure())),
        ],
        LifecycleEffect::Verify(_) => both(LifecycleEvent::Verified),
        LifecycleEffect::Start(_) | LifecycleEffect::Resume(_) => both(LifecycleEvent::Started),
        LifecycleEffect::HandOver => {
            vec![LifecycleEvent::HandedOver, LifecycleEvent::Refused(failure())]
        }
        LifecycleEffect::Kill => vec![
            LifecycleEvent::Ended(Some(previous())),
            LifecycleEvent::Ended(None),
            LifecycleEvent::Unkillable,
        ],
        LifecycleEffect::Measure(Handover::Written) => measured(Some([8; 32])),
        LifecycleEffect::Measure(Handover::Absent) => measured(None),
        LifecycleEffect::MeasureResting => measured(Some([8; 32])),
        LifecycleEffect::Record { .. } => both(LifecycleEvent::Recorded),
        LifecycleEffect::Seal(_) => {
            vec![
                LifecycleEvent::Sealed(Ok(1)),
                LifecycleEvent::Sealed(Ok(40)),
                LifecycleEvent::Sealed(Err(failure())),
            ]
        }
        LifecycleEffect::Flatten => vec![LifecycleEvent::Flattened],
        LifecycleEffect::Name(_) => {
            vec![LifecycleEvent::Named(Ok(snapshot())), LifecycleEvent::Named(Err(failure()))]
        }
        LifecycleEffect::Delete => both(LifecycleEvent::Deleted),
    }
}

/// The callers that a change still has to answer.
fn owed(state: Option<&Change>) -> Vec<PeerId> {
    let of = |change: &Change| {
        let waiting: Vec<PeerId> = change.owed.waiting.iter().map(|(_, peer)| *peer).collect();
        change.owed.peer.into_iter().chain(waiting).collect()
    };
    state.map_or_else(Vec::new, of)
}

/// The callers that are answered by these effects.
fn answered(effects: &[LifecycleEffect]) -> Vec<PeerId> {
    let answered = |effect: &LifecycleEffect| {
        if let LifecycleEffect::Answer(peer, _)
        | LifecycleEffect::Find(peer)
        | LifecycleEffect::Attach(peer, _) = effect
        {
            return Some(*peer);
        }
        None
    };
    effects.iter().filter_map(answered).collect()
}

/// The caller that comes with an event.
fn asking(event: &LifecycleEvent) -> Option<PeerId> {
    if let LifecycleEvent::Asked(_, peer) = event { *peer } else { None }
}

/// A sandbox, and what it waits for.
struct World {
    now: Instant,
    state: Option<Change>,
    /// What comes back as an event.
    pending: Option<LifecycleEffect>,
    peers: u64,
    answered: BTreeSet<PeerId>,
    log: String,
}

impl World {
    fn new() -> Self {
        let (log, answered) = (String::new(), BTreeSet::new());
        Self { now: Instant::now(), state: None, pending: None, peers: 0, answered, log }
    }

    fn ask(&mut self, request: SandboxRequest) {
        self.peers += 1;
        self.tell(LifecycleEvent::Asked(request, Some(PeerId(self.peers))), false);
    }

    /// The time passes until which it waits.
    fn wait(&mut self) {
        self.now += Duration::from_millis(limits::HANDOVER_MS_MAX + limits::GUEST_START_MS_MAX);
        self.tell(LifecycleEvent::Due, false);
    }

    /// Something came of what it waits for.
    fn come(&mut self, which: usize) {
        let Some(pending) = &self.pending else { return };
        let all = outcomes(pending);
        self.tell(all[which % all.len()].clone(), true);
    }

    fn tell(&mut self, event: LifecycleEvent, came: bool) {
        let before = owed(self.state.as_ref());
        let asked = asking(&event);
        self.log += &format!("{}\n", line(&event));
        let (state, effects) = step(&id(), self.state.take(), event, self.now);
        for effect in &effects {
            self.log += &format!("    {}\n", line(effect));
        }
        let told = answered(&effects);
        for peer in &told {
            assert!(self.answered.insert(*peer), "{peer:?} is answered twice:\n{}", self.log);
        }
        let after: BTreeSet<PeerId> = owed(state.as_ref()).into_iter().chain(told).collect();
        let wanted: BTreeSet<PeerId> = before.into_iter().chain(asked).collect();
        assert_eq!(after, wanted, "a caller is lost:\n{}", self.log);
        let mut coming = effects.into_iter().filter(|effect| !outcomes(effect).is_empty());
        let next = coming.next();
        assert!(coming.next().is_none(), "two come back:\n{}", self.log);
        if next.is_some() || came || state.is_none() {
            self.pending = next;
        }
        let put_off = matches!(state, Some(Change { stage: Stage::PutOff { .. }, .. }));
        assert_eq!(
            self.pending.is_some(),
            state.is_some() && !put_off,
            "it waits for nothing:\n{}",
            self.log
        );
        self.state = state;
    }

    fn finish(&mut self) {
        for turn in 0.. {
            assert!(turn < 20 * (self.peers + 1), "it does not end:\n{}", self.log);
            match (&self.state, &self.pending) {
                (None, _) => break,
                (Some(_), None) => self.wait(),
                (Some(_), Some(_)) => self.come(0),
            }
        }
        let all: BTreeSet<PeerId> = (1..=self.peers).map(PeerId).collect();
        assert_eq!(self.answered, all, "somebody waits for ever:\n{}", self.log);
    }
}

/// What something is, whom it concerns, and whether it tells of a failure.
fn line(what: &dyn std::fmt::Debug) -> String {
    let whole = format!("{what:?}");
    let name = whole.split(['(', ' ']).next().unwrap_or_default();
    let peer = whole.split_once("PeerId(").and_then(|(_, rest)| rest.split_once(')'));
    let peer = peer.map_or_else(String::new, |(number, _)| format!(" {number}"));
    let failed = ["Err(", "Failed("].iter().any(|mark| whole.contains(mark));
    format!("{name}{peer}{}", if failed { ": failed" } else { "" })
}

fn check(world: &World, expected: Expect) {
    expected.assert_eq(&world.log);
}

#[test]
fn a_sandbox_is_made() {
    let mut world = World::new();
    world.ask(SandboxRequest::Become(DesiredState::Live(Box::new(request()))));
    world.tell(
        LifecycleEvent::Inspected { settled: Ok(()), guest: GuestState::Ended, named: None },
        true,
    );
    world.ask(SandboxRequest::Find);
    world.finish();
    check(
        &world,
        expect![[r#"
        Asked 1
            Inspect
        Inspected
            Plan
        Asked 2
        Planned
            Verify
        Verified
            Start
        Started
            Attach 1
            Find 2
    "#]],
    );
}

#[test]
fn what_was_made_for_a_guest_that_never_serves_goes() {
    let mut world = World::new();
    world.ask(SandboxRequest::Become(DesiredState::Live(Box::new(request()))));
    world.tell(
        LifecycleEvent::Inspected { settled: Ok(()), guest: GuestState::Ended, named: None },
        true,
    );
    world.come(0);
    world.come(0);
    world.wait();
    check(
        &world,
        expect![[r#"
        Asked 1
            Inspect
        Inspected
            Plan
        Planned
            Verify
        Verified
            Start
        Due
            AbandonStart
            DiscardDisk
            Answer 1: failed
    "#]],
    );
}

#[test]
fn a_disk_that_can_t_be_looked_at_goes_if_this_change_made_it() {
    // What is planned, of which age the disk is; and that looking at it failed.
    for (age, discarded) in [(0, true), (1, false)] {
        let mut world = World::new();
        world.ask(SandboxRequest::Become(DesiredState::Live(Box::new(request()))));
        world.tell(
            LifecycleEvent::Inspected { settled: Ok(()), guest: GuestState::Ended, named: None },
            true,
        );
        world.come(age);
        world.come(1);
        assert_eq!(world.log.contains("DiscardDisk"), discarded, "{}", world.log);
        assert!(world.log.ends_with("Answer 1: failed\n"), "{}", world.log);
    }
}

/// To where the disk of a living sandbox has its name.
fn named(waiting: &[SandboxRequest]) -> World {
    let mut world = World::new();
    world.ask(SandboxRequest::Become(DesiredState::Snapshot(name())));
    world.tell(
        LifecycleEvent::Inspected { settled: Ok(()), guest: GuestState::Running, named: None },
        true,
    );
    for request in waiting {
        world.ask(request.clone());
    }
    while !matches!(world.pending, Some(LifecycleEffect::Name(_))) {
        world.come(0);
    }
    world.log.clear();
    world.come(0);
    world
}

#[test]
fn a_life_goes_on_soon_if_nobody_asks_for_it() {
    let mut world = named(&[]);
    assert!(world.state.as_ref().is_some_and(Change::revives));
    world.finish();
    check(
        &world,
        expect![[r#"
        Named
            Answer 1
        Due
            Resume
        Started
    "#]],
    );
}

#[test]
fn a_life_goes_on_at_once_for_who_asks_for_it() {
    let mut world = named(&[]);
    world.ask(SandboxRequest::Find);
    assert!(world.state.as_ref().is_some_and(Change::revives));
    world.finish();
    check(
        &world,
        expect![[r#"
        Named
            Answer 1
        Asked 2
            Resume
        Started
            Find 2
    "#]],
    );
}

#[test]
fn a_life_does_not_go_on_for_who_wants_its_end() {
    let mut world = named(&[SandboxRequest::Become(DesiredState::Gone)]);
    assert!(!world.state.as_ref().is_some_and(Change::revives));
    world.finish();
    check(
        &world,
        expect![[r#"
        Named
            Answer 1
            Inspect
        Inspected
            Kill
        Ended
            Delete
        Deleted
            Answer 2
    "#]],
    );
}

#[test]
fn who_does_not_hand_over_is_ended() {
    let mut world = World::new();
    world.ask(SandboxRequest::Become(DesiredState::Cold));
    world.tell(
        LifecycleEvent::Inspected { settled: Ok(()), guest: GuestState::Running, named: None },
        true,
    );
    world.wait();
    world.finish();
    check(
        &world,
        expect![[r#"
        Asked 1
            Inspect
        Inspected
            HandOver
        Due
            Kill
        Ended
            Answer 1: failed
    "#]],
    );
}

/// One that waits for each thing that there is to wait for.
fn stages(now: Instant) -> Vec<Stage> {
    let until = now + Duration::from_secs(1);
    let snapshot = || Suspension::Snapshot(name());
    let desired = requests().into_iter().filter_map(|request| match request {
        SandboxRequest::Find => None,
        SandboxRequest::Become(desired) => Some(Stage::Inspecting(desired)),
    });
    let attach = |age| StartPurpose::Attach(CreateOutcome::Made, age);
    desired
        .chain([
            Stage::Planning,
            Stage::Verifying(spec(DiskAge::New)),
            Stage::Verifying(spec(DiskAge::Old)),
            Stage::Starting { purpose: attach(DiskAge::New), until },
            Stage::Starting { purpose: attach(DiskAge::Old), until },
            Stage::Starting { purpose: StartPurpose::GoOn, until },
            Stage::HandingOver { suspension: Suspension::Cold, until },
            Stage::HandingOver { suspension: snapshot(), until },
            Stage::Ending(None),
            Stage::Ending(Some(Suspension::Cold)),
            Stage::Ending(Some(snapshot())),
            Stage::Failing,
            Stage::Measuring(Suspension::Cold),
            Stage::Measuring(snapshot()),
            Stage::Recording(Suspension::Cold, tree()),
            Stage::Recording(snapshot(), tree()),
            Stage::Sealing(name()),
            Stage::Flattening(name()),
            Stage::Naming,
            Stage::PutOff { until },
            Stage::Deleting,
        ])
        .collect()
}

/// What comes of every effect, and what comes by itself.
fn events() -> Vec<LifecycleEvent> {
    let effects = [
        LifecycleEffect::Inspect(Some(name())),
        LifecycleEffect::Plan(Box::new(request())),
        LifecycleEffect::Verify(Vec::new()),
        LifecycleEffect::Start(spec(DiskAge::New)),
        LifecycleEffect::HandOver,
        LifecycleEffect::Kill,
        LifecycleEffect::Measure(Handover::Written),
        LifecycleEffect::Measure(Handover::Absent),
        LifecycleEffect::Record { generation: generation(), tree: tree(), kept: [8; 32] },
        LifecycleEffect::Seal(tree()),
        LifecycleEffect::Flatten,
        LifecycleEffect::Name(name()),
        LifecycleEffect::Delete,
    ];
    let asked = requests().map(|request| LifecycleEvent::Asked(request, Some(PeerId(9))));
    effects.iter().flat_map(outcomes).chain(asked).chain([LifecycleEvent::Due]).collect()
}

#[test]
fn in_each_stage_each_event_leaves_nobody_and_nothing_behind() {
    let now = Instant::now();
    let late = now + Duration::from_secs(2);
    for stage in stages(now) {
        for event in events() {
            // Nothing was ended yet for what still waits for an end.
            let ending = matches!(stage, Stage::Ending(_));
            for kept in [None, (!ending).then(previous)] {
                let waiting = VecDeque::from([
                    (SandboxRequest::Find, PeerId(2)),
                    (SandboxRequest::Become(DesiredState::Cold), PeerId(3)),
                ]);
                let owes = Obligations { peer: Some(PeerId(1)), previous: kept.clone(), waiting };
                let change = Change { stage: stage.clone(), owed: owes };
                let story = format!("{stage:?}, {event:?}");
                let asked = asking(&event);
                let (state, effects) = step(&id(), Some(change), event.clone(), late);
                let mut all = owed(state.as_ref());
                all.extend(answered(&effects));
                all.sort();
                let wanted: Vec<PeerId> = (1..=3).map(PeerId).chain(asked).collect();
                assert_eq!(all, wanted, "{story}");
                let coming = effects.iter().filter(|effect| !outcomes(effect).is_empty()).count();
                assert!(coming <= 1, "{story}: {effects:?}");
                // A life that was ended for this waits, goes on, or what it was ended for is over.
                let waits = state.as_ref().is_some_and(|change| change.owed.previous.is_some());
                let resumed =
                    effects.iter().any(|effect| matches!(effect, LifecycleEffect::Resume(_)));
                let over = owed(state.as_ref()).first() != Some(&PeerId(1));
                assert!(kept.is_none() || waits || resumed || over, "{story}: {effects:?}");
            }
        }
    }
}

#[test]
fn too_many_do_not_wait() {
    let mut world = World::new();
    for _ in 0..limits::QUEUED_MAX + 3 {
        world.ask(SandboxRequest::Become(DesiredState::Cold));
    }
    assert_eq!(world.answered.len(), 2);
    world.finish();
}

proptest! {
    /// Whatever happens, whoever asks gets one answer, and a change ends.
    #[test]
    fn whoever_asks_gets_one_answer(
        turns in proptest::collection::vec((0_usize..8, 0_usize..60), 0..60)
    ) {
        let mut world = World::new();
        for (kind, which) in turns {
            match kind {
                0 | 1 => world.ask(requests()[which % 5].clone()),
                2 => world.wait(),
                3 => {
                    // News that comes by itself, and may be of a life before.
                    let news = [
                        LifecycleEvent::HandedOver,
                        LifecycleEvent::Refused(failure()),
                        LifecycleEvent::Ended(None),
                        LifecycleEvent::Ended(Some(previous())),
                        LifecycleEvent::Unkillable,
                        LifecycleEvent::Due,
                    ];
                    world.tell(news[which % 6].clone(), false);
                }
                _ => world.come(which),
            }
        }
        world.finish();
    }
}
