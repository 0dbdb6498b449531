//! Ready-made dashboards, and rules for Prometheus, that query the metrics of `serve` and `push`.
//!
//! The queries take the names of metrics from the code that writes the metrics: [`Names`] for counts, and each [`Meter`] of the
//! exporter. So the names in both places are always the same.

use clap::ValueEnum;
use serde_json::{Value, json};
use tallyfold::{CountName, Dimension, Metric};
use tallyfold_export::Names;

use super::exporter::{
    BUILD, CLOCK, CONTRADICTIONS, FAILURES, HEALTHY, LAG, Meter, REQUESTS, REVISIONS,
    SCRAPE_ERRORS, STORE_FAILURES, TOKEN_AGE,
};

/// The dashboards that `serve --dashboard` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Board {
    /// Grafana, for the counters of this command
    Grafana,
    /// Grafana, for windows that `push --to remote-write` has sent
    GrafanaWindows,
    /// Datadog, for windows that `push --to datadog` has sent
    Datadog,
}

/// The counts that the dashboards and rules are about.
pub(super) struct Subject {
    /// The metric that is counted.
    pub(super) metric: Metric,
    /// The dimensions by which the metric is counted.
    pub(super) dimensions: Vec<Dimension>,
    /// The names of the counts.
    pub(super) names: Names,
    /// The length of a window, such as `15m`.
    pub(super) window: String,
}

/// The share of attempts that may fail: the error budget of the alert rules.
const BUDGET: &str = "0.02";

/// The default settle time, in seconds: how long after its end a window may change.
const SETTLE_SECONDS: u32 = 3_600;

/// The page of the documentation that describes how to respond to each alert. The path is relative to the site's root.
const RUNBOOKS: &str = "guides/dashboards-and-rules.html";

impl Subject {
    /// Returns a dashboard as JSON.
    pub(super) fn board(&self, board: Board) -> String {
        let value = match board {
            Board::Grafana => self.grafana(&Counters(self)),
            Board::GrafanaWindows => self.grafana(&Sent(self)),
            Board::Datadog => self.datadog(),
        };
        format!("{value:#}\n")
    }

