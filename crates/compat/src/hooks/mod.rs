//! The webhooks that cases bring along: an HTTPS server on loopback that answers as the cases declare and remembers what
//! it was asked.
//!
//! A case declares `"hooks": {NAME: ANSWER or [ANSWER...]}`. In its steps `{{hook:NAME}}` is the URL, `{{ca}}` the
//! `caBundle`, and `{{other-ca}}` that of an authority which did not sign. Of a list the first answer that still applies
//! is given; [`answer`] says what an answer may hold.

pub mod answer;
mod certificates;
mod serve;

use crate::case::{Case, body_text};
use object::{Map, Value};
use regex::Regex;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The webhooks of all cases of a replay.
#[derive(Debug)]
pub struct Hooks {
    base: String,
    authority: String,
    other_authority: String,
    shared: Arc<Shared>,
}

/// What the server and the replay share.
#[derive(Debug, Default)]
struct Shared {
    cases: Mutex<HashMap<String, State>>,
}

/// A case's webhooks.
#[derive(Debug, Default)]
struct State {
    answers: HashMap<String, Vec<Rule>>,
    seen: Vec<Value>,
}

/// An answer, and how often it is still given.
#[derive(Debug)]
struct Rule {
    answer: Value,
    left: Option<i64>,
}

static HOOK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{\{hook:([^}]*)\}\}").ok());
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[^\w-]").ok());
static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b127\.0\.0\.1:\d+").ok());

impl Hooks {
    /// Starts the server on a free port. It ends with the runtime.
    pub async fn start() -> Result<Self, String> {
        let certificates = certificates::make()?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let shared = Arc::new(Shared::default());
        tokio::spawn(serve::serve(listener, TlsAcceptor::from(certificates.server), shared.clone()));
        Ok(Hooks {
            base: format!("https://{address}/"),
            authority: certificates.authority,
            other_authority: certificates.other_authority,
            shared,
        })
    }

    /// The case with its placeholders filled in, and the key by which its webhooks are known from now on.
    pub fn open(&self, case: &Case) -> (Case, String) {
        let key = KEY.as_ref().map_or_else(|| case.id.clone(), |k| k.replace_all(&case.id, "-").into_owned());
        let hooks = case.value.get("hooks").and_then(Value::as_object);
        let answers = hooks.into_iter().flat_map(Map::iter).map(|(name, answers)| {
            let answers = answers.as_array().map_or_else(|| vec![answers.clone()], <[Value]>::to_vec);
            let rule = |answer: Value| Rule { left: answer.get("times").and_then(Value::as_int), answer };
            (name.to_owned(), answers.into_iter().map(rule).collect())
        });
        let state = State { answers: answers.collect(), seen: Vec::new() };
        self.shared.cases.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), state);
        let value = map_strings(&case.value, &|text| self.fill(&key, text));
        (Case { value, ..case.clone() }, key)
    }

    fn fill(&self, key: &str, text: &str) -> String {
        let text = text.replace("{{ca}}", &self.authority).replace("{{other-ca}}", &self.other_authority);
        match &*HOOK {
            Some(hook) => hook.replace_all(&text, format!("{}{key}/$1", self.base)).into_owned(),
            None => text,
        }
    }

    /// A value without what differs from run to run: the port, the path of the case, the certificates.
    pub fn clean(&self, key: &str, value: &Value) -> Value {
        let place = format!("{}{key}", self.base);
        map_strings(value, &|text| {
            let text = text.replace(&place, "<hook>");
            let text = text.replace(&self.authority, "<ca>").replace(&self.other_authority, "<other-ca>");
            ADDRESS.as_ref().map_or(text.clone(), |a| a.replace_all(&text, "127.0.0.1:<port>").into_owned())
        })
    }

    /// What a case's webhooks received since the last call, as far as `how` asks for it: `hooks` names webhooks, `if`
    /// gives values of the body, `headers` is whether headers are kept.
    pub fn received(&self, key: &str, how: &Value) -> Vec<Value> {
        let mut cases = self.shared.cases.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = cases.get_mut(key).map(|state| std::mem::take(&mut state.seen)).unwrap_or_default();
        drop(cases);
        let names = how.get("hooks").and_then(Value::as_array);
        seen.retain(|request| {
            let named = names.is_none_or(|names| request.get("hook").is_some_and(|hook| names.contains(hook)));
            named && applies(how, request.get("body").unwrap_or(&Value::Null))
        });
        if how.get("headers").and_then(Value::as_bool) != Some(true) {
            seen.iter_mut().for_each(|request| {
                request.remove_at(&["headers"]);
            });
        }
        seen
    }
}

/// Brings requests into the order in which they are compared: `order` as they came, `sort` by their text, `set` also
/// without repeats.
pub fn arrange(how: &Value, mut seen: Vec<Value>) -> Vec<Value> {
    let order = how.as_str().or(how.str_at(&["order"])).unwrap_or("order");
    if order == "order" {
        return seen;
    }
    seen.sort_by_cached_key(body_text);
    if order == "set" {
        seen.dedup();
    }
    seen
}

/// Whether a body has the values of an answer's `if`.
fn applies(rule: &Value, body: &Value) -> bool {
    let conditions = rule.get("if").and_then(Value::as_object);
    conditions.into_iter().flat_map(Map::iter).all(|(path, value)| at(body, path) == value)
}

/// The value at a dotted path, null where there is none.
fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('.').fold(value, |value, part| {
        let next = match value {
            Value::Array(items) => part.parse::<usize>().ok().and_then(|i| items.get(i)),
            other => other.get(part),
        };
        next.unwrap_or(&Value::Null)
    })
}

fn map_strings(value: &Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::Object(members) => Value::Object(members.iter().map(|(k, v)| (k, map_strings(v, change))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(|v| map_strings(v, change)).collect()),
        Value::String(text) => change(text).into(),
        other => other.clone(),
    }
}
