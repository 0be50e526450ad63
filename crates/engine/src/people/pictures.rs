//! What of pictures a session takes: what its model sees, and what a request has room for.

use outrigger_agent::{Picture, limits};
use outrigger_model::sees_pictures;

use crate::Error;

/// Whether pictures can come to those that a model is shown already.
///
/// # Errors
/// The model sees none, or there are too many of them for a message or for a conversation.
pub fn ensure_shown<'a>(
    model: &str,
    before: impl Iterator<Item = &'a Picture>,
    pictures: &'a [Picture],
) -> Result<(), Error> {
    if pictures.is_empty() {
        return Ok(());
    }
    if !sees_pictures(model) {
        return Err(Error::SeesNoPictures(model.to_owned()));
    }
    let (count, max) = (pictures.len(), limits::PICTURES_PER_MESSAGE_MAX);
    if count > max {
        return Err(Error::TooManyPictures { count, max });
    }
    let (count, bytes) = before.chain(pictures).fold((0_usize, 0_u64), |(count, bytes), it| {
        (count.saturating_add(1), bytes.saturating_add(it.bytes))
    });
    if count > limits::PICTURES_MAX || bytes > limits::PICTURES_BYTES_MAX {
        return Err(Error::PicturesTooLarge { count, bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_agent::{Digest, MediaType};

    fn pictures(count: usize, bytes: u64) -> Vec<Picture> {
        let (digest, name) = (Digest::of(b""), "shot.png".to_owned());
        let media_type = MediaType::Png;
        vec![Picture { digest, media_type, bytes, width: 1, height: 1, name }; count]
    }

    #[test]
    fn what_a_model_is_shown_has_limits_and_a_model_that_sees_nothing_is_shown_nothing() {
        let shown = |model, (before, bytes), count| {
            let (before, more) = (pictures(before, bytes), pictures(count, bytes));
            ensure_shown(model, before.iter(), &more).map_err(|error| error.to_string())
        };
        assert_eq!(shown("m", (10, 7), 10), Ok(()));
        for (told, count, bytes) in [
            ("11 pictures; a message may have 10", (0, 7), 11),
            ("21 pictures of 147 bytes", (11, 7), 10),
            ("3 pictures of 15728640 bytes", (1, 5 << 20), 2),
        ] {
            let error = shown("m", count, bytes).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        assert_eq!(shown("gpt-oss:20b", (0, 7), 0), Ok(()));
        let error = shown("gpt-oss:20b", (0, 7), 1).unwrap_err();
        assert_eq!(error, "gpt-oss:20b does not see pictures");
    }
}
