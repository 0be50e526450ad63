//! Which sockets of the network a process has.

use std::collections::BTreeSet;
use std::fs;

/// How many that speak IP, of any kind.
pub(crate) fn of_network(pid: u32) -> usize {
    let mut known = BTreeSet::new();
    for table in ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"] {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        let rows = text.lines().skip(1);
        known.extend(rows.filter_map(|row| Some(row.split_whitespace().nth(9)?.to_owned())));
    }
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let inodes = links.filter_map(|link| {
        let name = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(name.to_owned())
    });
    inodes.filter(|inode| known.contains(inode)).count()
}
