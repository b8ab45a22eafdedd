//! Objects as answers: in the form that the client asks for.

use super::Request;
use crate::answer::{self, Outcome, Response};
use crate::catalogue::Resource;
use crate::registry::{self, Stored, codec};
use crate::request::{Encoding, Form, PROTOBUF, Shape};
use crate::table::{self, Include};
use crate::yaml;
use object::{Map, Status, Value, json};
use store::{Entry, Revision};

/// An object to be shown: as it is stored, and its version (0 shows none).
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The object.
    pub stored: Stored,
    /// Its version.
    pub version: Revision,
}

impl Shown {
    /// What an entry holds.
    pub fn of(entry: Entry) -> Outcome<Self> {
        let Entry { key, value, mod_revision: version, .. } = entry;
        Ok(Shown { stored: Stored::read(value).ok_or_else(|| registry::unreadable(&key))?, version })
    }
}

/// One object as an answer.
pub(crate) async fn object(request: &Request<'_>, code: u16, shown: &Shown) -> Outcome<Response> {
    let (form, resource) = (request.form, &request.resource);
    let mut out = Vec::with_capacity(shown.stored.len_hint());
    match form.shape {
        Shape::MetadataList if resource.is_custom() => return Err(Status::unknown("content is not a list").into()),
        Shape::MetadataList => {
            let kind = &resource.kind;
            let why = format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*core.{kind})"
            );
            return Err(crate::request::not_acceptable(&why));
        }
        Shape::Full | Shape::Metadata => write_one(request, shown, &mut out).await?,
        Shape::Table => {
            let include = include(request)?;
            let rows = rows(request, std::slice::from_ref(shown), include).await?;
            let mut meta = Map::new();
            if shown.version != 0 {
                meta.insert("resourceVersion", shown.version.to_string());
            }
            let columns = resource.strategy.columns();
            let table = table::table(Some(&columns), rows, meta, form.version);
            out.extend_from_slice(json::to_string(&table).as_bytes());
        }
    }
    Ok(finish(form, code, out))
}

/// What the parameter `includeObject` asks tables for.
pub(crate) fn include(request: &Request<'_>) -> Outcome<Include> {
    let text = request.text("includeObject");
    Include::parse(text).ok_or_else(|| {
        let text = object::go::quote(text);
        let why = format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {text}: must be 'Metadata', 'Object', 'None', or empty"
        );
        Status::bad_request(why).into()
    })
}

/// Appends one object of a list as JSON. Built-in kinds have no type in their lists.
pub(crate) async fn write_listed(request: &Request<'_>, shown: &Shown, out: &mut Vec<u8>) -> Outcome<()> {
    let resource = &request.resource;
    if registry::is_current(resource, &shown.stored) {
        write_listed_item(resource, request.form, shown, out);
        return Ok(());
    }
    if request.form.shape != Shape::Full || resource.is_custom() {
        return write_one(request, shown, out).await;
    }
    let mut object = sent(request, shown).await?;
    object.remove_at(&["apiVersion"]);
    object.remove_at(&["kind"]);
    out.extend_from_slice(json::to_string(&object).as_bytes());
    Ok(())
}

/// Appends an object of a list that is served as it is stored.
pub(crate) fn write_listed_item(resource: &Resource, form: Form, shown: &Shown, out: &mut Vec<u8>) {
    if form.shape == Shape::Full && !resource.is_custom() {
        return shown.stored.write_untyped(out, shown.version);
    }
    write_item(resource, form, shown, out);
}

/// Appends one object, whole or only its metadata, as JSON.
pub(crate) async fn write_one(request: &Request<'_>, shown: &Shown, out: &mut Vec<u8>) -> Outcome<()> {
    if registry::is_current(&request.resource, &shown.stored) {
        write_item(&request.resource, request.form, shown, out);
        return Ok(());
    }
    let object = sent(request, shown).await?;
    let object = match request.form.shape {
        Shape::Full | Shape::Table => object,
        Shape::Metadata | Shape::MetadataList => table::partial(&object, request.form.version),
    };
    out.extend_from_slice(json::to_string(&object).as_bytes());
    Ok(())
}

