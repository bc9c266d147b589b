//! The commands of scripts.
//!
//! The first line is the command, the others are its options. In expressions, literals are written between
//! back-ticks, in the notation of values.
//!
//! | command | options |
//! |---|---|
//! | `create <table> <pk:S> [<sk:N>]` | `lsi <name> <sk:T> <projection>`, `gsi <name> <pk:T,…> <sk:T,…or -> <projection>` |
//! | `add-index <table> <name> <pk:T,…> <sk:T,…or -> <projection>`, `drop-index <table> <name>`, `drop <table>`, `work` | |
//! | `put <table> <item>`, `delete <table> <key>`, `update <table> <key> [<expression>]` | `if <condition>` |
//! | `get <table> <key>` | `project <paths>`, `consistent` |
//! | `query <table>[/<index>] <key condition>`, `scan <table>[/<index>]` | those of `get`, `filter`, `select`, `limit`, `start <key>`, `backward`, `segment 0/2`, `pages` (all of them) |
//! | `batch-write`, `transact-write` | `put`, `delete`, `update`, `check <table> <key> <condition>`, each with `if`; `token <token> [<digest>]` |
//! | `batch-get`, `transact-get` | `get <table> <key>` and its options |
//! | `stream <table> keys|new|old|both|off`, `ttl <table> on|off <attribute>` | |
//! | `streams <table>` (with their shards), `records <table>` (of all of them) | |
//! | `repeat <from>..<to> <command>` | with `$i` in the command |
//! | `clock +<milliseconds>`, `show` (what changed in the store since the last `show`) | |

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use zenobe_engine::Engine;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::schema::*;
use zenobe_expression::{Binder, Condition, ExpressionKind, Projection, Update};
use zenobe_value::AttributeValue;

use super::dump::{self, Entries};
use super::notation::{parse_item, parse_value, split_item};
use super::{Fixture, output, streams};

pub struct Script {
    fixture: Fixture,
    tables: Vec<String>,
    shown: Entries,
}

impl Script {
    pub async fn new() -> Script {
        Script { fixture: Fixture::new().await, tables: Vec::new(), shown: Entries::new() }
    }

    pub fn with_engine(engine: Arc<Engine>) -> Script {
        Script::with_fixture(Fixture::with_engine(engine, Arc::default()))
    }

    pub fn with_fixture(fixture: Fixture) -> Script {
        Script { fixture, tables: Vec::new(), shown: Entries::new() }
    }

    pub async fn run(&mut self, lines: &[&str]) -> String {
        match self.try_run(lines).await {
            Ok(text) => text,
            Err(error) => output::error(&error),
        }
    }

    /// Runs a command whose output begins like this. No error does, unless one is expected.
    pub async fn expect(&mut self, command: &[&str], beginning: &str) {
        let text = self.run(command).await;
        let is_error = text.starts_with("error") && !beginning.starts_with("error");
        assert!(
            text.starts_with(beginning) && !is_error,
            "{command:?}: expected {beginning}, found {text}"
        );
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.fixture.engine
    }

    pub fn table(&self, name: &str) -> TableName {
        self.fixture.name(name)
    }

    pub async fn check_consistency(&self) {
        for table in &self.tables {
            let name = self.fixture.name(table);
            match self.fixture.engine.check_consistency(&name).await {
                Ok(found) => assert!(found.is_empty(), "{table}: {found:?}"),
                Err(Error::TableNotFound { .. }) => {}
                Err(error) => panic!("{table}: {error:?}"),
            }
        }
    }

    async fn try_run(&mut self, lines: &[&str]) -> Result<String> {
        let (verb, rest) = split_word(lines[0]);
        let options = &lines[1..];
        let engine = &self.fixture.engine;
        match verb {
            "create" => self.create(rest, options).await,
            "drop" => Ok(done(engine.delete_table(&self.fixture.name(rest)).await?)),
            "add-index" | "drop-index" => self.change_index(verb, rest).await,
            "work" => Ok(done(engine.run_pending_work().await?)),
            "put" | "delete" | "update" => self.write(lines).await,
            "get" => Ok(output::read(&engine.get_item(&self.get(lines)).await?)),
            "query" | "scan" => self.page(verb, rest, options).await,
            "batch-get" => self.batch_get(options).await,
            "batch-write" => self.batch_write(options).await,
            "transact-write" => self.transact_write(options).await,
            "transact-get" => self.transact_get(options).await,
            "repeat" => self.repeat(rest, options).await,
            "clock" => {
                self.fixture
                    .clock
                    .advance_ms(rest.trim_start_matches('+').parse().expect("a number"));
                Ok("ok\n".into())
            }
            "show" => self.show().await,
            "stream" | "ttl" | "streams" | "records" => {
                let (table, rest) = split_word(rest);
                let table = self.fixture.name(table);
                match verb {
                    "stream" => streams::change(engine, table, rest).await,
                    "ttl" => streams::time_to_live(engine, table, rest).await,
                    "streams" => streams::describe(engine, &table).await,
                    _ => streams::print_records(engine, &table).await,
                }
            }
            other => panic!("unknown command {other:?}"),
        }
    }

