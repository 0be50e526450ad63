//! Archives of images, of which no two readers may think differently, and worse ones.
//!
//! Owns how they are written, byte by byte where a library would refuse to. Reads none.

use std::fs::File;
use std::io::{Seek, Write};

use outrigger_sandbox_native::ImageDigest;
use tar::{EntryType, Header};

/// The name that images have in their archives.
pub(crate) const TAG: &str = "outrigger-attack-archive:1";
/// Of a block; see tar(5).
const BLOCK: usize = 512;

/// A layer that is being written. Nothing of what is put in is looked at.
#[derive(Debug, Default)]
pub(crate) struct Layer(Vec<u8>);

impl Layer {
    /// An entry as it is said to be, with bytes that follow it.
    pub(crate) fn entry(
        &mut self,
        kind: EntryType,
        name: &[u8],
        target: &[u8],
        mode: u32,
        size: u64,
        data: &[u8],
    ) {
        let mut header = Header::new_gnu();
        let fields = header.as_old_mut();
        fields.name[..name.len()].copy_from_slice(name);
        fields.linkname[..target.len()].copy_from_slice(target);
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_000_000);
        header.set_size(size);
        // 1:1, the memory, where it is a device. The header has room for that.
        let _ = header.set_device_major(1).and_then(|()| header.set_device_minor(1));
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    /// A regular file.
    pub(crate) fn file(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entry(EntryType::Regular, name.as_bytes(), b"", mode, data.len() as u64, data);
    }

    /// A directory.
    pub(crate) fn dir(&mut self, name: &str, mode: u32) {
        self.entry(EntryType::Directory, name.as_bytes(), b"", mode, 0, b"");
    }

    /// A symbolic link.
    pub(crate) fn link(&mut self, name: &str, target: &str) {
        self.entry(EntryType::Symlink, name.as_bytes(), target.as_bytes(), 0o777, 0, b"");
    }

    /// Records of pax(5) for the entry that follows.
    pub(crate) fn pax(&mut self, records: &[(&str, &str)]) {
        let mut data = String::new();
        for (key, value) in records {
            // The length counts itself.
            let rest = key.len() + value.len() + 3;
            let length = (rest..).find(|all| rest + all.to_string().len() == *all);
            data.push_str(&format!("{} {key}={value}\n", length.unwrap_or_default()));
        }
        let (size, data) = (data.len() as u64, data.as_bytes());
        self.entry(EntryType::XHeader, b"pax", b"", 0o644, size, data);
    }

    /// A symbolic link whose name and target may be of any length.
    pub(crate) fn long_link(&mut self, name: &str, target: &str) {
        self.pax(&[("path", name), ("linkpath", target)]);
        self.link("long", "long");
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Its end.
    pub(crate) fn bytes(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

/// A file without a name that holds these bytes, at its start.
pub(crate) fn file(bytes: &[u8]) -> Result<File, String> {
    let written = tempfile::tempfile().and_then(|mut file| {
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(file)
    });
    written.map_err(|error| format!("no file for an archive: {error}"))
}

/// An image as `docker save` writes them, of layers and the `config` of its configuration.
/// The layers are packed as they are given; their digests are those of `plain`.
pub(crate) fn image(
    layers: &[Vec<u8>],
    plain: &[ImageDigest],
    config: &serde_json::Value,
) -> Vec<u8> {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let digests: Vec<String> = plain.iter().map(ImageDigest::to_string).collect();
    let config = serde_json::json!({
        "architecture": architecture, "os": "linux", "config": config,
        "rootfs": { "type": "layers", "diff_ids": digests },
    });
    let names: Vec<String> =
        (0..layers.len()).map(|number| format!("l{number}/layer.tar")).collect();
    let manifest = serde_json::json!([{ "Config": "c.json", "RepoTags": [TAG], "Layers": names }]);
    let mut all = Layer::default();
    all.file("c.json", 0o644, config.to_string().as_bytes());
    for (number, layer) in layers.iter().enumerate() {
        all.dir(&format!("l{number}/"), 0o755);
        all.file(&format!("l{number}/layer.tar"), 0o644, layer);
    }
    all.file("manifest.json", 0o644, manifest.to_string().as_bytes());
    all.bytes()
}
