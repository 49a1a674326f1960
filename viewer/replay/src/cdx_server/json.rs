//! JSON text, in ASCII and with a blank behind `:` and `,`, as the field's tools write it.

use std::io::Write as _;

/// Writes a string.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            ' '..='~' => out.extend(u8::try_from(c)),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // Writing to a vector cannot fail.
                    let _ok = write!(out, "\\u{unit:04x}").is_ok();
                }
            }
        }
    }
    out.push(b'"');
}

/// A writer of the members of an object, one by one.
#[derive(Debug)]
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Object<'a> {
    /// Begins an object.
    pub(super) fn begin_object(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_first: true,
        }
    }

    /// Writes the name of a member; its value follows.
    pub(super) fn write_name(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_first {
            self.out.extend_from_slice(b", ");
        }
        self.is_first = false;
        write_string(self.out, name);
        self.out.extend_from_slice(b": ");
        self.out
    }

    /// Writes a member that is text.
    pub(super) fn write_text(&mut self, name: &str, value: &str) {
        write_string(self.write_name(name), value);
    }

    /// Ends the object.
    pub(super) fn end_object(self) {
        self.out.push(b'}');
    }
}