    /// Returns the first dimension. Panels show one series or one row for each of its values.
    fn main(&self) -> Option<&'static str> {
        self.dimensions.first().map(|one| one.as_str())
    }

    fn has_reasons(&self) -> bool {
        self.dimensions.contains(&Dimension::Reason)
    }

    fn title(&self, count: CountName) -> &'static str {
        match (self.metric, count) {
            (Metric::EventIngestion, CountName::Success) => "Ingested",
            (_, CountName::Success) => "Delivered",
            (_, CountName::Errors) => "Failed",
            (_, CountName::Filtered) => "Filtered",
        }
    }

    /// Returns the names of the dashboard's variables: the cluster and the dimensions.
    fn variables(&self) -> Vec<&'static str> {
        let dimensions = self.dimensions.iter().map(|one| one.as_str());
        std::iter::once("cluster").chain(dimensions).collect()
    }

    /// Returns label matchers for the values that the user chooses in the dashboard's variables, such as
    /// `{cluster=~"$cluster"}`.
    fn chosen(&self) -> String {
        let names = self.variables().into_iter();
        let matchers: Vec<_> = names.map(|name| format!("{name}=~\"${name}\"")).collect();
        format!("{{{}}}", matchers.join(","))
    }

    /// Returns the end of a panel's title, such as ` by integration`, for a panel that shows each value of the first dimension.
    fn per(&self) -> String {
        self.main().map_or_else(String::new, |name| format!(" by {name}"))
    }

    /// Returns an expression for the growth of a counter over a span that ends at the query's time. It subtracts two totals, so
    /// the growth is exact.
    ///
    /// A counter may have no sample in the day before the span. If the exporter itself has a sample there, Prometheus was
    /// already scraping it, so the counter is new and began at 0. Otherwise, the growth is counted from the counter's first
    /// sample in the span.
    fn growth(&self, count: CountName, chosen: &str, span: &str) -> String {
        let counter = format!("{}_total{chosen}", self.names.counter(count));
        let build = BUILD.sample_name();
        format!(
            "{counter}\n  - (last_over_time({counter}[1d] offset {span})\n  or {counter} * 0 and on (job, instance) \
             last_over_time({build}[1d] offset {span})\n  or min_over_time({counter}[{span}]))"
        )
    }

    fn grafana(&self, source: &dyn Source) -> Value {
        let mut layout = Layout::default();
        let main = self.main();
        let range = "$__range";
        let counts = [CountName::Errors, CountName::Filtered, CountName::Success];
        for count in counts {
            let expr = source.or_zero(format!("sum({})", source.total(count, range)), range);
            let panel = Panel::stat(self.title(count), "short").instant("", expr);
            layout.place(6, 4, panel.described("Events in the chosen range, exact."));
        }
        let share = source.share(
            &format!("sum({})", source.total(CountName::Errors, range)),
            &format!("sum({})", source.total(CountName::Success, range)),
        );
        let panel = Panel::stat("Failed share", "percentunit").instant("", share);
        layout.place(
            6,
            4,
            panel.described("The share of failed events among failed and delivered events."),
        );

        let by = main.map_or_else(String::new, |name| format!(" by ({name})"));
        let legend = main.map_or_else(|| "all".to_owned(), |name| format!("{{{{{name}}}}}"));
        let per = self.per();
        let grown = |count| format!("sum{by} ({})", source.total(count, "$__interval"));
        for count in [CountName::Errors, CountName::Filtered] {
            let is_reason = count == CountName::Filtered && self.has_reasons();
            let (expr, legend, title) = match is_reason {
                true => (
                    format!("sum by (reason) ({})", source.total(count, "$__interval")),
                    "{{reason}}".to_owned(),
                    "Filtered by reason".to_owned(),
                ),
                false => (grown(count), legend.clone(), format!("{}{per}", self.title(count))),
            };
            let mut panel = Panel::bars(&title, "short");
            for (name, expr) in source.parts(&expr) {
                panel = panel.range(&format!("{legend}{name}"), expr);
            }
            layout.place(12, 9, panel.stepped(&self.window));
        }
        let share = source.share(&grown(CountName::Errors), &grown(CountName::Success));
        let panel = Panel::lines(&format!("Failed share{per}"), "percentunit");
        layout.place(12, 9, panel.range(&legend, share).stepped(&self.window));
        let panel = Panel::bars(&format!("{}{per}", self.title(CountName::Success)), "short");
        let panel = panel.range(&legend, grown(CountName::Success));
        layout.place(12, 9, panel.stepped(&self.window));

        if let Some(name) = main {
            let mut panel = Panel::table(&format!("Ranked{per}"), name);
            for count in counts {
                let expr = format!("sum{by} ({})", source.total(count, range));
                panel = panel.column(self.title(count), expr);
            }
            layout.place(24, 10, panel.linked(source.uid(), name));
        }
        source.health(&mut layout);
        let variables = self.variables().into_iter();
        let variables = variables.map(|name| variable(name, &source.listed()));
        let source_variable = json!({
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        });
        json!({
            "uid": source.uid(),
            "title": source.title(),
            "description": source.description(),
            "tags": ["tallyfold"],
            "schemaVersion": 39,
            "editable": true,
            "timezone": "utc",
            "refresh": "5m",
            "time": { "from": "now-24h", "to": "now" },
            "templating": { "list": std::iter::once(source_variable).chain(variables).collect::<Vec<_>>() },
            "panels": layout.panels,
        })
    }

    fn datadog(&self) -> Value {
        let names = self.variables();
        let scope: Vec<_> = names.iter().map(|name| format!("${name}")).collect();
        let scope = scope.join(",");
        let by = self.main().map_or_else(String::new, |name| format!(" by {{{name}}}"));
        let query =
            |count, by: &str| format!("sum:{}{{{scope}}}{by}.as_count()", self.names.dotted(count));
        let counts = [CountName::Errors, CountName::Filtered, CountName::Success];
        let data = |name: &str, query: String| json!({ "data_source": "metrics", "name": name, "query": query });
        let total = |count| {
            let mut data = data("events", query(count, ""));
            data["aggregator"] = json!("sum");
            json!({ "definition": {
                "type": "query_value",
                "title": self.title(count),
                "precision": 0,
                "requests": [{
                    "response_format": "scalar",
                    "queries": [data],
                    "formulas": [{ "formula": "events" }],
                }],
            } })
        };
        let series = |title: String, queries: Vec<Value>, formula: &str, display: &str| {
            json!({ "definition": {
                "type": "timeseries",
                "title": title,
                "show_legend": true,
                "requests": [{
                    "response_format": "timeseries",
                    "queries": queries,
                    "formulas": [{ "formula": formula }],
                    "display_type": display,
                }],
            } })
        };
        let per = self.per();
        let mut widgets: Vec<Value> = counts.into_iter().map(total).collect();
        for count in counts {
            let title = format!("{}{per}", self.title(count));
            widgets.push(series(title, vec![data("events", query(count, &by))], "events", "bars"));
        }
        let both = vec![
            data("failed", query(CountName::Errors, &by)),
            data("delivered", query(CountName::Success, &by)),
        ];
        let title = format!("Failed share{per}");
        widgets.push(series(title, both, "100 * failed / (failed + delivered)", "line"));
        if self.main().is_some() {
            let mut most = data("failed", query(CountName::Errors, &by));
            most["aggregator"] = json!("sum");
            widgets.push(json!({ "definition": {
                "type": "toplist",
                "title": format!("Most failed{per}"),
                "requests": [{
                    "response_format": "scalar",
                    "queries": [most],
                    "formulas": [{ "formula": "failed" }],
                    "sort": { "count": 25, "order_by": [{ "type": "formula", "index": 0, "order": "desc" }] },
                }],
            } }));
        }
        let variables: Vec<_> = names
            .iter()
            .map(|name| json!({ "name": name, "prefix": name, "defaults": ["*"] }))
            .collect();
        json!({
            "title": "Event delivery: windows",
            "description": "Windows that tallyfold push has sent. The newest ones are provisional until they settle.",
            "layout_type": "ordered",
            "template_variables": variables,
            "widgets": widgets,
        })
    }

    /// Returns a rules file for Prometheus, with recording and alert rules.
    pub(super) fn rules(&self) -> String {
        let main = self.main();
        let by: Vec<_> = ["job", "cluster"].into_iter().chain(main).collect();
        let by = by.join(", ");
        let failed = |span: &str| format!("tallyfold:failed_events:growth{span}");
        let delivered = |span: &str| format!("tallyfold:delivered_events:growth{span}");
        let attempted = |span: &str| format!("tallyfold:attempted_events:growth{span}");
        let mut text = String::from(
            "# Rules for the counters of `tallyfold serve`, written by `tallyfold serve --rules`.\n\
             # The error budget is 2% of attempts: replace 0.02 if yours differs.\n\
             groups:\n  - name: tallyfold-growth\n    interval: 5m\n    rules:\n",
        );
        let mut write = |lines: String| text.push_str(&lines);
        for span in ["30m", "1h", "6h", "3d"] {
            for (count, name) in
                [(CountName::Errors, failed(span)), (CountName::Success, delivered(span))]
            {
                let grown = self.growth(count, "", span);
                write(record(&name, &format!("sum by ({by}) (\n{grown}\n)")));
            }
            let sum = format!("{} + {}", failed(span), delivered(span));
            write(record(&attempted(span), &sum));
        }
        write("  - name: tallyfold-delivery\n    interval: 5m\n    rules:\n".to_owned());
        let what = main.map_or_else(
            || "event delivery".to_owned(),
            |name| format!("{{{{ $labels.{name} }}}}"),
        );
        let burns = |rate: &str, span: &str| {
            format!("{} / {} > {rate} * {BUDGET}", failed(span), attempted(span))
        };
        for (name, severity, rate, long, short, end) in [
            ("TallyfoldDeliveryLossFast", "critical", "14.4", "1h", "30m", "in two days"),
            ("TallyfoldDeliveryLossSlow", "warning", "6", "6h", "1h", "in five days"),
            ("TallyfoldDeliveryLossLong", "info", "1", "3d", "6h", "within the month"),
        ] {
            let expr = format!(
                "({})\nand ({})\nand {} >= 100",
                burns(rate, long),
                burns(rate, short),
                attempted(long)
            );
            let summary = format!(
                "{what}: {{{{ $value | humanizePercentage }}}} of attempts failed in {long}"
            );
            let more = format!(
                "The error budget is {BUDGET} of attempts. At this rate, a month's budget is used up {end}."
            );
            write(alert(name, severity, "5m", &expr, &summary, &more));
        }
        let lag = LAG.sample_name();
        let silent = format!(
            "{} == 0\nand {} >= 1000\nand on (job, cluster) max by (job, cluster) ({lag}) < 3 * 3600",
            attempted("6h"),
            attempted("3d")
        );
        write(alert(
            "TallyfoldSilence",
            "warning",
            "15m",
            &silent,
            &format!("{what}: no attempt in six hours"),
            "There were at least 1,000 attempts in the last three days, and the counts are up to date.",
        ));
        write("  - name: tallyfold-exporter\n    rules:\n".to_owned());
        let (build, healthy) = (BUILD.sample_name(), HEALTHY.sample_name());
        write(alert(
            "TallyfoldExporterDown",
            "critical",
            "10m",
            &format!("absent({build})"),
            "No exporter of tallyfold is scraped",
            "Prometheus gets no counts of event delivery. A restarted exporter continues from its state, and loses nothing.",
        ));
        write(alert(
            "TallyfoldExporterUnhealthy",
            "critical",
            "15m",
            &format!("{healthy} == 0"),
            "{{ $labels.instance }} can't read or store counts",
            "The response of /healthz contains the reason.",
        ));
        write(alert(
            "TallyfoldExporterLag",
            "warning",
            "15m",
            &format!("{lag} > 3 * 3600"),
            "{{ $labels.instance }}: the newest counts are {{ $value | humanizeDuration }} old",
            "Windows are read late, or do not settle. The counts will be complete when the exporter has caught up.",
        ));
        let contradictions = CONTRADICTIONS.sample_name();
        write(alert(
            "TallyfoldTotalsContradict",
            "warning",
            "0m",
            &format!("increase({contradictions}[1h]) > 0"),
            "The service's totals differ from the sums of its counts",
            "The counts are the sums of the rows. The log of the exporter names the windows.",
        ));
        let clock = CLOCK.sample_name();
        write(alert(
            "TallyfoldClockWrong",
            "warning",
            "15m",
            &format!("abs({clock}) > 300"),
            "{{ $labels.instance }}: the clock differs from the service's by {{ $value | humanizeDuration }}",
            "Windows settle by the clock that is behind, so the counts are right. If the exporter's clock is behind, they are late. \
             Tokens and logs use the exporter's clock.",
        ));
        text
    }
}

