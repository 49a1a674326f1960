//! Shows files to jobs, step by step, and keeps what each step said.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archive_batch::{BatchJobError, File, Reads, Sink, StopControl};
use archive_component::{CompileError, Component, Components};
use archive_formats::warc::{Builder, WarcReader, WarcType, WarcWriter};
use archive_model::{FileName, JobLimits, Root};

/// The result of one file.
#[derive(Debug, Default)]
pub(crate) struct DriveResult {
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<BatchJobError>,
}

impl DriveResult {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.output.clone()).unwrap()
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        self.errors.iter().map(ToString::to_string).collect()
    }
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the binary form of a component in text form, as it is sent.
pub(crate) fn binary(path: &str) -> Vec<u8> {
    let text = std::fs::read(folder().join(path)).unwrap();
    wat::parse_bytes(&text).unwrap().into_owned()
}

pub(crate) fn compile(components: &Components, path: &str) -> Result<Arc<Component>, CompileError> {
    components.compile_component(&binary(path), &StopControl::default())
}

/// Returns small limits, so that tests end.
pub(crate) fn limits() -> JobLimits {
    JobLimits {
        time: Duration::from_mins(1),
        file_time: Duration::from_secs(20),
        memory: 256 << 20,
        output: 1 << 20,
    }
}

pub(crate) fn file(name: &str, bytes: &[u8]) -> File {
    File {
        name: FileName::new(name).unwrap(),
        size: bytes.len() as u64,
        root: Root::from_bytes(*blake3::hash(bytes).as_bytes()),
        stored: "2026-11-21T19:14:09Z".to_owned(),
    }
}

/// Shows a file to a component; ends at the first error that is not the job's own.
pub(crate) fn show(
    component: &Arc<Component>,
    arguments: &[(&str, &str)],
    limits: JobLimits,
    name: &str,
    mut bytes: &[u8],
) -> DriveResult {
    let mut came = DriveResult::default();
    let mut output = Vec::new();
    let known = file(name, bytes);
    let control = StopControl::default();
    came.errors = show_to(
        component,
        arguments,
        limits,
        &known,
        &mut bytes,
        &mut output,
        &control,
    );
    came.output = output;
    came
}

pub(crate) fn show_to(
    component: &Arc<Component>,
    arguments: &[(&str, &str)],
    limits: JobLimits,
    file: &File,
    bytes: &mut dyn Read,
    out: &mut dyn Sink,
    control: &StopControl,
) -> Vec<BatchJobError> {
    let mut errors = Vec::new();
    let arguments: Vec<_> = arguments
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let plan = Arc::clone(component).make_plan(&arguments, limits).unwrap();
    let mut job = plan.start(control).unwrap();
    if let Err(error) = job.begin(file, out) {
        return vec![error];
    }
    match job.reads() {
        Reads::Records => {
            let mut reader = WarcReader::new(bytes);
            while let Some(record) = reader.next_record().unwrap() {
                match job.record(record, out) {
                    Ok(_end) => {}
                    Err(error @ (BatchJobError::Stopped(_) | BatchJobError::Broken(_))) => {
                        errors.push(error);
                        return errors;
                    }
                    Err(error @ (BatchJobError::Failed(_) | BatchJobError::Read(_))) => {
                        errors.push(error);
                    }
                }
            }
        }
        Reads::Bytes => {
            let mut all = Vec::new();
            bytes.read_to_end(&mut all).unwrap();
            for chunk in all.chunks(1000) {
                if let Err(error) = job.bytes(chunk, out) {
                    errors.push(error);
                    return errors;
                }
            }
        }
        Reads::Nothing => {}
    }
    if let Err(error) = job.end(out) {
        errors.push(error);
    }
    errors
}

/// Returns a WARC file: each record is given by a kind, a URL, a content type and a block.
pub(crate) fn warc(records: &[(WarcType, &str, &str, &[u8])]) -> Vec<u8> {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for (number, (kind, url, media, block)) in records.iter().enumerate() {
        let id = format!("urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-{number:012x}");
        let length = block.len() as u64;
        let record = Builder::new(*kind, &id, "2026-11-21T19:14:09Z")
            .target_uri(url)
            .content_type(media);
        let head = record.render_head(length).unwrap();
        let mut block: &[u8] = block;
        writer.write_record(&head, length, &mut block).unwrap();
    }
    writer.into_inner()
}

/// Returns a WARC file with that number of small records.
pub(crate) fn resources(count: usize) -> Vec<u8> {
    let record = (
        WarcType::Resource,
        "http://example.org/",
        "text/plain",
        &b"hello"[..],
    );
    warc(&vec![record; count])
}

pub(crate) fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}
