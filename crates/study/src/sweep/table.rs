//! Rows as Parquet, with the `parquet` crate: plain columns of whole numbers, numbers and texts; any cell may be
//! empty.
//!
//! Equal rows give equal bytes. Not supported: nested columns.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Whole numbers (INT64).
    Whole,
    /// Numbers (DOUBLE).
    Number,
    /// Texts (UTF-8).
    Text,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column; the ending is the unit.
    pub name: String,
    /// Type of the cells.
    pub kind: ColumnType,
}

/// A cell of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Empty,
    /// A value in a column of [`ColumnType::Whole`].
    Whole(i64),
    /// A value in a column of [`ColumnType::Number`].
    Number(f64),
    /// A value in a column of [`ColumnType::Text`].
    Text(String),
}

/// A row: a cell for each column.
pub type SweepRow = Vec<Cell>;

/// Key of a file's description in its metadata.
const ABOUT: &str = "drivelab.sweep";

/// A file that rows are written to.
pub(super) struct ParquetTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
}

fn schema(columns: &[Column]) -> ParquetResult<Type> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            ColumnType::Whole => (Physical::INT64, None),
            ColumnType::Number => (Physical::DOUBLE, None),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    });
    let fields = fields.collect::<ParquetResult<Vec<_>>>()?;
    Type::group_type_builder("sweep")
        .with_fields(fields)
        .build()
}

impl<W: Write + Send> ParquetTable<W> {
    /// Returns a file with these columns and the description `about`.
    pub(super) fn new(to: W, columns: &[Column], about: &str) -> ParquetResult<ParquetTable<W>> {
        let said = KeyValue::new(ABOUT.to_owned(), about.to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(version::PROGRAM.to_owned())
            .set_key_value_metadata(Some(vec![said]))
            .build();
        let schema = Arc::new(schema(columns)?);
        Ok(ParquetTable {
            writer: SerializedFileWriter::new(to, schema, Arc::new(properties))?,
            columns: columns.to_vec(),
        })
    }

    /// Adds rows as one row group.
    pub(super) fn add(&mut self, rows: &[SweepRow]) -> ParquetResult<()> {
        let mut group = self.writer.next_row_group()?;
        for (index, column) in self.columns.iter().enumerate() {
            let cells = rows.iter().map(|row| &row[index]);
            match column.kind {
                ColumnType::Whole => fill::<Int64Type, _>(&mut group, cells, |cell| match cell {
                    Cell::Whole(whole) => Some(*whole),
                    _ => None,
                }),
                ColumnType::Number => fill::<DoubleType, _>(&mut group, cells, |cell| match cell {
                    Cell::Number(number) => Some(*number),
                    _ => None,
                }),
                ColumnType::Text => {
                    fill::<ByteArrayType, _>(&mut group, cells, |cell| match cell {
                        Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                        _ => None,
                    })
                }
            }?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the end of the file.
    pub(super) fn finish(self) -> ParquetResult<W> {
        self.writer.into_inner()
    }
}

/// Writes one column.
fn fill<'a, D: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<D::T>,
) -> ParquetResult<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let value = value(cell);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    let column = group.next_column()?;
    let mut column = column.ok_or_else(|| ParquetError::General("one column too many".into()))?;
    let typed = column.typed::<D>();
    typed.write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// Returns the description of a file; `None` if it is not a file of a sweep.
pub(super) fn description<R: ChunkReader + 'static>(file: R) -> Option<String> {
    let reader = SerializedFileReader::new(file).ok()?;
    let said = reader.metadata().file_metadata().key_value_metadata()?;
    let said = said.iter().find(|said| said.key == ABOUT)?;
    said.value.clone()
}

/// Reads the rows of a file of this schema.
///
/// # Errors
/// The file does not have this schema.
pub fn read<R: ChunkReader + 'static>(file: R) -> Result<(Vec<Column>, Vec<SweepRow>), String> {
    read_all(file).map_err(|error| error.to_string())
}

fn read_all<R: ChunkReader + 'static>(file: R) -> ParquetResult<(Vec<Column>, Vec<SweepRow>)> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns = Vec::new();
    for column in schema.columns() {
        let kind = match column.physical_type() {
            Physical::INT64 => ColumnType::Whole,
            Physical::DOUBLE => ColumnType::Number,
            Physical::BYTE_ARRAY => ColumnType::Text,
            other => return Err(ParquetError::General(format!("a column of {other}"))),
        };
        let name = column.name().to_owned();
        columns.push(Column { name, kind });
    }
    let mut rows = Vec::new();
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let count = group.metadata().num_rows() as usize;
        let begun = rows.len();
        rows.resize_with(begun + count, || Vec::with_capacity(columns.len()));
        for index in 0..columns.len() {
            let cells = cells(group.get_column_reader(index)?, count)?;
            let rows: &mut [SweepRow] = &mut rows[begun..];
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.push(cell);
            }
        }
    }
    Ok((columns, rows))
}

/// Reads the cells of one column.
///
/// # Errors
/// The file does not have this schema, or has no such column.
pub(super) fn column<R: ChunkReader + 'static>(file: R, name: &str) -> ParquetResult<Vec<Cell>> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let index = schema
        .columns()
        .iter()
        .position(|column| column.name() == name);
    let index = index.ok_or_else(|| ParquetError::General(format!("no column {name}")))?;
    let mut all = Vec::new();
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let count = group.metadata().num_rows() as usize;
        all.extend(cells(group.get_column_reader(index)?, count)?);
    }
    Ok(all)
}

/// Reads the cells of a column in one row group.
fn cells(column: ColumnReader, count: usize) -> ParquetResult<Vec<Cell>> {
    let mut levels = Vec::new();
    let mut cells = Vec::new();
    match column {
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(count, Some(&mut levels), None, &mut values)?;
            cells.extend(values.into_iter().map(Cell::Whole));
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(count, Some(&mut levels), None, &mut values)?;
            cells.extend(values.into_iter().map(Cell::Number));
        }
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let mut values: Vec<ByteArray> = Vec::new();
            reader.read_records(count, Some(&mut levels), None, &mut values)?;
            for value in values {
                cells.push(Cell::Text(value.as_utf8()?.to_owned()));
            }
        }
        _ => return Err(ParquetError::General("a column of another type".into())),
    }
    if levels.len() != count {
        return Err(ParquetError::General("rows are missing".into()));
    }
    let mut cells = cells.into_iter();
    let all = levels.into_iter().map(|level| match level {
        0 => Cell::Empty,
        _ => cells.next().unwrap_or(Cell::Empty),
    });
    Ok(all.collect())
}
