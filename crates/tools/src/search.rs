//! `glob` and `grep`.

use outrigger_agent::ToolOutput;
use outrigger_sandbox::{Error, FileOp, FileReply, GrepMatch, GrepPattern};

use crate::arguments::Arguments;
use crate::namespace::Namespace;
use crate::{cut, limits, output};

/// Finds files by name.
pub(crate) async fn glob(
    arguments: &Arguments,
    namespace: &Namespace,
) -> Result<ToolOutput, Error> {
    let (root, pattern) = globbed(arguments);
    let op = FileOp::Glob {
        root: root.to_owned(),
        pattern: pattern.to_owned(),
        paths_max: limits::PATHS_MAX,
    };
    let FileReply::Paths { paths, truncated } = namespace.files(op).await? else {
        return Err(output::mismatched("glob"));
    };
    if paths.is_empty() && !truncated {
        return Ok(output::ok(format!("No file beneath {root} matches `{pattern}`.")));
    }
    let count = paths.len();
    let shown = |path: &String| cut::name(path.as_bytes(), usize::MAX);
    let (mut text, left_out) = output::listing(paths.iter().map(shown));
    if truncated || left_out > 0 {
        let shown = count - left_out;
        text.push_str(&format!(
            "[only the first {shown} are shown; narrow the pattern or the path]\n"
        ));
    }
    Ok(output::ok(text.trim_end_matches('\n').to_owned()))
}

/// Where names are looked for, and by which pattern.
pub(crate) fn globbed(arguments: &Arguments) -> (&str, &str) {
    let given = arguments.required("pattern");
    match rooted(given) {
        Some((root, pattern)) => (root, pattern),
        None => (arguments.required("path"), given),
    }
}

/// An absolute pattern as the directory that it names for certain, and the rest.
fn rooted(pattern: &str) -> Option<(&str, &str)> {
    if !pattern.starts_with('/') {
        return None;
    }
    let plain = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let slash = pattern[..plain].rfind('/')?;
    let (root, rest) = (&pattern[..slash], &pattern[slash + 1..]);
    Some((if root.is_empty() { "/" } else { root }, rest))
}

/// Searches the contents of files.
pub(crate) async fn grep(
    arguments: &Arguments,
    namespace: &Namespace,
) -> Result<ToolOutput, Error> {
    let given = arguments.required("pattern");
    let pattern = match (arguments.flag("literal"), arguments.flag("case_insensitive")) {
        (true, false) => GrepPattern::Literal(given.to_owned()),
        (true, true) => GrepPattern::RegexIgnoreCase(escaped(given)),
        (false, false) => GrepPattern::Regex(given.to_owned()),
        (false, true) => GrepPattern::RegexIgnoreCase(given.to_owned()),
    };
    let root = arguments.required("path");
    let glob = arguments.text("glob").map(str::to_owned);
    let matches_max = limits::MATCHES_MAX;
    let op = FileOp::Grep { root: root.to_owned(), pattern, glob: glob.clone(), matches_max };
    let FileReply::Matches { matches, truncated } = namespace.files(op).await? else {
        return Err(output::mismatched("grep"));
    };
    if matches.is_empty() && !truncated {
        let glob = glob.map(|glob| format!(" in files like `{glob}`")).unwrap_or_default();
        return Ok(output::ok(format!("No line beneath {root}{glob} matches `{given}`.")));
    }
    let count = matches.len();
    let (mut text, left_out) = output::listing(matches.iter().map(found));
    if truncated || left_out > 0 {
        let shown = count - left_out;
        text.push_str(&format!(
            "[only the first {shown} matches are shown; narrow the pattern, the path or the glob]\n"
        ));
    }
    Ok(output::ok(text.trim_end_matches('\n').to_owned()))
}

fn found(found: &GrepMatch) -> String {
    let path = cut::name(found.path.as_bytes(), usize::MAX);
    let (text, cut_bytes) = cut::line(found.text.as_bytes(), limits::LINE_CHARS_MAX);
    let note = if cut_bytes > 0 { " [line cut]" } else { "" };
    format!("{path}:{}:{text}{note}", found.line)
}

/// Text as a regular expression that matches just it.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(char) {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_patterns_name_their_root() {
        for (pattern, expected) in [
            ("*.py", None),
            ("/workspace/src/**/*.py", Some(("/workspace/src", "**/*.py"))),
            ("/workspace/a.txt", Some(("/workspace", "a.txt"))),
            ("/tmp*/x", Some(("/", "tmp*/x"))),
            ("/*", Some(("/", "*"))),
        ] {
            assert_eq!(rooted(pattern), expected, "{pattern}");
        }
    }
}
