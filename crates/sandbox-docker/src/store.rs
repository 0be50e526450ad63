//! Things made of volumes, which are there whole or not at all.
//!
//! Owns how they come to be: volumes of names that nobody else has are made and
//! filled, and then a record is made, an empty volume whose name is that of the thing
//! and whose labels say which volumes it has. The daemon makes one of a name once,
//! so of several that make the same thing at once one wins, and the others throw
//! theirs away. What a crash leaves are volumes that no record names, for the
//! collector. Deleting begins with the record.

use outrigger_sandbox::{DiskOrigin, Error, SandboxId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::clock::now_ms;
use crate::engine::{Engine, Labels};
use crate::maker::{self, Maker, VolumeMount};
use crate::names::{self, Part, Store};

/// What the record of a sandbox's disk says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Disk {
    /// What it was made from.
    pub(crate) origin: DiskOrigin,
    /// The template that it stands on.
    pub(crate) template: String,
    /// When it was made.
    pub(crate) made_at_ms: u64,
    /// When it is to be destroyed, counted from then.
    pub(crate) age_ms_max: Option<u64>,
}

impl Disk {
    /// When it is to be destroyed, in milliseconds since 1970.
    pub(crate) fn old_at_ms(&self) -> Option<u64> {
        self.age_ms_max.map(|age_ms| self.made_at_ms.saturating_add(age_ms))
    }
}

/// What the record of a snapshot says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapshotLabel {
    /// The sandbox that it was taken of.
    pub(crate) sandbox: SandboxId,
    /// The template that it stands on.
    pub(crate) template: String,
    /// When it was taken.
    pub(crate) taken_at_ms: u64,
    /// Digest of all that is in it, see [`crate::copy`].
    pub(crate) digest: String,
}

/// The record of the guest program says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {}

/// A store that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedStore<R> {
    /// Which making of it won.
    pub(crate) making: String,
    /// What its record says.
    pub(crate) record: R,
}

/// Volumes that are being made, in the view of a container that is never started.
#[derive(Debug)]
pub(crate) struct PendingVolumes<'a> {
    engine: &'a Engine,
    store: &'a Store,
    making: String,
    /// Sees them below [`maker::DISK`].
    pub(crate) maker: Maker,
}

fn read<R: DeserializeOwned>(labels: &Labels) -> Option<SealedStore<R>> {
    let making = labels.get(names::MAKING)?.clone();
    let record = serde_json::from_str(labels.get(names::RECORD)?).ok()?;
    Some(SealedStore { making, record })
}

/// What a record says, from its labels.
pub(crate) fn found<R: DeserializeOwned>(
    engine: &Engine,
    name: &str,
    labels: &Labels,
) -> Result<SealedStore<R>, Error> {
    let ours = labels.get(names::OWNER).is_some_and(|owner| *owner == engine.owner);
    read(labels).filter(|_| ours).ok_or_else(|| {
        Error::Backend(format!("the volume `{name}` was not made by this backend; remove it"))
    })
}

/// The store as it is there.
pub(crate) async fn find<R: DeserializeOwned>(
    engine: &Engine,
    store: &Store,
) -> Result<Option<SealedStore<R>>, Error> {
    let name = store.record(&engine.owner);
    match engine.find_volume(&name).await? {
        Some(volume) => found(engine, &name, &volume.labels).map(Some),
        None => Ok(None),
    }
}

/// Begins to make a store.
pub(crate) async fn begin<'a>(
    engine: &'a Engine,
    store: &'a Store,
    image: &str,
) -> Result<PendingVolumes<'a>, Error> {
    let making = maker::fresh();
    let mut labels = labels(&engine.owner, store, &making);
    labels.extend(maker::made_here(&making));
    labels.insert(names::MADE_AT.to_owned(), now_ms().to_string());
    let volumes = mounted(engine, store, &making, maker::Access::Write, &labels);
    let made = Maker::make(engine, (store, Part::Maker), image, &making, volumes).await;
    match made {
        Ok(maker) => Ok(PendingVolumes { engine, store, making, maker }),
        Err(error) => {
            discard(engine, store, &making).await?;
            Err(error)
        }
    }
}

