//! Templates from images: imported, pulled, shared, hostile.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use crate::support::*;
use expect_test::expect;
use outrigger_sandbox::{Backend, CreateSpec, DiskOrigin, Error, SnapshotId};
use outrigger_sandbox_native::{Archive, ImageDigest, Native, Progress, Template};
use tar::{EntryType, Header};

/// What a layer is made of: name, type, link target or data, mode.
pub(crate) type Entry<'a> = (&'a str, EntryType, &'a [u8], u32);

pub(crate) fn file<'a>(name: &'a str, data: &'a str) -> Entry<'a> {
    (name, EntryType::Regular, data.as_bytes(), 0o644)
}

pub(crate) fn layer(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut writer = tar::Builder::new(Vec::new());
    for (name, kind, rest, mode) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(*mode);
        header.set_mtime(1_000_000);
        header.set_uid(0);
        header.set_gid(0);
        header.set_device_major(1).unwrap();
        header.set_device_minor(3).unwrap();
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_size(0);
            let target = std::str::from_utf8(rest).unwrap();
            writer.append_link(&mut header, name, target).unwrap();
        } else {
            header.set_size(rest.len() as u64);
            writer.append_data(&mut header, name, *rest).unwrap();
        }
    }
    writer.into_inner().unwrap()
}

/// A root filesystem with nothing but busybox.
pub(crate) fn busybox() -> Vec<u8> {
    let program = fs::read("/bin/busybox").expect("/bin/busybox; install `busybox-static`");
    let dir = EntryType::Directory;
    let mut entries: Vec<Entry<'_>> = vec![
        ("./", dir, b"", 0o755),
        ("usr/bin/", dir, b"", 0o755),
        ("bin", EntryType::Symlink, b"usr/bin", 0o777),
        ("bin/busybox", EntryType::Regular, &program, 0o4755),
        ("etc/", dir, b"", 0o755),
        ("tmp/", dir, b"", 0o1777),
        ("dev/", dir, b"", 0o755),
        ("dev/null", EntryType::Char, b"", 0o666),
        file("etc/motd", "from below\n"),
        file("etc/hidden", "hidden\n"),
        file("opt/old/file", "old\n"),
    ];
    for tool in ["sh", "cat", "ls", "id", "echo", "touch", "rm", "stat"] {
        entries.push((
            Box::leak(format!("usr/bin/{tool}").into()),
            EntryType::Link,
            b"usr/bin/busybox",
            0,
        ));
    }
    layer(&entries)
}

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
}

/// The parts of an image: its documents and blobs, the manifest last.
pub(crate) struct Parts {
    pub(crate) blobs: Vec<Vec<u8>>,
    pub(crate) config: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
}

pub(crate) fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

pub(crate) fn image(layers: &[Vec<u8>], pack: fn(&[u8]) -> Vec<u8>) -> Parts {
    image_for(architecture(), layers, pack)
}

fn image_for(architecture: &str, layers: &[Vec<u8>], pack: fn(&[u8]) -> Vec<u8>) -> Parts {
    let blobs: Vec<Vec<u8>> = layers.iter().map(|layer| pack(layer)).collect();
    let config = serde_json::json!({
        "architecture": architecture, "os": "linux",
        "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|layer| ImageDigest::of(layer)).collect::<Vec<_>>() },
        "config": { "Env": ["PATH=/usr/bin", "IMAGE=yes"], "WorkingDir": "/opt",
                    "Entrypoint": ["/bin/evil"], "User": "0" },
    });
    let config = config.to_string().into_bytes();
    let part = |kind: &str, bytes: &[u8]| {
        serde_json::json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": ImageDigest::of(bytes), "size": bytes.len(),
        })
    };
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": part("config.v1+json", &config),
        "layers": blobs.iter().map(|blob| part("layer.v1.tar+gzip", blob)).collect::<Vec<_>>(),
    });
    Parts { blobs, config, manifest: manifest.to_string().into_bytes() }
}

/// An OCI image layout.
pub(crate) fn layout(parts: &Parts) -> Vec<u8> {
    let other = serde_json::json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 2,
        "digest": ImageDigest::of(b"{}"), "platform": { "os": "plan9", "architecture": "mips" },
    });
    let this = serde_json::json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "size": parts.manifest.len(), "digest": ImageDigest::of(&parts.manifest),
        "platform": { "os": "linux", "architecture": architecture() },
    });
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [other, this] }).to_string();
    let names: Vec<(String, &[u8])> = parts
        .blobs
        .iter()
        .chain([&parts.config, &parts.manifest])
        .map(|blob| (format!("blobs/sha256/{}", ImageDigest::of(blob).hex()), blob.as_slice()))
        .collect();
    let mut entries: Vec<Entry<'_>> =
        vec![file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#), file("index.json", &index)];
    entries
        .extend(names.iter().map(|(name, blob)| (name.as_str(), EntryType::Regular, *blob, 0o644)));
    layer(&entries)
}

