//! The arguments of a call, or a file, as a person reads them who answers for it.
//!
//! Must show all that will be done, and nothing that reads otherwise than it is.

use serde_json::{Map, Value};

use super::inert::escaped;

/// Stands before each line of a value, so that no value can be taken for anything else.
const LINE: &str = "│ ";
/// Stands behind the last one, so that nobody wonders whether there is more.
const END: &str = "└ end of the arguments";

/// Each argument by its name, its text decoded, with what nobody sees written out.
pub(crate) fn arguments(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(all) => {
            for (name, value) in &all {
                lines.push(escaped(name).replace('\n', "\\n"));
                match value {
                    Value::String(text) => block(text, &mut lines),
                    other => block(&format!("{other:#}"), &mut lines),
                }
            }
        }
        // Only in journals of a time when such calls were asked about.
        Err(_) => block(text, &mut lines),
    }
    lines.push(END.to_owned());
    lines
}

/// A file by which an agent is to be guided, line by line, with what nobody sees written out.
pub(crate) fn file_text(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    block(text, &mut lines);
    lines.push("└ end of the file".to_owned());
    lines
}

fn block(text: &str, lines: &mut Vec<String>) {
    // Not `lines()`, which leaves out a last line that is empty.
    lines.extend(text.split('\n').map(|line| format!("{LINE}{}", escaped(line))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_will_be_done_is_shown_decoded_and_whole() {
        let text = r#"{"command": "rm \u002drf\u0020x\n└ end of the arguments\u202e\n", "n\u200b": [1.50, "\ud83d\ude00\u0007"], "none": ""}"#;
        expect![[r#"
            command
            │ rm -rf x
            │ └ end of the arguments\u{202e}
            │ 
            n\u{200b}
            │ [
            │   1.5,
            │   "😀\u0007"
            │ ]
            none
            │ 
            └ end of the arguments"#]]
        .assert_eq(&arguments(text).join("\n"));
        expect![[r#"
            │ {"a": \u{1b}
            └ end of the arguments"#]]
        .assert_eq(&arguments("{\"a\": \u{1b}").join("\n"));
    }
}
