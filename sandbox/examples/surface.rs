//! Prints the crates' arguments, values and error codes as JSON. `scripts/declare.py` generates the type declarations of
//! all languages from it.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use tallyfold::arguments::{Argument, Kind, Options as Declared, Value as Shown};
use tallyfold::{
    AggregatorOptions, Code, CollectOptions, FollowOptions, Limits, MachineOptions, PagesOptions,
    PlanOptions, ProbeOptions,
};
use tallyfold_export::{ExportOptions, PushOptions};
use tallyfold_health::{ExplainOptions, NotifyOptions, ReceiverOptions};
use tallyfold_sandbox::{FaultOptions, SandboxEvent, SandboxOptions};

fn main() {
    let mut options = Options::default();
    macro_rules! endpoints {
        ($($(#[$doc:meta])* $Target:ident = $name:literal in $file:ident: $Options:ident -> $Output:ident,)+) => {{
            $( options.add::<tallyfold::$Options>(stringify!($Options)); )+
            json!([$({
                "name": $name,
                "options": stringify!($Options),
                "output": stringify!($Output),
            }),+])
        }};
    }
    let endpoints = tallyfold::each_endpoint!(endpoints);
    options.add::<AggregatorOptions>("AggregatorOptions");
    options.add::<CollectOptions>("CollectOptions");
    options.add::<ExplainOptions>("ExplainOptions");
    options.add::<ExportOptions>("ExportOptions");
    options.add::<FaultOptions>("FaultOptions");
    options.add::<FollowOptions>("FollowOptions");
    options.add::<Limits>("Limits");
    options.add::<MachineOptions>("MachineOptions");
    options.add::<NotifyOptions>("NotifyOptions");
    options.add::<PagesOptions>("PagesOptions");
    options.add::<PlanOptions>("PlanOptions");
    options.add::<ProbeOptions>("ProbeOptions");
    options.add::<PushOptions>("PushOptions");
    options.add::<ReceiverOptions>("ReceiverOptions");
    options.add::<SandboxEvent>("SandboxEvent");
    options.add::<SandboxOptions>("SandboxOptions");
    let kinds =
        Code::ALL.iter().map(|code| (code.as_str().to_owned(), code.kind().as_str().into()));
    let kinds: Map<String, Value> = kinds.collect();
    let surface = json!({
        "options": options.arguments,
        "abouts": options.abouts,
        "endpoints": endpoints,
        "values": values(),
        "kinds": kinds,
    });
    println!("{surface:#}");
}

/// All options, sorted by name: their arguments, and their documentation.
#[derive(Default)]
struct Options {
    arguments: BTreeMap<String, Value>,
    abouts: BTreeMap<String, Value>,
}

impl Options {
    fn add<T: Declared>(&mut self, name: &str) {
        let arguments: Vec<Value> = T::ARGUMENTS.iter().filter_map(argument).collect();
        self.arguments.insert(name.to_owned(), arguments.into());
        let about = T::ABOUT.join("\n");
        self.abouts.insert(name.to_owned(), about.trim().into());
    }
}

/// Describes an argument; `None` if it isn't read by its name.
fn argument(argument: &Argument) -> Option<Value> {
    let surface = argument.surface?;
    let kind = match argument.kind {
        Kind::Host => return None,
        Kind::Nested(_) => "Nested".to_owned(),
        kind => format!("{kind:?}"),
    };
    let default = surface.default.and_then(|default| default());
    Some(json!({
        "name": argument.name,
        "variable": argument.variable(),
        "kind": kind,
        "rust": surface.rust,
        "doc": surface.lines.join("\n"),
        "unit": argument.unit().map(|unit| format!("{unit:?}").to_lowercase()),
        "required": surface.default.is_none(),
        "default": default.as_ref().and_then(shown),
        "endless": matches!(default, Some(Shown::Endless)),
    }))
}

/// A default value, if a number or a text can represent it.
fn shown(value: &Shown) -> Option<Value> {
    match value {
        Shown::Whole(number) => i64::try_from(*number).ok().map(Value::from),
        Shown::Text(text) => Some(text.as_str().into()),
        _ => None,
    }
}

/// The JSON schemas of all values that are passed to other languages.
fn values() -> Map<String, Value> {
    let mut schemas = SchemaSettings::default().for_serialize().into_generator();
    fn add<T: JsonSchema>(schemas: &mut SchemaGenerator) {
        schemas.subschema_for::<T>();
    }
    add::<tallyfold::AdditivityVerdict>(&mut schemas);
    add::<tallyfold::Api>(&mut schemas);
    add::<tallyfold::Attempt>(&mut schemas);
    add::<tallyfold::Code>(&mut schemas);
    add::<tallyfold::CountName>(&mut schemas);
    add::<tallyfold::RankBy>(&mut schemas);
    add::<tallyfold::Counts>(&mut schemas);
    add::<tallyfold::Deltas>(&mut schemas);
    add::<tallyfold::Dimension>(&mut schemas);
    add::<tallyfold::HostFailure>(&mut schemas);
    add::<tallyfold::Metric>(&mut schemas);
    add::<tallyfold::Notes>(&mut schemas);
    add::<tallyfold::Presence>(&mut schemas);
    add::<tallyfold::Rates>(&mut schemas);
    add::<tallyfold::Reconciliation>(&mut schemas);
    add::<tallyfold::Shares>(&mut schemas);
    add::<tallyfold::Tolerance>(&mut schemas);
    add::<tallyfold::Window>(&mut schemas);
    add::<tallyfold::Progress>(&mut schemas);
    add::<tallyfold_export::Format>(&mut schemas);
    add::<tallyfold_export::Guarantee>(&mut schemas);
    add::<tallyfold_export::Note>(&mut schemas);
    add::<tallyfold_export::NoteKind>(&mut schemas);
    add::<tallyfold_export::PushReport>(&mut schemas);
    add::<tallyfold_export::Rejected>(&mut schemas);
    add::<tallyfold_export::Windows>(&mut schemas);
    add::<tallyfold_health::Amount>(&mut schemas);
    add::<tallyfold_health::Cause>(&mut schemas);
    add::<tallyfold_health::Check>(&mut schemas);
    add::<tallyfold_health::ErrorBudget>(&mut schemas);
    add::<tallyfold_health::Usual>(&mut schemas);
    add::<tallyfold_health::Explanation>(&mut schemas);
    add::<tallyfold_health::Finding>(&mut schemas);
    add::<tallyfold_health::Incident>(&mut schemas);
    add::<tallyfold_health::IncidentChange>(&mut schemas);
    add::<tallyfold_health::IncidentEvent>(&mut schemas);
    add::<tallyfold_health::IncidentHold>(&mut schemas);
    add::<tallyfold_health::IncidentPart>(&mut schemas);
    add::<tallyfold_health::Measure>(&mut schemas);
    add::<tallyfold_health::Need>(&mut schemas);
    add::<tallyfold_health::Query>(&mut schemas);
    add::<tallyfold_health::Receipt>(&mut schemas);
    add::<tallyfold_health::ReceiverKind>(&mut schemas);
    add::<tallyfold_health::Replay>(&mut schemas);
    add::<tallyfold_health::kinds::RuleKind>(&mut schemas);
    add::<tallyfold_health::Severity>(&mut schemas);
    add::<tallyfold_health::Status>(&mut schemas);
    add::<tallyfold_health::Unjudged>(&mut schemas);
    add::<tallyfold_sandbox::FaultKind>(&mut schemas);
    add::<tallyfold_sandbox::SandboxEndpoint>(&mut schemas);
    add::<tallyfold_sandbox::Scene>(&mut schemas);
    add::<tallyfold_sandbox::Outcome>(&mut schemas);
    schemas.take_definitions(true)
}
