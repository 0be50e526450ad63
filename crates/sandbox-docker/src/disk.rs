//! The disk of a new sandbox: empty, or a copy of what was kept.
//!
//! Owns the verification of a copy: what is not as it was when it was kept never
//! becomes a disk.

use outrigger_sandbox::{CreateSpec, DiskOrigin, Error};

use crate::clock::now_ms;
use crate::config::Config;
use crate::copy;
use crate::engine::Engine;
use crate::names::Store;
use crate::store::{self, Disk, SealedStore, SnapshotLabel};

/// Makes the disk of a sandbox from its origin.
pub(crate) async fn make(
    engine: &Engine,
    config: &Config,
    store: &Store,
    spec: &CreateSpec,
) -> Result<SealedStore<Disk>, Error> {
    let record = |template: &str| Disk {
        origin: spec.origin.clone(),
        template: template.to_owned(),
        made_at_ms: now_ms(),
        age_ms_max: spec.lifetime.age_ms_max,
    };
    match &spec.origin {
        DiskOrigin::Template(template) => {
            let image = config.image(template)?;
            let making = store::begin(engine, store, image).await?;
            copy::fresh_disk(engine, &making.maker.container, store).await?;
            Ok(making.seal(&record(template)).await?.0)
        }
        DiskOrigin::Snapshot(name) => {
            let from = Store::Snapshot(name.clone());
            let kept = store::find::<SnapshotLabel>(engine, &from).await?;
            let kept = kept.ok_or_else(|| Error::Absent {
                what: "snapshot".to_owned(),
                name: name.to_string(),
            })?;
            let image = config.image(&kept.record.template)?;
            let (reader, making) =
                Box::pin(store::read_and_begin(engine, (&from, &kept.making), store, image))
                    .await?;
            let target = (&*making.maker.container, store);
            let copied = copy::copy(engine, (&reader.container, &from), Some(target)).await;
            reader.remove(engine).await?;
            let digest = match copied {
                Ok(digest) if digest == kept.record.digest => None,
                Ok(digest) => Some(Ok(digest)),
                Err(error) => Some(Err(error)),
            };
            let Some(wrong) = digest else {
                return Ok(making.seal(&record(&kept.record.template)).await?.0);
            };
            making.abandon().await?;
            Err(Error::Altered {
                name: name.to_string(),
                detail: format!(
                    "its digest is {}, and was {} when it was taken; remove it",
                    wrong?, kept.record.digest
                ),
            })
        }
    }
}
