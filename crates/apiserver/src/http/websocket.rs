//! Watches over WebSockets (RFC 6455), for clients that cannot read an answer while it comes, such as browsers: each
//! event is a message.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::{Buf, Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What the protocol has both sides append to the client's key.
const SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// What the subprotocol begins with by which a browser, which can set no other header, tells its token.
const TOKEN: &str = "base64url.bearer.authorization.k8s.io.";
/// The largest message that a client may send, in bytes: nobody listens to what it says.
const LARGEST: usize = 64 * 1024;

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Marks an answer that is a stream of messages, and says how they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Messages {
    /// Texts, each of which ends with a line feed.
    Lines,
    /// Bytes, each with its length before it, in four bytes with the highest first.
    Counted,
}

impl Messages {
    /// Takes the first message out of what came, if it is there in full.
    fn next(self, buffer: &mut BytesMut) -> Option<Bytes> {
        match self {
            Messages::Lines => {
                let end = memchr::memchr(b'\n', buffer)? + 1;
                Some(buffer.split_to(end).freeze())
            }
            Messages::Counted => {
                let length = u32::from_be_bytes(*buffer.first_chunk()?) as usize;
                if buffer.len() - 4 < length {
                    return None;
                }
                buffer.advance(4);
                Some(buffer.split_to(length).freeze())
            }
        }
    }
}

/// A client's wish to go on with messages.
#[derive(Debug)]
pub(super) struct Wish {
    connection: OnUpgrade,
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
}

impl Wish {
    /// What a request asks for, if it does.
    pub fn of(parts: &Parts) -> Option<Self> {
        let headers = &parts.headers;
        if !headers.get(header::UPGRADE)?.as_bytes().eq_ignore_ascii_case(b"websocket") || !upgrades(headers) {
            return None;
        }
        let connection = parts.extensions.get::<OnUpgrade>()?.clone();
        let key = headers.get(header::SEC_WEBSOCKET_KEY)?.to_str().ok()?;
        let accept = HeaderValue::try_from(accept(key)).ok()?;
        // Several are for the server to choose from; upstream has none of them for watches.
        let protocol =
            headers.get(header::SEC_WEBSOCKET_PROTOCOL).filter(|p| !p.is_empty() && !p.as_bytes().contains(&b','));
        Some(Wish { connection, accept, protocol: protocol.cloned() })
    }

    /// Sends what an answer says as messages, and gives the head that has to go before them.
    pub fn grant<B>(self, response: Response<B>, messages: Messages) -> Response<Bytes>
    where
        B: Body<Data = Bytes, Error: Send> + Send + 'static,
    {
        let mut head = Response::new(Bytes::new());
        *head.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *head.headers_mut() = response.headers().clone();
        let headers = head.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = self.protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        tokio::spawn(async move {
            let sent = match self.connection.await {
                Ok(connection) => converse(TokioIo::new(connection), response.into_body(), messages).await,
                Err(error) => Err(std::io::Error::other(error)),
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "a watch over a WebSocket broke");
            }
        });
        head
    }
}

/// Moves a token that is among the subprotocols to where tokens are, so that it is neither kept nor sent back. One that
/// cannot be read, or that no other subprotocol is beside (upstream wants one that it can choose), is good for nobody.
pub(super) fn reveal_token(headers: &mut HeaderMap) {
    if !headers.contains_key(header::UPGRADE) || headers.contains_key(header::AUTHORIZATION) {
        return;
    }
    let Some(protocols) = headers.get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok()) else {
        return;
    };
    let (tokens, others): (Vec<&str>, Vec<&str>) =
        protocols.split(',').map(str::trim).partition(|protocol| protocol.starts_with(TOKEN));
    let Some(first) = tokens.first() else { return };
    let read = first.strip_prefix(TOKEN).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let token = read.filter(|_| tokens.len() == 1 && !others.is_empty()).unwrap_or_else(|| TOKEN.into());
    let credentials = HeaderValue::try_from([b"Bearer ", &token[..]].concat());
    let rest = HeaderValue::try_from(others.join(", "));
    if let (Ok(credentials), Ok(rest)) = (credentials, rest) {
        headers.insert(header::AUTHORIZATION, credentials);
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, rest);
    }
}

