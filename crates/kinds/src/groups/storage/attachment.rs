//! Checks of VolumeAttachments.

use crate::check::{self, Errors};
use crate::gostruct;
use crate::groups::core::inline_volume;
use crate::pod;
use crate::read::Read;
use crate::resource::Context;
use object::field::{FieldError, Path};
use object::{Value, names};

/// Drops the codes of errors, which are off.
pub(super) fn prepare_status(object: &mut Value, old: &Value, _: &Context<'_>) {
    for part in ["attachError", "detachError"] {
        let has = |attachment: &Value| attachment.sub("status").sub(part).has("errorCode");
        if has(object) && !has(old) {
            object.remove_at(&["status", part, "errorCode"]);
        }
    }
}

/// Checks an attachment to be created.
pub(super) fn validate(object: &Value) -> Errors {
    let mut out = both(object);
    let spec = object.sub("spec");
    pod::csi_driver_name(spec.text("attacher"), &Path::ROOT.child("spec.attacher"), &mut out);
    let source = spec.sub("source");
    if source.has("persistentVolumeName") {
        let at = Path::ROOT.child("spec.source.persistentVolumeName");
        check::name(names::dns1123_subdomain, source.text("persistentVolumeName"), &at, &mut out);
    }
    out
}

/// Checks an update.
pub(super) fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut out = validate_status(new, old);
    if new.sub("spec") != old.sub("spec") {
        let shown = gostruct::attachment_spec(new.sub("spec"));
        out.push(FieldError::invalid(&Path::ROOT.child("spec"), shown, check::IMMUTABLE));
    }
    out
}

/// What creates and updates are checked for.
fn both(object: &Value) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    check::required(spec, "attacher", &path, &mut out);
    let source = spec.sub("source");
    let at = path.child("source");
    match (source.has("persistentVolumeName"), source.has("inlineVolumeSpec")) {
        (false, false) => {
            out.push(FieldError::required(
                &at,
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ));
        }
        (true, true) => {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            out.push(FieldError::forbidden(&at, why));
        }
        (true, false) if source.text("persistentVolumeName").is_empty() => {
            let why = "must specify non empty persistentVolumeName";
            out.push(FieldError::required(&at.child("persistentVolumeName"), why));
        }
        (false, true) => inline_volume(source.sub("inlineVolumeSpec"), &at.child("inlineVolumeSpec"), &mut out),
        _ => {}
    }
    check::name(names::dns1123_subdomain, spec.text("nodeName"), &path.child("nodeName"), &mut out);
    out
}

/// Checks an update through `/status`.
pub(super) fn validate_status(new: &Value, _: &Value) -> Errors {
    let mut once = both(new);
    attachment_status(new.sub("status"), &mut once);
    // Upstream runs the same checks twice, and reports what they find as often.
    [once.clone(), once].concat()
}

fn attachment_status(status: &Value, out: &mut Errors) {
    /// How much the metadata may take, in bytes. Upstream names it as the limit of messages, too.
    const MOST_METADATA: i64 = 256 << 10;
    const MOST_MESSAGE: usize = 1024;
    let path = Path::ROOT.child("status");
    let metadata = status.members("attachmentMetadata");
    let size: usize = metadata.iter().map(|(k, v)| k.len() + v.as_str().unwrap_or_default().len()).sum();
    if size > MOST_METADATA as usize {
        out.push(FieldError::too_long(&path.child("attachmentMetadata"), MOST_METADATA));
    }
    for part in ["attachError", "detachError"] {
        let (error, at) = (status.sub(part), path.child(part));
        if error.text("message").len() > MOST_MESSAGE {
            out.push(FieldError::too_long(&at.child("message"), MOST_METADATA));
        }
        if let Some(code) = error.opt_int("errorCode").filter(|code| *code < 0) {
            let why = "must be between 0 and 2147483647, inclusive";
            out.push(FieldError::invalid(&at.child("errorCode"), code, why));
        }
    }
}
