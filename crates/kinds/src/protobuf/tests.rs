use super::*;

/// A field that holds bytes.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![tag << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    out.extend(bytes);
    out
}

/// A field that holds a small number.
fn number(tag: u8, n: u8) -> Vec<u8> {
    vec![tag << 3, n]
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
}

fn read_text(body: &[u8]) -> String {
    json::to_string(&read(body).unwrap())
}

#[test]
fn maps_bytes_and_metadata() {
    let entry = |k: &[u8], v: &[u8]| field(2, &[field(1, k), field(2, v)].concat());
    let meta = field(1, &[field(1, b"c"), field(2, b""), field(8, &[]), number(7, 0)].concat());
    let raw = [meta, entry(b"b", b"2"), entry(b"a", b"1"), number(4, 1)].concat();
    assert_eq!(
        read_text(&body("v1", "ConfigMap", &raw)),
        r#"{"apiVersion":"v1","data":{"a":"1","b":"2"},"immutable":true,"kind":"ConfigMap","metadata":{"creationTimestamp":null,"generateName":"","generation":0,"name":"c"}}"#
    );
    let secret = field(2, &[field(1, b"k"), field(2, b"hi")].concat());
    assert_eq!(read_text(&body("v1", "Secret", &secret)), r#"{"apiVersion":"v1","data":{"k":"aGk="},"kind":"Secret"}"#);
}

#[test]
fn inlined_messages_lists_and_numbers_or_strings() {
    let volume = field(1, &[field(1, b"v"), field(2, &field(2, &field(1, b"Memory")))].concat());
    let probe = field(10, &field(1, &field(2, &[field(1, b"/"), field(2, &number(2, 80))].concat())));
    let cpu = field(8, &field(2, &[field(1, b"cpu"), field(2, &field(1, b"1"))].concat()));
    let container = field(2, &[field(1, b"c"), field(3, b"x"), field(3, b"y"), probe, cpu].concat());
    let pod = field(2, &[volume, container].concat());
    assert_eq!(
        read_text(&body("v1", "Pod", &pod)),
        r#"{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"command":["x","y"],"livenessProbe":{"httpGet":{"path":"/","port":80}},"name":"c","resources":{"requests":{"cpu":"1"}}}],"volumes":[{"emptyDir":{"medium":"Memory"},"name":"v"}]}}"#
    );
}

#[test]
fn times() {
    let spec = field(2, &field(4, &[number(1, 5), vec![2 << 3, 0xc0, 0xc4, 0x07]].concat()));
    assert_eq!(
        read_text(&body("coordination.k8s.io/v1", "Lease", &spec)),
        r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":"1970-01-01T00:00:05.000123Z"}}"#
    );
}

#[test]
fn every_kind_that_is_served_has_a_table() {
    for resource in crate::resources() {
        for version in resource.versions {
            if let Some(definition) = version.definition() {
                assert!(tags(definition.name).is_some(), "{}", definition.name);
            }
        }
    }
}

#[test]
fn what_is_broken_is_told() {
    assert!(read(b"{}").unwrap_err().contains("expected prefix"));
    assert_eq!(read(&body("v1", "Nothing", b"")).unwrap_err(), r#"no kind "Nothing" is registered for version "v1""#);
    for raw in [&[0x0a, 0x05, 1][..], &[0x0a], &[0xff; 12], &[0x0b], &[0x08, 0x01]] {
        assert!(read(&body("v1", "ConfigMap", raw)).is_err(), "{raw:?}");
    }
}
