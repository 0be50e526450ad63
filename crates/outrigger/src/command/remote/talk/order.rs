//! What a conversation has done at a server.

use crate::question::{Decision, Question};
use outrigger_api::SendMessage;

/// What is to be done at the server, once however often it is tried.
#[derive(Debug)]
pub(super) enum Order {
    Say { said: SendMessage, key: String },
    Interrupt,
    Answer(Box<Question>, Decision),
    Look,
}
