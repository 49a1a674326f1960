//! Answers that are written while they come: lines for people, or one JSON document that is whole and valid also when
//! the answer is not.
//!
//! # Errors
//!
//! Every function fails when stdout cannot be written.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{Output, tell_user};

/// Items on their way to stdout.
#[derive(Debug)]
pub struct Items<W: Write = BufWriter<Stdout>> {
    out: W,
    json: bool,
    first: bool,
    /// Somebody watches: every line at once.
    at_once: bool,
}

/// The end of the document.
#[derive(Serialize)]
struct End<'a, T> {
    complete: bool,
    #[serde(flatten)]
    tail: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl Items {
    /// Begins the list `name`.
    pub fn begin_items(output: &Output, name: &str) -> Result<Self, Failure> {
        Self::within(output.writer(), output.is_json(), name)
    }
}

impl<W: Write> Items<W> {
    fn within(out: W, json: bool, name: &str) -> Result<Self, Failure> {
        let mut items = Self {
            out,
            json,
            first: true,
            at_once: io::stdout().is_terminal(),
        };
        if json {
            let begun = write!(items.out, "{{\"{name}\":[");
            begun.map_err(|error| Failure::output_failed(&error))?;
        }
        Ok(items)
    }

    /// Writes one item, as JSON or as the line that stands for it.
    pub fn write_item(
        &mut self,
        item: &impl Serialize,
        line: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let written = if self.json {
            let comma = if self.first { "" } else { "," };
            writeln!(self.out, "{comma}")
                .and_then(|()| Ok(serde_json::to_writer(&mut self.out, item)?))
        } else {
            writeln!(self.out, "{}", line())
        };
        self.first = false;
        let written = match written {
            Ok(()) if self.at_once => self.out.flush(),
            other => other,
        };
        written.map_err(|error| Failure::output_failed(&error))
    }

    /// Writes a line that only people get.
    pub fn write_line(&mut self, line: &str) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        writeln!(self.out, "{line}").map_err(|error| Failure::output_failed(&error))
    }

    /// Ends the document with the fields of `tail`. Reports the failure, if there is one.
    ///
    /// `complete`: nothing is lacking in what came. The exit is that of the failure, where there is one.
    pub fn end_items(
        mut self,
        complete: bool,
        tail: impl Serialize,
        ended: Result<(), Failure>,
        exit: Exit,
    ) -> Result<Exit, Failure> {
        if self.json {
            let end = End {
                complete: complete && ended.is_ok(),
                tail,
                error: ended.as_ref().err(),
            };
            let text = serde_json::to_string(&end)
                .map_err(|error| Failure::output_failed(&error.into()))?;
            // The fields belong to the object that was begun.
            let fields = text.strip_prefix('{').unwrap_or(&text);
            writeln!(self.out, "\n],{fields}").map_err(|error| Failure::output_failed(&error))?;
        }
        self.out
            .flush()
            .map_err(|error| Failure::output_failed(&error))?;
        match ended {
            Ok(()) => Ok(exit),
            Err(failure) => {
                // The document, if there is one, is out already, and says it too.
                tell_user(&failure.message);
                Ok(failure.exit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(json: bool, count: usize, ended: Result<(), Failure>) -> (String, Exit) {
        let mut out = Vec::new();
        let mut items = Items::within(&mut out, json, "things").unwrap();
        items.write_line("HEAD").unwrap();
        for n in 0..count {
            items.write_item(&n, || format!("number {n}")).unwrap();
        }
        let tail = serde_json::json!({ "more": 1 });
        let exit = items.end_items(true, tail, ended, Exit::Done).unwrap();
        (String::from_utf8(out).unwrap(), exit)
    }

    /// Fails if an answer that breaks off leaves JSON that does not parse, or a document that calls itself complete.
    #[test]
    fn the_document_is_whole_whatever_happens() {
        for count in 0..3 {
            for ended in [Ok(()), Err(Failure::because_failed("cut"))] {
                let failed = ended.is_err();
                let (text, exit) = written(true, count, ended);
                let document: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(document["things"].as_array().unwrap().len(), count);
                assert_eq!(document["complete"], !failed);
                assert_eq!(document.get("error").is_some(), failed);
                assert_eq!(
                    (&document["more"], exit == Exit::Failed),
                    (&1.into(), failed)
                );
            }
        }
        assert_eq!(written(false, 2, Ok(())).0, "HEAD\nnumber 0\nnumber 1\n");
    }
}