/// Formats a PromQL expression as a block of YAML.
fn block(expr: &str) -> String {
    format!("|-\n          {}", expr.replace('\n', "\n          "))
}

fn record(name: &str, expr: &str) -> String {
    let expr = block(expr);
    format!("      - record: {name}\n        expr: {expr}\n")
}

fn alert(
    name: &str,
    severity: &str,
    lasting: &str,
    expr: &str,
    summary: &str,
    more: &str,
) -> String {
    let expr = block(expr);
    let [summary, more] = [summary, more].map(|text| Value::from(text).to_string());
    format!(
        "      - alert: {name}\n        expr: {expr}\n        for: {lasting}\n        labels:\n          \
         severity: {severity}\n        annotations:\n          summary: {summary}\n          description: {more}\n          \
         runbook_url: {RUNBOOKS}#{}\n",
        name.to_lowercase()
    )
}

/// The metrics that a Grafana dashboard queries.
trait Source {
    fn uid(&self) -> &'static str;
    fn title(&self) -> &'static str;
    fn description(&self) -> &'static str;
    /// Returns an expression for the exact count of each series over a span.
    fn total(&self, count: CountName, span: &str) -> String;
    /// Extends a sum over all series, so that it is 0 instead of empty if the span has only samples of delivered events.
    fn or_zero(&self, sum: String, span: &str) -> String;
    /// Returns an expression for the share of failed events among failed and delivered events.
    fn share(&self, failed: &str, delivered: &str) -> String;
    /// Returns the metric whose label values a user can choose in the dashboard's variables.
    fn listed(&self) -> String;
    /// Splits an expression into the expressions to draw, each with a suffix for the names of its series.
    fn parts(&self, expr: &str) -> Vec<(&'static str, String)>;
    /// Adds panels about the health of the exporter, or about the windows that were sent.
    fn health(&self, layout: &mut Layout);
}

/// The counters of `serve`.
struct Counters<'a>(&'a Subject);

