//! Database files of DynamoDB Local.
//!
//! They are SQLite's. In `dm` there is a row for each table, whose `TableInfo` describes it in JSON,
//! and in `sm` one for each stream. The table itself has its name; the column `ObjectJSON` of a row
//! holds the whole item in DynamoDB's JSON, and everything else in the file follows from it. (So do
//! files of DynamoDB Local 3.3.1, whose `cf` names version v2.4.0.)

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use zenobe_api::{LineError, read_line};
use zenobe_transfer::Record;
use zenobe_transfer::sqlite::{Rows, SqliteError, SqliteFile, Table, Value as Column};

use super::ImportError;
use super::send::RecordError;

/// Where the header of a file counts its changes.
const CHANGES_AT: u64 = 24;

pub struct LocalDatabase {
    path: PathBuf,
    changes: [u8; 4],
    tables: Vec<LocalTable>,
}

pub struct LocalTable {
    pub name: String,
    /// The request of CreateTable.
    pub creation: Value,
    /// The attribute by which items expire.
    pub time_to_live: Option<String>,
    pub row_count: u64,
    rows: Table,
    item_column: usize,
}

impl LocalDatabase {
    /// `None` if the path is not a file of SQLite's.
    pub fn open(path: &Path) -> Result<Option<LocalDatabase>, ImportError> {
        if !path.is_file() {
            return Ok(None);
        }
        let failed = |problem: String| ImportError::DynamoDbLocal {
            file: path.display().to_string(),
            problem,
        };
        let mut file = match open(path) {
            Err(SqliteError::NotSqlite) => return Ok(None),
            opened => opened.map_err(|error| failed(error.to_string()))?,
        };
        for suffix in ["-journal", "-wal"] {
            let mut beside = path.as_os_str().to_owned();
            beside.push(suffix);
            if std::fs::metadata(&beside).is_ok_and(|file| file.len() > 0) {
                let beside = beside.display();
                let problem = format!(
                    "{beside} says that it is being written, or was when its program crashed; start and stop DynamoDB Local once"
                );
                return Err(failed(problem));
            }
        }
        let changes = changes(path).map_err(|error| failed(error.to_string()))?;
        let tables = tables(&mut file).map_err(|error| failed(error.to_string()))?;
        let problem = "it is SQLite's, but not made by DynamoDB Local";
        let tables = tables.ok_or_else(|| failed(problem.to_owned()))?;
        Ok(Some(LocalDatabase { path: path.to_owned(), changes, tables }))
    }

    /// All tables, or the one with this name.
    pub fn tables(&self, name: Option<&str>) -> Result<&[LocalTable], ImportError> {
        let Some(name) = name else { return Ok(&self.tables) };
        let position = self.tables.iter().position(|table| table.name == name);
        let names: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
        let missing = || self.failed(format!("it has no table {name}, but {}", names.join(", ")));
        let position = position.ok_or_else(missing)?;
        Ok(&self.tables[position..=position])
    }

    /// What changes with the content of the file.
    pub fn version(&self) -> Result<String, ImportError> {
        let failed = |error: std::io::Error| self.failed(error.to_string());
        let metadata = std::fs::metadata(&self.path).map_err(failed)?;
        let modified = metadata.modified().map_err(failed)?;
        let since_1970 = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let changes = u32::from_be_bytes(self.changes);
        Ok(format!("{} {changes} {}", metadata.len(), since_1970.as_nanos()))
    }

    pub fn items(&self, table: &LocalTable) -> Result<LocalItems, ImportError> {
        let file = open(&self.path).and_then(|file| file.into_rows(&table.rows));
        let rows = file.map_err(|error| self.failed(error.to_string()))?;
        Ok(LocalItems { rows, item_column: table.item_column, position: Arc::default() })
    }

    /// Fails if a program wrote to the file meanwhile: what was read then makes no sense.
    pub fn check_unchanged(&self) -> Result<(), ImportError> {
        match changes(&self.path) {
            Ok(changes) if changes == self.changes => Ok(()),
            Ok(_) => {
                let problem =
                    "it changed while it was read; stop DynamoDB Local and repeat the import";
                Err(self.failed(problem.to_owned()))
            }
            Err(error) => Err(self.failed(error.to_string())),
        }
    }

    fn failed(&self, problem: String) -> ImportError {
        ImportError::DynamoDbLocal { file: self.path.display().to_string(), problem }
    }
}

fn open(path: &Path) -> Result<SqliteFile<BufReader<File>>, SqliteError> {
    SqliteFile::open(BufReader::new(File::open(path)?))
}

fn changes(path: &Path) -> std::io::Result<[u8; 4]> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(CHANGES_AT))?;
    let mut changes = [0; 4];
    file.read_exact(&mut changes)?;
    Ok(changes)
}

