//! The form of the lines of an export, in both directions.

use std::fmt;
use std::str::FromStr;

use archive_formats::cdx::Format;
use archive_rpc::InvalidMessage;

use crate::wire::export_request::{Form, Format as WireFormat};

/// The beginning of the header line of a legend.
const HEADER: &str = " CDX ";

/// A form that has a name.
struct NamedForm {
    name: &'static str,
    form: Form,
    format: fn() -> Format,
}

impl NamedForm {
    const ALL: [Self; 4] = [
        Self::new("cdxj", Form::Cdxj, || Format::Cdxj),
        Self::new("cdx9", Form::Cdx9, Format::cdx9),
        Self::new("cdx11", Form::Cdx11, Format::cdx11),
        Self::new("cdx14", Form::Cdx14, Format::cdx14),
    ];

    const fn new(name: &'static str, form: Form, format: fn() -> Format) -> Self {
        Self { name, form, format }
    }
}

/// A form of lines that can be asked for: one that has a name, or the letters of a legend.
///
/// ```
/// use proto_index::export::ExportFormat;
/// let format: ExportFormat = "CDX N b a m s k r V g".parse()?;
/// assert_eq!(format.to_string(), "cdx9");
/// assert!("cdx12".parse::<ExportFormat>().is_err());
/// # Ok::<(), proto_index::export::InvalidExportFormat>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFormat(Format);

/// The reason why a text is no form of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidExportFormat(String);

impl fmt::Display for InvalidExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a form of lines; give cdxj, cdx9, cdx11, cdx14 or letters such as `N b a m s k r M S V g`",
            self.0
        )
    }
}

impl std::error::Error for InvalidExportFormat {}

impl ExportFormat {
    /// Returns the form, to write lines with.
    pub fn into_format(self) -> Format {
        self.0
    }

    /// Reads the form that a request names. A request that names none is for CDXJ.
    ///
    /// # Errors
    /// This build does not know the form, or no lines can be written by the legend.
    pub fn read_format(message: Option<WireFormat>) -> Result<Self, InvalidMessage> {
        match message {
            None => Ok(Self::default()),
            Some(WireFormat::Form(number)) => {
                let mut named = NamedForm::ALL.into_iter();
                let found = named.find(|named| i32::from(named.form) == number);
                let unknown = || {
                    let reason = format!("is {number}, which this build does not know");
                    InvalidMessage::invalid_field("form", reason)
                };
                found
                    .map(|named| Self((named.format)()))
                    .ok_or_else(unknown)
            }
            Some(WireFormat::Legend(letters)) => Self::of_legend(&letters)
                .map_err(|error| InvalidMessage::invalid_field("legend", error.to_string())),
        }
    }

    /// Writes the form as a request names it.
    pub fn write_format(&self) -> WireFormat {
        match self.named() {
            Some(named) => WireFormat::Form(named.form.into()),
            None => WireFormat::Legend(self.letters()),
        }
    }

    fn named(&self) -> Option<NamedForm> {
        let mut named = NamedForm::ALL.into_iter();
        named.find(|named| (named.format)() == self.0)
    }

    fn letters(&self) -> String {
        let header = self.0.header().unwrap_or_default();
        header
            .strip_prefix(HEADER)
            .map(str::to_owned)
            .unwrap_or(header)
    }

    fn of_legend(text: &str) -> Result<Self, InvalidExportFormat> {
        let letters = text.trim();
        let letters = letters.strip_prefix("CDX ").unwrap_or(letters);
        match Format::sniff_line(&format!("{HEADER}{letters}")) {
            Ok(format) if !letters.is_empty() => Ok(Self(format)),
            _ => Err(InvalidExportFormat(text.chars().take(200).collect())),
        }
    }
}

impl Default for ExportFormat {
    /// CDXJ.
    fn default() -> Self {
        Self(Format::Cdxj)
    }
}

impl FromStr for ExportFormat {
    type Err = InvalidExportFormat;

    fn from_str(text: &str) -> Result<Self, InvalidExportFormat> {
        let mut named = NamedForm::ALL.into_iter();
        match named.find(|named| named.name == text) {
            Some(named) => Ok(Self((named.format)())),
            None => Self::of_legend(text),
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.named() {
            Some(named) => f.pad(named.name),
            None => f.pad(&self.letters()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a form is another one at its other end, or has another name.
    #[test]
    fn export_format_is_read_as_written() {
        for text in ["cdxj", "cdx9", "cdx11", "cdx14", "N b a", "A e b m n g v c"] {
            let format: ExportFormat = text.parse().unwrap();
            assert_eq!(format.to_string(), text);
            assert_eq!(
                ExportFormat::read_format(Some(format.write_format())),
                Ok(format)
            );
        }
        assert_eq!(ExportFormat::read_format(None), Ok(ExportFormat::default()));
        let named: ExportFormat = "CDX N b a m s k r M S V g".parse().unwrap();
        assert_eq!(named.write_format(), WireFormat::Form(Form::Cdx11.into()));
    }

    /// Fails if a form that nobody knows is guessed, or the error does not name the field.
    #[test]
    fn unknown_export_format_is_refused() {
        for text in ["", " ", "cdx12", "N", "N bb", "CDX"] {
            assert!(text.parse::<ExportFormat>().is_err(), "{text:?}");
            let legend = WireFormat::Legend(text.to_owned());
            let error = ExportFormat::read_format(Some(legend)).unwrap_err();
            assert_eq!(error.field, "legend", "{text:?}");
        }
        for number in [0, 99] {
            let error = ExportFormat::read_format(Some(WireFormat::Form(number))).unwrap_err();
            assert_eq!(error.field, "form");
        }
    }
}