impl Source for Counters<'_> {
    fn uid(&self) -> &'static str {
        "tallyfold-counters"
    }

    fn title(&self) -> &'static str {
        "Event delivery"
    }

    fn description(&self) -> &'static str {
        "Counters of tallyfold serve. They contain settled windows only, so they lag by --settle, an hour by default."
    }

    fn total(&self, count: CountName, span: &str) -> String {
        self.0.growth(count, &self.0.chosen(), span)
    }

    // Each group has all three counters, so the sum of one count is empty only if all sums are.
    fn or_zero(&self, sum: String, _span: &str) -> String {
        sum
    }

    fn share(&self, failed: &str, delivered: &str) -> String {
        format!("{failed} / ({failed} + {delivered})")
    }

    fn listed(&self) -> String {
        format!("{}_total", self.0.names.counter(CountName::Success))
    }

    fn parts(&self, expr: &str) -> Vec<(&'static str, String)> {
        vec![("", expr.to_owned())]
    }

    fn health(&self, layout: &mut Layout) {
        layout.row("The exporter");
        let mut stat = |title, unit, expr, help| {
            let panel = Panel::stat(title, unit).instant("", expr);
            layout.place(6, 5, panel.described(help));
        };
        let until = format!("max({}) * 1000", self.0.names.settled_until());
        let help = "The end of the newest window in the counters. Later windows are provisional.";
        stat("Settled until", "dateTimeAsIso", until, help);
        let own = |meter: &Meter| format!("{}{{cluster=~\"$cluster\"}}", meter.sample_name());
        let healthy = format!("min({})", own(&HEALTHY));
        stat("Healthy", "bool_yes_no", healthy, HEALTHY.help());
        let clock = format!("max(abs({}))", own(&CLOCK));
        stat("Clock differs by", "s", clock, CLOCK.help());
        let token = format!("max({})", own(&TOKEN_AGE));
        stat("Age of the token", "s", token, TOKEN_AGE.help());
        let mut lines = |width, (title, unit), legend, expr, help| {
            let panel = Panel::lines(title, unit).range(legend, expr);
            layout.place(width, 8, panel.described(help));
        };
        let lag = format!("max by (cluster) ({})", own(&LAG));
        lines(12, ("Lag", "s"), "{{cluster}}", lag, LAG.help());
        let more = |meter: &Meter| format!("increase({}[$__rate_interval])", own(meter));
        let requests = format!("sum by (target, status) ({})", more(&REQUESTS));
        let title = ("Requests", "short");
        lines(12, title, "{{target}} {{status}}", requests, REQUESTS.help());
        let failures = format!("sum by (code) ({})", more(&FAILURES));
        let title = ("Failed readings", "short");
        lines(8, title, "{{code}}", failures, FAILURES.help());
        let readings = format!("sum by (settled) ({})", more(&REVISIONS));
        let title = ("Stored readings", "short");
        lines(8, title, "settled: {{settled}}", readings, REVISIONS.help());
        let contradictions = format!("sum({})", more(&CONTRADICTIONS));
        let stores = format!("sum({})", more(&STORE_FAILURES));
        let scrapes = format!("sum(increase({}[$__rate_interval]))", SCRAPE_ERRORS.sample_name());
        let panel = Panel::lines("Problems", "short")
            .range("contradictory windows", contradictions)
            .range("failed attempts to store", stores)
            .range("failed scrapes", scrapes);
        layout.place(8, 8, panel);
    }
}