/// What older versions of `docker save` write, a repeated layer as a link.
fn saved(layers: &[Vec<u8>], parts: &Parts) -> Vec<u8> {
    let names: Vec<String> =
        (0..layers.len()).map(|number| format!("l{number}/layer.tar")).collect();
    let manifest =
        serde_json::json!([{ "Config": "c.json", "RepoTags": ["x:y"], "Layers": names }])
            .to_string();
    let mut entries: Vec<Entry<'_>> = vec![("c.json", EntryType::Regular, &parts.config, 0o644)];
    for (name, layer) in names.iter().zip(layers) {
        entries.push((name, EntryType::Regular, layer, 0o644));
    }
    entries.push(file("manifest.json", &manifest));
    layer(&entries)
}

fn archive(bytes: &[u8]) -> Archive {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Archive::new(file)
}

pub(crate) async fn import(native: &Native, name: &str, bytes: &[u8]) -> Result<Template, Error> {
    native.import(name, archive(bytes), &|_| ()).await
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Three layers: the first shared by all images, whiteouts of both kinds above it.
pub(crate) fn layers() -> Vec<Vec<u8>> {
    let middle = layer(&[
        file("etc/motd", "from above\n"),
        file("etc/.wh.hidden", ""),
        file("opt/old/.wh..wh..opq", ""),
        file("opt/old/new", "new\n"),
    ]);
    vec![busybox(), middle, layer(&[file("opt/top", "top\n")])]
}

#[tokio::test]
async fn every_kind_of_archive_becomes_the_same_layers() {
    let world = world().await;
    let layers = layers();
    let parts = image(&layers, gzip);
    let digests: Vec<ImageDigest> = layers.iter().map(|layer| ImageDigest::of(layer)).collect();
    let seen = Mutex::new(Vec::new());
    let watch = |progress: Progress| seen.lock().unwrap().push(progress);
    let made = world.native.import("one", archive(&layout(&parts)), &watch).await.unwrap();
    assert_eq!((&made.layers, made.manifest), (&digests, Some(ImageDigest::of(&parts.manifest))));
    assert_eq!(made.env, ["PATH=/usr/bin", "IMAGE=yes"]);
    assert_eq!(made.workdir.as_deref(), Some("/opt"));
    let last = *seen.lock().unwrap().last().unwrap();
    assert_eq!((last.layers, last.bytes, last.left_out), (3, last.bytes_total, 1));
    for (name, bytes, same) in [
        ("zstd", layout(&image(&layers, zstd)), &digests[..]),
        ("plain", layout(&image(&layers, <[u8]>::to_vec)), &digests),
        ("saved", saved(&layers, &parts), &digests),
        ("packed", gzip(&saved(&layers, &parts)), &digests),
        ("root", layers[0].clone(), &digests[..1]),
        ("root-packed", zstd(&layers[0]), &digests[..1]),
    ] {
        let made = import(&world.native, name, &bytes).await.unwrap();
        assert_eq!(made.layers, same, "{name}");
    }
    let state = world.state.path().join("state");
    let mut hexes: Vec<String> = digests.iter().map(ImageDigest::hex).collect();
    hexes.sort();
    assert_eq!(names(&state.join("layers")), hexes);
    let all = world.native.templates().await.unwrap();
    let all: Vec<_> = all.iter().map(|template| template.name.as_str()).collect();
    assert_eq!(all, ["one", "packed", "plain", "root", "root-packed", "saved", "zstd"]);
    let tree = |number: usize| state.join("layers").join(digests[number].hex()).join("tree");
    let found = fs::metadata(tree(0).join("usr/bin/busybox")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.uid()), (0o755, 0));
    let whiteout = fs::symlink_metadata(tree(1).join("etc/hidden")).unwrap();
    assert_eq!((whiteout.mode() & 0o170_000, whiteout.rdev()), (0o020_000, 0));
    let mut mark = [0; 8];
    let length = rustix::fs::getxattr(tree(1).join("opt/old"), "trusted.overlay.opaque", &mut mark);
    assert_eq!(&mark[..length.unwrap()], b"y");
}

