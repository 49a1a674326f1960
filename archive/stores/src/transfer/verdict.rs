//! The bytes and the verdict that come to an upload: uploads of a file wait for the verdict once their last byte is
//! sent.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

/// The verdict on the uploads of a file.
#[derive(Clone, Debug)]
pub enum UploadVerdict {
    /// The file is admitted: the nodes commit their bytes, with this signed admission.
    Admitted(Arc<str>),
    /// The uploads will not be continued: the nodes need not keep their bytes.
    Forgotten,
}

/// The sender that takes the verdict to the uploads. If it is dropped without a verdict, they give up.
pub type Seal = watch::Sender<Option<UploadVerdict>>;

/// The receiver that takes the verdict from a [`Seal`] to one upload.
pub type VerdictReceiver = watch::Receiver<Option<UploadVerdict>>;

/// The feed of one upload: the bytes of the file in order, and then the verdict.
#[derive(Debug)]
pub(crate) struct UploadFeed {
    /// The bytes.
    pub(crate) chunks: mpsc::Receiver<Bytes>,
    /// The verdict.
    pub(crate) sealed: VerdictReceiver,
}
