//! Tenants, their namespaces, and what is declared for them.

use crate::Args;
use bench::report;
use compat::client::{Client, Request, Response, Target};
use object::{Value, json};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

const KINDS: &str = "/apis/capsule.clastix.io/v1beta2";
/// How long is waited for one object.
const PATIENCE: Duration = Duration::from_secs(1800);

/// A server and what was put there.
pub struct House {
    target: Target,
    tenants: usize,
    namespaces: usize,
    items: usize,
    connections: usize,
    /// The server's revision when writes were counted last.
    revision: u64,
    /// How many objects were disturbed so far.
    disturbed: usize,
}

impl House {
    /// Nothing yet.
    pub fn new(target: &Target, args: &Args) -> Self {
        let Args { tenants, namespaces, items, connections, .. } = *args;
        House { target: target.clone(), tenants, namespaces, items, connections, revision: 0, disturbed: 0 }
    }

    /// The server was started anew.
    pub fn moved(&mut self, target: &Target) {
        self.target = target.clone();
    }

    /// How many objects are declared.
    pub fn objects(&self) -> usize {
        self.tenants * self.namespaces * self.items
    }

    /// Makes the tenants, then their namespaces, and waits until every tenant knows its own.
    pub async fn build(&self) -> Result<(), String> {
        self.until(format!("{KINDS}/tenants?limit=1"), |_| true).await?;
        self.each(self.tenants, |i| {
            let spec = format!(r#"{{"owners":[{{"kind":"User","name":"owner-{i}","clusterRoles":["admin"]}}]}}"#);
            post(format!("{KINDS}/tenants"), format!(r#"{{"apiVersion":"capsule.clastix.io/v1beta2","kind":"Tenant","metadata":{{"name":"tenant-{i}"}},"spec":{spec}}}"#))
        })
        .await?;
        self.each(self.tenants * self.namespaces, |n| {
            let (tenant, space) = (n / self.namespaces, n % self.namespaces);
            post("/api/v1/namespaces".into(), format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}","labels":{{"capsule.clastix.io/tenant":"tenant-{tenant}"}}}}}}"#, namespace(tenant, space)))
        })
        .await?;
        let size = i64::try_from(self.namespaces).unwrap_or(i64::MAX);
        for tenant in 0..self.tenants {
            self.until(format!("{KINDS}/tenants/tenant-{tenant}"), |o| {
                o.at(&["status", "size"]) == Some(&Value::Int(size))
            })
            .await?;
        }
        Ok(())
    }

    /// Declares the objects: one of each namespace is not protected, the others are.
    pub async fn declare(&self) -> Result<(), String> {
        let item = |i: usize| {
            format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"item-{i}","labels":{{"team":"{{{{tenant.name}}}}"}}}},"data":{{"namespace":"{{{{namespace}}}}","settings":"level=info\ncolour=green\nsize=10\n"}}}}"#
            )
        };
        let all: Vec<String> = (1..self.items).map(item).collect();
        let spec = format!(
            r#"{{"resyncPeriod":"720h","resources":[{{"policy":{{"protect":false}},"rawItems":[{}]}},{{"policy":{{}},"rawItems":[{}]}}]}}"#,
            item(0),
            all.join(",")
        );
        self.each(self.tenants, |i| {
            let body = format!(r#"{{"apiVersion":"capsule.clastix.io/v1beta2","kind":"TenantResource","metadata":{{"name":"defaults"}},"spec":{spec}}}"#);
            post(format!("{KINDS}/namespaces/{}/tenantresources", namespace(i, 0)), body)
        })
        .await
    }

    /// Waits until everything that is declared is there.
    pub async fn all_ready(&self) -> Result<(), String> {
        let size = i64::try_from(self.namespaces * self.items).unwrap_or(i64::MAX);
        for tenant in 0..self.tenants {
            let is_ready = |o: &Value| {
                let conditions = o.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
                let text = |c: &Value, key| c.get(key).and_then(Value::as_str).map(str::to_owned);
                o.at(&["status", "size"]) == Some(&Value::Int(size))
                    && conditions.iter().any(|c| {
                        text(c, "type").as_deref() == Some("Ready") && text(c, "status").as_deref() == Some("True")
                    })
            };
            self.until(resource(tenant), is_ready).await?;
        }
        Ok(())
    }

    /// Has every TenantResource looked at again.
    pub async fn touch(&self) -> Result<(), String> {
        self.each(self.tenants, |i| merge(resource(i), r#"{"metadata":{"labels":{"touched":"yes"}}}"#)).await
    }

    /// Changes or deletes managed objects, one after the other, and prints how soon each is as it was.
    pub async fn heal(&mut self, repairs: usize) -> Result<(), String> {
        let mut client = Client::new(self.target.clone());
        let (mut edits, mut deletions) = (Vec::new(), Vec::new());
        let began = Instant::now();
        for n in self.disturbed..self.disturbed + repairs {
            // Another object each time: who is changed again and again is put back ever later.
            let place = n.wrapping_mul(7919) % (self.tenants * self.namespaces);
            let path = format!(
                "/api/v1/namespaces/{}/configmaps/item-0",
                namespace(place / self.namespaces, place % self.namespaces)
            );
            let before = self.get(&mut client, &path).await?.ok_or("a managed object is not there")?;
            let is_edit = n % 2 == 0;
            let request = if is_edit {
                merge(path.clone(), r#"{"data":{"namespace":"elsewhere"}}"#)
            } else {
                Request::new("DELETE", path.clone())
            };
            let start = Instant::now();
            accepted(&client.send(&request).await?)?;
            while self.get(&mut client, &path).await?.is_none_or(|now| now.get("data") != before.get("data")) {
                if start.elapsed() > PATIENCE {
                    return Err(format!("{path} was not put back"));
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if is_edit { &mut edits } else { &mut deletions }.push(start.elapsed());
        }
        self.disturbed += repairs;
        report::latencies("edits put back", edits, began.elapsed(), 0);
        report::latencies("deletions put back", deletions, began.elapsed(), 0);
        Ok(())
    }

    /// Makes objects that nobody manages, of the kind that is managed.
    pub async fn crowd(&self, count: usize) -> Result<(), String> {
        self.each(count, |n| {
            post("/api/v1/namespaces/default/configmaps".into(), format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"foreign-{n}","labels":{{"app":"other"}}}},"data":{{"a":"b"}}}}"#))
        })
        .await
    }

    /// How many writes there were since the last time.
    pub async fn writes(&mut self) -> Result<u64, String> {
        let mut client = Client::new(self.target.clone());
        let list = self.get(&mut client, "/api/v1/namespaces?limit=1").await?.unwrap_or_default();
        let revision = list.meta_str("resourceVersion").parse().map_err(|_| "no revision")?;
        let before = std::mem::replace(&mut self.revision, revision);
        Ok(revision.saturating_sub(before))
    }

    /// Sends `count` requests over many connections.
    async fn each(&self, count: usize, request: impl Fn(usize) -> Request) -> Result<(), String> {
        let next = Rc::new(Cell::new(0));
        let worker = || async {
            let mut client = Client::new(self.target.clone());
            loop {
                let n = next.replace(next.get() + 1);
                if n >= count {
                    return Ok::<_, String>(());
                }
                accepted(&client.send(&request(n)).await?)?;
            }
        };
        let workers = (0..self.connections.max(1)).map(|_| worker());
        futures_util::future::try_join_all(workers).await.map(drop)
    }

    async fn get(&self, client: &mut Client, path: &str) -> Result<Option<Value>, String> {
        let answer = client.send(&Request::new("GET", path)).await?;
        if answer.code == 404 {
            return Ok(None);
        }
        accepted(&answer)?;
        json::parse(&answer.body).map(Some).map_err(|e| e.to_string())
    }

    async fn until(&self, path: String, what: impl Fn(&Value) -> bool) -> Result<(), String> {
        let mut client = Client::new(self.target.clone());
        let start = Instant::now();
        while !self.get(&mut client, &path).await?.is_some_and(|o| what(&o)) {
            if start.elapsed() > PATIENCE {
                return Err(format!("{path} is not as it should be"));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }
}

fn namespace(tenant: usize, space: usize) -> String {
    format!("tenant-{tenant}-space-{space}")
}

/// The path of a tenant's TenantResource.
fn resource(tenant: usize) -> String {
    format!("{KINDS}/namespaces/{}/tenantresources/defaults", namespace(tenant, 0))
}

fn post(path: String, body: String) -> Request {
    Request::new("POST", path).body("application/json", body)
}

fn merge(path: String, patch: &str) -> Request {
    Request::new("PATCH", path).body("application/merge-patch+json", patch)
}

fn accepted(answer: &Response) -> Result<(), String> {
    if answer.code < 300 { Ok(()) } else { Err(format!("{}: {}", answer.code, String::from_utf8_lossy(&answer.body))) }
}
