//! The counts that a web app requests: of one window, or of all windows of a range.

use crate::code::Code;
use crate::counts::dimension::Dimension;
use crate::counts::identity::Identity;
use crate::counts::metric::Metric;
use crate::endpoint::contract::Client;
use crate::endpoint::{QueryOptions, endpoint_of};
use crate::error::{Error, Result};
use crate::fold::read_options::ReadOptions;
use crate::pages::permission::Permission;
use crate::ranges::plan::Plan;
use crate::time::now::Now;
use crate::time::settling::{SETTLE_MS, is_settled};
use crate::time::step::TimeStep;
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;

/// What follows the path of an endpoint in the path of a request for a range.
pub(super) const PATH: &str = "/windows";

/// The most windows of a range. A month has 2,976 windows of 15 minutes.
const MOST_WINDOWS: u64 = 3_000;

/// Which counts a web app requests, in one window.
#[derive(Clone, Debug)]
pub struct MetricsQuestion {
    /// Which counts.
    pub metric: Metric,
    /// The query for the service: the window and the dimensions.
    pub query: QueryOptions,
    /// The dimensions that the web app has requested, if it gets some rows only. Then the response has the body that
    /// [`VisibleRows::narrow`] makes from the service's body.
    ///
    /// [`VisibleRows::narrow`]: crate::VisibleRows::narrow
    pub narrowed_to: Option<Vec<Dimension>>,
    /// A key that is equal for equal queries to the same service. They have the same body, whichever of its rows a web app
    /// gets.
    pub key: String,
    /// Whether the response never changes. If it may change, it is kept for
    /// [`PagesOptions::provisional_ms`](crate::PagesOptions::provisional_ms).
    pub is_settled: bool,
}

impl MetricsQuestion {
    pub(super) fn new(
        metric: Metric,
        mut query: QueryOptions,
        service: &str,
        permission: &Permission,
        now: Now,
    ) -> Result<Self> {
        let endpoint = endpoint_of(metric);
        let client = Client { reading: ReadOptions::default(), identity: &Identity::default() };
        let mut checked = query.check(endpoint, &client)?;
        let mut narrowed_to = None;
        if let Permission::Only(rows) = permission {
            let all = rows.with(metric, &query.dimensions)?;
            narrowed_to = Some(std::mem::replace(&mut query.dimensions, all));
            checked = query.check(endpoint, &client)?;
        }
        Ok(Self {
            metric,
            query,
            narrowed_to,
            key: [service, endpoint.path, " ", &checked.text()].concat(),
            is_settled: is_settled(checked.window(), SETTLE_MS, [now; 2], None),
        })
    }
}

/// Which counts a web app requests, in each window of a range.
#[derive(Clone, Debug)]
pub struct WindowsQuestion {
    /// The windows in the order of time, as if the web app had requested each of them. There is at least one.
    pub windows: Vec<MetricsQuestion>,
    /// A key that is equal for equal ranges of the same service and the same rows.
    pub key: String,
}

impl WindowsQuestion {
    /// Reads the query of an address: `start`, `end`, `window` and `dimensions`, which are separated by commas.
    pub(super) fn read(
        metric: Metric,
        query: &str,
        service: &str,
        permission: &Permission,
        now: Now,
    ) -> Result<Self> {
        let fields = Fields::read(query)?;
        let at =
            |name, text: &str| Timestamp::parse(text).map_err(|error| error.with_argument(name));
        let range = Window::new(at("start", &fields.start)?, at("end", &fields.end)?)?;
        let step =
            TimeStep::parse(&fields.window).map_err(|error| error.with_argument("window"))?;
        let names: Result<Vec<Dimension>> =
            fields.dimensions.split(',').map(Dimension::parse).collect();
        let dimensions = names.map_err(|error| error.with_argument("dimensions"))?;
        let plan = Plan::new(range, step);
        if plan.len() > MOST_WINDOWS {
            let message = format!(
                "a range has at most {MOST_WINDOWS} windows, and this one has {}; want a shorter range or longer windows",
                plan.len()
            );
            return Err(Error::argument("window", Code::InvalidArgument, message));
        }
        let question = |window| {
            let query = QueryOptions::new(window, &dimensions);
            MetricsQuestion::new(metric, query, service, permission, now)
        };
        let whole = question(range)?.key;
        let rows = match permission {
            Permission::Only(rows) => rows.key(),
            Permission::Refused | Permission::Everything => String::new(),
        };
        Ok(Self {
            windows: plan.windows().map(question).collect::<Result<_>>()?,
            key: format!("{whole} by {}{rows}", step.seconds()),
        })
    }
}

/// The fields of the query, as text.
#[derive(Default)]
struct Fields {
    start: String,
    end: String,
    window: String,
    dimensions: String,
}

impl Fields {
    fn read(query: &str) -> Result<Self> {
        let mut fields = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let field = match name {
                "start" => &mut fields.start,
                "end" => &mut fields.end,
                "window" => &mut fields.window,
                "dimensions" => &mut fields.dimensions,
                _ => return Err(refused("want start, end, window and dimensions only")),
            };
            if !field.is_empty() {
                return Err(refused("want start, end, window and dimensions once each"));
            }
            *field =
                decoded(value).ok_or_else(|| refused("want a query in UTF-8, percent-encoded"))?;
        }
        for (name, value) in [
            ("start", &fields.start),
            ("end", &fields.end),
            ("window", &fields.window),
            ("dimensions", &fields.dimensions),
        ] {
            if value.is_empty() {
                return Err(Error::argument(name, Code::MissingArgument, "the range has none"));
            }
        }
        Ok(fields)
    }
}

/// Decodes the percent escapes of a value; `None` if an escape is invalid, or the result is not UTF-8.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                let [high, low] =
                    [digits[0], digits[1]].map(|digit| char::from(digit).to_digit(16));
                u8::try_from(high? * 16 + low?).ok()?
            }
            byte => *byte,
        });
    }
    String::from_utf8(bytes).ok()
}

pub(super) fn refused(message: &'static str) -> Error {
    Error::new(Code::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn percent_escapes_are_read() {
        for (value, expected) in [
            ("2026-01-01T00%3a00%3A00Z", Some("2026-01-01T00:00:00Z")),
            ("a%2Cb,c", Some("a,b,c")),
            ("%E2%82%AC", Some("€")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%FF", None),
            ("%+4", None),
        ] {
            assert_eq!(decoded(value).as_deref(), expected, "{value}");
        }
    }
}