/// A view of the volumes of a store that is there, for reading.
pub(crate) async fn reader(
    engine: &Engine,
    store: &Store,
    image: &str,
    making: &str,
) -> Result<Maker, Error> {
    let labels = labels(&engine.owner, store, making);
    let volumes = mounted(engine, store, making, maker::Access::Read, &labels);
    Maker::make(engine, (store, Part::Reader), image, &maker::fresh(), volumes).await
}

/// A view of one making of a store, and the beginning of another store, at once,
/// because each takes the daemon its time.
pub(crate) async fn read_and_begin<'a>(
    engine: &'a Engine,
    (from, from_making): (&Store, &str),
    store: &'a Store,
    image: &str,
) -> Result<(Maker, PendingVolumes<'a>), Error> {
    let read = reader(engine, from, image, from_making);
    match tokio::join!(read, begin(engine, store, image)) {
        (Ok(reader), Ok(making)) => Ok((reader, making)),
        (Ok(reader), Err(error)) => {
            reader.remove(engine).await?;
            Err(error)
        }
        (Err(error), Ok(making)) => {
            making.abandon().await?;
            Err(error)
        }
        (Err(error), Err(_)) => Err(error),
    }
}

/// The labels of the volumes of a store.
pub(crate) fn labels(owner: &str, store: &Store, making: &str) -> Labels {
    let mut labels = store.labels(owner, Part::Volume);
    labels.insert(names::MAKING.to_owned(), making.to_owned());
    labels
}

/// The volumes of a store and where a maker sees them.
fn mounted(
    engine: &Engine,
    store: &Store,
    making: &str,
    access: maker::Access,
    labels: &Labels,
) -> Vec<VolumeMount> {
    let parts = store.parts().into_iter();
    parts
        .map(|(part, below)| VolumeMount {
            volume: store.volume(&engine.owner, part, making),
            target: format!("{}{below}", maker::DISK),
            access,
            labels: labels.clone(),
        })
        .collect()
}

async fn discard(engine: &Engine, store: &Store, making: &str) -> Result<(), Error> {
    for (part, _) in store.parts() {
        engine.remove_volume(&store.volume(&engine.owner, part, making)).await?;
    }
    Ok(())
}

impl PendingVolumes<'_> {
    /// Makes it the store, unless another making was first: then that is the store.
    /// Whether this one is.
    pub(crate) async fn seal<R>(self, record: &R) -> Result<(SealedStore<R>, bool), Error>
    where
        R: Serialize + DeserializeOwned,
    {
        let Self { engine, store, making, maker } = self;
        let name = store.record(&engine.owner);
        let text = serde_json::to_string(record)
            .map_err(|error| Error::Backend(format!("a record can't be written: {error}")))?;
        let mut labels = store.labels(&engine.owner, Part::Record);
        labels.insert(names::MAKING.to_owned(), making.clone());
        labels.insert(names::RECORD.to_owned(), text);
        let volume = engine.volume(&name, labels).await?;
        let found = found::<R>(engine, &name, &volume.labels)?;
        maker.remove(engine).await?;
        let won = found.making == making;
        if !won {
            discard(engine, store, &making).await?;
        }
        Ok((found, won))
    }

    /// Throws away what was made.
    pub(crate) async fn abandon(self) -> Result<(), Error> {
        self.maker.remove(self.engine).await?;
        discard(self.engine, self.store, &self.making).await
    }
}

/// Deletes a store. One that is not there is fine; a volume that a container uses stays
/// for the collector.
pub(crate) async fn remove(engine: &Engine, store: &Store) -> Result<(), Error> {
    let name = store.record(&engine.owner);
    let Some(volume) = engine.find_volume(&name).await? else { return Ok(()) };
    let making = found::<serde_json::Value>(engine, &name, &volume.labels)?.making;
    engine.remove_volume(&name).await?;
    discard(engine, store, &making).await
}
