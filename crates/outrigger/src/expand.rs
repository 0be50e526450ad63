//! `${…}` in the files by which a repository describes what it needs.
//!
//! Owns how such a place is found. What stands for it, the reader of each format says: none of
//! them gives a variable of this machine.

/// Puts what stands for each `${NAME}` into a text; where that is nothing, it stays.
///
/// # Errors
/// Whatever `value` refuses a name with.
pub(crate) fn expanded<E>(
    text: &str,
    mut value: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut pieces = text.split("${");
    let mut all = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let named = piece.split_once('}').map(|(name, rest)| (value(name), rest));
        match named {
            Some((Err(error), _)) => return Err(error),
            Some((Ok(Some(value)), rest)) => all.extend([value.as_str(), rest]),
            Some((Ok(None), _)) | None => all.extend(["${", piece]),
        }
    }
    Ok(all)
}