/// The windows that `push` sends by remote-write.
struct Sent<'a>(&'a Subject);

impl Source for Sent<'_> {
    fn uid(&self) -> &'static str {
        "tallyfold-windows"
    }

    fn title(&self) -> &'static str {
        "Event delivery: windows"
    }

    fn description(&self) -> &'static str {
        "Windows that tallyfold push has sent by remote-write. Windows that ended less than an hour before the end of the range are \
         marked as provisional: late events may still change them."
    }

    fn total(&self, count: CountName, span: &str) -> String {
        let name = self.0.names.window(count);
        format!("sum without (revision) (sum_over_time({name}{}[{span}]))", self.0.chosen())
    }

    // `push` sends no sample for a count of 0, so a sum can be empty.
    fn or_zero(&self, sum: String, span: &str) -> String {
        let delivered = self.total(CountName::Success, span);
        format!("{sum} or sum({delivered}) * 0")
    }

    fn share(&self, failed: &str, delivered: &str) -> String {
        let failed = format!("({failed} or {delivered} * 0)");
        format!("{failed} / ({failed} + ({delivered} or {failed} * 0))")
    }

    fn listed(&self) -> String {
        self.0.names.window(CountName::Success)
    }

    fn parts(&self, expr: &str) -> Vec<(&'static str, String)> {
        let edge = format!("${{__to:date:seconds}} - {SETTLE_SECONDS}");
        vec![
            ("", format!("{expr} and on () (vector(time()) <= {edge})")),
            (" (provisional)", format!("{expr} and on () (vector(time()) > {edge})")),
        ]
    }

    fn health(&self, layout: &mut Layout) {
        layout.row("Late data");
        let name = |count| self.0.names.window(count);
        let chosen = self.0.chosen();
        let newest = CountName::ALL.iter().map(|count| {
            let name = name(*count);
            format!("(sum(sum_over_time({name}{chosen}[1h])) or vector(0))")
        });
        let newest: Vec<_> = newest.collect();
        let panel = Panel::stat("May still change", "short").instant("", newest.join(" + "));
        layout.place(
            6,
            8,
            panel.described("Events of the windows that ended in the last hour of the range."),
        );
        let mut panel = Panel::bars("Corrections", "short");
        for count in CountName::ALL {
            let (name, chosen) = (name(*count), chosen.trim_end_matches('}'));
            let expr =
                format!("sum(sum_over_time({name}{chosen},revision!~\"0|\"}}[$__interval]))");
            panel = panel.range(self.0.title(*count), expr);
        }
        let panel = panel.stepped(&self.0.window);
        layout.place(
            12,
            8,
            panel.described("What later readings of a window changed, if revisions are sent."),
        );
        let newest = format!(
            "time() - max(max_over_time(timestamp({}{chosen})[1d:1m]))",
            name(CountName::Success)
        );
        let panel = Panel::stat("Age of the newest window", "s").instant("", newest);
        layout.place(
            6,
            8,
            panel.described("Time since the end of the newest window that was sent, up to a day."),
        );
    }
}

