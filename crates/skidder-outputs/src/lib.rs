//! Elasticsearch, file, console and discard outputs
