//! Writing CSV files: one column per attribute. Values that have no text form of their own become JSON.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_value::{ItemRef, ValueRef, ValueView};

use crate::plain_json::append_json;

/// Writes items as rows below a header.
pub struct CsvWriter<W: Write> {
    writer: ::csv::Writer<W>,
    columns: Vec<String>,
}

impl<W: Write> CsvWriter<W> {
    pub fn new(out: W, columns: &[String]) -> io::Result<CsvWriter<W>> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(columns)?;
        Ok(CsvWriter { writer, columns: columns.to_vec() })
    }

    pub fn add(&mut self, item: ItemRef<'_>) -> io::Result<()> {
        for column in &self.columns {
            self.writer.write_field(item.get(column).map_or_else(Vec::new, field))?;
        }
        // An empty record ends the row.
        self.writer.write_record(None::<&[u8]>)?;
        Ok(())
    }

    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(|error| error.into_error())
    }
}

fn field(value: ValueRef<'_>) -> Vec<u8> {
    match value.view() {
        ValueView::S(text) | ValueView::N(text) => text.as_bytes().to_vec(),
        ValueView::B(bytes) => STANDARD.encode(bytes).into_bytes(),
        ValueView::Null => Vec::new(),
        _ => {
            let mut json = Vec::new();
            append_json(&mut json, value);
            json
        }
    }
}

#[cfg(test)]
mod tests {
    use zenobe_value::{AttributeValue, Attributes, EncodedItem};

    use super::*;

    #[test]
    fn what_is_no_text_is_json() {
        let columns = ["a", "b", "c"].map(str::to_owned);
        let mut writer = CsvWriter::new(Vec::new(), &columns).unwrap();
        let item = Attributes::from([
            ("a".to_owned(), AttributeValue::S("x,\"y\"".to_owned())),
            (
                "c".to_owned(),
                AttributeValue::L(vec![AttributeValue::Bool(true), AttributeValue::Null]),
            ),
        ]);
        writer.add(EncodedItem::encode(&item).as_item()).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(text, "a,b,c\n\"x,\"\"y\"\"\",,\"[true,null]\"\n");
    }
}
