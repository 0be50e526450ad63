//! The suite sees faults: a backend with one of them fails it.

use async_trait::async_trait;
use outrigger_sandbox::{
    Backend, Capabilities, CreateOutcome, CreateSpec, DiskOrigin, Error, Generation,
    LifecycleState, Lifetime, ListedSandbox, Sandbox, SandboxId, Snapshot, SnapshotId, Snapshots,
    Suspend,
};
use outrigger_sandbox_testing::conformance::{self, SuiteTarget};
use outrigger_sandbox_testing::fake::Fake;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod sandbox;

use sandbox::FaultySandbox;

/// What a backend does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    RunsRepeatedIds,
    PerformsRepeatedIds,
    IgnoresKill,
    LosesTheLastByte,
    CountsNoDroppedBytes,
    SplitsMergedStreams,
    InventsAnExitCode,
    IgnoresDeadlines,
    IgnoresStdin,
    IgnoresVariables,
    IgnoresDirectories,
    SpillsNothing,
    EditsEveryPlace,
    IgnoresPreconditions,
    SaysIoForEveryError,
    ReversesLists,
    NeverTruncates,
    DestroysNothing,
    ListsNothing,
    FindsNothing,
    DropsTheTableOverCold,
    BeginsAnotherLifeOnResume,
    SaysAttachedAlways,
    OldHandlesLiveOn,
    FilesThaw,
    FreezesNothing,
    FreezesInsteadOfCold,
    SuspendsUnderCommands,
    SuspendsWhatIsNot,
    FindsColdOnes,
    ListsAllAsRunning,
    ListsNoOrigins,
    IgnoresLifetimes,
    TakesAnySpecification,
    KnowsEveryTemplate,
    KnowsEverySnapshot,
    RestoresOverDisks,
    SnapshotsShareTheTree,
    SnapshotsAreTakenAgain,
    SnapshotsUnderCommands,
    SnapshotsStay,
    SnapshotsGoWithTheirSandbox,
    ForksShareTheTree,
    HidesSnapshots,
    HidesCold,
    ClaimsTerminals,
}

/// Each fault with cases that must notice it.
const FAULTS: [(Fault, &str); 46] = [
    (Fault::RunsRepeatedIds, "ids/"),
    (Fault::PerformsRepeatedIds, "write/repeated"),
    (Fault::IgnoresKill, "ids/kill"),
    (Fault::LosesTheLastByte, "exec/"),
    (Fault::CountsNoDroppedBytes, "output/cap"),
    (Fault::SplitsMergedStreams, "output/streams"),
    (Fault::InventsAnExitCode, "ids/kill"),
    (Fault::IgnoresDeadlines, "limits/deadline"),
    (Fault::IgnoresStdin, "exec/stdin"),
    (Fault::IgnoresVariables, "exec/environment"),
    (Fault::IgnoresDirectories, "exec/directory"),
    (Fault::SpillsNothing, "output/spilled"),
    (Fault::EditsEveryPlace, "errors/edit"),
    (Fault::IgnoresPreconditions, "errors/precondition"),
    (Fault::SaysIoForEveryError, "errors/"),
    (Fault::ReversesLists, "read/list"),
    (Fault::NeverTruncates, "search/glob"),
    (Fault::DestroysNothing, "lifecycle/destroyed"),
    (Fault::ListsNothing, "lifecycle/"),
    (Fault::FindsNothing, "lifecycle/"),
    (Fault::DropsTheTableOverCold, "cold/outcomes"),
    (Fault::BeginsAnotherLifeOnResume, "cold/resumed_in"),
    (Fault::SaysAttachedAlways, "cold/resumed"),
    (Fault::OldHandlesLiveOn, "cold/old_handles"),
    (Fault::FilesThaw, "frozen/files"),
    (Fault::FreezesNothing, "frozen/found"),
    (Fault::FreezesInsteadOfCold, "cold/listed"),
    (Fault::SuspendsUnderCommands, "cold/busy"),
    (Fault::SuspendsWhatIsNot, "/unknown_is_absent"),
    (Fault::FindsColdOnes, "cold/listed"),
    (Fault::ListsAllAsRunning, "frozen/"),
    (Fault::ListsNoOrigins, "snapshot/restored"),
    (Fault::IgnoresLifetimes, "lifetime/"),
    (Fault::TakesAnySpecification, "declared/absurd"),
    (Fault::KnowsEveryTemplate, "declared/unknown"),
    (Fault::KnowsEverySnapshot, "snapshot/unknown"),
    (Fault::RestoresOverDisks, "snapshot/origin"),
    (Fault::SnapshotsShareTheTree, "snapshot/holds"),
    (Fault::SnapshotsAreTakenAgain, "snapshot/repeated"),
    (Fault::SnapshotsUnderCommands, "snapshot/busy"),
    (Fault::SnapshotsStay, "snapshot/removed"),
    (Fault::SnapshotsGoWithTheirSandbox, "snapshot/restored"),
    (Fault::ForksShareTheTree, "fork/apart"),
    (Fault::HidesSnapshots, "declared/"),
    (Fault::HidesCold, "declared/"),
    (Fault::ClaimsTerminals, "declared/"),
];

