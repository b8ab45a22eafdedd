//! What happens when more requests come than are handled at the same time.

#![allow(clippy::unwrap_used)]

mod support;

use apiserver::auth::UserInfo;
use apiserver::authorize::{Answer, Attributes, Authorizer, Decision, Reason};
use apiserver::limits::Limits;
use apiserver::{Options, Server};
use bytes::Bytes;
use http_body_util::BodyExt;
use std::sync::Arc;
use support::Fixture;
use tokio::sync::Semaphore;

/// Decides about some users only when it is let.
struct Slow(Arc<Semaphore>);

impl Authorizer for Slow {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> Answer<'a, Decision> {
        Box::pin(async move {
            if attributes.user.name.starts_with("slow") {
                let _let = self.0.acquire().await;
            }
            Decision::Allow(Reason::NONE)
        })
    }
}

async fn get(server: Arc<Server>, user: &str, group: &str, path: &str) -> (u16, http::HeaderMap, String) {
    let request = http::Request::get(path).body(Bytes::new()).unwrap();
    let user = UserInfo { name: user.into(), groups: vec![group.to_owned()], ..UserInfo::default() };
    let (head, body) = server.handle(request, user).await.into_parts();
    let text = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), head.headers, String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test]
async fn too_many_requests_are_turned_away_and_the_others_answered_in_turn() {
    let slow = Arc::new(Semaphore::new(0));
    let limits = Limits { reading: 10, mutating: 1 };
    let options = Options { limits, authorizer: Arc::new(Slow(slow.clone())), ..Options::default() };
    let server = Fixture::new(options).await.server;
    let pods = "/api/v1/pods";
    // Ten are handled, fifty wait, the next one of the same user is too many.
    let waiting: Vec<_> = (0..60).map(|_| tokio::spawn(get(server.clone(), "slow", "", pods))).collect();
    while !get(server.clone(), "admin", "system:masters", "/metrics")
        .await
        .2
        .contains("inqueue_requests{request_kind=\"readOnly\"} 50")
    {
        tokio::task::yield_now().await;
    }
    let (code, headers, text) = get(server.clone(), "slow", "", pods).await;
    assert_eq!((code, text.as_str()), (429, "Too many requests, please try again later.\n"));
    assert_eq!(headers["retry-after"], "1");
    assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
    // Administrators and probes do not wait, nor do writes for reads.
    assert_eq!(get(server.clone(), "admin", "system:masters", pods).await.0, 200);
    assert_eq!(get(server.clone(), "modest", "", "/readyz").await.0, 200);
    let modest = tokio::spawn(get(server.clone(), "modest", "", pods));
    slow.add_permits(1);
    // One of the slow user's requests goes on after another, but the second turn is the modest user's.
    assert_eq!(modest.await.unwrap().0, 200);
    for one in waiting {
        assert_eq!(one.await.unwrap().0, 200);
    }
    let text = get(server, "admin", "system:masters", "/metrics").await.2;
    assert!(text.contains("apiserver_dropped_requests_total{request_kind=\"readOnly\"} 1\n"), "{text}");
}
