//! DynamoDB's API without HTTP: an operation's name and a JSON body in, a status and a JSON body out.
//!
//! **Invariant:** only this crate knows JSON shapes and error texts. All texts are in `messages`
//! (private); everything before that is typed.
//!
//! # How to add an operation
//!
//! 1. Create `operations/<operation>.rs`. `operations/describe_table.rs` is the shortest complete
//!    example. Read top-down, a file holds:
//!    - `pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError>`,
//!      which parses, calls the engine and renders;
//!    - the request's shape, declared with `shape!` under its name in DynamoDB's API model. Each
//!      member is an `Option`; its JSON type is checked while it is read, with DynamoDB's
//!      SerializationException texts. Attribute values are `json::attribute_value::WireValue`s,
//!      which keep their first validation fault until the operation wants to report it;
//!    - the checks, in DynamoDB's order: first `constraints` (collected in `Violations`,
//!      table names through `constraints::table_name`), then the request's own rules. A check returns a
//!      narrower type; the last step lowers everything to a command of `zenobe_engine::command`;
//!    - rendering with `json::Writer`; stored items go through `json::write_item`, without a tree.
//! 2. Texts go to `messages/<topic>.rs`, as entries of `texts!`. Engine errors become texts in
//!    `messages::engine::engine_error` (`context.items(error)` is the short form for item operations).
//! 3. Name the function and how large its response may be in the operation's line of `operations!`, in
//!    `operations/mod.rs`, and declare the module there.
//! 4. Add cases to `tests/cases/api/<Operation>.cases`; `ZENOBE_BLESS=1` fills in the answers to review.

mod as_of;
mod constraints;
mod error;
mod exports;
pub mod faults;
mod field_digest;
pub mod history;
mod imports;
mod java_set;
mod json;
mod legacy;
mod messages;
mod object_jobs;
pub mod observer;
mod operations;
mod parameters;
mod partiql;
mod render;
pub mod stream_records;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use zenobe_engine::command::TableName;
use zenobe_engine::history::AsOf;
use zenobe_engine::request_facts::{RequestFacts, gather};
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, Reads};
use zenobe_transfer::objects::ObjectStoreOptions;

use crate::constraints::TableNameRule;
use crate::messages::NewerPrefix;
use crate::messages::engine::{Subject, engine_error};
use crate::partiql::plan::ReadPlan;

pub use as_of::parse as parse_time;
pub use constraints::{is_name_character, is_table_name};
pub use error::{ApiError, CancellationEntry, Exception, ThrottlingEntry};
pub use exports::Exporter;
pub use imports::{BulkPutter, Importer};
pub use json::is_valid_json;
pub use json::lines::{LineError, append_line, read_line, read_plain_line, write_line};
pub use json::pages::{ItemPage, read_page};
pub use messages::Wording;
pub use operations::{Operation, ResponseSize, table_of_iterator};
pub use zenobe_engine::request_id::{REQUEST_ID_LENGTH, RequestId};

pub struct Api {
    engine: Arc<Engine>,
    options: ApiOptions,
}

#[derive(Debug, Clone, Default)]
pub struct ApiOptions {
    /// Which error texts to use where DynamoDB has two.
    pub wording: Wording,
    /// The address that DescribeEndpoints returns; DynamoDB's regional host if not set.
    pub endpoint: Option<String>,
    /// Whether to refuse PartiQL statements that would scan.
    pub refuse_scans: bool,
    /// Reads the tables as they were then; nothing else can be called.
    pub as_of: Option<AsOf>,
    /// Where imports read from and exports write to; without it there are none.
    pub object_store: Option<ObjectStoreOptions>,
    /// Whether responses tell what their requests did ([`Response::facts`]).
    pub facts: GatheredFacts,
}

/// Which requests tell what they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GatheredFacts {
    #[default]
    None,
    /// All, while the throughput of any table is metered.
    IfMetered,
    All,
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub body: Bytes,
    /// The exception's name, for logs and metrics.
    pub error: Option<&'static str>,
    /// How a PartiQL statement was executed: the operation, what it read and what that cost.
    pub plan: Option<String>,
    /// What the request did to capacity, if the API gathers that.
    pub facts: Option<Box<RequestFacts>>,
}

impl Api {
    pub fn new(engine: Arc<Engine>, options: ApiOptions) -> Api {
        Api { engine, options }
    }

    /// The same API, for a caller who reached it at this endpoint.
    pub fn at(&self, endpoint: String) -> Api {
        let options = ApiOptions { endpoint: Some(endpoint), ..self.options.clone() };
        Api { engine: self.engine.clone(), options }
    }

    /// The same API for one operation as of the time in a request's header `x-zenobe-as-of`, or the
    /// response that refuses it.
    pub fn as_of(&self, operation: Operation, given: &str) -> Result<Api, Response> {
        let refused = |error: ApiError| error.into_response();
        if !operation.reads_the_past() {
            return Err(refused(messages::backup::as_of_operation(operation.name())));
        }
        let as_of = as_of::parse(given);
        let as_of = as_of.ok_or_else(|| refused(messages::backup::as_of_time(given)))?;
        let options = ApiOptions { as_of: Some(as_of), ..self.options.clone() };
        Ok(Api { engine: self.engine.clone(), options })
    }

