//! The specification of a claim, which stands in claims and in the pods that bring their own.

use crate::check::{self, Errors};
use crate::pod::{self, resources};
use crate::read::Read;
use object::field::{FieldError, Path, Shown};
use object::{Value, names};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Checks the specification of a claim.
pub(crate) fn spec(spec: &Value, path: &Path<'_>, out: &mut Errors) {
    access_modes(spec, "at least 1 access mode is required", path, out);
    check::label_selector(spec.sub("selector"), &path.child("selector"), out);
    let resources = path.child("resources");
    let at = resources.key("storage");
    match spec.sub("resources").members("requests").get("storage") {
        None => out.push(FieldError::required(&at, "")),
        Some(value) => match check::quantity(value).filter(|q| !q.sign().is_gt()) {
            Some(quantity) => {
                out.push(FieldError::invalid(&at, quantity.to_string().as_str(), "must be greater than zero"));
            }
            None => resources::amount("storage", value, &at, out),
        },
    }
    if !spec.text("storageClassName").is_empty() {
        check::name(names::dns1123_subdomain, spec.text("storageClassName"), &path.child("storageClassName"), out);
    }
    if spec.has("volumeMode") {
        check::one_of(spec, "volumeMode", &["Block", "Filesystem"], path, out);
    }
    for key in ["dataSource", "dataSourceRef"].into_iter().filter(|k| spec.has(k)) {
        let (source, at) = (spec.sub(key), path.child(key));
        check::required(source, "name", &at, out);
        check::required(source, "kind", &at, out);
        let group = source.text("apiGroup");
        if !group.is_empty() {
            check::name(names::dns1123_subdomain, group, &at.child("apiGroup"), out);
        } else if source.text("kind") != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            out.push(FieldError::invalid(&at, source.text("kind"), why));
        }
    }
    let (source, reference) = (spec.sub("dataSource"), spec.sub("dataSourceRef"));
    let same = ["apiGroup", "kind", "name"].iter().all(|k| source.text(k) == reference.text(k));
    if spec.has("dataSource") && spec.has("dataSourceRef") && !same {
        let field = path.child("dataSource").to_string();
        out.push(FieldError::invalid(path, Shown::raw(field), "must match dataSourceRef"));
    }
}

/// Warnings about parts of bytes of storage, which nobody can give.
pub(crate) fn warnings(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let resources = path.child("resources");
    for part in ["requests", "limits"] {
        let at = resources.child(part);
        pod::fraction(spec.sub("resources").sub(part).sub("storage"), &at.key("storage"), out);
    }
}

/// Checks the ways in which a volume can be mounted; `none` is what is said where there are none.
pub(crate) fn access_modes(spec: &Value, none: &str, path: &Path<'_>, out: &mut Errors) {
    let at = path.child("accessModes");
    let list = spec.strings("accessModes");
    if list.is_empty() {
        out.push(FieldError::required(&at, none));
    }
    for mode in list.iter().filter(|m| !MODES.contains(m)) {
        out.push(FieldError::not_supported(&at, *mode, &MODES));
    }
    if list.contains(&"ReadWriteOncePod") && list.iter().any(|m| *m != "ReadWriteOncePod" && MODES.contains(m)) {
        out.push(FieldError::forbidden(&at, "may not use ReadWriteOncePod with other access modes"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn parts_of_bytes_are_told_of() {
        let spec = json::parse(br#"{"resources":{"requests":{"storage":"1500m"},"limits":{"storage":"2500m"}}}"#);
        let mut out = Vec::new();
        warnings(&spec.unwrap(), &Path::ROOT.child("spec"), &mut out);
        let why = |part: &str, value: &str| {
            format!("spec.resources.{part}[storage]: fractional byte value \"{value}\" is invalid, must be an integer")
        };
        assert_eq!(out, [why("requests", "1500m"), why("limits", "2500m")]);
    }
}
