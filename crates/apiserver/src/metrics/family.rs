//! Families of series that differ in their labels.

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::proto::MetricFamily;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts};
use std::collections::HashMap;

/// Labels that all series of a family have, with their values.
type Fixed = &'static [(&'static str, &'static str)];

/// The label of what the API server itself answers.
pub(crate) const COMPONENT: Fixed = &[("component", "apiserver")];
/// No labels.
pub(crate) const NONE: Fixed = &[];

/// Series of one name. The names are constants that Prometheus takes; were one not, its series would be missing, and
/// nothing else.
pub(crate) struct Family<B: MetricVecBuilder> {
    series: Option<MetricVec<B>>,
    fixed: Fixed,
}

/// Counters.
pub(crate) type Counters = Family<<IntCounterVec as Built>::Builder>;
/// Values that go up and down.
pub(crate) type Gauges = Family<<IntGaugeVec as Built>::Builder>;
/// Histograms.
pub(crate) type Histograms = Family<<HistogramVec as Built>::Builder>;

/// Names the builders, which Prometheus does not.
pub(crate) trait Built {
    /// What makes the series.
    type Builder: MetricVecBuilder;
}

impl<B: MetricVecBuilder> Built for MetricVec<B> {
    type Builder = B;
}

fn opts(name: &str, help: &str, fixed: Fixed) -> Opts {
    fixed.iter().fold(Opts::new(name, help), |opts, (label, value)| opts.const_label(*label, *value))
}

impl Counters {
    /// Counters of a name, a series for the values of `labels`.
    pub fn new(name: &str, help: &str, fixed: Fixed, labels: &[&str]) -> Self {
        Family { series: IntCounterVec::new(opts(name, help, fixed), labels).ok(), fixed }
    }

    /// Counts one.
    pub fn count(&self, values: &[&str]) {
        if let Some(series) = &self.series {
            series.with_label_values(values).inc();
        }
    }
}

impl Gauges {
    /// Values of a name, a series for the values of `labels`.
    pub fn new(name: &str, help: &str, fixed: Fixed, labels: &[&str]) -> Self {
        Family { series: IntGaugeVec::new(opts(name, help, fixed), labels).ok(), fixed }
    }
}

impl Histograms {
    /// Histograms of a name with these upper bounds, a series for the values of `labels`.
    pub fn new(name: &str, help: &str, fixed: Fixed, labels: &[&str], bounds: &[f64]) -> Self {
        let opts = HistogramOpts { common_opts: opts(name, help, fixed), buckets: bounds.to_vec() };
        Family { series: HistogramVec::new(opts, labels).ok(), fixed }
    }

    /// Counts a value.
    pub fn observe(&self, values: &[&str], value: f64) {
        if let Some(series) = &self.series {
            series.with_label_values(values).observe(value);
        }
    }
}

impl<B: MetricVecBuilder> Family<B> {
    /// One series, for those who count often.
    pub fn one(&self, values: &[&str]) -> Option<B::M> {
        self.series.as_ref().map(|series| series.with_label_values(values))
    }

    /// Removes the series whose labels are such.
    pub fn drop_those(&self, are: impl Fn(&HashMap<&str, &str>) -> bool) {
        let Some(series) = &self.series else { return };
        for family in series.collect() {
            for metric in family.get_metric() {
                let mut labels: HashMap<&str, &str> =
                    metric.get_label().iter().map(|l| (l.name(), l.value())).collect();
                if are(&labels) {
                    labels.retain(|label, _| !self.fixed.iter().any(|(fixed, _)| fixed == label));
                    // One that is gone already is as good.
                    let _ = series.remove(&labels);
                }
            }
        }
    }

    /// Adds the family to others, if it has any series: one that has none cannot be written.
    pub fn add_to(&self, families: &mut Vec<MetricFamily>) {
        let found = self.series.iter().flat_map(Collector::collect);
        families.extend(found.filter(|family| !family.get_metric().is_empty()));
    }
}
