//! YAML with positions, one settings tree, typed readers of it
