//! The client of the service `Node`, for every node of the replica.
//!
//! The server that answers must show the certificate of exactly the node that is meant. Questions share one channel per
//! node; a listing has one of its own, so that a listing nobody reads on cannot hold up the answers behind it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use archive_model::{FileName, NodeId};
use archive_rpc::{
    ConnectError, Credentials, ExpectedIdentity, Grant, IdleTimeout, InvalidGrant, InvalidMessage,
    Role, RpcLimits, connect_lazy,
};
use futures_util::{Stream, TryStreamExt, stream};
use parking_lot::Mutex;
use proto_archive::wire;
use proto_archive::wire::node_client::NodeClient;
use tonic::Status;
use tonic::transport::Channel;

use super::convert;
use crate::gap::ReplicaGap;
use crate::locate::SurveyAnswer;
use crate::nodes::Address;

/// The messages of a node's listing. A silence in it, also before its first message, ends it with an error.
pub(super) type Messages =
    IdleTimeout<Pin<Box<dyn Stream<Item = Result<wire::FilesResponse, Status>> + Send>>>;

/// The most volumes that a node may name in one answer.
const MOST_VOLUMES: usize = 256;

/// The reason why a node gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// The address of the node is not valid.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The id of the node cannot stand in a certificate.
    #[error(transparent)]
    Name(#[from] InvalidGrant),
    /// The call failed.
    #[error("{}", Reason(.0))]
    Call(#[from] Status),
    /// The answer of the node cannot be read.
    #[error(transparent)]
    Answer(#[from] InvalidMessage),
    /// The answer names more volumes than a node may have.
    #[error("it answered for {0} volumes; at most {MOST_VOLUMES} are read")]
    TooMany(usize),
    /// The node answered about another file.
    #[error("it was asked for {asked} and answered for {answered}")]
    Other {
        /// The file that the node was asked for.
        asked: FileName,
        /// The file that the node answered for.
        answered: FileName,
    },
}

/// A status in words: of a connection that could not be made, why not.
pub(super) struct Reason<'a>(pub(super) &'a Status);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ConnectError::within(self.0) {
            Some(error) => error.fmt(f),
            None if self.0.message().is_empty() => self.0.code().fmt(f),
            None => f.write_str(self.0.message()),
        }
    }
}

/// The channels to the nodes.
pub(crate) struct Nodes {
    credentials: Credentials,
    limits: RpcLimits,
    /// The channel for questions to each node, with the endpoint to which it leads.
    channels: Mutex<BTreeMap<NodeId, (String, Channel)>>,
}

impl Nodes {
    pub(crate) fn new(credentials: Credentials, limits: RpcLimits) -> Self {
        Self {
            credentials,
            // No bytes of files come this way. The entries of a node's listing wait until those of the others come.
            limits: limits.with_small_messages(),
            channels: Mutex::default(),
        }
    }

    /// Creates a channel to a node, without dialling yet. Refuses an endpoint that is no address.
    pub(super) fn node_channel(&self, at: &Address) -> Result<Channel, AskError> {
        let expected = ExpectedIdentity::named_grant(&Grant::new(Role::Node, at.node.as_str())?);
        Ok(connect_lazy(
            &at.endpoint,
            &self.credentials,
            &expected,
            &self.limits,
        )?)
    }

    /// Asks whether a node has a file.
    pub(super) async fn find_file(
        &self,
        at: &Address,
        name: &FileName,
        on_disk: bool,
    ) -> Result<SurveyAnswer<wire::FileEntry>, AskError> {
        let mut client = NodeClient::new(self.shared_channel(at)?);
        let answer = client
            .find(wire::FindRequest {
                name: name.to_string(),
                on_disk,
            })
            .await?
            .into_inner();
        let volumes = answer.entries.len().saturating_add(answer.gaps.len());
        if volumes > MOST_VOLUMES {
            return Err(AskError::TooMany(volumes));
        }
        let mut entries = Vec::new();
        for entry in answer.entries {
            let listed = convert::wire_listed(&at.node, entry)?;
            if listed.name != *name {
                return Err(AskError::Other {
                    asked: name.clone(),
                    answered: listed.name,
                });
            }
            entries.push(listed.entry);
        }
        let is_receiving = !answer.receiving.is_empty();
        let gaps = answer.gaps.iter().map(|gap| ReplicaGap {
            is_at_work: is_receiving && gap.volume.is_empty(),
            ..convert::read_gap(&at.node, gap)
        });
        let gaps = gaps.collect();
        Ok(SurveyAnswer { entries, gaps })
    }

    /// Begins to list a node's files, or its findings, after a name.
    pub(super) fn list_files(
        &self,
        at: &Address,
        request: wire::FilesRequest,
        idle: Duration,
    ) -> Result<Messages, AskError> {
        let mut client = NodeClient::new(self.node_channel(at)?);
        let opening = async move { client.files(request).await.map(tonic::Response::into_inner) };
        let messages = stream::once(opening).try_flatten();
        Ok(IdleTimeout::new(Box::pin(messages), idle))
    }

    fn shared_channel(&self, at: &Address) -> Result<Channel, AskError> {
        let mut channels = self.channels.lock();
        if let Some((endpoint, channel)) = channels.get(&at.node)
            && *endpoint == at.endpoint
        {
            return Ok(channel.clone());
        }
        let channel = self.node_channel(at)?;
        channels.insert(at.node.clone(), (at.endpoint.clone(), channel.clone()));
        Ok(channel)
    }
}
