//! The verdict on the uploads of a file, for which they wait once their last byte is sent.

use std::sync::Arc;

use tokio::sync::watch;

/// The verdict on the uploads of a file.
#[derive(Clone, Debug)]
pub enum UploadVerdict {
    /// The nodes commit what they have, with this signed admission.
    Admitted(Arc<str>),
    /// The uploads will not be continued: the nodes need not keep what they have of them.
    Forgotten,
}

/// Takes the verdict to the uploads, once there is one; dropped without one, they give up.
pub type Seal = watch::Sender<Option<UploadVerdict>>;

/// Takes the verdict from a [`Seal`] to one upload.
pub type VerdictReceiver = watch::Receiver<Option<UploadVerdict>>;