    async fn create(&mut self, rest: &str, options: &[&str]) -> Result<String> {
        let mut words = rest.split(' ');
        let name = words.next().expect("a table name");
        let mut types = BTreeMap::new();
        let keys = KeySchema {
            partition: key_attributes(words.next().expect("a partition key"), &mut types),
            sort: words.next().map_or(Vec::new(), |sort| key_attributes(sort, &mut types)),
        };
        let (mut local_indexes, mut global_indexes) = (Vec::new(), Vec::new());
        for option in options {
            let words: Vec<&str> = option.split(' ').collect();
            match words[..] {
                ["lsi", name, sort, projection] => local_indexes.push(index(
                    name,
                    KeySchema {
                        partition: keys.partition.clone(),
                        sort: key_attributes(sort, &mut types),
                    },
                    projection,
                )),
                ["gsi", name, partition, sort, projection] => global_indexes.push(index(
                    name,
                    KeySchema {
                        partition: key_attributes(partition, &mut types),
                        sort: key_attributes(sort, &mut types),
                    },
                    projection,
                )),
                _ => panic!("unknown option {option:?}"),
            }
        }
        let command = CreateTable {
            local_indexes,
            global_indexes,
            ..CreateTable::on_demand(self.fixture.name(name), types, keys)
        };
        self.tables.push(name.to_owned());
        Ok(done(self.fixture.engine.create_table(command).await?))
    }

    async fn change_index(&self, verb: &str, rest: &str) -> Result<String> {
        let words: Vec<&str> = rest.split(' ').collect();
        let mut types = BTreeMap::new();
        let names = |keys: Vec<KeyAttribute>| keys.into_iter().map(|key| key.name).collect();
        let change = match words[..] {
            [_, name, partition, sort, projection] => {
                IndexChange::Create(Box::new(UnresolvedIndex {
                    name: name.to_owned(),
                    partition: names(key_attributes(partition, &mut types)),
                    sort: names(key_attributes(sort, &mut types)),
                    projection: projection_of(projection),
                    throughput: ThroughputSettings::default(),
                }))
            }
            [_, name] => IndexChange::Delete { name: name.to_owned() },
            _ => panic!("{verb} {rest}"),
        };
        let table = self.fixture.name(words[0]);
        let description = self.fixture.engine.describe_table(&table).await?;
        types.extend(description.definition.attribute_types.clone());
        let command = UpdateTable {
            attribute_types: Some(types).filter(|_| verb == "add-index"),
            index_changes: vec![change],
            ..UpdateTable::of(table)
        };
        Ok(done(self.fixture.engine.update_table(command).await?))
    }

    async fn write(&self, lines: &[&str]) -> Result<String> {
        let engine = &self.fixture.engine;
        let outcome = match self.action(lines) {
            TransactAction::Put(put) => engine.put_item(put).await?,
            TransactAction::Delete(delete) => engine.delete_item(delete).await?,
            TransactAction::Update(update) => engine.update_item(update).await?,
            TransactAction::Check { .. } => panic!("a check is no write"),
        };
        Ok(output::write(&outcome))
    }

    fn action(&self, lines: &[&str]) -> TransactAction {
        let (verb, rest) = split_word(lines[0]);
        let (table, rest) = split_word(rest);
        let table = self.fixture.name(table);
        let (item, rest) = split_item(rest);
        let condition = option(&lines[1..], "if").map(condition);
        match verb {
            "put" => TransactAction::Put(PutItem { table, item, condition }),
            "delete" => TransactAction::Delete(DeleteItem { table, key: item, condition }),
            "update" => {
                let update = Some(rest).filter(|text| !text.is_empty()).map(update);
                TransactAction::Update(UpdateItem { table, key: item, update, condition })
            }
            "check" => TransactAction::Check { table, key: item, condition: self::condition(rest) },
            other => panic!("unknown action {other:?}"),
        }
    }

    fn get(&self, lines: &[&str]) -> GetItem {
        let (_, rest) = split_word(lines[0]);
        let (table, key) = split_word(rest);
        GetItem {
            table: self.fixture.name(table),
            key: parse_item(key),
            projection: option(&lines[1..], "project").map(projection),
            consistent: lines.contains(&"consistent"),
        }
    }