#[derive(Debug)]
struct FaultyBackend {
    fake: Fake,
    fault: Fault,
    declared: Capabilities,
    world: Mutex<World>,
}

#[derive(Debug, Default)]
struct World {
    colds: BTreeMap<SandboxId, u64>,
    sources: BTreeMap<SnapshotId, SandboxId>,
    copies: u64,
}

impl FaultyBackend {
    fn new(fault: Fault) -> Self {
        let fake = Fake::new();
        let mut declared = fake.capabilities().clone();
        match fault {
            Fault::HidesSnapshots => declared.snapshots = false,
            Fault::HidesCold => declared.suspend = vec![Suspend::Frozen],
            Fault::ClaimsTerminals => declared.terminal = true,
            _ => {}
        }
        Self { fake, fault, declared, world: Mutex::default() }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrap(&self, sound: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        let (fake, fault) = (self.fake.clone(), self.fault);
        let colds = self.world().colds.get(sound.id()).copied().unwrap_or(0);
        let generation = match (fault, sound.outcome()) {
            (Fault::BeginsAnotherLifeOnResume, CreateOutcome::Resumed) => {
                Generation::new("another").expect("a valid name")
            }
            _ => sound.generation().clone(),
        };
        let repeats = AtomicU64::new(0);
        Arc::new(FaultySandbox { fake, sound, generation, fault, colds, repeats })
    }

    /// The specification that the fake is given in place of this one.
    async fn spoil(&self, id: &SandboxId, mut spec: CreateSpec) -> Result<CreateSpec, Error> {
        match (self.fault, &spec.origin) {
            (Fault::IgnoresLifetimes, _) => spec.lifetime = Lifetime::default(),
            (Fault::TakesAnySpecification, _) if spec.check().is_err() => spec = Fake::spec(),
            (Fault::KnowsEveryTemplate, DiskOrigin::Template(_)) => {
                spec.origin = DiskOrigin::default()
            }
            (Fault::KnowsEverySnapshot, DiskOrigin::Snapshot(name)) => {
                let all = Snapshots::list(&self.fake).await?;
                if all.iter().all(|snapshot| snapshot.name != *name) {
                    spec.origin = DiskOrigin::default();
                }
            }
            (Fault::RestoresOverDisks, DiskOrigin::Snapshot(_)) => self.fake.destroy(id).await?,
            (Fault::SnapshotsShareTheTree, DiskOrigin::Snapshot(name)) => {
                let (source, copy) = {
                    let mut world = self.world();
                    world.copies += 1;
                    (world.sources.get(name).cloned(), format!("copy-{}", world.copies))
                };
                let copy = SnapshotId::new(copy).expect("a valid name");
                if let Some(source) = source
                    && self.fake.take(&source, &copy).await.is_ok()
                {
                    spec.origin = DiskOrigin::Snapshot(copy);
                }
            }
            _ => {}
        }
        Ok(spec)
    }

    /// The sandbox that stands in for a fork.
    fn source(&self, spec: &CreateSpec) -> Option<SandboxId> {
        match (self.fault, &spec.origin) {
            (Fault::ForksShareTheTree, DiskOrigin::Snapshot(name)) => {
                self.world().sources.get(name).cloned()
            }
            _ => None,
        }
    }
}

#[async_trait]
impl Backend for FaultyBackend {
    fn capabilities(&self) -> &Capabilities {
        &self.declared
    }

    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error> {
        let id = self.source(spec).unwrap_or_else(|| id.clone());
        let spec = self.spoil(&id, spec.clone()).await?;
        Ok(self.wrap(self.fake.create(&id, &spec).await?))
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let cold = self.fault == Fault::FindsColdOnes && self.world().colds.contains_key(id);
        if cold {
            return Ok(Some(self.wrap(self.fake.create(id, &Fake::spec()).await?)));
        }
        let found = self.fake.find(id).await?;
        Ok(found.filter(|_| self.fault != Fault::FindsNothing).map(|sound| self.wrap(sound)))
    }

