//! What can be wrong with a file of items.

use zenobe_value::{AttributeType, NumberError};

/// Why a reader has no record to return.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// This record can't be used. The reader continues after it.
    #[error("{0}")]
    Record(ContentError),
    /// Nothing after this position can be read.
    #[error("{0}")]
    File(ContentError),
    /// The bytes did not arrive. The error of their source says why.
    #[error("{0}")]
    Io(std::io::Error),
}

/// What is wrong with the content of a file. The texts go to error logs and validation reports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    #[error("byte {position}: {problem}")]
    Syntax { position: u64, problem: &'static str },
    #[error("a record of more than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the compressed data is damaged or incomplete: {0}")]
    Compression(String),
    #[error("expected a struct with an `Item`")]
    NoItem,
    #[error("{0} has no type in DynamoDB")]
    NoSuchType(&'static str),
    #[error("`{text}` is not a DynamoDB number: {error}")]
    Number { text: String, error: NumberError },
    #[error("an empty {} set", .0.name())]
    EmptySet(AttributeType),
    #[error("a member of another type in a {} set", .0.name())]
    SetMember(AttributeType),
    #[error("a duplicate in a {} set", .0.name())]
    DuplicateInSet(AttributeType),
    #[error("values are nested more than {0} levels deep")]
    NestedTooDeeply(usize),
    #[error("an attribute name that is empty or longer than 65535 bytes")]
    Name,
    #[error("attribute {attribute} is not base64")]
    Base64 { attribute: String },
    #[error("{actual} fields where the header has {expected}")]
    Columns { actual: usize, expected: usize },
    #[error("the header is empty or names a column twice: {0}")]
    Header(String),
    #[error("{0}")]
    Csv(String),
    #[error("a shared symbol table, which is not supported")]
    SharedSymbols,
}
