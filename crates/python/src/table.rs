//! Tables: the same columns as the program's CSV files, with types; passed without a copy by Arrow's C data interface.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, NullArray, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::PyTable;
use report::csv::{self, CsvColumn};

use crate::work::Defect;

/// A table with typed columns.
#[pyclass(frozen, module = "drivelab")]
pub(crate) struct Table {
    columns: Vec<(String, CsvColumn)>,
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| &**name).collect()
    }

    /// Rows as dictionaries; None where there is no figure.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for index in 0..self.batch.num_rows() {
            let row = PyDict::new(py);
            for (name, column) in &self.columns {
                match column {
                    CsvColumn::Text(cells) => row.set_item(name, cells[index].as_deref())?,
                    CsvColumn::Whole(cells) => row.set_item(name, cells[index])?,
                    CsvColumn::Number(cells) => row.set_item(name, cells[index])?,
                    CsvColumn::Truth(cells) => row.set_item(name, cells[index])?,
                    CsvColumn::Empty(_) => row.set_item(name, py.None())?,
                }
            }
            rows.append(row)?;
        }
        Ok(rows)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = PyTable::try_new(vec![self.batch.clone()], self.batch.schema())?;
        Bound::new(py, table)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }
}

/// Returns the table for Python.
pub(crate) fn typed(table: &csv::Table) -> PyResult<Table> {
    let columns = table
        .columns()
        .map(|(name, column)| (name.to_owned(), column));
    let columns: Vec<(String, CsvColumn)> = columns.collect();
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, column) in &columns {
        let array: ArrayRef = match column {
            CsvColumn::Text(cells) => Arc::new(StringArray::from(cells.clone())),
            CsvColumn::Whole(cells) => Arc::new(UInt64Array::from(cells.clone())),
            CsvColumn::Number(cells) => Arc::new(Float64Array::from(cells.clone())),
            CsvColumn::Truth(cells) => Arc::new(BooleanArray::from(cells.clone())),
            CsvColumn::Empty(count) => Arc::new(NullArray::new(*count)),
        };
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = match arrays.is_empty() {
        true => RecordBatch::new_empty(schema),
        false => RecordBatch::try_new(schema, arrays)
            .map_err(|error| Defect::new_err(error.to_string()))?,
    };
    Ok(Table { columns, batch })
}
