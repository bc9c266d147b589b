//! `zenobe stream tail`: a table's changes, as they happen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use zenobe_engine::consumers::{Checkpoint, ShardName};

use super::server_connection::{ConnectionArguments, ServerConnection};
use super::{CommandError, change_text, print_line};
use crate::triggers::plan::plan;
use crate::triggers::reader::ShardReader;
use crate::triggers::source::Streams;

const POLL_DELAY: Duration = Duration::from_millis(200);
/// How often to look for new shards and streams while nothing ends.
const REFRESH_DELAY: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  zenobe stream tail Orders
  zenobe stream tail Orders --from TRIM_HORIZON --json | jq .dynamodb.NewImage")]
pub struct TailArguments {
    /// Table whose stream to print
    table: String,
    /// Print each change as a line of JSON, as a trigger delivers it
    #[arg(long)]
    json: bool,
    /// Where to start
    #[arg(long, value_enum, default_value = "LATEST", ignore_case = true, value_name = "POSITION")]
    from: TailStart,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TailStart {
    /// At the oldest change still kept
    #[value(name = "TRIM_HORIZON")]
    TrimHorizon,
    /// At the next change
    #[value(name = "LATEST")]
    Latest,
}

pub async fn run(arguments: TailArguments) -> Result<(), CommandError> {
    let connection = ServerConnection::new(&arguments.connection)?;
    let streams = Streams::new(Arc::new(connection));
    let mut tail = Tail {
        streams,
        json: arguments.json,
        checkpoints: BTreeMap::new(),
        readers: BTreeMap::new(),
    };
    tail.begin(&arguments.table, arguments.from).await?;
    loop {
        tail.refresh(&arguments.table).await?;
        tail.follow().await?;
    }
}

struct Tail {
    streams: Streams,
    json: bool,
    checkpoints: BTreeMap<ShardName, Checkpoint>,
    readers: BTreeMap<ShardName, ShardReader>,
}

impl Tail {
    /// Finds the starting point, once there is a stream.
    async fn begin(&mut self, table: &str, from: TailStart) -> Result<(), CommandError> {
        let newest = self.streams.known(table).await?.pop();
        let Some(newest) = newest else {
            eprintln!("zenobe: waiting for a stream of table {table}");
            return Ok(());
        };
        for shard in newest.detail.shards {
            let name = ShardName { stream: newest.arn.clone(), shard: shard.id };
            let checkpoint = match from {
                TailStart::TrimHorizon => Checkpoint::Oldest,
                TailStart::Latest if shard.is_closed => Checkpoint::Finished,
                TailStart::Latest => {
                    let mut reader = ShardReader::from_now_on(self.streams.clone(), name.clone());
                    // The first read determines where `now` is.
                    let batch = reader.read().await?;
                    self.print(&batch.records)?;
                    self.readers.insert(name.clone(), reader);
                    Checkpoint::Oldest
                }
            };
            self.checkpoints.insert(name, checkpoint);
        }
        Ok(())
    }

    async fn refresh(&mut self, table: &str) -> Result<(), CommandError> {
        let streams = self.streams.known(table).await?;
        for (shard, from) in plan(&streams, &self.checkpoints).runnable {
            let open = || ShardReader::new(self.streams.clone(), shard.clone(), from);
            self.readers.entry(shard.clone()).or_insert_with(open);
        }
        Ok(())
    }

    /// Prints new records until a shard ends or it is time to look for new shards.
    async fn follow(&mut self) -> Result<(), CommandError> {
        let until = Instant::now() + REFRESH_DELAY;
        loop {
            let (mut has_news, mut ended) = (false, Vec::new());
            for (shard, reader) in &mut self.readers {
                let batch = reader.read().await?;
                has_news |= !batch.records.is_empty();
                for record in &batch.records {
                    print_line(&line_of(record, self.json))?;
                }
                if reader.is_at_end() {
                    ended.push(shard.clone());
                }
            }
            for shard in &ended {
                self.readers.remove(shard);
                self.checkpoints.insert(shard.clone(), Checkpoint::Finished);
            }
            if !ended.is_empty() || Instant::now() >= until {
                return Ok(());
            }
            if !has_news {
                tokio::time::sleep(POLL_DELAY).await;
            }
        }
    }

    fn print(
        &self,
        records: &[crate::triggers::record::DeliveredRecord],
    ) -> Result<(), CommandError> {
        records.iter().try_for_each(|record| print_line(&line_of(record, self.json)))
    }
}

fn line_of(record: &crate::triggers::record::DeliveredRecord, json: bool) -> String {
    match json {
        true => record.json().to_owned(),
        false => change_text::line(record),
    }
}
