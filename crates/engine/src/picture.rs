//! What is known of a picture by its bytes.
//!
//! Owns which bytes are pictures, and how large they may be. Must never decode one.

use imagesize::ImageType;
use outrigger_agent::{Digest, MediaType, Picture, limits};

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
