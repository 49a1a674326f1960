//! A job on its way to the archive.

use std::fmt;
use std::time::Duration;

use archive_model::{JobId, NameList, ReplicaId, Root};
use bytes::Bytes;
use proto_archive::wire::batch_spec::Value;
use proto_archive::wire::batch_submit_request::{Open, Step};
use proto_archive::wire::{BatchSpec, BatchSubmitRequest};
use proto_archive::{convert, wire};

/// The most bytes of a component in one message.
const CHUNK: usize = 256 * 1024;

/// The program of a job.
#[derive(Clone, PartialEq, Eq)]
pub enum Code {
    /// A built-in job, by its name.
    BuiltIn(String),
    /// A WebAssembly component.
    Component {
        /// The BLAKE3 root of the component.
        digest: Root,
        /// All bytes of the component.
        bytes: Bytes,
    },
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(f, "BuiltIn({name})"),
            Self::Component { digest, bytes } => {
                write!(f, "Component({digest}, {} bytes)", bytes.len())
            }
        }
    }
}

/// A job to submit. Whatever is absent is as the archive is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSubmission {
    /// The id of the job, made by the caller who submits it.
    pub id: JobId,
    /// The program of the job.
    pub code: Code,
    /// The arguments of the job, each name once.
    pub arguments: Vec<(String, String)>,
    /// A regular expression that the whole name of a file must match.
    pub files: Option<String>,
    /// The files by their names, instead of an expression.
    pub names: Option<NameList>,
    /// The replica over whose files the job runs; absent: one that keeps bytes, has the named files, and answers.
    pub replica: Option<ReplicaId>,
    /// The replicas that are not chosen if another one has the files; not a part of the job.
    pub avoided: Vec<ReplicaId>,
    /// The time that the whole job may take once it has begun.
    pub time: Option<Duration>,
    /// The time that a component may compute for one file.
    pub file_time: Option<Duration>,
    /// The most memory that a component may have, in bytes.
    pub memory: Option<u64>,
    /// The most output of the whole job, in bytes.
    pub output: Option<u64>,
    /// The time that the outputs of the job are kept after its end.
    pub keep: Option<Duration>,
}

impl JobSubmission {
    /// Returns a built-in job over all files, with everything else as the archive is set.
    ///
    /// ```
    /// use archive_client::batch::JobSubmission;
    /// use archive_model::JobId;
    /// let id = JobId::new("cdx-1")?;
    /// let job = JobSubmission {
    ///     arguments: vec![("post-append".to_owned(), "true".to_owned())],
    ///     ..JobSubmission::built_in(id, "extract-cdx")
    /// };
    /// assert_eq!(job.names, None);
    /// # Ok::<(), archive_model::InvalidId>(())
    /// ```
    pub fn built_in(id: JobId, job: &str) -> Self {
        Self {
            id,
            code: Code::BuiltIn(job.to_owned()),
            arguments: Vec::new(),
            files: None,
            names: None,
            replica: None,
            avoided: Vec::new(),
            time: None,
            file_time: None,
            memory: None,
            output: None,
            keep: None,
        }
    }

    /// Returns the messages that are sent, in order.
    pub(super) fn submit_messages(
        &self,
    ) -> impl Iterator<Item = BatchSubmitRequest> + Send + use<> {
        let (bytes, job, component) = match &self.code {
            Code::BuiltIn(name) => (Bytes::new(), name.clone(), Bytes::new()),
            Code::Component { digest, bytes } => {
                (bytes.clone(), String::new(), convert::root_bytes(digest))
            }
        };
        let values = self.arguments.iter().map(|(name, value)| Value {
            name: name.clone(),
            value: value.clone(),
        });
        let spec = BatchSpec {
            job,
            component,
            component_size: bytes.len() as u64,
            arguments: values.collect(),
            files: self.files.clone().unwrap_or_default(),
            replica: self
                .replica
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            time_ms: milliseconds(self.time),
            file_time_ms: milliseconds(self.file_time),
            memory: self.memory.unwrap_or_default(),
            output: self.output.unwrap_or_default(),
            names: convert::wire_names(self.names.as_ref()),
            keep_ms: milliseconds(self.keep),
        };
        let open = Step::Open(Open {
            id: self.id.to_string(),
            spec: Some(spec),
            avoided: self.avoided.iter().map(ToString::to_string).collect(),
        });
        let chunks = (0..bytes.len()).step_by(CHUNK).map(move |start| {
            let end = (start + CHUNK).min(bytes.len());
            Step::Component(bytes.slice(start..end))
        });
        std::iter::once(open)
            .chain(chunks)
            .map(|step| wire::BatchSubmitRequest { step: Some(step) })
    }
}

/// Returns a time in whole milliseconds, at least 1; 0 for `None`, which leaves it to the archive.
fn milliseconds(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a component loses bytes at the edge of a piece, or a time limit below one millisecond is sent as no
    /// limit.
    #[test]
    fn component_is_sent_in_pieces_after_spec() {
        let bytes = Bytes::from(vec![7; 2 * CHUNK + 1]);
        let digest = Root::from_bytes([1; 32]);
        let submission = JobSubmission {
            code: Code::Component { digest, bytes },
            arguments: vec![("a".into(), String::new())],
            time: Some(Duration::from_nanos(1)),
            output: Some(9),
            keep: Some(Duration::from_mins(1)),
            ..JobSubmission::built_in(JobId::new("j").unwrap(), "")
        };
        let steps: Vec<_> = submission
            .submit_messages()
            .map(|m| m.step.unwrap())
            .collect();
        let [Step::Open(open), rest @ ..] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        let spec = open.spec.as_ref().unwrap();
        assert_eq!((spec.time_ms, spec.file_time_ms, spec.output), (1, 0, 9));
        assert_eq!((spec.keep_ms, spec.names.len()), (60_000, 0));
        assert_eq!(spec.component_size, 2 * CHUNK as u64 + 1);
        let sizes = rest.iter().map(|step| match step {
            Step::Component(bytes) => bytes.len(),
            Step::Open(_) => panic!("twice"),
        });
        assert_eq!(sizes.collect::<Vec<_>>(), [CHUNK, CHUNK, 1]);
        let built_in = JobSubmission {
            code: Code::BuiltIn("checksum".into()),
            ..submission
        };
        assert_eq!(built_in.submit_messages().count(), 1);
    }
}
