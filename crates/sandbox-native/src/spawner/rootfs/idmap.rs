//! User namespaces that say whose a lower tree is.
//!
//! Owns their making: a mount shows its files as another user's by the map of a user
//! namespace (mount_setattr(2), `MOUNT_ATTR_IDMAP`). Nothing ever runs in one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};

use crate::limits;
use crate::spawner::sys;

/// Maps that were made, by the first id on disk and the one it is seen as.
#[derive(Debug, Default)]
pub(super) struct IdMaps(RefCell<BTreeMap<(u32, u32), Rc<OwnedFd>>>);

impl IdMaps {
    /// The map between two ranges.
    pub(super) fn get(&self, from: u32, to: u32) -> io::Result<Rc<OwnedFd>> {
        let mut maps = self.0.borrow_mut();
        if let Some(found) = maps.get(&(from, to)) {
            return Ok(Rc::clone(found));
        }
        let made = Rc::new(make(&format!("{from} {to} {}", limits::IDS_PER_SANDBOX))?);
        if maps.len() >= limits::ID_MAPS_MAX {
            maps.clear();
        }
        maps.insert((from, to), Rc::clone(&made));
        Ok(made)
    }
}

/// The map in which no file belongs to anybody: it has one id, which no file has.
pub(super) fn nobody() -> io::Result<OwnedFd> {
    make(&format!("{} {} 1", u32::MAX - 1, limits::ID_FIRST))
}

fn make(map: &str) -> io::Result<OwnedFd> {
    let sleeping = sys::SleepingProcess::in_user_namespace()?;
    let pid = sleeping.pid();
    for file in ["uid_map", "gid_map"] {
        fs::write(format!("/proc/{pid}/{file}"), map)?;
    }
    let path = format!("/proc/{pid}/ns/user");
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}