    async fn page(&self, verb: &str, rest: &str, options: &[&str]) -> Result<String> {
        let mut request = PageRequest {
            filter: option(options, "filter").map(condition),
            projection: option(options, "project").map(projection),
            select: option(options, "select").map(select),
            limit: option(options, "limit").map(|text| text.parse().expect("a number")),
            start_key: option(options, "start").map(parse_item),
            consistent: options.contains(&"consistent"),
        };
        let (target, key_condition) = split_word(rest);
        let mut text = String::new();
        loop {
            let page = self.one_page(verb, target, key_condition, options, request.clone()).await?;
            text += &output::page(&page);
            request.start_key = page.last_evaluated_key;
            if request.start_key.is_none() || !options.contains(&"pages") {
                return Ok(text);
            }
        }
    }

    async fn one_page(
        &self,
        verb: &str,
        target: &str,
        key_condition: &str,
        options: &[&str],
        page: PageRequest,
    ) -> Result<PageOutcome> {
        let (table, index) = match target.split_once('/') {
            Some((table, index)) => (table, Some(index.to_owned())),
            None => (target, None),
        };
        let table = self.fixture.name(table);
        if verb == "scan" {
            let segment = option(options, "segment").map(segment);
            return self.fixture.engine.scan(&Scan { table, index, segment, page }).await;
        }
        let (text, values) = bind(key_condition);
        let key_conditions = Binder::new(None, Some(&values)).key_condition(&text);
        let key_conditions = key_conditions.expect("a valid key condition");
        let forward = !options.contains(&"backward");
        let query = Query { table, index, key_conditions, forward, page };
        self.fixture.engine.query(&query).await
    }

    async fn batch_get(&self, options: &[&str]) -> Result<String> {
        let mut tables: Vec<BatchGetTable> = Vec::new();
        for lines in groups(options, &["get"]) {
            let get = self.get(lines);
            match tables.iter_mut().find(|table| table.table == get.table) {
                Some(table) => table.keys.push(get.key),
                None => tables.push(BatchGetTable {
                    table: get.table,
                    keys: vec![get.key],
                    projection: get.projection,
                    consistent: get.consistent,
                }),
            }
        }
        let outcome = self.fixture.engine.batch_get(&BatchGet { tables }).await?;
        let mut text = String::new();
        for table in outcome.tables {
            text += &lines(table.items.iter().map(output::encoded));
            text += &format!("unprocessed {:?}\n", table.unprocessed);
            text += &output::consumed(&table.consumed);
        }
        Ok(text)
    }

    async fn batch_write(&self, options: &[&str]) -> Result<String> {
        let mut tables: Vec<BatchWriteTable> = Vec::new();
        for lines in groups(options, &["put", "delete"]) {
            let (table, request) = match self.action(lines) {
                TransactAction::Put(put) => (put.table, BatchWriteRequest::Put(put.item)),
                TransactAction::Delete(delete) => {
                    (delete.table, BatchWriteRequest::Delete(delete.key))
                }
                other => panic!("not in a batch: {other:?}"),
            };
            match tables.iter_mut().find(|other| other.table == table) {
                Some(table) => table.requests.push(request),
                None => tables.push(BatchWriteTable { table, requests: vec![request] }),
            }
        }
        let outcome = self.fixture.engine.batch_write(BatchWrite { tables }).await?;
        let table = |table: BatchWriteTableOutcome| {
            let collections: String = table.collections.iter().map(output::collection).collect();
            output::consumed(&table.consumed) + &collections
        };
        Ok(outcome.tables.into_iter().map(table).collect())
    }

    async fn transact_write(&self, options: &[&str]) -> Result<String> {
        let token = option(options, "token").map(|text| {
            let (token, digest) = split_word(text);
            let digest = digest.parse().unwrap_or(0);
            TransactionToken {
                namespace: Arc::clone(&self.fixture.namespace),
                token: token.to_owned(),
                parameters_digest: [digest; 16],
            }
        });
        let groups = groups(options, &["put", "delete", "update", "check"]);
        let actions = groups.into_iter().map(|lines| self.action(lines)).collect();
        let outcome = self.fixture.engine.transact_write(TransactWrite { token, actions }).await?;
        let collection = |(table, collection): &(TableName, ItemCollection)| {
            format!("{} {}", table.name, output::collection(collection))
        };
        let consumed: String = outcome.consumed.iter().map(output::consumed).collect();
        Ok(consumed + &outcome.collections.iter().map(collection).collect::<String>())
    }

    async fn transact_get(&self, options: &[&str]) -> Result<String> {
        let gets = groups(options, &["get"]).into_iter().map(|lines| self.get(lines)).collect();
        let outcome = self.fixture.engine.transact_get(&TransactGet { gets }).await?;
        let items = outcome.items.iter();
        let items =
            lines(items.map(|item| item.as_ref().map_or("nothing".into(), output::encoded)));
        Ok(items + &outcome.consumed.iter().map(output::consumed).collect::<String>())
    }

