//! Every conversion between JavaScript's values and the core's, in one place.

use js_sys::{Array, BigUint64Array, Object, Reflect, Uint8Array, Uint32Array};
use tallyfold::{
    AggregatorOptions, ClientOptions, Counts, Dictionary, HostFailure, Limits, Metric, Notes, Now,
    Output, Reconciliation, Request, Row, SandboxOptions, SandboxResponse, SandboxStats, Secret,
    Step, Tolerate, Window,
};
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{Result, Thrown};
use crate::table::CountTable;

/// The fields of an options object.
pub(crate) struct Fields(JsValue);

impl Fields {
    /// `argument` names the object in errors.
    pub(crate) fn of(argument: &str, value: &JsValue) -> Result<Self> {
        if value.is_object() {
            Ok(Self(value.clone()))
        } else {
            Err(Thrown::refused(argument, "want an object"))
        }
    }

    /// A field's value, where `null` is as good as absent.
    fn value(&self, name: &str) -> Result<Option<JsValue>> {
        let value = Reflect::get(&self.0, &name.into()).map_err(Thrown::foreign)?;
        Ok((!value.is_undefined() && !value.is_null()).then_some(value))
    }

    fn parsed<T>(
        &self,
        name: &str,
        want: &str,
        parse: impl FnOnce(&JsValue) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.value(name)? {
            None => Ok(None),
            Some(value) => parse(&value)
                .map(Some)
                .ok_or_else(|| Thrown::refused(name, want)),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        self.parsed(name, "want a string", JsValue::as_string)
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        self.parsed(name, "want an array of strings", texts)
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        Ok(self
            .parsed(name, "want true or false", JsValue::as_bool)?
            .unwrap_or_default())
    }

    pub(crate) fn integer<T: TryFrom<i128>>(&self, name: &str) -> Result<Option<T>> {
        self.parsed(name, "want a whole number in range", |value| {
            T::try_from(integer(value)?).ok()
        })
    }

    fn secret(&self, name: &str) -> Result<Option<Secret>> {
        Ok(self.text(name)?.map(Secret::from))
    }

    fn fields(&self, name: &str) -> Result<Option<Self>> {
        self.value(name)?
            .map(|value| Self::of(name, &value))
            .transpose()
    }

    pub(crate) fn required_text(&self, name: &str) -> Result<String> {
        self.text(name)?.ok_or_else(|| Thrown::missing(name))
    }

    pub(crate) fn required_texts(&self, name: &str) -> Result<Vec<String>> {
        self.texts(name)?.ok_or_else(|| Thrown::missing(name))
    }
}

/// An argument that counts rows.
pub(crate) fn size(argument: &str, value: &JsValue) -> Result<usize> {
    let size = integer(value).and_then(|value| usize::try_from(value).ok());
    size.ok_or_else(|| Thrown::refused(argument, "want a whole number, 0 or more"))
}

/// A number without a fraction that a double holds exactly, or a bigint of 64 bits.
fn integer(value: &JsValue) -> Option<i128> {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    match value.as_f64() {
        Some(number) => (number.fract() == 0.0 && number.abs() <= SAFE).then_some(number as i128),
        None => {
            let signed = i64::try_from(value.clone()).map(i128::from);
            signed
                .or_else(|_| u64::try_from(value.clone()).map(i128::from))
                .ok()
        }
    }
}

fn texts(value: &JsValue) -> Option<Vec<String>> {
    value
        .dyn_ref::<Array>()?
        .iter()
        .map(|item| item.as_string())
        .collect()
}

/// An argument that is an array of strings.
pub(crate) fn strings(argument: &str, value: &JsValue) -> Result<Vec<String>> {
    texts(value).ok_or_else(|| Thrown::refused(argument, "want strings"))
}

/// An argument that is a string.
pub(crate) fn string(argument: &str, value: &JsValue) -> Result<String> {
    value
        .as_string()
        .ok_or_else(|| Thrown::refused(argument, "want a string"))
}

pub(crate) fn now(monotonic_ms: f64, unix_ms: f64) -> Now {
    Now {
        monotonic_ms: monotonic_ms as u64,
        unix_ms: unix_ms as i64,
    }
}

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
            Ok::<_, Thrown>((window.required_text("start")?, window.required_text("end")?))
        })
        .transpose()?;
    Ok(AggregatorOptions {
        metric,
        group_by: options.texts("groupBy")?,
        window,
        limits: limits(options)?,
        tolerate: tolerate(options)?,
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

fn tolerate(options: &Fields) -> Result<Tolerate> {
    Ok(Tolerate::parse(
        &options.texts("tolerate")?.unwrap_or_default(),
    )?)
}

/// What both metrics calls take: start, end, dimensions and the dimensions to keep.
pub(crate) fn metrics_query(query: &JsValue) -> Result<MetricsQuery> {
    let query = Fields::of("query", query)?;
    Ok((
        query.required_text("start")?,
        query.required_text("end")?,
        query.required_texts("dimensions")?,
        query.texts("groupBy")?,
    ))
}

type MetricsQuery = (String, String, Vec<String>, Option<Vec<String>>);

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

/// Pairs from an object whose values are a string or an array of strings.
pub(crate) fn conditions(value: &JsValue) -> Result<Vec<(String, Vec<String>)>> {
    let fields = Fields::of("filter", value)?;
    let object: &Object = fields.0.unchecked_ref();
    let mut conditions = Vec::new();
    for name in Object::keys(object)
        .iter()
        .filter_map(|name| name.as_string())
    {
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

/// A plain object; a field that is undefined is left out.
pub(crate) fn object<const N: usize>(fields: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_undefined()) {
        // A fresh object takes every field.
        _ = Reflect::set(&object, &(*name).into(), value);
    }
    object.into()
}

pub(crate) fn array(values: impl Iterator<Item = JsValue>) -> Array {
    values.collect()
}

pub(crate) fn counts(counts: Counts) -> JsValue {
    object([
        ("success", counts.success.into()),
        ("errors", counts.errors.into()),
        ("filtered", counts.filtered.into()),
    ])
}

pub(crate) fn reconciliation(reconciliation: &Reconciliation) -> JsValue {
    match *reconciliation {
        Reconciliation::Balanced => object([("verdict", "balanced".into())]),
        Reconciliation::Unavailable => object([("verdict", "unavailable".into())]),
        Reconciliation::Unbalanced {
            success,
            errors,
            filtered,
        } => object([
            ("verdict", "unbalanced".into()),
            ("success", success.into()),
            ("errors", errors.into()),
            ("filtered", filtered.into()),
        ]),
    }
}

pub(crate) fn windows(windows: &[Window]) -> Array {
    array(windows.iter().map(|window| {
        object([
            ("start", window.start().to_string().into()),
            ("end", window.end().to_string().into()),
        ])
    }))
}

pub(crate) fn notes(notes: Notes) -> JsValue {
    object([
        ("repeatedCombinations", notes.repeated_combinations.into()),
        ("nullDimensions", notes.null_dimensions.into()),
    ])
}

pub(crate) fn row(names: &[&str], row: Row<'_>) -> JsValue {
    let dimensions = Object::new();
    for (index, name) in names.iter().enumerate() {
        _ = Reflect::set(&dimensions, &(*name).into(), &row.value(index).into());
    }
    let Counts {
        success,
        errors,
        filtered,
    } = row.counts();
    object([
        ("dimensions", dimensions.into()),
        ("success", success.into()),
        ("errors", errors.into()),
        ("filtered", filtered.into()),
    ])
}

pub(crate) fn dictionary(dictionary: &Dictionary) -> Array {
    dictionary.values().map(JsValue::from_str).collect()
}

pub(crate) fn indexes(indexes: &[usize]) -> Array {
    array(indexes.iter().map(|index| JsValue::from(*index)))
}

/// A copy, so that no growth of the wasm memory detaches it.
pub(crate) fn ids(column: &[u32]) -> Uint32Array {
    Uint32Array::from(column)
}

/// A copy, so that no growth of the wasm memory detaches it.
pub(crate) fn column(column: &[u64]) -> BigUint64Array {
    BigUint64Array::from(column)
}

pub(crate) fn bytes(bytes: &[u8]) -> Uint8Array {
    Uint8Array::from(bytes)
}

pub(crate) fn step(step: Step) -> JsValue {
    match step {
        Step::Send(request) => object([
            ("type", "send".into()),
            ("request", self::request(&request)),
        ]),
        Step::ProvideToken { api, .. } => object([
            ("type", "provideToken".into()),
            ("api", api.as_str().into()),
        ]),
        Step::Blocked { epoch } => object([("type", "blocked".into()), ("epoch", epoch.into())]),
        Step::Done | _ => object([("type", "done".into())]),
    }
}

fn request(request: &Request) -> JsValue {
    let headers = request
        .headers()
        .flat_map(|(name, value)| [name.into(), value.into()]);
    object([
        ("method", request.method().into()),
        ("url", request.url().into()),
        ("headers", array(headers).into()),
        ("body", request.body().map(bytes).into()),
    ])
}

/// Pairs from a flat array of names and values.
pub(crate) fn headers(flat: &[String]) -> Vec<(&str, &str)> {
    flat.chunks_exact(2)
        .map(|pair| (pair[0].as_str(), pair[1].as_str()))
        .collect()
}

pub(crate) fn output(output: Output) -> JsValue {
    match output {
        Output::Table(table) => CountTable::from(table).into(),
        Output::Json(bytes) => String::from_utf8_lossy(&bytes).as_ref().into(),
    }
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
    })
}

pub(crate) fn credentials(options: &SandboxOptions) -> JsValue {
    object([
        ("clientId", options.client_id.as_str().into()),
        ("clientSecret", options.client_secret.expose().into()),
        ("controlAudience", options.control_audience.as_str().into()),
        (
            "orchestrationAudience",
            options.orchestration_audience.as_str().into(),
        ),
    ])
}

pub(crate) fn response(response: &SandboxResponse) -> JsValue {
    let pair = |(name, value): &(String, String)| {
        array([name.as_str().into(), value.as_str().into()].into_iter()).into()
    };
    object([
        ("status", response.status.into()),
        ("headers", array(response.headers.iter().map(pair)).into()),
        ("body", bytes(&response.body).into()),
        ("delayMs", (response.delay_ms as f64).into()),
        ("cutAt", response.cut_at.into()),
    ])
}

pub(crate) fn stats(stats: SandboxStats) -> JsValue {
    object([
        ("control_token", (stats.control_token as f64).into()),
        (
            "orchestration_token",
            (stats.orchestration_token as f64).into(),
        ),
        ("event_delivery", (stats.event_delivery as f64).into()),
        ("event_ingestion", (stats.event_ingestion as f64).into()),
        ("audit_logs", (stats.audit_logs as f64).into()),
    ])
}
