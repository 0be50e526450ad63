//! Documents of images, for fuzzing: refused, or what comes out is within the limits.

use super::ImageDigest;
use super::manifest::{self, Document};
use crate::limits;

/// Reads bytes as each kind of document: up to the first NUL as a manifest or an index,
/// and what follows as a configuration.
///
/// # Panics
/// If more comes out than limits allow: a finding.
pub fn document(bytes: &[u8]) {
    let (document, config) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, bytes),
    };
    if let Ok(configured) = manifest::configuration(config) {
        assert!((1..=limits::IMAGE_LAYERS_MAX).contains(&configured.diffs.len()));
        assert!(configured.workdir.is_none_or(|dir| dir.starts_with('/')));
        assert!(configured.env.iter().all(|pair| pair.contains('=') && !pair.contains('\0')));
    }
    match manifest::parse(document) {
        Ok(Document::Index(index)) => {
            let _ = manifest::choose(&index).map(manifest::Descriptor::digest);
            let count = index.len();
            assert!(manifest::candidates(index).len() <= count);
        }
        Ok(Document::Manifest(parts)) => {
            let _ = parts.config.digest();
            if let Ok(image) = manifest::image(ImageDigest::of(document), &parts, config) {
                assert!((1..=limits::IMAGE_LAYERS_MAX).contains(&image.layers.len()));
                let fits = |length| length <= limits::LAYER_BLOB_BYTES_MAX;
                assert!(image.layers.iter().all(|layer| fits(layer.length)));
            }
        }
        Err(_) => {}
    }
}
