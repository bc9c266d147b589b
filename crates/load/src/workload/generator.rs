//! Renders the requests of a workload, one after the other for each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{
    BATCH_ITEMS, ItemWriter, Key, MeasuredOperation, PAGE_ITEMS, PARTITION_ITEMS, Workload,
    last_evaluated_key, write_number,
};
use crate::Plan;
use crate::distribution::Chooser;
use crate::http::{Call, Request};

/// Shared by all connections of a run.
pub struct Surroundings {
    workload: Workload,
    items: u64,
    /// `"TableName":"…"`
    table_name: Vec<u8>,
    /// `"…":`, the form in which batches name their table.
    table_member: Vec<u8>,
    /// `"Statement":"…"` for workloads in PartiQL.
    statement: Vec<u8>,
    writer: ItemWriter,
    chooser: Chooser,
    connections: usize,
    /// Distinguishes this run's new items from those of other runs: milliseconds since 1970.
    run: u64,
    next_insert: AtomicU64,
    /// Counts acknowledged inserts. Reads choose among these only, so that most reads of the latest
    /// items find one.
    inserted: AtomicU64,
}

impl Surroundings {
    pub fn new(plan: &Plan, run: u64) -> Surroundings {
        Surroundings {
            workload: plan.workload,
            items: plan.items,
            table_name: format!(r#""TableName":"{}""#, plan.table).into_bytes(),
            table_member: format!(r#""{}":"#, plan.table).into_bytes(),
            statement: format!(r#""Statement":"{}""#, statement(plan)).into_bytes(),
            writer: ItemWriter::new(plan.workload.shape(), plan.item_bytes, plan.seed),
            chooser: Chooser::new(plan.keys, plan.items),
            connections: plan.connections,
            run,
            next_insert: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
        }
    }
}

/// A rendered request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub operation: MeasuredOperation,
    /// Whether a second request about the same item follows.
    pub continues: bool,
    inserts: bool,
}

impl Step {
    fn of(call: Call) -> Step {
        Step { operation: MeasuredOperation::Call(call), continues: false, inserts: false }
    }
}

pub struct Generator {
    shared: Arc<Surroundings>,
    random: SmallRng,
    chooser: Chooser,
    /// The number of the connection, which is also its scan segment.
    connection: usize,
    /// Where the segment's next page starts: a JSON object.
    last_key: Vec<u8>,
    /// The item of the last step, for its second request.
    number: u64,
}

impl Generator {
    pub fn new(shared: Arc<Surroundings>, seed: u64, connection: usize) -> Generator {
        let mixed = seed ^ (connection as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Generator {
            random: SmallRng::seed_from_u64(mixed),
            chooser: shared.chooser.clone(),
            connection,
            last_key: Vec::new(),
            number: 0,
            shared,
        }
    }

    /// Renders the next request.
    #[inline]
    pub fn next(&mut self, request: &mut Request) -> Step {
        let step = match self.shared.workload {
            Workload::Get | Workload::YcsbC => self.get(request),
            Workload::Put | Workload::PutIndexed => self.put(request, b""),
            Workload::PutIfVersion => self.put(request, PUT_IF_VERSION),
            Workload::PutIfAbsent => self.insert(request, PUT_IF_ABSENT),
            Workload::Update => self.update(request),
            Workload::Counter => self.count(request),
            Workload::Query => self.query_page(request),
            Workload::Scan => self.scan(request),
            Workload::BatchWrite => self.batch_write(request),
            Workload::BatchGet => self.batch_get(request),
            Workload::Transact => self.transact(request),
            Workload::Select => self.select(request),
            Workload::Insert => self.insert_statement(request),
            Workload::SelectPage => self.select_page(request),
            Workload::YcsbA => match self.chance(50) {
                true => self.get(request),
                false => self.replace_fill(request),
            },
            Workload::YcsbB => match self.chance(95) {
                true => self.get(request),
                false => self.replace_fill(request),
            },
            Workload::YcsbD => match self.chance(95) {
                true => self.get(request),
                false => self.insert(request, b""),
            },
            Workload::YcsbE => match self.chance(95) {
                true => self.query_range(request),
                false => self.insert(request, b""),
            },
            Workload::YcsbF => match self.chance(50) {
                true => self.get(request),
                false => {
                    self.get(request);
                    let operation = MeasuredOperation::ReadModifyWrite;
                    Step { operation, continues: true, inserts: false }
                }
            },
        };
        request.finish();
        step
    }

    /// Renders the second request of a step that continues.
    pub fn second(&mut self, request: &mut Request) {
        self.write_replace_fill(self.number, request);
        request.finish();
    }

    /// Renders the unprocessed part of a batch.
    pub fn repeat_batch(&self, call: Call, unprocessed: &[u8], request: &mut Request) {
        let body = request.begin(call);
        body.extend_from_slice(br#"{"RequestItems":"#);
        body.extend_from_slice(unprocessed);
        body.push(b'}');
        request.finish();
    }

    /// Records a successful response.
    #[inline]
    pub fn succeeded(&mut self, step: Step, body: &[u8]) {
        if step.inserts {
            self.shared.inserted.fetch_add(1, Ordering::Relaxed);
        }
        if step.operation == MeasuredOperation::Call(Call::Scan) {
            self.last_key.clear();
            self.last_key.extend_from_slice(last_evaluated_key(body).unwrap_or_default());
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100u32) < percent
    }

    /// The number of a loaded item, or a higher one for an item that this run has inserted.
    #[inline]
    fn choose(&mut self) -> u64 {
        let inserted = || self.shared.inserted.load(Ordering::Relaxed);
        let items = match self.shared.workload {
            Workload::YcsbD => self.shared.items + inserted(),
            // Queries only read whole partitions.
            Workload::YcsbE => self.shared.items + inserted() / PARTITION_ITEMS * PARTITION_ITEMS,
            _ => self.shared.items,
        };
        self.chooser.draw(&mut self.random, items)
    }

    #[inline]
    fn key(&self, number: u64) -> Key {
        match number.checked_sub(self.shared.items) {
            None => Key::Loaded(number),
            Some(number) => Key::New { run: self.shared.run, number },
        }
    }

    #[inline]
    fn get(&mut self, request: &mut Request) -> Step {
        self.number = self.choose();
        let body = request.begin(Call::GetItem);
        body.push(b'{');
        body.extend_from_slice(&self.shared.table_name);
        body.extend_from_slice(br#","Key":"#);
        self.shared.writer.write_key(self.key(self.number), body);
        body.push(b'}');
        Step::of(Call::GetItem)
    }

    /// `condition` is empty or holds further members of the request.
    #[inline]
    fn put(&mut self, request: &mut Request, condition: &[u8]) -> Step {
        let key = Key::Loaded(self.choose());
        self.write_put(key, request, condition);
        Step::of(Call::PutItem)
    }

    fn insert(&mut self, request: &mut Request, condition: &[u8]) -> Step {
        let number = self.shared.next_insert.fetch_add(1, Ordering::Relaxed);
        self.write_put(Key::New { run: self.shared.run, number }, request, condition);
        Step { inserts: true, ..Step::of(Call::PutItem) }
    }

    #[inline]
    fn write_put(&mut self, key: Key, request: &mut Request, condition: &[u8]) {
        let body = request.begin(Call::PutItem);
        body.push(b'{');
        body.extend_from_slice(&self.shared.table_name);
        body.extend_from_slice(condition);
        body.extend_from_slice(br#","Item":"#);
        self.shared.writer.write_item(key, &mut self.random, body);
        body.push(b'}');
    }

    #[inline]
    fn update(&mut self, request: &mut Request) -> Step {
        let number = self.choose();
        let version: u32 = self.random.random();
        let body = self.begin_update(number, request);
        body.extend_from_slice(
            br#","UpdateExpression":"SET visits = visits + :one, version = :version","ConditionExpression":"visits >= :zero","ExpressionAttributeValues":{":one":{"N":"1"},":zero":{"N":"0"},":version":{"N":"1"#,
        );
        write_number(version.into(), 10, body);
        body.extend_from_slice(br#""}}}"#);
        Step::of(Call::UpdateItem)
    }

    fn count(&mut self, request: &mut Request) -> Step {
        let number = self.choose();
        let body = self.begin_update(number, request);
        body.extend_from_slice(
            br#","UpdateExpression":"ADD visits :one","ExpressionAttributeValues":{":one":{"N":"1"}}}"#,
        );
        Step::of(Call::UpdateItem)
    }

    fn replace_fill(&mut self, request: &mut Request) -> Step {
        let number = self.choose();
        self.write_replace_fill(number, request);
        Step::of(Call::UpdateItem)
    }

    fn write_replace_fill(&mut self, number: u64, request: &mut Request) {
        let body = self.begin_update(number, request);
        body.extend_from_slice(
            br#","UpdateExpression":"SET fill = :fill","ExpressionAttributeValues":{":fill":{"S":""#,
        );
        self.shared.writer.write_fill(&mut self.random, body);
        body.extend_from_slice(br#""}}}"#);
    }

    #[inline]
    fn begin_update<'r>(&self, number: u64, request: &'r mut Request) -> &'r mut Vec<u8> {
        let body = request.begin(Call::UpdateItem);
        body.push(b'{');
        body.extend_from_slice(&self.shared.table_name);
        body.extend_from_slice(br#","Key":"#);
        self.shared.writer.write_key(Key::Loaded(number), body);
        body
    }

    #[inline]
    fn query_page(&mut self, request: &mut Request) -> Step {
        self.query(PAGE_ITEMS, request)
    }

    fn query_range(&mut self, request: &mut Request) -> Step {
        let limit = self.random.random_range(1..=PARTITION_ITEMS);
        self.query(limit, request)
    }

    /// A partition, and where to start in it.
    ///
    /// Starts where the partition has a whole page left. Leaves out the last loaded partition,
    /// which may be shorter.
    #[inline]
    fn page_start(&mut self, limit: u64) -> (Key, u64) {
        let number = self.choose();
        let partitions = (self.shared.items / PARTITION_ITEMS).max(1);
        let key = match self.key(number) {
            Key::Loaded(number) => Key::Loaded(number.min(partitions * PARTITION_ITEMS - 1)),
            new @ Key::New { .. } => new,
        };
        (key, number % (PARTITION_ITEMS - limit + 1))
    }

    #[inline]
    fn query(&mut self, limit: u64, request: &mut Request) -> Step {
        let (key, start) = self.page_start(limit);
        let body = request.begin(Call::Query);
        body.push(b'{');
        body.extend_from_slice(&self.shared.table_name);
        body.extend_from_slice(
            br#","KeyConditionExpression":"pk = :pk AND sk >= :sk","ExpressionAttributeValues":{":pk":{"S":""#,
        );
        self.shared.writer.write_partition(key, body);
        body.extend_from_slice(br#""},":sk":{"S":"item#"#);
        write_number(start, 6, body);
        body.extend_from_slice(br#""}},"Limit":"#);
        write_number(limit, 1, body);
        body.push(b'}');
        Step::of(Call::Query)
    }

    fn scan(&mut self, request: &mut Request) -> Step {
        let body = request.begin(Call::Scan);
        body.push(b'{');
        body.extend_from_slice(&self.shared.table_name);
        body.extend_from_slice(br#","Segment":"#);
        write_number(self.connection as u64, 1, body);
        body.extend_from_slice(br#","TotalSegments":"#);
        write_number(self.shared.connections as u64, 1, body);
        if !self.last_key.is_empty() {
            body.extend_from_slice(br#","ExclusiveStartKey":"#);
            body.extend_from_slice(&self.last_key);
        }
        body.push(b'}');
        Step::of(Call::Scan)
    }

    fn batch_write(&mut self, request: &mut Request) -> Step {
        let numbers: [u64; BATCH_ITEMS] = self.choose_distinct();
        let body = request.begin(Call::BatchWriteItem);
        body.extend_from_slice(br#"{"RequestItems":{"#);
        body.extend_from_slice(&self.shared.table_member);
        body.push(b'[');
        for (index, number) in numbers.into_iter().enumerate() {
            body.extend_from_slice(if index == 0 { b"" } else { b"," });
            body.extend_from_slice(br#"{"PutRequest":{"Item":"#);
            self.shared.writer.write_item(Key::Loaded(number), &mut self.random, body);
            body.extend_from_slice(b"}}");
        }
        body.extend_from_slice(b"]}}");
        Step::of(Call::BatchWriteItem)
    }

    fn batch_get(&mut self, request: &mut Request) -> Step {
        let numbers: [u64; BATCH_ITEMS] = self.choose_distinct();
        let body = request.begin(Call::BatchGetItem);
        body.extend_from_slice(br#"{"RequestItems":{"#);
        body.extend_from_slice(&self.shared.table_member);
        body.extend_from_slice(br#"{"Keys":["#);
        for (index, number) in numbers.into_iter().enumerate() {
            body.extend_from_slice(if index == 0 { b"" } else { b"," });
            self.shared.writer.write_key(Key::Loaded(number), body);
        }
        body.extend_from_slice(b"]}}}");
        Step::of(Call::BatchGetItem)
    }

    fn transact(&mut self, request: &mut Request) -> Step {
        let [put, update]: [u64; 2] = self.choose_distinct();
        let body = request.begin(Call::TransactWriteItems);
        body.extend_from_slice(br#"{"TransactItems":[{"Put":{"#);
        body.extend_from_slice(&self.shared.table_name);
        body.extend_from_slice(br#","Item":"#);
        self.shared.writer.write_item(Key::Loaded(put), &mut self.random, body);
        body.extend_from_slice(br#"}},{"Update":{"#);
        body.extend_from_slice(&self.shared.table_name);
        body.extend_from_slice(br#","Key":"#);
        self.shared.writer.write_key(Key::Loaded(update), body);
        body.extend_from_slice(
            br#","UpdateExpression":"SET visits = visits + :one","ConditionExpression":"attribute_exists(pk)","ExpressionAttributeValues":{":one":{"N":"1"}}}}]}"#,
        );
        Step::of(Call::TransactWriteItems)
    }

    #[inline]
    fn begin_statement<'r>(&self, request: &'r mut Request) -> &'r mut Vec<u8> {
        let body = request.begin(Call::ExecuteStatement);
        body.push(b'{');
        body.extend_from_slice(&self.shared.statement);
        body.extend_from_slice(br#","Parameters":"#);
        body
    }

    #[inline]
    fn select(&mut self, request: &mut Request) -> Step {
        let key = Key::Loaded(self.choose());
        let body = self.begin_statement(request);
        body.extend_from_slice(br#"[{"S":""#);
        self.shared.writer.write_partition(key, body);
        body.extend_from_slice(br#""}]}"#);
        Step::of(Call::ExecuteStatement)
    }

    fn insert_statement(&mut self, request: &mut Request) -> Step {
        let number = self.shared.next_insert.fetch_add(1, Ordering::Relaxed);
        let key = Key::New { run: self.shared.run, number };
        let body = self.begin_statement(request);
        self.shared.writer.write_values(key, &mut self.random, body);
        body.push(b'}');
        Step { inserts: true, ..Step::of(Call::ExecuteStatement) }
    }

    #[inline]
    fn select_page(&mut self, request: &mut Request) -> Step {
        let (key, start) = self.page_start(PAGE_ITEMS);
        let body = self.begin_statement(request);
        body.extend_from_slice(br#"[{"S":""#);
        self.shared.writer.write_partition(key, body);
        body.extend_from_slice(br#""},{"S":"item#"#);
        write_number(start, 6, body);
        body.extend_from_slice(br#""}],"Limit":"#);
        write_number(PAGE_ITEMS, 1, body);
        body.push(b'}');
        Step::of(Call::ExecuteStatement)
    }

    /// One request must not name an item twice: the next free item replaces one that is taken.
    fn choose_distinct<const COUNT: usize>(&mut self) -> [u64; COUNT] {
        debug_assert!(self.shared.items >= COUNT as u64);
        let mut numbers = [0; COUNT];
        for taken in 0..COUNT {
            let mut number = self.choose();
            while numbers[..taken].contains(&number) {
                number = (number + 1) % self.shared.items;
            }
            numbers[taken] = number;
        }
        numbers
    }
}

/// The statement of a PartiQL workload, inside a JSON string.
fn statement(plan: &Plan) -> String {
    let table = format!(r#"\"{}\""#, plan.table);
    match plan.workload {
        Workload::Select => format!("SELECT * FROM {table} WHERE pk = ?"),
        Workload::SelectPage => format!("SELECT * FROM {table} WHERE pk = ? AND sk >= ?"),
        Workload::Insert => {
            let fields = ItemWriter::COLUMNS.map(|name| format!("'{name}': ?")).join(", ");
            format!("INSERT INTO {table} VALUE {{{fields}}}")
        }
        _ => String::new(),
    }
}

const PUT_IF_ABSENT: &[u8] = br#","ConditionExpression":"attribute_not_exists(pk)""#;
/// No version reaches the limit. Servers can't know that and have to check.
const PUT_IF_VERSION: &[u8] = br#","ConditionExpression":"attribute_not_exists(pk) OR version < :limit","ExpressionAttributeValues":{":limit":{"N":"99999999999"}}"#;
