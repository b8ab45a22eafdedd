//! What is checked of where a webhook is, be it one of admission or of conversion.
//!
//! Source: `k8s.io/apiserver/pkg/util/webhook/validation.go`.

use crate::Value;
use crate::field::{FieldError, Path};
use crate::names::dns1123_subdomain;
use crate::url::Url;

/// Checks the `url` of a webhook, which is at `path`; what is wrong is added to `errors`.
pub fn check_url(text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            return errors.push(FieldError::required(path, format!("url must be a valid URL: {error}{FORM}")));
        }
    };
    if url.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(path, &url.scheme, detail));
    }
    if url.host.is_empty() {
        errors.push(FieldError::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = &url.user {
        errors.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    for (part, detail) in [
        (&url.fragment, "fragments are not permitted in the URL"),
        (&url.query, "query parameters are not permitted in the URL"),
    ] {
        if let Some(part) = part.as_ref().filter(|part| !part.is_empty()) {
            errors.push(FieldError::invalid(path, part, detail));
        }
    }
}

/// Checks the `service` of a webhook, which is at `path`; what is wrong is added to `errors`.
pub fn check_service(service: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let text = |key: &str| service.get(key).and_then(Value::as_str).unwrap_or_default();
    // Upstream hands over name and namespace in the wrong order: each is reported as the other.
    for (key, value) in [("name", text("namespace")), ("namespace", text("name"))] {
        if value.is_empty() {
            errors.push(FieldError::required(&path.child(key), format!("service {key} is required")));
        }
    }
    let port = service.get("port").and_then(Value::as_int).unwrap_or(0);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    let Some(url_path) = service.get("path").and_then(Value::as_str) else { return };
    let at = path.child("path");
    let mut invalid = |detail: String| errors.push(FieldError::invalid(&at, url_path, detail));
    match url_path {
        "" | "/" => return,
        "//" => return invalid("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    if !url_path.starts_with('/') {
        invalid("must start with a '/'".to_owned());
    }
    // Whatever the first byte is, the rest is looked at.
    let rest = String::from_utf8_lossy(url_path.as_bytes().get(1..).unwrap_or_default());
    for (i, segment) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
        if segment.is_empty() {
            invalid(format!("segment[{i}] may not be empty"));
            continue;
        }
        for complaint in dns1123_subdomain(segment) {
            invalid(format!("segment[{i}]: {complaint}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn urls_are_of_a_host_over_https_and_nothing_else() {
        const FORM: &str = "; desired format: https://host[/path]";
        for (text, expected) in [
            ("https://host:8443/path", vec![]),
            ("HTTPS://host", vec![]),
            (
                "",
                vec![
                    format!("Invalid value: \"\": 'https' is the only allowed URL scheme{FORM}"),
                    format!("Invalid value: \"\": host must be specified{FORM}"),
                ],
            ),
            ("https:host", vec![format!("Invalid value: \"\": host must be specified{FORM}")]),
            ("https://@host", vec!["Invalid value: \"\": user information is not permitted in the URL".to_owned()]),
            (
                "https://u:p@host/?q#f%20f",
                vec![
                    "Invalid value: \"u:p\": user information is not permitted in the URL".to_owned(),
                    "Invalid value: \"f f\": fragments are not permitted in the URL".to_owned(),
                    "Invalid value: \"q\": query parameters are not permitted in the URL".to_owned(),
                ],
            ),
            (
                "https://h:x",
                vec![format!(
                    "Required value: url must be a valid URL: parse \"https://h:x\": invalid port \":x\" after host{FORM}"
                )],
            ),
        ] {
            let mut errors = Vec::new();
            check_url(text, &Path::ROOT.child("url"), &mut errors);
            let errors: Vec<String> = errors.iter().map(FieldError::body).collect();
            assert_eq!(errors, expected, "{text}");
        }
    }

    #[test]
    fn services_have_a_name_a_port_and_a_path_of_labels() {
        const LABEL: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        let whole = r#""name":"n","namespace":"s","port":443"#;
        for (service, expected) in [
            (whole.to_owned(), vec![]),
            (
                r#""namespace":"s","port":70000"#.to_owned(),
                vec![
                    "service.namespace: Required value: service namespace is required".to_owned(),
                    "service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive"
                        .to_owned(),
                ],
            ),
            (
                r#""name":"n","port":1"#.to_owned(),
                vec!["service.name: Required value: service name is required".to_owned()],
            ),
            (format!(r#"{whole},"path":"/""#), vec![]),
            (format!(r#"{whole},"path":"/a/b/""#), vec![]),
            (
                format!(r#"{whole},"path":"//""#),
                vec!["service.path: Invalid value: \"//\": segment[0] may not be empty".to_owned()],
            ),
            (
                format!(r#"{whole},"path":"/a//b""#),
                vec!["service.path: Invalid value: \"/a//b\": segment[1] may not be empty".to_owned()],
            ),
            (
                format!(r#"{whole},"path":"xA/b""#),
                vec![
                    "service.path: Invalid value: \"xA/b\": must start with a '/'".to_owned(),
                    format!("service.path: Invalid value: \"xA/b\": segment[0]: {LABEL}"),
                ],
            ),
        ] {
            let mut errors = Vec::new();
            let value = json::parse(format!("{{{service}}}").as_bytes()).unwrap();
            check_service(&value, &Path::ROOT.child("service"), &mut errors);
            let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
            assert_eq!(errors, expected, "{service}");
        }
    }
}
