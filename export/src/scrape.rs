//! The response to a scrape: the metrics of several sources. All samples of a metric are together, below one header.

use std::fmt::Display;
use std::io::Write;

use crate::formats::openmetrics::{write_header, write_labels};

/// A text format that scrapers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScrapeFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The older text format of Prometheus, version 0.0.4.
    Prometheus,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FamilyKind {
    /// A number that only increases, until its process restarts.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// A constant 1 whose labels contain the information.
    Info,
}

/// The metrics of a scrape, in the order in which they were first named.
///
/// ```
/// use tallyfold_export::{FamilyKind, Scrape, ScrapeFormat};
///
/// let mut scrape = Scrape::default();
/// let up = scrape.family("up", FamilyKind::Gauge, "", "Whether it works");
/// up.sample([("cluster", "eu")], 1);
/// assert_eq!(
///     scrape.text(ScrapeFormat::OpenMetrics),
///     "# TYPE up gauge\n# HELP up Whether it works\nup{cluster=\"eu\"} 1\n# EOF\n"
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scrape(Vec<Family>);

/// A metric with its samples.
#[derive(Clone, Debug)]
pub struct Family {
    name: String,
    kind: FamilyKind,
    unit: String,
    help: String,
    /// Whole lines.
    samples: Vec<u8>,
}

impl ScrapeFormat {
    /// The media type, for `Content-Type`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl FamilyKind {
    /// The name of the type.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
        }
    }

    /// The suffix of the names of samples.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Gauge => "",
            Self::Info => "_info",
        }
    }
}

impl Scrape {
    /// Returns the metric with this name. If there is none yet, adds it with this type, unit and help text. The name must
    /// end with the unit; an empty unit means none.
    pub fn family(&mut self, name: &str, kind: FamilyKind, unit: &str, help: &str) -> &mut Family {
        let place = self.0.iter().position(|family| family.name == name);
        let place = place.unwrap_or_else(|| {
            self.0.push(Family {
                name: name.to_owned(),
                kind,
                unit: unit.to_owned(),
                help: help.to_owned(),
                samples: Vec::new(),
            });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// Removes the metrics that have no sample.
    pub fn leave_out_empty(&mut self) {
        self.0.retain(|family| !family.samples.is_empty());
    }

    /// The whole document.
    #[must_use]
    pub fn text(&self, format: ScrapeFormat) -> String {
        let mut text = Vec::new();
        for family in &self.0 {
            let Family { name, kind, help, .. } = family;
            match format {
                ScrapeFormat::OpenMetrics => {
                    write_header(name, kind.as_str(), &family.unit, help, &mut text);
                }
                ScrapeFormat::Prometheus => {
                    let (name, kind) = match kind {
                        // This format has no type for this.
                        FamilyKind::Info => (format!("{name}_info"), FamilyKind::Gauge),
                        kind => ([name, kind.suffix()].concat(), *kind),
                    };
                    let kind = kind.as_str();
                    let header = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
                    text.extend_from_slice(header.as_bytes());
                }
            }
            text.extend_from_slice(&family.samples);
        }
        if format == ScrapeFormat::OpenMetrics {
            text.extend_from_slice(b"# EOF\n");
        }
        // All parts are UTF-8.
        String::from_utf8(text).unwrap_or_default()
    }
}

impl Family {
    /// Adds a sample with these labels.
    pub fn sample<'a>(
        &mut self,
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        value: impl Display,
    ) {
        let text = &mut self.samples;
        text.extend_from_slice(self.name.as_bytes());
        text.extend_from_slice(self.kind.suffix().as_bytes());
        write_labels(labels.into_iter(), text);
        // Writing to a vector does not fail.
        let _ = writeln!(text, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_of_several_sources_is_named_once() {
        let mut scrape = Scrape::default();
        for cluster in ["one", "two"] {
            let labels = [("cluster", cluster), ("x", "# TYPE b")];
            let a = scrape.family("a_events", FamilyKind::Counter, "events", "About a");
            a.sample(labels, 1);
            let b = scrape.family("b", FamilyKind::Gauge, "", "About b");
            b.sample([("cluster", cluster)], 2);
        }
        let c = scrape.family("c", FamilyKind::Info, "", "About c");
        c.sample([("path", "a\\\"b\"\n")], 3);
        scrape.family("left_out", FamilyKind::Gauge, "", "Has no sample");
        scrape.leave_out_empty();
        let of_a = "a_events_total{cluster=\"one\",x=\"# TYPE b\"} 1\n\
                    a_events_total{cluster=\"two\",x=\"# TYPE b\"} 1\n";
        let of_b = "b{cluster=\"one\"} 2\nb{cluster=\"two\"} 2\n";
        let of_c = "c_info{path=\"a\\\\\\\"b\\\"\\n\"} 3\n";
        assert_eq!(
            scrape.text(ScrapeFormat::OpenMetrics),
            format!(
                "# TYPE a_events counter\n# UNIT a_events events\n# HELP a_events About a\n{of_a}\
                 # TYPE b gauge\n# HELP b About b\n{of_b}# TYPE c info\n# HELP c About c\n{of_c}# EOF\n"
            )
        );
        assert_eq!(
            scrape.text(ScrapeFormat::Prometheus),
            format!(
                "# HELP a_events_total About a\n# TYPE a_events_total counter\n{of_a}\
                 # HELP b About b\n# TYPE b gauge\n{of_b}# HELP c_info About c\n# TYPE c_info gauge\n{of_c}"
            )
        );
    }
}
