//! All sandboxes of a state directory: the disks, and the lives over them.
//!
//! Owns what is known of each without asking anybody, read once when the spawner
//! starts: it alone changes the state directory from then on. Makes guests, ends them,
//! and collects what nothing stands on; decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, UNIX_EPOCH};

use outrigger_sandbox::{
    CreateOutcome, DiskOrigin, Error, Generation, Isolation, LifecycleState, ListedSandbox,
    SandboxId, SnapshotId,
};
use rustix::fs::{Timespec, Timestamps};

use super::disk_record::{DiskRecord, now_ms};
use super::kill_retry::KillRetries;
use super::suspend_record::{self, SuspendRecord};
use crate::image::request::{HOST_TOOLS, HostPaths, Template, is_of_project};
use crate::limits;
use crate::spawner::create::pool::PreforkPool;
use crate::spawner::create::prefork::GuestTemplate;
use crate::spawner::create::request::CreateRequest;
use crate::spawner::create::running::RunningGuest;
use crate::spawner::create::spec::{PreviousGuest, SandboxSpec};
use crate::spawner::create::starting::{GuestConfig, StartingGuest};
use crate::spawner::error::backend;
use crate::spawner::event_loop::poll::Poller;
use crate::spawner::layers::layer::Layer;
use crate::spawner::layers::origin::base_of;
use crate::spawner::layers::snapshots::{self, SnapshotIndex};
use crate::spawner::layers::template;
use crate::spawner::quota::ids::{self, IdRange};
use crate::spawner::record::{self, Durability};
use crate::spawner::rootfs::{Base, LowerDir, PreparedRoot, RootPlan, folders};
use crate::spawner::store::cleaner::TrashCleaner;
use crate::spawner::store::{self, DiskDir, Store, private};

/// What is known of a disk.
#[derive(Debug)]
pub(crate) struct Disk {
    /// `None`: its record is damaged.
    pub(crate) record: Option<DiskRecord>,
    /// When it was last asked for, in milliseconds since 1970.
    pub(crate) used_at_ms: u64,
    /// The life that is suspended over it.
    pub(crate) cold: Option<Generation>,
}

impl Disk {
    /// When it was there for as long as it may be, in milliseconds since 1970.
    pub(crate) fn old_at_ms(&self) -> Option<u64> {
        let record = self.record.as_ref()?;
        Some(record.made_at_ms.saturating_add(record.lifetime.age_ms_max?))
    }
}

/// The sandboxes of a state directory.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    pub(crate) store: Store,
    pub(crate) isolation: Isolation,
    pool: PreforkPool,
    /// What the last root was made with; a new list of paths takes its place.
    pub(crate) prepared: Option<PreparedRoot>,
    /// Which boot of the host this is.
    pub(crate) boot: String,
    pub(crate) running: BTreeMap<SandboxId, RunningGuest>,
    /// Those of them that were told to end.
    pub(crate) kill_retries: KillRetries,
    pub(crate) disks: BTreeMap<SandboxId, Disk>,
    pub(crate) snapshots: SnapshotIndex,
    pub(crate) cleaner: TrashCleaner,
    /// Disks whose record is behind what is known of them, and whether to write it
    /// failed already.
    pub(crate) unsettled: BTreeMap<SandboxId, bool>,
    /// Layers that nothing names yet.
    pub(crate) making: BTreeSet<Layer>,
    /// Ranges of ids that disks have, living or not.
    ranges: BTreeSet<u32>,
    pub(crate) poller: Poller,
}

pub(super) fn not_started(error: io::Error) -> Error {
    Error::Backend(format!("the sandbox could not be started: {error}"))
}

impl Sandboxes {
    /// Reads what is in a state directory, and brings it in order.
    pub(crate) fn open(
        state: PathBuf,
        isolation: Isolation,
        template: GuestTemplate,
    ) -> io::Result<Self> {
        let store = Store::new(state);
        private(&store.staging())?;
        // What unpacked layers died with its spawner.
        store.discard(&store.incoming())?;
        for dir in [store.sandboxes(), store.layers()] {
            private(&dir)?;
            store::spread(&dir);
        }
        let pool = PreforkPool::new(template);
        let mut sandboxes = Self {
            snapshots: snapshots::load(&store)?,
            cleaner: TrashCleaner::default(),
            store,
            isolation,
            pool,
            prepared: None,
            boot: suspend_record::boot()?,
            running: BTreeMap::new(),
            kill_retries: KillRetries::default(),
            disks: BTreeMap::new(),
            making: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            ranges: BTreeSet::new(),
            poller: Poller::new()?,
        };
        for entry in fs::read_dir(sandboxes.store.sandboxes())? {
            let name = entry?.file_name();
            if let Some(id) = name.to_str().and_then(|name| SandboxId::new(name).ok()) {
                sandboxes.load(id)?;
            }
        }
        sandboxes.discard_unused_layers()?;
        Ok(sandboxes)
    }

