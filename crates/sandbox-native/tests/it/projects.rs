//! Templates of projects: layers, variables and paths of the host over the host's tools.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;

use outrigger_sandbox::{Backend, CreateSpec, DiskOrigin, Error, Sandbox};
use outrigger_sandbox_native::{HostPaths, ImageDigest, Native, ProjectTemplate};
use std::sync::Arc;

use crate::images::{busybox, import};
use crate::support::{World, kill_spawner, sandbox_id, says, snapshot_id, world};

/// A layer with one file of the user of commands.
async fn layer(native: &Native, path: &str, text: &str) -> ImageDigest {
    let mut builder = tar::Builder::new(tempfile::tempfile().unwrap());
    let mut header = tar::Header::new_gnu();
    let mut add = |path: &str, kind, text: &[u8], mode| {
        header.set_entry_type(kind);
        header.set_uid(1_000);
        header.set_gid(1_000);
        header.set_mode(mode);
        header.set_mtime(1_000_000_000);
        header.set_size(text.len() as u64);
        builder.append_data(&mut header, path, text).unwrap();
    };
    let folders: Vec<_> = path.match_indices('/').map(|(end, _)| &path[..end]).collect();
    folders.iter().for_each(|dir| add(dir, tar::EntryType::Directory, b"", 0o755));
    add(path, tar::EntryType::Regular, text.as_bytes(), 0o644);
    let mut archive: File = builder.into_inner().unwrap();
    archive.flush().unwrap();
    archive.rewind().unwrap();
    native.add_layer(archive).await.unwrap()
}

async fn made(world: &World, name: &str, template: &str) -> Arc<dyn Sandbox> {
    let origin = DiskOrigin::Template(template.to_owned());
    let spec = CreateSpec { origin, ..CreateSpec::default() };
    world.native.create(&sandbox_id(name), &spec).await.unwrap()
}

