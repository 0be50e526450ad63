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
    Error, Generation, Isolation, ListedSandbox, Origin, SandboxId, SnapshotId, Spec, State,
};
use rustix::fs::{Gid, Timespec, Timestamps, Uid};

use super::about::{About, now_ms};
use super::backend;
use super::birth::{Order, Unborn, conceive};
use super::blank::Mould;
use super::cold::{self, Cold};
use super::doom::Doom;
use super::ids::{self, Lease};
use super::layers::Layer;
use super::live::Living;
use super::origin::base_of;
use super::record::{self, Outlasts};
use super::root::{Base, Lower, Plan, Prepared, folders};
use super::snapshots::{self, Kept};
use super::stock::Stock;
use super::store::{self, Place, Store, private};
use super::survey::Usage;
use super::waits::Waits;
use crate::limits;

/// What is known of a disk.
#[derive(Debug)]
pub(super) struct Disk {
    /// `None`: its record is damaged.
    pub(super) about: Option<About>,
    /// When it was last asked for, in milliseconds since 1970.
    pub(super) used_at_ms: u64,
    /// The life that is suspended over it.
    pub(super) cold: Option<Generation>,
}

impl Disk {
    /// When it was there for as long as it may be, in milliseconds since 1970.
    pub(super) fn old_at_ms(&self) -> Option<u64> {
        let about = self.about.as_ref()?;
        Some(about.made_at_ms.saturating_add(about.lifetime.age_ms_max?))
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sandboxes {
    pub(super) store: Store,
    pub(super) isolation: Isolation,
    stock: Stock,
    /// What the last root was made with; a new list of paths takes its place.
    pub(super) prepared: Option<Prepared>,
    /// Which boot of the host this is.
    pub(super) boot: String,
    pub(super) living: BTreeMap<SandboxId, Living>,
    /// Those of them that were told to end.
    pub(super) doomed: BTreeMap<SandboxId, Doom>,
    pub(super) disks: BTreeMap<SandboxId, Disk>,
    pub(super) snapshots: BTreeMap<SnapshotId, Kept>,
    /// The record of one can't be read.
    pub(super) damaged_snapshot: bool,
    /// Disks whose record is behind what is known of them, and whether to write it
    /// failed already.
    pub(super) unsettled: BTreeMap<SandboxId, bool>,
    /// Layers that nothing names yet.
    pub(super) making: BTreeSet<Layer>,
    /// Ranges of ids that disks have, living or not.
    ranges: BTreeSet<u32>,
    pub(super) waits: Waits,
}

/// What a guest is made for.
#[derive(Debug)]
pub(super) struct Birth<'a> {
    pub(super) place: &'a Place,
    pub(super) spec: &'a Spec,
    /// Paths of the host, seen read-only.
    pub(super) read_only: &'a [PathBuf],
    pub(super) template: &'a str,
    /// What the disk stands on, newest first.
    pub(super) lowers: Vec<Lower>,
    pub(super) generation: Generation,
    /// What an earlier guest of the same life handed over.
    pub(super) kept: Option<OwnedFd>,
}

/// A guest on its way, and what it is to be.
#[derive(Debug)]
pub(super) struct Expected {
    unborn: Unborn,
    generation: Generation,
    spec: Spec,
    read_only: Vec<PathBuf>,
    lease: Lease,
}

fn not_started(error: io::Error) -> Error {
    Error::Backend(format!("the sandbox could not be started: {error}"))
}

impl Expected {
    /// Readable when it has something to say.
    pub(super) fn control(&self) -> &OwnedFd {
        self.unborn.control()
    }

    /// Hears what it has to say. `true`: it serves.
    pub(super) fn hear(&mut self) -> Result<bool, Error> {
        self.unborn.hear().map_err(not_started)
    }

    /// It serves.
    pub(super) fn born(self) -> Living {
        let Self { unborn, generation, spec, read_only, lease } = self;
        let (born, group) = unborn.born();
        Living {
            born,
            generation,
            group,
            spec,
            read_only,
            active: Instant::now(),
            usage: Usage::default(),
            lease,
            waits: None,
        }
    }