    fn load(&mut self, id: SandboxId) -> io::Result<()> {
        let disk_dir = self.store.disk(&id);
        let record = match record::read::<DiskRecord>(&disk_dir.about()) {
            Ok(Some(record)) => Some(record),
            Ok(None) => {
                // The record comes before a guest, so nothing was ever written here.
                self.store.discard(disk_dir.path())?;
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error),
        };
        self.ranges.extend(ids::noted(&disk_dir.range()));
        let cold = SuspendRecord::read(&disk_dir)?.filter(|cold| cold.is_of(&self.boot));
        let used = fs::metadata(disk_dir.about())?.modified()?.duration_since(UNIX_EPOCH);
        let used_at_ms = used.map_or(0, |used| u64::try_from(used.as_millis()).unwrap_or(u64::MAX));
        let cold = cold.map(|cold| cold.generation);
        self.disks.insert(id, Disk { record, used_at_ms, cold });
        Ok(())
    }

    /// What is recorded of a disk.
    pub(crate) fn record(&self, id: &SandboxId) -> Result<&DiskRecord, Error> {
        let absent = || Error::Absent { what: "sandbox".to_owned(), name: id.to_string() };
        let disk = self.disks.get(id).ok_or_else(absent)?;
        disk.record.as_ref().ok_or_else(|| Error::Altered {
            name: id.to_string(),
            detail: "the record of what it is is damaged; it can only be destroyed".to_owned(),
        })
    }

    /// Writes the record of a disk.
    pub(crate) fn note(
        &mut self,
        id: &SandboxId,
        record: DiskRecord,
        durability: Durability,
    ) -> io::Result<()> {
        let disk_dir = self.store.disk(id);
        private(disk_dir.path())?;
        record::write(&disk_dir.about(), &record, durability)?;
        let cold = self.disks.remove(id).and_then(|disk| disk.cold);
        let disk = Disk { record: Some(record), used_at_ms: now_ms(), cold };
        self.disks.insert(id.clone(), disk);
        Ok(())
    }

    /// Notes that somebody asked for a disk just now.
    pub(crate) fn touch(&mut self, id: &SandboxId) {
        let Some(disk) = self.disks.get_mut(id) else { return };
        disk.used_at_ms = now_ms();
        let now = Duration::from_millis(disk.used_at_ms);
        let now = Timespec {
            tv_sec: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(now.subsec_nanos()),
        };
        let times = Timestamps { last_access: now, last_modification: now };
        // It is for what has not been used for long, so a lost note does little harm.
        let _ = rustix::fs::utimensat(
            rustix::fs::CWD,
            self.store.disk(id).about(),
            &times,
            rustix::fs::AtFlags::empty(),
        );
    }

    /// Every sandbox, sorted by name.
    pub(crate) fn list(&self) -> Vec<ListedSandbox> {
        self.disks.iter().map(|(id, disk)| self.listed(id, disk)).collect()
    }

    fn listed(&self, id: &SandboxId, disk: &Disk) -> ListedSandbox {
        let (state, generation) = match self.running.get(id) {
            Some(running) if running.group.is_frozen() => {
                (LifecycleState::Frozen, Some(&running.generation))
            }
            Some(running) => (LifecycleState::Running, Some(&running.generation)),
            None => match &disk.cold {
                Some(generation) => (LifecycleState::Cold, Some(generation)),
                None => (LifecycleState::Dead, None),
            },
        };
        let record = disk.record.as_ref();
        ListedSandbox {
            id: id.clone(),
            state,
            generation: generation.cloned(),
            origin: record.map_or_else(DiskOrigin::default, |record| record.origin.clone()),
            made_at_ms: record.map_or(0, |record| record.made_at_ms),
            used_at_ms: disk.used_at_ms,
        }
    }

