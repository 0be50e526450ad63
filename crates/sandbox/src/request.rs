//! What a request to run a command must satisfy before anything is started, the
//! same on every backend.

use crate::{Command, Error, Execute, limits};

impl Execute {
    /// Checks everything about the request that does not depend on the sandbox.
    ///
    /// # Errors
    /// [`Error::Invalid`] says what is wrong and what the limit is.
    pub fn check(&self) -> Result<(), Error> {
        let invalid = |what: String| Err(Error::Invalid(what));
        if let Command::Argv(words) = &self.command
            && words.first().is_none_or(Vec::is_empty)
        {
            return invalid("the command is empty".to_owned());
        }
        if self.has_nul() {
            return invalid("the command, its environment or its directory has a NUL byte".into());
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            return invalid(format!("`{name}` is no name for an environment variable"));
        }
        at_most("the command and its environment", self.argv_bytes(), limits::ARGV_BYTES_MAX)?;
        at_most("standard input", self.stdin.len(), limits::STDIN_BYTES_MAX)?;
        if let Some(cwd) = &self.cwd {
            at_most("the working directory", cwd.len(), limits::PATH_BYTES_MAX)?;
        }
        if self.deadline_ms == 0 || self.deadline_ms > limits::DEADLINE_MS_MAX {
            let (given, max) = (self.deadline_ms, limits::DEADLINE_MS_MAX);
            return invalid(format!("a deadline of {given} ms; 1 to {max} can be asked for"));
        }
        let cap = self.stdout_bytes_max.max(self.stderr_bytes_max);
        if cap > limits::OUTPUT_BYTES_MAX {
            let max = limits::OUTPUT_BYTES_MAX;
            return invalid(format!("an output cap of {cap} bytes; {max} is the most"));
        }
        if let Some(size) = self.terminal
            && (size.rows == 0 || size.columns == 0)
        {
            return invalid("a terminal without a line or a column".to_owned());
        }
        Ok(())
    }

    fn has_nul(&self) -> bool {
        let command = match &self.command {
            Command::Argv(words) => words.iter().any(|word| word.contains(&0)),
            Command::Shell(line) => line.contains('\0'),
        };
        let env = self.env.iter().any(|(name, value)| name.contains('\0') || value.contains('\0'));
        command || env || self.cwd.as_ref().is_some_and(|cwd| cwd.contains('\0'))
    }

    /// As the kernel counts them: each string with its closing NUL.
    fn argv_bytes(&self) -> usize {
        let command: usize = match &self.command {
            Command::Argv(words) => words.iter().map(|word| word.len() + 1).sum(),
            Command::Shell(line) => line.len() + 1,
        };
        let env = self.env.iter().map(|(name, value)| name.len() + value.len() + 2);
        command + env.sum::<usize>()
    }
}

fn at_most(what: &str, bytes: usize, max: usize) -> Result<(), Error> {
    if bytes > max {
        return Err(Error::Invalid(format!("{what}: {bytes} bytes; {max} is the most")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExecId, TerminalSize};
    use expect_test::expect;

    #[test]
    fn every_refusal_names_its_limit() {
        let changes: [fn(&mut Execute); 10] = [
            |request| request.command = Command::Argv(vec![]),
            |request| request.command = Command::Argv(vec![b"a".to_vec(), b"\0".to_vec()]),
            |request| request.command = Command::Argv(vec![vec![b'x'; limits::ARGV_BYTES_MAX]]),
            |request| drop(request.env.insert("A=B".into(), "c".into())),
            |request| request.stdin = vec![0; limits::STDIN_BYTES_MAX + 1],
            |request| request.deadline_ms = 0,
            |request| request.deadline_ms = limits::DEADLINE_MS_MAX + 1,
            |request| request.stderr_bytes_max = limits::OUTPUT_BYTES_MAX + 1,
            |request| request.cwd = Some("x".repeat(5_000)),
            |request| request.terminal = Some(TerminalSize { rows: 24, columns: 0 }),
        ];
        let id = ExecId::new("e").unwrap();
        let fine = Execute::new(id, Command::Shell("true".into()));
        assert_eq!(fine.check(), Ok(()));
        let mut shown = String::new();
        for change in changes {
            let mut request = fine.clone();
            change(&mut request);
            shown += &format!("{}\n", request.check().unwrap_err());
        }
        expect![[r"
            invalid request: the command is empty
            invalid request: the command, its environment or its directory has a NUL byte
            invalid request: the command and its environment: 2097153 bytes; 2097152 is the most
            invalid request: `A=B` is no name for an environment variable
            invalid request: standard input: 16777217 bytes; 16777216 is the most
            invalid request: a deadline of 0 ms; 1 to 86400000 can be asked for
            invalid request: a deadline of 86400001 ms; 1 to 86400000 can be asked for
            invalid request: an output cap of 67108865 bytes; 67108864 is the most
            invalid request: the working directory: 5000 bytes; 4096 is the most
            invalid request: a terminal without a line or a column
        "]]
        .assert_eq(&shown);
    }
}