    /// Ends it.
    pub(super) fn discard(self) {
        self.unborn.discard();
    }
}

impl Sandboxes {
    /// Reads what is in a state directory, and brings it in order.
    pub(super) fn open(state: PathBuf, isolation: Isolation, mould: Mould) -> io::Result<Self> {
        let store = Store::new(state);
        private(&store.staging())?;
        // What unpacked layers died with its spawner.
        store.discard(&store.incoming())?;
        for dir in [store.sandboxes(), store.layers()] {
            private(&dir)?;
            store::spread(&dir);
        }
        let snapshots::Loaded { all, damaged } = snapshots::load(&store)?;
        let stock = Stock::new(mould);
        let mut sandboxes = Self {
            snapshots: all,
            damaged_snapshot: damaged,
            store,
            isolation,
            stock,
            prepared: None,
            boot: cold::boot()?,
            living: BTreeMap::new(),
            doomed: BTreeMap::new(),
            disks: BTreeMap::new(),
            making: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            ranges: BTreeSet::new(),
            waits: Waits::new()?,
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
        let place = self.store.disk(&id);
        let about = match record::read::<About>(&place.about()) {
            Ok(Some(about)) => Some(about),
            Ok(None) => {
                // The record comes before a guest, so nothing was ever written here.
                self.store.discard(place.dir())?;
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error),
        };
        self.ranges.extend(ids::noted(&place.range()));
        let cold = Cold::read(&place)?.filter(|cold| cold.is_of(&self.boot));
        let used = fs::metadata(place.about())?.modified()?.duration_since(UNIX_EPOCH);
        let used_at_ms = used.map_or(0, |used| u64::try_from(used.as_millis()).unwrap_or(u64::MAX));
        let cold = cold.map(|cold| cold.generation);
        self.disks.insert(id, Disk { about, used_at_ms, cold });
        Ok(())
    }

    /// What is recorded of a disk.
    pub(super) fn about(&self, id: &SandboxId) -> Result<&About, Error> {
        let absent = || Error::Absent { what: "sandbox".to_owned(), name: id.to_string() };
        let disk = self.disks.get(id).ok_or_else(absent)?;
        disk.about.as_ref().ok_or_else(|| Error::Altered {
            name: id.to_string(),
            detail: "the record of what it is is damaged; it can only be destroyed".to_owned(),
        })
    }

    /// Writes the record of a disk.
    pub(super) fn note(
        &mut self,
        id: &SandboxId,
        about: About,
        outlasts: Outlasts,
    ) -> io::Result<()> {
        let place = self.store.disk(id);
        private(place.dir())?;
        record::write(&place.about(), &about, outlasts)?;
        let cold = self.disks.remove(id).and_then(|disk| disk.cold);
        let disk = Disk { about: Some(about), used_at_ms: now_ms(), cold };
        self.disks.insert(id.clone(), disk);
        Ok(())
    }

    /// Notes that somebody asked for a disk just now.
    pub(super) fn touch(&mut self, id: &SandboxId) {
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
    pub(super) fn list(&self) -> Vec<ListedSandbox> {
        self.disks.iter().map(|(id, disk)| self.listed(id, disk)).collect()
    }

    fn listed(&self, id: &SandboxId, disk: &Disk) -> ListedSandbox {
        let (state, generation) = match self.living.get(id) {
            Some(living) if living.group.is_frozen() => (State::Frozen, Some(&living.generation)),
            Some(living) => (State::Running, Some(&living.generation)),
            None => match &disk.cold {
                Some(generation) => (State::Cold, Some(generation)),
                None => (State::Dead, None),
            },
        };
        let about = disk.about.as_ref();
        ListedSandbox {
            id: id.clone(),
            state,
            generation: generation.cloned(),
            origin: about.map_or_else(Origin::default, |about| about.origin.clone()),
            made_at_ms: about.map_or(0, |about| about.made_at_ms),
            used_at_ms: disk.used_at_ms,
        }
    }

    /// Has a guest begin over a disk that was verified.
    pub(super) fn expect(&mut self, birth: Birth<'_>) -> Result<Expected, Error> {
        let Birth { place, spec, read_only, template, lowers, generation, kept } = birth;
        let base = base_of(template);
        let (lease, lowers) = self
            .prepare(place, base, lowers)
            .map_err(|error| backend("cannot prepare the disk", &error))?;
        let staging = self.store.staging();
        // An image has its own folders.
        let served = if base == Base::HostTools { &spec.served[..] } else { &[] };
        let prepared = match self.prepared.take() {
            Some(last) if last.serves(read_only, served) => last,
            last => Prepared::new(&staging, read_only, folders(last.as_ref(), served))
                .map_err(|error| backend("cannot prepare the root", &error))?,
        };
        let plan = Plan {
            staging,
            base,
            place: place.clone(),
            lowers,
            owner: lease.guest(),
            agent: lease.agent(),
            tty_group: lease.tty_group(),
            shm_bytes: limits::SHM_BYTES_MAX.min(spec.memory_bytes_max / 2),
            served: spec.served.clone(),
        };
        let order = Order {
            plan: &plan,
            prepared: self.prepared.insert(prepared),
            lease: &lease,
            spec,
            generation: &generation,
            kept: kept.as_ref(),
        };
        let unborn = conceive(&order, &mut self.stock).map_err(not_started)?;
        let (spec, read_only) = (spec.clone(), read_only.to_owned());
        Ok(Expected { unborn, generation, spec, read_only, lease })
    }

    /// Whether something was put off until there is time.
    pub(super) fn has_put_off(&self) -> bool {
        self.unsettled.values().any(|failed| !failed) || !self.stock.mould.home.is_tidy()
    }

    /// Does a part of what was put off.
    pub(super) fn catch_up(&mut self) {
        let Some((id, _)) = self.unsettled.iter().find(|(_, failed)| !**failed) else {
            return self.stock.mould.home.tidy();
        };
        let id = id.clone();
        if self.settle(&id).is_err() {
            // It is tried again before anything else becomes of the disk.
            self.unsettled.insert(id, true);
        }
    }

    /// One more blank is made for the one that was used.
    pub(super) fn refill(&mut self) {
        if let Some(prepared) = &self.prepared {
            self.stock.refill(&prepared.namespace);
        }
    }

    /// Makes the directories of a disk where they are missing, with their owners.
    fn prepare(
        &mut self,
        place: &Place,
        base: Base,
        mut lowers: Vec<Lower>,
    ) -> io::Result<(Lease, Vec<Lower>)> {
        private(place.dir())?;
        let lease = match self.isolation {
            Isolation::RootRange => Lease::take(&place.range(), &self.ranges)?,
            Isolation::RootlessRange => Lease::Shared,
            _ => Lease::Single,
        };
        self.ranges.extend(lease.number());
        if lowers.is_empty() && base == Base::HostTools {
            // Made at its birth, while its process takes time for other things.
            return Ok((lease, lowers));
        }
        make_upper(place, lease.guest())?;
        private(&place.work())?;
        for lower in &mut lowers {
            lower.first_id = lower.first_id.filter(|first| *first != lease.guest());
        }
        Ok((lease, lowers))
    }

    /// Buries a guest, whether it ended or not.
    pub(super) fn bury(&mut self, id: &SandboxId) -> Option<Spec> {
        let living = self.living.remove(id)?;
        self.doomed.remove(id);
        let spec = living.spec.clone();
        living.bury(&mut self.waits);
        Some(spec)
    }

    /// Takes a disk out of sight, so that its name is free. Gives where it is now.
    pub(super) fn discard(&mut self, id: &SandboxId) -> io::Result<Option<String>> {
        let place = self.store.disk(id);
        let number = ids::noted(&place.range());
        let name = self.store.discard(place.dir())?;
        if let Some(number) = number {
            self.ranges.remove(&number);
        }
        self.disks.remove(id);
        self.unsettled.remove(id);
        Ok(name)
    }

    /// Whether there is room for another life.
    pub(super) fn has_room(&self) -> Result<(), Error> {
        if self.living.len() >= limits::SANDBOXES_MAX {
            let max = limits::SANDBOXES_MAX;
            return Err(Error::Backend(format!("{max} sandboxes live already")));
        }
        Ok(())
    }

    /// Ends every guest and leaves nothing on the host but the disks.
    pub(super) fn close(&mut self) {
        for id in self.unsettled.keys().cloned().collect::<Vec<_>>() {
            // Else the next spawner ends what was begun.
            let _ = self.settle(&id);
        }
        // All at once, so that none is waited for while others could end.
        self.living.values().for_each(Living::kill);
        for living in std::mem::take(&mut self.living).into_values() {
            living.bury(&mut self.waits);
        }
        self.stock.close();
        self.stock.mould.groups.close();
    }

    /// Whether the state directory is still there; without it nothing can be found again.
    pub(super) fn has_state(&self) -> bool {
        self.store.socket().exists()
    }
}

/// Makes the tree of a disk that stands on layers, whose top directory is what is seen
/// as that of all of them.
pub(super) fn make_upper(place: &Place, owner: u32) -> io::Result<()> {
    let upper = place.upper();
    match fs::create_dir(&upper) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    fs::set_permissions(&upper, fs::Permissions::from_mode(0o755))?;
    rustix::fs::chown(&upper, Some(Uid::from_raw(owner)), Some(Gid::from_raw(owner)))?;
    Ok(())
}
