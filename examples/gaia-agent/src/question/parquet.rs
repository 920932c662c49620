//! Questions in a Parquet file, as the benchmark's data set has them. Columns that no question has are
//! skipped, whatever is in them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Map, Value};

use super::Question;

/// The first bytes of a file.
const MAGIC: &[u8] = b"PAR1";
/// The most rows that are read.
const MOST: usize = 100_000;

pub(super) fn read(content: Vec<u8>) -> Result<Vec<Question>, String> {
    if !content.starts_with(MAGIC) {
        return Err("it is neither Parquet nor a text with JSON".to_owned());
    }
    // The library panics on some broken files.
    let read = catch_unwind(AssertUnwindSafe(|| rows(content)));
    read.unwrap_or_else(|_| Err("the Parquet file is broken".to_owned()))
}

fn rows(content: Vec<u8>) -> Result<Vec<Question>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("the Parquet file cannot be read: {error}");
    let file = SerializedFileReader::new(bytes::Bytes::from(content)).map_err(|error| wrong(&error))?;
    let rows = file.get_row_iter(None).map_err(|error| wrong(&error))?;
    let read = |(at, row): (usize, Result<Row, _>)| {
        let row = row.map_err(|error| wrong(&error))?;
        question(&row).map_err(|error| format!("row {}: {error}", at + 1))
    };
    rows.take(MOST).enumerate().map(read).collect()
}

fn question(row: &Row) -> Result<Question, serde_json::Error> {
    let columns = row.get_column_iter().filter_map(|(name, field)| Some((name.clone(), plain(field)?)));
    serde_json::from_value(Value::Object(columns.collect::<Map<_, _>>()))
}

/// A text, a whole number or nothing; `None` for any other value, such as the notes of the annotators.
fn plain(field: &Field) -> Option<Value> {
    Some(match field {
        Field::Null => Value::Null,
        Field::Str(text) => text.as_str().into(),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        _ => return None,
    })
}
