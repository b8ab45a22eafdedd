//! The form of answer that a client asks for.

use http::{HeaderMap, header};
use object::Status;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
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
    /// Whether it is written with line breaks and indentation.
    pub pretty: bool,
}

/// What a resource can answer with.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Whether upstream also offers protobuf here (built-in kinds), which the 406 message lists.
    pub protobuf: bool,
    /// Whether the answer is a watch.
    pub watch: bool,
}

/// Chooses the form: the first acceptable one in the client's order of preference.
pub fn negotiate(headers: &HeaderMap, pretty: Option<bool>, offer: Offer) -> Result<Form, Status> {
    let accept: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    let accept = accept.join(",");
    let pretty = pretty.unwrap_or_else(|| wants_pretty(headers));
    if accept.trim().is_empty() {
        return Ok(Form { encoding: Encoding::Json, shape: Shape::Full, pretty });
    }
    let mut clauses: Vec<(f32, Clause<'_>)> = accept.split(',').filter_map(Clause::parse).collect();
    // Stable: equal preferences keep the client's order.
    clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, clause) in &clauses {
        let encoding = match clause.media_type {
            "application/json" | "*/*" | "application/*" => Encoding::Json,
            "application/yaml" if !offer.watch => Encoding::Yaml,
            _ => continue,
        };
        let Some(shape) = clause.shape() else { continue };
        return Ok(Form { encoding, shape, pretty });
    }
    Err(not_acceptable(offer))
}

fn not_acceptable(offer: Offer) -> Status {
    let mut types = vec!["application/json"];
    if !offer.watch {
        types.push("application/yaml");
    }
    if offer.protobuf {
        types.push(if offer.watch { "application/vnd.kubernetes.protobuf;stream=watch" } else { "application/vnd.kubernetes.protobuf" });
    }
    let message = format!("only the following media types are accepted: {}", types.join(", "));
    Status::new(406, "NotAcceptable", message)
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

    fn shape(&self) -> Option<Shape> {
        if self.target.is_empty() {
            return Some(Shape::Full);
        }
        if self.group != "meta.k8s.io" || !matches!(self.version, "v1" | "v1beta1") {
            return None;
        }
        match self.target {
            "Table" => Some(Shape::Table),
            "PartialObjectMetadata" => Some(Shape::Metadata),
            "PartialObjectMetadataList" => Some(Shape::MetadataList),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn form(accept: &'static str) -> Result<(Encoding, Shape), String> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
        let offer = Offer { protobuf: true, watch: false };
        negotiate(&headers, None, offer).map(|f| (f.encoding, f.shape)).map_err(|s| s.message)
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
            assert_eq!(form(accept), Ok(expected), "{accept}");
        }
        assert_eq!(
            form("text/html"),
            Err("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf".to_owned())
        );
    }
}
