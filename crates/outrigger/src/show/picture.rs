//! A picture as a line for people.

use outrigger_agent::Picture;

use super::amounts::size;
use super::inert;

/// What of a picture a person is told.
pub(crate) fn picture(picture: &Picture) -> String {
    format!("  with {}, {}", inert(&picture.to_string()), size(picture.bytes))
}
