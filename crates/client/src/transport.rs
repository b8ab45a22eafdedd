//! What carries requests.

use crate::Error;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use std::future::Future;
use std::pin::Pin;

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The body of an answer, as its pieces come.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;

/// An answer.
pub type Response = http::Response<Body>;

/// Carries one request to a server and brings its answer, whose body may go on for ever.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request. Its URI is a path with a query; the transport knows the server. An answer of any code is no
    /// error; an error is that there is no answer.
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<Response, Error>>;
}

/// A body that is there in full.
pub fn whole(body: impl Into<Bytes>) -> Body {
    let body = body.into();
    Box::pin(stream::iter((!body.is_empty()).then_some(Ok(body))))
}