    /// Has a guest begin over a disk that was verified.
    pub(crate) fn start_guest(
        &mut self,
        id: &SandboxId,
        sandbox: SandboxSpec,
    ) -> Result<StartingGuest, Error> {
        let SandboxSpec { request, outcome, generation, template, lowers, .. } = sandbox;
        let (disk_dir, base) = (self.store.disk(id), base_of(&template));
        let kept = match outcome {
            CreateOutcome::Resumed => Some(
                fs::File::open(disk_dir.kept())
                    .map_err(|error| backend("cannot read what is kept", &error))?
                    .into(),
            ),
            CreateOutcome::Made | CreateOutcome::Attached | CreateOutcome::Restarted => None,
        };
        let (ids, lowers) = self
            .prepare(&disk_dir, base, lowers)
            .map_err(|error| backend("cannot prepare the disk", &error))?;
        let (host, env) = self.shown(&template, &request)?;
        let spec = &request.spec;
        let staging = self.store.staging();
        // An image has its own folders.
        let served = if base == Base::HostTools { &spec.served[..] } else { &[] };
        let prepared = match self.prepared.take() {
            Some(last) if last.serves(&host, served) => last,
            last => PreparedRoot::new(&staging, &host, folders(last.as_ref(), served))
                .map_err(|error| backend("cannot prepare the root", &error))?,
        };
        let plan = RootPlan {
            staging,
            base,
            disk_dir,
            lowers,
            owner: ids.guest(),
            agent: ids.agent(),
            tty_group: ids.tty_group(),
            shm_bytes: limits::SHM_BYTES_MAX.min(spec.memory_bytes_max / 2),
            served: spec.served.clone(),
            elsewhere: host.elsewhere.iter().map(|(_, inside)| inside.clone()).collect(),
        };
        let prepared = self.prepared.insert(prepared);
        let config = GuestConfig { plan: &plan, prepared, ids, request, generation, env, kept };
        StartingGuest::spawn(config, &mut self.pool).map_err(not_started)
    }

    /// Whether a disk or a snapshot needs what the template of a project says.
    pub(crate) fn stands_on(&self, template: &str) -> bool {
        let records = self.disks.values().filter_map(|disk| disk.record.as_ref());
        let disks = records.map(|record| &record.template);
        let mut all = disks.chain(self.snapshots.all.values().map(|kept| &kept.template));
        is_of_project(template) && all.any(|used| used == template)
    }

    /// What of the host is seen in a sandbox with this template, and the variables of its
    /// commands.
    fn shown(
        &self,
        template: &str,
        request: &CreateRequest,
    ) -> Result<(HostPaths, Vec<String>), Error> {
        let read_only = request.read_only.clone();
        let found = match template {
            HOST_TOOLS => None,
            name => template::load(&self.store, name)?,
        };
        // An image may be forgotten; what stands on it goes on.
        let Some(Template { mut host, env, .. }) = found else {
            return Ok((HostPaths { read_only, ..HostPaths::default() }, Vec::new()));
        };
        let more = read_only.into_iter().filter(|path| !host.read_only.contains(path));
        let more: Vec<_> = more.collect();
        host.read_only.extend(more);
        Ok((host, env))
    }

    /// A guest serves: from here on its sandbox lives.
    pub(crate) fn adopt(&mut self, id: &SandboxId, mut running: RunningGuest) -> Result<(), Error> {
        // It has nothing to do yet: until it has, the suspended life is as it was.
        let forgotten = suspend_record::forget(&self.store.disk(id));
        if let Err(error) = forgotten.and_then(|()| running.await_by(&mut self.poller, id)) {
            running.reap(&mut self.poller);
            return Err(backend("cannot begin", &error));
        }
        if let Some(disk) = self.disks.get_mut(id) {
            disk.cold = None;
        }
        self.running.insert(id.clone(), running);
        self.touch(id);
        Ok(())
    }

