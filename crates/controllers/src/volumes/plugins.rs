//! Who makes and deletes volumes of a kind.

use super::matching::PROVISIONED_BY;
use kinds::read::Read;
use object::Value;

/// The annotations of a claim with the name of who is to make its volume.
const PROVISIONER: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];

/// The built-in names whose work drivers do now.
const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

/// Who makes volumes of a class; an error says that nobody does.
pub fn provisioner(class: &Value) -> Result<String, String> {
    let name = class.text("provisioner");
    match MIGRATED.iter().find(|(old, _)| *old == name) {
        Some((_, driver)) => Ok((*driver).to_owned()),
        None if name.starts_with("kubernetes.io/") => Err(format!("no volume plugin matched name: {name}")),
        None => Ok(name.to_owned()),
    }
}

/// The claim with the name of who is to make its volume; nothing if it has it already.
pub fn with_provisioner(claim: &Value, provisioner: &str) -> Option<Value> {
    if claim.annotation(PROVISIONER[1]) == Some(provisioner) {
        return None;
    }
    let mut out = claim.clone();
    let annotations = out.metadata_mut().object_entry("annotations");
    for annotation in PROVISIONER {
        annotations.insert(annotation, provisioner);
    }
    Some(out)
}

/// How a volume that nobody claims any more is deleted.
#[derive(Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Whoever made it does it.
    ByOthers,
    /// At once.
    Now,
    /// Not at all.
    Impossible(String),
}

/// How a volume is deleted.
pub fn deletion(volume: &Value) -> Deletion {
    if let Some(by) = volume.annotation(PROVISIONED_BY).filter(|by| !by.is_empty()) {
        if !by.starts_with("kubernetes.io/") || MIGRATED.iter().any(|(old, _)| *old == by) {
            return Deletion::ByOthers;
        }
        return Deletion::Impossible(format!("no volume plugin matched name: {by}"));
    }
    let spec = volume.sub("spec");
    if !spec.has("hostPath") {
        let name = object::go::quote(volume.name());
        let why = format!("error getting deleter volume plugin for volume {name}: no deletable volume plugin matched");
        return Deletion::Impossible(why);
    }
    // There is nothing behind the path: only the object goes.
    let path = spec.sub("hostPath").text("path");
    let temporary = path.split_once("/tmp/").is_some_and(|(_, rest)| !rest.is_empty());
    if temporary {
        Deletion::Now
    } else {
        Deletion::Impossible(format!("host_path deleter only supports /tmp/.+ but received provided {path}"))
    }
}

/// Whether there is something that empties a volume.
pub fn is_recyclable(volume: &Value) -> bool {
    ["hostPath", "nfs"].iter().any(|source| volume.sub("spec").has(source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn parse(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn classes_have_provisioners() {
        for (name, expected) in [
            ("example.test/disk", Ok("example.test/disk")),
            ("kubernetes.io/aws-ebs", Ok("ebs.csi.aws.com")),
            ("kubernetes.io/no-provisioner", Err("no volume plugin matched name: kubernetes.io/no-provisioner")),
        ] {
            let class = parse(&format!(r#"{{"provisioner":"{name}"}}"#));
            assert_eq!(provisioner(&class), expected.map(str::to_owned).map_err(str::to_owned));
        }
        let claim = with_provisioner(&Value::Null, "x").unwrap();
        assert_eq!(with_provisioner(&claim, "x"), None);
    }

    #[test]
    fn volumes_are_deleted_by_those_who_can() {
        for (volume, expected) in [
            (r#"{"spec":{"hostPath":{"path":"/tmp/x"}}}"#, Deletion::Now),
            (
                r#"{"spec":{"hostPath":{"path":"/srv/x"}}}"#,
                Deletion::Impossible("host_path deleter only supports /tmp/.+ but received provided /srv/x".into()),
            ),
            (
                r#"{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"d.test"}},"spec":{"csi":{}}}"#,
                Deletion::ByOthers,
            ),
            (
                r#"{"metadata":{"name":"v"},"spec":{"csi":{}}}"#,
                Deletion::Impossible(
                    "error getting deleter volume plugin for volume \"v\": no deletable volume plugin matched".into(),
                ),
            ),
        ] {
            assert_eq!(deletion(&parse(volume)), expected);
        }
    }
}
