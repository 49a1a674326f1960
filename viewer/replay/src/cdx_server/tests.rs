//! The dialects, table by table.