/// Appends an object that is served as it is stored, whole or only its metadata.
pub(crate) fn write_item(resource: &Resource, form: Form, shown: &Shown, out: &mut Vec<u8>) {
    if form.shape == Shape::Full {
        return write_current(resource, shown, out);
    }
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
    out.extend_from_slice(form.version.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    shown.stored.write_metadata(out, shown.version);
    out.push(b'}');
}

/// Appends an object that is served as it is stored.
pub(crate) fn write_current(resource: &Resource, shown: &Shown, out: &mut Vec<u8>) {
    if shown.stored.is_of(&resource.group, &resource.version) {
        shown.stored.write(out, shown.version);
    } else {
        shown.stored.write_as(out, shown.version, &resource.api_version());
    }
}

/// The object as a client of the request's version sees it.
pub(crate) async fn sent(request: &Request<'_>, shown: &Shown) -> Outcome<Value> {
    let mut object = request.server.load(&request.resource, &shown.stored, shown.version).await?;
    request.resource.strategy.present(&mut object);
    Ok(object)
}

/// The objects as rows of a table, in its order.
pub(crate) async fn rows(request: &Request<'_>, shown: &[Shown], include: Include) -> Outcome<Vec<Value>> {
    let mut rows = Vec::with_capacity(shown.len());
    for shown in shown {
        rows.push(row(request, shown, include).await?);
    }
    rows.sort_by_key(|(rank, _)| *rank);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// The object as a row of a table, and what rows are sorted by.
async fn row(request: &Request<'_>, shown: &Shown, include: Include) -> Outcome<(i64, Value)> {
    let strategy = &*request.resource.strategy;
    let worked = request.server.load(&request.resource, &shown.stored, shown.version).await?;
    let mut sent = worked.clone();
    strategy.present(&mut sent);
    Ok((strategy.rank(&worked), table::row(strategy, &worked, &sent, include, request.form.version, request.now)))
}

/// JSON that is whole, in the encoding that the client asks for.
pub(crate) fn finish(form: Form, code: u16, json_text: Vec<u8>) -> Response {
    match form.encoding {
        Encoding::Yaml => {
            let value = json::parse(&json_text).unwrap_or_default();
            answer::bytes_of_type(code, "application/yaml", yaml::to_string(&value))
        }
        Encoding::Json if form.pretty => {
            let value = json::parse(&json_text).unwrap_or_default();
            answer::json_bytes(code, pretty(&value))
        }
        Encoding::Json => answer::json_bytes(code, json_text),
        Encoding::Protobuf => {
            let object = json::parse(&json_text).ok();
            match object.and_then(|object| kinds::protobuf::write(&object)) {
                Some(bytes) => answer::bytes_of_type(code, PROTOBUF, bytes),
                // What has no such form is better told in another than not at all.
                None => answer::json_bytes(code, json_text),
            }
        }
    }
}

/// A `Status` in the encoding that the client asks for.
pub(crate) fn status(form: Form, status: &Status) -> Response {
    match form.encoding {
        Encoding::Json if !form.pretty => answer::of_status(status),
        _ => answer::with_retry(finish(form, status.code, json::to_vec(&status.to_value())), status),
    }
}

/// JSON with line breaks, indented by two, as Go writes it.
fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write_pretty(&mut out, value, 0);
    out
}

fn write_pretty(out: &mut String, value: &Value, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth * 2));
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write_pretty(out, item, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Value::Object(members) if !members.is_empty() => {
            out.push('{');
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                json::write_string(out, key);
                out.push_str(": ");
                write_pretty(out, value, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        other => json::write(out, other),
    }
}

/// The metadata of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    /// The version of the list.
    pub version: Revision,
    /// Where the next page goes on; empty when there is none.
    pub continues: String,
    /// How many objects are on the pages after this one, where that is known.
    pub remaining: Option<u64>,
}

impl ListMeta {
    /// Appends it as JSON. Custom resources always have a `continue`.
    pub fn write(&self, out: &mut Vec<u8>, always_continue: bool) {
        out.push(b'{');
        if always_continue || !self.continues.is_empty() {
            out.extend_from_slice(b"\"continue\":\"");
            out.extend_from_slice(self.continues.as_bytes());
            out.extend_from_slice(b"\",");
        }
        if let Some(remaining) = self.remaining {
            out.extend_from_slice(b"\"remainingItemCount\":");
            codec::push_number(out, remaining);
            out.push(b',');
        }
        out.extend_from_slice(b"\"resourceVersion\":\"");
        codec::push_number(out, self.version);
        out.extend_from_slice(b"\"}");
    }

    /// It as a value.
    pub fn to_map(&self) -> Map {
        let mut out = Map::new();
        if !self.continues.is_empty() {
            out.insert("continue", self.continues.as_str());
        }
        if let Some(remaining) = self.remaining {
            out.insert("remainingItemCount", remaining as i64);
        }
        out.insert("resourceVersion", self.version.to_string());
        out
    }
}
