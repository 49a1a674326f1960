//! The output on stdout: a table for people, or one JSON document and nothing else.
//!
//! # Errors
//!
//! Every function fails when stdout cannot be written.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;

use crate::exit::Failure;

/// The output of answers. Made once, handed to every command.
#[derive(Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    /// Makes an output: one JSON document where `json` is true, and lines and tables for people otherwise.
    #[must_use]
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns whether one JSON document is wanted.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Returns stdout, for an answer that is written while it comes. To be flushed.
    pub fn writer(&self) -> BufWriter<Stdout> {
        BufWriter::new(io::stdout())
    }

    /// Writes a document for programs.
    pub fn write_document(&self, document: &impl Serialize) -> Result<(), Failure> {
        let mut out = self.writer();
        serde_json::to_writer_pretty(&mut out, document)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush())
            .map_err(|error| Failure::output_failed(&error))
    }

    /// Writes a line for people.
    pub fn write_line(&self, line: &str) -> Result<(), Failure> {
        let mut out = self.writer();
        writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .map_err(|error| Failure::output_failed(&error))
    }

    /// Writes a table for people.
    pub fn write_table(&self, table: &TextTable) -> Result<(), Failure> {
        let mut out = self.writer();
        out.write_all(table.to_string().as_bytes())
            .and_then(|()| out.flush())
            .map_err(|error| Failure::output_failed(&error))
    }
}

/// Prints a message for the person at the terminal, beside the answer. It is lost without an error if stderr is closed.
pub fn tell_user(message: &str) {
    let mut line = format!("holdfast: {message}");
    line.push('\n');
    _ = io::stderr().write_all(line.as_bytes());
}

/// Rows under a header, aligned. The last column may be of any width.
#[derive(Debug)]
pub struct TextTable {
    columns: &'static [TableColumn],
    rows: Vec<Vec<String>>,
}

/// A column's title, and on which side it is aligned.
#[derive(Clone, Copy, Debug)]
pub enum TableColumn {
    /// Text.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

impl TableColumn {
    const fn title(self) -> &'static str {
        match self {
            Self::Left(title) | Self::Right(title) => title,
        }
    }
}

impl TextTable {
    /// Makes a table without rows.
    #[must_use]
    pub const fn new(columns: &'static [TableColumn]) -> Self {
        let rows = Vec::new();
        Self { columns, rows }
    }

    /// Adds a row below the others.
    pub fn push<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.into());
    }
}

impl std::fmt::Display for TextTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = |index: usize, column: &TableColumn| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let widths = cells.map(|cell| cell.chars().count());
            widths.fold(column.title().len(), usize::max)
        };
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| width(i, c))
            .collect();
        let header = self
            .columns
            .iter()
            .map(|column| column.title().to_owned())
            .collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, column), width) in row.iter().zip(self.columns).zip(&widths) {
                let space = " ".repeat(width.saturating_sub(cell.chars().count()));
                match column {
                    TableColumn::Left(_) => line.extend([cell.as_str(), &space, "  "]),
                    TableColumn::Right(_) => line.extend([&space, cell.as_str(), "  "]),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Returns a number of bytes as people say it: three digits and a decimal unit.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut worth = 1_u128;
    let mut said = String::new();
    for unit in UNITS {
        worth *= 1000;
        let tenths = (u128::from(bytes) * 10 + worth / 2) / worth;
        said = format!("{}.{} {unit}", tenths / 10, tenths % 10);
        if tenths < 10_000 {
            break;
        }
    }
    said
}

/// Returns a value as text, or a dash if it is not known.
pub fn or_dash(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a column of numbers is aligned to the left, one of words to the right, the last column is filled up
    /// with spaces, or the width of a cell is counted in bytes.
    #[test]
    fn columns_are_aligned_on_their_side() {
        let mut table = TextTable::new(&[
            TableColumn::Right("SIZE"),
            TableColumn::Left("NAME"),
            TableColumn::Left("STATE"),
        ]);
        table.push(["1".into(), "Måned".into(), "ok".into()]);
        table.push(["12345".into(), "b".into(), "missing".into()]);
        let expected = " SIZE  NAME   STATE\n    1  Måned  ok\n12345  b      missing\n";
        assert_eq!(table.to_string(), expected);
    }

    /// Fails if a size is shown as `1000.0 kB`, or the largest sizes have no unit.
    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (1049, "1.0 kB"),
            (1050, "1.1 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (1_500_000_000, "1.5 GB"),
            (12_345_678_901_234, "12.3 TB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(size_text(bytes), text, "{bytes}");
        }
    }
}
