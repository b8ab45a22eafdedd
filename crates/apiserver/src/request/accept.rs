//! The form of answer that a client asks for.

use super::Query;
use crate::answer::{Failure, Outcome};
use http::{HeaderMap, header};
use object::Status;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// What an answer shows of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The objects themselves.
    Full,
    /// A `Table` for people.
    Table,
    /// `PartialObjectMetadata`: only the metadata.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How it is written.
    pub encoding: Encoding,
    /// What it shows.
    pub shape: Shape,
    /// The version of `meta.k8s.io` of tables and metadata: `v1` or `v1beta1`.
    pub version: &'static str,
    /// Whether it is written with line breaks and indentation.
    pub pretty: bool,
}

/// What a resource can answer with.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Whether the resource is a custom one.
    pub custom: bool,
    /// Whether the answer is a watch.
    pub watch: bool,
    /// Whether whole objects have a protobuf form; metadata alone always has one.
    pub protobuf: bool,
}

/// Chooses the form: the first acceptable one in the client's order of preference.
pub fn negotiate(headers: &HeaderMap, query: &Query, offer: Offer) -> Outcome<Form> {
    let accept: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let accept = accept.join(",");
    let pretty = match query.get("pretty") {
        Some(text) => !matches!(text, "" | "false" | "0"),
        None => wants_pretty(headers),
    };
    let form = Form { encoding: Encoding::Json, shape: Shape::Full, version: "v1", pretty };
    if accept.trim().is_empty() {
        return Ok(form);
    }
    let mut clauses: Vec<(f32, Clause<'_>)> = accept.split(',').filter_map(Clause::parse).collect();
    // Stable: equal preferences keep the client's order.
    clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut known = false;
    for (_, clause) in &clauses {
        let encoding = match clause.media_type {
            "application/json" | "*/*" | "application/*" => Encoding::Json,
            "application/yaml" if !offer.watch => Encoding::Yaml,
            PROTOBUF => Encoding::Protobuf,
            _ => continue,
        };
        known = true;
        let Some((shape, version)) = clause.shape() else { continue };
        if encoding == Encoding::Protobuf && (shape == Shape::Table || shape == Shape::Full && !offer.protobuf) {
            continue;
        }
        return Ok(Form { encoding, shape, version, ..form });
    }
    // The router of built-in kinds sees media types first, and says so in its own words.
    if !offer.custom && !known {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", OFFERED.join(", "));
        return Err(Status { details: Some(Default::default()), ..Status::new(406, "NotAcceptable", message) }.into());
    }
    Err(not_acceptable(&format!("only the following media types are accepted: {}", OFFERED.join(", "))))
}

/// The media type of protobuf with the envelope of Kubernetes.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const OFFERED: [&str; 3] = ["application/json", "application/yaml", PROTOBUF];

/// 406 with a message.
pub fn not_acceptable(message: &str) -> Failure {
    Status::new(406, "NotAcceptable", message).into()
}

/// Browsers and the usual command-line clients are used by people.
fn wants_pretty(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|a| agent.starts_with(a))
}

struct Clause<'a> {
    media_type: &'a str,
    target: &'a str,
    group: &'a str,
    version: &'a str,
}

impl<'a> Clause<'a> {
    /// A clause with its weight; one with weight 0, or none at all, is left out.
    fn parse(text: &'a str) -> Option<(f32, Self)> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().filter(|t| !t.is_empty())?;
        let mut clause = Clause { media_type, target: "", group: "", version: "" };
        let mut weight = 1.0;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "as" => clause.target = value,
                "g" => clause.group = value,
                "v" => clause.version = value,
                "q" => weight = value.parse().unwrap_or(1.0),
                _ => {}
            }
        }
        (weight > 0.0).then_some((weight, clause))
    }

    fn shape(&self) -> Option<(Shape, &'static str)> {
        if self.target.is_empty() {
            return Some((Shape::Full, "v1"));
        }
        let version = match (self.group, self.version) {
            ("meta.k8s.io", "v1") => "v1",
            ("meta.k8s.io", "v1beta1") => "v1beta1",
            _ => return None,
        };
        match self.target {
            "Table" => Some((Shape::Table, version)),
            "PartialObjectMetadata" => Some((Shape::Metadata, version)),
            "PartialObjectMetadataList" => Some((Shape::MetadataList, version)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn form(accept: &'static str, custom: bool) -> Result<(Encoding, Shape), String> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        match negotiate(&headers, &Query::default(), Offer { custom, watch: false, protobuf: !custom }) {
            Ok(form) => Ok((form.encoding, form.shape)),
            Err(Failure::Status(status)) => Err(status.message),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn the_first_acceptable_form_is_taken() {
        for (accept, expected) in [
            ("", (Encoding::Json, Shape::Full)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", (Encoding::Json, Shape::Table)),
            ("application/vnd.kubernetes.protobuf,application/json", (Encoding::Json, Shape::Full)),
            ("application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/yaml", (Encoding::Yaml, Shape::Full)),
            ("application/json;q=0.1,application/yaml;q=0.9", (Encoding::Yaml, Shape::Full)),
            ("*/*", (Encoding::Json, Shape::Full)),
        ] {
            assert_eq!(form(accept, true), Ok(expected), "{accept}");
        }
    }

    #[test]
    fn protobuf_is_for_built_in_kinds_and_for_metadata() {
        let metadata =
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
        let table = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/yaml";
        let whole = "application/vnd.kubernetes.protobuf,application/json";
        for (accept, custom, expected) in [
            (whole, false, (Encoding::Protobuf, Shape::Full)),
            (whole, true, (Encoding::Json, Shape::Full)),
            (metadata, true, (Encoding::Protobuf, Shape::Metadata)),
            (table, false, (Encoding::Yaml, Shape::Full)),
        ] {
            assert_eq!(form(accept, custom), Ok(expected), "{accept}");
        }
        assert!(form("application/vnd.kubernetes.protobuf", true).is_err());
    }

    #[test]
    fn nothing_acceptable_is_told_as_the_kinds_router_does() {
        let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        let custom = format!("only the following media types are accepted: {types}");
        assert_eq!(form("text/html", true), Err(custom.clone()));
        assert_eq!(form("application/json;as=Table;v=v9;g=meta.k8s.io", false), Err(custom));
        let builtin = format!("406: Not Acceptable\n\nAvailable representations: {types}");
        assert_eq!(form("text/html", false), Err(builtin));
    }
}