#[tokio::test]
async fn a_removed_template_takes_what_nobody_shares() {
    let world = world().await;
    let layers = layers();
    import(&world.native, "all", &layout(&image(&layers, gzip))).await.unwrap();
    import(&world.native, "first", &layers[0]).await.unwrap();
    world.native.remove_template("all").await.unwrap();
    world.native.remove_template("all").await.unwrap();
    let state = world.state.path().join("state");
    assert_eq!(names(&state.join("layers")), [ImageDigest::of(&layers[0]).hex()]);
    world.native.remove_template("first").await.unwrap();
    for dir in ["layers", "templates", "incoming"] {
        assert_eq!(names(&state.join(dir)), [""; 0], "{dir}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_image_can_come_many_times_at_once() {
    let world = world().await;
    let layout = layout(&image(&layers(), gzip));
    let other = world.again().await;
    let made = tokio::join!(
        import(&world.native, "one", &layout),
        import(&other, "two", &layout),
        import(&world.native, "one", &layout),
        import(&other, "three", &layout),
    );
    for made in [made.0, made.1, made.2, made.3] {
        made.unwrap();
    }
    let state = world.state.path().join("state");
    assert_eq!(names(&state.join("layers")).len(), 3);
    assert_eq!(names(&state.join("templates")), ["one", "three", "two"]);
    assert_eq!(names(&state.join("incoming")), [""; 0]);
}

#[tokio::test]
async fn hostile_images_are_refused_and_leave_nothing() {
    let world = world().await;
    let good = layer(&[file("a", "a")]);
    let raw = |name: &[u8], kind: EntryType, link: &[u8], size: u64| {
        let mut header = Header::new_gnu();
        let fields = header.as_old_mut();
        fields.name[..name.len()].copy_from_slice(name);
        fields.linkname[..link.len()].copy_from_slice(link);
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.resize(3 * 512, 0);
        bytes
    };
    let regular = EntryType::Regular;
    let bomb = layer(&[("zeros", regular, &vec![0; 80 << 20], 0o644)]);
    let mut forged = image(std::slice::from_ref(&good), gzip);
    forged.config = [&forged.config[..], b" "].concat();
    let elsewhere = image_for("sparc", std::slice::from_ref(&good), gzip);
    let other = image(&[layer(&[file("b", "b")])], gzip);
    let swapped = Parts { blobs: other.blobs, ..image(std::slice::from_ref(&good), gzip) };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("climbing", raw(b"../out", regular, b"", 0), "the path climbs"),
        ("absolute", raw(b"/out", regular, b"", 0), "the path is absolute"),
        ("hard link out", raw(b"a", EntryType::Link, b"../../../about", 0), "climbs"),
        ("sparse claim", raw(b"a", regular, b"", 10 << 30), "cut"),
        ("old sparse", raw(b"a", EntryType::GNUSparse, b"", 0), "sparse"),
        ("bomb", layout(&image(&[bomb], gzip)), "too many"),
        ("another platform", layout(&elsewhere), "this is linux on"),
        ("another configuration", layout(&forged), "does not hold"),
        ("another blob", layout(&swapped), "does not hold"),
        ("cut", busybox()[..900_000].to_vec(), "cut"),
        ("no archive", b"hello".repeat(1000), "malformed"),
        ("empty", Vec::new(), "cut, or is none"),
    ];
    for (name, bytes, reason) in cases {
        let error = import(&world.native, "bad", &bytes).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{name}: {error}");
        assert!(error.to_string().contains(reason), "{name}: {error}");
    }
    for name in ["", "host-tools", "../x", ".x", "a/b"] {
        let error = import(&world.native, name, &good).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{name}: {error}");
    }
    let state = world.state.path().join("state");
    for dir in ["layers", "templates", "incoming", "trash"] {
        assert_eq!(names(&state.join(dir)), [""; 0], "{dir}");
    }
}

#[tokio::test]
async fn a_blob_that_is_not_what_it_is_named_is_refused() {
    let world = world().await;
    let good = layer(&[file("a", "a")]);
    // Under the digest of the blob there is another one of the same length.
    let parts = image(std::slice::from_ref(&good), <[u8]>::to_vec);
    let mut forged = layout(&parts);
    let at = forged.windows(good.len()).position(|window| window == good).unwrap();
    forged[at + 512] = b'X';
    let error = import(&world.native, "bad", &forged).await.unwrap_err();
    assert!(error.to_string().contains("do not match their digest"), "{error}");
    // The blob is right, what the configuration says is in it is not.
    let mut lying = image(std::slice::from_ref(&good), <[u8]>::to_vec);
    let config = String::from_utf8(lying.config.clone()).unwrap();
    let claimed = ImageDigest::of(b"another layer").to_string();
    lying.config = config.replace(&ImageDigest::of(&good).to_string(), &claimed).into_bytes();
    let manifest = String::from_utf8(lying.manifest).unwrap();
    let was = ImageDigest::of(config.as_bytes()).to_string();
    lying.manifest =
        manifest.replace(&was, &ImageDigest::of(&lying.config).to_string()).into_bytes();
    let error = import(&world.native, "bad", &layout(&lying)).await.unwrap_err();
    assert!(error.to_string().contains("what is in it does not match"), "{error}");
    assert!(world.native.templates().await.unwrap().is_empty());
}

fn from(origin: DiskOrigin) -> CreateSpec {
    CreateSpec { origin, ..CreateSpec::default() }
}

#[tokio::test]
async fn a_sandbox_runs_in_an_image_and_its_files_stay_its_own() {
    let world = world().await;
    import(&world.native, "tools", &layout(&image(&layers(), gzip))).await.unwrap();
    let spec = from(DiskOrigin::Template("tools".to_owned()));
    let one = world.native.create(&sandbox_id("one"), &spec).await.unwrap();
    let seen = "cat /etc/motd /opt/old/new /opt/top; ls /opt/old /etc; id -u; stat -c '%u %a' /bin/busybox; echo x > /etc/motd";
    expect![[r#"
        from above
        new
        top
        /etc:
        motd
        resolv.conf

        /opt/old:
        new
        1000
        0 755
        /bin/sh: can't create /etc/motd: Permission denied
        [Exited(1)]"#]]
    .assert_eq(&says(&*one, seen).await);
    let done = says(&*one, "echo kept > file; echo kept > ~/file; cat /dev/null").await;
    assert_eq!(done, "");
    // Another one of the same layers has none of it.
    let two = world.native.create(&sandbox_id("two"), &spec).await.unwrap();
    assert_eq!(says(&*two, "ls /workspace; cat /opt/top").await, "top\n");
    // Its layers stay for as long as it stands on them.
    world.native.remove_template("tools").await.unwrap();
    assert_eq!(names(&world.state.path().join("state/layers")).len(), 3);
    assert_eq!(says(&*one, "cat file /etc/motd").await, "kept\nfrom above\n");
    let error = world.native.create(&sandbox_id("three"), &spec).await.unwrap_err();
    assert!(matches!(error, Error::Absent { .. }), "{error}");
    // A fork of a snapshot stands on the image too.
    let snapshot = SnapshotId::new("snap").unwrap();
    world.native.snapshots().unwrap().take(&sandbox_id("one"), &snapshot).await.unwrap();
    let fork = from(DiskOrigin::Snapshot(snapshot.clone()));
    let fork = world.native.create(&sandbox_id("fork"), &fork).await.unwrap();
    assert_eq!(
        says(&*fork, "cat file /opt/top; echo more >> file; cat file").await,
        "kept\ntop\nkept\nmore\n"
    );
    for name in ["one", "two", "fork"] {
        world.native.destroy(&sandbox_id(name)).await.unwrap();
    }
    world.native.snapshots().unwrap().remove(&snapshot).await.unwrap();
    // poll: layers that nothing stands on any more go in the background.
    for _ in 0..1_000 {
        if names(&world.state.path().join("state/layers")).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await; // poll: layers go in the background
    }
    panic!("{:?}", names(&world.state.path().join("state/layers")));
}

/// Whatever an image has where the root is completed must lead nowhere else.
#[tokio::test]
async fn an_image_with_links_in_the_way_is_made_harmless_or_refused() {
    let world = world().await;
    // Somebody may have one.
    let hosts = || std::fs::symlink_metadata("/tmp/null").ok().map(|it| (it.ino(), it.ctime()));
    let before = hosts();
    let link = EntryType::Symlink;
    let trap = layer(&[
        ("proc", link, b"/opt", 0),
        ("dev", link, b"../../../../tmp", 0),
        ("workspace", link, b"/etc", 0),
        ("var", link, b"/opt/old", 0),
        ("home", link, b"/nowhere", 0),
    ]);
    let mut all = layers();
    all.insert(
        1,
        layer(&[
            ("dev/.wh..wh..opq", EntryType::Regular, b"", 0),
            ("etc/x", link, b"/proc/1/root", 0),
        ]),
    );
    all.push(trap);
    import(&world.native, "trap", &layout(&image(&all, gzip))).await.unwrap();
    let spec = from(DiskOrigin::Template("trap".to_owned()));
    let made = world.native.create(&sandbox_id("one"), &spec).await;
    let said = match made {
        Ok(sandbox) => {
            says(&*sandbox, "cat /proc/self/comm; echo x > /dev/null && echo null").await
        }
        Err(error) => error.to_string(),
    };
    expect![[r#"
        cat
        null
    "#]]
    .assert_eq(&said);
    assert_eq!(hosts(), before);
}
