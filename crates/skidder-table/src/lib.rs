//! Tables in files: rows of Parquet as objects of JSON, as Filebeat writes them, and of Avro.
//!
//! Promises: rows come in the order of the file, each with its number as its place, and can begin at any of them; damaged
//! content is an error and never a panic. Memory: a page and a dictionary of each column as the writer made them, the values
//! of [`parquet::ROWS_AT_ONCE`] rows, or a block of Avro, and the text that was asked for.

pub mod avro;
mod json;
pub mod parquet;
