//! What is measured: the server and its two yardsticks, each behind the same two calls.

pub mod bare;
pub mod engine;
pub mod server;

use std::path::Path;
use std::time::Duration;

use crate::client::{self, Sample};
use crate::workload::Workload;
use crate::{Arguments, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    Bare,
    Server,
    Engine,
}

impl SubjectKind {
    pub const ALL: [SubjectKind; 3] = [SubjectKind::Bare, SubjectKind::Server, SubjectKind::Engine];

    pub fn name(self) -> &'static str {
        match self {
            SubjectKind::Bare => "bare hyper",
            SubjectKind::Server => "zenobe",
            SubjectKind::Engine => "engine without HTTP",
        }
    }
}

pub enum Subject {
    Bare(bare::BareServers),
    Server(server::Server),
    Engine(engine::LocalEngine),
}

impl Subject {
    /// Starts all three, in the order of [`SubjectKind::ALL`], and loads the ones that store something.
    pub fn start_all(
        arguments: &Arguments,
        binary: &Path,
        directory: &Path,
    ) -> Result<Vec<Subject>> {
        let server =
            server::Server::start(binary, &directory.join("server"), &arguments.durability)?;
        server.load(arguments.items)?;
        let engine = engine::LocalEngine::open(&directory.join("engine"), &arguments.durability)?;
        engine.load(arguments.items)?;
        let bare = bare::BareServers::start(server.response_sizes()?)?;
        Ok(vec![Subject::Bare(bare), Subject::Server(server), Subject::Engine(engine)])
    }

    pub fn kind(&self) -> SubjectKind {
        match self {
            Subject::Bare(_) => SubjectKind::Bare,
            Subject::Server(_) => SubjectKind::Server,
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
                client::measure(bare.address(workload.operation), workload, items, duration)
            }
            Subject::Server(server) => client::measure(server.address, workload, items, duration),
            Subject::Engine(engine) => engine.measure(workload, items, duration),
        }
    }
}
