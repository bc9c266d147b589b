//! The grammar of projections: paths, separated by commas.

use super::{Grammar, Parsed, Parser};
use crate::error::ExpressionFault;
use crate::syntax::RawPath;

pub(crate) fn parse_projection(text: &str) -> Result<Parsed<Vec<RawPath>>, ExpressionFault> {
    let mut parser = Parser::new(text, Grammar::Projection)?;
    let mut paths = Vec::new();
    parser.comma_separated(&mut paths, Parser::path)?;
    parser.finish(paths)
}