    async fn list(&self) -> Result<Vec<ListedSandbox>, Error> {
        let mut all = Backend::list(&self.fake).await?;
        for listed in &mut all {
            match self.fault {
                Fault::ListsAllAsRunning => listed.state = LifecycleState::Running,
                Fault::ListsNoOrigins => listed.origin = DiskOrigin::default(),
                _ => {}
            }
        }
        Ok(if self.fault == Fault::ListsNothing { Vec::new() } else { all })
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        if self.fault == Fault::SnapshotsGoWithTheirSandbox {
            for snapshot in Snapshots::list(&self.fake).await? {
                if snapshot.sandbox == *id {
                    self.fake.remove(&snapshot.name).await?;
                }
            }
        }
        if self.fault == Fault::DestroysNothing { Ok(()) } else { self.fake.destroy(id).await }
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        let how = match (self.fault, how) {
            (Fault::FreezesNothing, Suspend::Frozen) => return Ok(()),
            (Fault::FreezesInsteadOfCold, Suspend::Cold) => Suspend::Frozen,
            (_, how) => how,
        };
        match (self.fault, self.fake.suspend(id, how).await) {
            (Fault::SuspendsUnderCommands, Err(Error::Busy { .. }))
            | (Fault::SuspendsWhatIsNot, Err(Error::Absent { .. })) => Ok(()),
            (_, suspended) => {
                suspended?;
                *self.world().colds.entry(id.clone()).or_default() += 1;
                Ok(())
            }
        }
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        Ok(self)
    }
}

#[async_trait]
impl Snapshots for FaultyBackend {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        if self.fault == Fault::SnapshotsAreTakenAgain {
            self.fake.remove(name).await?;
        }
        match (self.fault, self.fake.take(sandbox, name).await) {
            (Fault::SnapshotsUnderCommands, Err(Error::Busy { .. })) => {
                let (name, sandbox) = (name.clone(), sandbox.clone());
                Ok(Snapshot { name, sandbox, taken_at_ms: 0, layers: 1 })
            }
            (_, taken) => {
                let taken = taken?;
                self.world().sources.insert(name.clone(), taken.sandbox.clone());
                Ok(taken)
            }
        }
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        Snapshots::list(&self.fake).await
    }

    async fn remove(&self, name: &SnapshotId) -> Result<(), Error> {
        if self.fault == Fault::SnapshotsStay { Ok(()) } else { self.fake.remove(name).await }
    }
}

#[tokio::test(start_paused = true)]
async fn every_fault_fails_the_suite() {
    for (fault, cases) in FAULTS {
        let report =
            conformance::run(SuiteTarget::new(Arc::new(FaultyBackend::new(fault))), Some(cases))
                .await;
        assert!(report.failed().next().is_some(), "{fault:?} passes {cases}");
    }
}
