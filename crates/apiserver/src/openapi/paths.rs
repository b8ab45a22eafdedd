//! The paths of a resource with what can be done there, as OpenAPI v3 has them.

use super::custom;
use crate::catalogue::{Resource, Subresource};
use object::{Map, Value, map};

/// Where the schemas of a document stand.
const SCHEMAS: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The media types of answers: definitions' resources have no protobuf.
const BUILT_IN_TYPES: &[&str] = &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const CUSTOM_TYPES: &[&str] = &["application/json", "application/yaml"];

/// The parameters of a list, all of them queries.
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("pretty", "string"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const READ: &[(&str, &str)] = &[("pretty", "string")];
const WRITE: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("pretty", "string")];
const PATCH: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
    ("pretty", "string"),
];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("pretty", "string"),
    ("propagationPolicy", "string"),
];
const DELETE_COLLECTION: &[(&str, &str)] = &[
    ("continue", "string"),
    ("dryRun", "string"),
    ("fieldSelector", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("orphanDependents", "boolean"),
    ("pretty", "string"),
    ("propagationPolicy", "string"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];
const LOG: &[(&str, &str)] = &[
    ("container", "string"),
    ("follow", "boolean"),
    ("insecureSkipTLSVerifyBackend", "boolean"),
    ("limitBytes", "integer"),
    ("pretty", "string"),
    ("previous", "boolean"),
    ("sinceSeconds", "integer"),
    ("stream", "string"),
    ("tailLines", "integer"),
    ("timestamps", "boolean"),
];
const STREAMS: &[(&str, &str)] =
    &[("container", "string"), ("stderr", "boolean"), ("stdin", "boolean"), ("stdout", "boolean"), ("tty", "boolean")];

/// Kinds whose deletion answers with the object, not with a `Status`.
pub(crate) const DELETED_IS_ANSWERED: &[&str] = &[
    "persistentvolumeclaims",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
    "persistentvolumes",
    "csidrivers",
    "csinodes",
    "storageclasses",
    "volumeattachments",
];

/// One resource's paths in the making.
pub(super) struct Paths<'a> {
    resource: &'a Resource,
    /// The name of the schema of its objects.
    schema: String,
    /// `/apis/GROUP/VERSION`
    root: String,
    /// The group and version as they stand in operation ids: `AppsV1`.
    scope: String,
    tag: String,
    types: &'static [&'static str],
    out: Map,
}

/// One operation before its parameters are shared out.
struct Operation {
    method: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    body: Map,
}

/// The paths of a resource; `schema` names its object's schema.
pub(super) fn of_resource(resource: &Resource, schema: &str) -> Map {
    let (prefix, group) = match resource.group.as_str() {
        "" => ("/api".to_owned(), "core"),
        group => (format!("/apis/{group}"), group),
    };
    let trimmed = group.strip_suffix(".k8s.io").unwrap_or(group);
    let mut paths = Paths {
        resource,
        schema: schema.to_owned(),
        root: format!("{prefix}/{}", resource.version),
        scope: format!("{}{}", word(trimmed, true), word(&resource.version, true)),
        tag: format!("{}_{}", word(trimmed, false), word(&resource.version, false)),
        types: if resource.is_custom() { CUSTOM_TYPES } else { BUILT_IN_TYPES },
        out: Map::new(),
    };
    paths.collection();
    paths.item();
    resource.subresources.iter().for_each(|sub| paths.subresource(sub));
    if !resource.is_custom() && paths.can("watch") {
        paths.watches();
    }
    paths.out
}

/// A name as a part of an operation id: what is neither letter nor digit goes, the letter after it becomes large.
pub(super) fn word(text: &str, mut capital: bool) -> String {
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if c.is_alphabetic() || c == '_' || i > 0 && c.is_numeric() {
            if capital {
                out.extend(c.to_uppercase())
            } else {
                out.push(c)
            }
            capital = false;
        } else {
            capital = true;
        }
    }
    out
}

