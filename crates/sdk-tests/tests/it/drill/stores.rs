//! The PostgreSQL servers under the nodes: one alone, or three that Patroni manages.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use zenobe_testing::Postgres;

use super::patroni::Patroni;

pub const DATABASE: &str = "zenobe";

pub enum Stores {
    One(Postgres),
    Patroni(Patroni),
}

impl Stores {
    /// One server, with few connections: there are tests that use them up.
    pub fn one() -> Stores {
        let postgres = Postgres::start(&["max_connections=80"]);
        create_database(|sql| postgres.execute("postgres", sql));
        Stores::One(postgres)
    }

    pub fn patroni() -> Stores {
        let patroni = Patroni::start();
        create_database(|sql| patroni.execute("postgres", sql));
        Stores::Patroni(patroni)
    }

    pub fn ports(&self) -> Vec<u16> {
        match self {
            Stores::One(postgres) => vec![postgres.port],
            Stores::Patroni(patroni) => patroni.ports(),
        }
    }

    /// Runs SQL on the primary.
    pub fn execute(&self, sql: &str) -> String {
        match self {
            Stores::One(postgres) => postgres.execute(DATABASE, sql),
            Stores::Patroni(patroni) => patroni.execute(DATABASE, sql),
        }
    }

    pub fn primary_port(&self) -> u16 {
        match self {
            Stores::One(postgres) => postgres.port,
            Stores::Patroni(patroni) => patroni.primary_port(),
        }
    }
}

fn create_database(execute: impl Fn(&str) -> String) {
    execute("CREATE ROLE zenobe LOGIN");
    execute(&format!("CREATE DATABASE {DATABASE} OWNER zenobe"));
}

/// Connections that nobody else can have.
pub struct Hoard {
    port: u16,
    held: Vec<TcpStream>,
}

impl Hoard {
    pub fn new(port: u16) -> Hoard {
        Hoard { port, held: Vec::new() }
    }

    /// Takes every connection that the server has left. Returns how many there were.
    pub fn take_all(&mut self) -> usize {
        let before = self.held.len();
        while let Some(stream) = login(self.port) {
            self.held.push(stream);
        }
        self.held.len() - before
    }
}

/// Logs in by PostgreSQL's protocol. `None` if the server refuses.
fn login(port: u16) -> Option<TcpStream> {
    const PROTOCOL: i32 = 3 << 16;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let parameters = format!("user\0zenobe\0database\0{DATABASE}\0\0");
    let length = 8 + parameters.len() as i32;
    let mut message = [length.to_be_bytes(), PROTOCOL.to_be_bytes()].concat();
    message.extend(parameters.as_bytes());
    stream.write_all(&message).ok()?;
    // The last connections are for superusers, which the server checks only after it has let the user in.
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).ok()?;
        let [kind, length @ ..] = head;
        let mut rest = vec![0; usize::try_from(i32::from_be_bytes(length)).ok()?.checked_sub(4)?];
        stream.read_exact(&mut rest).ok()?;
        match kind {
            b'Z' => return Some(stream),
            b'E' => return None,
            _ => {}
        }
    }
}
