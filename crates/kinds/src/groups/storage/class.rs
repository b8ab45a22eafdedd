//! Checks of StorageClasses.

use crate::check::{self, Errors};
use crate::pod;
use crate::read::Read;
use object::Value;
use object::field::{FieldError, Path};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) fn validate(object: &Value) -> Errors {
    let mut out = Errors::new();
    let provisioner = object.text("provisioner");
    let at = Path::ROOT.child("provisioner");
    if provisioner.is_empty() {
        out.push(FieldError::required(&at, provisioner));
    } else {
        let lower = provisioner.to_lowercase();
        check::label_name(&lower, &at, &mut out);
    }
    let parameters = object.members("parameters");
    let at = Path::ROOT.child("parameters");
    let size: usize = parameters.iter().map(|(k, v)| k.len() + v.as_str().unwrap_or_default().len()).sum();
    if parameters.len() > 512 {
        out.push(FieldError::too_long(&at, 512));
    }
    for key in parameters.keys().filter(|k| k.is_empty() && parameters.len() <= 512) {
        out.push(FieldError::invalid(&at, key, "field can not be empty."));
    }
    if size > 256 << 10 && parameters.len() <= 512 {
        out.push(FieldError::too_long(&at, 256 << 10));
    }
    if !object.text("reclaimPolicy").is_empty() {
        check::one_of(object, "reclaimPolicy", &["Delete", "Retain"], &Path::ROOT, &mut out);
    }
    if object.has("volumeBindingMode") {
        let modes = ["Immediate", "WaitForFirstConsumer"];
        check::one_of(object, "volumeBindingMode", &modes, &Path::ROOT, &mut out);
    } else {
        out.push(FieldError::required(&Path::ROOT.child("volumeBindingMode"), ""));
    }
    topologies(object.list("allowedTopologies"), &Path::ROOT.child("allowedTopologies"), &mut out);
    out
}

/// Of how many terms each pair that is alike is told.
const MOST_REPEATED: usize = 100;

/// Where volumes of a class may be: terms of labels, each key once in a term and each value once in a key.
fn topologies(terms: &[Value], path: &Path<'_>, out: &mut Errors) {
    let mut earlier: HashMap<BTreeMap<&str, BTreeSet<&str>>, usize> = HashMap::new();
    // Upstream compares with an empty term for each one, too. Of very many terms alike, each is told once.
    earlier.insert(BTreeMap::new(), terms.len());
    let most = if terms.len() > MOST_REPEATED { 1 } else { MOST_REPEATED * 2 };
    for (i, term) in terms.iter().enumerate() {
        let at = path.index(i);
        let expressions = at.child("matchLabelExpressions");
        let list = term.list("matchLabelExpressions");
        let mut by_key: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (j, requirement) in list.iter().enumerate() {
            let here = expressions.index(j);
            let values_path = here.child("values");
            let values = requirement.strings("values");
            if values.is_empty() {
                out.push(FieldError::required(&values_path, ""));
            }
            let mut seen = BTreeSet::new();
            for (k, value) in values.into_iter().enumerate() {
                if !seen.insert(value) {
                    out.push(FieldError::duplicate(&values_path.index(k), value));
                }
            }
            let key = requirement.text("key");
            check::label_name(key, &here.child("key"), out);
            if by_key.insert(key, seen).is_some() {
                out.push(FieldError::duplicate(&here.child("key"), key));
            }
        }
        let alike = earlier.entry(by_key).or_default();
        out.extend((0..(*alike).min(most)).map(|_| FieldError::duplicate(&expressions, "")));
        *alike += 1;
    }
}

pub(super) fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate(new);
    for (key, part) in
        [("parameters", "parameters"), ("provisioner", "provisioner"), ("reclaimPolicy", "reclaimPolicy")]
    {
        if new.sub(key) != old.sub(key) {
            out.push(FieldError::forbidden(&Path::ROOT.child(key), format!("updates to {part} are forbidden.")));
        }
    }
    check::immutable(new, old, "volumeBindingMode", &Path::ROOT, &mut out);
    out
}

/// Old names of labels in where volumes may be.
pub(super) fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    for (i, term) in object.list("allowedTopologies").iter().enumerate() {
        for (j, requirement) in term.list("matchLabelExpressions").iter().enumerate() {
            let at = format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key");
            out.extend(pod::old_label(requirement.text("key")).map(|why| format!("{at}: {why}")));
        }
    }
    out
}
