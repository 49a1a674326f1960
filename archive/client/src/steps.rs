//! Answers of the archive that come one by one.

use crate::error::ClientError;

/// Steps of an answer of the archive, as they come. They end only when they are complete: a cut is an error, and after
/// an error nothing comes.
///
/// ```
/// use archive_client::ArchiveSteps;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archive_client::ClientError> {
/// let mut steps = ArchiveSteps::new(tokio_stream::iter([Ok(1), Ok(2)]));
/// let mut sum = 0;
/// while let Some(step) = steps.next().await? {
///     sum += step;
/// }
/// assert_eq!(sum, 3);
/// # Ok(())
/// # }
/// ```
pub type ArchiveSteps<T> = archive_rpc::CallSteps<T, ClientError>;
