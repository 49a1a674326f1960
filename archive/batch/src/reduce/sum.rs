//! Lines of a key and numbers: the numbers of each key are added up.
//!
//! Lines that fit into memory are added up there; the rest is sorted, and added up where equal keys stand side by side.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use archive_formats::cdx::Sorter;

use super::{SinkWriter, each_line, failed, unsorted};
use crate::job::BatchJobError;

/// The size of an entry beside its key and its numbers, about.
const ENTRY: usize = 100;

/// Adds up `key TAB number [TAB number …]`.
pub(super) fn sum_columns(
    input: &mut dyn Read,
    mut sorter: Sorter,
    out: &mut SinkWriter<'_>,
    memory: usize,
) -> Result<(), BatchJobError> {
    let mut sums: HashMap<Vec<u8>, Vec<u128>> = HashMap::new();
    let mut held = 0_usize;
    each_line(input, out.control, |number, line| {
        let wrong = |why: &str| {
            let shown = String::from_utf8_lossy(line.get(..200).unwrap_or(line)).into_owned();
            BatchJobError::Failed(format!("line {number} of the output {why}: {shown:?}"))
        };
        let (key, numbers) =
            parse(line).ok_or_else(|| wrong("is no key and numbers with tabs between"))?;
        if let Some(sum) = sums.get_mut(key) {
            return add(sum, &numbers).map_err(wrong);
        }
        held += ENTRY + key.len() + numbers.len() * size_of::<u128>();
        sums.insert(key.to_vec(), numbers);
        if held > memory {
            held = 0;
            spill(&mut sums, &mut sorter)?;
        }
        Ok(())
    })?;
    spill(&mut sums, &mut sorter)?;
    let mut adding = SumWriter {
        out,
        line: Vec::new(),
        current: None,
    };
    sorter
        .finish(&mut adding)
        .map_err(|error| unsorted(&error))?;
    adding.end().map_err(|error| failed(&error))
}

fn spill(sums: &mut HashMap<Vec<u8>, Vec<u128>>, sorter: &mut Sorter) -> Result<(), BatchJobError> {
    for (key, numbers) in sums.drain() {
        sorter
            .push(&line(&key, &numbers))
            .map_err(|error| unsorted(&error))?;
    }
    Ok(())
}

fn line(key: &[u8], numbers: &[u128]) -> Vec<u8> {
    let mut line = key.to_vec();
    for number in numbers {
        line.push(b'\t');
        line.extend_from_slice(number.to_string().as_bytes());
    }
    line
}

/// Returns the key before the first tab, and the numbers behind it: at least one.
fn parse(line: &[u8]) -> Option<(&[u8], Vec<u128>)> {
    let at = memchr::memchr(b'\t', line)?;
    let (key, rest) = line.split_at(at);
    let numbers = rest.get(1..)?.split(|byte| *byte == b'\t').map(|digits| {
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let digits = is_number.then(|| std::str::from_utf8(digits).ok())??;
        digits.parse().ok()
    });
    Some((key, numbers.collect::<Option<Vec<u128>>>()?))
}

fn add(sum: &mut [u128], numbers: &[u128]) -> Result<(), &'static str> {
    if sum.len() != numbers.len() {
        return Err("has not as many numbers as others of its key");
    }
    for (sum, number) in sum.iter_mut().zip(numbers) {
        *sum = sum
            .checked_add(*number)
            .ok_or("makes a sum beyond 128 bits")?;
    }
    Ok(())
}

/// A writer that takes sorted lines, and adds up the lines that follow each other with one key.
struct SumWriter<'a, 'b> {
    out: &'a mut SinkWriter<'b>,
    line: Vec<u8>,
    current: Option<(Vec<u8>, Vec<u128>)>,
}

impl SumWriter<'_, '_> {
    fn take(&mut self) -> io::Result<()> {
        let taken = std::mem::take(&mut self.line);
        let wrong = |why: &str| {
            let shown = String::from_utf8_lossy(taken.get(..200).unwrap_or(&taken)).into_owned();
            io::Error::other(format!("the line {shown:?} {why}"))
        };
        let (key, numbers) = parse(&taken).ok_or_else(|| wrong("is no key and numbers"))?;
        if let Some((last, sum)) = &mut self.current
            && last == key
        {
            return add(sum, &numbers).map_err(wrong);
        }
        let next = (key.to_vec(), numbers);
        self.end()?;
        self.current = Some(next);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let Some((key, numbers)) = self.current.take() else {
            return Ok(());
        };
        let mut line = line(&key, &numbers);
        line.push(b'\n');
        self.out.write_all(&line)
    }
}

impl Write for SumWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(at);
            self.line.extend_from_slice(line);
            self.take()?;
            rest = &behind[1..];
        }
        self.line.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
