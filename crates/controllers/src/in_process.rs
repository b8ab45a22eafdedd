//! Requests to a server in the same process.

use apiserver::Server;
use apiserver::answer::Body;
use apiserver::auth::UserInfo;
use bytes::Bytes;
use client::{BoxFuture, Error, Response, Transport};
use futures_util::StreamExt;
use http_body_util::BodyStream;
use std::sync::Arc;

/// Hands requests to a server in the same process, as a user.
#[derive(Debug)]
pub struct InProcess {
    server: Arc<Server>,
    user: UserInfo,
}

impl InProcess {
    /// Requests as this user, who may impersonate others if the server lets them.
    pub fn new(server: Arc<Server>, user: UserInfo) -> Self {
        InProcess { server, user: user.authenticated() }
    }

    /// Requests as the controller manager, who may do everything.
    pub fn controller_manager(server: Arc<Server>) -> Self {
        let name = "system:kube-controller-manager".to_owned();
        let groups = vec!["system:masters".to_owned()];
        Self::new(server, UserInfo { name, groups, ..UserInfo::default() })
    }
}

impl Transport for InProcess {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>> {
        Box::pin(async move {
            let response = self.server.handle(request, self.user.clone()).await;
            Ok(response.map(|body| match body {
                Body::Whole(bytes) => client::whole(bytes),
                Body::Stream(body) => pieces(body),
            }))
        })
    }
}

fn pieces(
    body: impl http_body_util::BodyExt<Data = Bytes, Error = std::convert::Infallible> + Send + 'static,
) -> client::Body {
    Box::pin(BodyStream::new(body).filter_map(|frame| async {
        let Ok(frame) = frame;
        frame.into_data().ok().map(Ok)
    }))
}
