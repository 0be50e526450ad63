//! Pictures that come with a message, by what is known of them.
//!
//! Owns what one counts for where nobody counted. Must never hold what a picture shows: that
//! is a blob.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::{Digest, limits};

/// A picture that came with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The blob that it is; at most [`limits::PICTURE_BYTES_MAX`].
    pub digest: Digest,
    /// What its bytes are.
    pub media_type: MediaType,
    /// Its size.
    pub bytes: u64,
    /// Its columns of pixels; at most [`limits::PICTURE_EDGE_PX_MAX`].
    pub width: u32,
    /// Its rows of pixels; at most [`limits::PICTURE_EDGE_PX_MAX`].
    pub height: u32,
    /// The name of its file, without directories.
    pub name: String,
}

/// What every provider whose models see takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaType {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// GIF; of one that moves providers look at the first frame, or refuse it.
    #[serde(rename = "image/gif")]
    Gif,
    /// WebP.
    #[serde(rename = "image/webp")]
    WebP,
}

impl MediaType {
    /// As protocols write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }
}

impl Picture {
    /// Tokens that a model takes for it, as far as that can be told: one for 750 pixels, and
    /// what a picture takes at most is the cap, because providers make larger ones smaller.
    /// Both are Anthropic's, of <https://platform.claude.com/docs/en/build-with-claude/vision>;
    /// what others count for a picture of usual size is of the same order.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let pixels = u64::from(self.width).saturating_mul(u64::from(self.height));
        pixels.div_ceil(limits::PIXELS_PER_TOKEN).min(limits::PICTURE_TOKENS_MAX)
    }
}

/// Its name and its measures.
impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} × {}", self.name, self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_counts_by_its_pixels_and_not_by_its_bytes() {
        let of = |width, height| {
            let (digest, name) = (Digest::of(b""), "shot.png".to_owned());
            let media_type = MediaType::Png;
            Picture { digest, media_type, bytes: 5_000_000, width, height, name }.tokens()
        };
        assert_eq!([of(1, 1), of(1_280, 720), of(8_000, 8_000)], [1, 1_229, 4_784]);
    }
}
