//! The hashes in names: of templates of pods, and of the data of ControllerRevisions.
//!
//! Both are FNV sums as upstream makes them, so that names stay what they were when a cluster changes its server.

mod dump;

use object::{Value, json};

/// FNV's first sum, 32 bits.
const OFFSET: u32 = 2_166_136_261;
/// FNV's factor, 32 bits.
const PRIME: u32 = 16_777_619;
/// The letters of hashes in names: no vowels, and no digits that look like them.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a template of pods (FNV-1a over Go's dump of it, then over the count of collisions, if there is one).
pub(crate) fn of_template(template: &Value, collisions: Option<i64>) -> String {
    let mut sum = OFFSET;
    let mut add = |bytes: &[u8]| sum = bytes.iter().fold(sum, |sum, b| (sum ^ u32::from(*b)).wrapping_mul(PRIME));
    add(dump::pod_template(template).as_bytes());
    if let Some(count) = collisions {
        let count = u64::from(count as u32);
        add(&count.to_le_bytes());
    }
    encode(sum)
}

/// The hash of a ControllerRevision's data (FNV-1 over its JSON, then over the count of collisions, if there is one).
pub(crate) fn of_revision(data: &Value, collisions: Option<i64>) -> String {
    let mut sum = OFFSET;
    let mut add = |bytes: &[u8]| sum = bytes.iter().fold(sum, |sum, b| sum.wrapping_mul(PRIME) ^ u32::from(*b));
    add(json::to_string(data).as_bytes());
    if let Some(count) = collisions {
        add(count.to_string().as_bytes());
    }
    encode(sum)
}

/// A sum in letters that make no words.
fn encode(sum: u32) -> String {
    let letter = |b: u8| LETTERS.get(usize::from(b) % LETTERS.len()).copied().map_or('b', char::from);
    sum.to_string().bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(labels: &str, image: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"creationTimestamp":null,"labels":{labels}}},"spec":{{"containers":[{{"name":"web","image":"{image}",
            "resources":{{}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
            "imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,
            "dnsPolicy":"ClusterFirst","securityContext":{{}},"schedulerName":"default-scheduler"}}}}"#
        );
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn templates_have_the_hashes_of_a_real_cluster() {
        let web = r#"{"app":"web"}"#;
        assert_eq!(of_template(&template(web, "img.example.test/web:1"), None), "7959dd7956");
        assert_eq!(of_template(&template(web, "img.example.test/web:2"), None), "6f4d687459");
        assert_eq!(of_template(&template(web, "img.example.test/web:1"), Some(1)), "6fd8d96c7");
        assert_eq!(of_template(&template(r#"{"app":"web","tier":"x"}"#, "img.example.test/web:1"), None), "7875759698");
    }
}
