//! A tree that stands on others.
//!
//! Owns the overlay: its options and how it finds its layers. Runs in a mount
//! namespace of its own, where layers are first mounted under short names: each as
//! its owner's, and so that many of them stay below the 4096 bytes that options may
//! have. The names go with the namespace; the overlay keeps what it needs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Mode, mkdirat};
use rustix::mount::MountFlags;

use super::mounts::{self, doing};
use super::plan::{LowerDir, RootPlan};
use crate::spawner::quota::ids;
use crate::spawner::store::DiskDir;
use crate::spawner::sys;

/// What is not wanted of overlays: links between layers that a layer's author could
/// have forged, and bookkeeping that forbids to stack a layer twice.
const OPTIONS: &str = "redirect_dir=nofollow,metacopy=off,index=off,xino=off";

/// Lays the tree of a plan over its lowers, each with its map. Gives where it is.
pub(super) fn lay(plan: &RootPlan, maps: &[Option<Rc<OwnedFd>>]) -> io::Result<PathBuf> {
    let staging = &plan.staging;
    mounts::make("tmpfs", staging, MountFlags::NOSUID | MountFlags::NODEV, "size=64k,mode=700")?;
    doing("enter", staging, rustix::process::chdir(staging))?;
    let directory = |name: &str| doing("make", name, mkdirat(CWD, name, Mode::RWXU));
    directory("tree")?;
    if plan.lowers.is_empty() {
        let tree = mounts::copy_with(CWD, plan.disk_dir.upper(), mounts::NOSUID | mounts::NODEV)?;
        mounts::attach(&tree, CWD, "tree")?;
        return Ok(staging.join("tree"));
    }
    for (number, (lower, map)) in plan.lowers.iter().zip(maps).enumerate() {
        let name = number.to_string();
        directory(&name)?;
        mounts::attach(&as_ours(lower, map.as_deref())?, CWD, name)?;
    }
    // Its tree and the overlay's directory in one mount, because files are moved between them.
    directory("disk")?;
    mounts::attach(&mounts::copy(CWD, plan.disk_dir.path())?, CWD, "disk")?;
    let disk = DiskDir::at(PathBuf::from("disk"));
    match mkdirat(CWD, disk.work(), Mode::RWXU) {
        Err(rustix::io::Errno::EXIST) => {}
        made => doing("make", plan.disk_dir.work(), made)?,
    }
    let names: Vec<String> = (0..plan.lowers.len()).map(|number| number.to_string()).collect();
    let xattr = if ids::is_of_root(plan.owner) { "" } else { ",userxattr" };
    let options = format!(
        "lowerdir={},upperdir={},workdir={},{OPTIONS}{xattr}",
        names.join(":"),
        disk.upper().display(),
        disk.work().display()
    );
    mounts::make("overlay", "tree", MountFlags::NOSUID | MountFlags::NODEV, &options)?;
    Ok(staging.join("tree"))
}

/// A path as it stands in a list of lower trees.
pub(super) fn quoted(path: &Path) -> io::Result<String> {
    let path = path.to_str().ok_or_else(|| io::Error::other("a path that is no UTF-8"))?;
    Ok(path.replace('\\', r"\\").replace(':', r"\:"))
}

/// A lower tree, its files owned as those of this sandbox.
fn as_ours(lower: &LowerDir, map: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let tree = mounts::copy(CWD, &lower.tree)?;
    if let Some(map) = map {
        doing("map the owners of", &lower.tree, sys::map_mounts(tree.as_fd(), map.as_fd()))?;
    }
    Ok(tree)
}