    /// Handles one request of a caller who sees the tables of `namespace`.
    pub async fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        body: &[u8],
    ) -> Response {
        let context = self.context(operation, namespace);
        let running = operations::dispatch(&context, body);
        let gathers_facts = match self.options.facts {
            GatheredFacts::None => false,
            GatheredFacts::IfMetered => self.engine.is_metering(),
            GatheredFacts::All => true,
        };
        let (outcome, facts) = match gathers_facts {
            false => (running.await, None),
            true => {
                let (outcome, facts) = gather(running).await;
                (outcome, Some(Box::new(facts)))
            }
        };
        let response = match outcome {
            Ok(Reply(body)) => Response::ok(body),
            Err(error) => self.worded(operation, error).into_response(),
        };
        Response { plan: context.plan.into_inner(), facts, ..response }
    }

    /// The same API, which also tells what requests did.
    pub fn gathering(&self, facts: GatheredFacts) -> Api {
        let options = ApiOptions { facts, ..self.options.clone() };
        Api { engine: self.engine.clone(), options }
    }

    fn context<'a>(&'a self, operation: Operation, namespace: &'a Arc<Namespace>) -> Context<'a> {
        let (engine, options) = (&self.engine, &self.options);
        Context { engine, options, namespace, operation, plan: OnceLock::new() }
    }

    /// The newer envelope has only reached writes of single items.
    fn worded(&self, operation: Operation, error: ApiError) -> ApiError {
        if self.options.wording == Wording::Classic {
            return error;
        }
        match operation {
            Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => {
                error.in_newer_wording(NewerPrefix::Envelope)
            }
            Operation::Query => error.in_newer_wording(NewerPrefix::KeyCondition),
            _ => error,
        }
    }
}

impl Response {
    fn ok(body: Vec<u8>) -> Response {
        Response { status: 200, body: Bytes::from(body), error: None, plan: None, facts: None }
    }
}

/// Everything that an operation needs.
pub(crate) struct Context<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) options: &'a ApiOptions,
    pub(crate) namespace: &'a Arc<Namespace>,
    pub(crate) operation: Operation,
    /// How a statement was executed, once known.
    plan: OnceLock<String>,
}

/// The JSON body of a successful response.
pub(crate) struct Reply(pub(crate) Vec<u8>);

impl Context<'_> {
    /// Reads of the present, or as of the request's time.
    pub(crate) fn reads(&self) -> Reads<'_> {
        self.engine.reads(self.options.as_of)
    }

    /// Refuses a statement that writes as of a time.
    pub(crate) fn check_statement(&self, is_select: bool) -> Result<(), ApiError> {
        match self.options.as_of {
            Some(_) if !is_select => Err(messages::backup::as_of_statement()),
            _ => Ok(()),
        }
    }

    /// Words an engine error of an operation on backups or restores.
    pub(crate) fn backup(&self, error: zenobe_engine::error::Error) -> ApiError {
        messages::backup::backup_error(error, &self.namespace.region)
    }

    /// Resolves a table's name or ARN.
    pub(crate) fn table_name(
        &self,
        given: Option<&str>,
        rule: TableNameRule,
    ) -> Result<TableName, ApiError> {
        constraints::table_name(given, rule, self.namespace)
    }

    /// Resolves the table of an item operation, whose name has passed the constraints.
    pub(crate) fn item_table(&self, given: Option<&str>) -> Result<TableName, ApiError> {
        self.table_name(given, TableNameRule::Item)
    }

    /// For a write with a key or an item, the newer front end checks for an empty name before
    /// anything else.
    pub(crate) fn check_named(&self, given: Option<&str>, has_key: bool) -> Result<(), ApiError> {
        match (self.options.wording, given) {
            (Wording::Newer, Some("")) if has_key => {
                Err(messages::request::empty_member("TableName"))
            }
            _ => Ok(()),
        }
    }

    /// The error for an empty batch.
    pub(crate) fn request_items_required(&self) -> ApiError {
        match self.options.wording {
            Wording::Classic => messages::batch::request_items_required(self.operation.name()),
            Wording::Newer => messages::request::empty_member("RequestItems"),
        }
    }

    /// Records how a statement was executed.
    pub(crate) fn tell(&self, plan: String) {
        // A retried statement records it twice; the first time is as good.
        let _ = self.plan.set(plan);
    }

    /// Refuses a statement that would scan, if so configured.
    pub(crate) fn refuse_scan(&self, table: &TableName, plan: &ReadPlan) -> Result<(), ApiError> {
        if !self.options.refuse_scans || !plan.is_full_table_scan() {
            return Ok(());
        }
        self.tell(partiql::plan_header::of_refused_scan(&table.name, plan));
        let what = match &plan.index {
            None => format!("table {}", table.name),
            Some(index) => format!("index {index} of table {}", table.name),
        };
        Err(messages::partiql::scan_refused(&what))
    }

    /// Words an engine error of an item operation.
    pub(crate) fn items(&self, error: zenobe_engine::error::Error) -> ApiError {
        engine_error(error, Subject::Items)
    }

    /// Words an engine error of an operation on the named table.
    pub(crate) fn table(&self, name: &str, error: zenobe_engine::error::Error) -> ApiError {
        engine_error(error, Subject::Table { name, region: &self.namespace.region })
    }
}
