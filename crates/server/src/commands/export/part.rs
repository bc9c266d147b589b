//! One file of an export, in memory until it is whole.

use std::io::Write;

use zenobe_api::append_line;
use zenobe_transfer::compression::{Gzip, gzip};
use zenobe_transfer::parquet::{ColumnType, PartFile};
use zenobe_transfer::{CsvWriter, ion};
use zenobe_value::ItemRef;

use super::ExportFormat;

/// A file of Parquet, Ion or JSON is complete at this size, which suits readers of exports and fits into memory.
const SIZE_BYTES: usize = 64 << 20;
/// A file of CSV or Parquet is complete with this many rows, however small they are.
const ROWS_MAX: u64 = 1_000_000;
const IN_MEMORY: &str = "memory takes everything";

pub enum Part {
    Parquet(Box<PartFile>),
    Csv { writer: Box<CsvWriter<Gzip<Vec<u8>>>>, rows: u64 },
    Lines { is_ion: bool, compressed: Box<Gzip<Vec<u8>>>, text: Vec<u8> },
}

impl Part {
    pub fn new(format: ExportFormat, columns: &[(String, ColumnType)]) -> Part {
        match format {
            ExportFormat::Parquet => Part::Parquet(Box::new(PartFile::new(columns))),
            ExportFormat::Csv => {
                let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
                let writer = CsvWriter::new(gzip(Vec::new()), &names).expect(IN_MEMORY);
                Part::Csv { writer: Box::new(writer), rows: 0 }
            }
            ExportFormat::DynamoDbJson | ExportFormat::Ion => Part::Lines {
                is_ion: format == ExportFormat::Ion,
                compressed: Box::new(gzip(Vec::new())),
                text: Vec::new(),
            },
        }
    }

    pub fn add(&mut self, item: ItemRef<'_>) {
        match self {
            Part::Parquet(file) => file.add(item),
            Part::Csv { writer, rows } => {
                writer.add(item).expect(IN_MEMORY);
                *rows += 1;
            }
            Part::Lines { is_ion, compressed, text } => {
                match is_ion {
                    true => ion::write_item(text, item),
                    false => append_line(text, item),
                }
                compressed.write_all(text).expect(IN_MEMORY);
                text.clear();
            }
        }
    }

    pub fn is_full(&self) -> bool {
        match self {
            Part::Parquet(file) => file.size_bytes() >= SIZE_BYTES || file.rows() >= ROWS_MAX,
            Part::Csv { rows, .. } => *rows >= ROWS_MAX,
            Part::Lines { compressed, .. } => compressed.get_ref().len() >= SIZE_BYTES,
        }
    }

    pub fn finish(self) -> Vec<u8> {
        match self {
            Part::Parquet(file) => file.finish(),
            Part::Csv { writer, .. } => writer.finish().and_then(Gzip::finish).expect(IN_MEMORY),
            Part::Lines { compressed, .. } => compressed.finish().expect(IN_MEMORY),
        }
    }
}