/// `None` if the file was made by another program.
fn tables<R: Read + Seek>(
    file: &mut SqliteFile<R>,
) -> Result<Option<Vec<LocalTable>>, SqliteError> {
    let stored = file.tables()?;
    let find = |name: &str| stored.iter().find(|table| table.name == name);
    let (Some(definitions), Some(streams)) = (find("dm"), find("sm")) else { return Ok(None) };
    let streams = all(file, streams, &["TableName", "StreamStatus", "StreamInfo"])?;
    let wanted = [
        "TableName",
        "TableInfo",
        "BillingMode",
        "ReadCapacityUnits",
        "WriteCapacityUnits",
        "DeletionProtectionEnabled",
    ];
    let mut tables = Vec::new();
    for definition in all(file, definitions, &wanted)? {
        let Some(name) = definition[0].as_str().map(str::to_owned) else { return Ok(None) };
        let Some(rows) = find(&name) else { return Ok(None) };
        let Some(item_column) = rows.column("ObjectJSON") else { return Ok(None) };
        let stream = streams.iter().find(|it| it[0] == name.as_str() && it[1] == "ENABLED");
        let Some(creation) = creation(&definition, stream) else { return Ok(None) };
        let info = json_of(&definition[1]);
        tables.push(LocalTable {
            name,
            creation,
            time_to_live: info["TimeToLiveAttributeName"].as_str().map(str::to_owned),
            row_count: file.rows(rows)?.count()?,
            rows: rows.clone(),
            item_column,
        });
    }
    Ok(Some(tables))
}

/// The values of some columns of all rows. A column that the table doesn't have is null: older
/// versions have fewer.
fn all<R: Read + Seek>(
    file: &mut SqliteFile<R>,
    table: &Table,
    columns: &[&str],
) -> Result<Vec<Vec<Value>>, SqliteError> {
    let mut rows = file.rows(table)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next_row()? {
        let value =
            |name: &&str| table.column(name).and_then(|at| row.get(at)).map_or(Value::Null, plain);
        found.push(columns.iter().map(value).collect());
    }
    Ok(found)
}

fn plain(value: &Column) -> Value {
    match value {
        Column::Integer(number) => json!(number),
        Column::Text(text) => json!(text),
        Column::Blob(bytes) => json!(String::from_utf8_lossy(bytes)),
        Column::Null | Column::Real(_) => Value::Null,
    }
}

fn json_of(text: &Value) -> Value {
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The request that creates a table like this one. `None` if its description is incomplete.
fn creation(definition: &[Value], stream: Option<&Vec<Value>>) -> Option<Value> {
    let [name, info, billing_mode, read_units, write_units, is_protected] = definition else {
        return None;
    };
    let info = json_of(info);
    let is_provisioned = *billing_mode != json!(1);
    let mut keys: Vec<Value> = info["SQLiteIndex"][""].as_array()?.iter().map(key).collect();
    keys.sort_by_key(|key| key["KeyType"] != "HASH");
    let list = |name: &str| info[name].as_array().cloned().unwrap_or_default();
    let (local, global) = (list("LSIList"), list("GSIList"));
    let schemas = local.iter().chain(&global).filter_map(|index| index["KeySchema"].as_array());
    let used: Vec<&Value> =
        schemas.flatten().chain(&keys).map(|key| &key["AttributeName"]).collect();
    // A deleted index leaves its attributes behind.
    let attributes = list("Attributes").into_iter();
    let attributes: Vec<Value> =
        attributes.filter(|attribute| used.contains(&&attribute["AttributeName"])).collect();
    let mut creation = json!({
        "TableName": name,
        "AttributeDefinitions": attributes,
        "KeySchema": keys,
        "BillingMode": if is_provisioned { "PROVISIONED" } else { "PAY_PER_REQUEST" },
    });
    if is_provisioned {
        let units = json!({"ReadCapacityUnits": read_units, "WriteCapacityUnits": write_units});
        creation["ProvisionedThroughput"] = units;
    }
    for (member, indexes) in [("LocalSecondaryIndexes", local), ("GlobalSecondaryIndexes", global)]
    {
        if !indexes.is_empty() {
            let has_units = is_provisioned && member.starts_with("Global");
            creation[member] = indexes.iter().map(|it| index(it, has_units)).collect();
        }
    }
    if let Some(stream) = stream {
        let view = json_of(&stream[2])["StreamViewType"].clone();
        creation["StreamSpecification"] = json!({"StreamEnabled": true, "StreamViewType": view});
    }
    if *is_protected == json!("true") {
        creation["DeletionProtectionEnabled"] = json!(true);
    }
    Some(creation)
}

fn key(key: &Value) -> Value {
    let name = &key["DynamoDBAttribute"]["AttributeName"];
    json!({"AttributeName": name, "KeyType": key["KeyType"]})
}

fn index(index: &Value, has_units: bool) -> Value {
    let mut request = json!({
        "IndexName": index["IndexName"],
        "KeySchema": index["KeySchema"],
        "Projection": index["Projection"],
    });
    if has_units {
        request["ProvisionedThroughput"] = index["ProvisionedThroughput"].clone();
    }
    request
}

/// The items of one table.
pub struct LocalItems {
    rows: Rows<BufReader<File>>,
    item_column: usize,
    position: Arc<AtomicU64>,
}

impl LocalItems {
    /// How many rows have been read, for those who watch it.
    pub fn position(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.position)
    }

    pub fn next_record(&mut self) -> Result<Option<Record>, RecordError> {
        let row = self.rows.next_row().map_err(|error| RecordError::Io(error.to_string()))?;
        let Some(mut row) = row else { return Ok(None) };
        self.position.fetch_add(1, Ordering::Relaxed);
        let no_item = || RecordError::Record("the row has no item".to_owned());
        if self.item_column >= row.len() {
            return Err(no_item());
        }
        let item = row.swap_remove(self.item_column).into_bytes().ok_or_else(no_item)?;
        match read_line(&[b"{\"Item\":", &item[..], b"}"].concat()) {
            Ok(record) => Ok(Some(record)),
            Err(LineError::NotJson) => Err(RecordError::Record("the item is not JSON".to_owned())),
            Err(LineError::Record(reason)) => Err(RecordError::Record(reason)),
        }
    }
}