fn upgrades(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONNECTION).iter().any(|value| {
        value.to_str().is_ok_and(|v| v.split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade")))
    })
}

/// How the server shows that it understood the client's key.
fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{SALT}").as_bytes()))
}

/// Sends the messages of a body until it ends or the client says that it has enough.
async fn converse<S, B>(stream: S, body: B, messages: Messages) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite,
    B: Body<Data = Bytes>,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut body = std::pin::pin!(body);
    let (mut told, mut heard) = (BytesMut::new(), BytesMut::new());
    let kind = if messages == Messages::Lines { TEXT } else { BINARY };
    loop {
        tokio::select! {
            frame = body.frame() => {
                let Some(Ok(frame)) = frame else { break };
                told.extend_from_slice(frame.data_ref().map(|data| &data[..]).unwrap_or_default());
                let mut out = Vec::with_capacity(told.len() + 64);
                while let Some(message) = messages.next(&mut told) {
                    write(&mut out, kind, &message);
                }
                writer.write_all(&out).await?;
                // TLS may hold some of it back.
                writer.flush().await?;
            }
            read = reader.read_buf(&mut heard) => {
                if read? == 0 {
                    return Ok(());
                }
                while let Some((kind, content)) = read_message(&mut heard)? {
                    match kind {
                        CLOSE => return end(&mut writer, &content).await,
                        PING => {
                            let mut out = Vec::new();
                            write(&mut out, PONG, &content);
                            writer.write_all(&out).await?;
                            writer.flush().await?;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    // 1000: all that was to be said is said.
    end(&mut writer, &1000u16.to_be_bytes()).await
}

async fn end(writer: &mut (impl AsyncWriteExt + Unpin), content: &[u8]) -> std::io::Result<()> {
    let mut out = Vec::new();
    write(&mut out, CLOSE, content);
    writer.write_all(&out).await?;
    writer.shutdown().await
}

/// Appends a message in a frame of its own, as servers send it.
fn write(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    // 128: it is the last frame of its message.
    out.push(128 | kind);
    match content.len() {
        length @ ..126 => out.push(length as u8),
        length @ ..0x1_0000 => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(content);
}

/// Takes the first frame out of what a client sent, if it is there in full: its kind and its content.
fn read_message(buffer: &mut BytesMut) -> std::io::Result<Option<(u8, BytesMut)>> {
    let Some([first, second]) = buffer.first_chunk::<2>().copied() else { return Ok(None) };
    let (extended, mask) = (usize::from(second & 127), 4);
    let (head, length) = match extended {
        126 => match buffer.get(2..4).and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => (4, usize::from(u16::from_be_bytes(bytes))),
            None => return Ok(None),
        },
        127 => (10, usize::MAX),
        length => (2, length),
    };
    // Clients mask what they send.
    if second & 128 == 0 || length > LARGEST {
        return Err(std::io::Error::other("a frame that is not masked, or too large"));
    }
    if buffer.len() < head + mask + length {
        return Ok(None);
    }
    let mut frame = buffer.split_to(head + mask + length).split_off(head);
    let mut content = frame.split_off(mask);
    content.iter_mut().zip(frame.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Ok(Some((first & 15, content)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use std::convert::Infallible;

    #[test]
    fn the_key_is_answered_as_the_standard_has_it() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn lengths_take_the_fewest_bytes() {
        for (length, head) in [(0, &[0x81, 0][..]), (125, &[0x81, 125]), (126, &[0x81, 126, 0, 126])] {
            let mut out = Vec::new();
            write(&mut out, TEXT, &vec![b'x'; length]);
            assert_eq!((&out[..head.len()], out.len()), (head, head.len() + length));
        }
        let mut out = Vec::new();
        write(&mut out, BINARY, &vec![0; 0x1_0000]);
        assert_eq!(&out[..10], [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_token_among_the_subprotocols_is_moved_to_its_place() {
        let encoded = |token: &str| format!("{TOKEN}{}", URL_SAFE_NO_PAD.encode(token));
        let wrong = format!("Bearer {TOKEN}");
        for (protocols, authorization, rest) in [
            (format!("{}, binary.k8s.io", encoded("se/cret")), Some("Bearer se/cret"), "binary.k8s.io"),
            (format!("a,{},b", encoded("x")), Some("Bearer x"), "a, b"),
            (encoded("x"), Some(&*wrong), ""),
            (format!("a,{},{}", encoded("x"), encoded("y")), Some(&*wrong), "a"),
            (format!("a,{TOKEN}?"), Some(&*wrong), "a"),
            ("a, b".to_owned(), None, "a, b"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::try_from(&protocols).unwrap());
            reveal_token(&mut headers);
            let text = |name| headers.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(text(header::AUTHORIZATION), authorization, "{protocols}");
            assert_eq!(text(header::SEC_WEBSOCKET_PROTOCOL), Some(rest), "{protocols}");
        }
    }

    #[test]
    fn messages_are_taken_out_whole() {
        let mut buffer = BytesMut::from("a\nbb\nc");
        let lines: Vec<_> = std::iter::from_fn(|| Messages::Lines.next(&mut buffer)).collect();
        assert_eq!((lines, &buffer[..]), (vec![Bytes::from("a\n"), Bytes::from("bb\n")], &b"c"[..]));
        let mut buffer = BytesMut::from(&[0, 0, 0, 2, b'h', b'i', 0, 0, 0, 1][..]);
        assert_eq!(Messages::Counted.next(&mut buffer), Some(Bytes::from("hi")));
        assert_eq!(Messages::Counted.next(&mut buffer), None);
    }

    fn masked(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![128 | kind, 128 | content.len() as u8, 1, 2, 3, 4];
        out.extend(content.iter().zip([1, 2, 3, 4].iter().cycle()).map(|(byte, key)| byte ^ key));
        out
    }

    #[test]
    fn frames_of_clients_are_unmasked_when_they_are_whole() {
        let whole = masked(PING, b"hello");
        for end in 0..whole.len() {
            assert_eq!(read_message(&mut BytesMut::from(&whole[..end])).unwrap(), None, "{end}");
        }
        let mut buffer = BytesMut::from(&whole[..]);
        assert_eq!(read_message(&mut buffer).unwrap(), Some((PING, BytesMut::from("hello"))));
        assert!(buffer.is_empty());
        assert!(read_message(&mut BytesMut::from(&[0x81, 1, b'x'][..])).is_err(), "not masked");
        assert!(read_message(&mut BytesMut::from(&[0x81, 255, 0][..])).is_err(), "too large");
    }

    #[tokio::test]
    async fn events_become_messages_until_the_body_ends() {
        let (mut client, server) = tokio::io::duplex(1024);
        let pieces = ["one\ntw", "o\n"].map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        let body = StreamBody::new(stream::iter(pieces));
        let conversation = tokio::spawn(converse(server, body, Messages::Lines));
        let mut seen = Vec::new();
        client.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, [&b"\x81\x04one\n"[..], b"\x81\x04two\n", b"\x88\x02\x03\xe8"].concat());
        conversation.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn clients_are_answered_and_may_end_it() {
        let (mut client, server) = tokio::io::duplex(1024);
        let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let conversation = tokio::spawn(converse(server, body, Messages::Lines));
        client
            .write_all(&[masked(PING, b"?"), masked(TEXT, b"nobody listens"), masked(CLOSE, b"")].concat())
            .await
            .unwrap();
        let mut seen = Vec::new();
        client.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"\x8a\x01?\x88\x00");
        conversation.await.unwrap().unwrap();
    }
}
