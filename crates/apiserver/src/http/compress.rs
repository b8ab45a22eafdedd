//! Compression of large answers, as upstream does it: gzip at its fastest level, for reads, from 128 KiB on.

use super::Answer;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Method, Response, header};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Body;
use std::io::Write;

/// Answers smaller than this are sent as they are.
const THRESHOLD: u64 = 128 * 1024;

/// Whether the client takes gzip for this request.
pub(super) fn wanted(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::GET
        && headers.get_all(header::ACCEPT_ENCODING).iter().any(|value| {
            value.to_str().is_ok_and(|v| v.split(',').any(|e| e.split(';').next().unwrap_or_default().trim() == "gzip"))
        })
}

/// Compresses an answer that is large enough and whose size is known; streams pass through.
pub(super) async fn response<B>(response: Response<B>) -> Answer<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    let large = response.body().size_hint().exact().is_some_and(|n| n >= THRESHOLD);
    if !large || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response.map(Either::Left);
    }
    let (mut parts, body) = response.into_parts();
    let Ok(plain) = body.collect().await else {
        return Response::from_parts(parts, Either::Right(Full::default()));
    };
    let packed = tokio::task::spawn_blocking(move || gzip(plain.to_bytes())).await;
    match packed {
        Ok(Ok(bytes)) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Either::Right(Full::from(bytes)))
        }
        Ok(Err(plain)) => Response::from_parts(parts, Either::Right(Full::from(plain))),
        Err(_) => Response::from_parts(parts, Either::Right(Full::default())),
    }
}

/// The compressed bytes, or the plain ones back where compression fails.
fn gzip(plain: Bytes) -> Result<Bytes, Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 8), Compression::fast());
    match encoder.write_all(&plain).and_then(|()| encoder.finish()) {
        Ok(packed) => Ok(packed.into()),
        Err(_) => Err(plain),
    }
}
