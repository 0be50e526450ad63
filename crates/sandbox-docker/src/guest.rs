//! The guest program, in a volume that all sandboxes of an owner see read-only.
//!
//! Owns how it gets there: once for each digest of the program.

use outrigger_sandbox::Error;
use sha2::{Digest as _, Sha256};

use crate::copy;
use crate::engine::{Engine, Labels};
use crate::names::Store;
use crate::store::{self, Program};

/// Where it is inside, as a directory and as a program.
pub(crate) const DIR: &str = "/var/outrigger/guest";
/// The program in that directory.
const NAME: &str = "outrigger-guest";
/// The program's path inside.
pub(crate) const PATH: &str = "/var/outrigger/guest/outrigger-guest";

/// The store of a program.
pub(crate) fn store(program: &[u8]) -> Store {
    let digest = Sha256::digest(program);
    Store::Guest(digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// A volume with the program.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) volume: String,
    /// What it is labelled with.
    pub(crate) labels: Labels,
}

/// The volume with the program, made if it is not there.
pub(crate) async fn volume(engine: &Engine, program: &[u8], image: &str) -> Result<Volume, Error> {
    let store = store(program);
    let making = match store::find::<Program>(engine, &store).await? {
        Some(found) => found.making,
        None => {
            let making = store::begin(engine, &store, image).await?;
            let archive = copy::program(NAME, program)
                .map_err(|error| Error::Backend(format!("the guest can't be packed: {error}")))?;
            engine.put(&making.maker.container, crate::maker::DISK, archive).await?;
            making.seal(&Program {}).await?.0.making
        }
    };
    let (part, _) = store.parts()[0];
    let labels = store::labels(&engine.owner, &store, &making);
    Ok(Volume { volume: store.volume(&engine.owner, part, &making), labels })
}
