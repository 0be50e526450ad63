//! What of pictures a session takes: what its model sees, and what a request has room for.

use imagesize::ImageType;
use outrigger_agent::{Digest, MediaType, Picture, limits};
use outrigger_model::sees_pictures;

use crate::{Engine, Error};

/// Why some bytes can't be shown to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PictureFault {
    /// They are of no kind that models look at.
    #[error("{0} is no picture: no PNG, JPEG, GIF or WebP")]
    NoPicture(String),
    /// They begin as a picture does.
    #[error("{0} is cut short or damaged: it does not say how large it is")]
    Damaged(String),
    /// There are more than [`limits::PICTURE_BYTES_MAX`].
    #[error("{name} has {bytes} bytes; a picture may have {}", limits::PICTURE_BYTES_MAX)]
    TooLong {
        /// The name of the picture.
        name: String,
        /// Its size.
        bytes: u64,
    },
    /// A side is longer than [`limits::PICTURE_EDGE_PX_MAX`].
    #[error(
        "{name} has {width} × {height} pixels; a side may have {}",
        limits::PICTURE_EDGE_PX_MAX
    )]
    TooWide {
        /// The name of the picture.
        name: String,
        /// Its columns.
        width: u32,
        /// Its rows.
        height: u32,
    },
}

/// What a file is by its first 12 bytes, if models look at such a thing.
#[must_use]
pub fn media_type(head: &[u8]) -> Option<MediaType> {
    match imagesize::image_type(head).ok()? {
        ImageType::Png => Some(MediaType::Png),
        ImageType::Jpeg => Some(MediaType::Jpeg),
        ImageType::Gif => Some(MediaType::Gif),
        ImageType::Webp => Some(MediaType::WebP),
        _ => None,
    }
}

/// What is known of a picture by its bytes, of which only the head is looked at.
///
/// # Errors
/// It is none, or too large.
pub fn picture(name: &str, content: &[u8]) -> Result<Picture, PictureFault> {
    let named = || name.to_owned();
    let media_type = media_type(content).ok_or_else(|| PictureFault::NoPicture(named()))?;
    let bytes = content.len() as u64;
    if bytes > limits::PICTURE_BYTES_MAX {
        return Err(PictureFault::TooLong { name: named(), bytes });
    }
    let measures = imagesize::blob_size(content)
        .ok()
        .and_then(|size| Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?)));
    let measures = measures.filter(|(width, height)| *width > 0 && *height > 0);
    let (width, height) = measures.ok_or_else(|| PictureFault::Damaged(named()))?;
    if width.max(height) > limits::PICTURE_EDGE_PX_MAX {
        return Err(PictureFault::TooWide { name: named(), width, height });
    }
    Ok(Picture { digest: Digest::of(content), media_type, bytes, width, height, name: named() })
}

impl Engine {
    /// Stores pictures by their names and bytes, before a message has them.
    ///
    /// # Errors
    /// [`Error::Picture`], [`Error::TooManyPictures`], [`Error::Blob`].
    pub async fn keep_pictures(
        &self,
        shown: Vec<(String, Vec<u8>)>,
    ) -> Result<Vec<Picture>, Error> {
        let (count, max) = (shown.len(), limits::PICTURES_PER_MESSAGE_MAX);
        if count > max {
            return Err(Error::TooManyPictures { count, max });
        }
        let known = shown.iter().map(|(name, content)| picture(name, content));
        let known = known.collect::<Result<Vec<_>, _>>()?;
        for (_, content) in shown {
            self.parts.blobs.put(content).await.map_err(Error::Blob)?;
        }
        Ok(known)
    }

    /// The bytes of a picture.
    ///
    /// # Errors
    /// [`Error::Blob`].
    pub async fn picture_bytes(&self, picture: &Picture) -> Result<Vec<u8>, Error> {
        self.parts.blobs.get(&picture.digest).await.map_err(Error::Blob)
    }
}

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
