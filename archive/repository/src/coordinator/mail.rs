//! What the coordinator is told, and by whom it is waited for.

use archive_model::FileName;
use tokio::sync::{mpsc, oneshot};

use super::admit::Admittance;
use crate::depositor::Depositor;
use crate::store::{Claim, Event};

/// Where the coordinator is told what happened.
#[derive(Clone, Debug)]
pub(crate) struct Mail(pub(super) mpsc::Sender<Letter>);

/// What the coordinator is told.
pub(crate) enum Letter {
    /// A depositor wants to store a file.
    Ask {
        name: FileName,
        claim: Claim,
        depositor: Box<Depositor>,
    },
    /// Something happened to a file.
    Happened { name: FileName, event: Event },
    /// People have decided something about a file.
    Ordered {
        name: FileName,
        event: Event,
        /// Who, as `role/name`.
        who: String,
        /// Told once it is remembered.
        done: oneshot::Sender<()>,
    },
    /// People take in a file that replicas have with a signed admission, and that the admin data do not know.
    Admit(Admittance),
    /// Somebody wants to know when all that was said before is remembered.
    Settle(oneshot::Sender<()>),
}

impl Mail {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Letter>) {
        let (sender, receiver) = mpsc::channel(1024);
        (Self(sender), receiver)
    }

    /// Reports an event. A coordinator that has stopped needs no reports.
    pub(crate) async fn happened(&self, name: FileName, event: Event) {
        drop(self.0.send(Letter::Happened { name, event }).await);
    }

    /// Reports what people have decided about a file, and waits until it is remembered; `false`: the repository stops.
    pub(crate) async fn order(&self, name: FileName, event: Event, who: String) -> bool {
        let (done, is_done) = oneshot::channel();
        let letter = Letter::Ordered {
            name,
            event,
            who,
            done,
        };
        self.0.send(letter).await.is_ok() && is_done.await.is_ok()
    }

    /// Waits until what was reported before is remembered; `false`: the repository is stopping.
    pub(crate) async fn settled(&self) -> bool {
        let (settle, settled) = oneshot::channel();
        self.0.send(Letter::Settle(settle)).await.is_ok() && settled.await.is_ok()
    }

    /// Asks for a file to be stored; `false`: the repository is stopping.
    pub(crate) async fn ask(&self, name: FileName, claim: Claim, depositor: Depositor) -> bool {
        self.0
            .send(Letter::Ask {
                name,
                claim,
                depositor: Box::new(depositor),
            })
            .await
            .is_ok()
    }
}