impl Paths<'_> {
    fn can(&self, verb: &str) -> bool {
        self.resource.verbs.contains(&verb)
    }

    /// `Namespaced` or nothing, as it stands in operation ids.
    fn namespaced(&self) -> &'static str {
        if self.resource.namespaced { "Namespaced" } else { "" }
    }

    fn base(&self) -> String {
        let namespace = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{}{namespace}/{}", self.root, self.resource.plural)
    }

    fn collection(&mut self) {
        let (kind, namespaced) = (self.resource.kind.clone(), self.namespaced());
        let list = match self.resource.is_custom() {
            true => custom::name(&self.resource.group, &self.resource.version, &self.resource.list_kind),
            false => format!("{}List", self.schema),
        };
        let mut operations = Vec::new();
        if self.can("list") {
            operations.push(self.list(format!("list{}{namespaced}{kind}", self.scope), &list));
        }
        if self.can("create") {
            let id = format!("create{}{namespaced}{kind}", self.scope);
            operations.push(self.write("post", "post", id, WRITE, &self.schema, None));
        }
        if self.can("deletecollection") {
            let id = format!("delete{}Collection{namespaced}{kind}", self.scope);
            operations.push(self.delete("deletecollection", id, DELETE_COLLECTION, &["200"], &format!("{META}Status")));
        }
        self.add(self.base(), operations);
        if self.resource.namespaced && self.can("list") {
            let id = format!("list{}{kind}ForAllNamespaces", self.scope);
            let operation = self.list(id, &list);
            self.add(format!("{}/{}", self.root, self.resource.plural), vec![operation]);
        }
    }

    fn item(&mut self) {
        let name = format!("{}{}{}", self.scope, self.namespaced(), self.resource.kind);
        let mut operations = Vec::new();
        if self.can("get") {
            operations.push(self.read(format!("read{name}"), "get", READ, &self.schema, self.types, None));
        }
        if self.can("update") {
            operations.push(self.write("put", "put", format!("replace{name}"), WRITE, &self.schema, None));
        }
        if self.can("patch") {
            operations.push(self.patch(format!("patch{name}"), &self.schema, None));
        }
        if self.can("delete") {
            let answered = !self.resource.is_custom() && DELETED_IS_ANSWERED.contains(&self.resource.plural.as_str());
            let answer = if answered { self.schema.clone() } else { format!("{META}Status") };
            operations.push(self.delete("delete", format!("delete{name}"), DELETE, &["200", "202"], &answer));
        }
        self.add(format!("{}/{{name}}", self.base()), operations);
    }

    fn subresource(&mut self, sub: &Subresource) {
        let title = word(&sub.name, true);
        let name = format!("{}{}{}{title}", self.scope, self.namespaced(), self.resource.kind);
        let path = format!("{}/{{name}}/{}", self.base(), sub.name);
        let schema = schema_of(self.resource, &self.schema, sub);
        match sub.name.as_str() {
            "exec" | "attach" | "portforward" | "proxy" => return self.connect(sub, &title, path),
            "log" => {
                let types =
                    &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml", "text/plain"];
                let mut operation = self.read(format!("read{name}"), "get", LOG, "", types, Some(sub));
                set_answer_type(&mut operation.body, &map! { "type" => "string" });
                return self.add(path, vec![operation]);
            }
            _ => {}
        }
        let mut operations = Vec::new();
        for verb in sub.verbs {
            operations.push(match *verb {
                "get" => self.read(format!("read{name}"), "get", READ, &schema, self.types, Some(sub)),
                "update" => self.write("put", "put", format!("replace{name}"), WRITE, &schema, Some(sub)),
                "patch" => self.patch(format!("patch{name}"), &schema, Some(sub)),
                "create" => self.write("post", "post", format!("create{name}"), WRITE, &schema, Some(sub)),
                _ => continue,
            });
        }
        self.add(path, operations);
    }

    /// Subresources that open a connection.
    fn connect(&mut self, sub: &Subresource, title: &str, path: String) {
        let parameters: &'static [(&'static str, &'static str)] = match sub.name.as_str() {
            "exec" => &[
                ("command", "string"),
                ("container", "string"),
                ("stderr", "boolean"),
                ("stdin", "boolean"),
                ("stdout", "boolean"),
                ("tty", "boolean"),
            ],
            "attach" => STREAMS,
            "portforward" => &[("ports", "integer")],
            _ => &[("path", "string")],
        };
        let proxy = sub.name == "proxy";
        let methods: &[&'static str] =
            if proxy { &["delete", "get", "head", "options", "patch", "post", "put"] } else { &["get", "post"] };
        let suffixes: &[(&str, &str)] = if proxy { &[("", ""), ("/{path}", "WithPath")] } else { &[("", "")] };
        for (tail, suffix) in suffixes {
            let mut operations = Vec::new();
            for method in methods {
                let kind = &self.resource.kind;
                let id =
                    format!("connect{}{}{}{kind}{title}{suffix}", self.scope, word(method, true), self.namespaced());
                let mut operation = self.read(id, "connect", parameters, "", &["*/*"], Some(sub));
                operation.method = method;
                set_answer_type(&mut operation.body, &map! { "type" => "string" });
                operations.push(operation);
            }
            self.add(format!("{path}{tail}"), operations);
        }
    }

    /// The old paths that watch.
    fn watches(&mut self) {
        let (kind, plural) = (self.resource.kind.clone(), self.resource.plural.clone());
        let namespaced = self.namespaced();
        let event = format!("{META}WatchEvent");
        let scope = self.scope.clone();
        let add = |paths: &mut Self, id: String, action: &str, path: String| {
            let mut operation = paths.list(id, &event);
            operation.body.insert("x-kubernetes-action", action);
            paths.add(path, vec![operation]);
        };
        if self.resource.namespaced {
            let path = format!("{}/watch/{plural}", self.root);
            add(self, format!("watch{scope}{kind}ListForAllNamespaces"), "watchlist", path);
        }
        let base = format!("{}/watch{}", self.root, &self.base()[self.root.len()..]);
        add(self, format!("watch{scope}{namespaced}{kind}List"), "watchlist", base.clone());
        if self.can("get") {
            add(self, format!("watch{scope}{namespaced}{kind}"), "watch", format!("{base}/{{name}}"));
        }
    }

    fn list(&self, id: String, schema: &str) -> Operation {
        let mut types = self.types.to_vec();
        if !self.resource.is_custom() {
            types.extend(["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]);
        }
        self.operation("get", "list", id, LIST, &["200"], schema, &types, None)
    }

    fn read(
        &self,
        id: String,
        action: &str,
        parameters: &'static [(&'static str, &'static str)],
        schema: &str,
        types: &[&str],
        sub: Option<&Subresource>,
    ) -> Operation {
        self.operation("get", action, id, parameters, &["200"], schema, types, sub)
    }

    fn write(
        &self,
        method: &'static str,
        action: &str,
        id: String,
        parameters: &'static [(&'static str, &'static str)],
        schema: &str,
        sub: Option<&Subresource>,
    ) -> Operation {
        let codes: &[&str] = if method == "post" { &["200", "201", "202"] } else { &["200", "201"] };
        let mut operation = self.operation(method, action, id, parameters, codes, schema, self.types, sub);
        let types: &[&str] = if self.resource.is_custom() { CUSTOM_TYPES } else { &["*/*"] };
        operation.body.insert("requestBody", map! { "content" => content(types, schema), "required" => true });
        operation
    }

    fn patch(&self, id: String, schema: &str, sub: Option<&Subresource>) -> Operation {
        let mut operation = self.operation("patch", "patch", id, PATCH, &["200", "201"], schema, self.types, sub);
        let mut types =
            vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
        if self.resource.is_custom() {
            operation.body.get_mut("responses").and_then(Value::as_object_mut).map(|r| r.remove("201"));
        } else {
            types.push("application/strategic-merge-patch+json");
        }
        let body = map! { "content" => content(&types, &format!("{META}Patch")), "required" => true };
        operation.body.insert("requestBody", body);
        operation
    }

    fn delete(
        &self,
        action: &str,
        id: String,
        parameters: &'static [(&'static str, &'static str)],
        codes: &[&str],
        answer: &str,
    ) -> Operation {
        let mut operation = self.operation("delete", action, id, parameters, codes, answer, self.types, None);
        let types: &[&str] = if self.resource.is_custom() { CUSTOM_TYPES } else { &["*/*"] };
        operation.body.insert("requestBody", map! { "content" => content(types, &format!("{META}DeleteOptions")) });
        operation
    }

    #[allow(clippy::too_many_arguments)]
    fn operation(
        &self,
        method: &'static str,
        action: &str,
        id: String,
        parameters: &'static [(&'static str, &'static str)],
        codes: &[&str],
        schema: &str,
        types: &[&str],
        sub: Option<&Subresource>,
    ) -> Operation {
        let mut responses: Map =
            codes.iter().map(|code| (*code, Value::Object(map! { "content" => content(types, schema) }))).collect();
        responses.insert("401", Map::new());
        let (group, version, kind) = match sub {
            Some(sub) => (&sub.group, &sub.version, &sub.kind),
            None => (&self.resource.group, &self.resource.version, &self.resource.kind),
        };
        let body = map! {
            "operationId" => id,
            "responses" => responses,
            "tags" => vec![self.tag.as_str()],
            "x-kubernetes-action" => action,
            "x-kubernetes-group-version-kind" =>
                map! { "group" => group.as_str(), "version" => version.as_str(), "kind" => kind.as_str() },
        };
        Operation { method, parameters, body }
    }

    /// Adds a path: parameters that all its operations have stand with the path, the others with their operation.
    fn add(&mut self, path: String, operations: Vec<Operation>) {
        let Some(first) = operations.first() else { return };
        let shared: Vec<(&str, &str)> =
            first.parameters.iter().filter(|p| operations.iter().all(|o| o.parameters.contains(p))).copied().collect();
        let in_path = ["name", "namespace", "path"].into_iter().filter(|n| path.contains(&format!("{{{n}}}")));
        let mut common: Vec<(&str, bool, &str)> = in_path.map(|name| (name, true, "string")).collect();
        common.extend(shared.iter().map(|(name, kind)| (*name, false, *kind)));
        // A parameter of the path goes before a query of its name.
        common.sort_by_key(|(name, in_path, _)| (*name, !in_path));
        let mut item = Map::new();
        item.insert("parameters", common.into_iter().map(|(n, p, k)| parameter(n, p, k)).collect::<Vec<Map>>());
        for mut operation in operations {
            let own = operation.parameters.iter().filter(|p| !shared.contains(p));
            let own: Vec<Map> = own.map(|(name, kind)| parameter(name, false, kind)).collect();
            if !own.is_empty() {
                operation.body.insert("parameters", own);
            }
            item.insert(operation.method, operation.body);
        }
        self.out.insert(path, item);
    }
}

fn parameter(name: &str, in_path: bool, kind: &str) -> Map {
    let schema = map! { "type" => kind, "uniqueItems" => true };
    let mut out = map! { "in" => if in_path { "path" } else { "query" }, "name" => name, "schema" => schema };
    if in_path {
        out.insert("required", true);
    }
    out
}

fn content(types: &[&str], schema: &str) -> Map {
    let reference = map! { "schema" => map! { "$ref" => format!("{SCHEMAS}{schema}") } };
    types.iter().map(|t| (*t, Value::Object(reference.clone()))).collect()
}

/// Puts a schema in the place of the reference in an operation's answers.
fn set_answer_type(body: &mut Map, schema: &Map) {
    let answers = body.get_mut("responses").and_then(Value::as_object_mut);
    for answer in answers.into_iter().flat_map(Map::values_mut) {
        for content in answer.get_mut("content").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            content.set_at(&["schema"], Value::Object(schema.clone()));
        }
    }
}

/// The schema of what goes in and out of a subresource.
fn schema_of(resource: &Resource, own: &str, sub: &Subresource) -> String {
    if (&sub.group, &sub.version, &sub.kind) == (&resource.group, &resource.version, &resource.kind) {
        return own.to_owned();
    }
    let found = kinds::definitions::definitions().of_kind(&sub.group, &sub.version, &sub.kind);
    found.map_or_else(|| own.to_owned(), |d| d.name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn names_become_parts_of_ids() {
        assert_eq!(word("rbac.authorization", true), "RbacAuthorization");
        assert_eq!(word("stable.example.com", false), "stableExampleCom");
        assert_eq!(word("v1beta1", true), "V1beta1");
    }
}
