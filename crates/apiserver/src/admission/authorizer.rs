//! The variable `authorizer` of CEL: may somebody do something?

use crate::auth::UserInfo;
use crate::authorize::{Attributes, Authorizer, Decision};
use cel::interpret::{ExternalFunction, Functions};
use cel::value::{Error, Opaque, Result, Value};
use futures_util::FutureExt;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Somebody, and the authoriser that is asked about them.
#[derive(Clone)]
pub(crate) struct Who {
    authorizer: Arc<dyn Authorizer>,
    user: Arc<UserInfo>,
}

impl Who {
    /// About a user.
    pub fn new(authorizer: Arc<dyn Authorizer>, user: Arc<UserInfo>) -> Self {
        Who { authorizer, user }
    }

    fn ask(&self, attributes: Attributes<'_>) -> Answer {
        // Authorisers that have to wait for others cannot be asked from within an expression.
        match self.authorizer.authorize(attributes).now_or_never() {
            Some(Decision::Allow(reason)) => Answer { allowed: true, reason: reason.to_string(), error: String::new() },
            Some(Decision::Deny(reason)) => Answer { allowed: false, reason, error: String::new() },
            None => Answer { allowed: false, reason: String::new(), error: "no answer at once".to_owned() },
        }
    }
}

/// What is asked of a resource.
#[derive(Clone)]
pub(crate) struct Check {
    who: Who,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl Check {
    /// Of a resource.
    pub fn new(who: Who, group: &str, resource: &str) -> Self {
        let empty = String::new;
        Check {
            who,
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: empty(),
            namespace: empty(),
            name: empty(),
        }
    }

    /// With what a request names beside it.
    pub fn with(mut self, subresource: &str, namespace: &str, name: &str) -> Self {
        self.subresource = subresource.to_owned();
        self.namespace = namespace.to_owned();
        self.name = name.to_owned();
        self
    }

    fn ask(&self, verb: &str) -> Answer {
        self.who.ask(Attributes {
            user: &self.who.user,
            verb,
            group: &self.group,
            version: "*",
            resource: &self.resource,
            subresource: &self.subresource,
            name: &self.name,
            namespace: &self.namespace,
            path: "",
        })
    }
}

#[derive(Clone)]
struct Group(Who, String);

#[derive(Clone)]
struct Path(Who, String);

#[derive(Clone)]
struct Answer {
    allowed: bool,
    reason: String,
    error: String,
}

macro_rules! opaque {
    ($($ty:ty: $name:literal,)*) => {
        $(
            impl fmt::Debug for $ty {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str($name)
                }
            }

            impl Opaque for $ty {
                fn type_name(&self) -> &'static str {
                    $name
                }

                fn equals(&self, other: &dyn Opaque) -> bool {
                    other.as_any().downcast_ref::<$ty>().is_some_and(|other| std::ptr::eq(self, other))
                }

                fn as_any(&self) -> &dyn Any {
                    self
                }
            }
        )*
    };
}

opaque! {
    Who: "kubernetes.authorization.Authorizer",
    Group: "kubernetes.authorization.GroupCheck",
    Path: "kubernetes.authorization.PathCheck",
    Check: "kubernetes.authorization.ResourceCheck",
    Answer: "kubernetes.authorization.Decision",
}

struct Function(fn(&[Value<'_>]) -> Option<Value<'static>>);

impl ExternalFunction for Function {
    fn call<'a>(&self, args: &[Value<'a>]) -> Result<Value<'a>> {
        (self.0)(args).ok_or_else(Error::no_such_overload)
    }
}

/// The functions of the library.
pub(super) fn functions() -> Functions {
    type Call = fn(&[Value<'_>]) -> Option<Value<'static>>;
    let table: [(&str, Call); 14] = [
        ("path", |args| Some(Value::opaque(Path(on::<Who>(args)?, text(args, 1)?)))),
        ("group", |args| Some(Value::opaque(Group(on::<Who>(args)?, text(args, 1)?)))),
        ("serviceAccount", |args| Some(Value::opaque(service_account(&on(args)?, &text(args, 1)?, &text(args, 2)?)))),
        ("resource", |args| {
            let Group(who, group) = on::<Group>(args)?;
            Some(Value::opaque(Check::new(who, &group, &text(args, 1)?)))
        }),
        ("subresource", |args| Some(Value::opaque(Check { subresource: text(args, 1)?, ..on::<Check>(args)? }))),
        ("namespace", |args| Some(Value::opaque(Check { namespace: text(args, 1)?, ..on::<Check>(args)? }))),
        ("name", |args| Some(Value::opaque(Check { name: text(args, 1)?, ..on::<Check>(args)? }))),
        // Nothing here authorises by selectors: they narrow what is asked, which is then answered for all of it.
        ("fieldSelector", |args| Some(Value::opaque(on::<Check>(args)?))),
        ("labelSelector", |args| Some(Value::opaque(on::<Check>(args)?))),
        ("check", |args| Some(Value::opaque(ask(args)?))),
        ("allowed", |args| Some(Value::Bool(on::<Answer>(args)?.allowed))),
        ("reason", |args| Some(Value::shared(on::<Answer>(args)?.reason))),
        ("errored", |args| Some(Value::Bool(!on::<Answer>(args)?.error.is_empty()))),
        ("error", |args| Some(Value::shared(on::<Answer>(args)?.error))),
    ];
    let mut functions = Functions::new();
    for (name, function) in table {
        functions.insert(name, Arc::new(Function(function)));
    }
    functions
}

/// What a function is called on.
fn on<T: Clone + 'static>(args: &[Value<'_>]) -> Option<T> {
    args.first()?.downcast::<T>().cloned()
}

fn text(args: &[Value<'_>], index: usize) -> Option<String> {
    args.get(index)?.as_str().map(str::to_owned)
}

fn ask(args: &[Value<'_>]) -> Option<Answer> {
    let verb = text(args, 1)?;
    if let Some(check) = on::<Check>(args) {
        return Some(check.ask(&verb));
    }
    let Path(who, path) = on::<Path>(args)?;
    let attributes = Attributes {
        user: &who.user,
        verb: &verb,
        group: "",
        version: "",
        resource: "",
        subresource: "",
        name: "",
        namespace: "",
        path: &path,
    };
    Some(who.ask(attributes))
}

fn service_account(who: &Who, namespace: &str, name: &str) -> Who {
    let user = UserInfo {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
        ..UserInfo::default()
    };
    Who::new(who.authorizer.clone(), Arc::new(user))
}
