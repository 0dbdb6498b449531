//! Metrics for a scrape: families of several sources, merged into one text that is valid as a whole.

use std::fmt::{Display, Write};

/// The two text formats that scrapers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The format of Prometheus before, 0.0.4.
    Plain,
}

impl Media {
    /// The format for a request with these values of `Accept`: OpenMetrics if it is named and wanted as much as plain text.
    pub(crate) fn wanted<'a>(accept: impl Iterator<Item = &'a str>) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        for range in accept.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut is_known) = (1.0, true);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => is_known = matches!(value.trim(), "0.0.1" | "1.0.0" | "0.0.4"),
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if is_known => open = f64::max(open, quality),
                "text/plain" => plain = f64::max(plain, quality),
                _ => {}
            }
        }
        match open > 0.0 && open >= plain {
            true => Self::OpenMetrics,
            false => Self::Plain,
        }
    }

    /// The value of `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// A metric: what is known of it, and its samples.
#[derive(Clone, Debug, Default)]
struct Family {
    name: String,
    /// `counter`, `gauge` or `info`.
    kind: String,
    unit: String,
    help: String,
    /// Whole lines.
    samples: String,
}

/// Metrics in the order in which they were first named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exposition(Vec<Family>);

impl Exposition {
    /// Takes all metrics of an OpenMetrics text of ours. Samples of a metric that is here already go to those.
    pub(crate) fn add_text(&mut self, text: &str) {
        let mut current = None;
        for line in text.lines() {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                    current = Some(self.at(name));
                    self.set(current, |family| kind.clone_into(&mut family.kind));
                }
                (Some("#"), Some("UNIT"), _, Some(unit)) => {
                    self.set(current, |family| unit.clone_into(&mut family.unit));
                }
                (Some("#"), Some("HELP"), _, Some(help)) => {
                    self.set(current, |family| help.clone_into(&mut family.help));
                }
                (Some("#"), ..) => {}
                _ => self.set(current, |family| {
                    family.samples.push_str(line);
                    family.samples.push('\n');
                }),
            }
        }
    }

    /// Names a metric, with a unit which its name ends with, or none.
    pub(crate) fn describe(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let place = Some(self.at(name));
        self.set(place, |family| {
            kind.clone_into(&mut family.kind);
            unit.clone_into(&mut family.unit);
            help.clone_into(&mut family.help);
        });
    }

    /// Adds a sample to a metric that was named.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let place = Some(self.at(name));
        self.set(place, |family| {
            let end = match family.kind.as_str() {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            let text = &mut family.samples;
            let _ = write!(text, "{name}{end}");
            let mut before = '{';
            for (name, value) in labels {
                let _ = write!(text, "{before}{name}=\"{}\"", escaped(value));
                before = ',';
            }
            if before == ',' {
                text.push('}');
            }
            let _ = writeln!(text, " {value}");
        });
    }

    fn at(&mut self, name: &str) -> usize {
        if let Some(place) = self.0.iter().position(|family| family.name == name) {
            return place;
        }
        self.0.push(Family {
            name: name.to_owned(),
            ..Family::default()
        });
        self.0.len() - 1
    }

    fn set(&mut self, place: Option<usize>, change: impl FnOnce(&mut Family)) {
        if let Some(family) = place.and_then(|place| self.0.get_mut(place)) {
            change(family);
        }
    }

    /// The whole text. Metrics without a sample are left out.
    pub(crate) fn text(&self, media: Media) -> String {
        let mut text = String::new();
        for family in self.0.iter().filter(|family| !family.samples.is_empty()) {
            let Family {
                name,
                kind,
                unit,
                help,
                samples,
            } = family;
            // Writing to a string can't fail.
            let _ = match (media, kind.as_str()) {
                (Media::Plain, "counter") => write!(
                    text,
                    "# HELP {name}_total {help}\n# TYPE {name}_total counter\n"
                ),
                (Media::Plain, "info") => write!(
                    text,
                    "# HELP {name}_info {help}\n# TYPE {name}_info gauge\n"
                ),
                (Media::Plain, kind) => {
                    write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
                }
                (Media::OpenMetrics, kind) => {
                    let _ = writeln!(text, "# TYPE {name} {kind}");
                    if !unit.is_empty() {
                        let _ = writeln!(text, "# UNIT {name} {unit}");
                    }
                    writeln!(text, "# HELP {name} {help}")
                }
            };
            text.push_str(samples);
        }
        if media == Media::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_the_scraper_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, media) in [
            (prometheus, Media::OpenMetrics),
            // VictoriaMetrics, curl, a browser.
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", Media::Plain),
            ("*/*", Media::Plain),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Media::Plain),
            ("", Media::Plain),
            ("application/openmetrics-text; version=2.0.0", Media::Plain),
            ("application/openmetrics-text;q=0", Media::Plain),
            (
                "application/openmetrics-text;q=0.3,text/plain;q=0.5",
                Media::Plain,
            ),
            ("Application/OpenMetrics-Text", Media::OpenMetrics),
        ] {
            assert_eq!(Media::wanted([accept].into_iter()), media, "{accept}");
        }
    }

    #[test]
    fn a_metric_of_several_clusters_is_named_once() {
        let text = |cluster: &str| {
            format!(
                "# TYPE a counter\n# UNIT a events\n# HELP a About a\na_total{{cluster=\"{cluster}\",x=\"# TYPE b\"}} 1\n\
                 # TYPE b gauge\n# HELP b About b\nb{{cluster=\"{cluster}\"}} 2\n# EOF\n"
            )
        };
        let mut all = Exposition::default();
        all.add_text(&text("one"));
        all.add_text(&text("two"));
        all.describe("c", "counter", "", "About c");
        all.sample("c", &[("path", "a\\\"b\"\n")], 3);
        all.describe("left_out", "gauge", "", "Has no sample");
        let samples = "a_total{cluster=\"one\",x=\"# TYPE b\"} 1\na_total{cluster=\"two\",x=\"# TYPE b\"} 1\n";
        let of_b = "# TYPE b gauge\n{}b{cluster=\"one\"} 2\nb{cluster=\"two\"} 2\n";
        let of_b = of_b.replace("{}", "# HELP b About b\n");
        let of_c = "c_total{path=\"a\\\\\\\"b\\\"\\n\"} 3\n";
        assert_eq!(
            all.text(Media::OpenMetrics),
            format!(
                "# TYPE a counter\n# UNIT a events\n# HELP a About a\n{samples}{of_b}# TYPE c counter\n# HELP c About c\n{of_c}# EOF\n"
            )
        );
        let plain = all.text(Media::Plain);
        assert!(
            plain.starts_with("# HELP a_total About a\n# TYPE a_total counter\na_total{"),
            "{plain}"
        );
        assert!(
            !plain.contains("# UNIT") && !plain.contains("# EOF"),
            "{plain}"
        );
    }
}
