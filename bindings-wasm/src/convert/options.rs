//! What the facade passes in, as what the core takes.

use tallyfold::{
    AggregatorOptions, ClientOptions, HostFailure, Limits, Metric, Now, RetryPolicy,
    SandboxOptions, Secret, TimeStep, Tolerate,
};
use wasm_bindgen::JsValue;

use super::fields::{Fields, string, texts};
use crate::error::{Result, Thrown};

pub(crate) fn client_options(options: &JsValue) -> Result<ClientOptions> {
    let options = Fields::of("options", options)?;
    Ok(ClientOptions {
        cluster_endpoint: options.text("clusterEndpoint")?,
        client_id: options.text("clientId")?,
        client_secret: options.secret("clientSecret")?,
        control_audience: options.text("controlAudience")?,
        base_url: options.text("baseUrl")?,
        auth_url: options.text("authUrl")?,
        orchestration_audience: options.text("orchestrationAudience")?,
        host_tokens: options.flag("hostTokens")?,
        in_browser: options.flag("inBrowser")?,
        dangerously_allow_browser: options.flag("dangerouslyAllowBrowser")?,
        dangerously_allow_http: options.flag("dangerouslyAllowHttp")?,
        default_token_lifetime_s: options.integer("defaultTokenLifetime")?,
        limits: limits(&options)?,
        tolerate: tolerate(&options)?,
        hash_seed: random_seed(),
        retry: retry(&options)?,
    })
}

pub(crate) fn aggregator_options(options: &Fields) -> Result<AggregatorOptions> {
    let metric = options
        .text("metric")?
        .map(|name| Metric::from_name(&name))
        .transpose()?;
    let window = options.fields("window")?;
    let window = window
        .map(|window| {
            Ok::<_, Thrown>((
                window.required_instant("start")?,
                window.required_instant("end")?,
            ))
        })
        .transpose()?;
    Ok(AggregatorOptions {
        metric,
        group_by: options.texts("groupBy")?,
        window,
        limits: limits(options)?,
        tolerate: tolerate(options)?,
        // Each aggregator draws its own.
        hash_seed: 0,
    })
}

pub(crate) fn sandbox_options(options: &JsValue) -> Result<SandboxOptions> {
    let options = Fields::of("options", options)?;
    let usual = SandboxOptions::default();
    let text = |name, usual| Ok::<_, Thrown>(options.text(name)?.unwrap_or(usual));
    Ok(SandboxOptions {
        seed: options.integer("seed")?,
        client_id: text("clientId", usual.client_id)?,
        client_secret: options
            .secret("clientSecret")?
            .unwrap_or(usual.client_secret),
        control_audience: text("controlAudience", usual.control_audience)?,
        orchestration_audience: text("orchestrationAudience", usual.orchestration_audience)?,
        token_lifetime_s: options
            .integer("tokenLifetime")?
            .unwrap_or(usual.token_lifetime_s),
        closed_windows: options.flag("closedWindows")?,
    })
}

fn limits(options: &Fields) -> Result<Limits> {
    let mut limits = Limits::default();
    let Some(given) = options.fields("limits")? else {
        return Ok(limits);
    };
    limits.depth = given.integer("depth")?.unwrap_or(limits.depth);
    limits.string_bytes = given.integer("stringBytes")?.unwrap_or(limits.string_bytes);
    limits.keys = given.integer("keys")?.unwrap_or(limits.keys);
    limits.body_bytes = given.integer("bodyBytes")?.unwrap_or(limits.body_bytes);
    limits.groups = given.integer("groups")?.unwrap_or(limits.groups);
    Ok(limits)
}

fn retry(options: &Fields) -> Result<RetryPolicy> {
    let usual = RetryPolicy::default();
    let longest_wait_ms = options.integer("longestRetryWaitMs")?;
    Ok(RetryPolicy {
        max_retries: options.integer("maxRetries")?.unwrap_or(usual.max_retries),
        longest_wait_ms: longest_wait_ms.unwrap_or(usual.longest_wait_ms),
        seed: random_seed(),
    })
}

/// Something that nobody else can know.
pub(crate) fn random_seed() -> u64 {
    js_sys::Math::random().to_bits()
}

fn tolerate(options: &Fields) -> Result<Tolerate> {
    Ok(Tolerate::parse(
        &options.texts("tolerate")?.unwrap_or_default(),
    )?)
}

/// What both metrics calls take: start, end, dimensions and the dimensions to keep.
pub(crate) fn metrics_query(query: &JsValue) -> Result<MetricsQuery> {
    let query = Fields::of("query", query)?;
    Ok((
        query.required_instant("start")?,
        query.required_instant("end")?,
        query.required_texts("dimensions")?,
        query.texts("groupBy")?,
    ))
}

type MetricsQuery = (String, String, Vec<String>, Option<Vec<String>>);

/// Pairs from an object whose values are a string or an array of strings.
pub(crate) fn conditions(value: &JsValue) -> Result<Vec<(String, Vec<String>)>> {
    let fields = Fields::of("filter", value)?;
    let mut conditions = Vec::new();
    for name in fields.names() {
        let values = fields.parsed(&name, "want a string or an array of strings", |value| {
            value
                .as_string()
                .map(|value| vec![value])
                .or_else(|| texts(value))
        })?;
        conditions.extend(values.map(|values| (name, values)));
    }
    Ok(conditions)
}

/// A step, where `null` is as good as absent.
pub(crate) fn time_step(step: &JsValue) -> Result<Option<TimeStep>> {
    if step.is_undefined() || step.is_null() {
        return Ok(None);
    }
    Ok(Some(TimeStep::parse(&string("step", step)?)?))
}

/// A token from the host, with its lifetime as text, whose form the core judges.
pub(crate) fn token(token: &JsValue) -> Result<(Secret, Option<String>)> {
    let token = Fields::of("accessToken", token)?;
    let value = token.required_text("accessToken")?;
    let lifetime = token.text("expiresIn")?;
    Ok((value.into(), lifetime))
}

/// What an exchange broke on, by its name in JavaScript.
pub(crate) fn host_failure(value: &JsValue) -> Result<HostFailure> {
    match value.as_string().as_deref() {
        Some("network") => Ok(HostFailure::Network),
        Some("timeout") => Ok(HostFailure::Timeout),
        _ => Err(Thrown::refused("failure", "want network or timeout")),
    }
}

/// Pairs from a flat array of names and values.
pub(crate) fn headers(flat: &[String]) -> Vec<(&str, &str)> {
    flat.chunks_exact(2)
        .map(|pair| (pair[0].as_str(), pair[1].as_str()))
        .collect()
}

/// What the host's clocks say.
pub(crate) fn now(now: &JsValue) -> Result<Now> {
    let wanted = || Thrown::refused("now", "want { monotonicMs, unixMs }, both finite numbers");
    let now = Fields::of("now", now)?;
    let reading = |name| {
        let value = now.value(name)?.and_then(|value| value.as_f64());
        value.filter(|value| value.is_finite()).ok_or_else(wanted)
    };
    Ok(Now {
        monotonic_ms: reading("monotonicMs")? as u64,
        unix_ms: reading("unixMs")? as i64,
    })
}
