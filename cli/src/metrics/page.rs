//! The page of `tollgate metrics`, in Prometheus' text format.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};
use tollgate::Count;

use crate::look::Look;
use crate::seen::{Seen, text_of};

/// Writes the page, in version 0.0.4 of the format.
pub(crate) fn page(looks: Vec<Look>) -> String {
    let mut registry = Registry::with_prefix("tollgate");
    registry.register_collector(Box::new(Page(looks)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Page(Vec<Look>);

/// The name, the description, and which of the counts.
const COUNTERS: [(&str, &str, Count); 7] = [
    ("granted_calls", "Calls that were granted", Count::GrantedCalls),
    ("granted_tokens", "Tokens that were granted", Count::GrantedTokens),
    ("refused_calls", "Calls that were refused", Count::RefusedCalls),
    ("contended_calls", "Attempts that had to be made again, since another was faster", Count::ContendedCalls),
    ("refunded_tokens", "Tokens that were given back", Count::RefundedTokens),
    ("reported_ok", "Reports that it went well, what was limited", Count::Ok),
    ("reported_overload", "Reports that it met an overload, what was limited", Count::Overload),
];

type Figure = fn(&Seen) -> f64;

/// The name, the description, the unit that is put behind the name, and which of the figures.
const GAUGES: [(&str, &str, Option<Unit>, Figure); 5] = [
    ("available_tokens", "Tokens that are there", None, |seen| seen.available.into()),
    ("burst_tokens", "The most tokens that can be taken at once", None, |seen| seen.quota.capacity().into()),
    ("rate_tokens_per_second", "Tokens that accrue in a second", None, |seen| {
        f64::from(seen.quota.tokens()) / seen.quota.period().as_secs_f64()
    }),
    ("paused", "How long a pause still lasts", Some(Unit::Seconds), |seen| seen.paused.as_secs_f64()),
    #[allow(clippy::cast_precision_loss, reason = "a hundred at most")]
    ("processes", "Processes that have it open and count", None, |seen| seen.processes.len() as f64),
];

impl Collector for Page {
    fn encode(&self, mut page: DescriptorEncoder<'_>) -> fmt::Result {
        let seen = || self.0.iter().filter_map(|look| Some((&*look.path, look.seen.as_ref().ok()?)));
        for (name, help, count) in COUNTERS {
            let values = seen().map(|(path, seen)| (path, ConstCounter::new(seen.counts.get(count))));
            family(&mut page, name, help, None, values)?;
        }
        for (name, help, unit, figure) in GAUGES {
            let values = seen().map(|(path, seen)| (path, ConstGauge::new(figure(seen))));
            family(&mut page, name, help, unit.as_ref(), values)?;
        }
        let waits = seen().map(|(path, seen)| (path, Waited(seen)));
        family(&mut page, "wait", "How long granted calls waited", Some(&Unit::Seconds), waits)?;
        let up = self.0.iter().map(|look| (&*look.path, ConstGauge::new(i64::from(look.seen.is_ok()))));
        family(&mut page, "up", "Whether the limit can be read", None, up)
    }
}

/// Writes a metric of several limits.
fn family<'a, M: EncodeMetric + TypedMetric>(
    page: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: impl Iterator<Item = (&'a Path, M)>,
) -> fmt::Result {
    let mut family = page.encode_descriptor(name, help, unit, M::TYPE)?;
    for (path, metric) in values {
        metric.encode(family.encode_family(&[("limit", text_of(path).as_ref())])?)?;
    }
    Ok(())
}

/// The histogram of the waits.
struct Waited<'a>(&'a Seen);

impl TypedMetric for Waited<'_> {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Waited<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let seconds = |micros: u64| Duration::from_micros(micros).as_secs_f64();
        // What is counted in a file may be anything; on the page, it adds up.
        let mut calls = 0_u64;
        let mut bucket = |(counted, below): (u64, Option<u64>)| {
            let counted = counted.min(u64::MAX - calls);
            calls += counted;
            (below.map_or(f64::INFINITY, seconds), counted)
        };
        let buckets: Vec<_> = self.0.waits.classes().map(&mut bucket).collect();
        encoder.encode_histogram::<NoLabelSet>(seconds(self.0.counts.get(Count::WaitedMicros)), calls, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
