//! Every limit of traces, with its unit in its name.

/// Of one text of a conversation in a span, where such texts are wanted; what is longer is cut.
pub const TEXT_BYTES_MAX: usize = 16 << 10;
/// Of all such texts of an attribute; further ones are left out.
pub const CONTENT_BYTES_MAX: usize = 64 << 10;
