//! What a conversation has done at a server.

use crate::question::{Decision, Question};

/// What is to be done at the server, once however often it is tried.
#[derive(Debug)]
pub(super) enum Order {
    Say { text: String, key: String },
    Interrupt,
    Answer(Box<Question>, Decision),
    Look,
}
