//! Why stored bytes were rejected.

/// Stored bytes that this crate did not write. Every variant means damage or a newer format; no
/// request can cause one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("the format version {0} is unknown")]
    UnknownVersion(u8),
    #[error("the bytes end early")]
    Truncated,
    #[error("bytes follow the end of the value")]
    TrailingBytes,
    #[error("a length is not in its shortest form or too large")]
    MalformedLength,
    #[error("the type tag {0} is unknown")]
    UnknownType(u8),
    #[error("text is not UTF-8")]
    NotUtf8,
    #[error("a number is not in canonical form")]
    NumberNotCanonical,
    #[error("a boolean or a null is malformed")]
    MalformedConstant,
    #[error("a set is empty")]
    EmptySet,
    #[error("names or set members are not strictly ascending")]
    NotAscending,
    #[error("values are nested too deeply")]
    TooDeep,
    #[error("the header gives the size {stored}, the content has {actual}")]
    SizeMismatch { stored: usize, actual: usize },
    #[error("a key is not escaped as it should be")]
    MalformedEscape,
    #[error("a key cannot have the type of the value")]
    NotAKeyType,
}
