//! What a sandbox reached, in a file beside its record: a line for each flow, the newest last.

use outrigger_agent::EgressFlow;
use outrigger_server::NotedFlow;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Result, Write};
use std::path::PathBuf;

use crate::limits::{SANDBOX_FLOW_BYTES_MAX, SANDBOX_FLOWS_MAX};

/// What a sandbox reached.
#[derive(Debug)]
pub(super) struct FlowFile(PathBuf);

#[derive(Serialize, Deserialize)]
struct FlowLine {
    at_ms: u64,
    #[serde(flatten)]
    flow: EgressFlow,
}

impl FlowFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn append(&self, noted: &[NotedFlow]) -> Result<()> {
        if noted.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        // One write, so that a line is there whole or is the last one.
        file.write_all(&lines(noted.iter())?)?;
        if file.metadata()?.len() <= SANDBOX_FLOW_BYTES_MAX {
            return Ok(());
        }
        let temporary = self.0.with_extension("flows-new");
        fs::write(&temporary, lines(self.read()?.iter().take(SANDBOX_FLOWS_MAX / 2).rev())?)?;
        fs::rename(&temporary, &self.0)
    }

    /// The newest first, at most [`SANDBOX_FLOWS_MAX`].
    pub(super) fn read(&self) -> Result<Vec<NotedFlow>> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        // A line that was cut is none.
        let lines = text.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
        let noted = lines.map(|FlowLine { at_ms, flow }| NotedFlow { at_ms, flow });
        Ok(noted.take(SANDBOX_FLOWS_MAX).collect())
    }
}

fn lines<'a>(noted: impl Iterator<Item = &'a NotedFlow>) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for NotedFlow { at_ms, flow } in noted {
        serde_json::to_writer(&mut text, &FlowLine { at_ms: *at_ms, flow: flow.clone() })?;
        text.push(b'\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(at_ms: u64) -> NotedFlow {
        let host = "h".repeat(200);
        let (grant, refusal) = (Some("packages".to_owned()), None);
        let (requests, sent_bytes, received_bytes) = (1, 2, 3);
        let flow =
            EgressFlow { host, port: 443, grant, refusal, requests, sent_bytes, received_bytes };
        NotedFlow { at_ms, flow }
    }

    #[test]
    fn the_newest_stay_and_a_line_that_was_cut_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("one.flows");
        let file = FlowFile::new(path.clone());
        assert_eq!(file.read().unwrap(), []);
        for at_ms in 0..3 * SANDBOX_FLOWS_MAX as u64 {
            file.append(&[flow(at_ms)]).unwrap();
            assert!(fs::metadata(&path).unwrap().len() <= SANDBOX_FLOW_BYTES_MAX);
        }
        let all = file.read().unwrap();
        assert!(all.len() >= SANDBOX_FLOWS_MAX / 2, "{}", all.len());
        let newest = 3 * SANDBOX_FLOWS_MAX as u64 - 1;
        let wanted: Vec<u64> = (0..=newest).rev().take(all.len()).collect();
        assert_eq!(all.iter().map(|it| it.at_ms).collect::<Vec<_>>(), wanted);
        assert_eq!(all[0], flow(newest));
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - 3]).unwrap();
        assert_eq!(file.read().unwrap()[0], flow(newest - 1));
    }
}
