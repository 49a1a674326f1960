//! Tests of the record and of removals.
