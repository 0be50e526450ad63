//! All sandboxes of a state directory: the disks, and the lives over them.
//!
//! Owns what is known of each without asking anybody, read once when the spawner
//! starts: it alone changes the state directory from then on. Makes guests, and
//! nothing of a request.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, UNIX_EPOCH};

use outrigger_sandbox::{
    CreateSpec, DiskOrigin, Error, Generation, Isolation, LifecycleState, ListedSandbox, SandboxId,
    SnapshotId,
};
use rustix::fs::{Gid, Timespec, Timestamps, Uid};

use super::disk_record::{DiskRecord, now_ms};
use super::kill_retry::KillRetry;
use super::suspend_record::{self, SuspendRecord};
use crate::limits;
use crate::spawner::backend;
use crate::spawner::create::pool::PreforkPool;
use crate::spawner::create::prefork::GuestTemplate;
use crate::spawner::create::running::RunningSandbox;
use crate::spawner::create::starting::{GuestConfig, StartingGuest, spawn};
use crate::spawner::event_loop::poll::Poller;
use crate::spawner::layers::Layer;
use crate::spawner::layers::origin::base_of;
use crate::spawner::layers::snapshots::{self, SnapshotRecord};
use crate::spawner::quota::disk_usage::QuotaState;
use crate::spawner::quota::ids::{self, IdRange};
use crate::spawner::record::{self, Durability};
use crate::spawner::rootfs::{Base, LowerDir, PreparedRoot, RootPlan, folders};
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
    pub(crate) running: BTreeMap<SandboxId, RunningSandbox>,
    /// Running sandboxes that were told to end.
    pub(crate) kill_retries: BTreeMap<SandboxId, KillRetry>,
    pub(crate) disks: BTreeMap<SandboxId, Disk>,
    pub(crate) snapshots: BTreeMap<SnapshotId, SnapshotRecord>,
    /// The record of one can't be read.
    pub(crate) damaged_snapshot: bool,
    /// Disks whose record is behind what is known of them, and whether to write it
    /// failed already.
    pub(crate) unsettled: BTreeMap<SandboxId, bool>,
    /// Layers that nothing names yet.
    pub(crate) making: BTreeSet<Layer>,
    /// Ranges of ids that disks have, living or not.
    ranges: BTreeSet<u32>,
    pub(crate) poller: Poller,
}

/// What a sandbox is made of: what was asked for, its disk, what that stands on, its life.
#[derive(Debug)]
pub(crate) struct SandboxSpec<'a> {
    pub(crate) disk_dir: &'a DiskDir,
    pub(crate) spec: &'a CreateSpec,
    /// Paths of the host, seen read-only.
    pub(crate) read_only: &'a [PathBuf],
    pub(crate) template: &'a str,
    /// What the disk stands on, newest first.
    pub(crate) lowers: Vec<LowerDir>,
    pub(crate) generation: Generation,
    /// What an earlier guest of the same life handed over.
    pub(crate) kept: Option<OwnedFd>,
}

/// A guest on its way, and what it is to be.
#[derive(Debug)]
pub(crate) struct StartingSandbox {
    guest: StartingGuest,
    generation: Generation,
    spec: CreateSpec,
    read_only: Vec<PathBuf>,
    ids: IdRange,
}

fn not_started(error: io::Error) -> Error {
    Error::Backend(format!("the sandbox could not be started: {error}"))
}

impl StartingSandbox {
    /// Readable when it has something to say.
    pub(crate) fn control(&self) -> &OwnedFd {
        self.guest.control()
    }

    /// Hears what it has to say. `true`: it serves.
    pub(crate) fn hear(&mut self) -> Result<bool, Error> {
        self.guest.hear().map_err(not_started)
    }

    /// It serves.
    pub(crate) fn into_running(self) -> RunningSandbox {
        let Self { guest, generation, spec, read_only, ids } = self;
        let (guest, group) = guest.into_running();
        RunningSandbox {
            guest,
            generation,
            group,
            spec,
            read_only,
            active: Instant::now(),
            quota: QuotaState::default(),
            ids,
            poll_keys: None,
        }
    }

    /// Ends it.
    pub(crate) fn discard(self) {
        self.guest.discard();
    }
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
        let snapshots::SnapshotIndex { all, damaged } = snapshots::load(&store)?;
        let pool = PreforkPool::new(template);
        let mut sandboxes = Self {
            snapshots: all,
            damaged_snapshot: damaged,
            store,
            isolation,
            pool,
            prepared: None,
            boot: suspend_record::boot()?,
            running: BTreeMap::new(),
            kill_retries: BTreeMap::new(),
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
        sandbox: SandboxSpec<'_>,
    ) -> Result<StartingSandbox, Error> {
        let SandboxSpec { disk_dir, spec, read_only, template, lowers, generation, kept } = sandbox;
        let base = base_of(template);
        let (ids, lowers) = self
            .prepare(disk_dir, base, lowers)
            .map_err(|error| backend("cannot prepare the disk", &error))?;
        let staging = self.store.staging();
        // An image has its own folders.
        let served = if base == Base::HostTools { &spec.served[..] } else { &[] };
        let prepared = match self.prepared.take() {
            Some(last) if last.serves(read_only, served) => last,
            last => PreparedRoot::new(&staging, read_only, folders(last.as_ref(), served))
                .map_err(|error| backend("cannot prepare the root", &error))?,
        };
        let plan = RootPlan {
            staging,
            base,
            disk_dir: disk_dir.clone(),
            lowers,
            owner: ids.guest(),
            agent: ids.agent(),
            tty_group: ids.tty_group(),
            shm_bytes: limits::SHM_BYTES_MAX.min(spec.memory_bytes_max / 2),
            served: spec.served.clone(),
        };
        let config = GuestConfig {
            plan: &plan,
            prepared: self.prepared.insert(prepared),
            ids: &ids,
            spec,
            generation: &generation,
            kept: kept.as_ref(),
        };
        let guest = spawn(&config, &mut self.pool).map_err(not_started)?;
        let (spec, read_only) = (spec.clone(), read_only.to_owned());
        Ok(StartingSandbox { guest, generation, spec, read_only, ids })
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
        make_upper(disk_dir, ids.guest())?;
        private(&disk_dir.work())?;
        for lower in &mut lowers {
            lower.first_id = lower.first_id.filter(|first| *first != ids.guest());
        }
        Ok((ids, lowers))
    }

    /// Reaps a guest, whether it ended or not.
    pub(crate) fn reap(&mut self, id: &SandboxId) -> Option<CreateSpec> {
        let running = self.running.remove(id)?;
        self.kill_retries.remove(id);
        let spec = running.spec.clone();
        running.reap(&mut self.poller);
        Some(spec)
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
        self.running.values().for_each(RunningSandbox::kill);
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

/// Makes the tree of a disk that stands on layers, whose top directory is what is seen
/// as that of all of them.
pub(crate) fn make_upper(disk_dir: &DiskDir, owner: u32) -> io::Result<()> {
    let upper = disk_dir.upper();
    match fs::create_dir(&upper) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    fs::set_permissions(&upper, fs::Permissions::from_mode(0o755))?;
    rustix::fs::chown(&upper, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
    Ok(())
}
