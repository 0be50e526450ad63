//! The program, as somebody starts it who configured nothing but a model.
//!
//! Owns its data directory, which is its own and gone at the end, and the scripted model that
//! asks for one command. Must never touch the data of whoever runs it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::measured::Measurement;
use super::person;
use super::write_error::WriteError;
use crate::child;
use crate::limits::{PROJECT_COMMAND_SECONDS_MAX, PROJECT_RUN_SECONDS_MAX};

/// Why nothing was run in a sandbox.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file of its own could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
}

/// A program with a data directory of its own. Dropping it deletes that.
#[derive(Debug)]
pub(crate) struct Program {
    binary: PathBuf,
    home: PathBuf,
}

/// What one run of the program was.
#[derive(Debug)]
pub(crate) struct SandboxRun {
    /// How the command in the sandbox went, if it came to that.
    pub(crate) measured: Option<Measurement>,
    /// From the start of the program to its end: copying, packing and comparing included.
    pub(crate) whole: Duration,
    /// All that it printed.
    pub(crate) printed: String,
}

impl Program {
    /// With a data directory below this one, which has to be on a file system like the
    /// projects', and not beneath `/tmp`.
    pub(crate) fn new(binary: PathBuf, dir: &Path) -> Result<Self, Error> {
        let home = dir.join(format!("data-{}", std::process::id()));
        std::fs::create_dir_all(&home).map_err(WriteError::at(&home))?;
        Ok(Self { binary, home })
    }

    /// Lets the scripted model ask for this command in a copy of the directory.
    pub(crate) fn run(&self, dir: &Path, line: &str) -> Result<SandboxRun, Error> {
        let (script, config) = (self.home.join("script.toml"), self.home.join("config.toml"));
        write(&script, &turns(line))?;
        write(&config, "")?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (binary, data) = (text(&self.binary), text(&self.home.join("data")));
        let (dir_name, script, config) = (text(dir), text(&script), text(&config));
        let most = Duration::from_secs(PROJECT_RUN_SECONDS_MAX);
        let words = [&*binary, "--config", &config, "--data-dir", &data, "run", "--dir", &dir_name];
        let words =
            [&words[..], &["--script", &script, "--json=events", "Run the tests."]].concat();
        let begun = Instant::now();
        // Started where a person would stand: what tools are found depends on it.
        let printed = person::command(dir, most, &words).output()?;
        Ok(SandboxRun { measured: Measurement::read(&printed), whole: begun.elapsed(), printed })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program's own spawner looks whether its directory is still there, and ends.
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

/// The script: one call of the command, and an end.
fn turns(line: &str) -> String {
    let timeout_ms = PROJECT_COMMAND_SECONDS_MAX * 1_000;
    let arguments = serde_json::json!({ "command": line, "timeout": timeout_ms });
    let arguments = toml::Value::String(arguments.to_string());
    format!(
        "[[turn]]\ncalls = [{{ name = \"execute\", arguments = {arguments} }}]\n\n\
         [[turn]]\ntext = \"The tests were run.\"\n"
    )
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    Ok(std::fs::write(path, text).map_err(WriteError::at(path))?)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_script_asks_for_the_command_as_it_is() {
        expect![[r#"
            [[turn]]
            calls = [{ name = "execute", arguments = '{"command":"echo \"a\"","timeout":600000}' }]

            [[turn]]
            text = "The tests were run."
        "#]]
        .assert_eq(&turns("echo \"a\""));
    }
}
