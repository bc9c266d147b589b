//! What is measured: the server, with and without a stream, and its two yardsticks, each behind the same calls.

pub mod bare;
pub mod engine;
pub mod server;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::client::{self, Sample};
use crate::workload::{Operation, STREAMED_TABLE, TABLE, Workload};
use crate::{Arguments, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    Bare,
    Server,
    /// The same server, with a table that has a stream.
    Streamed,
    Engine,
}

impl SubjectKind {
    pub fn name(self) -> &'static str {
        match self {
            SubjectKind::Bare => "bare hyper",
            SubjectKind::Server => "zenobe",
            SubjectKind::Streamed => "zenobe with a stream",
            SubjectKind::Engine => "engine without HTTP",
        }
    }

    /// A stream makes no difference to reads.
    pub fn takes(self, operation: Operation) -> bool {
        self != SubjectKind::Streamed || operation == Operation::PutItem
    }
}

pub enum Subject {
    Bare(bare::BareServers),
    Server(server::Server),
    Streamed(SocketAddr),
    Engine(engine::LocalEngine),
}

impl Subject {
    /// Starts all of them, and loads the ones that store something.
    pub fn start_all(
        arguments: &Arguments,
        binary: &Path,
        directory: &Path,
    ) -> Result<Vec<Subject>> {
        let server =
            server::Server::start(binary, &directory.join("server"), &arguments.durability)?;
        server.load(TABLE, arguments.items)?;
        server.load(STREAMED_TABLE, arguments.items)?;
        let streamed = server.address;
        let engine = engine::LocalEngine::open(&directory.join("engine"), &arguments.durability)?;
        engine.load(arguments.items)?;
        let bare = bare::BareServers::start(server.response_sizes()?)?;
        Ok(vec![
            Subject::Bare(bare),
            Subject::Server(server),
            Subject::Streamed(streamed),
            Subject::Engine(engine),
        ])
    }

    pub fn kind(&self) -> SubjectKind {
        match self {
            Subject::Bare(_) => SubjectKind::Bare,
            Subject::Server(_) => SubjectKind::Server,
            Subject::Streamed(_) => SubjectKind::Streamed,
            Subject::Engine(_) => SubjectKind::Engine,
        }
    }

    pub fn measure(
        &mut self,
        workload: &Workload,
        items: u64,
        duration: Duration,
    ) -> Result<Sample> {
        match self {
            Subject::Bare(bare) => {
                let address = bare.address(workload.operation);
                client::measure(address, TABLE, workload, items, duration)
            }
            Subject::Server(server) => {
                client::measure(server.address, TABLE, workload, items, duration)
            }
            Subject::Streamed(address) => {
                client::measure(*address, STREAMED_TABLE, workload, items, duration)
            }
            Subject::Engine(engine) => engine.measure(workload, items, duration),
        }
    }
}