fn data_source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// Returns a dashboard variable that filters panels by the values of a label.
fn variable(name: &str, metric: &str) -> Value {
    json!({
        "name": name,
        "type": "query",
        "datasource": data_source(),
        "query": { "query": format!("label_values({metric}, {name})"), "refId": "values" },
        "refresh": 2,
        "sort": 1,
        "includeAll": true,
        "multi": true,
        // This also matches series without the label, and values with a line break.
        "allValue": "(?s:.*)",
        "current": { "text": ["All"], "value": ["$__all"] },
    })
}

/// Places panels from left to right and from top to bottom, in a grid of 24 columns.
#[derive(Default)]
struct Layout {
    panels: Vec<Value>,
    x: u32,
    y: u32,
    height: u32,
}

impl Layout {
    fn place(&mut self, width: u32, height: u32, panel: Panel) {
        if self.x + width > 24 {
            self.x = 0;
            self.y += self.height;
            self.height = 0;
        }
        let mut value = panel.0;
        value["id"] = json!(self.panels.len() + 1);
        value["gridPos"] = json!({ "x": self.x, "y": self.y, "w": width, "h": height });
        self.panels.push(value);
        self.x += width;
        self.height = self.height.max(height);
    }

    fn row(&mut self, title: &str) {
        let row = json!({ "type": "row", "title": title, "collapsed": false, "panels": [] });
        self.place(24, 1, Panel(row));
    }
}

