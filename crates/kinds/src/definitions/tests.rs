use super::*;

#[test]
fn a_field_says_what_is_published_of_it() {
    let port = definitions().get("io.k8s.api.core.v1.ServicePort").unwrap();
    let protocol = port.field("protocol").unwrap();
    assert_eq!(protocol.schema.default(), Some("TCP".into()));
    assert_eq!(protocol.schema.enum_values().unwrap().collect::<Vec<_>>(), ["SCTP", "TCP", "UDP"]);
    assert_eq!(port.required().collect::<Vec<_>>(), ["port"]);
    let spec = definitions().get("io.k8s.api.core.v1.ServiceSpec").unwrap();
    let ports = spec.field("ports").unwrap();
    assert_eq!(ports.schema.list_type, Some(ListType::Map));
    assert_eq!(ports.schema.list_map_keys().collect::<Vec<_>>(), ["port", "protocol"]);
    assert_eq!(ports.schema.patch_merge_key, "port");
}

#[test]
fn kinds_and_go_names_are_found() {
    let d = definitions().of_kind("apps", "v1", "Deployment").unwrap();
    assert_eq!((d.name, d.type_name(), d.go_name()), ("io.k8s.api.apps.v1.Deployment", "Deployment", "v1.Deployment"));
}

#[test]
fn the_zero_value_is_what_go_writes() {
    let d = definitions().get("io.k8s.api.apps.v1.DeploymentSpec").unwrap();
    let text = json::to_string(&Value::Object(d.zero()));
    assert_eq!(
        text,
        r#"{"selector":null,"strategy":{},"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":null}}}"#
    );
}

#[test]
fn every_reference_has_its_definition() {
    fn check(ty: &Type, at: &str) {
        match ty {
            Type::Ref(to) => {
                assert!(to.definition().is_some_and(|found| found.name == to.name()), "{at}: {}", to.name());
                assert!(ty.definition().is_some_and(|again| again.name == to.name()), "{at}: {}", to.name());
            }
            Type::List(s) | Type::Map(s) => check(&s.ty, at),
            _ => {}
        }
    }
    for d in definitions().iter() {
        d.fields.iter().for_each(|f| check(&f.schema.ty, d.name));
    }
}