    /// Whether a guest runs; one that ended is reaped.
    pub(crate) fn is_running(&mut self, id: &SandboxId) -> bool {
        match self.running.get(id) {
            Some(running) if running.has_ended() => {
                self.reap(id);
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    /// Tells those again that were told to end. Gives those that nobody waits for any longer.
    pub(crate) fn retry_kills(&mut self, now: Instant) -> Vec<SandboxId> {
        self.kill_retries.retry(&self.running, now)
    }

    /// Tells a guest to end, again and again until it does.
    pub(crate) fn kill(&mut self, id: &SandboxId) {
        if let Some(running) = self.running.get(id) {
            self.kill_retries.kill(id, running);
        }
    }

    /// Whether something was put off until there is time.
    pub(crate) fn has_put_off(&self) -> bool {
        self.unsettled.values().any(|failed| !failed) || !self.pool.template.host.is_tidy()
    }

    /// Does a part of what was put off.
    pub(crate) fn catch_up(&mut self) {
        let Some((id, _)) = self.unsettled.iter().find(|(_, failed)| !**failed) else {
            return self.pool.template.host.tidy();
        };
        let id = id.clone();
        if self.settle(&id).is_err() {
            // It is tried again before anything else becomes of the disk.
            self.unsettled.insert(id, true);
        }
    }

    /// One more guest is preforked for the one that was used.
    pub(crate) fn refill(&mut self) {
        if let Some(prepared) = &self.prepared {
            self.pool.refill(&prepared.namespace);
        }
    }

    /// Makes the directories of a disk where they are missing, with their owners.
    fn prepare(
        &mut self,
        disk_dir: &DiskDir,
        base: Base,
        mut lowers: Vec<LowerDir>,
    ) -> io::Result<(IdRange, Vec<LowerDir>)> {
        private(disk_dir.path())?;
        let ids = match self.isolation {
            Isolation::RootRange => IdRange::take(&disk_dir.range(), &self.ranges)?,
            Isolation::RootlessRange => IdRange::Shared,
            _ => IdRange::Single,
        };
        self.ranges.extend(ids.number());
        if lowers.is_empty() && base == Base::HostTools {
            // Made at its start, while its process takes time for other things.
            return Ok((ids, lowers));
        }
        private(&disk_dir.work())?;
        for lower in &mut lowers {
            lower.first_id = lower.first_id.filter(|first| *first != ids.guest());
        }
        Ok((ids, lowers))
    }

    /// Reaps a guest, whether it ended or not. Gives which it was.
    pub(crate) fn reap(&mut self, id: &SandboxId) -> Option<PreviousGuest> {
        let running = self.running.remove(id)?;
        self.kill_retries.forget(id);
        Some(running.reap(&mut self.poller))
    }

    /// Takes a disk out of sight, so that its name is free. Gives where it is now.
    pub(crate) fn discard(&mut self, id: &SandboxId) -> io::Result<Option<String>> {
        let disk_dir = self.store.disk(id);
        let number = ids::noted(&disk_dir.range());
        let name = self.store.discard(disk_dir.path())?;
        if let Some(number) = number {
            self.ranges.remove(&number);
        }
        self.disks.remove(id);
        self.unsettled.remove(id);
        Ok(name)
    }

    /// Takes the name of a snapshot back, and what only that stood on.
    pub(crate) fn forget_snapshot(&mut self, name: &SnapshotId) -> Result<(), Error> {
        if self.snapshots.forget(&self.store, name)? {
            self.collect();
        }
        Ok(())
    }

    /// Has the trash emptied in the background.
    pub(crate) fn clean(&mut self) {
        self.cleaner.clean(&self.store, &mut self.poller);
    }

    /// Has every layer deleted that nothing stands on any more.
    pub(crate) fn collect(&mut self) {
        // What can't be collected now is when a spawner starts.
        if let Ok(true) = self.discard_unused_layers() {
            self.clean();
        }
    }

    /// Moves every layer that nothing stands on to the trash. Says whether there was one.
    fn discard_unused_layers(&self) -> io::Result<bool> {
        // One whose record is damaged may name any.
        if self.snapshots.damaged {
            return Ok(false);
        }
        let Ok(image) = template::layers(&self.store) else { return Ok(false) };
        let mut used: BTreeSet<&Layer> = image.iter().collect();
        for disk in self.disks.values() {
            // One whose record is damaged may stand on any.
            let Some(record) = &disk.record else { return Ok(false) };
            used.extend(record.layers.iter().chain(&record.sealing));
        }
        used.extend(self.snapshots.all.values().flat_map(|kept| &kept.layers));
        used.extend(&self.making);
        self.store.discard_layers(&used)
    }

    /// Whether there is room for another life.
    pub(crate) fn has_room(&self) -> Result<(), Error> {
        if self.running.len() >= limits::SANDBOXES_MAX {
            let max = limits::SANDBOXES_MAX;
            return Err(Error::Backend(format!("{max} sandboxes live already")));
        }
        Ok(())
    }

    /// Ends every guest and leaves nothing on the host but the disks.
    pub(crate) fn close(&mut self) {
        for id in self.unsettled.keys().cloned().collect::<Vec<_>>() {
            // Else the next spawner ends what was begun.
            let _ = self.settle(&id);
        }
        // All at once, so that none is waited for while others could end.
        self.running.values().for_each(RunningGuest::kill);
        for running in std::mem::take(&mut self.running).into_values() {
            running.reap(&mut self.poller);
        }
        self.pool.close();
        self.pool.template.groups.close();
    }

    /// Whether the state directory is still there; without it nothing can be found again.
    pub(crate) fn has_state(&self) -> bool {
        self.store.socket().exists()
    }
}
