//! A server for tests that send requests without sockets.

use apiserver::auth::UserInfo;
use apiserver::{Options, Server};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use object::{Value, json};
use std::sync::Arc;
use store::{Embedded, Store};

/// A server on an empty store.
pub struct Fixture {
    pub server: Arc<Server>,
}

impl Fixture {
    pub async fn new(options: Options) -> Self {
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(store::Options::default()));
        Fixture { server: Server::new(store, options).await.unwrap() }
    }

    /// Sends a request; gives the code and the answer.
    pub async fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.send_as("me", &[], method, path, body).await
    }

    /// Sends a request of somebody who is in some groups.
    pub async fn send_as(&self, name: &str, groups: &[&str], method: &str, path: &str, body: &str) -> (u16, Value) {
        self.send_for("application/json", (name, groups), method, path, body).await
    }

    /// What a path shows as a table.
    #[allow(dead_code)]
    pub async fn table(&self, path: &str) -> Value {
        self.send_for("application/json;as=Table;g=meta.k8s.io;v=v1", ("me", &[]), "GET", path, "").await.1
    }

    async fn send_for(
        &self,
        accept: &str,
        (name, groups): (&str, &[&str]),
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, Value) {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "test/1")
            .header("accept", accept)
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let user = UserInfo { name: name.into(), groups, ..UserInfo::default() };
        let response = self.server.handle(request, user).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, json::parse(&bytes).unwrap_or_default())
    }

    /// Sends a request; gives the code and the message of the answer.
    #[allow(dead_code)]
    pub async fn message(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (code, answer) = self.send(method, path, body).await;
        (code, answer.str_at(&["message"]).unwrap_or_default().to_owned())
    }

    /// Makes an object that has to be taken.
    #[allow(dead_code)]
    pub async fn make(&self, path: &str, body: &str) -> Value {
        let (code, answer) = self.send("POST", path, body).await;
        assert_eq!(code, 201, "{}", json::to_string(&answer));
        answer
    }
}
