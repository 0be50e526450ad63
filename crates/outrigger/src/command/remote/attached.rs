//! Pictures that a message at a server names, until it is sent.

use outrigger_agent::{Digest, Message, Picture};
use outrigger_api::AttachedPicture;
use std::collections::HashMap;
use std::sync::Mutex;

use crate::exit::Outcome;
use crate::picture::PictureFile;

/// What pictures are that no message was sent with yet.
#[derive(Debug, Default)]
pub(super) struct UnsentPictures(Mutex<HashMap<Digest, AttachedPicture>>);

impl UnsentPictures {
    /// Keeps files for the message that has what is known of them.
    pub(super) fn keep(&self, files: &[PictureFile]) -> Outcome<Vec<Picture>> {
        let mut unsent = self.0.lock().expect("nobody panics while they hold it");
        let kept = files.iter().map(|file| {
            let picture = file.picture()?;
            unsent.insert(picture.digest.clone(), file.attached()?);
            Ok(picture)
        });
        kept.collect()
    }

    /// What comes with a message that is sent now.
    pub(super) fn take(&self, message: &Message) -> Vec<AttachedPicture> {
        let mut unsent = self.0.lock().expect("nobody panics while they hold it");
        message.pictures.iter().filter_map(|picture| unsent.remove(&picture.digest)).collect()
    }
}
