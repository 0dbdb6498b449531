//! What is explained and judged.

use serde_json::{Value, json};
use tallyfold::arguments::{Arguments, Kind, Options, read};
use tallyfold::{Error, Spelling, TimeStep, Timestamp, Window};
use tallyfold_health::{
    ErrorBudget, ExplainOptions, Measure, Need, Observed, Rules, State, explain, usual,
};

use crate::exact::exact;
use crate::tables::{instant, table};

/// What is given, and what has to come of it.
type Case = (Value, String);

/// Rules by name.
pub(crate) const RULES: &[(&str, &str)] = &[
    ("limits", LIMITS),
    ("all kinds", ALL_KINDS),
    ("none", ""),
    ("no TOML", "window = [\n"),
    (
        "another kind",
        "[[rule]]\nname = \"a\"\nkind = \"treshold\"\nmeasure = \"errors\"\nabove = 1\n",
    ),
    ("another key", "window = \"1d\"\n\n[[rules]]\nname = \"a\"\n"),
    (
        "a wrong value",
        "[[rule]]\nname = \"a\"\nkind = \"rate\"\nmeasure = \"error_rate\"\nfor = 0\n",
    ),
    (
        "a name twice",
        "[[rule]]\nname = \"é\"\nkind = \"silent\"\n[[rule]]\nname = \"é\"\nkind = \"silent\"\n",
    ),
];

const LIMITS: &str = r#"window = "1d"
labels = { team = "data \"one\"" }

[[rule]]
name = "errors"
kind = "threshold"
measure = "error_rate"
by = ["integration"]
above = "10%"
for = 2
severity = "critical"
labels = { page = "yes" }

[[rule]]
name = "little"
kind = "threshold"
measure = "success"
where = { integration = ["Mail"] }
below = 100

[[silence]]
rule = "little"
until = 2026-03-01T00:00:00Z
"#;

const ALL_KINDS: &str = r#"window = "1d"

[[rule]]
name = "fails"
kind = "rate"
measure = "error_rate"
by = ["integration"]
baseline = { weeks = 5, neighbours = 1 }
severity = "critical"

[[rule]]
name = "filtered"
kind = "rate"
measure = "filtered_rate"
baseline = { weeks = 5, neighbours = 1 }

[[rule]]
name = "volume"
kind = "volume"
measure = "events"
by = ["integration"]
baseline = { weeks = 5, neighbours = 1 }

[[rule]]
name = "silent"
kind = "silent"
by = ["integration"]
baseline = { weeks = 5, neighbours = 1 }

[[rule]]
name = "vanished"
kind = "vanished"
by = ["integration"]
over = "1d"

[[rule]]
name = "new"
kind = "new"
by = ["reason"]

[[rule]]
name = "budget"
kind = "budget"
budget = "1%"
burn = [{ rate = 6, long = "2d", short = "1d" }]

[[rule]]
name = "undelivered"
kind = "undelivered"

[[rule]]
name = "totals"
kind = "reconciliation"
severity = "info"
"#;

pub(crate) fn all() -> Vec<Case> {
    let mut cases = explained();
    cases.extend(RULES.iter().map(|(name, _)| parsed(name)));
    cases.push(judged("limits", "delivery", None, &[45, 46, 47, 48, 49, 50]));
    cases.push(judged("limits", "fresh delivery", None, &[46, 50]));
    cases.push(judged("all kinds", "delivery", Some("ingestion"), &[44, 45, 46, 47, 50, 50]));
    cases.push(judged("all kinds", "before", None, &[20]));
    cases.push(replayed("limits", "delivery", None, [0, 50]));
    cases.push(replayed("all kinds", "delivery", Some("ingestion"), [36, 50]));
    for measure in Measure::ALL {
        cases.push(usual_of("delivery", *measure, [46, 50], "1d"));
    }
    cases.push(usual_of("delivery", Measure::Errors, [0, 50], "1h"));
    cases.push(wrong_state());
    cases.push(wrong_range());
    cases
}

fn explained() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |before, now, measure: Measure, options: &[(&str, u64)]| {
        let given: serde_json::Map<_, _> =
            options.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let read: ExplainOptions = options_of(options);
        let found = explain(&table(before), &table(now), measure, &read);
        let given = json!({
            "before": before, "now": now, "measure": measure, "options": given,
        });
        cases.push((json!({ "explain": given }), expected(found)));
    };
    for measure in Measure::ALL {
        add("before", "integration fails", *measure, &[]);
        add("integration fails", "before", *measure, &[]);
    }
    for measure in [Measure::ErrorRate, Measure::Errors, Measure::FilteredRate] {
        add("before", "Mail fails", measure, &[]);
    }
    add("before", "everything fails", Measure::ErrorRate, &[]);
    add("before", "before", Measure::Errors, &[]);
    add("reasons before", "reasons now", Measure::FilteredRate, &[]);
    add("reasons before", "reasons now", Measure::Filtered, &[]);
    add("nothing", "odd", Measure::Events, &[]);
    add("odd", "nothing", Measure::ErrorRate, &[]);
    add("nothing", "nothing", Measure::ErrorRate, &[]);
    add("nothing", "huge", Measure::Success, &[]);
    add("huge", "odd", Measure::ErrorRate, &[]);
    add("huge", "huge", Measure::Events, &[]);
    add("before", "integration fails", Measure::ErrorRate, &[("most", 1), ("others", 0)]);
    add("before", "integration fails", Measure::ErrorRate, &[("most", 0), ("others", 2)]);
    add("before", "odd", Measure::ErrorRate, &[]);
    add("delivery", "ingestion", Measure::Events, &[]);
    cases
}