    async fn repeat(&mut self, rest: &str, options: &[&str]) -> Result<String> {
        let (range, command) = split_word(rest);
        let (from, to) = range.split_once("..").expect("a range");
        let number = |text: &str| text.parse::<u32>().expect("a number");
        for i in number(from)..number(to) {
            let lines: Vec<String> = std::iter::once(&command)
                .chain(options)
                .map(|line| line.replace("$i", &i.to_string()))
                .collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            Box::pin(self.try_run(&lines)).await?;
        }
        Ok("ok\n".into())
    }

    async fn show(&mut self) -> Result<String> {
        let mut definitions = Vec::new();
        for table in &self.tables {
            if let Ok(table) = self.fixture.engine.describe_table(&self.fixture.name(table)).await {
                definitions.push(table.definition);
            }
        }
        let entries = dump::entries(&**self.fixture.engine.store()).await;
        let text = dump::difference(&definitions, &self.shown, &entries);
        self.shown = entries;
        Ok(text)
    }
}

fn done<T>(_: T) -> String {
    "ok\n".into()
}

fn lines(lines: impl Iterator<Item = impl Display>) -> String {
    lines.map(|line| format!("{line}\n")).collect()
}

fn split_word(text: &str) -> (&str, &str) {
    text.trim().split_once(' ').unwrap_or((text.trim(), ""))
}

fn option<'l>(options: &[&'l str], name: &str) -> Option<&'l str> {
    options.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// The lines of each action; the first starts with one of the verbs.
fn groups<'o, 'l>(options: &'o [&'l str], verbs: &[&str]) -> Vec<&'o [&'l str]> {
    let starts = |line: &str| verbs.contains(&split_word(line).0);
    let mut groups = Vec::new();
    let mut rest = &options[options.iter().take_while(|line| !starts(line)).count()..];
    while !rest.is_empty() {
        let length = 1 + rest[1..].iter().take_while(|line| !starts(line)).count();
        let (group, others) = rest.split_at(length);
        groups.push(group);
        rest = others;
    }
    groups
}

/// Replaces literals between back-ticks with placeholders.
fn bind(text: &str) -> (String, BTreeMap<String, AttributeValue>) {
    let mut values = BTreeMap::new();
    let mut bound = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 0 {
            bound += part;
        } else {
            let placeholder = format!(":v{number}");
            bound += &placeholder;
            values.insert(placeholder, parse_value(part));
        }
    }
    (bound, values)
}

fn condition(text: &str) -> Condition {
    let (text, values) = bind(text);
    let condition = Binder::new(None, Some(&values)).condition(ExpressionKind::Condition, &text);
    condition.unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn update(text: &str) -> Update {
    let (text, values) = bind(text);
    let update = Binder::new(None, Some(&values)).update(&text);
    update.unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn projection(text: &str) -> Projection {
    let projection = Binder::new(None, None).projection(text);
    projection.unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn select(text: &str) -> Select {
    match text {
        "all" => Select::AllAttributes,
        "projected" => Select::AllProjectedAttributes,
        "specific" => Select::SpecificAttributes,
        "count" => Select::Count,
        other => panic!("unknown selection {other:?}"),
    }
}

fn segment(text: &str) -> Segment {
    let (number, total) = text.split_once('/').expect("a segment such as 0/2");
    Segment { number: number.parse().expect("a number"), total: total.parse().expect("a number") }
}

fn key_attributes(text: &str, types: &mut BTreeMap<String, ScalarType>) -> Vec<KeyAttribute> {
    let attribute = |text: &str| {
        let (name, scalar_type) = text.split_once(':').expect("a name and a type");
        let scalar_type = match scalar_type {
            "S" => ScalarType::S,
            "N" => ScalarType::N,
            "B" => ScalarType::B,
            other => panic!("unknown type {other:?}"),
        };
        types.insert(name.to_owned(), scalar_type);
        KeyAttribute { name: name.to_owned(), scalar_type }
    };
    if text == "-" { Vec::new() } else { text.split(',').map(attribute).collect() }
}

fn index(name: &str, keys: KeySchema, projection: &str) -> CreateIndex {
    CreateIndex {
        name: name.to_owned(),
        keys,
        projection: projection_of(projection),
        throughput: ThroughputSettings::default(),
    }
}

fn projection_of(text: &str) -> IndexProjection {
    match text {
        "all" => IndexProjection::All,
        "keys" => IndexProjection::KeysOnly,
        included => IndexProjection::Include(included.split(',').map(str::to_owned).collect()),
    }
}
