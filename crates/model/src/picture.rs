//! Pictures on the wires: base64, which is made while a body is written.
//!
//! Must never keep a picture as text.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use outrigger_agent::{Digest, MediaType};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// What pictures are, by their digests.
pub type PictureBytes = BTreeMap<Digest, Vec<u8>>;

/// A picture that a model is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptPicture<'a> {
    pub(crate) media_type: MediaType,
    pub(crate) content: &'a [u8],
}

impl<'a> PromptPicture<'a> {
    /// Its bytes alone.
    pub(crate) fn base64(self) -> Base64<'a> {
        Base64(self.content)
    }

    /// As a `data:` URL.
    pub(crate) fn url(self) -> DataUrl<'a> {
        DataUrl(self)
    }
}

/// Bytes that are written in base64, with its padding.
#[derive(Debug)]
pub(crate) struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// A picture that is written as an address that holds it (RFC 2397).
#[derive(Debug)]
pub(crate) struct DataUrl<'a>(PromptPicture<'a>);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PromptPicture { media_type, content } = self.0;
        let data = Base64Display::new(content, &STANDARD);
        serializer.collect_str(&format_args!("data:{};base64,{data}", media_type.as_str()))
    }
}