/// A directory of the host with a program, not beneath what a sandbox has of its own.
fn tools() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.path().join("tool"), "#!/bin/sh\necho tool of the host\n").unwrap();
    fs::set_permissions(dir.path().join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[tokio::test]
async fn a_project_has_its_layers_its_tools_and_its_own_path() {
    let (world, tools) = (world().await, tools());
    let first = layer(&world.native, "workspace/deps/lib/a", "of the layer").await;
    let second = layer(&world.native, "workspace/.git/HEAD", "ref").await;
    let alias = "/srv/somebody/project".to_owned();
    let project = ProjectTemplate {
        image: None,
        layers: vec![first, second],
        env: vec![
            format!("PATH={}:/usr/bin:/bin", tools.path().display()),
            "GREETING=hello there".to_owned(),
            "HOME=/elsewhere".to_owned(),
        ],
        host: HostPaths {
            read_only: vec![tools.path().to_owned()],
            elsewhere: vec![(tools.path().to_owned(), "/srv/shown".into())],
            workspace: Some(alias.clone().into()),
        },
        source: "a test".to_owned(),
    };
    let name = world.native.save_project(project.clone()).await.unwrap();
    assert_eq!(
        world.native.save_project(project).await.unwrap(),
        name,
        "saved twice it is the same"
    );
    let sandbox = made(&world, "a", &name).await;
    let sandbox = &*sandbox;
    assert_eq!(
        says(sandbox, "tool; echo $GREETING $HOME").await,
        "tool of the host\nhello there /home/agent\n"
    );
    assert_eq!(says(sandbox, "cat deps/lib/a .git/HEAD").await, "of the layerref");
    assert_eq!(
        says(sandbox, &format!("cat {alias}/deps/lib/a; ls /srv/shown")).await,
        "of the layertool\n"
    );
    // What comes along can be written over; on the host and for others it stays.
    let line = "echo mine > deps/lib/a && rm -r .git && touch deps/new && cat deps/lib/a; ls -A";
    assert_eq!(says(sandbox, line).await, "mine\ndeps\n");
    let written = format!(
        "touch {0}/x 2>&1 | grep -c Read-only; touch /srv/shown/x 2>&1 | grep -c Read-only",
        tools.path().display()
    );
    assert_eq!(says(sandbox, &written).await, "1\n1\n");
    let other = made(&world, "b", &name).await;
    assert_eq!(says(&*other, "cat deps/lib/a; ls -A").await, "of the layer.git\ndeps\n");
    // A snapshot stands on the same, and so does what is resumed by another spawner.
    world.native.snapshots().unwrap().take(&sandbox_id("a"), &snapshot_id("kept")).await.unwrap();
    kill_spawner(&world);
    let spec =
        CreateSpec { origin: DiskOrigin::Snapshot(snapshot_id("kept")), ..CreateSpec::default() };
    let fork = world.native.create(&sandbox_id("c"), &spec).await.unwrap();
    assert_eq!(says(&*fork, "tool; cat deps/lib/a").await, "tool of the host\nmine\n");
}

#[tokio::test]
async fn a_project_can_stand_on_an_image() {
    let (world, tools) = (world().await, tools());
    let image = import(&world.native, "base", &busybox()).await.unwrap();
    let below = layer(&world.native, "workspace/deps/a", "of the layer").await;
    let project = ProjectTemplate {
        image: Some(image),
        layers: vec![below],
        env: vec!["GREETING=hello".to_owned()],
        host: HostPaths {
            read_only: vec![tools.path().to_owned()],
            elsewhere: vec![
                (tools.path().to_owned(), "/var/shown/there".into()),
                ("/nowhere/at/all".into(), "/var/absent".into()),
            ],
            workspace: Some("/srv/somebody/project".into()),
        },
        source: "a test".to_owned(),
    };
    let name = world.native.save_project(project).await.unwrap();
    assert!(outrigger_sandbox_native::is_of_project(&name), "{name}");
    let sandbox = made(&world, "a", &name).await;
    let sandbox = &*sandbox;
    assert_eq!(
        says(sandbox, "cat deps/a /etc/motd; echo $GREETING; ls /var/shown/there").await,
        "of the layerfrom below\nhello\ntool\n"
    );
    // Its programs are the image's alone, and what is shown can't be written to.
    let line = format!(
        "ls {} 2>&1 | cat > /dev/null; test -e {} || echo none; echo > /var/shown/there/tool || echo refused; echo mine > deps/a; cat deps/a",
        tools.path().display(),
        tools.path().display(),
    );
    assert_eq!(says(sandbox, &format!("({line}) 2>/dev/null")).await, "none\nrefused\nmine\n");
    // The image may be forgotten: what stands on it goes on.
    world.native.remove_template("base").await.unwrap();
    world.native.suspend(&sandbox_id("a"), outrigger_sandbox::Suspend::Cold).await.unwrap();
    let again = made(&world, "a", &name).await;
    assert_eq!(says(&*again, "cat deps/a /etc/motd").await, "mine\nfrom below\n");
}

#[tokio::test]
async fn a_template_of_a_project_is_kept_as_long_as_a_disk_needs_it() {
    let world = world().await;
    let digest = layer(&world.native, "workspace/a", "a").await;
    let project = ProjectTemplate { layers: vec![digest], ..ProjectTemplate::default() };
    let name = world.native.save_project(project.clone()).await.unwrap();
    made(&world, "a", &name).await;
    world.native.remove_template(&name).await.unwrap();
    assert_eq!(world.native.templates().await.unwrap().len(), 1);
    world.native.destroy(&sandbox_id("a")).await.unwrap();
    world.native.remove_template(&name).await.unwrap();
    assert!(world.native.templates().await.unwrap().is_empty());
    assert_eq!(world.native.missing_layers(&[digest]).await.unwrap(), [digest]);
    let lost = world.native.save_project(project).await.unwrap_err();
    assert!(matches!(&lost, Error::Absent { what, .. } if what == "layer"), "{lost}");
}

#[tokio::test]
async fn paths_that_are_not_plain_are_refused() {
    let world = world().await;
    for path in ["relative", "/a/../etc", "/"] {
        let host = HostPaths { read_only: vec![path.into()], ..HostPaths::default() };
        let project = ProjectTemplate { host, ..ProjectTemplate::default() };
        let told = world.native.save_project(project).await.unwrap_err().to_string();
        assert!(told.contains("is not a plain absolute path"), "{path}: {told}");
    }
}
