//! What this process takes itself while it attacks.

/// Memory that this process holds, in bytes; see proc_pid_statm(5).
pub(super) fn own_memory() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    number.map(|kibibytes| kibibytes << 10).ok_or("no VmRSS in /proc/self/status".to_owned())
}
