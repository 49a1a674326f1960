//! The built-in jobs of an archive, as it describes them.

use archive_model::Reduce;
use archive_rpc::InvalidMessage;
use proto_archive::convert;
use proto_archive::wire::batch_jobs_response as wire;
use serde::Serialize;

use crate::error::visible_text;

/// A built-in job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobDescription {
    /// The name of the job.
    pub name: String,
    /// The description of the job.
    pub about: String,
    /// The meaning of one line, or piece, of the output of the job.
    pub output: String,
    /// The arguments of the job.
    pub arguments: Vec<JobArgument>,
    /// The way in which the outputs of all files become one.
    pub reduce: Reduce,
}

/// An argument of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobArgument {
    /// The name of the argument.
    pub name: String,
    /// The description of the argument.
    pub about: String,
    /// Whether the argument must be given.
    pub required: bool,
    /// The value of the argument when it is not given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default: String,
}

impl TryFrom<wire::Job> for JobDescription {
    type Error = InvalidMessage;

    fn try_from(message: wire::Job) -> Result<Self, InvalidMessage> {
        Ok(Self {
            name: visible_text(&message.name),
            about: visible_text(&message.about),
            output: visible_text(&message.output),
            arguments: message.arguments.into_iter().map(Into::into).collect(),
            reduce: convert::reduce("reduce", message.reduce)?,
        })
    }
}

impl From<wire::Argument> for JobArgument {
    fn from(message: wire::Argument) -> Self {
        Self {
            name: visible_text(&message.name),
            about: visible_text(&message.about),
            required: message.required,
            default: visible_text(&message.default),
        }
    }
}