/// The options by their names.
fn options_of<T: Options>(given: &[(&str, u64)]) -> T {
    struct Given<'a>(&'a [(&'a str, u64)]);

    impl Arguments for Given<'_> {
        type Error = Error;

        const SPELLING: Spelling = Spelling::Rust;

        fn value(&self, name: &str, _: Kind) -> Result<Option<tallyfold::arguments::Value>, Error> {
            let found = self.0.iter().find(|(own, _)| *own == name);
            Ok(found.map(|(_, value)| tallyfold::arguments::Value::Whole((*value).into())))
        }

        fn nested(&self, _: &str) -> Result<Option<Self>, Error> {
            Ok(None)
        }

        fn names(&self) -> Result<Vec<String>, Error> {
            Ok(self.0.iter().map(|(name, _)| (*name).to_owned()).collect())
        }
    }

    read(&Given(given), &[]).expect("options")
}

fn text_of(rules: &str) -> &'static str {
    let found = RULES.iter().find(|(name, _)| *name == rules);
    found.expect("rules of that name").1
}

fn rules(name: &str) -> Rules {
    Rules::parse(text_of(name)).expect("rules")
}

/// What is known of rules.
#[derive(serde::Serialize)]
struct Parsed {
    names: Vec<String>,
    needs: Vec<Need>,
    budgets: Vec<ErrorBudget>,
}

fn parsed(name: &str) -> Case {
    let found = Rules::parse(text_of(name)).map_err(|error| error.with_argument("text"));
    let found = found.map(|rules| Parsed {
        names: rules.names().into_iter().map(str::to_owned).collect(),
        needs: rules.needs(),
        budgets: rules.budgets(),
    });
    (json!({ "parse": name }), expected(found))
}

/// Checks one after the other, at the starts of these days, each with the state that the one before has left.
fn judged(name: &str, delivery: &str, ingestion: Option<&str>, days: &[u64]) -> Case {
    let (rules, counts) = (rules(name), (table(delivery), ingestion.map(table)));
    let observed = Observed { delivery: Some(&counts.0), ingestion: counts.1.as_ref() };
    let mut state = State::default();
    let mut expected = Vec::new();
    for day in days {
        let now = Timestamp::parse(&instant(*day)).expect("an instant");
        // As the hosts keep it.
        state = State::from_json(&state.to_json()).expect("a state");
        let check = rules.check(&observed, &state, now).expect("aligned windows");
        state = check.state.clone();
        let text = String::from_utf8(state.to_json()).expect("JSON");
        expected.push(format!("{{\"check\": {}, \"state\": {}}}", exact(&check), json!(text)));
    }
    let days: Vec<String> = days.iter().map(|day| instant(*day)).collect();
    let given = json!({
        "rules": name, "delivery": delivery, "ingestion": ingestion, "at": days,
    });
    (json!({ "check": given }), format!("\"expected\": [{}]", expected.join(", ")))
}

fn replayed(name: &str, delivery: &str, ingestion: Option<&str>, range: [u64; 2]) -> Case {
    let counts = (table(delivery), ingestion.map(table));
    let observed = Observed { delivery: Some(&counts.0), ingestion: counts.1.as_ref() };
    let [start, end] = range.map(instant);
    let window = Window::parse(&start, &end).expect("a range");
    let found = rules(name).replay(&observed, window);
    let given = json!({
        "rules": name, "delivery": delivery, "ingestion": ingestion, "start": start, "end": end,
    });
    (json!({ "replay": given }), expected(found))
}

fn usual_of(name: &str, measure: Measure, range: [u64; 2], step: &str) -> Case {
    let [start, end] = range.map(instant);
    let window = Window::parse(&start, &end).expect("a range");
    let length = TimeStep::parse(step).expect("a length");
    let found = usual(&table(name), window, length, measure);
    let given =
        json!({ "table": name, "measure": measure, "start": start, "end": end, "step": step });
    (json!({ "usual": given }), expected(found))
}

/// A state of which a digit was changed.
fn wrong_state() -> Case {
    let sound = String::from_utf8(State::default().to_json()).expect("JSON");
    let spoilt = sound.replacen("\"rules\":[]", "\"rules\":[ ]", 1);
    assert_ne!(sound, spoilt);
    let found = State::from_json(spoilt.as_bytes()).map(|_| ());
    let found = found.map_err(|error| error.with_argument("state"));
    let given =
        json!({ "rules": "limits", "delivery": "delivery", "state": spoilt, "at": [instant(50)] });
    (json!({ "check": given }), expected(found))
}

fn wrong_range() -> Case {
    let (start, end) = (instant(9), instant(9));
    let found = Window::parse(&start, &end).map(|_| ());
    let given = json!({ "rules": "limits", "delivery": "delivery", "ingestion": null, "start": start, "end": end });
    (json!({ "replay": given }), expected(found))
}

/// A result, or the code, message and argument of an error.
fn expected(found: Result<impl serde::Serialize, Error>) -> String {
    match found {
        Ok(found) => format!("\"expected\": {}", exact(&found)),
        Err(error) => {
            let argument = error.argument_in(Spelling::Python);
            let error = json!({
                "code": error.code().as_str(), "argument": argument, "message": error.text_in(Spelling::Python).to_string(),
            });
            format!("\"error\": {error}")
        }
    }
}
