//! `[retention]`: how long what is over is kept.

use serde::Deserialize;

use super::range::Whole;
use crate::limits;

type Days = Whole<1, 36_500>;

/// How long `outrigger gc` keeps what is over (`docs/how-to/space.md`). What is kept of disks has
/// its own, `sandbox.retention_hours`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionFile {
    /// From the last event of a session that is over until it is removed, with its patch and its
    /// disks; if absent, it is kept for ever. Instead: `--older-than`.
    #[cfg_attr(test, schemars(example = 365))]
    pub(crate) sessions_days: Option<Days>,
    /// From the writing of a patch until it goes; if absent, with its session. Instead:
    /// `--older-than`.
    #[cfg_attr(test, schemars(example = 90))]
    pub(crate) patches_days: Option<Days>,
}

/// What holds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Retention {
    /// From the last event of a session that is over until it goes; nothing: never.
    pub(crate) sessions_ms: Option<u64>,
    /// From the writing of a patch until it goes; nothing: with its session.
    pub(crate) patches_ms: Option<u64>,
}

impl Retention {
    pub(super) fn absorb(&mut self, file: &RetentionFile) {
        let ms = |days: Option<Days>| days.map(|days| days.get() * limits::DAY_MS);
        self.sessions_ms = ms(file.sessions_days).or(self.sessions_ms);
        self.patches_ms = ms(file.patches_days).or(self.patches_ms);
    }
}
