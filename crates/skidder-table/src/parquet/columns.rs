//! The values of a column in some rows, with their levels.

use super::Wrong;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::schema::types::ColumnDescriptor;

/// A column of a group of rows.
pub(super) struct Column {
    reader: ColumnReader,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: Values,
    definition_max: i16,
    /// Places of levels, and of values, that were not taken yet.
    at: usize,
    value_at: usize,
    /// Levels that there are.
    count: usize,
}

/// The values that there are.
pub(super) enum Values {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    I96(Vec<Int96>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// Levels of some records, and how many there are.
struct Levels<'a> {
    definitions: &'a mut Vec<i16>,
    repetitions: &'a mut Vec<i16>,
}

impl Levels<'_> {
    /// Returns the number of rows, and of levels.
    fn read<T: DataType>(
        self,
        reader: &mut ColumnReaderImpl<T>,
        values: &mut Vec<T::T>,
        count: usize,
    ) -> Result<(usize, usize), Wrong> {
        values.clear();
        self.definitions.clear();
        self.repetitions.clear();
        let (mut rows, mut levels) = (0, 0);
        while rows < count {
            let (more, _, more_levels) = reader.read_records(
                count - rows,
                Some(&mut *self.definitions),
                Some(&mut *self.repetitions),
                values,
            )?;
            if more == 0 {
                break;
            }
            rows += more;
            levels += more_levels;
        }
        Ok((rows, levels))
    }
}

impl Column {
    pub(super) fn new(reader: ColumnReader, description: &ColumnDescriptor) -> Self {
        let values = match &reader {
            ColumnReader::BoolColumnReader(_) => Values::Bool(Vec::new()),
            ColumnReader::Int32ColumnReader(_) => Values::I32(Vec::new()),
            ColumnReader::Int64ColumnReader(_) => Values::I64(Vec::new()),
            ColumnReader::Int96ColumnReader(_) => Values::I96(Vec::new()),
            ColumnReader::FloatColumnReader(_) => Values::F32(Vec::new()),
            ColumnReader::DoubleColumnReader(_) => Values::F64(Vec::new()),
            ColumnReader::ByteArrayColumnReader(_) => Values::Bytes(Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(_) => Values::Fixed(Vec::new()),
        };
        Self {
            reader,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            values,
            definition_max: description.max_def_level(),
            at: 0,
            value_at: 0,
            count: 0,
        }
    }

    /// Decodes the values of the next rows.
    pub(super) fn decode(&mut self, count: usize) -> Result<(), Wrong> {
        let levels =
            Levels { definitions: &mut self.definitions, repetitions: &mut self.repetitions };
        let read = match (&mut self.reader, &mut self.values) {
            (ColumnReader::BoolColumnReader(of), Values::Bool(values)) => {
                levels.read(of, values, count)
            }
            (ColumnReader::Int32ColumnReader(of), Values::I32(values)) => {
                levels.read(of, values, count)
            }
            (ColumnReader::Int64ColumnReader(of), Values::I64(values)) => {
                levels.read(of, values, count)
            }
            (ColumnReader::Int96ColumnReader(of), Values::I96(values)) => {
                levels.read(of, values, count)
            }
            (ColumnReader::FloatColumnReader(of), Values::F32(values)) => {
                levels.read(of, values, count)
            }
            (ColumnReader::DoubleColumnReader(of), Values::F64(values)) => {
                levels.read(of, values, count)
            }
            (ColumnReader::ByteArrayColumnReader(of), Values::Bytes(values)) => {
                levels.read(of, values, count)
            }
            (ColumnReader::FixedLenByteArrayColumnReader(of), Values::Fixed(values)) => {
                levels.read(of, values, count)
            }
            _ => Err(Wrong::new("a column has values of another type")),
        };
        let (rows, levels) = read?;
        if rows != count {
            return Err(Wrong::new("a column has fewer rows than its group"));
        }
        (self.at, self.value_at, self.count) = (0, 0, levels);
        Ok(())
    }

    /// Passes over rows.
    pub(super) fn skip(&mut self, rows: u64) -> Result<(), Wrong> {
        let rows = usize::try_from(rows).map_err(|_| Wrong::new("a group has too many rows"))?;
        let skipped = match &mut self.reader {
            ColumnReader::BoolColumnReader(of) => of.skip_records(rows),
            ColumnReader::Int32ColumnReader(of) => of.skip_records(rows),
            ColumnReader::Int64ColumnReader(of) => of.skip_records(rows),
            ColumnReader::Int96ColumnReader(of) => of.skip_records(rows),
            ColumnReader::FloatColumnReader(of) => of.skip_records(rows),
            ColumnReader::DoubleColumnReader(of) => of.skip_records(rows),
            ColumnReader::ByteArrayColumnReader(of) => of.skip_records(rows),
            ColumnReader::FixedLenByteArrayColumnReader(of) => of.skip_records(rows),
        };
        if skipped? != rows {
            return Err(Wrong::new("a column has fewer rows than its group"));
        }
        Ok(())
    }

    /// How much of the way to the next value is defined.
    pub(super) fn definition(&self) -> Result<i16, Wrong> {
        if self.at >= self.count {
            return Err(Wrong::new("the levels of columns do not fit together"));
        }
        Ok(self.definitions.get(self.at).copied().unwrap_or(self.definition_max))
    }

    /// What the next level repeats; 0 for a new row.
    pub(super) fn repetition(&self) -> i16 {
        self.repetitions.get(self.at).copied().unwrap_or(0)
    }

    /// Passes over a level without a value.
    pub(super) fn pass(&mut self) {
        self.at += 1;
    }

    /// The values, and the place of the next one, which is taken.
    pub(super) fn take(&mut self) -> (&Values, usize) {
        self.at += 1;
        self.value_at += 1;
        (&self.values, self.value_at - 1)
    }
}