/// A panel of a Grafana dashboard.
struct Panel(Value);

impl Panel {
    fn new(kind: &str, title: &str, unit: &str) -> Self {
        Self(json!({
            "type": kind,
            "title": title,
            "datasource": data_source(),
            "targets": [],
            "fieldConfig": { "defaults": { "unit": unit }, "overrides": [] },
            "options": {},
        }))
    }

    fn stat(title: &str, unit: &str) -> Self {
        let mut panel = Self::new("stat", title, unit);
        panel.0["options"] = json!({
            "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
            "colorMode": "none",
        });
        panel
    }

    fn lines(title: &str, unit: &str) -> Self {
        let mut panel = Self::new("timeseries", title, unit);
        panel.0["options"] = json!({
            "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] },
            "tooltip": { "mode": "multi", "sort": "desc" },
        });
        panel
    }

    fn bars(title: &str, unit: &str) -> Self {
        let mut panel = Self::lines(title, unit);
        panel.0["fieldConfig"]["defaults"]["custom"] = json!({
            "drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0, "stacking": { "mode": "normal", "group": "A" },
        });
        // Provisional bars are pale, because their counts may still change.
        panel.0["fieldConfig"]["overrides"] = json!([{
            "matcher": { "id": "byRegexp", "options": ".*\\(provisional\\)" },
            "properties": [{ "id": "custom.fillOpacity", "value": 25 }],
        }]);
        panel
    }

    /// Returns a table with a row for each value of a label. The row with the most failed events comes first.
    fn table(title: &str, name: &str) -> Self {
        let mut panel = Self::new("table", title, "short");
        panel.0["transformations"] = json!([
            { "id": "merge", "options": {} },
            { "id": "organize", "options": { "excludeByName": { "Time": true }, "indexByName": { name: 0 }, "renameByName": {} } },
            { "id": "sortBy", "options": { "sort": [{ "field": "Failed", "desc": true }] } },
        ]);
        panel
    }

    fn query(mut self, legend: &str, expr: String, is_instant: bool) -> Self {
        if let Some(targets) = self.0["targets"].as_array_mut() {
            let letters = "ABCDEFGH";
            let id = letters.get(targets.len()..=targets.len()).unwrap_or("Z");
            targets.push(json!({
                "refId": id,
                "datasource": data_source(),
                "editorMode": "code",
                "expr": expr,
                "legendFormat": legend,
                "instant": is_instant,
                "range": !is_instant,
            }));
        }
        self
    }

    fn range(self, legend: &str, expr: String) -> Self {
        self.query(legend, expr, false)
    }

    fn instant(self, legend: &str, expr: String) -> Self {
        self.query(legend, expr, true)
    }

    /// Adds a column to a table.
    fn column(self, title: &str, expr: String) -> Self {
        let mut panel = self.instant(title, expr);
        let mut id = Value::Null;
        if let Some(last) = panel.0["targets"].as_array_mut().and_then(|all| all.last_mut()) {
            last["format"] = json!("table");
            id = last["refId"].clone();
        }
        if let Some(id) = id.as_str() {
            panel.0["transformations"][1]["options"]["renameByName"][format!("Value #{id}")] =
                json!(title);
        }
        panel
    }

    /// Adds to each value a link that opens the dashboard for this value only.
    fn linked(mut self, uid: &str, name: &str) -> Self {
        self.0["fieldConfig"]["overrides"] = json!([{
            "matcher": { "id": "byName", "options": name },
            "properties": [{ "id": "links", "value": [{
                "title": format!("Only this {name}"),
                "url": format!("/d/{uid}?${{__url_time_range}}&var-{name}=${{__value.raw:percentencode}}"),
            }] }],
        }]);
        self
    }

    /// Sets the shortest step of the graph to the length of a window, so that no point shows a part of a window.
    fn stepped(mut self, window: &str) -> Self {
        self.0["interval"] = json!(window);
        self
    }

    fn described(mut self, text: &str) -> Self {
        self.0["description"] = json!(text);
        self
    }
}
