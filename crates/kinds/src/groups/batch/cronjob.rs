//! CronJobs.

use super::cron;
use super::job::{default_spec, warnings_of_spec};
use super::job_checks::template_of_job;
use crate::check::{self, Errors};
use crate::pod;
use crate::read::{Read, default_text, default_to, object_mut};
use crate::resource::{Column, MetadataChecks, Parts, Resource, Strategy, Subresource, Version};
use crate::table;
use jiff::Timestamp;
use object::Value;
use object::field::{FieldError, Path};

const STATUS_LEAVES: Parts = &[&["spec"]];

pub(super) const CRONJOBS: Resource = Resource {
    short_names: &["cj"],
    categories: &["all"],
    subresources: &[Subresource::status("CronJob")],
    columns: &[
        Column::NAME,
        Column::new("Schedule", "string"),
        Column::new("Timezone", "string"),
        Column::new("Suspend", "boolean"),
        Column::new("Active", "integer"),
        Column::new("Last Schedule", "string"),
        Column::AGE,
        Column::wide("Containers", "string"),
        Column::wide("Images", "string"),
        Column::wide("Selector", "string"),
    ],
    cells,
    strategy: Strategy {
        reset_status: STATUS_LEAVES,
        metadata: MetadataChecks { status: false, ..MetadataChecks::ONCE },
        template: &["spec", "jobTemplate", "spec", "template"],
        validate: |object| {
            let mut out = Errors::new();
            // The controller appends eleven characters to make the name of a job.
            if object.name().len() > 52 {
                let meta = Path::ROOT.child("metadata");
                let why = "must be no more than 52 characters";
                out.push(FieldError::invalid(&meta.child("name"), object.name(), why));
            }
            out.extend(validate(object, None));
            out
        },
        validate_update: |new, old| validate(new, Some(old)),
        warnings: |object, old| {
            let mut out: Vec<String> =
                if old.is_none() { pod::name_warning(object.name()).into_iter().collect() } else { Vec::new() };
            out.extend(warnings_of_spec(object, old, &["spec", "jobTemplate", "spec"]));
            if old.is_some() && object.sub("spec").text("schedule").contains("TZ") {
                // The path is upstream's.
                out.push(
                    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                     https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                        .to_owned(),
                );
            }
            out
        },
        ..Strategy::WITH_STATUS
    },
    ..Resource::new(
        "batch",
        "CronJob",
        "cronjobs",
        &[Version::stored("v1", "io.k8s.api.batch.v1.CronJob").with_default(default)],
    )
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (object.sub("spec"), object.sub("status"));
    let template = spec.sub("jobTemplate").sub("spec");
    let last = if status.has("lastScheduleTime") {
        table::since(status.get("lastScheduleTime"), now)
    } else {
        "<none>".to_owned()
    };
    let zone = if spec.has("timeZone") { spec.text("timeZone") } else { "<none>" };
    let suspend = if spec.flag("suspend") { "True" } else { "False" };
    vec![
        object.name().into(),
        spec.text("schedule").into(),
        zone.into(),
        suspend.into(),
        Value::Int(status.list("active").len() as i64),
        last.into(),
        table::age(object, now),
        table::container_names(template.sub("template")),
        table::images(template.sub("template")),
        table::selector(template.sub("selector")).into(),
    ]
}

fn default(object: &mut Value) {
    let Some(spec) = object_mut(object, &["spec"]) else { return };
    default_text(spec, "concurrencyPolicy", "Allow");
    default_to(spec, "suspend", false);
    default_to(spec, "successfulJobsHistoryLimit", 3);
    default_to(spec, "failedJobsHistoryLimit", 1);
    if let Some(job) = object_mut(spec, &["jobTemplate", "spec"]) {
        default_spec(job);
    }
}

fn validate(object: &Value, old: Option<&Value>) -> Errors {
    let mut out = Errors::new();
    let path = Path::ROOT.child("spec");
    let spec = object.sub("spec");
    let schedule = spec.text("schedule");
    if schedule.is_empty() {
        out.push(FieldError::required(&path.child("schedule"), ""));
    } else {
        if let Err(why) = cron::check(schedule) {
            out.push(FieldError::invalid(&path.child("schedule"), schedule, why));
        }
        let allowed = old.is_some_and(|old| old.sub("spec").text("schedule").contains("TZ"));
        let why = match (schedule.contains("TZ"), allowed) {
            (true, true) if spec.has("timeZone") => {
                Some("cannot use both timeZone field and TZ or CRON_TZ in schedule")
            }
            (true, false) => Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
            _ => None,
        };
        out.extend(why.map(|why| FieldError::invalid(&path.child("schedule"), schedule, why)));
    }
    if spec.has("timeZone") && old.is_none_or(|old| old.sub("spec").sub("timeZone") != spec.sub("timeZone")) {
        time_zone(spec.text("timeZone"), &path.child("timeZone"), &mut out);
    }
    check::not_negative(spec, "startingDeadlineSeconds", &path, &mut out);
    let policies = ["Allow", "Forbid", "Replace"];
    check::required_one_of(spec, "concurrencyPolicy", &policies, &path, &mut out);
    check::not_negative(spec, "successfulJobsHistoryLimit", &path, &mut out);
    check::not_negative(spec, "failedJobsHistoryLimit", &path, &mut out);
    let template = path.child("jobTemplate");
    let job = spec.sub("jobTemplate").sub("spec");
    let at = template.child("spec");
    if job.has("selector") {
        let shown = crate::gostruct::label_selector(job.sub("selector"));
        out.push(FieldError::invalid(&at.child("selector"), shown, "`selector` will be auto-generated"));
    }
    if job.flag("manualSelector") {
        out.push(FieldError::not_supported(&at.child("manualSelector"), true, &["nil", "false"]));
    }
    template_of_job(job, &at, &mut out);
    out
}

fn time_zone(zone: &str, path: &Path<'_>, out: &mut Errors) {
    if zone.is_empty() {
        out.push(FieldError::invalid(path, zone, "timeZone must be nil or non-empty string"));
        return;
    }
    let good = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
    };
    if !zone.split('/').all(good) {
        out.push(FieldError::invalid(path, zone, format!("unknown time zone {zone}")));
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        out.push(FieldError::invalid(
            path,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ));
    }
    // Go knows these two without a table.
    if !matches!(zone, "UTC" | "Local") && jiff::tz::TimeZone::get(zone).is_err() {
        out.push(FieldError::invalid(path, zone, format!("unknown time zone {zone}")));
    }
}
