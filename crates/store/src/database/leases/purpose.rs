//! For what somebody takes a lease.

/// For what a session is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeasePurpose {
    /// It goes on here: from now on its sandboxes are those of this installation.
    Drive,
    /// Something is looked at while nobody drives it. Soon over: who drives waits for it.
    Look,
}
