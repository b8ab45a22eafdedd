//! The token that a page of a list gives for the next one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use object::{Value, json, map};

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The revision of the first page; none goes on with the latest (an inconsistent list).
    pub revision: Option<u64>,
    /// The last key of the page before, without the prefix of the collection.
    pub after: String,
}

impl Continuation {
    /// Reads a token. The error is upstream's.
    pub fn read(token: &str) -> Result<Self, String> {
        const BAD: &str = "continue key is not valid";
        let text = decode(token).map_err(|at| format!("{BAD}: illegal base64 data at input byte {at}"))?;
        let value = json::parse(&text).map_err(|e| format!("{BAD}: {e}"))?;
        if value.str_at(&["v"]) != Some("meta.k8s.io/v1") {
            return Err(format!("{BAD}: server does not recognize this encoded version"));
        }
        let revision = value.get("rv").and_then(Value::as_int).unwrap_or(0);
        if revision == 0 {
            return Err(format!("{BAD}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        let start = value.str_at(&["start"]).unwrap_or_default();
        if start.is_empty() {
            return Err(format!("{BAD}: encoded start key empty (version meta.k8s.io/v1)"));
        }
        let after = start.trim_end_matches('\0');
        if after.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(format!("{BAD}: {start}"));
        }
        Ok(Continuation { revision: u64::try_from(revision).ok(), after: after.to_owned() })
    }

    /// The token.
    pub fn write(&self) -> String {
        let revision = self.revision.map_or(-1, |r| r as i64);
        let token = map! { "v" => "meta.k8s.io/v1", "rv" => revision, "start" => format!("{}\0", self.after) };
        URL_SAFE_NO_PAD.encode(json::to_string(&Value::Object(token)))
    }
}

/// Base64; the error is the first byte that is wrong, as Go counts.
fn decode(token: &str) -> Result<Vec<u8>, usize> {
    URL_SAFE_NO_PAD.decode(token).map_err(|e| match e {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
        _ => token.len() - token.len() % 4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back() {
        let token = Continuation { revision: Some(7), after: "default/a".into() };
        assert_eq!(Continuation::read(&token.write()), Ok(token));
    }

    #[test]
    fn bad_tokens_are_told() {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for (token, text) in [
            ("!".to_owned(), "continue key is not valid: illegal base64 data at input byte 0"),
            (encode("{"), "continue key is not valid: unexpected end of JSON input"),
            (encode("{}"), "continue key is not valid: server does not recognize this encoded version"),
            (encode(r#"{"v":"meta.k8s.io/v1","rv":3,"start":"../x"}"#), "continue key is not valid: ../x"),
        ] {
            assert_eq!(Continuation::read(&token).unwrap_err(), text, "{token}");
        }
    }
}
