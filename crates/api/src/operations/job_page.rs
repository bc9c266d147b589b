//! Pages of jobs, newest first, for ListExports, ListImports and ListBulkOperations.

use zenobe_engine::jobs::JobRow;

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::Writer;
use crate::messages::transfer;
use crate::{Context, Reply};

const PAGE_SIZE_DEFAULT: i64 = 10;
const PAGE_SIZE_MAX: i64 = 25;
/// The shortest token: the model says so.
pub(crate) const TOKEN_LENGTH_MIN: usize = 112;

/// How many jobs a page shows. `path` is what the operation calls the limit.
pub(crate) fn constrain_limit(
    limit: Option<i32>,
    path: &str,
    violations: &mut Violations,
) -> usize {
    let limit = limit.map_or(PAGE_SIZE_DEFAULT, i64::from);
    violations.range(limit, path, 1, PAGE_SIZE_MAX);
    usize::try_from(limit).unwrap_or_default()
}

pub(crate) struct JobPage {
    rows: Vec<JobRow>,
    has_more: bool,
}

impl JobPage {
    /// Reads the page that a token names, or the first one.
    pub(crate) async fn read(
        context: &Context<'_>,
        kind: &str,
        token: Option<&str>,
        limit: usize,
        is_shown: impl Fn(&JobRow) -> bool,
    ) -> Result<JobPage, ApiError> {
        let mut before = token.map(decode_token).transpose()?;
        let mut rows: Vec<JobRow> = Vec::new();
        // One more than the page shows whether there are more.
        while rows.len() <= limit {
            let (engine, count) = (context.engine, PAGE_SIZE_MAX as usize);
            let jobs = engine.jobs(context.namespace, kind, before.as_deref(), count).await;
            let (jobs, has_more) = jobs.map_err(|error| context.table("", error))?;
            before = jobs.last().map(|row| row.id.clone());
            rows.extend(jobs.into_iter().filter(&is_shown));
            if !has_more {
                break;
            }
        }
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Ok(JobPage { rows, has_more })
    }

    /// The answer, with the jobs as a list of this name.
    pub(crate) fn reply(&self, name: &str, write_job: impl Fn(&mut Writer, &JobRow)) -> Reply {
        let mut writer = Writer::new();
        writer.object(|writer| {
            writer.name(name).array(&self.rows, write_job);
            if let Some(last) = self.rows.last().filter(|_| self.has_more) {
                writer.name("NextToken").string(&encode_token(&last.id));
            }
        });
        Reply(writer.finish())
    }
}

/// The id in hexadecimal, filled with zeros to the length that the model demands.
fn encode_token(id: &str) -> String {
    let digits = hex::encode(id);
    let length = digits.len().next_multiple_of(16).max(TOKEN_LENGTH_MIN);
    format!("{digits:0<length$}")
}

fn decode_token(token: &str) -> Result<String, ApiError> {
    let invalid = || transfer::next_token(token);
    let bytes = hex::decode(token).map_err(|_| invalid())?;
    let id: Vec<u8> = bytes.into_iter().take_while(|byte| *byte != 0).collect();
    String::from_utf8(id).ok().filter(|id| !id.is_empty()).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_the_length_of_the_model() {
        let id = "01700000000000-1a2b3c4d";
        let token = encode_token(id);
        assert_eq!(token.len(), TOKEN_LENGTH_MIN);
        assert_eq!(decode_token(&token).unwrap(), id);
        assert!(decode_token(&"0".repeat(112)).is_err());
    }
}
