//! The scripted model: plays a file of turns, for demonstrations and tests, and
//! says in every reply that it does.
//!
//! A turn is chosen from the request alone, so that it plays on after a crash and
//! in many sessions at once. Must never pass for a model: its text begins with
//! [`MARK`], and its origin's wire and provider are `scripted`.
//!
//! # Format
//! TOML, at most [`crate::limits::SCRIPT_BYTES_MAX`]:
//!
//! ```toml
//! name = "demo"                  # optional: the model's name
//! context_tokens = 200000        # optional
//! output_tokens_max = 8192       # optional
//! summary = "All went well."     # optional: the answer to a request for a summary
//! price = { input = 3.0, output = 15.0 }   # optional: dollars for a million tokens
//!
//! [[turn]]                       # without `when`: the first reply of the conversation
//! thinking = "Where to begin?"   # optional
//! text = "I run the tests."      # optional
//! calls = [{ name = "execute", arguments = { command = "cargo test" } }]
//!
//! [[turn]]
//! when = { result_contains = "FAILED" }
//! calls = [{ name = "execute", arguments = "{\"broken" }]   # a string is sent as it is
//! delay_ms = 200                 # optional: wait before the reply
//! usage = { input_tokens = 900, output_tokens = 20 }        # optional: else estimated
//!
//! [[turn]]
//! when = { result_matches = "(?m)^test result: ok", turn = 3 }
//! text = "The tests pass now."
//! ```
//!
//! A turn fits if everything in its `when` holds: `turn` is the number of the
//! reply in the conversation, from 1; `result_contains` and `result_matches` (a
//! regular expression) hold if any result since the last reply has them;
//! `message_contains` holds if what a person said last has it. A turn without
//! `when` fits as the reply whose number is its place in the file. The first turn
//! that fits is played. Replies that a summary has replaced are not counted.

mod file;
mod play;
mod unmatched;

pub use file::Error;
pub use play::{API, MARK, ScriptedModel};
pub use unmatched::UnmatchedRequest;
