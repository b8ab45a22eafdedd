//! Random objects of every kind go all the way a write goes, and nothing falls over.

#![allow(clippy::unwrap_used)]

use kinds::definitions::{Definition, Schema, Type};
use kinds::{Context, resources};
use object::{Map, Value};
use proptest::prelude::*;

/// A stream of small choices.
struct Choices(u64);

impl Choices {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn text(&mut self) -> &'static str {
        const TEXTS: [&str; 24] = [
            "",
            "a",
            "Bad_Name",
            "ü",
            "1.2.3.4",
            "10.0.0.0/33",
            "::1/129",
            "25%",
            "101%",
            "*",
            "*/*",
            "a/b",
            "/..",
            "http://x",
            "RollingUpdate",
            "ClusterIP",
            "None",
            "Always",
            "* * * * *",
            "2024-01-01T00:00:00Z",
            "1Gi",
            "-1",
            "In",
            "TCP",
        ];
        TEXTS[self.next(TEXTS.len() as u64) as usize]
    }

    fn value(&mut self, schema: &Schema, depth: u32) -> Value {
        if self.next(30) == 0 {
            return Value::Null;
        }
        if self.next(2000) == 0 {
            return [Value::Int(5), Value::Bool(true), "x".into(), Value::Array(vec![])][self.next(4) as usize].clone();
        }
        match &schema.ty {
            Type::Ref(_) => match schema.ty.definition() {
                Some(d) if d.fields.is_empty() => self.scalar(&d.schema.ty),
                Some(d) if depth > 0 => self.object(d, depth - 1),
                _ => Map::new().into(),
            },
            Type::List(item) => {
                let count = self.next(4);
                Value::Array((0..count).map(|_| self.value(item, depth)).collect())
            }
            Type::Map(inner) => {
                let count = self.next(3);
                Value::Object((0..count).map(|_| (self.text(), self.value(inner, depth))).collect())
            }
            ty => self.scalar(ty),
        }
    }

    fn scalar(&mut self, ty: &Type) -> Value {
        const NUMBERS: [i64; 8] = [0, 1, -1, 2, 80, 70_000, i32::MAX as i64, i32::MIN as i64];
        match ty {
            Type::Bool => (self.next(2) == 0).into(),
            Type::Int32 | Type::Int64 | Type::Double => NUMBERS[self.next(8) as usize].into(),
            Type::IntOrString if self.next(2) == 0 => NUMBERS[self.next(8) as usize].into(),
            Type::DateTime => "2024-01-01T00:00:00Z".into(),
            Type::Bytes => "eA==".into(),
            Type::Quantity => ["1", "1Gi", "-5", "0.1", "123456789012345678901234567890"][self.next(5) as usize].into(),
            Type::Object | Type::Any => Map::new().into(),
            _ => self.text().into(),
        }
    }

    fn object(&mut self, definition: &Definition, depth: u32) -> Value {
        let mut out = Map::new();
        for field in &definition.fields {
            if self.next(3) != 0 {
                out.insert(field.name, self.value(&field.schema, depth));
            }
        }
        out.into()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_object_makes_a_write_fall_over(seed in any::<u64>()) {
        let mut choices = Choices(seed);
        let context = Context { now: "2025-01-01T00:00:00Z".parse().unwrap(), user: None };
        let mut decoded = 0;
        for resource in resources() {
            for version in resource.versions {
                let definition = version.definition().unwrap();
                let mut objects: Vec<Value> = Vec::new();
                for _ in 0..4 {
                    let Ok(read) = kinds::decode(definition, choices.object(definition, 6)) else { continue };
                    let mut object = read.object;
                    (version.default)(&mut object);
                    if let Some(convert) = version.convert {
                        (convert.to_stored)(&mut object);
                    }
                    objects.push(object);
                }
                decoded += objects.len();
                for object in &objects {
                    let mut made = object.clone();
                    admit(resource, &mut made, &objects, context.now);
                    resource.prepare_create(&mut made, &context);
                    let _ = resource.validate(&made);
                    let _ = (resource.strategy.warnings)(&made, None);
                    resource.finish(&mut made);
                    prop_assert!((resource.cells)(&made, context.now).len() >= resource.columns.len());
                    for old in &objects {
                        let mut new = object.clone();
                        resource.prepare_update(&mut new, old, &context);
                        let _ = resource.validate_update(&new, old);
                        resource.prepare_status(&mut new, old, &context);
                        let _ = resource.validate_status(&new, old);
                        resource.finish(&mut new);
                    }
                    for field in resource.selectable {
                        let _ = (field.value)(&made);
                    }
                    if let Some(convert) = version.convert {
                        (convert.from_stored)(&mut made);
                    }
                    // What was finished is finished: doing it again changes nothing.
                    let mut again = made.clone();
                    if version.convert.is_none() {
                        resource.finish(&mut again);
                        prop_assert_eq!(&again, &made);
                    }
                }
            }
        }
        prop_assert!(decoded > 100, "only {} objects were fit for a write", decoded);
    }
}

/// Asks all that plugins ask, whatever the object is.
fn admit(resource: &kinds::Resource, object: &mut Value, others: &[Value], now: jiff::Timestamp) {
    use kinds::admission::{additions, limits, pod_security, quota, service_account};
    additions::tolerate(object);
    additions::taint(object);
    let _ = additions::priority(object, others.first());
    let _ = quota::usage(resource.group, resource.plural, object, now);
    let standard = pod_security::Standard { level: pod_security::Level::Restricted, version: None };
    let _ = pod_security::violations(standard, object);
    for other in others {
        limits::set_defaults(other, object);
        let _ = limits::violations(other, "pods", object);
        let _ = service_account::secret_refusal(object, other, false);
        service_account::equip(object, other, "abcde");
        let (group, plural, subresource) = (resource.group, resource.plural, "");
        let request = quota::Request { group, plural, subresource, object, old: Some(other), now };
        let _ = quota::charge(other, &request);
    }
}
